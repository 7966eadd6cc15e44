"""Figure 2 of Liu, Wu & He: regions with the Gaussian kernel that move with the utilities, Example 1."""

import warnings
from typing import Any

from polymargin import RobustSVC
from polymargin.datasets import make_triangle
from reproductions.declare import Context, Figure
from reproductions.plane import draw_regions
from reproductions.robust._utilities import TWO_STARTS, utility

LEVELS = (0.0, 0.4, 0.8)


def draw(context: Context) -> Any:
    """Draw the regions, a row a kind of utility, a column a level."""
    from matplotlib import pyplot

    sample = make_triangle(100 if context.quick else 800, random_state=context.seed % 2**32)
    figure, axes = pyplot.subplots(3, 3, figsize=(10, 10), sharex=True, sharey=True)
    for kind, row in enumerate(axes, 1):
        for ax, a in zip(row, LEVELS, strict=True):
            machine = RobustSVC(
                0.1, utility=utility(kind, a), kernel="rbf", gamma=0.25, tol=1e-3, starts=TWO_STARTS
            )
            with warnings.catch_warnings():
                # Where no class holds half of the expected utility fits come near to zero, as the paper's do.
                warnings.simplefilter("ignore", UserWarning)
                machine.fit(sample.data, sample.target)
            draw_regions(ax, machine, sample, f"$U_{{{kind},{a:g}}}$")
    return figure


REPRODUCTION = Figure(
    title="Figure 2: regions of the Gaussian kernel that move with the utilities",
    draw=draw,
    verdict="reproduced in order",
    notes="800 rows as in the paper, gamma = .25, C = .1, two starts; titles give the share of rows predicted as "
    "labelled. As in the paper the region of class 1 dissolves for U_2 and large a.",
)
