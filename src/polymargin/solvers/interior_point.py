"""Structured primal-dual interior point for the hinge machines on few features.

The losses are blocks of slots (see `_slots`): with margins ``m(F)``, epigraph variables xi and slacks
``s = xi - m(F) >= 0``, the conditions of optimality are

    [W; 0] = X'R(alpha) in the zero-sum basis,   sum of alpha over a block = weight,   alpha s = 0.

Eliminating alpha, s and xi leaves a system in the few unknowns Z of ``F = X Z B'`` (B the zero-sum basis, X with a
column of ones for the intercept), whose matrix ``I + sum_t (B'a_t)(B'a_t)' kron X' diag(w_t) X`` is a sum over the
atoms a_t of the losses, assembled by weighted products of the features with themselves. The blocks' sums and the
definition of s hold from the start; the first condition holds in the limit, and to rounding in the point returned.

Reference: Mehrotra, S. (1992). On the implementation of a primal-dual interior point method. SIAM J. Optimization.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import sparse
from scipy.linalg.lapack import dpotrf, dpotrs

from polymargin.coding import zero_sum_basis
from polymargin.gram import FeatureGram
from polymargin.problems.hinge import HingePoint, HingeProblem
from polymargin.solvers._slots import Array, Slots, row_sums, slots_of
from polymargin.solvers.balance import balanced
from polymargin.solvers.contract import Observer, Progress, Settings, Solution, Status

Solve = Callable[[Array], Array]

CHUNK_ENTRIES = 2**18
"""Entries of the features that are weighted at a time: about the size of a core's cache."""

INTERCEPT_DAMPING = 1e-13
"""Weight of the squared step of the intercept, which else runs away where the optimal ones are unbounded."""

LONGEST_MOVE = 1.0
"""Largest change of a margin within a step where losses are smooth: as far as their curvature can be trusted."""

CORRECTIONS = 3
"""Centrality corrections (Gondzio, 1996) tried in an iteration whose step is short."""

PATIENCE = 5
"""Iterations without progress after which rounding is taken to allow no more."""


class InteriorPoint:
    """Predictor-corrector interior point; O(n p^2) an iteration for every atom of the losses.

    `features` stand for the problem's gram where that is no `FeatureGram`: rows whose inner products are the gram
    to rounding (a pivoted Cholesky factor). The certificate is the problem's own all the same.
    """

    def __init__(self, features: Any = None):
        self.features = features

    def solve(
        self,
        problem: HingeProblem,
        settings: Settings,
        *,
        start: HingePoint | None = None,
        observer: Observer | None = None,
    ) -> Solution[HingePoint]:
        """Solve `problem`; of a `start` the dual point is used, drawn into the interior."""
        model = _Model(problem, self.features)
        iterate = _first_iterate(model, start)
        point = model.point(iterate)
        certificate = problem.certify(point)
        length, idle = 1.0, 0
        with Progress(settings, observer) as progress:
            for _ in progress:
                primal, complementarity = model.objectives(iterate)
                record = progress.record(primal, primal - complementarity)
                if record.gap <= settings.tol:
                    candidate = model.point(iterate)
                    judged = problem.certify(candidate)
                    advanced = judged.gap < 0.9 * certificate.gap
                    if judged.gap < certificate.gap:
                        point, certificate = candidate, judged
                    if certificate.within(settings.tol):
                        break
                else:
                    advanced = length > 0.05
                idle = 0 if advanced else idle + 1
                if idle == PATIENCE:
                    progress.status = Status.STALLED
                    break
                try:
                    length = _predictor_corrector(model, iterate)
                except np.linalg.LinAlgError:
                    progress.status = Status.NUMERICAL_ERROR
                    break
        if not certificate.within(settings.tol):
            candidate = model.point(iterate)
            judged = problem.certify(candidate)
            if judged.gap < certificate.gap:
                point, certificate = candidate, judged
        return progress.finish(point, certificate)


@dataclass(slots=True)
class _Iterate:
    """Unknowns Z (features, k-1), dual slots, slacks and epigraph variables."""

    Z: Array
    alpha: Array
    slack: Array
    epigraph: Array

    def add(self, direction: "_Iterate", length: float) -> None:
        """Move by `length` along a direction."""
        self.Z += length * direction.Z
        self.alpha += length * direction.alpha
        self.slack += length * direction.slack
        self.epigraph += length * direction.epigraph


class _Model:
    """What stays fixed over the iterations: features with a column of ones, slots, basis."""

    def __init__(self, problem: HingeProblem, features: Any):
        if features is None:
            if not isinstance(problem.gram, FeatureGram):
                raise TypeError("The interior point needs features: a FeatureGram, or a factor of the gram.")
            features = problem.gram.features
        self.slots = slots_of(problem.losses)
        self.tilt = np.zeros((problem.gram.n, problem.losses.n_classes)) if problem.tilt is None else problem.tilt
        self.basis = zero_sum_basis(problem.losses.n_classes)
        self.problem = problem
        self.features = _with_ones(features) if problem.fit_intercept else features
        if not sparse.issparse(self.features):
            self.features = np.asarray(self.features, dtype=np.float64)
        self.penalty = np.ones(self.features.shape[1])
        if problem.fit_intercept:
            self.penalty[-1] = 0.0

    def scores(self, Z: Array) -> Array:
        """Return F (n, k)."""
        return (self.features @ Z) @ self.basis.T

    def pull(self, Q: Array) -> Array:
        """Return ``X' Q B``: a sum over rows."""
        return self.features.T @ (Q @ self.basis)

    def penalised(self, Z: Array) -> Array:
        """Return the gradient of the penalty at Z."""
        return self.penalty[:, None] * Z

    def objectives(self, iterate: _Iterate) -> tuple[float, float]:
        """Return the primal objective, and the complementarity, which is the gap once all conditions hold."""
        F = self.scores(iterate.Z)
        primal = float(
            0.5 * np.vdot(iterate.Z, self.penalised(iterate.Z))
            + self.slots.cost(iterate.slack, iterate.epigraph)
            + np.vdot(self.tilt, F)
        )
        return primal, self.slots.complementarity(iterate.alpha, iterate.slack, iterate.epigraph)

    def residual(self, iterate: _Iterate) -> Array:
        """Return ``[W; 0] - X'R B``."""
        R = -self.tilt - self.slots.gather(iterate.alpha)
        return self.penalised(iterate.Z) - self.pull(R)

    def normal_matrix(self, theta: Array) -> Array:
        """Return the matrix of the reduced system; unknowns are ordered by basis vector, then feature."""
        coordinates = self.slots.atoms @ self.basis
        outer = np.einsum("tr,ts->rst", coordinates, coordinates)
        grams = weighted_grams(self.features, self.slots, theta)
        m, p = self.basis.shape[1], self.features.shape[1]
        matrix = (outer.reshape(m * m, -1) @ grams.reshape(-1, p * p)).reshape(m, m, p, p)
        matrix = matrix.transpose(0, 2, 1, 3).reshape(m * p, m * p)
        matrix[np.diag_indices(m * p)] += np.tile(np.maximum(self.penalty, INTERCEPT_DAMPING), m)
        return matrix

    def point(self, iterate: _Iterate) -> HingePoint:
        """Return the iterate as a dual point that is feasible to rounding, with its intercepts."""
        alpha = iterate.alpha * (self.slots.weight / row_sums(iterate.alpha))[:, None]
        dual = self.slots.to_dual(alpha)
        if not self.problem.fit_intercept:
            return HingePoint(dual, np.zeros(len(self.basis)))
        repaired = balanced(self.problem, dual)
        return HingePoint(dual if repaired is None else repaired, self.basis @ iterate.Z[-1])


def weighted_grams(features: Any, slots: Slots, theta: Array) -> Array:
    """Return ``X' diag(w_t) X`` for the weights w_t that `theta` gives every atom t: a sum over rows."""
    n, p = features.shape
    grams = np.zeros((len(slots.atoms), p, p))
    height = max(1, CHUNK_ENTRIES // p)
    for first in range(0, n, height):
        rows = slice(first, min(first + height, n))
        part = features[rows].toarray() if sparse.issparse(features) else features[rows]
        roots = np.sqrt(slots.atom_weights(theta, rows))
        for gram, root in zip(grams, roots.T, strict=True):
            seen = np.flatnonzero(root)
            weighted = part * root[:, None] if len(seen) == len(root) else part[seen] * root[seen, None]
            gram += weighted.T @ weighted
    return grams


def _with_ones(features: Any) -> Any:
    ones = np.ones((features.shape[0], 1))
    if sparse.issparse(features):
        return sparse.csr_array(sparse.hstack([features, ones]))
    return np.hstack([features, ones])


def _first_iterate(model: _Model, start: HingePoint | None) -> _Iterate:
    slots = model.slots
    n_slots = slots.offsets.shape[1]
    alpha = np.repeat(slots.weight[:, None] / n_slots, n_slots, axis=1)
    if start is not None:
        alpha = 0.7 * slots.from_dual(start.dual) + 0.3 * alpha
    Z = np.zeros((model.features.shape[1], model.basis.shape[1]))
    offset = float(slots.offsets.max())
    epigraph = np.full(len(slots.weight), 2.0 * offset if offset > 0.0 else 1.0)
    return _Iterate(Z, alpha, epigraph[:, None] - slots.offsets, epigraph)


def _predictor_corrector(model: _Model, iterate: _Iterate) -> float:
    """Move the iterate by one step of Mehrotra's method with Gondzio's corrections; return its length."""
    system = _NewtonSystem(model, iterate)
    product = iterate.alpha * iterate.slack
    mu = product.mean()

    predictor = system.direction(-product)
    length = min(1.0, _longest_step(iterate, predictor))
    reached = (iterate.alpha + length * predictor.alpha) * (iterate.slack + length * predictor.slack)
    # a block's part in the products is that of its weight: so weights are repetition on the central path too
    aim = mu * (reached.mean() / mu) ** 3 * (model.slots.weight / model.slots.weight.mean())[:, None]

    direction = system.direction(aim - product - predictor.alpha * predictor.slack, refinements=5)
    length = _longest_step(iterate, direction)
    for _ in range(CORRECTIONS):
        if length > 0.9:
            break
        hoped = min(1.0, length + 0.1)
        product = (iterate.alpha + hoped * direction.alpha) * (iterate.slack + hoped * direction.slack)
        # products far above the aim are lowered only so much, lest they take over
        change = np.maximum(np.clip(product, 0.1 * aim, 10.0 * aim) - product, -10.0 * aim)
        corrected = system.correction(change)
        corrected.add(direction, 1.0)
        corrected_length = _longest_step(iterate, corrected)
        if corrected_length < length + 0.01:
            break
        direction, length = corrected, corrected_length
    length = min(1.0, 0.995 * length)
    if len(system.flexibility):
        moves = direction.epigraph - direction.slack[model.slots.smooth]
        length = min(length, LONGEST_MOVE / max(float(np.abs(moves).max()), LONGEST_MOVE))
    iterate.add(direction, length)
    return length


class _NewtonSystem:
    """The conditions of optimality linearised at an iterate, with the reduced matrix factored."""

    def __init__(self, model: _Model, iterate: _Iterate):
        self.model, self.iterate = model, iterate
        slots, alpha, slack = model.slots, iterate.alpha, iterate.slack
        smooth = slots.smooth
        self.flexibility, self.shortfall = slots.smooth_condition(alpha, slack, iterate.epigraph)
        self.theta = alpha / slack
        self.theta[smooth] = alpha[smooth] / (slack[smooth] + alpha[smooth] * self.flexibility)
        self.total = row_sums(self.theta)
        self.solve = _factorise(model.normal_matrix(self.theta))
        self.residual = model.residual(iterate)
        self.missing = slots.weight - row_sums(alpha)

    def direction(self, change: Array, refinements: int = 0) -> _Iterate:
        """Newton direction for the complementarity products to change by `change`.

        Rounding in Z reaches alpha multiplied by the largest theta; what it leaves of the linear conditions is
        therefore measured in alpha itself and solved for again.
        """
        model, slots = self.model, self.model.slots
        direction = self._backsubstitute(change, self.residual, self.missing, self.shortfall)
        error, enough = np.inf, 1e-8 * float(np.abs(self.residual).max())
        for _ in range(refinements):
            left = self.residual + model.penalised(direction.Z) + model.pull(slots.gather(direction.alpha))
            left_missing = self.missing - row_sums(direction.alpha)
            previous, error = error, float(np.abs(left).max())
            if error <= enough or error > 0.5 * previous:
                break
            nothing = np.zeros_like(self.shortfall)
            direction.add(self._backsubstitute(np.zeros_like(change), left, left_missing, nothing), 1.0)
        return direction

    def correction(self, change: Array) -> _Iterate:
        """Return what changes the products by `change` and leaves the other conditions as they are."""
        return self._backsubstitute(
            change, np.zeros_like(self.residual), np.zeros_like(self.missing), np.zeros_like(self.shortfall)
        )

    def _backsubstitute(self, change: Array, residual: Array, missing: Array, shortfall: Array) -> _Iterate:
        """Solve the reduced system for Z and recover the eliminated parts of the direction."""
        model, slots, theta = self.model, self.model.slots, self.theta
        smooth, flexibility = slots.smooth, self.flexibility
        wanted = change / self.iterate.slack
        alpha, slack = self.iterate.alpha[smooth], self.iterate.slack[smooth]
        wanted[smooth] = (change[smooth] + alpha * shortfall * flexibility) / (slack + alpha * flexibility)
        moved = wanted - theta * ((row_sums(wanted) - missing) / self.total)[:, None]
        Z = self.solve(-residual - model.pull(slots.gather(moved)))
        lifted = slots.lift(model.scores(Z))
        epigraph = (row_sums(wanted + theta * lifted) - missing) / self.total
        slack_change = epigraph[:, None] - lifted
        alpha_change = wanted - theta * slack_change
        slack_change[smooth] -= flexibility * (shortfall - alpha_change[smooth])
        return _Iterate(Z, alpha_change, slack_change, epigraph)


def _longest_step(iterate: _Iterate, direction: _Iterate) -> float:
    """Return the longest step, at most 2, that keeps dual slots and slacks non-negative."""
    rate = max(float((-direction.alpha / iterate.alpha).max()), float((-direction.slack / iterate.slack).max()))
    return 1.0 / max(rate, 0.5)


def _factorise(matrix: Array) -> Solve:
    """Return the solution operator of a positive definite matrix, equilibrated, with a ridge if need be."""
    scale = 1.0 / np.sqrt(np.maximum(matrix.diagonal(), np.finfo(np.float64).tiny))
    scaled = matrix * scale[:, None] * scale
    for ridge in (0.0, 1e-15, 1e-13, 1e-11, 1e-9):
        factor, failed = dpotrf(scaled + ridge * np.eye(len(scale)), lower=1)
        if not failed:
            break
    else:
        raise np.linalg.LinAlgError("the reduced matrix is not positive definite")

    def solve(right: Array) -> Array:
        vector = scale * right.T.ravel()
        solution = dpotrs(factor, vector, lower=1)[0]
        solution += dpotrs(factor, vector - scaled @ solution, lower=1)[0]
        return (scale * solution).reshape(right.shape[1], right.shape[0]).T

    return solve
