"""The utility matrices (16), and what Tables 1 and 2 of Liu, Wu & He share."""

import warnings
from collections.abc import Callable, Iterable, Mapping
from typing import Any

import numpy as np
from sklearn.base import clone
from sklearn.utils import Bunch

from polymargin import RobustSVC
from reproductions.declare import Claim, Comparison

TWO_STARTS = ("utility", "identity")
METHODS = ("WRSVM", "WRSVM, two starts", "WSVM")


def utility(kind: int, a: float) -> np.ndarray:
    """Return U_{kind, a} of (16)."""
    matrix = np.eye(3)
    if kind == 1:
        matrix[0, 1] = a
    elif kind == 2:
        matrix[0, 1:] = a
    else:
        matrix[1:, 0] = a
    return matrix


def mean_utility(y: np.ndarray, predicted: np.ndarray, matrix: np.ndarray) -> float:
    """Return the average utility of predictions, times 100."""
    return 100.0 * float(matrix[y, predicted].mean())


def fitted(
    train: Bunch, matrix: np.ndarray, grid: Iterable[Mapping[str, float]], **options: Any
) -> dict[str, list]:
    """Fit the three methods at every point of a grid; WRSVM is where the paper starts: the untruncated machine."""
    machines: dict[str, list] = {method: [] for method in METHODS}
    with warnings.catch_warnings():
        # Collapsed fits, which warn, are part of what the tables compare.
        warnings.simplefilter("ignore")
        for point in grid:
            robust, plain = (
                RobustSVC(utility=matrix, truncation=truncation, starts=TWO_STARTS, **point, **options).fit(
                    train.data, train.target
                )
                for truncation in ("auto", -np.inf)
            )
            # Of two starts the paper's own may be the better: then one start gives the same fit.
            alone = robust
            if robust.start_ != "utility":
                alone = clone(robust).set_params(starts=("utility",)).fit(train.data, train.target)
            for method, machine in zip(METHODS, (alone, robust, plain), strict=True):
                machines[method].append(machine)
    return machines


def best(machines: Iterable[Any], tuning: Bunch, matrix: np.ndarray) -> Any:
    """Return the machine of the highest utility on the tuning sample, the first of equals."""
    return max(machines, key=lambda machine: mean_utility(tuning.target, machine.predict(tuning.data), matrix))


def bayes_utility(test: Bunch, matrix: np.ndarray) -> float:
    """Return the utility of the best rule on the rows of a sample, times 100."""
    return 100.0 * float((test.probabilities @ matrix).max(axis=1).mean())


def region_shares(predict: Callable[[np.ndarray], np.ndarray]) -> np.ndarray:
    """Return the shares of the square [-3, 3]^2 that are predicted as each of three classes."""
    side = np.linspace(-3.0, 3.0, 150)
    points = np.column_stack([part.ravel() for part in np.meshgrid(side, side)])
    return np.bincount(predict(points), minlength=3) / len(points)


def grows(label: str, kind: int, region: int, low: float, high: float, sign: int = 1) -> Comparison:
    """Compare the share of a class's region at a low and at a high a; with a negative sign it is to shrink."""
    keys = [(f"U{kind}", f"{a:g}", f"class {region}") for a in (high, low)]
    return Comparison(label, lambda values: sign * (values[keys[0]] - values[keys[1]]), 0.02)


def moving_regions(levels: tuple[float, ...]) -> list[Claim]:
    """Return what the paper says of both figures: how the regions move with the utilities."""
    low, high = levels[0], levels[-1]
    return [
        Claim(
            "with U_1 the region of class 1 shrinks and that of class 2 grows",
            [grows("class 1 shrinks", 1, 1, low, high, -1), grows("class 2 grows", 1, 2, low, high)],
        ),
        Claim(
            "with U_2 the region of class 1 shrinks and those of classes 2 and 3 grow",
            [
                grows("class 1 shrinks", 2, 1, low, high, -1),
                grows("class 2 grows", 2, 2, low, high),
                grows("class 3 grows", 2, 3, low, high),
            ],
        ),
        Claim(
            "with U_3 the region of class 1 grows and those of classes 2 and 3 shrink",
            [
                grows("class 1 grows", 3, 1, low, high),
                grows("class 2 shrinks", 3, 2, low, high, -1),
                grows("class 3 shrinks", 3, 3, low, high, -1),
            ],
        ),
    ]


def draw_boundaries(ax: Any, predict: Callable[[np.ndarray], np.ndarray], colour: str, label: str | None) -> None:
    """Draw where predictions of three classes change in [-3, 3]^2: solid lines if labelled, else dashed."""
    side = np.linspace(-3.0, 3.0, 300)
    points = np.column_stack([part.ravel() for part in np.meshgrid(side, side)])
    regions = predict(points).reshape(300, 300)
    style = "dashed" if label is None else "solid"
    for j in range(2):
        ax.contour(side, side, regions > j, levels=[0.5], colors=colour, linewidths=0.8, linestyles=style)
    if label is not None:
        ax.plot([], [], color=colour, label=label)
