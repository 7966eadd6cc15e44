"""Bounded quadratic programs by block principal pivoting (Judice & Pires 1994, Kim & Park 2011).

Exact: the solution solves the linear system of its free variables, and the gradient has the right sign at every
bound. Many small programs are solved at once.
"""

import numpy as np
import scipy.linalg
from numpy.typing import NDArray

PATIENCE = 3
"""Full exchanges allowed without a drop in the number of infeasible variables."""


def bounded_quadratic(
    Q: NDArray[np.float64],
    R: NDArray[np.float64],
    lower: NDArray[np.float64],
    upper: NDArray[np.float64],
) -> NDArray[np.float64]:
    """Return the columns m_l of ``argmin 1/2 m'Q_l m - r_l'm``, ``lower_l <= m <= upper_l``.

    Parameters
    ----------
    Q : (b, b), one positive definite matrix for all programs, or (p, b, b).
    R, lower, upper : (b, p), one column a program.
    """
    if Q.ndim == 2:
        M = scipy.linalg.solve(Q, R, assume_a="pos", check_finite=False)
    else:
        M = np.linalg.solve(Q, R.T[:, :, None])[:, :, 0].T
    outside = np.flatnonzero(((lower > M) | (upper < M)).any(axis=0))
    if len(outside):
        matrices = np.broadcast_to(Q, (len(outside), *Q.shape)) if Q.ndim == 2 else Q[outside]
        M[:, outside] = _pivot(
            matrices, R[:, outside].T, lower[:, outside].T, upper[:, outside].T, M[:, outside].T
        ).T
    return M


def _pivot(
    Q: NDArray[np.float64],
    R: NDArray[np.float64],
    lower: NDArray[np.float64],
    upper: NDArray[np.float64],
    start: NDArray[np.float64],
) -> NDArray[np.float64]:
    """Pivot on the programs (one a row) from the bounds that the unbounded solutions `start` break.

    All infeasible variables change sides at once; where that has not reduced their number `PATIENCE` times in
    a row, only the last of them does, until it has (Murty's rule, which cannot cycle).
    """
    fixed = lower == upper
    at_lower, at_upper = (start <= lower) | fixed, (start >= upper) & ~fixed
    M = np.empty_like(start)
    n_programs, b = start.shape
    fewest, patience = np.full(n_programs, b + 1), np.full(n_programs, PATIENCE)
    active = np.arange(n_programs)
    # rounding alone may make a variable at its bound look infeasible
    noise = 64 * np.finfo(np.float64).eps * (np.abs(R) + np.abs(Q).max(axis=2))
    while len(active):
        M[active], slope = _solve_free(
            Q[active], R[active], lower[active], upper[active], at_lower[active], at_upper[active]
        )
        low, up = at_lower[active], at_upper[active]
        below, above = ~(low | up) & (M[active] < lower[active]), ~(low | up) & (M[active] > upper[active])
        release_low = low & ~fixed[active] & (slope < -noise[active])
        release_up = up & (slope > noise[active])
        wrong = below | above | release_low | release_up
        count = wrong.sum(axis=1)
        fewer = count < fewest[active]
        fewest[active] = np.minimum(count, fewest[active])
        patience[active] = np.where(fewer, PATIENCE, patience[active] - 1)
        single = patience[active] < 0
        if single.any():
            last = b - 1 - wrong[:, ::-1].argmax(axis=1)
            wrong[single] &= np.arange(b) == last[single, None]
        at_lower[active] = (low & ~(wrong & release_low)) | (wrong & below)
        at_upper[active] = (up & ~(wrong & release_up)) | (wrong & above)
        active = active[count > 0]
    return np.clip(M, lower, upper)


def _solve_free(
    Q: NDArray[np.float64],
    R: NDArray[np.float64],
    lower: NDArray[np.float64],
    upper: NDArray[np.float64],
    at_lower: NDArray[np.bool_],
    at_upper: NDArray[np.bool_],
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return the solutions with the variables at their bounds held there, and the slopes of the objectives."""
    free = ~(at_lower | at_upper)
    held = np.where(at_lower, lower, np.where(at_upper, upper, 0.0))
    right = np.where(free, R - np.einsum("lij,lj->li", Q, held), held)
    system = np.where(free[:, :, None] & free[:, None, :], Q, 0.0)
    diagonal = np.einsum("lii->li", system)
    diagonal[~free] = 1.0
    M = np.linalg.solve(system, right[:, :, None])[:, :, 0]
    M = np.where(free, M, held)
    return M, np.einsum("lij,lj->li", Q, M) - R
