"""How far a solution has come: what the policy looks at, and what the next method starts from."""

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from polymargin.gram import FeatureGram, LazyGram
from polymargin.problems.certificate import Certificate
from polymargin.problems.hinge import HingePoint, HingeProblem, boxes, polyhedral
from polymargin.solvers.contract import Progress, Record, Settings, Solution, Solver, Status
from polymargin.solvers.hinge.feasibility import feasible, on_face
from polymargin.solvers.hinge.kernel_point import ScoredPoint, first_dual, held_in_memory
from polymargin.solvers.stagnation import Stagnation


@dataclass(frozen=True, slots=True)
class Stage:
    """A method, and what it is given.

    Attributes
    ----------
    method : the solver.
    predicted : work that it is expected to take; None: nobody knows.
    budget : work that it may do at most; None: no limit.
    tol : relative gap at which it stops; None: that of the settings.
    on_matrix : whether it works on the kernel matrix, also of features.
    from_inside : whether its point lies inside its bounds: the next method starts from the face beside it.
    goes_on : whether it runs in slices, of which the records tell its pace.
    """

    method: Solver
    predicted: float | None = None
    budget: float | None = None
    tol: float | None = None
    on_matrix: bool = False
    from_inside: bool = False
    goes_on: bool = False


class State:
    """The best point so far, the point to go on from, and the work that led there.

    Parameters
    ----------
    problem : HingeProblem
    progress : of the whole solution.
    start : HingePoint or None
    stagnation : judges the method that runs in slices.
    matrix_rows : rows up to which the kernel matrix of features is formed.
    pace_rounds : records that tell the pace of that method.
    """

    def __init__(
        self,
        problem: HingeProblem,
        progress: Progress,
        start: HingePoint | None,
        stagnation: Stagnation,
        matrix_rows: int,
        pace_rounds: int,
    ):
        self.problem, self.progress, self.start = problem, progress, start
        self.stagnation, self.matrix_rows = stagnation, matrix_rows
        self.best: Solution[HingePoint] | None = None
        self.start_dual = -np.inf
        self.last = ""
        self.work_after: dict[str, float] = {}
        self.trail: deque[Record] = deque(maxlen=pace_rounds)

    @cached_property
    def on_matrix(self) -> HingeProblem:
        """The problem on its kernel matrix, which is formed where there are features."""
        return replace(self.problem, gram=held_in_memory(self.problem.gram, self.matrix_rows))

    @property
    def has_matrix(self) -> bool:
        """Whether the kernel matrix is there already, given or formed by now."""
        return "on_matrix" in self.__dict__ or not isinstance(self.problem.gram, FeatureGram)

    @property
    def tol(self) -> float:
        """The relative gap asked for."""
        return self.progress.settings.tol

    @property
    def gap(self) -> float:
        """The smallest relative gap so far."""
        return np.inf if self.best is None else self.best.certificate.gap

    @property
    def is_within(self) -> bool:
        """Whether the best point is within the tolerance."""
        if self.best is None:
            return False
        certificate = self.best.certificate
        return certificate.within(self.progress.settings.tolerance(certificate.primal))

    @property
    def is_settled(self) -> bool:
        """Whether the gap is small even beside an objective below one, to which `gap` is not relative."""
        if self.best is None:
            return False
        certificate = self.best.certificate
        return certificate.primal - certificate.dual <= self.tol * abs(certificate.primal)

    @property
    def work(self) -> float:
        """Work of all methods so far."""
        return self.progress.work

    def has_run(self, method: str) -> bool:
        """Tell whether a method has had its turn."""
        return method in self.work_after

    def work_since(self, method: str) -> float:
        """Return the work since a method had its last turn, all of it if it had none."""
        return self.work - self.work_after.get(method, 0.0)

    def work_to_go(self, exact: float) -> float:
        """Return the work that the method in slices has still to do at its pace; below `exact` is rounding."""
        if len(self.trail) < 2:
            return np.inf
        first, last = self.trail[0], self.trail[-1]
        end = max(last.gap, exact)
        if first.gap <= end:
            return np.inf
        pace = np.log(first.gap / end) / max(last.work - first.work, 1e-9)
        return float(np.log(max(self.gap, self.tol) / self.tol) / pace)

    def face(self) -> tuple[int, int]:
        """Count the dual variables that are free or should be, and the examples that have any."""
        point, losses = self._scored(), polyhedral(self.problem.losses, "The size of a face")
        face = losses.open_face(point.dual, point.scores + point.intercept)
        return int(face.sum()), int(face.any(axis=1).sum())

    def free(self) -> tuple[int, int]:
        """Count the dual variables between their bounds, and the examples that have any; none where not known."""
        if self.start is None or not self.problem.losses.sees_single_scores:
            return 0, 0
        upper = boxes(self.problem.losses, "The free variables").upper
        free = (self.start.dual > 0.0) & (self.start.dual < upper)
        return int(np.count_nonzero(free)), int(np.count_nonzero(free.any(axis=1)))

    def active_share(self) -> float:
        """Return the part of the examples that have dual variables above zero, after one record of a sample."""
        point = self._scored()
        dual = point.dual[point.rows] if len(self.trail) == 1 and len(point.rows) else point.dual
        return float((dual > 0.0).any(axis=1).mean())

    def bounded_share(self) -> float:
        """Return the part of the dual variables above zero that are at their upper bounds, in boxes."""
        dual, upper = self._scored().dual, boxes(self.problem.losses, "The share of bounds").upper
        above = int(np.count_nonzero(dual > 0.0))
        return float(np.count_nonzero((dual >= upper) & (upper > 0.0))) / max(above, 1)

    def _scored(self) -> ScoredPoint:
        """Return the point to go on from, with its scores, which are kept."""
        problem, start = self.on_matrix, self.start
        if not isinstance(start, ScoredPoint):
            dual = first_dual(problem) if start is None else feasible(problem, start.dual)
            intercept = np.zeros(problem.losses.n_classes) if start is None else start.intercept
            R = problem.coefficients(dual)
            nothing = np.empty(0, dtype=np.intp)
            H = problem.gram.matmul(R)
            start = ScoredPoint(dual, intercept, R, H, problem.gram, problem.tilt, True, nothing)
            self.start = start
        return start

    def problem_of(self, stage: Stage) -> HingeProblem:
        """Return the problem as a stage sees it."""
        return self.on_matrix if stage.on_matrix else self.problem

    def settings_of(self, stage: Stage) -> Settings:
        """Return the settings of a stage: what is left of iterations and time, its budget and its tolerance."""
        settings = self.progress.settings
        seconds = None if settings.time_limit is None else max(self.progress.seconds_left, 0.0)
        return replace(
            settings,
            tol=settings.tol if stage.tol is None else stage.tol,
            max_iter=max(settings.max_iter - self.progress.iteration, 0),
            time_limit=seconds,
            work=stage.budget,
        )

    def observer_of(self, stage: Stage) -> Callable[[Record], None]:
        """Return what records the iterations of a stage behind those of the stages before it."""
        iteration, work = self.progress.iteration, self.progress.work

        def note(record: Record) -> None:
            self.progress.iteration, self.progress.work = iteration + record.iteration, work + record.work
            seen = self.progress.record(record.primal, record.dual)
            if stage.goes_on:
                self.trail.append(seen)
                self.stagnation.sets_in(seen)

        return note

    def take(self, found: Solution[HingePoint], stage: Stage) -> None:
        """Take in what a stage has found; the next one starts from the point of the highest dual objective.

        A point whose certificate proves nothing, as it is not feasible or its dual lies above its primal, is put
        right first. Where that does not help it is no start, and the best only while there is no other.
        """
        self.progress.take(found, stage.predicted)
        self.last = stage.method.name
        self.work_after[self.last] = self.work
        if not found.certificate.is_proof:
            found = self._put_right(found, stage)
        if self.best is None or _rank(found.certificate) <= _rank(self.best.certificate):
            self.best = found
        if not found.certificate.is_proof:
            return
        point, certificate = found.point, found.certificate
        if stage.from_inside:
            point = on_face(self.problem_of(stage), point)
            certificate = self.problem_of(stage).certify(point)
        if certificate.is_proof and certificate.dual >= self.start_dual:
            self.start, self.start_dual = point, certificate.dual

    def _put_right(self, found: Solution[HingePoint], stage: Stage) -> Solution[HingePoint]:
        """Return what was found at the feasible point next to it, measured afresh."""
        problem, point = self.problem_of(stage), found.point
        if not problem.losses.is_compiled or not np.isfinite(point.dual).all():
            return found
        plain = HingePoint(feasible(problem, point.dual), point.intercept)
        # a stop cannot wait for all rows of a matrix that is not kept
        kept = point.scores if isinstance(point, ScoredPoint) and isinstance(problem.gram, LazyGram) else None
        return replace(found, point=plain, certificate=problem.certify(plain, kept))

    def conclusion(self) -> tuple[HingePoint, Certificate]:
        """Return the best point and what it is worth on the problem given, measured by scores computed at once."""
        if self.best is None:
            raise RuntimeError("No method has run.")
        point = self.best.point
        if self.progress.status in (Status.SOLVED, Status.WORK_LIMIT):  # of the last stage, not of the whole
            self.progress.status = Status.STALLED
        if not isinstance(point, ScoredPoint):
            return point, self.best.certificate
        if point.exact and point.gram is self.problem.gram:
            return HingePoint(point.dual, point.intercept), self.best.certificate
        plain = HingePoint(feasible(self.problem, point.dual), point.intercept)
        # a stop cannot wait for all rows of a matrix that is not kept: the scores kept are right enough
        keeps_waiting = isinstance(self.problem.gram, LazyGram) and not self.is_within
        return plain, self.problem.certify(plain, point.scores if keeps_waiting else None)


def _rank(certificate: Certificate) -> tuple[bool, float]:
    """Return what orders certificates: proofs first, the smallest gap first."""
    return not certificate.is_proof, certificate.gap
