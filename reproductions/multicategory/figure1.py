"""Figure 1 of Lee, Lin & Wahba: the target functions of the MSVM on the three-class example."""

from typing import Any

import numpy as np

from polymargin.datasets import make_competing_interval
from reproductions.declare import Context, Figure


def draw(context: Context) -> Any:
    """Draw p_j (dotted) and the target, 1 where class j is the likeliest and -1/2 elsewhere."""
    from matplotlib import pyplot

    x = np.linspace(0.0, 1.0, 1001)
    probabilities = make_competing_interval(1).class_probabilities(x[:, None])
    winners = probabilities.argmax(axis=1)
    figure, axes = pyplot.subplots(1, 3, figsize=(10, 3), sharey=True)
    for j, ax in enumerate(axes):
        ax.plot(x, np.where(winners == j, 1.0, -0.5), color="black")
        ax.plot(x, probabilities[:, j], ":", color="black")
        ax.set(title=f"$f_{j + 1}(x)$", xlabel="x")
    return figure


REPRODUCTION = Figure(
    title="Figure 1: target functions of the three-class example",
    draw=draw,
    verdict="reproduced, exactly",
    notes="Exact: there is nothing to estimate.",
)
