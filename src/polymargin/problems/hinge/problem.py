"""The problem of the hinge machines, and of every other convex loss: scores of least norm and loss, certified.

All are one problem over zero-sum score functions ``f(x) = W'x + b`` of k classes,

    min  1/2 ||W||^2 + <tilt, F> + sum of losses(F),      F = X W + 1 b',  rows of F and of W sum to zero,

whose dual point determines the coefficients R (n, k) of ``W = X'R``; an unpenalised intercept asks that the
columns of R sum to zero. They differ only in their losses, see `problems.hinge.losses`.
"""

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from polymargin.blocks import Blocks, total
from polymargin.gram import FeatureGram, Gram, rows_times, transposed_times
from polymargin.problems.certificate import Certificate
from polymargin.problems.hinge.losses import Losses, relative


@dataclass(frozen=True, slots=True)
class HingePoint:
    """A dual point of the losses, (blocks, slots), the intercepts (k,), and the coefficients of the scores.

    Attributes
    ----------
    dual, intercept : the dual point and the intercepts.
    primal : R (n, k) of the scores where a method has found better ones than the dual point's own; None for those.
    weights : W (p, k) of the scores, where the gram is one of features and they were computed at once.
    """

    dual: NDArray[np.float64]
    intercept: NDArray[np.float64]
    primal: NDArray[np.float64] | None = field(default=None, kw_only=True)
    weights: NDArray[np.float64] | None = field(default=None, kw_only=True, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class HingeProblem:
    """One hinge machine on given data.

    Attributes
    ----------
    gram : inner products of the training rows.
    losses : over the training rows.
    fit_intercept : whether an unpenalised intercept is part of the scores.
    tilt : (n, k) slopes of the linear term of a DC step, rows of zero sum; None for none.
    """

    gram: Gram
    losses: Losses
    fit_intercept: bool = True
    tilt: NDArray[np.float64] | None = None

    def coefficients(self, dual: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return R (n, k) with ``W = X'R``."""
        R = self.losses.coefficients(dual)
        return R if self.tilt is None else R - self.tilt

    def model(self, point: HingePoint) -> NDArray[np.float64]:
        """Return the coefficients R (n, k) of a point's scores."""
        return self.coefficients(point.dual) if point.primal is None else point.primal

    def certify(
        self,
        point: HingePoint,
        scores: NDArray[np.float64] | None = None,
        primal_scores: NDArray[np.float64] | None = None,
    ) -> Certificate:
        """Measure a point afresh; the gap is a proof only where the columns of the dual point's R sum to zero.

        `scores` are the gram's product with that R, `primal_scores` with the point's own, where they are at hand;
        as right as they are is the certificate.
        """
        R = self.coefficients(point.dual)
        if point.primal is None:
            H = self.gram.matmul(R) if scores is None else scores
            return self.measure(point.dual, point.intercept, R, H).certificate(self.fit_intercept)
        squared_norm = self._squared_norm(R) if scores is None else float(np.vdot(R, scores))
        H = self.gram.matmul(point.primal) if primal_scores is None else primal_scores
        return self.certify_apart(point.dual, R, squared_norm, self.objective(point.primal, H, point.intercept))

    def certify_apart(
        self, dual: NDArray[np.float64], R: NDArray[np.float64], squared_norm: float, primal: float
    ) -> Certificate:
        """Measure a dual point of coefficients `R` and weights of `squared_norm` beside a primal objective."""
        own = self._measures(dual, R, squared_norm).certificate(self.fit_intercept)
        return Certificate.of(primal, own.dual, infeasibility=own.infeasibility)

    def _squared_norm(self, R: NDArray[np.float64]) -> float:
        """Return ``||W||^2``: weights of features are there before their scores."""
        if isinstance(self.gram, FeatureGram):
            W = self.gram.weights(R)
            return float(np.vdot(W, W))
        return float(np.vdot(R, self.gram.matmul(R)))

    def objective(self, R: NDArray[np.float64], H: NDArray[np.float64], intercept: NDArray[np.float64]) -> float:
        """Return the primal objective of coefficients `R`, whose product with the gram is `H`."""
        F = H + intercept
        tilted = 0.0 if self.tilt is None else float(np.vdot(self.tilt, F))
        return 0.5 * float(np.vdot(R, H)) + self.losses.value(F) + tilted

    def measure(
        self,
        dual: NDArray[np.float64],
        intercept: NDArray[np.float64],
        R: NDArray[np.float64],
        H: NDArray[np.float64],
    ) -> "HingeMeasures":
        """Return what certifies a point with coefficients `R` and scores ``H + intercept``."""
        F = H + intercept
        tilted = 0.0 if self.tilt is None else float(np.vdot(self.tilt, F))
        return self._measures(dual, R, float(np.vdot(R, H)), self.losses.value(F), tilted)

    def _measures(
        self,
        dual: NDArray[np.float64],
        R: NDArray[np.float64],
        squared_norm: float,
        losses: float = 0.0,
        tilted: float = 0.0,
    ) -> "HingeMeasures":
        """Return the measures of a dual point; those of scores are given, where the primal counts."""
        ones = np.ones(len(R))
        return HingeMeasures(
            squared_norm=squared_norm,
            losses=losses,
            tilted=tilted,
            dual_value=self.losses.dual_value(dual),
            violation=self.losses.violation(dual),
            sizes=ones @ np.abs(R),
            sums=ones @ R,
            total_weight=self.losses.total_weight,
        )


@dataclass(frozen=True, slots=True)
class HingeMeasures:
    """Sums over rows (of the violations, maxima) that certify a point.

    Attributes
    ----------
    squared_norm : ``||W||^2``.
    losses, tilted, dual_value : parts of the objectives.
    violation : largest violation of the dual constraints, and what it is relative to.
    sizes, sums : (k,) column sums of ``|R|`` and R.
    total_weight : of all losses.
    """

    squared_norm: float
    losses: float
    tilted: float
    dual_value: float
    violation: tuple[float, float]
    sizes: NDArray[np.float64]
    sums: NDArray[np.float64]
    total_weight: float

    def __add__(self, other: "HingeMeasures") -> "HingeMeasures":
        return HingeMeasures(
            self.squared_norm + other.squared_norm,
            self.losses + other.losses,
            self.tilted + other.tilted,
            self.dual_value + other.dual_value,
            (max(self.violation[0], other.violation[0]), max(self.violation[1], other.violation[1])),
            self.sizes + other.sizes,
            self.sums + other.sums,
            self.total_weight + other.total_weight,
        )

    def certificate(self, fit_intercept: bool) -> Certificate:
        """Return the certificate of all rows."""
        half_norm = 0.5 * self.squared_norm
        primal = half_norm + self.losses + self.tilted
        infeasibility = relative(*self.violation)
        if fit_intercept:
            # where all coefficients nearly cancel, what is left of them is rounding of the weights
            scale = max(float(self.sizes.max()), 1e-4 * self.total_weight)
            infeasibility = max(infeasibility, float(np.abs(self.sums).max()) / scale)
        return Certificate.of(primal, self.dual_value - half_norm, infeasibility=infeasibility)


@dataclass(frozen=True, slots=True)
class PartitionedPoint:
    """A dual point in blocks, and the intercepts (k,)."""

    dual: Blocks
    intercept: NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class PartitionedHinge:
    """One hinge machine on rows in blocks, of which only sums are taken.

    Attributes
    ----------
    blocks : of `HingeProblem`, each on a `FeatureGram` of its rows.
    n_features, n_classes : sizes of W.
    fit_intercept : whether an unpenalised intercept is part of the scores.
    """

    blocks: Blocks
    n_features: int
    n_classes: int
    fit_intercept: bool

    def weights(self, point: PartitionedPoint) -> NDArray[np.float64]:
        """Return W (n_features, k) ``= X'R``."""
        return total(self.blocks, _pull_of_block, point.dual)

    def certify(self, point: PartitionedPoint) -> Certificate:
        """Measure a point afresh, by the sums that also certify rows in memory."""
        measures = total(self.blocks, _measures_of_block, point.dual, point.intercept, self.weights(point))
        return measures.certificate(self.fit_intercept)


def features_of(problem: Any) -> Any:
    """Return the features behind the inner products, where they are features."""
    if not isinstance(problem.gram, FeatureGram):
        raise TypeError("The interior point needs features: a FeatureGram, or a factor of the gram.")
    return problem.gram.features


def _pull_of_block(problem: HingeProblem, dual: NDArray[np.float64]) -> NDArray[np.float64]:
    return transposed_times(features_of(problem), problem.coefficients(dual))


def _measures_of_block(
    problem: HingeProblem, dual: NDArray[np.float64], intercept: NDArray[np.float64], W: NDArray[np.float64]
) -> HingeMeasures:
    H = rows_times(features_of(problem), W)
    return problem.measure(dual, intercept, problem.coefficients(dual), H)
