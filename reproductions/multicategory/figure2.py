"""Figure 2 of Lee, Lin & Wahba: what MSVM and one-versus-rest estimate on the three-class example."""

from typing import Any

from polymargin.datasets import make_competing_interval
from reproductions.declare import Context, Figure
from reproductions.multicategory._interval import OneVersusRest, fine_grid, grid, tuned_by_gckl


def draw(context: Context) -> Any:
    """Draw the three scores of both methods, tuned by GCKL on one sample of 200."""
    from matplotlib import pyplot

    sample = make_competing_interval(60 if context.quick else 200, random_state=context.seed % 2**32)
    points = grid(context)
    x = fine_grid(0.0, 1.0)
    methods = {"MSVM": tuned_by_gckl(sample, points, "lee"), "one-versus-rest": OneVersusRest(sample, points)}
    figure, axes = pyplot.subplots(1, 2, figsize=(9, 3.5), sharey=True)
    for ax, (name, machine) in zip(axes, methods.items(), strict=True):
        for j, (scores, style) in enumerate(zip(machine.decision_function(x).T, ("-", "--", ":"), strict=True), 1):
            ax.plot(x, scores, style, color="black", label=f"$f_{j}$")
        ax.set(title=name, xlabel="x", ylim=(-1.6, 1.6))
    axes[0].legend()
    return figure


REPRODUCTION = Figure(
    title="Figure 2: scores of MSVM and one-versus-rest on the three-class example",
    draw=draw,
    verdict="reproduced: f_2 of one-versus-rest stays near -1, MSVM shows class 2 in the middle",
)
