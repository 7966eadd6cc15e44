"""Decomposition for hinge machines with a kernel: exact steps on a few hundred examples at a time.

The frame, the same for every loss: choose the examples that the certificate blames most, improve them on their
own block of the kernel matrix (an `InnerLoop`), update all scores by one product, measure the gap. Where the
free variables are few enough, Newton steps (`active_set`) replace the slow end; where they are very many,
splitting or an interior point takes over.
"""

from collections import deque
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from polymargin.gram import FeatureGram, LazyGram, kernel_root
from polymargin.problems.certificate import Certificate
from polymargin.problems.hinge import HingePoint, HingeProblem, PolyhedralLosses, boxes
from polymargin.solvers.contract import Accepted, Observer, Progress, Settings, Solution, Status, accepts_kinds
from polymargin.solvers.hinge._kernel_point import KernelPoint
from polymargin.solvers.hinge.active_set import polish
from polymargin.solvers.hinge.balance import balanced
from polymargin.solvers.hinge.class_blocks import is_classwise, operations
from polymargin.solvers.hinge.intercept import central_intercept
from polymargin.solvers.hinge.interior_point import InteriorPoint
from polymargin.solvers.hinge.kernel_interior import InsidePoint, KernelInteriorPoint, seconds_to_solve
from polymargin.solvers.hinge.lee import LeeLoop
from polymargin.solvers.hinge.relative import RelativeLoop
from polymargin.solvers.hinge.splitting import Splitting, seconds_to_split
from polymargin.solvers.hinge.working_set import Burst, InnerLoop

EXACT = 1e-12
"""Relative gap beyond which there is nothing but rounding error."""
SMALL = 1000
"""Examples up to which Newton steps are cheap enough to end without splitting."""
FINE = 1e-6
"""Tolerance from which on Newton steps go to rounding error, which takes them one or two more."""
COARSE = 1e-3
"""Tolerance from which on the interior point on the matrix itself comes near sooner than Newton steps."""
CHEAP_SECONDS = 0.1
MAX_FREE = 3000
SECONDS_A_STEP, SECONDS_AN_UPDATE, SECONDS_A_ROUND = 1.2e-9, 0.2e-9, 20e-9
"""What one core takes, about, for a class of an example: in a step of an inner loop, an update, a round's rest."""
BURST = 2**25
"""Steps times examples of one stretch of native work: a small part of a second."""
INTERIOR_TOL = 1e-5
"""Relative gap that the interior point on the matrix itself reaches in good time."""
ROUNDS_TO_JUDGE, FREE_TO_SPLIT = 4, 3.0
"""Rounds, the start counted, after which the pace of the working sets is believed; free variables an example from
which on splitting, which moves all of them in every step, is the better way."""
TAIL = 2.0
"""Working sets become slower towards the end: how often what they promise they take."""
PATIENT_ROUNDS = 300
"""Rounds after which a gap that has not fallen by a tenth is as good as rounding lets it be."""
MAX_UNKNOWNS = 2500
INTERIOR_ITERATIONS = 20


class Decomposition:
    """Solve a hinge problem by working sets of `working_set` examples."""

    name = "decomposition"

    def __init__(self, working_set: int = 1024):
        self.working_set = working_set

    def accepts(self, problem: Any) -> Accepted:
        """Return True if the solver can take `problem`, else the reason why not."""
        if (is_hinge := accepts_kinds(problem, HingeProblem)) is not True:
            return is_hinge
        losses = problem.losses
        if not losses.is_compiled:
            return "its losses must be hinges or maxima of single scores or of differences of scores."
        if not (losses.sees_single_scores or losses.sees_differences):
            return "it takes one maximum per example."
        return True

    def solve(
        self,
        problem: HingeProblem,
        settings: Settings,
        *,
        start: HingePoint | None = None,
        observer: Observer | None = None,
    ) -> Solution[HingePoint]:
        """Solve `problem` to a relative gap of ``settings.tol``, from the dual of `start` where given."""
        with Progress(settings, observer, method=self.name) as progress:
            run = _Run(problem, progress, start, self.working_set)
            for _ in progress:
                blame = run.blame()
                if run.converged(blame):
                    break
                if run.splitting_pays():
                    run.split()
                elif run.interior_pays():
                    run.interior()
                elif run.newton_pays():
                    run.newton(max(run.work - run.newton_at, CHEAP_SECONDS))
                else:
                    run.improve(run.choose(blame))
                if run.stalled():
                    progress.status = Status.STALLED
                    break
            return progress.finish(*run.conclusion())


def inner_loop(problem: HingeProblem) -> InnerLoop:
    """Choose the inner loop of a problem's losses."""
    if problem.losses.sees_single_scores:
        return LeeLoop(boxes(problem.losses, "The loop of single scores"), problem.fit_intercept)
    return RelativeLoop(problem)


class _Run(KernelPoint):
    """One solution in the making: the point, and how it came there."""

    def __init__(self, problem: HingeProblem, progress: Progress, start: HingePoint | None, size: int):
        super().__init__(problem, progress, inner_loop(problem), start)
        n, takes_all = self.losses.n_examples, self.loop.takes_all and self.whole_matrix is not None
        # rows that have to be computed first: half as many, so that a stop need not wait long
        self.size = n if takes_all else min(size // 2 if isinstance(self.gram, LazyGram) else size, n)
        self.rows = np.empty(0, dtype=np.intp)
        self.method = ""
        self.gap, self.best_dual = np.inf, -np.inf
        self.best_gap, self.best_gap_at = np.inf, 0
        # counted in about the seconds of one core, not measured: the same data must always go the same way
        self.work = 0.0
        self.trail: deque[tuple[float, float]] = deque(maxlen=6)
        self.rounds_without_gain = 0
        self.within_tolerance = False
        self.newton_at, self.newtons, self.rounds_since_newton = 0.0, 0, 0
        self.tried_splitting = self.tried_interior = False
        self.central = start if isinstance(start, InsidePoint) else None
        self.inside: tuple[HingePoint, Certificate] | None = None

    def converged(self, blame: NDArray[np.float64]) -> bool:
        """Note the objectives; tell whether the tolerance is reached, and passed as far as is cheap."""
        dual = self.objective()
        self.progress.work = self.work
        record = self.progress.record(dual + float(blame.sum()), dual)
        self.gap = record.gap
        if self.method:
            self.progress.note(self.method, record.primal, record.dual)
        self.trail.append((self.gap, self.work))
        self.rounds_without_gain = 0 if dual > self.best_dual + 1e-15 * abs(dual) else self.rounds_without_gain + 1
        self.best_dual = max(self.best_dual, dual)
        tol = self.progress.settings.tol
        if self.gap <= EXACT or (self.inside is not None and self.inside[1].within(tol)):
            return True
        if self.gap > tol:
            return False
        if self._active_set_is_cheap():
            self.newton(max(0.1 * self.work, 0.3 * CHEAP_SECONDS))
            return self.converged(self.blame())
        return self._is_fresh_enough()

    def _active_set_is_cheap(self) -> bool:
        """Tell, once, whether Newton steps to find the active set cost little beside what it took to get near."""
        if self.within_tolerance:
            return False
        self.within_tolerance = True
        return self._newton_estimate() <= max(0.1 * self.work, 0.3 * CHEAP_SECONDS)

    def _is_fresh_enough(self) -> bool:
        """Tell whether the updated scores are right to the tolerance; if they may not be, compute them anew."""
        error = 1e-4 if isinstance(self.gram, LazyGram) else 1e-9
        if self.fresh or self.progress.settings.tol > error:
            return True
        self.refresh(self.dual)
        return self.converged(self.blame())

    def newton_pays(self) -> bool:
        """Tell whether a Newton step costs no more than the work since the last one, and than going on without."""
        if isinstance(self.gram, LazyGram):  # its steps pass over the whole matrix
            return False
        if self.progress.settings.tol >= COARSE and self._interior_applies():
            return False
        if self.gap > 0.05 or self.rounds_since_newton == 0:
            return False
        estimate = self._newton_estimate()
        spent = self.work - self.newton_at
        return estimate <= max(spent, 0.01) and 5.0 * estimate <= self._seconds_to_go()

    def _seconds_to_go(self) -> float:
        """Work that the working sets will take at the rate of the last rounds."""
        (first, began), (last, ended) = self.trail[0], self.trail[-1]
        pace = np.log(first / max(last, EXACT)) / max(ended - began, 1e-9)
        return float(np.log(self.gap / self.progress.settings.tol) / pace) if pace > 0 else np.inf

    def _newton_estimate(self) -> float:
        """Work that a Newton step takes, from the size of its face."""
        free, rows = self._size_of_face()
        if is_classwise(self.losses, free, max(rows, 1)):
            return 10.0 * operations(free, rows, self.losses.n_classes) / 2e10
        return 3.0 * free**3 / 1e10 if free <= MAX_FREE else np.inf

    def _size_of_face(self) -> tuple[int, int]:
        """Count the variables that are free or should be, and the examples that have any."""
        face = self.losses.open_face(self.dual, self.H + self.intercept)
        return int(face.sum()), int(face.any(axis=1).sum())

    def _ends_exactly(self) -> bool:
        """Tell whether the problem is so small that Newton steps take it to rounding error."""
        return self.losses.n_examples <= SMALL and self._newton_estimate() <= CHEAP_SECONDS

    def newton(self, work: float) -> None:
        """Replace the point by the result of Newton steps, which begin no face after so much `work`."""
        self.method = "active_set"
        self.dual = self.loop.repair(self.dual)
        tol = self.progress.settings.tol
        point, spent = polish(
            self.problem,
            HingePoint(self.dual, self.intercept),
            tol=0.01 * tol if tol > FINE else EXACT,
            work=work,
            max_walk=60 if self.tried_interior else 10,
            max_free=MAX_FREE,
            progress=self.progress,
        )
        self.newtons += 1
        self.refresh(point.dual)
        self.rounds_since_newton = 0
        self.work += spent
        self.newton_at = self.work

    def splitting_pays(self) -> bool:
        """Tell whether splitting, tried once, would take no more than the working sets have still to take."""
        if self.tried_splitting or len(self.trail) < ROUNDS_TO_JUDGE or not self._is_lee_in_memory():
            return False
        n, k = self.losses.n_examples, self.losses.n_classes
        free, rows = self._size_of_face()
        if free < FREE_TO_SPLIT * rows or self._ends_exactly():
            return False
        limit = self.progress.settings.time_limit
        # an early stop of splitting leaves nothing, so that it has to end well before the limit
        most = TAIL * self._seconds_to_go() if limit is None else min(TAIL * self._seconds_to_go(), 0.25 * limit)
        return seconds_to_split(n, k, self.progress.settings.tol) <= most

    def split(self) -> None:
        """Replace the point by that of splitting, unless the point at hand is better."""
        self.method = "splitting"
        self.tried_splitting = True
        tol = self.progress.settings.tol
        self.work += seconds_to_split(self.losses.n_examples, self.losses.n_classes, tol)
        problem, start = replace(self.problem, gram=self.gram), HingePoint(self.dual, self.intercept)
        self._go_to(Splitting().solve(problem, self._settings_within(tol), start=start).point.dual)

    def _is_lee_in_memory(self) -> bool:
        return isinstance(self.loop, LeeLoop) and self.whole_matrix is not None

    def interior_pays(self) -> bool:
        """Tell whether an interior point, tried once, would take no more than the work done so far or to come."""
        if self.tried_interior:
            return False
        if self.central is not None and self._interior_applies():  # what one has left is a start for the next
            return True
        if self.newtons == 0 and self.progress.iteration < 4:
            return False
        estimate = self._interior_estimate()
        if self._unknowns() <= MAX_UNKNOWNS:
            return estimate <= max(self.work, CHEAP_SECONDS)
        if not self._interior_applies():
            return False
        return 0.2 * estimate <= self.work and estimate <= TAIL * self._seconds_to_go()

    def _interior_applies(self) -> bool:
        """Tell whether an interior point would be one on the matrix itself."""
        return self._unknowns() > MAX_UNKNOWNS and self._is_lee_in_memory()

    def _unknowns(self) -> int:
        return self.losses.n_examples * (self.losses.n_classes - 1)

    def _interior_estimate(self) -> float:
        """Work that an interior point takes."""
        if self._unknowns() <= MAX_UNKNOWNS:
            return INTERIOR_ITERATIONS * self._unknowns() ** 3 / 3e10
        return seconds_to_solve(self.losses.n_examples, self.losses.n_classes)

    def interior(self) -> None:
        """Replace the point by that of an interior point: on a root of the matrix, or on the matrix itself."""
        self.method = "kernel_interior"
        self.tried_interior = True
        self.work += self._interior_estimate()
        if self._unknowns() > MAX_UNKNOWNS:
            settings = self.progress.settings
            tol = max(settings.tol, INTERIOR_TOL)
            problem = replace(self.problem, gram=self.gram)
            solution = KernelInteriorPoint().solve(problem, self._settings_within(tol), start=self.central)
            self._identify(solution.point)
            self.inside = solution.point, solution.certificate
            return
        self.method = "interior_point"
        problem = replace(self.problem, gram=FeatureGram(kernel_root(self.gram)))
        point = InteriorPoint().solve(problem, self._settings_within(1e-10)).point
        self._identify(point)
        self.newton(max(self.work - self.newton_at, CHEAP_SECONDS))
        certificate = self.problem.certify(point)
        if certificate.gap < self.certified()[1].gap:  # its face was not the right one
            self.inside = point, certificate

    def _settings_within(self, tol: float) -> Settings:
        return Settings(tol, 100, max(self.progress.seconds_left, 0.0))

    def _identify(self, point: HingePoint) -> None:
        """Go to the face next to an interior point, unless the point at hand is better."""
        F = self.gram.matmul(self.problem.coefficients(point.dual)) + point.intercept
        dual = self.losses.identified(point.dual, F)
        if self.problem.fit_intercept:  # what is missing is spread over all that is free, not filled into a few
            spread = balanced(self.problem, dual)
            dual = dual if spread is None else spread
        self._go_to(dual)

    def _go_to(self, dual: NDArray[np.float64]) -> None:
        """Go to a dual point, unless the point at hand is better."""
        before = self.dual
        self.refresh(dual)
        if self.objective() < self.best_dual:
            self.refresh(before)

    def choose(self, blame: NDArray[np.float64]) -> NDArray[np.intp]:
        """Return the next working set: extremes of every class, examples of most blame, and of the last set."""
        n = self.losses.n_examples
        if self.size == n:
            return np.arange(n)
        if not len(self.rows):
            self.rows = _spread(self.losses, self.size)
            return self.rows
        extremes = self.loop.extremes(
            self.dual, self.H, self.intercept, max(1, self.size // (8 * self.losses.n_classes))
        )
        blamed = np.argpartition(-blame, self.size // 2)[: self.size // 2]
        rows = np.union1d(extremes, blamed)
        old = np.setdiff1d(self.rows, rows)
        if len(rows) < self.size:
            old = old[np.argsort(-blame[old])][: self.size - len(rows)]
            rows = np.concatenate([rows, old])
        self.rows = rows
        return rows

    def improve(self, rows: NDArray[np.intp]) -> None:
        """Improve the examples `rows` on their own block of the kernel matrix, then update all scores."""
        self.method = "working_sets"
        local = self.losses.restricted(rows)
        K = self.whole_matrix if len(rows) == self.losses.n_examples else None
        K = np.ascontiguousarray(self.gram.block(rows, rows) if K is None else K)
        old = self.dual[rows]
        max_steps = max(1, min(10 * len(rows), BURST // len(rows)))
        new, steps = self.loop.improve(rows, K, old, self.H[rows], Burst(reduction=0.1, max_steps=max_steps))
        change = local.coefficients(new) - local.coefficients(old)
        moved = np.flatnonzero(change.any(axis=1))
        self.dual[rows] = new
        self.R[rows] += change
        self.gram.add_product(rows[moved], change[moved], self.H)
        if self.problem.fit_intercept:
            self.intercept = central_intercept(self.losses, self.dual, self.H, guess=self.intercept)
        self.fresh = False
        self.rounds_since_newton += 1
        self.work += self.losses.n_classes * (
            SECONDS_A_STEP * steps * len(rows) + (SECONDS_AN_UPDATE * len(moved) + SECONDS_A_ROUND) * len(self.H)
        )

    def stalled(self) -> bool:
        """Tell whether the dual has stopped rising, or the gap has stopped falling."""
        if self.gap < 0.9 * self.best_gap:
            self.best_gap, self.best_gap_at = self.gap, self.progress.iteration
        return self.rounds_without_gain > 20 or self.progress.iteration - self.best_gap_at > PATIENT_ROUNDS

    def conclusion(self) -> tuple[HingePoint, Certificate]:
        """Return the point with its class sums right to rounding, and its certificate.

        Where rows of the matrix are computed when needed, going over all of them takes longer than a stop may:
        a point that is not within the tolerance is measured by the scores kept, right to single precision.
        """
        in_haste = isinstance(self.gram, LazyGram) and self.gap > self.progress.settings.tol
        if not self.fresh:
            self.dual = self.loop.repair(self.dual)
            if self.problem.fit_intercept and not in_haste:
                self.intercept = central_intercept(self.losses, self.dual, self.H)
        point, certificate = self.certified(in_haste=in_haste)
        if self.inside is not None and self.inside[1].gap < certificate.gap:
            return self.inside
        return point, certificate


def _spread(losses: PolyhedralLosses, size: int) -> NDArray[np.intp]:
    """Return examples of all classes, in proportion to their sizes."""
    places = np.linspace(0, losses.n_examples - 1, size).astype(np.intp)
    return np.argsort(losses.block_labels, kind="stable")[places]
