"""M-steps: ``min_M tr(M'QM) - 2 <R, M> + kappa ||M||^2`` over a set of relation matrices, exactly."""

import numpy as np
import scipy.linalg
from numpy.typing import NDArray

from polymargin.relations import RelationSet
from polymargin.solvers.shared.bounded import bounded_quadratic
from polymargin.solvers.shared.settings import DEFAULTS, SharedSettings


def relation_step(
    Q: NDArray[np.float64],
    R: NDArray[np.float64],
    kappa: float,
    relations: RelationSet,
    tuning: SharedSettings = DEFAULTS,
) -> tuple[NDArray[np.float64], NDArray[np.float64] | None]:
    """Return the optimal M (b, p), and the multiplier of ``M psd`` where that is asked.

    Parameters
    ----------
    Q : (b, b) ``W'A'AW``, or (p, b, b) where the tasks see different rows.
    R : (b, p) ``W'A'Y``.
    """
    if (relations.lower == relations.upper).all():
        return relations.lower, None
    if relations.psd:
        return semidefinite_step(Q, R, kappa, relations, tuning)
    if relations.symmetric:
        return symmetric_step(Q, R, kappa, relations, tuning), None
    ridge = kappa * np.eye(len(R))
    return bounded_quadratic(Q + ridge, R, relations.lower, relations.upper, tuning=tuning), None


def symmetric_step(
    Q: NDArray[np.float64],
    R: NDArray[np.float64],
    kappa: float,
    relations: RelationSet,
    tuning: SharedSettings = DEFAULTS,
) -> NDArray[np.float64]:
    """Return the optimal symmetric M: ``QM + MQ + 2 kappa M = R + R'``, or a program in its triangle."""
    values, vectors = scipy.linalg.eigh(Q)
    M = _sylvester(values, vectors, R + R.T, 2.0 * kappa)
    if relations.violation(M) <= 0:
        return M
    rows, columns = np.triu_indices(len(Q))
    lower, upper = relations.lower[rows, columns, None], relations.upper[rows, columns, None]
    off_diagonal = rows != columns
    # quadratic in the entries of M, column after column, then in those of its triangle
    entries = np.kron(np.eye(len(Q)), Q + kappa * np.eye(len(Q)))
    here, there = columns * len(Q) + rows, rows * len(Q) + columns
    half = entries[:, here] + entries[:, there] * off_diagonal
    triangle = half[here] + half[there] * off_diagonal[:, None]
    linear = (R[rows, columns] + R[columns, rows] * off_diagonal)[:, None]
    solution = bounded_quadratic(triangle, linear, lower, upper, tuning=tuning)[:, 0]
    M[rows, columns] = M[columns, rows] = solution
    return M


def semidefinite_step(
    Q: NDArray[np.float64],
    R: NDArray[np.float64],
    kappa: float,
    relations: RelationSet,
    tuning: SharedSettings = DEFAULTS,
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return the optimal positive semi-definite M within the bounds, and its multiplier.

    Often the optimal symmetric M is semi-definite already. Otherwise by ADMM: one copy of M is kept
    semi-definite, where there are bounds another within them, and the quadratic is minimised exactly in the
    eigenbasis of Q, so that its condition matters little.
    """
    free = symmetric_step(Q, R, kappa, relations, tuning)
    if np.linalg.eigvalsh(free)[0] >= 0:
        return free, np.zeros_like(free)
    values, vectors = scipy.linalg.eigh(Q)
    right = R + R.T
    projections = [_nearest_semidefinite] + ([relations.clip] if relations.is_bounded else [])
    copies = [project(free) for project in projections]
    prices = [np.zeros_like(free) for _ in projections]  # scaled multipliers
    rho = 2.0 * np.sqrt((values[0].clip(0.0) + kappa) * (values[-1] + kappa))
    scale = max(1.0, float(np.abs(free).max()))
    nearest, found_at = np.inf, 0
    for iteration in range(tuning.admm_iterations):
        targets = sum((copy - price for copy, price in zip(copies, prices, strict=True)), np.zeros_like(free))
        M = _sylvester(values, vectors, right + rho * targets, 2.0 * kappa + len(copies) * rho)
        previous = copies
        copies = [project(M + price) for project, price in zip(projections, prices, strict=True)]
        prices = [price + M - copy for price, copy in zip(prices, copies, strict=True)]
        apart = max(float(np.abs(M - copy).max()) for copy in copies)
        moved = max(float(np.abs(new - old).max()) for new, old in zip(copies, previous, strict=True))
        if max(apart, moved) < 0.5 * nearest:
            nearest, found_at = max(apart, moved), iteration
        if nearest <= tuning.admm_tolerance * scale or iteration - found_at > tuning.admm_patience:
            break
        if (iteration + 1) % tuning.admm_adapted == 0 and iteration < tuning.admm_iterations // 2:
            factor = float(np.clip(np.sqrt(apart / max(moved, 1e-300)), *tuning.admm_factors))
            rho, prices = rho * factor, [price / factor for price in prices]
    return copies[0], -rho * prices[0]


def _nearest_semidefinite(M: NDArray[np.float64]) -> NDArray[np.float64]:
    values, vectors = scipy.linalg.eigh(M)
    nearest = (vectors * np.maximum(values, 0.0)) @ vectors.T
    return (nearest + nearest.T) / 2


def _sylvester(
    values: NDArray[np.float64], vectors: NDArray[np.float64], right: NDArray[np.float64], shift: float
) -> NDArray[np.float64]:
    """Solve ``QM + MQ + shift M = right`` for symmetric M, Q given by its eigendecomposition."""
    rotated = vectors.T @ right @ vectors / (values[:, None] + values + shift)
    M = vectors @ rotated @ vectors.T
    return (M + M.T) / 2
