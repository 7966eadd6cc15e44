"""Maps from scores to probabilities, fitted to scores of rows that the machine was not fitted to.

Every map is a record with `probabilities(scores)`, and the certificate of its fit where it has a convex one. A row
of weight w counts as w rows, exactly.
"""

from dataclasses import dataclass, replace
from typing import Literal, Protocol, assert_never, cast, get_args

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit
from sklearn.isotonic import IsotonicRegression

from polymargin.problems.certificate import Certificate
from polymargin.problems.softmax import SoftmaxProblem, probabilities
from polymargin.solvers.contract import Settings
from polymargin.solvers.softmax_newton import Approach, SoftmaxNewton, SoftmaxSystem, approached

Array = NDArray[np.float64]
Labels = NDArray[np.intp]

MapMethod = Literal["temperature", "vector", "matrix", "sigmoid", "isotonic"]
METHODS: tuple[MapMethod, ...] = get_args(MapMethod)
"""The maps."""

CANDIDATES = ("temperature", "vector", "matrix")
"""The maps that "auto" chooses among, the simplest first and each a special case of the next."""

SLOPE_RIDGE = 1e-4
OFFSET_RIDGE = 1e-2
MATRIX_RIDGE = 3.0
"""Penalties of the slope, the offsets and the matrix for scores of unit spread: the first two only make the
optimum unique, the third keeps few rows from telling how a class's score speaks of another class."""

ROWS_PER_PARAMETER = 2
"""Rows per parameter of the matrix from which on "auto" considers it."""

JUDGING_FOLDS = 5
"""Folds over the left-out scores by which "auto" judges a map."""

SETTINGS = Settings(tol=1e-10, max_iter=200)
"""When the fit of a map stops: Newton's method needs some ten iterations."""

JUDGING = 1e-4
"""Relative decrease at which the fit of a candidate stops; that of the map taken then goes on."""


class ScoreMap(Protocol):
    """A fitted map."""

    @property
    def certificate(self) -> Certificate | None:
        """How good the fit is; None where it is closed, not an optimisation."""
        ...

    def probabilities(self, scores: Array) -> Array:
        """Return the probabilities (n, k) of the classes."""
        ...


@dataclass(frozen=True, slots=True)
class SoftmaxMap:
    """``softmax(a s + b + M s)``, s the scores over their `spread`; `parameters` holds a, b, and M by rows."""

    parameters: Array
    spread: float
    certificate: Certificate | None

    def probabilities(self, scores: Array) -> Array:
        """Return the probabilities (n, k) of the classes."""
        return probabilities(self.parameters, scores / self.spread)


@dataclass(frozen=True, slots=True)
class SigmoidMap:
    """Platt's sigmoid for every class against the rest, made to sum to one."""

    slopes: Array
    offsets: Array
    certificate: Certificate | None

    def probabilities(self, scores: Array) -> Array:
        """Return the probabilities (n, k) of the classes."""
        return _normalised(expit(scores * self.slopes + self.offsets))


@dataclass(frozen=True, slots=True)
class IsotonicMap:
    """A step function for every class against the rest, interpolated and made to sum to one."""

    thresholds: tuple[Array, ...]
    values: tuple[Array, ...]
    certificate: Certificate | None = None

    def probabilities(self, scores: Array) -> Array:
        """Return the probabilities (n, k) of the classes."""
        columns = (
            np.interp(column, at, value)
            for column, at, value in zip(scores.T, self.thresholds, self.values, strict=True)
        )
        return _normalised(np.column_stack(list(columns)))


def fit_map(method: MapMethod, scores: Array, labels: Labels, weights: Array) -> ScoreMap:
    """Fit a map to scores (n, k) of rows with known classes."""
    match method:
        case "sigmoid":
            return _fit_sigmoids(scores, labels, weights)
        case "isotonic":
            return _fit_isotonic(scores, labels, weights)
        case "temperature" | "vector" | "matrix":
            spread = _spread(scores, weights)
            solution = SoftmaxNewton().solve(_problem(method, scores / spread, labels, weights), SETTINGS)
            return SoftmaxMap(solution.point, spread, solution.certificate)
        case unknown:
            assert_never(unknown)


@dataclass(frozen=True, slots=True)
class Choice:
    """The map that "auto" took.

    Attributes
    ----------
    method : its name.
    fitted : the map.
    log_loss : of every candidate, the mean log loss over the folds.
    as_good : the candidates within one standard error of the best, the simplest first.
    """

    method: str
    fitted: SoftmaxMap
    log_loss: dict[str, float]
    as_good: tuple[str, ...]


def choose_map(scores: Array, labels: Labels, weights: Array, folds: NDArray[np.intp]) -> Choice:
    """Fit the candidates; take the richest whose loss over the folds is within one standard error of the least.

    The standard error is that of the difference from the best map, row by row. Of maps that are as good the richer
    one is taken: few rows among the left-out scores are far off and decide the comparison, and shrinkage keeps
    what a richer map can lose small.
    """
    rows = _Rows(scores, labels, weights, folds)
    judged = rows.judged()
    means = {method: rows.mean(loss) for method, (_, loss) in judged.items()}
    best = min(means, key=means.__getitem__)

    def is_as_good(method: str) -> bool:
        if method == best or not np.isfinite(means[method]):
            return method == best
        difference = judged[method][1] - judged[best][1]
        variance = rows.mean((difference - rows.mean(difference)) ** 2)
        return means[method] - means[best] <= np.sqrt(variance / rows.total)

    as_good = tuple(filter(is_as_good, means))
    method = as_good[-1]
    return Choice(method, rows.finished(judged[method][0]), means, as_good)


def left_out_probabilities(
    fitted: ScoreMap, method: str, scores: Array, labels: Labels, weights: Array, folds: NDArray[np.intp]
) -> Array:
    """Return the probabilities (n, k) of every row by the map fitted without its fold; `fitted` is the one of all.

    For maps of a convex fit one Newton step leaves a fold out.
    """
    P = np.empty_like(scores)
    if isinstance(fitted, SoftmaxMap):
        rows = _Rows(scores, labels, weights, folds, fitted.spread)
        without = approached(rows.system, fitted.parameters, rows.edges, np.inf).without
        for first, last, point in zip([0, *rows.edges[:-1]], rows.edges, without, strict=True):
            P[rows.order[first:last]] = probabilities(point, rows.problem.scores[first:last])
        return P
    for fold in np.unique(folds):
        rest = folds != fold
        without_fold = fit_map(cast(MapMethod, method), scores[rest], labels[rest], weights[rest])
        P[~rest] = without_fold.probabilities(scores[~rest])
    return P


def least_log_loss(scores: Array, labels: Labels, weights: Array, folds: NDArray[np.intp]) -> float:
    """Return the mean log loss over the folds of the best candidate: how good probabilities the scores allow."""
    rows = _Rows(scores, labels, weights, folds)
    return min(rows.mean(loss) for _, loss in rows.judged().values())


class _Rows:
    """Rows with known classes, fold after fold, and the candidates fitted to them.

    Attributes
    ----------
    order : (n,) where the rows came from.
    edges : where the folds end.
    problem, system : of the richest map; the others are special cases.
    """

    def __init__(
        self, scores: Array, labels: Labels, weights: Array, folds: NDArray[np.intp], spread: float | None = None
    ):
        self.order, self.edges = np.argsort(folds, kind="stable"), np.cumsum(np.bincount(folds))
        self.labels, self.weights, self.total = labels[self.order], weights[self.order], float(weights.sum())
        self.spread = _spread(scores, weights) if spread is None else spread
        self.problem = _problem("matrix", scores[self.order] / self.spread, self.labels, self.weights)
        self.system = SoftmaxSystem(self.problem)

    def mean(self, values: Array) -> float:
        """Return the mean of the rows' values."""
        return float(self.weights @ values) / self.total

    def judged(self) -> dict[str, tuple[Approach, Array]]:
        """Fit the candidates, each from the one before; return where they are, and the rows' losses by folds."""
        n, k = self.problem.scores.shape
        judged: dict[str, tuple[Approach, Array]] = {}
        theta = np.ones(1)
        for method in CANDIDATES:
            if method == "matrix" and n < ROWS_PER_PARAMETER * k * (k + 1):
                continue
            start = np.concatenate([theta, np.zeros(_size(method, k) - len(theta))])
            found = approached(self.system, start, self.edges, JUDGING)
            judged[method] = found, self.system.losses(found.without, self.edges, self.labels)
            theta = found.theta
        return judged

    def finished(self, found: Approach) -> SoftmaxMap:
        """Take the fit of a map to its end."""
        problem = replace(self.problem, ridge=self.problem.ridge[: len(found.theta)])
        solution = SoftmaxNewton().solve(
            problem, SETTINGS, start=found.theta, system=self.system, hessian=found.hessian
        )
        return SoftmaxMap(solution.point, self.spread, solution.certificate)


def log_losses(probabilities: Array, labels: Labels) -> Array:
    """Return ``-log p`` of the rows' own classes."""
    with np.errstate(divide="ignore"):
        return -np.log(probabilities[np.arange(len(labels)), labels])


def _problem(method: str, scores: Array, labels: Labels, weights: Array) -> SoftmaxProblem:
    """State the problem of a map of scores of unit spread."""
    k = scores.shape[1]
    scores, targets = np.asfortranarray(scores), np.asfortranarray(_smoothed(np.eye(k)[labels], weights))
    ridge = np.concatenate([[SLOPE_RIDGE], np.full(k, OFFSET_RIDGE), np.full(k * k, MATRIX_RIDGE)])
    return SoftmaxProblem(scores, targets, weights, ridge[: _size(method, k)])


def _size(method: str, n_classes: int) -> int:
    """Return the number of parameters of a map."""
    k = n_classes
    return {"temperature": 1, "vector": 1 + k, "matrix": 1 + k + k * k}[method]


def _fit_sigmoids(scores: Array, labels: Labels, weights: Array) -> SigmoidMap:
    """Fit Platt's sigmoids: the softmax of the scores 0 and s with an offset, at his smoothed targets."""
    k = scores.shape[1]
    slopes, offsets, certificates = np.empty(k), np.empty(k), []
    for j in range(k):
        own = labels == j
        spread = _spread(scores[:, [j]], weights, between_classes=False)
        pair = np.column_stack([np.zeros(len(scores)), scores[:, j] / spread])
        inside, outside = weights[own].sum(), weights[~own].sum()
        high, low = (inside + 1.0) / (inside + 2.0), 1.0 / (outside + 2.0)
        target = np.where(own, high, low)
        problem = SoftmaxProblem(
            pair,
            np.column_stack([1.0 - target, target]),
            weights,
            np.array([SLOPE_RIDGE, OFFSET_RIDGE, OFFSET_RIDGE]),
        )
        solution = SoftmaxNewton().solve(problem, SETTINGS)
        a, b0, b1 = solution.point
        slopes[j], offsets[j] = a / spread, b1 - b0
        certificates.append(solution.certificate)
    return SigmoidMap(slopes, offsets, Certificate.sum(certificates))


def _fit_isotonic(scores: Array, labels: Labels, weights: Array) -> IsotonicMap:
    thresholds, values = [], []
    for j in range(scores.shape[1]):
        fitted = IsotonicRegression(y_min=0.0, y_max=1.0, out_of_bounds="clip")
        fitted.fit(scores[:, j], (labels == j).astype(np.float64), sample_weight=weights)
        thresholds.append(fitted.X_thresholds_)
        values.append(fitted.y_thresholds_)
    return IsotonicMap(tuple(thresholds), tuple(values))


def _spread(scores: Array, weights: Array, *, between_classes: bool = True) -> float:
    """Return the typical size of score differences; one where all scores are equal."""
    centre = scores.mean(axis=1, keepdims=True) if between_classes else np.average(scores, axis=0, weights=weights)
    squares = np.einsum("ij,ij->i", scores - centre, scores - centre)
    spread = float(np.sqrt((weights @ squares) / (weights.sum() * scores.shape[1])))
    return spread if spread > 0.0 else 1.0


def _smoothed(targets: Array, weights: Array) -> Array:
    """Mix in one row's worth of equal probabilities, so that a sample without errors does not make certain."""
    total = weights.sum()
    return (total * targets + 1.0 / targets.shape[1]) / (total + 1.0)


def _normalised(columns: Array) -> Array:
    """Make rows sum to one; a row of zeros gets equal probabilities."""
    sums = columns.sum(axis=1, keepdims=True)
    return np.where(sums > 0.0, columns / np.where(sums > 0.0, sums, 1.0), 1.0 / columns.shape[1])
