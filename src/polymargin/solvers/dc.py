"""The DC algorithm: a truncated machine as a sequence of convex ones.

The concave part of the objective is replaced by its tangent at the current scores, and the convex rest solved. The
objective never rises by more than the gap of a step, and the algorithm ends when the tangent repeats itself, after
finitely many steps, at a stationary point.

Reference: An, L. T. H. & Tao, P. D. (1997). Solving a class of linearly constrained indefinite quadratic problems
by d.c. algorithms. Journal of Global Optimization 11, 253-285.
"""

from typing import Any

import numpy as np

from polymargin.problems.robust import PartitionedRobust, RobustPoint, RobustProblem
from polymargin.solvers.contract import Observer, Progress, Settings, Solution, Solver, Status


class DCAlgorithm:
    """DC from one start; `convex` solves the steps, at most `max_steps` of them."""

    def __init__(self, convex: Solver, max_steps: int):
        self.convex = convex
        self.max_steps = max_steps

    def solve(
        self,
        problem: RobustProblem | PartitionedRobust,
        settings: Settings,
        *,
        start: Any = None,
        observer: Observer | None = None,
    ) -> Solution[RobustPoint]:
        """Run from the scores `start` (n, k); from the untruncated solution if None.

        Scores of a problem in partitions are blocks. The history holds the objective after every step; limits on
        iterations in `settings` are the steps'.
        """
        tangent: Any = None if start is None else problem.linearise(start)
        warm = None if tangent is None else problem.vertices(tangent)
        n_pairs = problem.n_pairs
        lowest, point = np.inf, RobustPoint(problem.vertices(None), None)
        with Progress(Settings(settings.tol, self.max_steps, settings.time_limit), observer) as progress:
            for _ in progress:
                left = None if settings.time_limit is None else max(progress.seconds_left, 1e-3)
                step_settings = Settings(0.1 * settings.tol, settings.max_iter, left)
                step = self.convex.solve(problem.convex_step(tangent), step_settings, start=warm)
                reached = RobustPoint(step.point, tangent)
                F: Any
                F, objective = problem.reached(reached)
                if step.status is not Status.SOLVED and objective > lowest:
                    progress.status = step.status
                    break
                lowest, point = objective, reached
                progress.record(objective, objective - (step.certificate.primal - step.certificate.dual))
                if np.isneginf(problem.truncation):
                    progress.status = step.status
                    break
                off_by = 0.1 * settings.tol * max(1.0, abs(objective)) / n_pairs
                following: Any = problem.linearise(F, tangent, off_by)
                if problem.is_repeated(following, tangent):
                    progress.status = step.status
                    break
                tangent = following
                warm = problem.vertices(tangent)
        return progress.finish(point, problem.certify(point))
