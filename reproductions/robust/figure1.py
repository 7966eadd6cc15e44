"""Figure 1 of Liu, Wu & He: linear boundaries that move with the utilities, Example 1."""

from collections.abc import Mapping
from typing import Any

from polymargin import RobustSVC
from polymargin.datasets import make_triangle
from reproductions.declare import Context, Key, Reproduction
from reproductions.robust._utilities import draw_boundaries, moving_regions, region_shares, utility

LEVELS = (0.0, 0.2, 0.4, 0.6, 0.8)
ENDS = (LEVELS[0], LEVELS[-1])
"""Between these levels the regions are compared."""


def repetition(context: Context) -> Mapping[Key, float]:
    """Return the shares of the square that the classes hold, at both ends of the levels of a."""
    sample = make_triangle(200 if context.quick else 1600, random_state=context.seed % 2**32)
    values: dict[Key, float] = {}
    for kind in (1, 2, 3):
        for a in ENDS:
            machine = RobustSVC(0.1, utility=utility(kind, a), tol=1e-3).fit(sample.data, sample.target)
            shares = region_shares(machine.predict)
            values |= {(f"U{kind}", f"{a:g}", f"class {j + 1}"): float(shares[j]) for j in range(3)}
    return values


def draw(context: Context) -> Any:
    """Draw the boundaries for a = 0, .2, ..., .8, a panel a kind of utility, over those of the Bayes rules."""
    from matplotlib import pyplot

    sample = make_triangle(200 if context.quick else 1600, random_state=context.seed % 2**32)
    figure, axes = pyplot.subplots(1, 3, figsize=(12, 4), sharey=True)
    for kind, ax in enumerate(axes, 1):
        ax.scatter(*sample.data.T, c=sample.target, s=1, cmap="Pastel1", vmax=8)
        for level, a in enumerate(LEVELS[::2] if context.quick else LEVELS):
            matrix = utility(kind, a)
            machine = RobustSVC(0.1, utility=matrix, tol=1e-5).fit(sample.data, sample.target)
            draw_boundaries(ax, machine.predict, f"C{level}", f"a = {a:g}")
            bayes = lambda X, matrix=matrix: (sample.class_probabilities(X) @ matrix).argmax(axis=1)  # noqa: E731
            draw_boundaries(ax, bayes, f"C{level}", None)
        ax.set(title=f"$U_{{{kind},a}}$", xlim=(-3, 3), ylim=(-3, 3))
    axes[0].legend(fontsize=7)
    return figure


REPRODUCTION = Reproduction(
    title="Figure 1: linear boundaries that move with the utilities",
    parts=("utility", "a", "region"),
    repetition=repetition,
    repetitions=10,
    claims=moving_regions(ENDS),
    digits=3,
    draw=draw,
    protocol="1600 rows as in the paper, C = .1 (the paper gives none), two starts. Shares are those of the "
    "square [-3, 3]^2; two percent of it count as a change.",
    notes="Dashed: the Bayes rules, which the paper does not draw.",
)
