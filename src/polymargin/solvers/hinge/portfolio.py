"""The loop over methods: each takes the best point on within its budget, until one is within the tolerance."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

from polymargin.problems.hinge import HingePoint, HingeProblem
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
from polymargin.solvers.policy import Policy, Stage

LEFT = (Status.STALLED, Status.WORK_LIMIT, Status.NUMERICAL_ERROR)
"""Why a method is left for the next one; a limit of the user's ends the loop."""


class Portfolio:
    """The methods that the policy names, one after the other.

    Parameters
    ----------
    solver : "auto", the name of a method or a solver
    policy : Policy
    """

    name = "auto"

    def __init__(self, solver: Any = "auto", policy: Policy | None = None):
        self.solver = solver
        self.policy = Policy() if policy is None else policy

    def accepts(self, problem: Any) -> Accepted:
        """Return True if the solver can take `problem`, else the reason why not."""
        return accepts_kinds(problem, HingeProblem)

    def solve(
        self,
        problem: HingeProblem,
        settings: Settings,
        *,
        start: HingePoint | None = None,
        observer: Observer | None = None,
    ) -> Solution[HingePoint]:
        """Solve `problem` by one method after the other until one reaches the tolerance."""
        stages: Sequence[Stage] = self.policy.stages_of(self.solver, problem)
        best: Solution[HingePoint] | None = None
        with Progress(settings, observer, method=self.name) as progress:
            for stage in stages:
                found = stage.method.solve(
                    problem,
                    self._within(settings, progress, stage),
                    start=start if best is None else best.point,
                    observer=_continued(progress),
                )
                progress.take(found, stage.predicted)
                if best is None or found.certificate.gap <= best.certificate.gap:
                    best = found
                if found.status not in LEFT or progress.out_of_time():
                    break
            assert best is not None
            return progress.finish(best.point, best.certificate)

    @staticmethod
    def _within(settings: Settings, progress: Progress, stage: Stage) -> Settings:
        """Return the settings of a stage: what is left of iterations and time, and its budget of work."""
        seconds = None if settings.time_limit is None else max(progress.seconds_left, 0.0)
        iterations = max(settings.max_iter - progress.iteration, 0)
        return replace(settings, max_iter=iterations, time_limit=seconds, work=stage.budget)


def _continued(progress: Progress) -> Callable[[Record], None]:
    """Return what records the iterations of a method behind those of the methods before it."""
    before = progress.iteration

    def note(record: Record) -> None:
        progress.iteration = before + record.iteration
        progress.record(record.primal, record.dual)

    return note
