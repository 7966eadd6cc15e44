"""The loop over methods: the policy names one and its budget, and it takes the best point so far on."""

from typing import Any

from polymargin.memory import keep_freed_tables
from polymargin.problems.hinge import HingePoint, HingeProblem
from polymargin.solvers.contract import (
    Accepted,
    Observer,
    Progress,
    Settings,
    Solution,
    Status,
    accepts_kinds,
)
from polymargin.solvers.hinge.state import State
from polymargin.solvers.policy import Policy

LIMITS = (Status.MAX_ITER, Status.TIME_LIMIT, Status.INTERRUPTED)
"""Limits of the user's, which end the loop; for any other reason a method is left for the next one."""


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
        keep_freed_tables()
        chosen = self.policy.chosen(self.solver, problem)
        with Progress(settings, observer, method=self.name) as progress:
            state = State(
                problem, progress, start, self.policy.stagnation(), self.policy.gram_rows, self.policy.pace_rounds
            )
            for stage in self.policy.stages(state, chosen):
                found = stage.method.solve(
                    state.problem_of(stage),
                    state.settings_of(stage),
                    start=state.start,
                    observer=state.observer_of(stage),
                )
                state.take(found, stage)
                if found.status in LIMITS:
                    break
            return progress.finish(*state.conclusion())
