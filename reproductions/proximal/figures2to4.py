"""Figures 2 to 4 of Fung & Mangasarian: plain, balanced and refined machines on an unbalanced pair of classes."""

from collections.abc import Mapping
from typing import Any

from sklearn.utils import Bunch

from polymargin import ProximalSVC
from polymargin.datasets import make_unbalanced_pair
from reproductions.declare import Claim, Context, Key, Reproduction, Theirs, difference
from reproductions.plane import draw_regions
from reproductions.rules import HALF

SETTINGS = {"plain": (False, False), "balanced": (True, False), "balanced and refined": (True, True)}
ALL, SMALL = "training correctness", "correctness of the small class"
PAPER = {
    ("plain", ALL): Theirs(86.0, judged=False),
    ("balanced", ALL): Theirs(84.0, judged=False),
    ("balanced and refined", ALL): Theirs(98.0, judged=False),
    ("plain", SMALL): Theirs(6.6, judged=False),
    ("balanced", SMALL): Theirs(100.0, judged=False),
}


def _machines(sample: Bunch) -> dict[str, ProximalSVC]:
    return {
        name: ProximalSVC(2.0**6, balance=balance, refine=refine).fit(sample.data, sample.target)
        for name, (balance, refine) in SETTINGS.items()
    }


def repetition(context: Context) -> Mapping[Key, float]:
    """Return the training correctness of the three machines, of all rows and of the small class."""
    sample = make_unbalanced_pair(random_state=context.seed % 2**32)
    labels = sample.target.tolist()
    small = sample.target == min(set(labels), key=labels.count)
    values: dict[Key, float] = {}
    for name, machine in _machines(sample).items():
        values[name, ALL] = 100.0 * machine.score(sample.data, sample.target)
        values[name, SMALL] = 100.0 * machine.score(sample.data[small], sample.target[small])
    return values


def draw(context: Context) -> Any:
    """Draw the three separating lines, with their training correctness."""
    from matplotlib import pyplot

    sample = make_unbalanced_pair(random_state=context.seed % 2**32)
    figure, axes = pyplot.subplots(1, 3, figsize=(12, 4), sharey=True)
    for ax, (name, machine) in zip(axes, _machines(sample).items(), strict=True):
        draw_regions(ax, machine, sample, name)
    return figure


CLAIMS = (
    Claim(
        "plain PSVM all but ignores the small class, balancing does not",
        [difference("small class, balanced minus plain", ("balanced", SMALL), ("plain", SMALL), HALF * 93.4)],
    ),
    Claim(
        "balancing and refinement together gain over both others",
        [
            difference(f"refined minus {other}", ("balanced and refined", ALL), (other, ALL), HALF * gap)
            for other, gap in (("plain", 12.0), ("balanced", 14.0))
        ],
    ),
)

REPRODUCTION = Reproduction(
    title="Figures 2 to 4: an unbalanced pair of classes: plain, balanced, refined",
    parts=("machine", "measure"),
    repetition=repetition,
    repetitions=20,
    paper=PAPER,
    claims=CLAIMS,
    digits=1,
    draw=draw,
    protocol="nu = 2^6. The paper does not give the distribution of its data: ours are simulated with the same "
    "class sizes, so that no level is judged.",
)
