"""Bounded quadratic programs by block principal pivoting, many small ones at once.

Exact: the solution solves the linear system of its free variables, and the gradient has the right sign at every
bound.
"""

import numpy as np
import scipy.linalg
from numpy.typing import NDArray

from polymargin._native.pivoting import pivot
from polymargin.solvers.shared.settings import DEFAULTS, SharedSettings


def bounded_quadratic(
    Q: NDArray[np.float64],
    R: NDArray[np.float64],
    lower: NDArray[np.float64],
    upper: NDArray[np.float64],
    start: NDArray[np.float64] | None = None,
    tuning: SharedSettings = DEFAULTS,
) -> NDArray[np.float64]:
    """Return the columns m_l of ``argmin 1/2 m'Q_l m - r_l'm``, ``lower_l <= m <= upper_l``.

    Raises LinAlgError where a matrix is not positive definite in floating-point arithmetic.

    Parameters
    ----------
    Q : (b, b), one positive definite matrix for all programs, or (p, b, b).
    R, lower, upper : (b, p), one column per program.
    start : (b, p) the solution of a similar program, which is at the bounds that are tried first.
    tuning : see `SharedSettings`.
    """
    if Q.ndim == 2:
        M = scipy.linalg.cho_solve(scipy.linalg.cho_factor(Q, check_finite=False), R, check_finite=False)
    else:
        M = np.linalg.solve(Q, R.T[:, :, None])[:, :, 0].T
    outside = np.flatnonzero(((lower > M) | (upper < M)).any(axis=0))
    if len(outside):
        b = len(R)
        matrices = np.ascontiguousarray(Q[None] if Q.ndim == 2 else Q[outside])
        guess = M if start is None else start
        right, low, high, solution = (
            np.ascontiguousarray(part[:, outside].T) for part in (R, lower, upper, guess)
        )
        sides, free = np.empty((2, b), dtype=np.intc), np.empty(b, dtype=np.intp)
        work = np.empty((b, b))
        solved = pivot(
            matrices, right, low, high, solution, sides, work, free, tuning.pivot_patience, tuning.pivot_rounds
        )
        if solved < len(outside):
            raise np.linalg.LinAlgError("a bounded quadratic program is not positive definite")
        M[:, outside] = solution.T
    return M
