"""Figure 1 of Liu, Wu & He: linear boundaries that move with the utilities, Example 1."""

from typing import Any

from polymargin import RobustSVC
from polymargin.datasets import make_triangle
from reproductions.declare import Context, Figure
from reproductions.robust._utilities import TWO_STARTS, draw_boundaries, utility

LEVELS = (0.0, 0.2, 0.4, 0.6, 0.8)


def draw(context: Context) -> Any:
    """Draw the boundaries for a = 0, .2, ..., .8, a panel a kind of utility, over those of the Bayes rules."""
    from matplotlib import pyplot

    sample = make_triangle(200 if context.quick else 1600, random_state=context.seed % 2**32)
    figure, axes = pyplot.subplots(1, 3, figsize=(12, 4), sharey=True)
    for kind, ax in enumerate(axes, 1):
        ax.scatter(*sample.data.T, c=sample.target, s=1, cmap="Pastel1", vmax=8)
        for level, a in enumerate(LEVELS[::2] if context.quick else LEVELS):
            matrix = utility(kind, a)
            machine = RobustSVC(0.1, utility=matrix, tol=1e-5, starts=TWO_STARTS).fit(sample.data, sample.target)
            draw_boundaries(ax, machine.predict, f"C{level}", f"a = {a:g}")
            bayes = lambda X, matrix=matrix: (sample.class_probabilities(X) @ matrix).argmax(axis=1)  # noqa: E731
            draw_boundaries(ax, bayes, f"C{level}", None)
        ax.set(title=f"$U_{{{kind},a}}$", xlim=(-3, 3), ylim=(-3, 3))
    axes[0].legend(fontsize=7)
    return figure


REPRODUCTION = Figure(
    title="Figure 1: linear boundaries that move with the utilities",
    draw=draw,
    verdict="reproduced",
    notes="1600 rows as in the paper, C = .1, two starts. Dashed: the Bayes rules, which the paper does not "
    "draw. As there, the region of class 1 shrinks with U_1 and U_2 and grows with U_3.",
)
