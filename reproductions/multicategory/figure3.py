"""Figure 3 of Lee, Lin & Wahba: the class probabilities of the three scenarios."""

from collections.abc import Mapping
from typing import Any

import numpy as np

from polymargin.datasets import make_interval_scenario
from reproductions.declare import Claim, Comparison, Context, Key, Reproduction

GRID = np.linspace(-1.0, 1.0, 10_001)
SCENARIOS = ("1", "2", "3")


def probabilities(scenario: str) -> np.ndarray:
    """Return the three probabilities along the interval."""
    return make_interval_scenario(int(scenario), 1).class_probabilities(GRID[:, None])


def repetition(context: Context) -> Mapping[Key, float]:
    """Return how much of the interval has a dominant class, and how far the classes are apart in its middle."""
    values: dict[Key, float] = {}
    for scenario in SCENARIOS:
        p = probabilities(scenario)
        middle = np.sort(p[len(GRID) // 2])
        values[scenario, "share with a dominant class"] = float(np.mean(p.max(axis=1) > 0.5))
        values[scenario, "highest minus second at x = 0"] = float(middle[2] - middle[1])
        values[scenario, "second minus lowest at x = 0"] = float(middle[1] - middle[0])
    return values


def draw(context: Context) -> Any:
    """Draw the three probabilities, a panel for each scenario, in the paper's line styles."""
    from matplotlib import pyplot

    figure, axes = pyplot.subplots(1, 3, figsize=(10, 3), sharey=True)
    for scenario, ax in zip(SCENARIOS, axes, strict=True):
        for j, style in enumerate(("-", ":", "--")):
            ax.plot(GRID, probabilities(scenario)[:, j], style, color="black", label=f"class {j + 1}")
        ax.set(title=f"scenario {scenario}", xlabel="x", ylim=(0, 1))
    axes[0].legend(fontsize=7)
    return figure


SHARE, TOP, BOTTOM = (
    "share with a dominant class",
    "highest minus second at x = 0",
    "second minus lowest at x = 0",
)
CLAIMS = (
    Claim(
        "in scenario 1 a class dominates over most of the interval, in 2 and 3 none does over a large part",
        [
            Comparison("scenario 1: share above one half", lambda values: values["1", SHARE] - 0.5, 0.1),
            Comparison("scenario 2: share below one half", lambda values: 0.5 - values["2", SHARE], 0.1),
            Comparison("scenario 3: share below one half", lambda values: 0.5 - values["3", SHARE], 0.1),
        ],
    ),
    Claim(
        "in scenario 2 the lowest two classes compete, in scenario 3 the highest two",
        [
            Comparison("scenario 2", lambda values: values["2", TOP] - values["2", BOTTOM], 0.01),
            Comparison("scenario 3", lambda values: values["3", BOTTOM] - values["3", TOP], 0.01),
        ],
    ),
)

REPRODUCTION = Reproduction(
    title="Figure 3: class probabilities of the three scenarios",
    parts=("scenario", "measure"),
    repetition=repetition,
    repetitions=1,
    claims=CLAIMS,
    exact=True,
    digits=4,
    draw=draw,
    notes="Exact: there is nothing to estimate.",
)
