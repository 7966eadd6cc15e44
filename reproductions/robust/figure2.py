"""Figure 2 of Liu, Wu & He: regions with the Gaussian kernel that move with the utilities, Example 1."""

import warnings
from collections.abc import Mapping
from typing import Any

from sklearn.utils import Bunch

from polymargin import RobustSVC
from polymargin.datasets import make_triangle
from reproductions.declare import Context, Key, Reproduction
from reproductions.plane import draw_regions
from reproductions.robust._utilities import moving_regions, region_shares, utility

LEVELS = (0.0, 0.4, 0.8)
ENDS = LEVELS[:2]
"""Between these levels the regions are compared: at .8 they mix, as the paper says."""


def _machine(sample: Bunch, kind: int, a: float) -> RobustSVC:
    machine = RobustSVC(0.1, utility=utility(kind, a), kernel="rbf", gamma=0.25, tol=1e-3)
    with warnings.catch_warnings():
        # Where no class holds half of the expected utility fits come near to zero, as the paper's do.
        warnings.simplefilter("ignore", UserWarning)
        return machine.fit(sample.data, sample.target)


def repetition(context: Context) -> Mapping[Key, float]:
    """Return the shares of the square that the classes hold, at both ends of the levels of a."""
    sample = make_triangle(100 if context.quick else 800, random_state=context.seed % 2**32)
    values: dict[Key, float] = {}
    for kind in (1, 2, 3):
        for a in ENDS:
            shares = region_shares(_machine(sample, kind, a).predict)
            values |= {(f"U{kind}", f"{a:g}", f"class {j + 1}"): float(shares[j]) for j in range(3)}
    return values


def draw(context: Context) -> Any:
    """Draw the regions, a row a kind of utility, a column a level."""
    from matplotlib import pyplot

    sample = make_triangle(100 if context.quick else 800, random_state=context.seed % 2**32)
    figure, axes = pyplot.subplots(3, 3, figsize=(10, 10), sharex=True, sharey=True)
    for kind, row in enumerate(axes, 1):
        for ax, a in zip(row, LEVELS, strict=True):
            draw_regions(ax, _machine(sample, kind, a), sample, f"$U_{{{kind},{a:g}}}$")
    return figure


REPRODUCTION = Reproduction(
    title="Figure 2: regions of the Gaussian kernel that move with the utilities",
    parts=("utility", "a", "region"),
    repetition=repetition,
    repetitions=6,
    claims=moving_regions(ENDS),
    digits=3,
    draw=draw,
    protocol="800 rows as in the paper, gamma = .25, C = .1 (the paper gives neither), two starts. Shares are "
    "those of the square [-3, 3]^2; two percent of it count as a change.",
    notes="Titles give the share of rows predicted as labelled. As in the paper the region of class 1 dissolves "
    "for U_2 and large a.",
)
