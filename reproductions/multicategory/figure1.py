"""Figure 1 of Lee, Lin & Wahba: the target functions of the MSVM on the three-class example."""

from collections.abc import Mapping
from typing import Any

import numpy as np

from polymargin.datasets import make_competing_interval
from reproductions.declare import Claim, Comparison, Context, Key, Reproduction

GRID = np.linspace(0.0, 1.0, 10_001)


def repetition(context: Context) -> Mapping[Key, float]:
    """Return where the likeliest class changes, and the largest probability of class 2; nothing is random."""
    probabilities = make_competing_interval(1).class_probabilities(GRID[:, None])
    winners = probabilities.argmax(axis=1)
    changes = np.flatnonzero(np.diff(winners))
    return {
        ("pieces",): float(len(changes) + 1),
        ("class 2 begins",): float(GRID[changes[0]]),
        ("class 2 ends",): float(GRID[changes[-1]]),
        ("first winner",): float(winners[0] + 1),
        ("last winner",): float(winners[-1] + 1),
        ("largest p_2",): float(probabilities[:, 1].max()),
    }


def draw(context: Context) -> Any:
    """Draw p_j (dotted) and the target, 1 where class j is the likeliest and -1/2 elsewhere."""
    from matplotlib import pyplot

    probabilities = make_competing_interval(1).class_probabilities(GRID[:, None])
    winners = probabilities.argmax(axis=1)
    figure, axes = pyplot.subplots(1, 3, figsize=(10, 3), sharey=True)
    for j, ax in enumerate(axes):
        ax.plot(GRID, np.where(winners == j, 1.0, -0.5), color="black")
        ax.plot(GRID, probabilities[:, j], ":", color="black")
        ax.set(title=f"$f_{j + 1}(x)$", xlabel="x")
    return figure


CLAIMS = (
    Claim(
        "class 1 leads for small x, class 3 for large x, class 2 in between",
        [
            Comparison("three pieces", lambda values: 0.5 - abs(values["pieces",] - 3), 0.5),
            Comparison("class 1 first", lambda values: 0.5 - abs(values["first winner",] - 1), 0.5),
            Comparison("class 3 last", lambda values: 0.5 - abs(values["last winner",] - 3), 0.5),
        ],
    ),
    Claim(
        "the largest probability of class 2 is barely one half",
        [Comparison("largest p_2 minus one half", lambda values: values["largest p_2",] - 0.5, 0.05)],
        same=True,
    ),
)

REPRODUCTION = Reproduction(
    title="Figure 1: target functions of the three-class example",
    parts=("measure",),
    repetition=repetition,
    repetitions=1,
    claims=CLAIMS,
    exact=True,
    digits=4,
    draw=draw,
    notes="Exact: there is nothing to estimate.",
)
