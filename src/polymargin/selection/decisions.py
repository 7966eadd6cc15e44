"""Deciding by probabilities: the class of least expected cost, under costs that training need not know."""

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]


def expected_costs(probabilities: Array, costs: Array) -> Array:
    """Return the expected cost (n, k) of predicting every class, ``sum_i p_i cost[i, j]``."""
    return probabilities @ costs


def least_costly(probabilities: Array, costs: Array | None) -> NDArray[np.intp]:
    """Return the position of the class of least expected cost; without costs, of the most probable one."""
    if costs is None:
        return probabilities.argmax(axis=1)
    return expected_costs(probabilities, costs).argmin(axis=1)
