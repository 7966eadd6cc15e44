"""What goes into a solver and what comes out of it, and the one clock that stops it."""

import math
import signal
import threading
import time
from bisect import bisect_left
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from enum import Enum
from typing import Any, Generic, Literal, Protocol, TypeVar

from polymargin.problems.certificate import Certificate
from polymargin.solvers.effort import RATES, Kind, Operations
from polymargin.solvers.trace import Trace, TraceRow
from polymargin.solvers.watch import Watch, current_watch

Point = TypeVar("Point")


class Status(Enum):
    """Why a solver stopped; each value is a sentence for the user."""

    SOLVED = "The certified gap is within the tolerance."
    MAX_ITER = "The limit max_iter was reached before the tolerance."
    TIME_LIMIT = "The time limit was reached before the tolerance."
    STALLED = "No further progress was possible in floating-point arithmetic."
    INTERRUPTED = "The fit was interrupted; the best feasible point was kept."
    WORK_LIMIT = "The work allotted to the method was done before the tolerance."
    NUMERICAL_ERROR = "The linear algebra broke down."


class Interrupted(KeyboardInterrupt):
    """Ctrl-C, pressed while a solver ran: the solver has come to rest at a feasible point, and certified it.

    Who has a use for the point, as a fit that can store it, catches this and raises it again afterwards; for
    everybody else it is a KeyboardInterrupt.
    """

    def __init__(self, solution: "Solution"):
        super().__init__(f"{Status.INTERRUPTED.value} Its relative gap is {solution.certificate.gap:.3g}.")
        self.solution = solution
        self.stored_by: Any = None

    def __reduce__(self) -> tuple:
        return type(self), (self.solution,)


@dataclass(frozen=True, slots=True)
class Settings:
    """When to stop: relative gap, number of (outer) iterations, seconds.

    The `time_limit` of a solver counts from its start; a clock that was `started` stops all solvers at `until`, so
    that what is done before and between them counts, too. With the objective of a `reference` point, a step of a
    longer algorithm may also stop when it has made most of the improvement on that point that is provably
    possible. `work` limits the counted work, in the seconds that it stands for (see `effort`): who calls several
    methods allots it.
    """

    tol: float = 1e-4
    max_iter: int = 10_000
    time_limit: float | None = None
    reference: float | None = None
    work: float | None = None
    remainder: float = 0.5
    judged_after: float = 0.05
    hopeless: float = 0.5
    until: float = math.inf

    def started(self) -> "Settings":
        """Return the settings of a fit that begins now: the time limit is that of everything in it."""
        return self if self.time_limit is None else replace(self, until=time.perf_counter() + self.time_limit)

    @property
    def is_over(self) -> bool:
        """Whether the clock that was started has run down."""
        return time.perf_counter() >= self.until

    def tolerance(self, primal: float) -> float:
        """Return the relative gap that is small enough at a given objective."""
        if self.reference is None:
            return self.tol
        return max(self.tol, self.remainder * (self.reference - primal) / max(1.0, abs(primal)))


@dataclass(frozen=True, slots=True)
class Record:
    """One line of a solver's history; `work` is what was counted until then."""

    iteration: int
    primal: float
    dual: float
    seconds: float
    work: float = 0.0

    @property
    def gap(self) -> float:
        """Relative gap as the solver saw it."""
        return (self.primal - self.dual) / max(1.0, abs(self.primal))


Observer = Callable[[Record], None]


@dataclass(frozen=True, slots=True)
class Solution(Generic[Point]):
    """A point, why the solver stopped there, what the point is provably worth, and which methods led to it."""

    point: Point
    status: Status
    certificate: Certificate
    n_iter: int
    seconds: float
    history: tuple[Record, ...] = ()
    trace: Trace = field(default_factory=Trace)


Accepted = Literal[True] | str
"""True, or the reason why a solver cannot take a problem, in words that may follow a colon."""


def accepts_kinds(problem: Any, *kinds: type) -> Accepted:
    """Return True if `problem` is of one of the `kinds`, else the reason that says which they are."""
    if isinstance(problem, kinds):
        return True
    return f"it takes a {' or '.join(kind.__name__ for kind in kinds)}, not a {type(problem).__name__}."


def at_rest(solve: Callable[..., "Solution[Point]"], *arguments: Any, **named: Any) -> "Solution[Point]":
    """Return what `solve` returns, or the point at which Ctrl-C brought it to rest: its status tells."""
    try:
        return solve(*arguments, **named)
    except Interrupted as stop:
        return stop.solution


class Solver(Protocol):
    """One algorithm for one kind of problem."""

    @property
    def name(self) -> str:
        """What users call it."""
        ...

    def accepts(self, problem: Any) -> Accepted:
        """Return True if the solver can take `problem`, else the reason why not."""
        ...

    def solve(
        self, problem: Any, settings: Settings, *, start: Any = None, observer: Observer | None = None
    ) -> Solution:
        """Solve `problem`, from `start` where given."""
        ...


class Progress:
    """Counts iterations and time for a solver, keeps its history and says when to stop.

    A solver opens it as a context, loops ``for iteration in progress:`` and leaves the loop itself when it has
    converged; the loop ends early when a limit is reached or Ctrl-C was pressed, and `status` then says which.
    While the context is open Ctrl-C only raises a flag, so that no state is ever left half-updated; a second
    Ctrl-C acts at once. A solver that another one calls stops by the flag of the outer one. At the end of the
    context a Ctrl-C that was flagged becomes an `Interrupted`, with the solution where there is one; the end of a
    `Watch` does the same. The trace of the solution has one row, of `method`, unless the solver keeps rows of its
    own in `trace`.
    """

    def __init__(self, settings: Settings, observer: Observer | None = None, *, method: str = "unnamed"):
        self.settings = settings
        self.method = method
        self.observer = observer
        self.started = time.perf_counter()
        limit = math.inf if settings.time_limit is None else settings.time_limit
        self._deadline = min(self.started + limit, settings.until)
        self.iteration = 0
        self.interrupted = False
        self.status = Status.MAX_ITER
        self.history: list[Record] = []
        self.trace: list[TraceRow] = []
        self.work = 0.0
        self._previous_handler: Any = None
        self._outer: Progress | None = None
        self._watch: Watch | None = None
        self._tells_watch = False
        self._solution: Solution | None = None

    def __enter__(self) -> "Progress":
        self._watch = current_watch()
        if self._watch is not None and not self._watch.is_taken:
            self._watch.is_taken = self._tells_watch = True
        if threading.current_thread() is threading.main_thread():
            handler = signal.getsignal(signal.SIGINT)
            owner = getattr(handler, "__self__", None)
            if handler is signal.default_int_handler:
                self._previous_handler = signal.signal(signal.SIGINT, self._interrupt)
            elif isinstance(owner, Progress):
                self._outer = owner
        return self

    def __exit__(self, *exception: object) -> None:
        ended = False
        if self._watch is not None and self._tells_watch:
            self._watch.is_taken = False
            ended = self._watch.ended
        if self._previous_handler is not None:
            signal.signal(signal.SIGINT, self._previous_handler)
            ended = ended or self.interrupted
        if ended and exception[0] is None:
            raise KeyboardInterrupt if self._solution is None else Interrupted(self._solution)

    def _interrupt(self, signum: int, frame: Any) -> None:
        if self.interrupted:
            raise KeyboardInterrupt
        self.interrupted = True

    @property
    def seconds(self) -> float:
        """Seconds since the solver started."""
        return time.perf_counter() - self.started

    @property
    def seconds_left(self) -> float:
        """Seconds until the time limit; infinite without one."""
        return self._deadline - time.perf_counter()

    def _is_interrupted(self) -> bool:
        return (
            self.interrupted
            or (self._outer is not None and self._outer.interrupted)
            or (self._watch is not None and self._watch.ended)
        )

    def out_of_time(self) -> bool:
        """Tell whether to stop now, and note why; for use between the bursts of one long iteration."""
        if self._is_interrupted():
            self.status = Status.INTERRUPTED
        elif self.seconds_left <= 0:
            self.status = Status.TIME_LIMIT
        elif self.settings.work is not None and self.work >= self.settings.work:
            self.status = Status.WORK_LIMIT
        else:
            return False
        return True

    def __iter__(self) -> Iterator[int]:
        for iteration in range(1, self.settings.max_iter + 1):
            if self.out_of_time():
                return
            self.iteration = iteration
            yield iteration

    def count(self, kind: Kind, operations: float) -> None:
        """Count operations of a kind."""
        self.work += RATES.seconds(kind, operations)

    def count_all(self, operations: Operations) -> None:
        """Count operations of several kinds."""
        self.work += RATES.work(operations)

    def record(self, primal: float, dual: float) -> Record:
        """Note the objectives of the current iteration and show them to the observer."""
        entry = Record(self.iteration, float(primal), float(dual), self.seconds, self.work)
        self.history.append(entry)
        if self.observer is not None:
            self.observer(entry)
        if self._watch is not None and self._tells_watch:
            self._watch.see(entry)
        return entry

    def take(self, solution: Solution, predicted: float | None) -> None:
        """Add what another solver did on behalf of this one: its trace, iterations, work and reason to stop.

        A method that goes on where it stopped keeps its row.
        """
        first, *others = solution.trace.rows
        self.trace += [replace(first, predicted=predicted), *others]
        if len(self.trace) > len(solution.trace) and self.trace[-1 - len(others) - 1].method == first.method:
            at = len(self.trace) - 1 - len(others)
            self.trace[at - 1 : at + 1] = [self.trace[at - 1].followed_by(self.trace[at])]
        self.iteration = sum(row.iterations for row in self.trace)
        self.work = sum(row.work or 0.0 for row in self.trace)
        self.status = solution.status

    def is_hopeless(self) -> bool:
        """Tell whether what is still to do, at the pace of late, is too large a part of the work allotted.

        What was done already is no reason to go on, nor one to stop.
        """
        limit, last = self.settings.work, self.history[-1]
        if limit is None or last.work < self.settings.judged_after * limit or last.gap <= self.settings.tol:
            return False
        return self.settings.hopeless * limit < self.work_to_go()

    def work_to_go(self) -> float:
        """Return the work to the tolerance at the pace of late; infinite without any.

        The pace is that of primal minus dual in the second half of the way so far: relative to a primal that is
        still large, the gap hardly changes.
        """
        last = self.history[-1]
        before = self.history[bisect_left(self.history, 0.5 * last.work, key=lambda record: record.work)]
        between, earlier = last.primal - last.dual, before.primal - before.dual
        if not earlier > between > 0.0:
            return math.inf
        nats = math.log(between / (self.settings.tol * max(1.0, abs(last.dual))))
        return nats * (last.work - before.work) / math.log(earlier / between)

    def finish(self, point: Point, certificate: Certificate) -> Solution[Point]:
        """Wrap up: a certificate within the tolerance is what makes a solution SOLVED."""
        tolerance = self.settings.tolerance(certificate.primal)
        status = Status.SOLVED if certificate.within(tolerance) else self.status
        if self._is_interrupted():
            status = Status.INTERRUPTED
        rows = self.trace or [
            TraceRow(self.method, self.iteration, certificate.primal, certificate.dual, self.work or None)
        ]
        last = replace(rows[-1], primal=certificate.primal, dual=certificate.dual)
        trace = Trace((*rows[:-1], last))
        solution = Solution(point, status, certificate, self.iteration, self.seconds, tuple(self.history), trace)
        self._solution = solution
        return solution
