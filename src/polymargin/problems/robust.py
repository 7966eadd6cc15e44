"""The robust SVM of Liu, Wu & He (2011): utilities, truncated losses, and a difference of convex functions.

With utilities U (true class, predicted class), generalised margins ``g_ij = f_j(x_i) - max_{m != j} f_m(x_i)`` and
a truncated loss ``l_s(u) = min(l(u), l(s))``, the objective (8) is

    Q(f) = 1/2 sum_j ||h_j||^2 + sum_ij weight_ij l_s(g_ij),       weight_ij = C w_i U[y_i, j].

For the hinge ``l_s(u) = [1 - u]_+ - [s - u]_+``: a convex machine over simplices, one for every pair of positive
weight, less a convex function whose slope a DC step freezes. A smooth loss is first continued by its tangent at s,
from which it then differs by a multiple of ``[s - u]_+`` in the same way.
"""

from dataclasses import dataclass, field
from typing import Any, Literal, assert_never, get_args

import numpy as np
from numpy.typing import NDArray

from polymargin.blocks import Blocks, total
from polymargin.gram import Gram
from polymargin.problems.certificate import Certificate
from polymargin.problems.hinge import (
    Curve,
    CurvedLosses,
    HingePoint,
    HingeProblem,
    PairLosses,
    PartitionedHinge,
    PartitionedPoint,
    SimplexLosses,
    features_of,
    leaders,
    two_largest,
)

RobustLoss = Literal["hinge", "exponential", "logistic"]
LOSSES: tuple[RobustLoss, ...] = get_args(RobustLoss)


def consistent_truncation(loss: RobustLoss, n_classes: int) -> float:
    """Return the lowest s for which the truncated loss is weighted Fisher consistent (Theorem 3.1).

    >>> consistent_truncation("hinge", 3)
    -0.5
    """
    k = n_classes
    match loss:
        case "hinge":
            return -1.0 / (k - 1)
        case "exponential":
            return float(np.log(1.0 - 1.0 / k))
        case "logistic":
            return -float(np.log(2.0 ** (k / (k - 1)) - 1.0))
        case unknown:
            assert_never(unknown)


@dataclass(frozen=True, slots=True)
class Linearisation:
    """The concave part replaced by a tangent: ``<tilt, F> + constant``.

    Attributes
    ----------
    truncated : (P,) whether the loss of a pair was truncated where the tangent was taken.
    partner : (P,) the strongest other class there.
    tilt : (n, k) slopes, rows of zero sum.
    constant : value at zero scores.
    """

    truncated: NDArray[np.bool_]
    partner: NDArray[np.intp]
    tilt: NDArray[np.float64]
    constant: float

    def equals(self, other: "Linearisation | None") -> bool:
        """Tell whether the two tangents are one; None is that of no truncation."""
        if other is None:
            return not self.truncated.any()
        same = np.array_equal(self.truncated, other.truncated)
        return same and np.array_equal(self.partner[self.truncated], other.partner[self.truncated])


@dataclass(frozen=True, slots=True)
class RobustPoint:
    """The solution of a convex step, and the tangent that defined the step (None: no truncation).

    They are a `HingePoint` and a `Linearisation`, or a `PartitionedPoint` and blocks of those.
    """

    step: Any
    linearisation: Any


@dataclass(frozen=True, slots=True)
class RobustProblem:
    """One robust machine on given data.

    Attributes
    ----------
    gram : inner products of the training rows.
    weight : (n, k) weights of the losses, ``C w_i U[y_i, j]``; zeros cost nothing.
    truncation : s, at most zero; minus infinity for the plain weighted SVM, which is convex.
    fit_intercept : whether an unpenalised intercept is part of the scores.
    loss : the loss l, one of `LOSSES`.
    losses : the convex part of the losses, one simplex per pair (example, class) of positive weight.
    """

    gram: Gram
    weight: NDArray[np.float64]
    truncation: float
    fit_intercept: bool = True
    loss: RobustLoss = "hinge"
    losses: PairLosses = field(init=False)

    def __post_init__(self) -> None:
        example, anchor = np.nonzero(self.weight)
        n, k = self.weight.shape
        weight = self.weight[example, anchor]
        losses: PairLosses
        if self.loss == "hinge":
            losses = SimplexLosses(example, anchor, weight, 1.0, n, k)
        else:
            curve = Curve(self.loss, self.truncation)
            losses = CurvedLosses(example, anchor, weight * curve.steepest, 0.0, n, k, curve)
        object.__setattr__(self, "losses", losses)

    def convex_step(self, linearisation: Linearisation | None = None) -> HingeProblem:
        """Return the convex problem whose concave part is frozen at a tangent (None: left out)."""
        tilt = None if linearisation is None else linearisation.tilt
        return HingeProblem(self.gram, self.losses, self.fit_intercept, tilt)

    @property
    def n_classes(self) -> int:
        """Number of classes."""
        return self.weight.shape[1]

    @property
    def n_pairs(self) -> int:
        """Number of losses."""
        return int(np.count_nonzero(self.weight))

    def linearise(
        self, F: NDArray[np.float64], previous: Linearisation | None = None, tolerance: float = 0.0
    ) -> Linearisation:
        """Take the tangent of the concave part at the scores `F`.

        Exactly one strongest class gets the slope of a pair, also where several are tied: to spread it would
        break the descent. Where the `previous` tangent is off by at most `tolerance` at a pair, its choice is
        kept, lest rounding decide between ties.
        """
        losses = self.losses
        partner, strongest = strongest_others(F)
        chosen = partner[losses.example, losses.anchor]
        depth = self.truncation - F[losses.example, losses.anchor] + strongest[losses.example, losses.anchor]
        truncated = depth > 0.0
        if previous is not None:
            error = losses.weight * (np.maximum(depth, 0.0) - self._tangent_depth(F, previous))
            keep = error <= tolerance
            truncated = np.where(keep, previous.truncated, truncated)
            chosen = np.where(keep, previous.partner, chosen)
        slope = np.where(truncated, losses.weight, 0.0)
        tilt = np.zeros_like(F)
        tilt[losses.example, losses.anchor] = slope  # a pair of example and class occurs once
        at = np.flatnonzero(truncated)
        np.subtract.at(tilt, (losses.example[at], chosen[at]), slope[at])
        constant = -self.truncation * float(slope.sum()) if truncated.any() else 0.0
        return Linearisation(truncated, chosen, tilt, constant)

    def _tangent_depth(self, F: NDArray[np.float64], linearisation: Linearisation) -> NDArray[np.float64]:
        losses = self.losses
        depth = self.truncation - F[losses.example, losses.anchor] + F[losses.example, linearisation.partner]
        return np.where(linearisation.truncated, depth, 0.0)

    def is_repeated(self, linearisation: Linearisation, previous: Linearisation | None) -> bool:
        """Tell whether a tangent is the previous one."""
        return linearisation.equals(previous)

    def vertices(self, linearisation: Linearisation | None) -> HingePoint:
        """Dual start of a step: a truncated pair at its partner, which cancels its tilt, others at their class."""
        losses = self.losses
        dual = np.zeros((len(losses.weight), losses.n_classes))
        slot = losses.anchor
        if linearisation is not None:
            slot = np.where(linearisation.truncated, linearisation.partner, slot)
        dual[np.arange(len(slot)), slot] = losses.weight
        return HingePoint(dual, np.zeros(losses.n_classes))

    def reached(self, point: RobustPoint) -> tuple[NDArray[np.float64], float]:
        """Return the scores of a point, and the objective (8) there."""
        return self.evaluate(self.coefficients(point), point.step.intercept)

    def coefficients(self, point: RobustPoint) -> NDArray[np.float64]:
        """Return R (n, k) with ``h = K R``."""
        return self.convex_step(point.linearisation).coefficients(point.step.dual)

    def evaluate(
        self, R: NDArray[np.float64], intercept: NDArray[np.float64]
    ) -> tuple[NDArray[np.float64], float]:
        """Return the scores of the functions with coefficients `R`, and the objective (8) there."""
        H = self.gram.matmul(R)
        F = H + intercept
        return F, 0.5 * float(np.vdot(R, H)) + self.truncated_losses(F)

    def truncated_losses(self, F: NDArray[np.float64]) -> float:
        """Return the weighted sum of the truncated losses at the scores `F`."""
        at_pairs = np.maximum(margins(F), self.truncation)
        if self.loss == "hinge":
            values = np.maximum(1.0 - at_pairs, 0.0)
        else:
            values = Curve(self.loss, self.truncation).value(-at_pairs)
        return float(np.vdot(self.weight, values))

    def certify(self, point: RobustPoint) -> Certificate:
        """Measure a point afresh.

        Primal and dual are those of the last convex step; at a stationary point the primal is the objective (8).
        By how much the step's tangent misses the concave part at the point is taken off the dual, so that the
        gap is the epsilon of epsilon-stationarity. Without truncation the problem is convex, the proof global.
        """
        step = self.convex_step(point.linearisation).certify(point.step)
        if np.isneginf(self.truncation):
            return step
        return _stationary(step, self.constant_of(point.linearisation), self.reached(point)[1])

    def constant_of(self, linearisation: Linearisation | None) -> float:
        """Return the value of a tangent at zero scores."""
        return 0.0 if linearisation is None else linearisation.constant


@dataclass(frozen=True, slots=True)
class PartitionedRobust:
    """One robust machine on rows in partitions, of which only sums are taken; `RobustProblem` says what they mean.

    Attributes
    ----------
    blocks : of `RobustProblem`, each on a `FeatureGram` of its rows.
    n_features, n_classes : sizes of the weights W.
    truncation, fit_intercept : those of the blocks.
    """

    blocks: Blocks
    n_features: int
    n_classes: int
    truncation: float
    fit_intercept: bool

    @property
    def n_pairs(self) -> int:
        """Number of losses."""
        return total(self.blocks, _count_pairs)

    def convex_step(self, linearisation: Blocks | None = None) -> PartitionedHinge:
        """Return the convex problem whose concave part is frozen at tangents (None: left out)."""
        blocks = self.blocks.map(RobustProblem.convex_step, linearisation)
        return PartitionedHinge(blocks, self.n_features, self.n_classes, self.fit_intercept)

    def linearise(self, F: Blocks, previous: Blocks | None = None, tolerance: float = 0.0) -> Blocks:
        """Take the tangents of the concave part at the scores `F`."""
        return self.blocks.map(RobustProblem.linearise, F, previous, tolerance, keep=True)

    def is_repeated(self, linearisation: Blocks, previous: Blocks | None) -> bool:
        """Tell whether the tangents are the previous ones."""
        return linearisation.reduce(_both, Linearisation.equals, previous)

    def vertices(self, linearisation: Blocks | None) -> PartitionedPoint:
        """Return the dual start of a step."""
        dual = self.blocks.map(_vertices_of_block, linearisation)
        return PartitionedPoint(dual, np.zeros(self.n_classes))

    def weights(self, point: RobustPoint) -> NDArray[np.float64]:
        """Return W (n_features, k) of a point."""
        return self.convex_step(point.linearisation).weights(point.step)

    def reached(self, point: RobustPoint) -> tuple[Blocks, float]:
        """Return the scores of a point, in partitions, and the objective (8) there."""
        return self.evaluate(self.weights(point), point.step.intercept)

    def evaluate(self, W: NDArray[np.float64], intercept: NDArray[np.float64]) -> tuple[Blocks, float]:
        """Return the scores, in partitions, of weights W and intercepts, and the objective (8) there."""
        F = self.blocks.map(_scores_of_block, W, intercept)
        return F, 0.5 * float(np.vdot(W, W)) + total(self.blocks, RobustProblem.truncated_losses, F)

    def certify(self, point: RobustPoint) -> Certificate:
        """Measure a point afresh, by the sums that also certify rows in memory."""
        step = self.convex_step(point.linearisation).certify(point.step)
        if np.isneginf(self.truncation):
            return step
        return _stationary(step, self.constant_of(point.linearisation), self.reached(point)[1])

    def constant_of(self, linearisation: Blocks | None) -> float:
        """Return the value of the tangents at zero scores."""
        return 0.0 if linearisation is None else total(linearisation, _constant)


def _stationary(step: Certificate, constant: float, objective: float) -> Certificate:
    """Certify a point by its last convex step, the value of the step's tangent at zero, and the objective.

    A tangent is never below the concave part. Where it seems to be, intercepts are so far away that its digits are
    lost: they grow without end where it is best to predict one class alone.
    """
    primal = max(step.primal + constant, objective)
    dual = step.dual + constant - (primal - objective)
    return Certificate.of(primal, dual, infeasibility=step.infeasibility, kind="stationary")


def _count_pairs(problem: RobustProblem) -> int:
    return problem.n_pairs


def _constant(linearisation: Linearisation) -> float:
    return linearisation.constant


def _both(one: bool, other: bool) -> bool:
    return one and other


def _vertices_of_block(problem: RobustProblem, linearisation: Linearisation | None) -> NDArray[np.float64]:
    return problem.vertices(linearisation).dual


def _scores_of_block(
    problem: RobustProblem, W: NDArray[np.float64], intercept: NDArray[np.float64]
) -> NDArray[np.float64]:
    return np.asarray(features_of(problem) @ W, dtype=np.float64) + intercept


def margins(F: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the generalised margins ``g_ij = f_ij - max_{m != j} f_im``."""
    top, next_to_top = (column[:, None] for column in two_largest(F))
    return F - np.where(top == F, next_to_top, top)


def strongest_others(F: NDArray[np.float64]) -> tuple[NDArray[np.intp], NDArray[np.float64]]:
    """Return, for every example and class, the highest-scoring other class and its score; the first of ties."""
    n, k = F.shape
    best, second, top, next_to_top = leaders(F)
    partner, strongest = np.empty((n, k), dtype=np.intp), np.empty((n, k))
    partner[:], strongest[:] = best[:, None], top[:, None]
    own = np.arange(n) * k + best
    partner.put(own, second)
    strongest.put(own, next_to_top)
    return partner, strongest
