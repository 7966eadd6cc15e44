"""The DC algorithm: a truncated machine as a sequence of convex ones.

The concave part of the objective is replaced by its tangent at the current scores, and the convex rest solved. The
objective never rises by more than the gap of a step, and the algorithm ends when the tangent repeats itself, after
finitely many steps, at a stationary point.

Reference: An, L. T. H. & Tao, P. D. (1997). Solving a class of linearly constrained indefinite quadratic problems
by d.c. algorithms. Journal of Global Optimization 11, 253-285.
"""

import numpy as np
from numpy.typing import NDArray

from polymargin.problems.hinge import HingePoint
from polymargin.problems.robust import Linearisation, RobustPoint, RobustProblem
from polymargin.solvers.contract import Observer, Progress, Settings, Solution, Solver, Status


class DCAlgorithm:
    """DC from one start; `convex` solves the steps, at most `max_steps` of them."""

    def __init__(self, convex: Solver, max_steps: int):
        self.convex = convex
        self.max_steps = max_steps

    def solve(
        self,
        problem: RobustProblem,
        settings: Settings,
        *,
        start: NDArray[np.float64] | None = None,
        observer: Observer | None = None,
    ) -> Solution[RobustPoint]:
        """Run from the scores `start` (n, k); from the untruncated solution if None.

        The history holds the objective after every step; limits on iterations in `settings` are the steps'.
        """
        tangent = None if start is None else problem.linearise(start)
        warm = None if tangent is None else _vertices(problem, tangent)
        n_pairs = np.count_nonzero(problem.weight)
        lowest, point = np.inf, RobustPoint(_vertices(problem, None), None)
        with Progress(Settings(settings.tol, self.max_steps, settings.time_limit), observer) as progress:
            for _ in progress:
                left = None if settings.time_limit is None else max(progress.seconds_left, 1e-3)
                step_settings = Settings(0.1 * settings.tol, settings.max_iter, left)
                step = self.convex.solve(problem.convex_step(tangent), step_settings, start=warm)
                reached = RobustPoint(step.point, tangent)
                F, objective = problem.evaluate(problem.coefficients(reached), step.point.intercept)
                if step.status is not Status.SOLVED and objective > lowest:
                    progress.status = step.status
                    break
                lowest, point = objective, reached
                progress.record(objective, objective - (step.certificate.primal - step.certificate.dual))
                if np.isneginf(problem.truncation):
                    progress.status = step.status
                    break
                off_by = 0.1 * settings.tol * max(1.0, abs(objective)) / n_pairs
                following = problem.linearise(F, tangent, off_by)
                if following.equals(tangent):
                    progress.status = step.status
                    break
                tangent = following
                warm = _vertices(problem, tangent)
        return progress.finish(point, problem.certify(point))


def _vertices(problem: RobustProblem, tangent: Linearisation | None) -> HingePoint:
    """Dual start of a step: a truncated pair at its partner, which cancels its tilt, another at its own class."""
    losses = problem.losses
    dual = np.zeros((len(losses.weight), losses.n_classes))
    slot = losses.anchor if tangent is None else np.where(tangent.truncated, tangent.partner, losses.anchor)
    dual[np.arange(len(slot)), slot] = losses.weight
    return HingePoint(dual, np.zeros(losses.n_classes))
