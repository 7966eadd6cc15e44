"""Figures 5 and 6 of Fung & Mangasarian: plain and refined machines on three unbalanced classes."""

from typing import Any

from polymargin import ProximalSVC
from polymargin.datasets import make_unbalanced_rings
from reproductions.declare import Context, Figure
from reproductions.plane import draw_regions


def draw(context: Context) -> Any:
    """Draw the regions of both, with their training correctness."""
    from matplotlib import pyplot

    sizes = (80, 20, 20) if context.quick else (400, 50, 50)
    sample = make_unbalanced_rings(sizes, random_state=context.seed % 2**32)
    figure, axes = pyplot.subplots(1, 2, figsize=(10, 5), sharey=True)
    for ax, modified in zip(axes, (False, True), strict=True):
        machine = ProximalSVC(1.0, kernel="rbf", gamma=0.0625, balance=modified, refine=modified)
        draw_regions(ax, machine.fit(sample.data, sample.target), sample, "BR-MPSVM" if modified else "MPSVM")
    return figure


REPRODUCTION = Figure(
    title="Figures 5 and 6: three unbalanced classes with the Gaussian kernel: MPSVM and BR-MPSVM",
    draw=draw,
    verdict="not reproducible, the data are not given; BR-MPSVM gains on simulated data as in the paper",
    notes="The paper has 91.8 and 98.8 % on its own data, whose distribution it does not give; ours are "
    "simulated with the same class sizes.",
)
