"""Preconditioned interior point for the machine of Lee, Lin & Wahba with a kernel.

    min 1/2 tr(B'KB) - offset sum u,   B = u P,  P = I - 11'/k,   0 <= u <= upper,   1'B = 0 (multipliers b).

With margins m = b - (KB - offset) and multipliers z of the two bounds, a Newton step of the central path solves

    theta d + (K + tau 11') d P = m + sigma mu (1/u - 1/v) - corrections,   v = upper - u,   theta = z_l/u + z_u/v,

by conjugate gradients on the whole matrix, in single precision as long as the gap is large; tau stands for the
constraint, whose multipliers move by ``-tau 1'dP``. The preconditioner takes ``X X' + diag`` for the matrix, X of
few columns: per class ``H_j = I + X' B_j^-1 X``, ``B_j = theta_j + diag``, and ``S = sum_j H_j^-1`` couples the
classes.
It pays where classes are many or C is large, so that working sets have too many free variables to get right.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.linalg
from numpy.typing import NDArray
from scipy.linalg.blas import dsyrk
from scipy.linalg.lapack import dpotrf, dpotri

from polymargin.gram import DenseGram, as_dense, skinny_product
from polymargin.problems.certificate import Certificate
from polymargin.problems.hinge import HingePoint, HingeProblem, boxes
from polymargin.solvers.contract import Accepted, Observer, Progress, Settings, Solution, Status
from polymargin.solvers.effort import Operations
from polymargin.solvers.hinge.acceptance import accepts_single_scores
from polymargin.solvers.hinge.feasibility import balanced
from polymargin.solvers.hinge.intercept import central_intercept

Array = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class KernelInteriorSettings:
    """Tuning of the interior point on a kernel matrix; none of it changes what is certified.

    Attributes
    ----------
    rank, first_rank : columns of the preconditioner at most, and at first.
    many_steps : steps of conjugate gradients in an iteration from which on the preconditioner gets more columns.
    tau : weight of the class sums in the system.
    predictor_error, corrector_error : of the solutions by conjugate gradients, relative to the predictor's size.
    max_cg_steps : of one solution.
    short_step, patience : length of a short step, and how many in a row are taken for the end.
    first_shares : least and largest part of the boxes that the first point fills; from a corner the first steps
        would be short.
    first_spread : of the first multipliers, relative to the mean margin.
    least_rest : of the diagonal that the preconditioner adds, relative to the kernel's.
    least_product : least product of a variable and its multiplier, relative to their mean.
    longest_step : part of the way to the boundary that a step goes at most.
    warm : relative gap of the iterates that the next solution is best begun from: later ones are near to bounds.
    double_precision : relative gap from which on the matrix is used in double precision.
    iterations, cg_steps : what a solution to a gap of 1e-3 takes, about: iterations, and steps of conjugate
        gradients in each.
    inverse_cost : operations of products that one with a vector takes: it waits for memory.
    step_calls, iteration_calls : calls of a step of conjugate gradients, and of an iteration beside its steps.
    """

    rank: int = 300
    first_rank: int = 150
    many_steps: int = 15
    tau: float = 10.0
    predictor_error: float = 0.03
    corrector_error: float = 0.02
    max_cg_steps: int = 80
    short_step: float = 0.1
    patience: int = 4
    first_shares: tuple[float, float] = (0.02, 0.5)
    first_spread: float = 0.3
    least_rest: float = 1e-6
    least_product: float = 0.1
    longest_step: float = 0.995
    warm: float = 0.3
    double_precision: float = 1e-2
    iterations: int = 14
    cg_steps: int = 40
    inverse_cost: float = 12.0
    step_calls: int = 40
    iteration_calls: int = 500


DEFAULTS = KernelInteriorSettings()


def factor_operations(n: int, k: int, rank: int, tuning: KernelInteriorSettings = DEFAULTS) -> Operations:
    """Return the operations of an iteration beside its steps: the preconditioner is prepared."""
    return {"product": float(k) * (n * rank**2 + 2.0 * rank**3), "call": tuning.iteration_calls}


def step_operations(n: int, k: int, rank: int, tuning: KernelInteriorSettings = DEFAULTS) -> Operations:
    """Return the operations of a step of conjugate gradients; the preconditioner has two products per class."""
    products = float(n) * k * (n + 4.0 * rank) + 2.0 * tuning.inverse_cost * k * rank**2
    return {"product": products, "call": tuning.step_calls}


def operations_to_solve(n: int, k: int, tuning: KernelInteriorSettings = DEFAULTS) -> Operations:
    """Return the operations that a solution to a gap of 1e-3 takes, about."""
    rank = min(tuning.rank, n)
    once, step = factor_operations(n, k, rank, tuning), step_operations(n, k, rank, tuning)
    return {kind: tuning.iterations * (once[kind] + tuning.cg_steps * step[kind]) for kind in once}


@dataclass(frozen=True, slots=True)
class _PathIterate:
    """Where a path is: variables, multipliers of their bounds and of the class sums."""

    u: Array
    below: Array
    above: Array
    b: Array

    def is_inside(self, upper: Array) -> bool:
        """Tell whether it is within these bounds, as it is if they are no smaller than its own."""
        return self.u.shape == upper.shape and bool((self.u < upper)[upper > 0].all())


@dataclass(frozen=True, slots=True)
class InsidePoint(HingePoint):
    """A solution that keeps an iterate from which the solution for larger bounds is soon found."""

    central: _PathIterate


class KernelInteriorPoint:
    """Mehrotra's predictor and corrector for box losses that see single scores, on a matrix held in memory."""

    name = "kernel_interior"

    def __init__(self, tuning: KernelInteriorSettings = DEFAULTS):
        self.tuning = tuning

    def accepts(self, problem: Any) -> Accepted:
        """Return True if the solver can take `problem`, else the reason why not."""
        return accepts_single_scores(problem)

    def solve(
        self,
        problem: HingeProblem,
        settings: Settings,
        *,
        start: HingePoint | None = None,
        observer: Observer | None = None,
    ) -> Solution[HingePoint]:
        """Solve `problem`, from the central iterate of `start` where it has one.

        Other points are no start: interior points gain nothing from those on the boundary.
        """
        with Progress(settings, observer, method=self.name) as progress:
            central = start.central if isinstance(start, InsidePoint) else None
            path = _Path(problem, progress, central, self.tuning)
            point, best = path.certified()
            central, idle = path.iterate(), 0
            for _ in progress:
                progress.record(best.primal, best.dual)
                if best.within(settings.tol):
                    break
                if not path.advance():
                    if not progress.out_of_time():
                        progress.status = Status.NUMERICAL_ERROR
                    break
                candidate, certificate = path.certified()
                idle = 0 if path.length > self.tuning.short_step else idle + 1
                if best.gap > self.tuning.warm:
                    central = path.iterate()
                if certificate.gap < best.gap:
                    point, best = candidate, certificate
                if best.gap < self.tuning.double_precision:
                    path.matrix = _dense(problem).matrix
                if idle == self.tuning.patience:
                    progress.status = Status.STALLED
                    break
            return progress.finish(InsidePoint(point.dual, point.intercept, central), best)


class _Path:
    """An iterate: variables u, multipliers of their bounds and of the class sums, and the scores H = K u P."""

    def __init__(
        self,
        problem: HingeProblem,
        progress: Progress,
        start: _PathIterate | None,
        tuning: KernelInteriorSettings,
    ):
        self.losses = boxes(problem.losses, "The interior point on a kernel matrix")
        self.tuning = tuning
        self.problem, self.progress, self.upper = problem, progress, self.losses.upper
        self.open = self.upper > 0
        self.matrix = _dense(problem).matrix.astype(np.float32)
        self.tau = tuning.tau if problem.fit_intercept else 0.0
        self.preconditioner = _Preconditioner(_dense(problem), self.tau, self.open, tuning)
        if start is None or not start.is_inside(self.upper):
            start = self._first()
        self.u, self.below, self.above, self.b = start.u, start.below, start.above, start.b
        self.H = problem.gram.matmul(_centred(self.u))
        self._keep_central()
        self.length = 1.0

    def _first(self) -> _PathIterate:
        """Return the best multiple of the point that fills all boxes alike, its class sums equal."""
        totals = self.upper.sum(axis=0)
        direction = self.upper * (totals.min() / totals) if self.tau else self.upper
        R = _centred(direction)
        H = self.problem.gram.matmul(R)
        curvature, slope = float(np.vdot(R, H)), self.losses.dual_value(direction)
        share = float(np.clip(slope / max(curvature, slope), *self.tuning.first_shares))
        u, H = share * direction, share * H
        b = central_intercept(self.losses, u, -H) if self.tau else np.zeros(self.upper.shape[1])
        margins = b - H + self.losses.offset
        spread = self.tuning.first_spread * float(np.abs(margins[self.open]).mean())
        below = np.where(self.open, np.maximum(-margins, 0.0) + spread, 0.0)
        above = np.where(self.open, np.maximum(margins, 0.0) + spread, 0.0)
        return _PathIterate(u, below, above, b)

    def iterate(self) -> _PathIterate:
        """Return where the path is."""
        return _PathIterate(self.u, self.below, self.above, self.b)

    def margins(self) -> Array:
        """Return the arguments of the hinges."""
        return self.b - self.H + self.losses.offset

    def certified(self) -> tuple[HingePoint, Certificate]:
        """Return the iterate with its own best intercepts, and its certificate."""
        intercept = central_intercept(self.losses, self.u, -self.H) if self.tau else self.b
        point = HingePoint(self.u, intercept)
        return point, self.problem.certify(point, -self.H)

    def advance(self) -> bool:
        """Take a step of predictor and corrector; False if there was no time for it or the algebra broke down."""
        u, v = np.where(self.open, self.u, 1.0), np.where(self.open, self.upper - self.u, 1.0)
        with np.errstate(divide="ignore", over="ignore", invalid="ignore"):
            theta = self.below / u + self.above / v
        if not np.isfinite(theta).all() or not self.preconditioner.factorise(theta, self.progress):
            return False
        margins = np.where(self.open, self.margins(), 0.0)
        system = _ConjugateGradients(self, theta)
        d = system.solve(margins, self.tuning.predictor_error)
        if not np.isfinite(d).all():
            return False
        moves = self._multipliers(d, u, v, 0.0, 0.0, 0.0)
        mu = self._complementarity(0.0, d, *moves)
        if not mu > 0.0:
            return False
        aim = mu * (self._complementarity(self._longest(d, *moves), d, *moves) / mu) ** 3
        second = d * moves[0], -d * moves[1]
        extra = np.where(self.open, (aim - second[0]) / u - (aim - second[1]) / v, 0.0)
        d = system.solve(extra, self.tuning.corrector_error)
        if self.progress.out_of_time() or not np.isfinite(d).all():
            return False
        moves = self._multipliers(d, u, v, aim, *second)
        self.length = min(1.0, self.tuning.longest_step * self._longest(d, *moves))
        self._move(d, *moves)
        return True

    def _multipliers(
        self, d: Array, u: Array, v: Array, aim: float, second_below: Array | float, second_above: Array | float
    ) -> tuple[Array, Array]:
        """Return how the multipliers of the bounds move with the step `d` for products that reach `aim`."""
        below = (aim - second_below) / u - self.below * (1.0 + d / u)
        above = (aim - second_above) / v - self.above * (1.0 - d / v)
        return np.where(self.open, below, 0.0), np.where(self.open, above, 0.0)

    def _complementarity(self, length: float, d: Array, below: Array, above: Array) -> float:
        """Return the mean product of variable and multiplier after a step."""
        u = self.u + length * d
        total = np.vdot(u, self.below + length * below) + np.vdot(self.upper - u, self.above + length * above)
        return float(total) / (2 * int(self.open.sum()))

    def _longest(self, d: Array, below: Array, above: Array) -> float:
        """Return the longest step, at most one, that keeps all that must be positive so."""
        rate = 1.0
        for value, change in ((self.u, d), (self.upper - self.u, -d), (self.below, below), (self.above, above)):
            rate = max(rate, float((-change[self.open] / value[self.open]).max()))
        return 1.0 / rate

    def _move(self, d: Array, below: Array, above: Array) -> None:
        length = self.length
        if self.tau:
            self.b = self.b - length * self.tau * _centred(d).sum(axis=0)
        self.u = self.u + length * d
        self.below, self.above = self.below + length * below, self.above + length * above
        repaired = balanced(self.problem, self.u) if self.tau else None
        self.u = self.u if repaired is None else repaired
        self.H = self.problem.gram.matmul(_centred(self.u))
        if self.tau:
            self._settle_intercept()
        self._keep_central()

    def _settle_intercept(self) -> None:
        """Take the intercepts that leave least of the conditions undone: inexact class sums have moved them."""
        undone = np.where(self.open, self.margins() + self.below - self.above, 0.0)
        weights = self.preconditioner.weights
        shift = np.einsum("ij,ij->j", weights, undone) / np.maximum(weights.sum(axis=0), np.finfo(np.float64).tiny)
        self.b = self.b - (shift - shift.mean())

    def _keep_central(self) -> None:
        """Raise the multipliers whose products with their variables are far below the mean: they block steps."""
        total = np.vdot(self.u, self.below) + np.vdot(self.upper - self.u, self.above)
        least = self.tuning.least_product * float(total) / (2 * int(self.open.sum()))
        with np.errstate(divide="ignore", invalid="ignore"):  # on a bound, or closed: nothing to keep
            self.below = np.where(self.u > 0, np.maximum(self.below, least / self.u), self.below)
            room = self.upper - self.u
            self.above = np.where(room > 0, np.maximum(self.above, least / room), self.above)


class _ConjugateGradients:
    """The Newton system of an iterate; right-hand sides are added one after the other to one solution."""

    def __init__(self, path: _Path, theta: Array):
        self.path, self.theta = path, theta
        self.solution = np.zeros_like(theta)
        self.residual = np.zeros_like(theta)
        self.size = 0.0

    def apply(self, d: Array) -> Array:
        """Return ``theta d + (K + tau 11') d P`` on the open variables."""
        centred = _centred(d)
        self.path.preconditioner.steps += 1
        n, rank = self.path.preconditioner.X.shape
        self.path.progress.count_all(step_operations(n, d.shape[1], rank, self.path.tuning))
        product = skinny_product(self.path.matrix, centred) + self.path.tau * centred.sum(axis=0)
        return np.where(self.path.open, self.theta * d + product, 0.0)

    def solve(self, right: Array, error: float) -> Array:
        """Add `right` to the right-hand side; return the solution, its error relative to the first side's size."""
        self.residual = self.residual + right
        z = self.path.preconditioner(self.residual)
        p, rz = z, float(np.vdot(self.residual, z))
        self.size = self.size or rz
        for _ in range(self.path.tuning.max_cg_steps):
            if not rz > error**2 * self.size or self.path.progress.out_of_time():
                break
            product = self.apply(p)
            curvature = float(np.vdot(p, product))
            if not curvature > 0.0:  # lost in single precision
                break
            length = rz / curvature
            self.solution = self.solution + length * p
            self.residual = self.residual - length * product
            z = self.path.preconditioner(self.residual)
            previous, rz = rz, float(np.vdot(self.residual, z))
            p = z + (rz / previous) * p
        return self.solution


class _Preconditioner:
    """The Newton system with ``X X' + diag`` in place of the matrix, solved exactly."""

    def __init__(
        self, gram: DenseGram, tau: float, open_entries: NDArray[np.bool_], tuning: KernelInteriorSettings
    ):
        n = gram.n
        drawn = np.random.default_rng(0).permutation(n)[: min(tuning.rank, n)]
        K = gram.block(drawn)
        diagonal = gram.diagonal()
        corner = K[:, drawn] + 1e-10 * float(diagonal.max()) * len(drawn) * np.eye(len(drawn))
        factor = scipy.linalg.solve_triangular(scipy.linalg.cholesky(corner, lower=True), K, lower=True).T
        self.factor, self.diagonal, self.tau = factor, diagonal, tau
        self.open = open_entries
        self.tuning, self.rank, self.steps = tuning, tuning.first_rank, 0

    def _columns(self) -> tuple[Array, Array]:
        """Return X and the diagonal that goes with it, of more columns than before if many steps were needed."""
        if self.steps > self.tuning.many_steps:
            self.rank = min(3 * self.rank // 2, self.factor.shape[1])
        self.steps = 0
        factor = self.factor[:, : self.rank]
        rest = self.diagonal - np.einsum("ir,ir->i", factor, factor)
        X = np.hstack([factor, np.full((len(factor), 1), np.sqrt(self.tau))]) if self.tau else factor
        return np.ascontiguousarray(X), np.maximum(rest, self.tuning.least_rest * float(self.diagonal.max()))

    def factorise(self, theta: Array, progress: Progress) -> bool:
        """Prepare for `theta`; False if there was no time for it or the algebra broke down."""
        self.X, rest = self._columns()
        self.transposed = np.ascontiguousarray(self.X.T)
        k, (n, rank) = theta.shape[1], self.X.shape
        progress.count_all(factor_operations(n, k, rank, self.tuning))
        self.weights = np.where(self.open, 1.0 / (theta + rest[:, None]), 0.0)
        self.inverses = np.empty((k, rank, rank))
        for c, weights in enumerate(self.weights.T):
            system = dsyrk(1.0, (self.X * np.sqrt(weights)[:, None]).T, lower=1)
            system[np.diag_indices(rank)] += 1.0
            factor, failed = dpotrf(system, lower=1, overwrite_a=1)
            if failed or progress.out_of_time():
                return False
            inverse = np.tril(dpotri(factor, lower=1)[0])
            self.inverses[c] = inverse + np.tril(inverse, -1).T
        coupling, failed = dpotrf(self.inverses.sum(axis=0), lower=1)
        self.coupling = coupling, True
        return not failed

    def __call__(self, right: Array) -> Array:
        """Return the solution for the right-hand side `right` (n, k)."""
        seen = skinny_product(self.transposed, self.weights * right).T[:, :, None]
        common = scipy.linalg.cho_solve(self.coupling, (self.inverses @ seen).sum(axis=0), check_finite=False)
        answer = (self.inverses @ (seen - common))[:, :, 0].T
        return self.weights * (right - skinny_product(self.X, answer))


def _dense(problem: HingeProblem) -> DenseGram:
    return as_dense(problem.gram, "The interior point on a kernel matrix")


def _centred(u: Array) -> Array:
    return u - u.mean(axis=1, keepdims=True)
