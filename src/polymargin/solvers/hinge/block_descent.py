"""Dual block coordinate descent: hinge machines on explicit features, dense or sparse, for many examples."""

from dataclasses import dataclass, replace
from math import log
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from polymargin._native.block_descent import move_multipliers, shuffle_awake, sweep_dense, sweep_sparse, totals
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
from polymargin.solvers.hinge.feasibility import balanced, feasible
from polymargin.solvers.hinge.intercept import central_intercept
from polymargin.solvers.pace import Pace


@dataclass(frozen=True, slots=True)
class DescentSettings:
    """Tuning of block descent; none of it changes what is certified.

    Attributes
    ----------
    burst : multiplications between two looks at the clock: about a tenth of a second.
    pull : squared length of the constant feature over that of the average row; with 1 it took twice the epochs.
    harder, most_pulls : factor by which it grows where the descent has ended and the sums are still wrong, as with
        rows so short that no score moves; how often it may.
    rounding : relative gap of the descent that is nothing but rounding error.
    least_square : of a row without entries, relative to the average row.
    negligible : part of a block in the gap, relative to the mean, below which it rests as if it had not changed,
        for losses that see single scores and for others: up to a half of the visits were to such blocks.
    large, most_visits, between : part of a block in the gap, relative to the mean, for every whole one of which it
        is visited in an epoch, as a few blocks that tie each other have most of the gap in the end; how often at
        most; and visits of others between two of its own at least.
    gain, patience : factor by which the gap must fall to count as progress, and epochs without it after which only
        rounding can be left.
    closer : least and largest part of a gap that did not suffice at which the next certificate is drawn up; the
        farther the last one was from the tolerance, the smaller it is.
    nearer : least part of the imbalance of a repaired point that did not suffice at which the next certificate is
        drawn up: what a repair costs grows with what there is to repair.
    start_calls, epoch_calls : calls before the first epoch and after the last, and in an epoch.
    step_cost : operations of the compiled loop that a visit takes per class, whatever the row, for losses that see
        single scores and for others.
    entry_cost, row_cost : of a product of a stored entry of a sparse row, and of an entry of a dense one, which is
        at hand.
    judged_after : epochs after which the pace is believed.
    slower : how often what a factor of late promises the descent takes, as it becomes slower, for losses that see
        single scores and for others.
    least_way, near : part of a rival's work that it takes however near it begins; the largest tolerance that
        counts as a way to go.
    clear : certified gap below which a point is better than zero, which is then not looked at.
    """

    burst: float = 2e8
    pull: float = 0.1
    harder: float = 10.0
    most_pulls: int = 30
    rounding: float = 1e-15
    least_square: float = 1e-6
    negligible: tuple[float, float] = (0.3, 0.0)
    large: float = 3.0
    most_visits: int = 16
    between: int = 8
    gain: float = 0.99
    patience: int = 5000
    closer: tuple[float, float] = (0.8, 0.95)
    nearer: float = 0.5
    start_calls: int = 700
    epoch_calls: int = 10
    step_cost: tuple[float, float] = (7.0, 7.0)
    entry_cost: float = 0.12
    row_cost: float = 0.4
    judged_after: int = 6
    slower: tuple[float, float] = (4.0, 2.0)
    least_way: float = 0.3
    near: float = 0.5
    clear: float = 0.5


DEFAULTS = DescentSettings()


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
                is_near = gap <= min(settings.tol, next_certificate)
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
        if is_last and problem.fit_intercept and problem.tilt is None:
            scored, seen = self._scored(point)
            if may_fail and seen.gap > self.tol:
                return seen
            dual = balanced(problem, point.dual)
            if dual is not None:
                self._keep(replace(scored, dual=dual), self._repaired(dual, scored, seen.primal))
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
        gram = as_features(self.problem.gram, "Block descent")
        W = gram.weights(self.problem.model(point))
        return replace(point, weights=W), gram.scores(W)

    def _repaired(self, dual: NDArray[np.float64], scored: HingePoint, primal: float) -> Certificate:
        """Return what a repaired dual point is worth beside the scores of before; few rows are other ones."""
        R = self.problem.coefficients(dual)
        changed = as_features(self.problem.gram, "Block descent").weights(R - self.problem.model(scored))
        W = changed if scored.weights is None else scored.weights + changed
        return self.problem.certify_apart(dual, R, float(np.vdot(W, W)), primal)

    def _scored(self, point: HingePoint) -> tuple[HingePoint, Certificate]:
        """Return a point whose sums are not yet repaired with its weights, and what it will be worth, about.

        What repairs the sums moves all scores together: the primal objective is further from its optimum with
        those, often ten times, so that those from before are kept. The dual one hardly changes: it is that of
        Lagrange, with the intercepts as multipliers of the sums. Better intercepts are sought only where the
        multipliers do not suffice, and scores are seen alone.
        """
        problem, R = self.problem, self.problem.coefficients(point.dual)
        point, H = self._with_weights(replace(point, primal=R))
        sums = np.ones(len(R)) @ R
        dual = problem.losses.dual_value(point.dual) - 0.5 * float(np.vdot(R, H)) - float(sums @ point.intercept)
        seen = Certificate.of(problem.objective(R, H, point.intercept), dual, infeasibility=np.inf)
        if seen.gap > self.tol and problem.losses.sees_single_scores:
            losses = polyhedral(problem.losses, "Block descent")
            intercept = central_intercept(losses, point.dual, H, guess=point.intercept)
            primal = problem.objective(R, H, intercept)
            if primal < seen.primal:
                point = replace(point, intercept=intercept)
                seen = Certificate.of(primal, dual, infeasibility=np.inf)
        return point, seen


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
        squares = gram.diagonal()
        self.tau = tuning.pull * float(squares.mean()) if problem.fit_intercept else 0.0
        # an empty row has no curvature of its own
        self.squares = np.maximum(
            squares, max(tuning.least_square * float(squares.mean()), np.finfo(np.float64).tiny)
        )
        self.multipliers = begin.intercept.copy()
        self.shift = self.multipliers + self.tau * (np.ones(len(R)) @ R)
        blocks = len(self.dual)
        self.tables = _tables(losses)
        self.loss, self.slack, self.missed = np.zeros(blocks), np.zeros(blocks), 0.0
        self.common = np.empty(gram.features.shape[1])
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
                *self.features, self.squares, visited, example, label, bound, *rules,
                self.tau, self.dual, self.W, self.shift, self.loss, self.slack, self.calm, self.wake, epoch,
                negligible, self.scratch,
            )  # fmt: skip
            progress.work += self.work_per_visit * len(visited) + self.work_per_addition * added
            if first + self.burst < len(awake) and progress.out_of_time():
                break
        progress.count("call", self.calls)
        by_class = self.sweep is sweep_dense
        squared, lost, self.missed = totals(
            self.W, by_class, self.dual.shape[1], self.loss, self.slack, self.common
        )
        primal = 0.5 * squared + lost
        return primal, primal - self.missed

    def move_multipliers(self) -> None:
        """Step of the augmented Lagrangian: b <- b + tau 1'R, which is the shift that the scores have now."""
        if self.tau:
            move_multipliers(self.multipliers, self.shift)

    def imbalance(self) -> float:
        """Return the largest sum of the coefficients of a class, in whatever unit."""
        return float(np.abs(self.shift - self.multipliers).max()) / self.tau if self.tau else 0.0

    @property
    def can_pull_harder(self) -> bool:
        """Whether the sums may be given more weight."""
        return self.tau > 0.0 and self.pulls_left > 0

    def pull_harder(self) -> None:
        """Give the sums more weight: the multipliers follow them in longer steps."""
        self.pulls_left -= 1
        self.tau *= self.harder
        self.shift = self.multipliers + self.tau * self.problem.coefficients(self.dual).sum(axis=0)
        self.calm[:], self.wake[:] = 1, 0

    def point(self) -> HingePoint:
        """Return a copy of the current point, columns not yet balanced."""
        return HingePoint(
            self.dual.copy(), self.shift - self.shift.mean() if self.tau else np.zeros_like(self.shift)
        )


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
