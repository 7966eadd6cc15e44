"""Figure 1 of Vural et al.: five classes in the plane, the regions, and the relations M between them."""

import warnings
from collections.abc import Mapping
from typing import Any

import numpy as np
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import Bunch

from polymargin import SharedStructureSVC
from polymargin.datasets import make_related_classes
from reproductions.declare import Claim, Comparison, Context, Key, Reproduction
from reproductions.plane import draw_regions

RELATED = ((0, 1), (1, 0), (2, 3), (3, 2))


def _fitted(context: Context) -> tuple[SharedStructureSVC, Bunch]:
    sample = make_related_classes(100 if context.quick else 250, random_state=context.seed % 2**32)
    with warnings.catch_warnings():
        # Five iterations, the paper's setting, are an early stop.
        warnings.simplefilter("ignore", ConvergenceWarning)
        machine = SharedStructureSVC(0.01, relation_penalty=0.1, kernel="rbf", gamma=0.1, max_iter=5)
        return machine.fit(sample.data, sample.target), sample


def repetition(context: Context) -> Mapping[Key, float]:
    """Return sizes and signs of the entries of M of related classes, and of all others off the diagonal."""
    relation = _fitted(context)[0].relation_
    related = np.zeros((5, 5), dtype=bool)
    related[tuple(np.transpose(RELATED))] = True
    others = ~np.eye(5, dtype=bool) & ~related
    return {
        ("related classes", "mean size"): float(np.abs(relation[related]).mean()),
        ("other classes", "mean size"): float(np.abs(relation[others]).mean()),
        ("related classes", "mean entry"): float(relation[related].mean()),
        ("diagonal", "mean entry"): float(np.diag(relation).mean()),
    }


def draw(context: Context) -> Any:
    """Draw the regions of a fit with the rbf kernel, and its M."""
    from matplotlib import pyplot

    machine, sample = _fitted(context)
    figure, (plane, matrix) = pyplot.subplots(1, 2, figsize=(11, 4.5))
    draw_regions(plane, machine, sample, "training correctness")
    # The diagonal is near 1; what matters is beside it.
    image = matrix.imshow(machine.relation_, cmap="RdBu_r", vmin=-0.3, vmax=0.3)
    matrix.set(title="M", xlabel="final classifier", ylabel="base classifier")
    figure.colorbar(image, ax=matrix)
    return figure


CLAIMS = (
    Claim(
        "related classes have the large entries of M",
        [
            Comparison(
                "size of the related entries minus that of the others, in units of the others",
                lambda values: values["related classes", "mean size"] / values["other classes", "mean size"] - 1.0,
                0.5,
            )
        ],
    ),
    Claim(
        "the entries of related classes and of the diagonal have opposite signs",
        [
            Comparison(
                "minus their product",
                lambda values: -values["related classes", "mean entry"] * values["diagonal", "mean entry"],
                0.01,
            )
        ],
    ),
)

REPRODUCTION = Reproduction(
    title="Figure 1: five related classes, regions and relations",
    parts=("classes", "measure"),
    repetition=repetition,
    repetitions=10,
    claims=CLAIMS,
    digits=3,
    draw=draw,
    protocol="C = .01, relation penalty .1, gamma = .1, five rounds: the paper gives none of the first three. "
    "With a large relation penalty related classes have equal signs.",
    notes="The paper shows its data as a picture only; ours are simulated after it: classes 0 and 1 are "
    "neighbours, so are 2 and 3, and 4 lies apart. It reads M[1, 1] = .9 and M[1, 2] = -.1.",
)
