"""Proximal point and semismooth Newton for machines over simplices with kernels of full rank.

The dual ``min 1/2 tr(R'KR) - <offsets, alpha>`` over simplices, ``R = -tilt - gather(alpha)``, is solved by
proximal steps ``+ ||alpha - centre||^2 / (2 sigma)``. Such a step is a smooth convex problem in the functions h
and the intercept b,

    min  1/2 ||h||^2 + <tilt, F> + sum_p max_alpha <alpha, offsets_p + F> - ||alpha - centre_p||^2 / (2 sigma),

whose inner maximisers are projections ``alpha(F)`` on simplices. Their derivative lives in the supports of the
projections, so a Newton step is one Cholesky factorisation of the size of the free part of alpha.

Reference: Li, X., Sun, D. & Toh, K.-C. (2018). A highly efficient semismooth Newton augmented Lagrangian method
for solving Lasso problems. SIAM J. Optimization 28, 433-458.
"""

from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np
import scipy.linalg
from numpy.typing import NDArray

from polymargin.coding import zero_sum_basis
from polymargin.gram import FeatureGram, pivoted_cholesky
from polymargin.problems.hinge import HingePoint, HingeProblem, simplices
from polymargin.solvers.contract import Accepted, Observer, Progress, Settings, Solution, Status, accepts_kinds
from polymargin.solvers.hinge._slots import Array, SimplexSlots, row_sums
from polymargin.solvers.hinge.feasibility import balanced
from polymargin.solvers.hinge.interior_point import InteriorPoint
from polymargin.solvers.robust.settings import DEFAULTS, RobustSettings


@dataclass(frozen=True, slots=True)
class ProximalNewton:
    """Proximal semismooth Newton on problems over simplices; any Gram provider, O(n^2 k) a step and O(free^3).

    Attributes
    ----------
    tuning : see `RobustSettings`.
    """

    name: ClassVar[str] = "proximal_newton"
    tuning: RobustSettings = DEFAULTS

    def accepts(self, problem: Any) -> Accepted:
        """Return True if the solver can take `problem`, else the reason why not."""
        accepted = accepts_kinds(problem, HingeProblem)
        if accepted is True and problem.losses.shape != "simplex":
            return "its losses must be maxima."
        return accepted

    def solve(
        self,
        problem: HingeProblem,
        settings: Settings,
        *,
        start: HingePoint | None = None,
        observer: Observer | None = None,
    ) -> Solution[HingePoint]:
        """Solve `problem` from `start`, by default from the solution on a low-rank part of the kernel."""
        model, tuning = _Model(problem, self.tuning), self.tuning
        point = _low_rank_start(model, settings) if start is None else start
        state = model.state(model.slots.from_dual(point.dual), point.intercept)
        certificate = problem.certify(point)
        sigma, refused = float(model.slots.weight.mean()), 0
        with Progress(settings, observer, method=self.name) as progress:
            for _ in progress:
                progress.record(certificate.primal, certificate.dual)
                if certificate.within(settings.tolerance(certificate.primal)):
                    break
                moved, steps = _proximal_step(model, state, sigma, progress)
                if moved is None:
                    sigma, refused = sigma / tuning.growth, refused + 1
                    smallest = tuning.smallest_sigma * float(model.slots.weight.mean())
                    if sigma < smallest or refused > tuning.failed_steps:
                        progress.status = Status.STALLED
                        break
                    continue
                state = moved
                candidate = model.point(state)
                judged = problem.certify(candidate)
                if judged.gap < certificate.gap or not certificate.within(np.inf):
                    point, certificate = candidate, judged
                    refused = 0
                else:
                    refused += 1
                    if refused > tuning.idle_steps:
                        progress.status = Status.STALLED
                        break
                if steps <= tuning.newton_steps // 2:
                    sigma *= tuning.growth
            return progress.finish(point, certificate)


@dataclass(slots=True)
class _State:
    """Dual slots, coefficients, kernel functions at the examples, and intercepts."""

    alpha: Array
    R: Array
    H: Array
    intercept: Array


class _Model:
    """What stays fixed: slots, tilt, the zero-sum basis of the intercept."""

    def __init__(self, problem: HingeProblem, tuning: RobustSettings):
        self.problem = problem
        self.tuning = tuning
        self.gram = problem.gram
        self.slots = SimplexSlots(simplices(problem.losses, "The proximal Newton method"))
        k = problem.losses.n_classes
        self.tilt = np.zeros((problem.gram.n, k)) if problem.tilt is None else problem.tilt
        self.basis = zero_sum_basis(k) if problem.fit_intercept else np.zeros((k, 0))

    def state(self, alpha: Array, intercept: Array) -> _State:
        R = -self.tilt - self.slots.gather(alpha)
        return _State(alpha, R, self.gram.matmul(R), intercept)

    def point(self, state: _State) -> HingePoint:
        """Return a dual point feasible to rounding, with its intercepts."""
        dual = self.slots.to_dual(state.alpha)
        if not self.problem.fit_intercept:
            return HingePoint(dual, np.zeros_like(state.intercept))
        repaired = balanced(self.problem, dual)
        return HingePoint(dual if repaired is None else repaired, state.intercept)


def _proximal_step(model: _Model, state: _State, sigma: float, progress: Progress) -> tuple[_State | None, int]:
    """Solve one proximal step by Newton's method with a line search; None if it fails."""
    centre, R, H, b, tuning = state.alpha, state.R, state.H, state.intercept, model.tuning
    alpha, value = _envelope(model, centre, sigma, R, H, b)
    scale = float(np.abs(model.slots.weight).sum())
    for step in range(1, model.tuning.newton_steps + 1):
        if progress.out_of_time():
            return None, step
        residual = R + model.tilt + model.slots.gather(alpha)
        moved = float(np.abs(alpha - centre).sum())
        error = float(np.abs(residual).sum()) + float(np.abs((residual - R).sum(axis=0)).sum()) * bool(
            model.basis.size
        )
        if error <= max(tuning.inexact * moved, 1e-15 * scale) * (
            tuning.later_inexact if step > 1 else tuning.first_inexact
        ):
            return _State(alpha, R, H, b), step
        direction = _newton_direction(model, alpha, R, H, residual, sigma)
        if direction is None:
            return None, step
        dR, db = direction
        dH = model.gram.matmul(dR)
        # derivative of the objective along the direction: gradients are K residual and the residual's class sums
        slope = float(np.vdot(residual, dH)) + float((residual - R).sum(axis=0) @ db)
        length = 1.0
        while True:
            trial = (R + length * dR, H + length * dH, b + length * db)
            alpha, trial_value = _envelope(model, centre, sigma, *trial)
            if trial_value <= value + tuning.sufficient_decrease * length * slope + 1e-13 * max(1.0, abs(value)):
                break
            length *= 0.5
            if length < tuning.shortest_step:
                return None, step
        (R, H, b), value = trial, trial_value
    return None, model.tuning.newton_steps


def _envelope(model: _Model, centre: Array, sigma: float, R: Array, H: Array, b: Array) -> tuple[Array, float]:
    """Return the inner maximisers and the value of the smooth objective."""
    slots = model.slots
    F = H + b
    margins = slots.offsets + slots.lift(F)
    alpha = project_on_simplices(centre + sigma * margins, slots.weight)
    value = 0.5 * float(np.vdot(R, H)) + float(np.vdot(model.tilt, F))
    value += float(np.vdot(alpha, margins)) - float(np.sum((alpha - centre) ** 2)) / (2.0 * sigma)
    return alpha, value


def _newton_direction(
    model: _Model, alpha: Array, R: Array, H: Array, residual: Array, sigma: float
) -> tuple[Array, Array] | None:
    """Solve ``dR + V V'(K dR + 1 db') = -residual``, class sums of R + dR zero."""
    example, V = _derivative_factor(model.slots, alpha, sigma)
    basis = model.basis
    base = -residual
    if not len(example):
        return base, np.zeros(R.shape[1])
    K_base = model.gram.matmul(base)
    matrix = model.gram.block(example, example) * (V @ V.T)
    matrix[np.diag_indices(len(example))] += 1.0
    right = np.einsum("mk,mk->m", V, K_base[example])
    border = V @ basis
    try:
        factor = scipy.linalg.cho_factor(matrix, lower=True, overwrite_a=True, check_finite=False)
    except scipy.linalg.LinAlgError:
        return None
    solved = scipy.linalg.cho_solve(factor, np.column_stack([right, border]), check_finite=False)
    y = solved[:, 0]
    db = np.zeros(R.shape[1])
    if basis.size:
        # class sums of R + dR vanish: border' y = basis' 1'(R + base), y = y0 + Y1 db
        wanted = basis.T @ (R + base).sum(axis=0) - border.T @ y
        coordinates = np.linalg.lstsq(border.T @ solved[:, 1:], wanted, rcond=1e-14)[0]
        y = y + solved[:, 1:] @ coordinates
        db = basis @ coordinates
    dR = base.copy()
    np.subtract.at(dR, example, V * y[:, None])
    return dR, db


def _derivative_factor(slots: SimplexSlots, alpha: Array, sigma: float) -> tuple[NDArray[np.intp], Array]:
    """Return V by rows (m, k), and the example of every row: S of an example is the sum of its rows' squares.

    The derivative of a projection on a simplex is the centring matrix of its support.
    """
    in_support = alpha > 0.0
    free = np.flatnonzero(np.count_nonzero(in_support, axis=1) > 1)
    in_support = in_support[free]
    owners, position = np.unique(slots.example[free], return_inverse=True)
    if len(owners) == len(free):
        which, rows = _centring_factor(in_support)
        return slots.example[free][which], np.sqrt(sigma) * rows
    support = in_support.astype(np.float64)
    centring = support[:, :, None] * np.eye(alpha.shape[1])
    centring -= support[:, :, None] * (support / row_sums(support)[:, None])[:, None, :]
    curvature = np.zeros((len(owners), *centring.shape[1:]))
    np.add.at(curvature, position, centring)
    values, vectors = np.linalg.eigh(curvature)
    which, column = np.nonzero(values > 1e-10)
    rows = vectors[which, :, column] * np.sqrt(sigma * values[which, column])[:, None]
    return owners[which], rows


def _centring_factor(support: NDArray[np.bool_]) -> tuple[NDArray[np.intp], Array]:
    """Return orthonormal rows that span the differences within every support, and the support of every row.

    Helmert's: a member of the support against the mean of those before it.

    >>> which, rows = _centring_factor(np.array([[True, False, True]]))
    >>> (rows.T @ rows).round(12)
    array([[ 0.5,  0. , -0.5],
           [ 0. ,  0. ,  0. ],
           [-0.5,  0. ,  0.5]])
    """
    before = np.cumsum(support, axis=1) - 1
    which, member = np.nonzero(support & (before > 0))
    count = before[which, member]
    rows = (support[which] & (before[which] < count[:, None])).astype(np.float64)
    rows[np.arange(len(which)), member] = -count
    return which, rows / np.sqrt(count * (count + 1.0))[:, None]


def project_on_simplices(points: Array, sizes: Array) -> Array:
    """Project every row on the simplex of the given size.

    >>> project_on_simplices(np.array([[2.0, 0.5, -1.0]]), np.array([1.0]))
    array([[1., 0., 0.]])
    """
    ordered = -np.sort(-points, axis=1)
    excess = np.cumsum(ordered, axis=1) - sizes[:, None]
    counts = np.arange(1, points.shape[1] + 1)
    n_kept = np.count_nonzero(ordered * counts > excess, axis=1)
    shift = excess[np.arange(len(points)), n_kept - 1] / n_kept
    return np.maximum(points - shift[:, None], 0.0)


def _low_rank_start(model: _Model, settings: Settings) -> HingePoint:
    """Solve the problem roughly on the leading part of the kernel, and move what is nearly zero to zero."""
    problem, slots, tuning = model.problem, model.slots, model.tuning
    rank = max(2, min(problem.gram.n, tuning.start_unknowns // (problem.losses.n_classes - 1)))
    rough = replace(problem, gram=FeatureGram(pivoted_cholesky(problem.gram, rank)))
    tol = max(tuning.start_gap, settings.tol)
    rough_settings = replace(settings, tol=tol, max_iter=tuning.start_iterations)
    solution = InteriorPoint().solve(rough, rough_settings)
    alpha = slots.from_dual(solution.point.dual)
    alpha = np.where(alpha < tuning.start_zero * slots.weight[:, None], 0.0, alpha)
    alpha *= (slots.weight / row_sums(alpha))[:, None]
    return HingePoint(slots.to_dual(alpha), solution.point.intercept)
