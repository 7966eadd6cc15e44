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

from copy import copy
from functools import cached_property
from typing import Any

import numpy as np
from scipy import sparse

from polymargin._native.dense_system import DenseSystem
from polymargin.problems.certificate import Certificate
from polymargin.problems.hinge import HingePoint, HingeProblem, PartitionedHinge, PartitionedPoint, features_of
from polymargin.solvers._blocks import SimplexBlocks, blocks_of
from polymargin.solvers._newton_system import INTERCEPT_DAMPING, NewtonSystem, Unknowns
from polymargin.solvers._rows import (
    Part,
    PartitionedRows,
    PartSummary,
    Rows,
    feasible_dual,
    first_slots,
    with_ones,
)
from polymargin.solvers._slots import Array, slots_of
from polymargin.solvers.balance import balanced, balanced_blocks
from polymargin.solvers.contract import Observer, Progress, Settings, Solution, Status

PRODUCT_FEATURES, PRODUCT_ENTRIES = 32, 2**22
"""Features up to which, and entries, it pays to keep their products: they make all weighted Grams one product."""

CORRECTIONS = 2
"""Centrality corrections (Gondzio, 1996) tried in an iteration whose step is short."""

FEW_FEATURES = 5
"""Features up to which a matrix is assembled as quickly as a correction is found, so that none are tried."""

STRETCH, NARROWEST, WIDEST = 20.0, 0.03, 1.0
"""A tilt moved by a part t of all weights is answered from the last solution's scores with a relative gap of
`STRETCH` t, at least `NARROWEST`; where that is more than `WIDEST`, a start from afar is nearer."""

CAUTIOUS, BOLD = 0.995, 0.9999
"""Parts of the way to the boundary that a step goes at least, and at most."""

REFINEMENTS = 5
"""Most times that a direction is solved for again to remove rounding."""

PATIENCE = 20
"""Iterations near the solution without progress after which rounding is taken to allow no more."""

MOST_SHORT_STEPS = 30
"""Short steps in a row after which the iterate is taken to be stuck; curved losses take some on their way."""


class InteriorPoint:
    """Predictor-corrector interior point; O(n p^2) an iteration for every atom of the losses.

    `features` stand for the problem's gram where that is no `FeatureGram`: rows whose inner products are the gram
    to rounding (a pivoted Cholesky factor). The certificate is the problem's own all the same.
    """

    def __init__(self, features: Any = None):
        self.features = features
        self._model: _Model | None = None
        self._last: tuple[Any, Any] | None = None

    def solve(
        self,
        problem: HingeProblem | PartitionedHinge,
        settings: Settings,
        *,
        start: Any = None,
        observer: Observer | None = None,
    ) -> Solution:
        """Solve `problem`; of a `start` the dual point is used, drawn into the interior.

        Start and solution are a `HingePoint`, or a `PartitionedPoint` of a problem in partitions. With a start, a
        problem that differs little from the last one by its tilt is solved from that one's solution instead.
        """
        model = self._model_of(problem)
        near = None if start is None else self._going_on(model)
        system = model.first_system(start) if near is None else near
        best: Judged | None = None
        idle = short = 0
        with Progress(settings, observer) as progress:
            for _ in progress:
                record = progress.record(*system.objectives())
                if record.gap <= settings.tolerance(record.primal):
                    previous = np.inf if best is None else best[1].gap
                    best = model.better(best, system)
                    if best[1].within(settings.tolerance(best[1].primal)):
                        break
                    idle = 0 if best[1].gap < 0.9 * previous else idle + 1
                if short == MOST_SHORT_STEPS and near is not None:
                    system, near, short = model.first_system(start), None, 0
                    continue
                if idle == PATIENCE or short == MOST_SHORT_STEPS:
                    progress.status = Status.STALLED
                    break
                try:
                    short = short + 1 if _predictor_corrector(system) < 0.05 else 0
                except np.linalg.LinAlgError:
                    progress.status = Status.NUMERICAL_ERROR
                    break
        if best is None or not best[1].within(settings.tolerance(best[1].primal)):
            best = model.better(best, system)
        solution = progress.finish(*best)
        self._last = (model, system) if solution.status is Status.SOLVED else None
        return solution

    def _going_on(self, model: "_Model | _PartitionedModel") -> "NewtonSystem | DenseSystem | None":
        """Return the last system, or one near it, where the problem is the last one or near it.

        Tilts in partitions are not compared.
        """
        if self._last is None or isinstance(model, _PartitionedModel):
            return None
        last, system = self._last
        moved = model.distance(last)
        if moved == 0.0:
            return system
        width = max(STRETCH * moved, NARROWEST)
        return model.central_system(system, width) if width <= WIDEST else None

    def _model_of(self, problem: HingeProblem | PartitionedHinge) -> "_Model | _PartitionedModel":
        if isinstance(problem, PartitionedHinge):
            return _PartitionedModel(problem)
        # what does not depend on the tilt is kept from one step of the DC algorithm to the next
        if self._model is None or not self._model.fits(problem):
            self._model = _Model(problem, self.features)
        return self._model.tilted(problem)


Judged = tuple[Any, Certificate]
"""A point and its certificate."""


class _Model:
    """Rows in memory: features with a column of ones, slots."""

    def __init__(self, problem: HingeProblem, features: Any):
        features = features_of(problem) if features is None else features
        self.problem = problem
        self.slots = slots_of(problem.losses)
        self.unknowns = Unknowns(problem, problem.losses.n_classes, features.shape[1], self.slots.atoms)
        self.features = with_ones(features, problem.fit_intercept)

    @cached_property
    def products(self) -> Array:
        """The products of the features with each other."""
        return _products(self.features)

    def fits(self, problem: HingeProblem) -> bool:
        """Tell whether a problem differs from the model's by its tilt alone."""
        same = problem.gram is self.problem.gram and problem.losses is self.problem.losses
        return same and problem.fit_intercept == self.problem.fit_intercept

    def tilted(self, problem: HingeProblem) -> "_Model":
        """Return the model of a problem that fits."""
        if problem is self.problem and problem.tilt is None:
            return self
        model = copy(self)
        model.problem = problem
        if problem.tilt is not None:
            model.unknowns = self.unknowns.tilted((self.features.T @ (problem.tilt @ self.unknowns.basis)).T)
        return model

    def first_system(self, start: HingePoint | None) -> "NewtonSystem | DenseSystem":
        """Return the system at the first iterate."""
        slots, unknowns = self.slots, self.unknowns
        alpha, slack, epigraph = first_slots(
            slots, self.problem.losses.offset, None if start is None else start.dual
        )
        blocks = blocks_of(slots, alpha, slack, epigraph)
        Z = np.zeros_like(unknowns.tilt)
        keeps_products = _keeps_products(self.features)
        if isinstance(blocks, SimplexBlocks) and keeps_products:
            return DenseSystem(
                blocks,
                self.features,
                unknowns.basis,
                unknowns.outer,
                unknowns.penalty,
                unknowns.tilt,
                Z,
                INTERCEPT_DAMPING,
            )
        products = self.products if keeps_products else None
        rows = Rows(self.features, blocks, slots.atoms, unknowns.basis, products)
        return NewtonSystem(unknowns, rows, Z)

    def distance(self, other: Any) -> float:
        """Return by what part of all weights the tilts of two models differ, infinity if more does."""
        if not isinstance(other, _Model) or not other.fits(self.problem):
            return np.inf
        if self.problem.tilt is other.problem.tilt:
            return 0.0
        mine, theirs = (0.0 if model.problem.tilt is None else model.problem.tilt for model in (self, other))
        return 0.5 * float(np.abs(mine - theirs).sum()) / float(self.slots.weight.sum())

    def central_system(
        self, near: "NewtonSystem | DenseSystem", gap: float
    ) -> "NewtonSystem | DenseSystem | None":
        """Return a system at the scores of another one, on the central path but for its residual; for maxima."""
        if not isinstance(near.blocks, SimplexBlocks):
            return None
        system, slots = self.first_system(None), self.slots
        system.Z[:] = near.Z
        product = gap * max(1.0, abs(near.objectives()[0])) / (float(slots.weight.sum()) * slots.offsets.shape[1])
        scores = np.ascontiguousarray(self.features @ (self.unknowns.basis @ near.Z).T)
        system.blocks.centre(scores, self.problem.losses.offset, product)
        return system

    def better(self, best: Judged | None, system: "NewtonSystem | DenseSystem") -> Judged:
        """Certify the system's iterate, and return it if its gap is the smaller one."""
        point = self.point(system)
        certificate = self.problem.certify(point)
        return (point, certificate) if best is None or certificate.gap < best[1].gap else best

    def point(self, system: "NewtonSystem | DenseSystem") -> HingePoint:
        """Return the iterate as a dual point that is feasible to rounding, with its intercepts."""
        dual = feasible_dual(self.slots, system.blocks.alpha)
        if not self.problem.fit_intercept:
            return HingePoint(dual, np.zeros(len(self.unknowns.basis)))
        repaired = balanced(self.problem, dual)
        return HingePoint(dual if repaired is None else repaired, self.unknowns.basis @ system.Z[:, -1])


class _PartitionedModel:
    """Rows in partitions, known by sums over them."""

    def __init__(self, problem: PartitionedHinge):
        self.problem = problem
        self.parts = problem.blocks.map(Part.of, keep=True)
        self.summary = self.parts.reduce(PartSummary.__add__, Part.summary)
        unknowns = Unknowns(problem, problem.n_classes, problem.n_features, self.summary.atoms)
        self.unknowns = unknowns.tilted(self.summary.tilt)

    def first_system(self, start: PartitionedPoint | None) -> "NewtonSystem":
        """Return the system at the first iterate."""
        dual, summary = None if start is None else start.dual, self.summary
        mean_weight = summary.weight / summary.n_losses
        rows = PartitionedRows(
            self.parts.map(Part.first_rows, summary.offset, dual, mean_weight, keep=True), summary.n_smooth > 0
        )
        return NewtonSystem(self.unknowns, rows, np.zeros_like(self.unknowns.tilt))

    def better(self, best: Judged | None, system: Any) -> Judged:
        """Certify the system's iterate, and return it if its gap is the smaller one."""
        dual, intercept = system.rows.dual(), np.zeros(len(self.unknowns.basis))
        if self.problem.fit_intercept:
            repaired = balanced_blocks(self.problem.blocks, dual)
            dual = dual if repaired is None else repaired
            intercept = self.unknowns.basis @ system.Z[:, -1]
        point = PartitionedPoint(dual, intercept)
        certificate = self.problem.certify(point)
        return (point, certificate) if best is None or certificate.gap < best[1].gap else best


def _keeps_products(features: Any) -> bool:
    """Tell whether there are few enough products of the features to keep."""
    n, p = features.shape
    return not sparse.issparse(features) and p <= PRODUCT_FEATURES and n * p * (p + 1) // 2 <= PRODUCT_ENTRIES


def _products(features: Array) -> Array:
    """Return the products (n, p(p+1)/2) of the features with each other."""
    n, p = features.shape
    products, at = np.empty((n, p * (p + 1) // 2)), 0
    for column in range(p):
        following = at + p - column
        np.multiply(features[:, column:], features[:, column : column + 1], out=products[:, at:following])
        at = following
    return products


def _predictor_corrector(system: "NewtonSystem | DenseSystem") -> float:
    """Move the iterate by one step of Mehrotra's method with Gondzio's corrections; return its length."""
    mu = system.linearise()
    length = min(1.0, system.predict())
    # a block's part in the products is that of its weight: so weights are repetition on the central path too
    aim = mu * (system.reached(length) / mu) ** 3
    length = system.correct(aim, REFINEMENTS)
    few_features = isinstance(system.blocks, SimplexBlocks) and system.Z.shape[1] <= FEW_FEATURES
    for _ in range(0 if few_features else CORRECTIONS):
        if length > 0.9:
            break
        corrected = system.recentre(min(1.0, length + 0.1), length + 0.01)
        if corrected is None:
            break
        length = corrected
    # the better the prediction, the nearer to the boundary
    fraction = min(max(CAUTIOUS, 1.0 - aim / mu), BOLD)
    length = system.blocks.trusted(min(1.0, fraction * length))
    system.advance(length)
    return length
