"""The hinge machines: Lee-Lin-Wahba, Weston-Watkins, Crammer-Singer and the convex step of the robust SVM.

All are one problem over zero-sum score functions ``f(x) = W'x + b`` of k classes,

    min  1/2 ||W||^2 + <tilt, F> + sum of losses(F),      F = X W + 1 b',  rows of F and of W sum to zero,

whose dual point determines the coefficients R (n, k) of ``W = X'R``; an unpenalised intercept asks that the
columns of R sum to zero. They differ only in the tables below: hinges over boxes (one variable a pair of
example and class), or maxima over simplices (one simplex a pair).
"""

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from polymargin.blocks import Blocks, total
from polymargin.gram import FeatureGram, Gram
from polymargin.problems.certificate import Certificate

SHORT_ROW = 16
"""Entries up to which the maxima of rows are found column by column."""


@dataclass(frozen=True, slots=True)
class BoxLosses:
    """``sum_ij upper_ij [offset + <directions[y_i, j], f_i>]_+`` with dual variables ``0 <= u <= upper``.

    Attributes
    ----------
    labels : (n,) class codes y.
    upper : (n, k) weights of the hinges, zero in the column of the own class.
    directions : (k, k, k), rows of zero sum: `directions[y, j]` is what hinge j of an example of class y sees.
    offset : the margin.
    """

    labels: NDArray[np.intp]
    upper: NDArray[np.float64]
    directions: NDArray[np.float64]
    offset: float

    @property
    def n_examples(self) -> int:
        """Number of examples."""
        return self.upper.shape[0]

    @property
    def n_classes(self) -> int:
        """Number of classes."""
        return self.upper.shape[1]

    @property
    def total_weight(self) -> float:
        """Sum of the weights of all hinges."""
        return float(self.upper.sum())

    @property
    def is_absolute(self) -> bool:
        """Whether a hinge sees its class's score whatever the own class is (Lee-Lin-Wahba)."""
        return bool((self.directions == self.directions[0]).all())

    def restricted(self, rows: NDArray[np.intp]) -> "BoxLosses":
        """Return the losses of the examples `rows`."""
        return BoxLosses(self.labels[rows], self.upper[rows], self.directions, self.offset)

    def slopes(self, F: NDArray[np.float64]) -> NDArray[np.float64]:
        """Linear part of the arguments of the hinges at the scores `F`."""
        if self.is_absolute:
            return F @ self.directions[0].T
        return F - F[np.arange(len(F)), self.labels][:, None]

    def margins(self, F: NDArray[np.float64]) -> NDArray[np.float64]:
        """Arguments of the hinges at the scores `F`."""
        return self.offset + self.slopes(F)

    def value(self, F: NDArray[np.float64]) -> float:
        """Sum of the losses at the scores `F`."""
        return float(np.vdot(self.upper, np.maximum(self.margins(F), 0.0)))

    def coefficients(self, dual: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return the coefficients R that a dual point stands for."""
        if self.is_absolute:
            return -dual @ self.directions[0]
        R, rows = -dual, np.arange(len(dual))
        R[rows, self.labels] = 0.0
        R[rows, self.labels] = -(R @ np.ones(self.n_classes))
        return R

    def dual_of(self, R: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return the dual point of given coefficients; the own class, which has no hinge, gets zero."""
        own = self.labels[:, None] == np.arange(self.n_classes)
        # R = mean of u - u where the hinges see single scores; else -u, and the own class makes up the row
        mean = R[own][:, None] if self.is_absolute else 0.0
        return np.where(own, 0.0, mean - R)

    def dual_linear(self, dual: NDArray[np.float64]) -> float:
        """Linear part of the dual objective."""
        return self.offset * float(dual.sum())

    def infeasibility(self, dual: NDArray[np.float64]) -> float:
        """Largest violation of the box, relative to the largest bound."""
        return _relative(*self.violation(dual))

    def violation(self, dual: NDArray[np.float64]) -> tuple[float, float]:
        """Largest violation of the box, and the largest bound, to which it is relative."""
        worst = max(float(-dual.min(initial=0.0)), float((dual - self.upper).max(initial=0.0)))
        return worst, float(self.upper.max(initial=0.0))


@dataclass(frozen=True, slots=True)
class SimplexLosses:
    """``sum_p weight_p (max_m (offset [m != anchor_p] + f_im) - f_i,anchor_p)``, i the example of pair p.

    The dual block of a pair lies on ``weight_p`` times the unit simplex; its slot `anchor_p` is the slack.

    Attributes
    ----------
    example, anchor : (P,) example and class of every pair.
    weight : (P,) positive weights.
    offset : the margin.
    n_examples, n_classes : sizes of the scores.
    one_each : whether pair p is the only one of example p.
    own : (P,) where the anchors are in tables (P, k), counted row by row.
    """

    example: NDArray[np.intp]
    anchor: NDArray[np.intp]
    weight: NDArray[np.float64]
    offset: float
    n_examples: int
    n_classes: int
    one_each: bool = field(init=False)
    own: NDArray[np.intp] = field(init=False)

    def __post_init__(self) -> None:
        pairs = np.arange(len(self.example))
        one_each = len(pairs) == self.n_examples and bool((self.example == pairs).all())
        object.__setattr__(self, "one_each", one_each)
        object.__setattr__(self, "own", pairs * self.n_classes + self.anchor)

    @property
    def total_weight(self) -> float:
        """Sum of the weights of all pairs."""
        return float(self.weight.sum())

    def restricted(self, rows: NDArray[np.intp]) -> "SimplexLosses":
        """Return the losses of the examples `rows`, where every example has one pair, its own."""
        return SimplexLosses(
            np.arange(len(rows)), self.anchor[rows], self.weight[rows], self.offset, len(rows), self.n_classes
        )

    def margins(self, F: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return ``offset [m != anchor_p] + f_im - f_i,anchor_p`` for every pair and slot (P, k)."""
        scores = F if self.one_each else F[self.example]
        inner = scores + (self.offset - scores.take(self.own))[:, None]
        inner.put(self.own, 0.0)
        return inner

    def value(self, F: NDArray[np.float64]) -> float:
        """Sum of the losses at the scores `F`."""
        return float(self.weight @ row_maxima(self.margins(F)))

    def coefficients(self, dual: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return the coefficients R that a dual point stands for."""
        # the anchor's coefficient is the sum of the others: `weight - dual` would lose their small digits
        moved = -dual
        moved.put(self.own, 0.0)
        moved.put(self.own, -(moved @ np.ones(self.n_classes)))
        if self.one_each:
            return moved
        cells = self.example[:, None] * self.n_classes + np.arange(self.n_classes)
        R = np.bincount(cells.ravel(), moved.ravel(), minlength=self.n_examples * self.n_classes)
        return R.astype(np.float64, copy=False).reshape(self.n_examples, self.n_classes)

    def dual_of(self, R: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return the dual point of given coefficients, where every example has at most one pair."""
        dual = -R[self.example]
        dual.put(self.own, dual.take(self.own) + self.weight)
        return dual

    def dual_linear(self, dual: NDArray[np.float64]) -> float:
        """Linear part of the dual objective."""
        return self.offset * float(dual.sum() - dual.take(self.own).sum())

    def infeasibility(self, dual: NDArray[np.float64]) -> float:
        """Largest violation of a simplex, relative to its size."""
        return _relative(*self.violation(dual))

    def violation(self, dual: NDArray[np.float64]) -> tuple[float, float]:
        """Largest violation of a simplex, relative to its size, and one."""
        below = 0.0
        if dual.min(initial=0.0) < 0.0:
            below = -float((dual / self.weight[:, None]).min())
        off = float(np.abs(dual @ np.ones(self.n_classes) / self.weight - 1.0).max(initial=0.0))
        return max(off, below), 1.0


def row_maxima(table: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the maximum of every row, column by column where rows are short: much faster then."""
    if table.shape[1] > SHORT_ROW:
        return table.max(axis=1)
    largest = table[:, 0].copy()
    for column in table.T[1:]:
        np.maximum(largest, column, out=largest)
    return largest


def leaders(
    table: NDArray[np.float64],
) -> tuple[NDArray[np.intp], NDArray[np.intp], NDArray[np.float64], NDArray[np.float64]]:
    """Return where every row is largest and second largest, the first of ties, and the two numbers."""
    if table.shape[1] > SHORT_ROW:
        rows = np.arange(len(table))
        best = table.argmax(axis=1)
        rest = table.copy()
        rest[rows, best] = -np.inf
        second = rest.argmax(axis=1)
        return best, second, table[rows, best], rest[rows, second]
    best, second = np.zeros((2, len(table)), dtype=np.intp)
    top, next_to_top = table[:, 0].copy(), np.full(len(table), -np.inf)
    for number, column in enumerate(table.T[1:], start=1):
        overtakes, comes_second = column > top, column > next_to_top
        second[comes_second] = number
        np.copyto(second, best, where=overtakes)
        best[overtakes] = number
        np.maximum(next_to_top, np.minimum(top, column), out=next_to_top)
        np.maximum(top, column, out=top)
    return best, second, top, next_to_top


def _relative(violation: float, scale: float) -> float:
    return violation / max(scale, np.finfo(np.float64).tiny)


def lee_lin_wahba(labels: NDArray[np.intp], upper: NDArray[np.float64]) -> BoxLosses:
    """Losses (7) of Lee, Lin & Wahba: ``sum_{j != y} upper_ij [f_j + 1/(k-1)]_+``."""
    k = upper.shape[1]
    directions = np.broadcast_to(np.eye(k) - 1.0 / k, (k, k, k))
    return BoxLosses(labels, upper, directions, 1.0 / (k - 1))


def weston_watkins(labels: NDArray[np.intp], upper: NDArray[np.float64]) -> BoxLosses:
    """Losses of Weston & Watkins: ``sum_{j != y} upper_ij [f_j - f_y + 2]_+``."""
    k = upper.shape[1]
    directions = np.eye(k)[None, :, :] - np.eye(k)[:, None, :]
    return BoxLosses(labels, upper, directions, 2.0)


def crammer_singer(labels: NDArray[np.intp], weight: NDArray[np.float64], n_classes: int) -> SimplexLosses:
    """Losses of Crammer & Singer: ``weight_i [2 - min_{j != y} (f_y - f_j)]_+``."""
    example = np.flatnonzero(weight)
    return SimplexLosses(example, labels[example], weight[example], 2.0, len(labels), n_classes)


@dataclass(frozen=True, slots=True)
class HingePoint:
    """A dual point, (n, k) for boxes and (P, k) for simplices, and the intercepts (k,)."""

    dual: NDArray[np.float64]
    intercept: NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class HingeProblem:
    """One hinge machine on given data.

    Attributes
    ----------
    gram : inner products of the training rows.
    losses : the tables of the machine.
    fit_intercept : whether an unpenalised intercept is part of the scores.
    tilt : (n, k) slopes of the linear term of a DC step, rows of zero sum; None for none.
    """

    gram: Gram
    losses: BoxLosses | SimplexLosses
    fit_intercept: bool = True
    tilt: NDArray[np.float64] | None = None

    def coefficients(self, dual: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return R (n, k) with ``W = X'R``."""
        R = self.losses.coefficients(dual)
        return R if self.tilt is None else R - self.tilt

    def certify(self, point: HingePoint, scores: NDArray[np.float64] | None = None) -> Certificate:
        """Measure a point afresh; the gap is a proof only where the columns of R sum to zero.

        `scores` are the gram's product with R where that is at hand; as right as they are is the certificate.
        """
        R = self.coefficients(point.dual)
        H = self.gram.matmul(R) if scores is None else scores
        return self.measure(point.dual, point.intercept, R, H).certificate(self.fit_intercept)

    def measure(
        self,
        dual: NDArray[np.float64],
        intercept: NDArray[np.float64],
        R: NDArray[np.float64],
        H: NDArray[np.float64],
    ) -> "HingeMeasures":
        """Return what certifies a point with coefficients `R` and scores ``H + intercept``."""
        F, ones = H + intercept, np.ones(len(R))
        return HingeMeasures(
            squared_norm=float(np.vdot(R, H)),
            losses=self.losses.value(F),
            tilted=0.0 if self.tilt is None else float(np.vdot(self.tilt, F)),
            dual_linear=self.losses.dual_linear(dual),
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
    losses, tilted, dual_linear : parts of the objectives.
    violation : largest violation of the dual constraints, and what it is relative to.
    sizes, sums : (k,) column sums of ``|R|`` and R.
    total_weight : of all losses.
    """

    squared_norm: float
    losses: float
    tilted: float
    dual_linear: float
    violation: tuple[float, float]
    sizes: NDArray[np.float64]
    sums: NDArray[np.float64]
    total_weight: float

    def __add__(self, other: "HingeMeasures") -> "HingeMeasures":
        return HingeMeasures(
            self.squared_norm + other.squared_norm,
            self.losses + other.losses,
            self.tilted + other.tilted,
            self.dual_linear + other.dual_linear,
            (max(self.violation[0], other.violation[0]), max(self.violation[1], other.violation[1])),
            self.sizes + other.sizes,
            self.sums + other.sums,
            self.total_weight + other.total_weight,
        )

    def certificate(self, fit_intercept: bool) -> Certificate:
        """Return the certificate of all rows."""
        half_norm = 0.5 * self.squared_norm
        primal = half_norm + self.losses + self.tilted
        infeasibility = _relative(*self.violation)
        if fit_intercept:
            # where all coefficients nearly cancel, what is left of them is rounding of the weights
            scale = max(float(self.sizes.max()), 1e-4 * self.total_weight)
            infeasibility = max(infeasibility, float(np.abs(self.sums).max()) / scale)
        return Certificate.of(primal, self.dual_linear - half_norm, infeasibility=infeasibility)


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
    return np.asarray(features_of(problem).T @ problem.coefficients(dual), dtype=np.float64)


def _measures_of_block(
    problem: HingeProblem, dual: NDArray[np.float64], intercept: NDArray[np.float64], W: NDArray[np.float64]
) -> HingeMeasures:
    H = np.asarray(features_of(problem) @ W, dtype=np.float64)
    return problem.measure(dual, intercept, problem.coefficients(dual), H)
