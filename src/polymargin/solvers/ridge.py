"""Ridge regression of all classes at once: Cholesky of the smaller of the two systems, corrected by the rows.

Squaring the rows costs half of the digits. Where the condition number says that this matters, the solution is
corrected by residuals that are computed from the rows themselves (corrected seminormal equations, Björck 1987),
which restores the accuracy of an orthogonal factorisation; where Cholesky breaks down, one is made.
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import scipy.linalg
from numpy.typing import NDArray
from scipy.linalg import lapack

from polymargin.problems.proximal import NormalEquations, ProximalRows
from polymargin.solvers.contract import Observer, Progress, Settings, Solution

ILL_CONDITIONED = 1e-6
"""Reciprocal condition number below which rows correct the solution."""

BROKEN_DOWN = 1e-14
"""Reciprocal condition number below which Cholesky is not trusted at all."""

MAX_CORRECTIONS = 6

Solve = Callable[[NDArray[np.float64]], NDArray[np.float64]]


@dataclass(frozen=True, slots=True)
class NormalEquationsSolver:
    """Cholesky of ``E'NE + I/C`` (q, q): once for all classes without balancing, else once for each.

    Attributes
    ----------
    rows : the same problem by rows, for corrections; None where the rows are gone (streams).
    """

    rows: ProximalRows | None = None

    def solve(
        self,
        problem: NormalEquations,
        settings: Settings,
        *,
        start: None = None,
        observer: Observer | None = None,
    ) -> Solution[NDArray[np.float64]]:
        """Solve for the coefficients (q, k)."""
        with Progress(settings, observer) as progress:
            ridge = np.eye(problem.n_unknowns) / problem.C
            systems = [factorise(problem.hessian(r) + ridge) for r in range(problem.n_hessians)]
            worst = min(system.reciprocal_condition for system in systems)
            if worst < BROKEN_DOWN and self.rows is not None:
                Z = solve_by_svd(self.rows)
                return progress.finish(Z, self.rows.certify(Z))
            Z = _apply(systems, problem.targets())
            if worst < ILL_CONDITIONED and self.rows is not None:
                rows = self.rows

                def residual(Z: NDArray[np.float64]) -> NDArray[np.float64]:
                    return rows.slopes(Z)[0] - Z / problem.C

                Z = _corrected(Z, residual, systems)
                return progress.finish(Z, self.rows.certify(Z))
            return progress.finish(Z, problem.certify(Z))


class DualRidgeSolver:
    """Cholesky of ``N^(1/2) E E' N^(1/2) + I/C`` (n, n): for fewer rows than unknowns."""

    def solve(
        self,
        problem: ProximalRows,
        settings: Settings,
        *,
        start: None = None,
        observer: Observer | None = None,
    ) -> Solution[NDArray[np.float64]]:
        """Solve for the coefficients (q, k)."""
        with Progress(settings, observer) as progress:
            Z = self._coefficients(problem)
            return progress.finish(Z, problem.certify(Z))

    def _coefficients(self, problem: ProximalRows) -> NDArray[np.float64]:
        (B, signs, N), *others = problem.chunks()
        if others:
            raise ValueError("The dual system needs all rows in one chunk.")
        roots = np.sqrt(N)
        inner = np.asarray((B @ B.T).todense() if hasattr(B, "todense") else B @ B.T) + 1.0
        ridge = np.eye(len(roots)) / problem.C
        columns = range(problem.n_classes if problem.balance else 1)
        systems = [factorise(roots[:, r, None] * inner * roots[:, r] + ridge) for r in columns]
        if min(system.reciprocal_condition for system in systems) < BROKEN_DOWN:
            return solve_by_svd(problem)

        def primal(A: NDArray[np.float64]) -> NDArray[np.float64]:
            weighted = roots * A
            return np.vstack([B.T @ weighted, -weighted.sum(axis=0)])

        def residual(A: NDArray[np.float64]) -> NDArray[np.float64]:
            Z = primal(A)
            return roots * (signs - (B @ Z[:-1] - Z[-1])) - A / problem.C

        return primal(_corrected(_apply(systems, roots * signs), residual, systems))


@dataclass(frozen=True, slots=True)
class Factorised:
    """A positive definite system, ready to be solved."""

    solve: Solve
    reciprocal_condition: float


def factorise(matrix: NDArray[np.float64]) -> Factorised:
    """Factorise by Cholesky; where rounding has left no positive definite matrix, by its clipped eigenvalues."""
    factor, failed = lapack.dpotrf(matrix, lower=1)
    if failed:
        values, vectors = scipy.linalg.eigh(matrix)
        least = values[-1] * len(values) * np.finfo(np.float64).eps
        values = np.maximum(values, least)
        return Factorised(lambda b: vectors @ ((vectors.T @ b) / values[:, None]), 0.0)
    rcond, _ = lapack.dpocon(factor, np.abs(matrix).sum(axis=0).max(), uplo="L")
    return Factorised(lambda b: lapack.dpotrs(factor, b, lower=1)[0], float(rcond))


def _apply(systems: list[Factorised], right: NDArray[np.float64]) -> NDArray[np.float64]:
    """Solve for all columns: by the one system, or each column by its own."""
    if len(systems) == 1:
        return systems[0].solve(right)
    return np.column_stack([system.solve(right[:, [r]]) for r, system in enumerate(systems)])


def _corrected(point: NDArray[np.float64], residual: Solve, systems: list[Factorised]) -> NDArray[np.float64]:
    """Correct `point` by residuals until corrections no longer shrink."""
    size = np.inf
    for _ in range(MAX_CORRECTIONS):
        correction = _apply(systems, residual(point))
        previous, size = size, float(np.linalg.norm(correction))
        if not size < 0.5 * previous:
            return point
        point = point + correction
        if size <= 4 * np.finfo(np.float64).eps * np.linalg.norm(point):
            return point
    return point


def solve_by_svd(problem: ProximalRows) -> NDArray[np.float64]:
    """Solve without squaring the rows: the SVD of ``N_r^(1/2) E`` gives ``V s / (s^2 + 1/C) U'N_r^(1/2) d``."""
    columns = []
    for triangle in triangles(problem):
        U, s, Vt = scipy.linalg.svd(triangle[:, :-1], full_matrices=False)
        columns.append(Vt.T @ (s / (s**2 + 1.0 / problem.C) * (U.T @ triangle[:, -1])))
    return np.column_stack(columns)


def triangles(problem: ProximalRows) -> list[NDArray[np.float64]]:
    """Return the triangular factors of ``N_r^(1/2) [E, d]`` of every class, chunk by chunk."""
    factors: list[NDArray[np.float64] | None] = [None] * problem.n_classes
    for B, signs, N in problem.chunks():
        E = np.column_stack([B.toarray() if hasattr(B, "toarray") else B, -np.ones(len(signs))])
        for r, factor in enumerate(factors):
            rows = np.sqrt(N[:, r, None]) * np.column_stack([E, signs[:, r]])
            stacked = rows if factor is None else np.vstack([factor, rows])
            factors[r] = scipy.linalg.qr(stacked, mode="r")[0][: stacked.shape[1]]
    return [factor for factor in factors if factor is not None]
