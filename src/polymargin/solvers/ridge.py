"""Ridge regression of all classes at once: Cholesky of the smaller of the two systems, corrected by the rows.

Squaring the rows costs half of the digits. Where the condition number says that this matters, the solution is
corrected by residuals that are computed from the rows themselves (corrected seminormal equations, Björck 1987),
which restores the accuracy of an orthogonal factorisation; where Cholesky breaks down, one is made.
"""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import scipy.linalg
from numpy.typing import NDArray
from scipy import sparse
from scipy.linalg import lapack

from polymargin.problems.proximal import NormalEquations, ProximalRows, RowProblem
from polymargin.solvers.contract import Observer, Progress, Settings, Solution, Status

ILL_CONDITIONED = 1e-7
"""Reciprocal condition number below which rows correct the solution."""

BROKEN_DOWN = 1e-14
"""Reciprocal condition number below which Cholesky is not trusted at all."""

MAX_CORRECTIONS = 6

PANEL = 32
"""Columns that an orthogonal factorisation takes at a time."""

NEGLIGIBLE_NEXT = 1e-6
"""Relative size of a correction after which the next, about its square, would be one of rounding."""

Solve = Callable[[NDArray[np.float64]], NDArray[np.float64]]


@dataclass(frozen=True, slots=True)
class NormalEquationsSolver:
    """Cholesky of ``E'NE + I/C`` (q, q): once for all classes without balancing, else once for each.

    Attributes
    ----------
    rows : the same problem by rows, for corrections; None where the rows are gone (streams).
    """

    rows: RowProblem | None = None

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
            progress.status = Status.STALLED  # a direct solution is as good as rounding lets it be
            ridge = np.eye(problem.moments.n_features + 1) / problem.C
            systems = [factorise(hessian + ridge) for hessian in problem.hessians()]
            worst = min(system.reciprocal_condition for system in systems)
            if self.rows is None or worst >= ILL_CONDITIONED:
                Z = _apply(systems, problem.targets())
            elif worst >= BROKEN_DOWN:
                Z = _corrected(_apply(systems, problem.targets()), self._residual, systems)
            else:
                Z, _ = _by_svd(triangles(self.rows), problem.C)
            return progress.finish(Z, problem.certify(Z))

    def _residual(self, Z: NDArray[np.float64]) -> NDArray[np.float64]:
        assert self.rows is not None
        return self.rows.slopes(Z) - Z / self.rows.C


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
            progress.status = Status.STALLED
            Z, multipliers = self._solve(problem)
            return progress.finish(Z, problem.certify(Z, multipliers))

    def _solve(self, problem: ProximalRows) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Return coefficients (q, k) and multipliers (n, k)."""
        ((B, signs, N),) = replace(problem, chunk_rows=len(problem.labels)).chunks()
        roots = np.sqrt(N)
        inner = _dense(B @ B.T) + 1.0
        ridge = np.eye(len(roots)) / problem.C
        different = roots[:, :1] if problem.sides.shared else roots
        systems = [factorise(root[:, None] * inner * root + ridge) for root in different.T]
        if min(system.reciprocal_condition for system in systems) < BROKEN_DOWN:
            return _by_svd(_systems(B, signs, roots, problem.sides.shared), problem.C)

        def primal(A: NDArray[np.float64]) -> NDArray[np.float64]:
            weighted = roots * A
            return np.vstack([B.T @ weighted, -weighted.sum(axis=0)])

        def residual(A: NDArray[np.float64]) -> NDArray[np.float64]:
            Z = primal(A)
            return roots * (signs - (B @ Z[:-1] - Z[-1])) - A / problem.C

        multipliers = _corrected(_apply(systems, roots * signs), residual, systems)
        return primal(multipliers), multipliers


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
        if size <= NEGLIGIBLE_NEXT * np.linalg.norm(point):
            return point
    return point


System = tuple[NDArray[np.float64], NDArray[np.float64]]
"""Weighted rows A and the columns of right-hand sides that belong to them."""


def _by_svd(systems: Iterable[System], C: float) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Solve without squaring: with ``A = U s V'`` the solution is ``V s / (s^2 + 1/C) U'd``.

    The multipliers ``U / (s^2 + 1/C) U'd`` are complete where A has no more rows than columns.
    """
    coefficients, multipliers = [], []
    for A, right in systems:
        U, s, Vt = scipy.linalg.svd(A, full_matrices=False)
        inner = (U.T @ right) / (s**2 + 1.0 / C)[:, None]
        coefficients.append(Vt.T @ (s[:, None] * inner))
        multipliers.append(U @ inner)
    return np.hstack(coefficients), np.hstack(multipliers)


def triangles(problem: RowProblem) -> Iterator[System]:
    """Yield the systems ``N_r^(1/2) [E, d]`` of every problem, of all together if they share the weights, reduced.

    The rows of a class are reduced to a triangle once. A problem gives them one weight and one sign s, so that
    their signs are ``-s`` times the last column of E: what is left to do for it is to stack the triangles.
    """
    of_classes = problem.reduce(_merged, _class_triangles)
    sides = problem.sides
    if sides.shared:
        yield _weighted(of_classes, np.sqrt(sides.factors[:, 0]), sides.signs)
    else:
        for factors, signs in zip(sides.factors.T, sides.signs.T, strict=True):
            yield _weighted(of_classes, np.sqrt(factors), signs[:, None])


Triangles = dict[int, NDArray[np.float64]]
"""The weighted augmented rows (m, q) of every class that has any: as they are if m < q, else a triangle, m = q."""


def _class_triangles(rows: ProximalRows) -> Triangles:
    triangles: Triangles = {}
    for c, B, weights in rows.chunks_of_classes():
        roots = np.sqrt(weights)[:, None]
        augmented = np.hstack([roots * _dense(B), -roots])
        triangles[c] = _stacked(triangles.get(c, augmented[:0]), augmented)
    return triangles


def _merged(first: Triangles, second: Triangles) -> Triangles:
    both = first.keys() & second.keys()
    return first | second | {c: _stacked(first[c], second[c], slanted=_is_triangle(second[c])) for c in both}


def _is_triangle(rows: NDArray[np.float64]) -> bool:
    return rows.shape[0] == rows.shape[1]


def _weighted(triangles: Triangles, roots: NDArray[np.float64], signs: NDArray[np.float64]) -> System:
    """Stack the triangles, each weighed by one of `roots` (k,), and their signs (k, m) to the right of them."""
    q = next(iter(triangles.values())).shape[1]
    stack = np.empty((0, q + signs.shape[1]))
    for c, rows in triangles.items():
        system = roots[c] * np.hstack([rows, -signs[c] * rows[:, -1:]])
        stack = _stacked(stack, system, slanted=_is_triangle(rows))
    return stack[:, :q], stack[:, q:]


def _stacked(
    triangle: NDArray[np.float64], rows: NDArray[np.float64], *, slanted: bool = False
) -> NDArray[np.float64]:
    """Add `rows` to those that stand for others: as they are while fewer than columns, else in a triangle.

    Rows are `slanted` if there is nothing below their diagonal, which saves two thirds of the work.
    """
    width = rows.shape[1]
    if len(triangle) + len(rows) < width:
        return np.vstack([triangle, rows])
    if len(triangle) < width:
        rows, triangle, slanted = np.vstack([triangle, rows]), np.zeros((width, width)), False
    return lapack.dtpqrt(len(rows) if slanted else 0, min(PANEL, width), triangle, rows)[0]


def _systems(B: Any, signs: NDArray[np.float64], roots: NDArray[np.float64], shared: bool) -> list[System]:
    """Return the weighted rows and signs of every problem; of all together where they share the weights."""
    E = np.column_stack([_dense(B), -np.ones(len(signs))])
    if shared:
        return [(E * roots[:, :1], signs * roots)]
    return [(E * root[:, None], (d * root)[:, None]) for d, root in zip(signs.T, roots.T, strict=True)]


def _dense(matrix: Any) -> NDArray[np.float64]:
    return matrix.toarray() if sparse.issparse(matrix) else matrix
