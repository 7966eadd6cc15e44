"""Decomposition for hinge machines with a kernel: exact steps on a few hundred examples at a time.

The frame, the same for every loss: choose the examples with the largest parts in the gap, improve them on their
own block of the kernel matrix (an `InnerLoop`), update all scores by one product, measure the gap.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from polymargin.gram import LazyGram
from polymargin.problems.certificate import Certificate
from polymargin.problems.hinge import HingePoint, HingeProblem, PolyhedralLosses, boxes
from polymargin.solvers.contract import Accepted, Observer, Progress, Settings, Solution, Status
from polymargin.solvers.hinge.acceptance import accepts_one_per_example
from polymargin.solvers.hinge.inner_loop import Burst, InnerLoop
from polymargin.solvers.hinge.intercept import central_intercept
from polymargin.solvers.hinge.kernel_point import KernelPoint, whole_matrix
from polymargin.solvers.hinge.lee import LeeLoop
from polymargin.solvers.hinge.moves import own_class
from polymargin.solvers.hinge.relative import RelativeLoop
from polymargin.solvers.stagnation import Stagnation


@dataclass(frozen=True, slots=True)
class DecompositionSettings:
    """Tuning of the decomposition; none of it changes what is certified.

    Attributes
    ----------
    working_set : examples that are improved at a time.
    reduction : part to which an inner loop lowers the violation in its working set.
    steps_per_example : steps of an inner loop, at most, for losses that see single scores and for others: the
        longer it goes on, the more of what it does others undo.
    burst : steps times examples of one stretch of compiled work: a small part of a second.
    extremes : part of a working set that is chosen by the most violating moves.
    active_rows, active_share, reach : where all rows of a matrix in memory are worked on at once, they are, after
        the first round, those alone that have coefficients or margins above minus `reach` margins, if these are so
        many at least and at most, and no larger a part of all.
    negative_curvature : of a direction, relative to the kernel's largest, that rounding does not explain.
    lazy_bytes : of the blocks in which a matrix that is not kept is computed: a small part of a second each.
    updates_right_to : tolerance down to which scores that were updated step by step are right: where the matrix is
        in memory, and where its rows are computed in single precision.
    rounds_without_rise, rounds_without_gain, gain : rounds after which the dual that does not rise, and the gap
        that does not fall by the factor `gain`, are taken to be as good as rounding lets them be.
    step_cost : operations of a compiled loop per entry that it goes over, for losses that see single scores and
        for others, whose entries lie nearer.
    update_cost : operations of a product per class, example and changed example; products this thin are slow.
    round_cost : entries visited in a round, per class and example.
    round_calls : calls in a round.
    """

    working_set: int = 1024
    reduction: float = 0.1
    steps_per_example: tuple[int, int] = (4, 20)
    burst: int = 2**26
    extremes: float = 0.125
    active_rows: tuple[int, int] = (200, 4000)
    active_share: float = 0.8
    reach: float = 0.03
    negative_curvature: float = 1e-6
    lazy_bytes: int = 2**24
    gain: float = 0.9
    updates_right_to: tuple[float, float] = (1e-9, 1e-4)
    rounds_without_rise: int = 20
    rounds_without_gain: int = 300
    step_cost: tuple[float, float] = (0.7, 0.35)
    update_cost: float = 5.0
    round_cost: float = 2.4
    round_calls: int = 300


DEFAULTS = DecompositionSettings()


class Decomposition:
    """Solve a hinge problem by working sets."""

    name = "decomposition"

    def __init__(self, tuning: DecompositionSettings = DEFAULTS):
        self.tuning = tuning

    def accepts(self, problem: Any) -> Accepted:
        """Return True if the solver can take `problem`, else the reason why not."""
        return accepts_one_per_example(problem)

    def solve(
        self,
        problem: HingeProblem,
        settings: Settings,
        *,
        start: HingePoint | None = None,
        observer: Observer | None = None,
    ) -> Solution[HingePoint]:
        """Solve `problem` to a relative gap of ``settings.tol``, from the dual of `start` where given."""
        stagnation = Stagnation(self.tuning.rounds_without_rise, self.tuning.rounds_without_gain, self.tuning.gain)
        with Progress(settings, observer, method=self.name) as progress:
            rounds, within = _Rounds(problem, progress, start, self.tuning), False
            for _ in progress:
                gaps, dual = rounds.gap_per_example(), rounds.objective()
                record = progress.record(dual + float(gaps.sum()), dual)
                within = record.gap <= settings.tol
                if within and rounds.is_exact_enough():
                    break
                if stagnation.sets_in(record):
                    progress.status = Status.STALLED
                    break
                if within:
                    rounds.refresh(rounds.dual)
                else:
                    rounds.improve(rounds.choose(gaps))
            return progress.finish(*rounds.conclusion(within))


def inner_loop(problem: HingeProblem) -> InnerLoop:
    """Choose the inner loop of a problem's losses."""
    if problem.losses.sees_single_scores:
        return LeeLoop(boxes(problem.losses, "The loop of single scores"), problem.fit_intercept)
    return RelativeLoop(problem)


class _Rounds(KernelPoint):
    """A point, and how a round takes it on."""

    def __init__(
        self, problem: HingeProblem, progress: Progress, start: HingePoint | None, tuning: DecompositionSettings
    ):
        super().__init__(problem, progress, start, tuning.lazy_bytes)
        self.tuning = tuning
        self.loop = inner_loop(problem)
        n, size = self.losses.n_examples, tuning.working_set
        self.whole_matrix = whole_matrix(self.gram)
        takes_all = self.loop.takes_all and self.whole_matrix is not None
        # rows that have to be computed first: half as many, so that a stop need not wait long
        self.size = n if takes_all else min(size // 2 if self.is_lazy else size, n)

    @property
    def is_lazy(self) -> bool:
        """Whether rows of the matrix are computed when needed."""
        return isinstance(self.gram, LazyGram)

    def is_exact_enough(self) -> bool:
        """Tell whether the scores are right to the tolerance."""
        return self.exact or self.progress.settings.tol > self.tuning.updates_right_to[self.is_lazy]

    def choose(self, gaps: NDArray[np.float64]) -> NDArray[np.intp]:
        """Return the next working set: extremes of every class, examples of largest gap, and of the last set."""
        n = self.losses.n_examples
        if self.size == n:
            self.rows = self._active() if len(self.rows) else np.arange(n)
            return self.rows
        if not len(self.rows):
            self.rows = _spread(self.losses, self.size)
            return self.rows
        extremes = self.loop.extremes(
            self.dual,
            self.H,
            self.intercept,
            max(1, int(self.tuning.extremes * self.size / self.losses.n_classes)),
        )
        largest = np.argpartition(-gaps, self.size // 2)[: self.size // 2]
        rows = np.union1d(extremes, largest)
        old = np.setdiff1d(self.rows, rows)
        if len(rows) < self.size:
            old = old[np.argsort(-gaps[old])][: self.size - len(rows)]
            rows = np.concatenate([rows, old])
        self.rows = rows
        return rows

    def _active(self) -> NDArray[np.intp]:
        """Return the rows that seem to have a part in the solution, or all: steps on fewer rows are shorter.

        Those of the block at hand as long as it has all that must be there, and hardly more.
        """
        n, tuning, rows = self.losses.n_examples, self.tuning, self.block.rows
        margins = self.losses.margins(self.H + self.intercept)
        margins = np.where(own_class(self.losses), -np.inf, margins).max(axis=1)
        has_part = self.R.any(axis=1)
        needed = np.flatnonzero(has_part | (margins > 0.0))
        if len(needed) >= tuning.active_share * len(rows) > 0 and bool(np.isin(needed, rows).all()):
            return rows
        active = np.flatnonzero(has_part | (margins > -tuning.reach * self.losses.offset))
        least, most = tuning.active_rows
        return active if least <= len(active) <= min(most, tuning.active_share * n) else np.arange(n)

    def _kernel_of(self, rows: NDArray[np.intp]) -> NDArray[np.float64]:
        """Return the kernel matrix of a working set; that of active rows, which stay for many rounds, is kept."""
        if self.whole_matrix is not None and len(rows) == self.losses.n_examples:
            return np.ascontiguousarray(self.whole_matrix)
        if self.block.rows is rows:
            return self.block.matrix
        self.block.drop()  # before there is another one
        matrix = np.ascontiguousarray(self.gram.block(rows, rows))
        if self.size == self.losses.n_examples:
            self.block.rows, self.block.matrix = rows, matrix
        return matrix

    def improve(self, rows: NDArray[np.intp]) -> None:
        """Improve the examples `rows` on their own block of the kernel matrix, then update all scores."""
        local, tuning = self.losses.restricted(rows), self.tuning
        K, old = self._kernel_of(rows), self.dual[rows]
        kind = 0 if local.sees_single_scores else 1
        steps = tuning.steps_per_example[kind]
        max_steps = max(1, min(steps * len(rows), tuning.burst // len(rows)))
        new, visits = self.loop.improve(
            rows, K, old, self.H[rows], Burst(tuning.reduction, max_steps, tuning.negative_curvature)
        )
        change = local.coefficients(new) - local.coefficients(old)
        moved = np.flatnonzero(change.any(axis=1))
        self.dual[rows] = new
        self.R[rows] += change
        self.gram.add_product(rows[moved], change[moved], self.H)
        if self.problem.fit_intercept:
            self.intercept = central_intercept(self.losses, self.dual, self.H, guess=self.intercept)
        self.exact = False
        self.progress.count("sweep", tuning.step_cost[kind] * visits)
        self.progress.count("product", tuning.update_cost * self.H.size * len(moved))
        self.progress.count("entry", tuning.round_cost * self.H.size)
        self.progress.count("call", tuning.round_calls)

    def conclusion(self, is_within: bool) -> tuple[HingePoint, Certificate]:
        """Return the point and its certificate; in passing where only the work allotted is done."""
        if self.progress.status is Status.WORK_LIMIT and not is_within:
            return self.unfinished()
        return self.certified(use_cached_scores=self.is_lazy and not is_within)


def _spread(losses: PolyhedralLosses, size: int) -> NDArray[np.intp]:
    """Return examples of all classes, in proportion to their sizes."""
    places = np.linspace(0, losses.n_examples - 1, size).astype(np.intp)
    return np.argsort(losses.block_labels, kind="stable")[places]
