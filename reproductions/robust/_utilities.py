"""The utility matrices (16), and what Tables 1 and 2 of Liu, Wu & He share."""

import warnings
from collections.abc import Iterable
from typing import Any

import numpy as np
from sklearn.utils import Bunch

from polymargin import RobustSVC

# The paper starts the DC algorithm at the untruncated machine alone.
METHODS = {
    "WRSVM": {"truncation": "auto", "starts": ("utility",)},
    "WRSVM, two starts": {"truncation": "auto"},
    "WSVM": {"truncation": -np.inf},
}


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


def tuned(train: Bunch, tuning: Bunch, matrix: np.ndarray, machines: Iterable[Any]) -> Any:
    """Return the machine of the highest utility on the tuning sample, the first of equals."""
    best, highest = None, -np.inf
    for machine in machines:
        with warnings.catch_warnings():
            # Collapsed fits, which warn, are part of what the table compares.
            warnings.simplefilter("ignore")
            machine.fit(train.data, train.target)
        reached = mean_utility(tuning.target, machine.predict(tuning.data), matrix)
        if reached > highest:
            best, highest = machine, reached
    return best


def bayes_utility(test: Bunch, matrix: np.ndarray) -> float:
    """Return the utility of the best rule on the rows of a sample, times 100."""
    return 100.0 * float((test.probabilities @ matrix).max(axis=1).mean())


def linear_machines(matrix: np.ndarray, Cs: Iterable[float], **options: Any) -> list[RobustSVC]:
    """Return linear machines over a grid of C."""
    return [RobustSVC(C, utility=matrix, tol=1e-5, **options) for C in Cs]
