"""What several solvers need of linear algebra and neither NumPy nor SciPy has in this form."""

from collections.abc import Callable
from typing import Any

import numpy as np
import scipy.linalg
from numpy.typing import NDArray
from scipy import sparse

Array = NDArray[np.float64]


def dense(matrix: Any) -> Array:
    """Return a matrix as an array."""
    return matrix.toarray() if sparse.issparse(matrix) else matrix


def solve_positive(matrix: Array, right: Array) -> Array:
    """Solve a positive definite system; one that rounding has made indefinite, in the least-squares sense.

    An ill-conditioned system raises no warning: what comes of it is judged by a certificate.
    """
    try:
        return scipy.linalg.cho_solve(scipy.linalg.cho_factor(matrix, lower=True), right)
    except np.linalg.LinAlgError:
        return scipy.linalg.lstsq(matrix, right)[0]


def conjugate_gradients(
    apply: Callable[[Array], Array],
    precondition: Callable[[Array], Array],
    right: Array,
    *,
    start: Array | None = None,
    tolerance: float,
    max_steps: int,
    idle_steps: int | None = None,
    stop: Callable[[], bool] | None = None,
) -> tuple[Array, int]:
    """Solve ``apply(W) = right``, a positive definite operator on arrays, to a residual of norm `tolerance`.

    Starts from `start`, or from the preconditioned right-hand side; ends early when `stop` says so after a step.
    Also returned is the number of steps, `max_steps` where the residual has found no smaller norm in the last
    `idle_steps`.
    """
    W = precondition(right) if start is None else start.copy()
    residual = right - apply(W) if W.any() else right.copy()
    direction = preconditioned = precondition(residual)
    energy = float(np.vdot(residual, preconditioned))
    least, reached = np.inf, 0
    for step in range(max_steps):
        norm = float(np.linalg.norm(residual))
        if energy <= 0.0 or norm <= tolerance or (step and stop is not None and stop()):
            return W, step
        least, reached = (norm, step) if norm < least else (least, reached)
        if idle_steps is not None and step - reached >= idle_steps:
            return W, max_steps
        image = apply(direction)
        curvature = float(np.vdot(direction, image))
        if not curvature > 0.0:
            return W, step  # rounding has the last word
        length = energy / curvature
        W += length * direction
        residual -= length * image
        preconditioned = precondition(residual)
        previous, energy = energy, float(np.vdot(residual, preconditioned))
        direction = preconditioned + (energy / previous) * direction
    return W, max_steps
