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
    stop: Callable[[], bool] | None = None,
) -> tuple[Array, int]:
    """Solve ``apply(W) = right``, a positive definite operator on arrays, to a residual of norm `tolerance`.

    Starts from `start`, or from the preconditioned right-hand side; ends early when `stop` says so after a step.
    Also returned is the number of steps.
    """
    W = precondition(right) if start is None else start.copy()
    residual = right - apply(W) if W.any() else right.copy()
    direction = preconditioned = precondition(residual)
    energy = float(np.vdot(residual, preconditioned))
    for step in range(max_steps):
        if energy <= 0.0 or np.linalg.norm(residual) <= tolerance or (step and stop is not None and stop()):
            return W, step
        image = apply(direction)
        length = energy / float(np.vdot(direction, image))
        W += length * direction
        residual -= length * image
        preconditioned = precondition(residual)
        previous, energy = energy, float(np.vdot(residual, preconditioned))
        direction = preconditioned + (energy / previous) * direction
    return W, max_steps
