"""Figures 5 and 6 of Fung & Mangasarian: plain and refined machines on three unbalanced classes."""

from collections.abc import Mapping
from typing import Any

from sklearn.utils import Bunch

from polymargin import ProximalSVC
from polymargin.datasets import make_unbalanced_rings
from reproductions.declare import Claim, Context, Key, Reproduction, Theirs, difference
from reproductions.plane import draw_regions
from reproductions.rules import HALF

ALL = "training correctness"
PAPER = {("MPSVM", ALL): Theirs(91.8, judged=False), ("BR-MPSVM", ALL): Theirs(98.8, judged=False)}


def _sample(context: Context) -> Bunch:
    sizes = (80, 20, 20) if context.quick else (400, 50, 50)
    return make_unbalanced_rings(sizes, random_state=context.seed % 2**32)


def _machines(sample: Bunch) -> dict[str, ProximalSVC]:
    return {
        name: ProximalSVC(1.0, kernel="rbf", gamma=0.0625, balance=modified, refine=modified).fit(
            sample.data, sample.target
        )
        for name, modified in (("MPSVM", False), ("BR-MPSVM", True))
    }


def repetition(context: Context) -> Mapping[Key, float]:
    """Return the training correctness of both machines."""
    sample = _sample(context)
    return {
        (name, ALL): 100.0 * machine.score(sample.data, sample.target)
        for name, machine in _machines(sample).items()
    }


def draw(context: Context) -> Any:
    """Draw the regions of both, with their training correctness."""
    from matplotlib import pyplot

    sample = _sample(context)
    figure, axes = pyplot.subplots(1, 2, figsize=(10, 5), sharey=True)
    for ax, (name, machine) in zip(axes, _machines(sample).items(), strict=True):
        draw_regions(ax, machine, sample, name)
    return figure


REPRODUCTION = Reproduction(
    title="Figures 5 and 6: three unbalanced classes with the Gaussian kernel: MPSVM and BR-MPSVM",
    parts=("machine", "measure"),
    repetition=repetition,
    repetitions=20,
    paper=PAPER,
    claims=(
        Claim(
            "balancing and refinement gain in training correctness",
            [difference("BR-MPSVM minus MPSVM", ("BR-MPSVM", ALL), ("MPSVM", ALL), HALF * 7.0)],
        ),
    ),
    digits=1,
    draw=draw,
    protocol="nu = 1, gamma = 1/16. The paper does not give the distribution of its data: ours are simulated "
    "with the same class sizes, so that no level is judged.",
)
