"""What the interior point keeps of a problem: rows in memory, those of them near a kink, rows in partitions."""

from copy import copy
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from scipy import sparse

from polymargin._native.dense_system import DenseSystem
from polymargin._native.simplex_blocks import MOST_CLASSES
from polymargin.problems.certificate import Certificate
from polymargin.problems.hinge import (
    HingePoint,
    HingeProblem,
    PartitionedHinge,
    PartitionedPoint,
    SimplexLosses,
    features_of,
    leaders,
    simplices,
)
from polymargin.solvers.hinge._blocks import SimplexBlocks, blocks_of
from polymargin.solvers.hinge._newton_system import INTERCEPT_DAMPING, NewtonSystem, Unknowns
from polymargin.solvers.hinge._rows import (
    Part,
    PartSummary,
    Rows,
    RowsInPartitions,
    feasible_dual,
    first_slots,
    with_ones,
)
from polymargin.solvers.hinge._slots import Array, slots_of
from polymargin.solvers.hinge.feasibility import balanced, balanced_blocks
from polymargin.solvers.hinge.settings import INTERIOR, InteriorSettings

Judged = tuple[Any, Certificate]
"""A point and its certificate."""


class Iterate(NamedTuple):
    """What a point is made from: the dual slots, and Z, whose last column is the intercept's."""

    alpha: Array
    Z: Array


class Model:
    """Rows in memory: features with a column of ones, slots."""

    def __init__(self, problem: HingeProblem, features: Any):
        features = _without_zeros(features_of(problem) if features is None else features)
        self.problem = problem
        self.slots = slots_of(problem.losses)
        self.unknowns = Unknowns(problem, problem.losses.n_classes, features.shape[1], self.slots.atoms)
        self.features = with_ones(features, problem.fit_intercept)

    @cached_property
    def products(self) -> Array:
        """The products of the features with each other."""
        return _products(self.features)

    @property
    def is_plain(self) -> bool:
        """Whether the losses are maxima in compiled blocks."""
        return self.problem.losses.shape == "simplex" and self.problem.losses.n_classes <= MOST_CLASSES

    @property
    def is_curved(self) -> bool:
        """Whether some losses are seen through a smooth one."""
        return len(self.slots.smooth[0]) > 0

    def product_of(self, gap: float, primal: float) -> float:
        """Return the product of dual slot and slack, for a unit of weight, that makes a relative gap."""
        return _product_of(gap, primal, self.problem.losses.total_weight * self.problem.losses.n_classes)

    @property
    def whole(self) -> "Model":
        """The model of all losses."""
        return self

    def objectives(self, system: "NewtonSystem | DenseSystem") -> tuple[float, float]:
        """Return primal and dual objective of a system."""
        return system.objectives()

    def scores(self, system: "NewtonSystem | DenseSystem") -> Array:
        """Return the scores (n, k) of the rows."""
        return np.ascontiguousarray(self.features @ (self.unknowns.basis @ system.Z).T)

    def fits(self, problem: HingeProblem) -> bool:
        """Tell whether a problem differs from the model's by its tilt alone."""
        same = problem.gram is self.problem.gram and problem.losses is self.problem.losses
        return same and problem.fit_intercept == self.problem.fit_intercept

    def tilted(self, problem: HingeProblem) -> "Model":
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
        n, p = self.features.shape
        blocks = blocks_of(slots, alpha, slack, epigraph, passes_matter=n > p)
        Z = np.zeros_like(unknowns.tilt)
        keeps_products = _keeps_products(self.features)
        if isinstance(blocks, SimplexBlocks) and keeps_products and not unknowns.by_class:
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
        rows = Rows(self.features, blocks, slots, unknowns.basis, products)
        return NewtonSystem(unknowns, rows, Z)

    def distance(self, other: Any) -> float:
        """Return by what part of all weights the tilts of two models differ, infinity if more does."""
        if not isinstance(other, Model) or not other.fits(self.problem):
            return np.inf
        if self.problem.tilt is other.problem.tilt:
            return 0.0
        mine, theirs = (0.0 if model.problem.tilt is None else model.problem.tilt for model in (self, other))
        return 0.5 * float(np.abs(mine - theirs).sum()) / float(self.slots.weight.sum())

    def near_kinks(self, scores: Array, tuning: InteriorSettings) -> "Model":
        """Return the model of the share of the losses that is nearest to a kink, or of all if they are few."""
        number = int(tuning.share * len(self.slots.weight))
        return NearKinks(self, scores, number) if len(self.slots.weight) > tuning.few_losses else self

    def central_system(self, Z: Array, product: float) -> "NewtonSystem | DenseSystem":
        """Return a system at Z, on the central path but for its residual; for maxima."""
        system = self.first_system(None)
        system.Z[:] = Z
        system.blocks.centre(self.scores(system), self.problem.losses.offset, product)
        return system

    def better(self, best: Judged | None, system: "NewtonSystem | DenseSystem") -> Judged:
        """Certify the system's iterate, and return it if its gap is the smaller one, below zero or above."""
        return self.better_of(best, self.iterate(system))

    def iterate(self, system: "NewtonSystem | DenseSystem") -> Iterate:
        """Return the system's iterate, which its next step changes."""
        return Iterate(system.blocks.alpha, system.Z)

    def better_of(self, best: Judged | None, iterate: Iterate) -> Judged:
        """Certify an iterate, and return it if its gap is the smaller one, below zero or above."""
        point = self.point(iterate)
        certificate = self.problem.certify(point)
        return (point, certificate) if best is None or abs(certificate.gap) < abs(best[1].gap) else best

    def point(self, iterate: Iterate) -> HingePoint:
        """Return the iterate as a dual point that is feasible to rounding, with its intercepts."""
        dual = self.dual(iterate)
        if not self.problem.fit_intercept:
            return HingePoint(dual, np.zeros(len(self.unknowns.basis)))
        repaired = balanced(self.problem, dual)
        return HingePoint(dual if repaired is None else repaired, self.unknowns.basis @ iterate.Z[:, -1])

    def dual(self, iterate: Iterate) -> Array:
        """Return the dual point of the iterate."""
        return feasible_dual(self.slots, iterate.alpha)


class NearKinks(Model):
    """The losses nearest to a kink at given scores; those of the others are taken to be straight.

    That is, their dual blocks stay at the vertex of the largest margin. Certificates are those of all losses, so
    that they tell how much is lost where a margin overtakes the largest.
    """

    def __init__(self, whole: Model, scores: Array, number: int):
        losses, unknowns = simplices(whole.problem.losses, "Restriction to kinks"), whole.unknowns
        largest, _, top, next_to_top = leaders(losses.margins(scores))
        lead = top - next_to_top
        self.kept = np.sort(np.argpartition(lead, number)[:number])
        straight = np.ones(len(lead), dtype=bool)
        straight[self.kept] = False
        at = np.flatnonzero(straight)
        self.vertices = np.zeros((len(lead), losses.n_classes))
        self.vertices[at, largest[at]] = losses.weight[at]
        self.constant = losses.dual_value(self.vertices)
        tilt = -losses.coefficients(self.vertices)
        if whole.problem.tilt is not None:
            tilt += whole.problem.tilt
        seen = np.zeros(losses.n_examples, dtype=bool)
        seen[losses.example[self.kept]] = True
        place = np.cumsum(seen) - 1
        self.all, self.problem = whole, whole.problem
        self.slots = slots_of(
            SimplexLosses(
                place[losses.example[self.kept]],
                losses.anchor[self.kept],
                losses.weight[self.kept],
                losses.offset,
                int(seen.sum()),
                losses.n_classes,
            )
        )
        self.features = whole.features[seen]
        self.unknowns = unknowns.tilted((whole.features.T @ (tilt @ unknowns.basis)).T)

    @property
    def whole(self) -> Model:
        """The model of all losses."""
        return self.all

    def objectives(self, system: "NewtonSystem | DenseSystem") -> tuple[float, float]:
        """Return primal and dual objective of a system."""
        primal, dual = system.objectives()
        return primal + self.constant, dual + self.constant

    def first_system(self, start: HingePoint | None) -> "NewtonSystem | DenseSystem":
        """Return the system at the first iterate."""
        return super().first_system(None if start is None else HingePoint(start.dual[self.kept], start.intercept))

    def dual(self, iterate: Iterate) -> Array:
        """Return the dual point of the iterate."""
        dual = self.vertices.copy()
        dual[self.kept] = super().dual(iterate)
        return dual


class PartitionedModel:
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
        rows = RowsInPartitions(
            self.parts.map(Part.first_rows, summary.offset, dual, mean_weight, keep=True), summary.n_smooth > 0
        )
        return NewtonSystem(self.unknowns, rows, np.zeros_like(self.unknowns.tilt))

    @property
    def is_curved(self) -> bool:
        """Whether some losses are seen through a smooth one."""
        return self.summary.n_smooth > 0

    def product_of(self, gap: float, primal: float) -> float:
        """Return the product of dual slot and slack, for a unit of weight, that makes a relative gap."""
        return _product_of(gap, primal, self.summary.weight * self.problem.n_classes)

    @property
    def whole(self) -> "PartitionedModel":
        """The model of all losses."""
        return self

    def objectives(self, system: Any) -> tuple[float, float]:
        """Return primal and dual objective of a system."""
        return system.objectives()

    def better(self, best: Judged | None, system: Any) -> Judged:
        """Certify the system's iterate, and return it if its gap is the smaller one, below zero or above."""
        dual, intercept = system.rows.dual(), np.zeros(len(self.unknowns.basis))
        if self.problem.fit_intercept:
            repaired = balanced_blocks(self.problem.blocks, dual)
            dual = dual if repaired is None else repaired
            intercept = self.unknowns.basis @ system.Z[:, -1]
        point = PartitionedPoint(dual, intercept)
        certificate = self.problem.certify(point)
        return (point, certificate) if best is None or abs(certificate.gap) < abs(best[1].gap) else best


def _product_of(gap: float, primal: float, slots: float) -> float:
    return gap * max(1.0, abs(primal)) / slots


def _without_zeros(features: Any) -> Any:
    """Return the features that are not zero in every row, where they are many: their square is what they cost.

    The others have no weight in any solution, and no part in any score.
    """
    p = features.shape[1]
    if p < INTERIOR.many_features:
        return features
    seen = np.diff(features.tocsc().indptr) > 0 if sparse.issparse(features) else features.any(axis=0)
    return features if seen.all() or not seen.any() else features[:, np.flatnonzero(seen)]


def _keeps_products(features: Any) -> bool:
    """Tell whether there are few enough products of the features to keep."""
    n, p = features.shape
    return (
        not sparse.issparse(features)
        and p <= INTERIOR.product_features
        and n * p * (p + 1) // 2 <= INTERIOR.product_entries
    )


def _products(features: Array) -> Array:
    """Return the products (n, p(p+1)/2) of the features with each other."""
    n, p = features.shape
    products, at = np.empty((n, p * (p + 1) // 2)), 0
    for column in range(p):
        following = at + p - column
        np.multiply(features[:, column:], features[:, column : column + 1], out=products[:, at:following])
        at = following
    return products
