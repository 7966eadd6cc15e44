"""Dual block coordinate descent: hinge machines on explicit features, dense or sparse, for many examples."""

from dataclasses import dataclass, replace
from math import log
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from polymargin._native.block_descent import (
    lead,
    move_multipliers,
    shuffle_awake,
    sweep_dense,
    sweep_sparse,
    totals,
)
from polymargin.gram import FeatureGram, as_features, compressed_parts, padded, padded_width, transposed_times
from polymargin.problems.certificate import Certificate
from polymargin.problems.hinge import HingePoint, HingeProblem, Losses, polyhedral
from polymargin.solvers.contract import (
    Accepted,
    Observer,
    Progress,
    Record,
    Settings,
    Solution,
    Status,
    accepts_kinds,
)
from polymargin.solvers.effort import RATES, Operations
from polymargin.solvers.hinge.acceptance import accepts_compiled
from polymargin.solvers.hinge.descent_settings import DEFAULTS, DescentSettings
from polymargin.solvers.hinge.feasibility import balanced, feasible
from polymargin.solvers.hinge.intercept import central_intercept
from polymargin.solvers.pace import Pace


def operations_per_epoch(features: Any, losses: Losses, tuning: DescentSettings) -> Operations:
    """Return the operations of an epoch that visits every row and changes the weights of every class."""
    n, k = features.shape[0], losses.n_classes
    visits, additions = operations_of_visit(features, losses, tuning), operations_of_addition(features, tuning)
    return {kind: n * (number + k * additions.get(kind, 0.0)) for kind, number in visits.items()}


def operations_of_visit(features: Any, losses: Losses, tuning: DescentSettings) -> Operations:
    """Return the operations of a visit, in the mean: the scores of a row, and its step."""
    k, to_add = losses.n_classes, operations_of_addition(features, tuning)
    step = tuning.step_cost[0 if losses.sees_single_scores else 1]
    return {"sweep": k * (step + to_add.get("sweep", 0.0)), "stream": k * to_add.get("stream", 0.0)}


def operations_of_addition(features: Any, tuning: DescentSettings) -> Operations:
    """Return the operations of adding a row to the weights of a class, as steps do that change its variable."""
    n, p = features.shape
    if sparse.issparse(features):
        return {"sweep": tuning.entry_cost * features.nnz / n}
    return {"stream": tuning.row_cost * p}


@dataclass(frozen=True, slots=True)
class BlockDescent:
    """Dual block coordinate descent with exact steps.

    Every example's block of the dual is maximised exactly in turn, in random order, at a cost of two passes over
    the example's features and classes (:mod:`polymargin._native.block_descent`). The unpenalised intercept makes
    the columns of R sum to zero, which couples all examples; an augmented Lagrangian takes this up:
    a constant feature of squared length `tau`, and multipliers b that follow it after every epoch. Before a
    certificate is drawn up the sums are repaired exactly (:mod:`polymargin.solvers.hinge.feasibility`).

    With the intercept it makes no difference where the origin lies, and rows are taken from their mean: what they
    have in common tied all of them to one another, pixels took twice the epochs.

    Examples that rest at a vertex of their block, or whose part in the gap is small, are visited more and more
    rarely, but never dropped, so nothing needs to be undone at the end.

    Parameters
    ----------
    seed : int, default=0
        Seed of the random order.
    tuning : DescentSettings
    rival : float, default=inf
        Work that another method takes: the descent is left as soon as it is expected to take longer.
    trial : float, default=0.0
        Part of that work up to which the descent must be expected to take so much longer as it has done less: some
        stand still for a while before they come near at once.
    goes_on : bool, default=False
        Whether the other method has the less to do the nearer it begins.
    """

    name: ClassVar[str] = "block_descent"

    seed: int = 0
    tuning: DescentSettings = DEFAULTS
    rival: float = np.inf
    trial: float = 0.0
    goes_on: bool = False

    def accepts(self, problem: Any) -> Accepted:
        """Return True if the solver can take `problem`, else the reason why not."""
        is_compiled = accepts_compiled(problem)
        return accepts_kinds(problem.gram, FeatureGram) if is_compiled is True else is_compiled

    def solve(
        self,
        problem: HingeProblem,
        settings: Settings,
        *,
        start: HingePoint | None = None,
        observer: Observer | None = None,
    ) -> Solution[HingePoint]:
        """Solve `problem`, whose Gram matrix must be a :class:`~polymargin.gram.FeatureGram`."""
        begin = _beginning(problem, start)
        descent = _Descent(problem, begin, self.seed, self.tuning)
        best = _Best(problem, begin, settings.tol, self.tuning.clear if start is None else 0.0)
        next_certificate = next_imbalance = smallest = np.inf
        newest, pace = 0, Pace(settings.tol)
        kind = 0 if problem.losses.sees_single_scores else 1
        with Progress(settings, observer, method=self.name) as progress:
            progress.count("call", self.tuning.start_calls)
            for epoch in progress:
                primal, dual = descent.epoch(epoch, progress)
                pace.note(progress.record(primal, dual))
                gap = (primal - dual) / max(1.0, abs(primal))
                if gap < self.tuning.gain * smallest:
                    smallest, newest = gap, epoch
                is_idle = epoch - newest > self.tuning.patience
                is_left = epoch > self.tuning.judged_after and self._is_slower(pace, progress.history[-1], kind)
                if is_idle or is_left:
                    progress.status = Status.STALLED
                    best.offer(descent.point(), is_last=not is_left)
                    break
                if gap <= self.tuning.averaged * settings.tol:
                    descent.average(gap)
                is_near = gap <= min(descent.promising * settings.tol, next_certificate)
                if is_near and (imbalance := descent.imbalance()) <= next_imbalance:
                    certificate = best.offer(descent.point(), may_fail=True)
                    if certificate.within(settings.tol):
                        break
                    (least, most), part = self.tuning.closer, settings.tol / certificate.gap
                    next_certificate = gap * min(max(part, least), most)
                    if certificate.is_proof:
                        next_imbalance = imbalance * min(max(part, self.tuning.nearer), most)
                descent.move_multipliers()
                if gap <= self.tuning.rounding and descent.can_pull_harder:
                    descent.pull_harder()
                    next_certificate = next_imbalance = smallest = np.inf
                    newest = epoch
            else:
                best.offer(descent.point())
            return progress.finish(best.point, best.certificate)

    def _is_slower(self, pace: Pace, last: Record, kind: int) -> bool:
        """Tell whether the rival is expected to come to the tolerance sooner."""
        tuning, rival, tol = self.tuning, self.rival, pace.tol
        if rival == np.inf or last.gap <= tol:
            return False
        if self.goes_on:
            way = log(min(last.gap, 1.0) / tol) / log(1.0 / min(tol, tuning.near))
            rival *= min(max(way, tuning.least_way), 1.0)
        most = rival * max(1.0, self.trial * self.rival / last.work)
        return pace.to_go(tuning.slower[kind]) > most


class _Best:
    """The point of smallest certified gap so far; the first is that to begin with, where it is looked at."""

    def __init__(self, problem: HingeProblem, begin: HingePoint, tol: float, clear: float):
        self.problem, self.tol, self.clear = problem, tol, clear
        self.gram = as_features(problem.gram, "Block descent")
        self.point = begin
        self._certificate: Certificate | None = None

    @property
    def certificate(self) -> Certificate:
        """The certificate of the point."""
        if self._certificate is None:
            self._certificate = self.problem.certify(self.point)
        return self._certificate

    def offer(self, point: HingePoint, *, is_last: bool = True, may_fail: bool = False) -> Certificate:
        """Repair and certify `point`, and keep it if it is the best.

        Where another method goes on from it, it is not the last, and its own scores and intercepts serve as well.
        One that may fail is not repaired where its scores are seen to be beyond the tolerance; what is returned is
        no proof then.
        """
        problem = self.problem
        if is_last and point.primal is not None:
            scored, seen = self._scored(point)
            if may_fail and seen.gap > self.tol:
                return seen
            dual = balanced(problem, point.dual)
            if dual is not None:
                self._keep(replace(scored, dual=dual), self._repaired(dual, seen.primal))
            return self.certificate
        dual = balanced(problem, point.dual) if problem.fit_intercept else point.dual
        if dual is not None:
            plain, scores = self._with_weights(HingePoint(dual, point.intercept))
            self._keep(plain, problem.certify(plain, scores))
        return self.certificate

    def _keep(self, point: HingePoint, certificate: Certificate) -> None:
        """Keep a point if it is the best; zero is looked at only where it may be better."""
        is_clear = certificate.gap < self.clear and self._certificate is None
        if certificate.within(self.tol) or is_clear or certificate.gap < self.certificate.gap:
            self.point, self._certificate = point, certificate

    def _with_weights(self, point: HingePoint) -> tuple[HingePoint, NDArray[np.float64]]:
        """Return a point with the weights of its scores, and these without intercepts."""
        W = self.gram.weights(self.problem.model(point))
        return replace(point, weights=W), self.gram.scores(W)

    def _repaired(self, dual: NDArray[np.float64], primal: float) -> Certificate:
        """Return what a repaired dual point is worth beside the scores of before."""
        R = self.problem.coefficients(dual)
        W = self.gram.weights(R)
        return self.problem.certify_apart(dual, R, float(np.vdot(W, W)), primal)

    def _scored(self, point: HingePoint) -> tuple[HingePoint, Certificate]:
        """Return a point whose sums are not yet repaired with its weights, and what it will be worth, about.

        What repairs the sums moves all scores together: the primal objective is further from its optimum with
        those, often ten times, so that those from before are kept. The dual one hardly changes: it is that of
        Lagrange, with the intercepts as multipliers of the sums. Better intercepts are sought only where the
        multipliers do not suffice, and scores are seen alone.
        """
        problem, (own, sums, part) = self.problem, _levelled(self.problem.coefficients(point.dual))
        point, H = self._with_weights(point)
        R = problem.model(point)
        W = self.gram.weights(own) if point.weights is None or not np.array_equal(own, R) else point.weights
        multipliers = point.intercept + part @ H
        dual = problem.losses.dual_value(point.dual) - 0.5 * float(np.vdot(W, W)) - float(sums @ multipliers)
        seen = Certificate.of(problem.objective(R, H, point.intercept), dual, infeasibility=np.inf)
        if seen.gap > self.tol and problem.losses.sees_single_scores:
            losses = polyhedral(problem.losses, "Block descent")
            intercept = central_intercept(losses, point.dual, H, guess=point.intercept)
            primal = problem.objective(R, H, intercept)
            if primal < seen.primal:
                point = replace(point, intercept=intercept)
                seen = Certificate.of(primal, dual, infeasibility=np.inf)
        return point, seen


def _levelled(
    R: NDArray[np.float64],
) -> tuple[NDArray[np.float64], NDArray[np.float64], NDArray[np.float64]]:
    """Return coefficients with columns of zero sum, the sums before, and the part of them that each row took.

    All rows with coefficients take the same, so that rows count from their mean, and those without have none.
    """
    has_any = np.abs(R) @ np.ones(R.shape[1]) > 0.0
    part = has_any / max(1, int(np.count_nonzero(has_any)))
    sums = np.ones(len(R)) @ R
    return R - np.outer(part, sums), sums, part


def _beginning(problem: HingeProblem, start: HingePoint | None) -> HingePoint:
    """Return the start, which may be that of another problem, as a point of this one; zero if there is none."""
    if start is None:
        return HingePoint(problem.losses.resting_dual(), np.zeros(problem.losses.n_classes))
    return HingePoint(feasible(problem, start.dual), start.intercept)


class _Descent:
    """State of the descent: dual point, weights W, multipliers b and what the last visits saw."""

    def __init__(
        self,
        problem: HingeProblem,
        begin: HingePoint,
        seed: int,
        tuning: DescentSettings,
    ):
        gram = as_features(problem.gram, "Block descent")
        losses = problem.losses
        self.problem = problem
        self.random_state = np.array([seed], dtype=np.uint64)
        self.dual = begin.dual.copy()
        R = problem.coefficients(self.dual)
        self.sweep, self.features, self.W = _bind_features(gram.features, R)
        self.along, self.centre = np.zeros(gram.n), 0.0
        if problem.fit_intercept:
            self.along, self.centre = _along_their_mean(gram.features)
        squares = gram.diagonal()
        # no less than they are: rounding is relative to what was subtracted
        squares += self.centre - 2.0 * self.along + tuning.rounding * (squares + self.centre)
        self.tau = tuning.pull * float(squares.mean()) if problem.fit_intercept else 0.0
        # an empty row has no curvature of its own
        self.squares = np.maximum(
            squares, max(tuning.least_square * float(squares.mean()), np.finfo(np.float64).tiny)
        )
        sums = np.ones(len(R)) @ R
        of_centre = (self.along - self.centre) @ R if self.centre else np.zeros_like(sums)
        self.multipliers = begin.intercept + of_centre
        self.common = np.array([self.multipliers + self.tau * sums, sums, of_centre])
        blocks = len(self.dual)
        self.tables = _tables(losses)
        self.loss, self.slack, self.missed = np.zeros(blocks), np.zeros(blocks), 0.0
        self.of_features = np.empty(gram.features.shape[1])
        self.calm, self.wake = np.ones(blocks, dtype=np.int32), np.zeros(blocks, dtype=np.int32)
        self.large, self.most_visits = tuning.large, (tuning.most_visits, tuning.between)
        # few parts can be so many times the mean
        self.order = np.empty(blocks + int(blocks / tuning.large) + 1, dtype=np.int32)
        self.scratch = np.zeros((3, padded_width(losses.n_classes)))
        stored = gram.features.nnz if sparse.issparse(gram.features) else gram.features.size
        self.burst = max(1, int(tuning.burst / ((stored / gram.n + 1) * losses.n_classes)))
        self.work_per_visit = RATES.work(operations_of_visit(gram.features, losses, tuning))
        self.work_per_addition = RATES.work(operations_of_addition(gram.features, tuning))
        self.calls, self.negligible = tuning.epoch_calls, tuning.negligible[0 if losses.sees_single_scores else 1]
        self.harder, self.pulls_left = tuning.harder, tuning.most_pulls
        self.has_primal = problem.fit_intercept and problem.tilt is None
        self.is_averaged = self.has_primal and losses.sees_single_scores
        self.tuning, self.averaged, self.gap = tuning, 0, np.inf

    def epoch(self, epoch: int, progress: Progress) -> tuple[float, float]:
        """Visit every block that is awake; return primal and dual objective as the visits saw them."""
        mean = self.missed / len(self.slack)
        visits = shuffle_awake(
            self.wake, epoch, self.slack, self.large * mean, *self.most_visits, self.random_state, self.order
        )
        awake = self.order[:visits]
        example, label, bound, *rules = self.tables
        negligible = self.negligible * mean
        for first in range(0, len(awake), self.burst):
            visited = awake[first : first + self.burst]
            added = self.sweep(
                *self.features, self.squares, self.along, visited, example, label, bound, *rules,
                self.tau, self.centre, self.dual, self.W, self.common, self.loss, self.slack, self.calm, self.wake,
                epoch, negligible, self.scratch,
            )  # fmt: skip
            progress.work += self.work_per_visit * len(visited) + self.work_per_addition * added
            if first + self.burst < len(awake) and progress.out_of_time():
                break
        progress.count("call", self.calls)
        by_class = self.sweep is sweep_dense
        squared, lost, self.missed = totals(
            self.W, by_class, self.common, self.centre, self.loss, self.slack, self.of_features
        )
        primal = 0.5 * squared + lost
        return primal, primal - self.missed

    def average(self, gap: float) -> None:
        """Let the point of the last epoch, of a gap that visits saw, count in the primal one, the later the more.

        Steps leave noise in the weights, to which the losses of all rows answer: a mean of them took off half of
        what the primal objective was above its optimum, and a fifth of the epochs. Where hinges do not see single
        scores it took off a tenth, no more than the products cost that a primal point of its own takes.
        """
        if not self.is_averaged:
            return
        # where an epoch takes off as much by itself, those before it are far away
        self.averaged = 1 if gap <= self.tuning.less * self.gap else self.averaged + 1
        self.gap = gap
        intercept, power = self._intercept(), self.tuning.lately
        if self.averaged == 1:
            self.mean, self.mean_intercept = self.dual.copy(), intercept
            return
        weight = (power + 1.0) / (power + self.averaged)
        lead(self.mean, self.dual, weight)
        self.mean_intercept = self.mean_intercept + weight * (intercept - self.mean_intercept)

    @property
    def promising(self) -> float:
        """The gap, in tolerances, at which a certificate is worth its time."""
        return 1.0 / self.tuning.less if self.averaged > 1 else 1.0

    def move_multipliers(self) -> None:
        """Step of the augmented Lagrangian: b <- b + tau 1'R, which is the shift that the scores have now."""
        if self.tau:
            move_multipliers(self.multipliers, self.common[0])

    def imbalance(self) -> float:
        """Return the largest sum of the coefficients of a class, in whatever unit."""
        return float(np.abs(self.common[0] - self.multipliers).max()) / self.tau if self.tau else 0.0

    @property
    def can_pull_harder(self) -> bool:
        """Whether the sums may be given more weight."""
        return self.tau > 0.0 and self.pulls_left > 0

    def pull_harder(self) -> None:
        """Give the sums more weight: the multipliers follow them in longer steps."""
        self.pulls_left -= 1
        self.tau *= self.harder
        self.common[0] = self.multipliers + self.tau * self.problem.coefficients(self.dual).sum(axis=0)
        self.calm[:], self.wake[:] = 1, 0

    def point(self) -> HingePoint:
        """Return a copy of the current point, columns not yet balanced, and a primal one if there is its own."""
        if not self.has_primal:
            return HingePoint(self.dual.copy(), self._intercept())
        R, _, _ = _levelled(self.problem.coefficients(self.mean if self.averaged else self.dual))
        return HingePoint(self.dual.copy(), self.mean_intercept if self.averaged else self._intercept(), primal=R)

    def _intercept(self) -> NDArray[np.float64]:
        shift, _, of_centre = self.common
        intercept = shift - of_centre
        return intercept - intercept.mean() if self.tau else np.zeros_like(shift)


def _along_their_mean(features: Any) -> tuple[NDArray[np.float64], float]:
    """Return the inner products of the rows with their mean, and its squared length."""
    n = features.shape[0]
    mean = np.asarray(features.T @ np.full(n, 1.0 / n), dtype=np.float64)
    return np.asarray(features @ mean, dtype=np.float64), float(np.vdot(mean, mean))


def _bind_features(features: Any, R: NDArray[np.float64]) -> tuple[Any, tuple, NDArray[np.float64]]:
    """Return the sweep for this storage, its first arguments, and W in the layout that it wants."""
    W = transposed_times(features, R) if R.any() else np.zeros((features.shape[1], R.shape[1]))
    if sparse.issparse(features):
        return sweep_sparse, compressed_parts(features), padded(W)
    return sweep_dense, (np.ascontiguousarray(features),), np.ascontiguousarray(W.T)


def _tables(losses: Losses) -> tuple:
    """Return example, label and bounds of every block, offset, coupling, whether simplex, whether centred."""
    of = polyhedral(losses, "Block descent")
    tables = of.compiled_tables()
    return (
        tables.example, tables.label, tables.bound, of.offset, tables.coupling, tables.simplex, tables.centred,
    )  # fmt: skip
