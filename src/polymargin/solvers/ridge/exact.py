"""Ridge regression of all classes at once: Cholesky of the smaller of the two systems, corrected by the rows.

Squaring the rows costs half of the digits. Where the condition number says that this matters, the solution is
corrected by residuals that are computed from the rows themselves (corrected seminormal equations, Björck 1987),
which restores the accuracy of an orthogonal factorisation; where Cholesky breaks down, one is made.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np
import scipy.linalg
from numpy.typing import NDArray
from scipy import sparse
from scipy.linalg import lapack

from polymargin.moments import ClassMoments
from polymargin.problems.certificate import Certificate
from polymargin.problems.proximal import NormalEquations, ProximalRows, RowProblem, WeightedSystem
from polymargin.solvers.contract import Accepted, Observer, Progress, Settings, Solution, Status, accepts_kinds
from polymargin.solvers.linear_algebra import dense
from polymargin.solvers.ridge.class_qr import ClassQR, qr_per_class, weighted_systems
from polymargin.solvers.ridge.settings import DEFAULTS, RidgeSettings
from polymargin.threads import large_products

Solve = Callable[[NDArray[np.float64]], NDArray[np.float64]]

Certified = tuple[NDArray[np.float64], Certificate]
"""A solution (q, k) and what proves it."""


@dataclass(frozen=True, slots=True)
class NormalEquationsSolver:
    """Cholesky of ``E'NE + I/C`` (q, q): once for all classes without balancing, else once for each.

    Attributes
    ----------
    rows : the same problem by rows, for corrections; None where the rows are gone (streams).
    class_qr : of the rows, if that has been computed already.
    tuning : see `RidgeSettings`.
    """

    name: ClassVar[str] = "normal_equations"

    rows: RowProblem | None = None
    class_qr: ClassQR | None = None
    tuning: RidgeSettings = DEFAULTS

    def accepts(self, problem: Any) -> Accepted:
        """Return True if the solver can take `problem`, else the reason why not."""
        return accepts_kinds(problem, NormalEquations)

    def solve(
        self,
        problem: NormalEquations,
        settings: Settings,
        *,
        start: None = None,
        observer: Observer | None = None,
    ) -> Solution[NDArray[np.float64]]:
        """Solve for the coefficients (q, k)."""
        progress = Progress(settings, observer, method=self.name)
        progress.status = Status.STALLED  # a direct solution is as good as rounding lets it be
        known = self.class_qr
        found = (
            self._by_normal_equations(problem, settings.tol)
            if known is None
            else self._by_class_qr(known, problem)
        )
        return progress.finish(*found)

    def _by_normal_equations(self, problem: NormalEquations, tol: float) -> Certified:
        systems = _factorised(problem)
        worst = _worst_condition(systems)
        if worst < self.tuning.broken_down and self.rows is not None:
            return self._by_class_qr(qr_per_class(self.rows), problem)
        Z = _apply(systems, problem.targets())
        if worst < self.tuning.ill_conditioned and self.rows is not None:
            Z = _corrected(Z, self._residual, systems, self.tuning)
        certificate = problem.certify(Z)
        if not certificate.within(tol) and self.rows is not None:
            return self._by_class_qr(qr_per_class(self.rows), problem)  # squares of a large offset hide the rest
        return Z, certificate

    def _by_class_qr(self, class_qr: ClassQR, problem: NormalEquations) -> Certified:
        """Solve and certify by the factors of the rows: the normal equations are too ill-conditioned for both.

        Of as many rows as a triangular factor stands for, rounding no longer averages out: the rows correct it.
        """
        systems = list(weighted_systems(class_qr, problem.sides))
        spectra = [SpectralSystem.of(system, problem.C) for system in systems]
        parts = [spectrum.solution(system.right) for spectrum, system in zip(spectra, systems, strict=True)]
        factorised = [one.factorised() for one in spectra]
        Z = _corrected(np.hstack([Z for Z, _ in parts]), self._residual, factorised, self.tuning)
        groups = [Z] if len(systems) == 1 else np.hsplit(Z, len(systems))
        return Z, Certificate.sum(
            system.certify(group, multipliers, problem.C)
            for system, group, (_, multipliers) in zip(systems, groups, parts, strict=True)
        )

    def _residual(self, Z: NDArray[np.float64]) -> NDArray[np.float64]:
        if self.rows is None:
            raise ValueError("the rows must be given to correct a solution by them.")
        return self.rows.slopes(Z) - Z / self.rows.C


@dataclass(frozen=True, slots=True)
class DualRidgeSolver:
    """Cholesky of ``N^(1/2) E E' N^(1/2) + I/C`` (n, n): for fewer rows than unknowns.

    Attributes
    ----------
    tuning : see `RidgeSettings`.
    """

    name: ClassVar[str] = "dual_ridge"
    tuning: RidgeSettings = DEFAULTS

    def accepts(self, problem: Any) -> Accepted:
        """Return True if the solver can take `problem`, else the reason why not."""
        return accepts_kinds(problem, ProximalRows)

    def solve(
        self,
        problem: ProximalRows,
        settings: Settings,
        *,
        start: None = None,
        observer: Observer | None = None,
    ) -> Solution[NDArray[np.float64]]:
        """Solve for the coefficients (q, k)."""
        progress = Progress(settings, observer, method=self.name)
        progress.status = Status.STALLED
        return progress.finish(*self._solve(problem, settings.tol))

    def _solve(self, problem: ProximalRows, tol: float) -> Certified:
        """Return coefficients (q, k) and their certificate."""
        rows = _DualRows.of(problem)
        systems = rows.factorised()
        worst = _worst_condition(systems)
        if worst >= self.tuning.broken_down:
            multipliers = _corrected(_apply(systems, rows.right), rows.residual, systems, self.tuning)
            Z = rows.coefficients(multipliers)
            certificate = problem.certify(Z, multipliers)
            if certificate.within(tol) or worst >= self.tuning.ill_conditioned:
                return Z, certificate
        return self._by_spectra(rows)

    def _by_spectra(self, rows: "_DualRows") -> Certified:
        """Solve by the rows themselves, whose squares have lost the digits beside a large offset or a large C.

        Coefficients are not those of the multipliers, which as numbers of finite length could not tell the offset.
        """
        systems = list(rows.systems())
        spectra = [SpectralSystem.of(system, rows.problem.C) for system in systems]
        parts = [spectrum.solution(system.right) for spectrum, system in zip(spectra, systems, strict=True)]
        Z, multipliers = map(np.hstack, zip(*parts, strict=True))

        def step(Z: NDArray[np.float64]) -> NDArray[np.float64]:
            groups = (np.array_split(part, len(spectra), axis=1) for part in (rows.errors(Z), Z))
            return np.hstack([one.step(*group) for one, *group in zip(spectra, *groups, strict=True)])

        Z = _improved(Z, step, self.tuning)
        return Z, rows.problem.certify(Z, multipliers)


@dataclass(frozen=True, slots=True)
class _DualRows:
    """Few rows with their signs, by the multipliers of which the coefficients are found.

    Attributes
    ----------
    B : features of the rows less `centre`, which costs no digits; sparse ones are not centred.
    centre : (p,) their mean.
    signs, roots : (n, k) signs, and roots of the weights.
    problem : what is solved.
    """

    B: Any
    centre: NDArray[np.float64]
    signs: NDArray[np.float64]
    roots: NDArray[np.float64]
    problem: ProximalRows

    @classmethod
    def of(cls, problem: ProximalRows) -> "_DualRows":
        """Centre the features."""
        ((B, signs, N),) = replace(problem, chunk_rows=len(problem.labels)).chunks()
        centre = np.zeros(B.shape[1]) if sparse.issparse(B) else B.mean(axis=0)
        return cls(B if sparse.issparse(B) else B - centre, centre, signs, np.sqrt(N), problem)

    @property
    def right(self) -> NDArray[np.float64]:
        """Right-hand sides (n, k)."""
        return self.roots * self.signs

    @property
    def _different(self) -> NDArray[np.float64]:
        """Roots of the weights (n, m) of the m different systems."""
        return self.roots[:, :1] if self.problem.sides.shared else self.roots

    def factorised(self) -> "list[Factorised]":
        """Return ``N^(1/2) E E' N^(1/2) + I/C`` by Cholesky."""
        along = self.B @ self.centre
        inner = dense(self.B @ self.B.T) + along[:, None] + along + (1.0 + float(self.centre @ self.centre))
        ridge = np.eye(len(inner)) / self.problem.C
        return [factorise(root[:, None] * inner * root + ridge) for root in self._different.T]

    def systems(self) -> Iterator[WeightedSystem]:
        """Yield the weighted rows of every problem; of all together where they share the weights."""
        E = np.column_stack([dense(self.B) + self.centre, -np.ones(len(self.signs))])
        for at, root in enumerate(self._different.T):
            right = self.right if self.problem.sides.shared else self.right[:, [at]]
            yield WeightedSystem(E * root[:, None], right)

    def coefficients(self, multipliers: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return the coefficients ``E' N^(1/2) alpha`` (q, k) of multipliers (n, k)."""
        weighted = self.roots * multipliers
        sums = weighted.sum(axis=0)
        return np.vstack([self.B.T @ weighted + np.outer(self.centre, sums), -sums])

    def errors(self, Z: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return what coefficients (q, k) leave of the right-hand sides."""
        scores = self.B @ Z[:-1] + (self.centre @ Z[:-1] - Z[-1])
        return self.roots * (self.signs - scores)

    def residual(self, multipliers: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return what multipliers (n, k) leave of the right-hand sides."""
        return self.errors(self.coefficients(multipliers)) - multipliers / self.problem.C


def cholesky_would_fail(rows: ProximalRows, tuning: RidgeSettings = DEFAULTS) -> bool:
    """Tell by a sample of the rows whether Cholesky would break down, so that no Gram matrices need be summed."""
    n_unknowns = rows.n_features + 1
    stride = len(rows.labels) // (tuning.sampled_rows * n_unknowns)
    if stride < tuning.worth_sampling:
        return False
    few, n_classes = rows.thinned(stride), len(rows.sides.signs)
    moments = ClassMoments.of(few.X, few.labels, few.weights, n_classes=n_classes, transform=few.transform)
    return _worst_condition(_factorised(NormalEquations(moments, rows.sides, rows.C))) < tuning.broken_down


@dataclass(frozen=True, slots=True)
class Factorised:
    """A positive definite system, ready to be solved."""

    solve: Solve
    reciprocal_condition: float


def factorise(matrix: NDArray[np.float64]) -> Factorised:
    """Factorise by Cholesky; where rounding has left no positive definite matrix, by its clipped eigenvalues."""
    with large_products(matrix.size):
        factor, failed = lapack.dpotrf(matrix, lower=1)
        spectrum = scipy.linalg.eigh(matrix) if failed else None
    if spectrum is not None:
        values, vectors = spectrum
        least = values[-1] * len(values) * np.finfo(np.float64).eps
        values = np.maximum(values, least)
        return Factorised(lambda b: vectors @ ((vectors.T @ b) / values[:, None]), 0.0)
    rcond, _ = lapack.dpocon(factor, np.abs(matrix).sum(axis=0).max(), uplo="L")
    return Factorised(lambda b: lapack.dpotrs(factor, b, lower=1)[0], float(rcond))


def _factorised(problem: NormalEquations) -> list[Factorised]:
    """Factorise the system of every problem, or the one that serves them all."""
    ridge = np.eye(problem.moments.n_features + 1) / problem.C
    return [factorise(hessian + ridge) for hessian in problem.hessians()]


def _worst_condition(systems: list[Factorised]) -> float:
    return min(system.reciprocal_condition for system in systems)


def _apply(systems: list[Factorised], right: NDArray[np.float64]) -> NDArray[np.float64]:
    """Solve for all columns: by the one system, or each column by its own."""
    if len(systems) == 1:
        return systems[0].solve(right)
    return np.column_stack([system.solve(right[:, [r]]) for r, system in enumerate(systems)])


def _corrected(
    point: NDArray[np.float64], residual: Solve, systems: list[Factorised], tuning: RidgeSettings
) -> NDArray[np.float64]:
    """Correct `point` by residuals until corrections no longer shrink."""
    return _improved(point, lambda here: _apply(systems, residual(here)), tuning)


def _improved(point: NDArray[np.float64], step: Solve, tuning: RidgeSettings) -> NDArray[np.float64]:
    """Take steps from `point` until they no longer shrink."""
    size = np.inf
    for _ in range(tuning.max_corrections):
        correction = step(point)
        previous, size = size, float(np.linalg.norm(correction))
        if not size < 0.5 * previous:
            return point
        point = point + correction
        if size <= tuning.negligible_next * np.linalg.norm(point):
            return point
    return point


@dataclass(frozen=True, slots=True)
class SpectralSystem:
    """Weighted rows ``A = U s V'``, of which nothing is squared but the numbers s.

    Attributes
    ----------
    U, s, V : the decomposition.
    C : the paper's nu.
    """

    U: NDArray[np.float64]
    s: NDArray[np.float64]
    V: NDArray[np.float64]
    C: float

    @classmethod
    def of(cls, system: WeightedSystem, C: float) -> "SpectralSystem":
        """Decompose the rows."""
        with large_products(system.A.size):
            U, s, Vt = scipy.linalg.svd(system.A, full_matrices=False)
        return cls(U, s, Vt.T, C)

    def solution(self, right: NDArray[np.float64]) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Return the coefficients ``V s / (s^2 + 1/C) U'd`` and the multipliers ``U / (s^2 + 1/C) U'd``.

        The multipliers are complete where A has no more rows than columns.
        """
        inner = self._divided(self.U.T @ right)
        return self.V @ (self.s[:, None] * inner), self.U @ inner

    def step(self, errors: NDArray[np.float64], Z: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return the step to the solution from coefficients Z that leave `errors` of the right-hand sides."""
        inside = self.V.T @ Z
        along = self._divided(self.s[:, None] * (self.U.T @ errors) - inside / self.C)
        return self.V @ (along + inside) - Z  # what is outside of the span of the rows goes

    def factorised(self) -> Factorised:
        """Return ``A'A + I/C``, for rows as many as columns."""
        return Factorised(lambda b: self.V @ self._divided(self.V.T @ b), 0.0)

    def _divided(self, b: NDArray[np.float64]) -> NDArray[np.float64]:
        return b / (self.s**2 + 1.0 / self.C)[:, None]
