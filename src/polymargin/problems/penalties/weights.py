"""Weights of adaptive penalties."""

import numpy as np
from numpy.typing import NDArray

SMALLEST_SIZE = 1e-6
"""Denominators of adaptive weights are at least this fraction of the largest."""
LEAST_SIZE = 1e-60
"""And at least this, whose fifth power, the highest allowed, is still a number."""


def adaptive_weights(
    sizes: NDArray[np.float64], *, power: float = 1.0, per_variable: bool = False
) -> NDArray[np.float64]:
    """Return ``1 / size^power``, sizes floored at 1e-6 of the largest; ones where all are zero.

    `sizes` (m, p) are |w_kj| or |w_kj - w_lj| of an initial fit; with `per_variable` the largest of a variable
    stands for all of them.

    >>> adaptive_weights(np.array([[2.0, 0.5], [1.0, 0.0]])).round(3)
    array([[5.e-01, 2.e+00],
           [1.e+00, 5.e+05]])
    """
    if per_variable:
        sizes = np.broadcast_to(sizes.max(axis=0), sizes.shape)
    largest = float(sizes.max())
    if largest == 0.0:
        return np.ones(sizes.shape)
    return np.maximum(sizes, max(SMALLEST_SIZE * largest, LEAST_SIZE)) ** -power
