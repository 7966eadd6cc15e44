"""Figure 2 of Lee, Lin & Wahba: what MSVM and one-versus-rest estimate on the three-class example."""

from collections.abc import Mapping
from typing import Any

import numpy as np

from polymargin.datasets import make_competing_interval
from reproductions.declare import Claim, Comparison, Context, Key, Reproduction
from reproductions.multicategory._interval import (
    OneVersusRest,
    fine_grid,
    grid,
    tuned_by_gckl,
)
from reproductions.rules import HALF


def _machines(context: Context) -> dict[str, Any]:
    sample = make_competing_interval(60 if context.quick else 200, random_state=context.seed % 2**32)
    points = grid(context, range(-12, 1, 3), range(-5, 1))
    return {"MSVM": tuned_by_gckl(sample, points, "lee"), "one-versus-rest": OneVersusRest(sample, points)}


def repetition(context: Context) -> Mapping[Key, float]:
    """Return how high f_2 reaches, and on how much of the interval class 2 is predicted."""
    x = fine_grid(0.0, 1.0)
    values: dict[Key, float] = {}
    for method, machine in _machines(context).items():
        scores = machine.decision_function(x)
        values[method, "largest f_2"] = float(scores[:, 1].max())
        values[method, "share predicted as class 2"] = float(np.mean(scores.argmax(axis=1) == 1))
    best = make_competing_interval(1).class_probabilities(x).argmax(axis=1)
    values["Bayes rule", "share predicted as class 2"] = float(np.mean(best == 1))
    return values


def draw(context: Context) -> Any:
    """Draw the three scores of both methods, tuned by GCKL on one sample of 200."""
    from matplotlib import pyplot

    x = fine_grid(0.0, 1.0)
    figure, axes = pyplot.subplots(1, 2, figsize=(9, 3.5), sharey=True)
    for ax, (name, machine) in zip(axes, _machines(context).items(), strict=True):
        for j, (scores, style) in enumerate(zip(machine.decision_function(x).T, ("-", "--", ":"), strict=True), 1):
            ax.plot(x, scores, style, color="black", label=f"$f_{j}$")
        ax.set(title=name, xlabel="x", ylim=(-1.6, 1.6))
    axes[0].legend()
    return figure


FOUND = "share predicted as class 2"
CLAIMS = (
    Claim(
        "f_2 of one-versus-rest is almost -1 at any x",
        [
            Comparison(
                "largest f_2 of one-versus-rest plus one",
                lambda values: values["one-versus-rest", "largest f_2"] + 1.0,
                HALF,
            )
        ],
        same=True,
    ),
    Claim(
        "MSVM captures class 2 in the middle, one-versus-rest does not",
        [
            Comparison(
                "share predicted as class 2, MSVM minus one-versus-rest, in units of the Bayes rule's",
                lambda values: (
                    (values["MSVM", FOUND] - values["one-versus-rest", FOUND]) / values["Bayes rule", FOUND]
                ),
                HALF,
            )
        ],
    ),
)

REPRODUCTION = Reproduction(
    title="Figure 2: scores of MSVM and one-versus-rest on the three-class example",
    parts=("method", "measure"),
    repetition=repetition,
    repetitions=10,
    claims=CLAIMS,
    digits=3,
    draw=draw,
    protocol="The paper gives no grid. Ours is log2 lambda = -12, -9, ..., 0 and log2 sigma = -5, ..., 0. The "
    "picture is of the first sample.",
    notes="The paper shows one sample; the numbers are of ten. Almost -1 is read as nearer to -1 than to 0.",
)
