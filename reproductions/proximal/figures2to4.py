"""Figures 2 to 4 of Fung & Mangasarian: plain, balanced and refined machines on an unbalanced pair of classes."""

from typing import Any

from polymargin import ProximalSVC
from polymargin.datasets import make_unbalanced_pair
from reproductions.declare import Context, Figure
from reproductions.plane import draw_regions


def draw(context: Context) -> Any:
    """Draw the three separating lines, with their training correctness."""
    from matplotlib import pyplot

    sample = make_unbalanced_pair(random_state=context.seed % 2**32)
    settings = {"plain": (False, False), "balanced": (True, False), "balanced and refined": (True, True)}
    figure, axes = pyplot.subplots(1, 3, figsize=(12, 4), sharey=True)
    for ax, (name, (balance, refine)) in zip(axes, settings.items(), strict=True):
        machine = ProximalSVC(2.0**6, balance=balance, refine=refine).fit(sample.data, sample.target)
        draw_regions(ax, machine, sample, name)
    return figure


REPRODUCTION = Figure(
    title="Figures 2 to 4: an unbalanced pair of classes: plain, balanced, refined",
    draw=draw,
    verdict="not reproducible, the data are not given; refinement gains on simulated data as in the paper",
    notes="The paper has 86, 84 and 98 % on its own data, whose distribution it does not give; ours are "
    "simulated with the same class sizes.",
)
