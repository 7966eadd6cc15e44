"""What several solvers need of linear algebra and neither NumPy nor SciPy has in this form."""

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

Array = NDArray[np.float64]


def dense(matrix: Any) -> Array:
    """Return a matrix as an array."""
    return matrix.toarray() if sparse.issparse(matrix) else matrix


def conjugate_gradients(
    apply: Callable[[Array], Array],
    precondition: Callable[[Array], Array],
    right: Array,
    *,
    start: Array | None = None,
    tolerance: float,
    max_steps: int,
) -> Array:
    """Solve ``apply(W) = right``, a positive definite operator on arrays, to a residual of norm `tolerance`.

    Starts from `start`, or from the preconditioned right-hand side.
    """
    W = precondition(right) if start is None else start.copy()
    residual = right - apply(W)
    direction = preconditioned = precondition(residual)
    energy = np.vdot(residual, preconditioned)
    for _ in range(max_steps):
        if np.linalg.norm(residual) <= tolerance:
            break
        image = apply(direction)
        step = energy / np.vdot(direction, image)
        W += step * direction
        residual -= step * image
        preconditioned = precondition(residual)
        previous, energy = energy, np.vdot(residual, preconditioned)
        direction = preconditioned + (energy / previous) * direction
    return W
