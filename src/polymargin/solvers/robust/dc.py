"""The DC algorithm: a truncated machine as a sequence of convex ones.

The concave part of the objective is replaced by its tangent at the current scores, and the convex rest solved. The
objective never rises by more than the gap of a step, and the algorithm ends when the tangent repeats itself, after
finitely many steps, at a stationary point.

Only the last step is solved to the tolerance: the first one is a start, the others may leave part of their descent
undone. From a step's solution the search goes on along the same line for as long as the objective itself falls
(boosted DC), which saves a third of the steps.

References: An, L. T. H. & Tao, P. D. (1997). Solving a class of linearly constrained indefinite quadratic problems
by d.c. algorithms. Journal of Global Optimization 11, 253-285. Aragon Artacho, F. J., Fleming, R. M. T. & Vuong,
P. T. (2018). Accelerating the DC algorithm for smooth functions. Mathematical Programming 169, 95-118.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from polymargin.blocks import Blocks
from polymargin.gram import FeatureGram, pivoted_cholesky
from polymargin.problems.robust import PartitionedRobust, RobustPoint, RobustProblem
from polymargin.solvers.choice import chosen
from polymargin.solvers.contract import (
    Accepted,
    Observer,
    Progress,
    Settings,
    Solution,
    Solver,
    Status,
    accepts_kinds,
)
from polymargin.solvers.hinge.decomposition import Decomposition
from polymargin.solvers.hinge.interior_point import InteriorPoint, InteriorSequence
from polymargin.solvers.hinge.portfolio import Portfolio
from polymargin.solvers.robust.proximal_newton import ProximalNewton
from polymargin.solvers.robust.settings import DEFAULTS, RobustSettings


class DCAlgorithm:
    """DC from one start; `convex` solves the steps, at most `max_steps` of them, and gives its name to the trace.

    An interior point starts a step from a vertex, others from the solution of the last. It ends before the tangent
    repeats itself if a step lowers the objective by no more than this share of it, `least_descent`.
    """

    name = "dc_algorithm"

    def __init__(
        self,
        convex: Solver,
        max_steps: int,
        tuning: RobustSettings = DEFAULTS,
        *,
        least_descent: float = 0.0,
    ):
        self.convex, self.max_steps, self.tuning = convex, max_steps, tuning
        self.least_descent = least_descent

    def accepts(self, problem: Any) -> Accepted:
        """Return True if the solver can take `problem`, else the reason why not."""
        return accepts_kinds(problem, RobustProblem, PartitionedRobust)

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
        point, previous = RobustPoint(problem.vertices(None), None), None
        warm = None if tangent is None else problem.vertices(tangent)
        n_pairs = problem.n_pairs
        with Progress(replace(settings, max_iter=self.max_steps), observer, method=self.convex.name) as progress:
            for _ in progress:
                exactly = bool(np.isneginf(problem.truncation))
                constant = problem.constant_of(tangent)
                while True:
                    step_settings = _step_settings(
                        settings, progress, constant, previous, self.tuning, exactly=exactly
                    )
                    step = self.convex.solve(problem.convex_step(tangent), step_settings, start=warm)
                    progress.work += sum(row.work or 0.0 for row in step.trace)
                    progress.method = step.trace[-1].method
                    reached = RobustPoint(step.point, tangent)
                    here: Any = _scores_of(problem, reached)
                    ahead: Any = here if previous is None else here.boosted(problem, previous, self.tuning.boosts)
                    off_by = self.tuning.step_share * settings.tol * max(1.0, abs(here.objective)) / n_pairs
                    following: Any = problem.linearise(ahead.F, tangent, off_by)
                    settled = problem.is_repeated(following, tangent)
                    is_inside = isinstance(self.convex, InteriorPoint)
                    warm = problem.vertices(following) if is_inside else step.point
                    if exactly or not settled or step.certificate.within(self.tuning.step_share * settings.tol):
                        break
                    exactly = True
                if step.status is not Status.SOLVED and previous is not None:
                    progress.status = step.status
                    if here.objective > previous.objective:
                        break
                left = np.inf if previous is None else previous.objective - ahead.objective
                enough = left <= self.least_descent * abs(ahead.objective) and self.least_descent > 0.0
                point, previous = reached, ahead
                slack = step.certificate.primal - step.certificate.dual
                progress.record(here.objective, here.objective - slack)
                if settled or enough:
                    progress.status = step.status
                    break
                tangent = following
            return progress.finish(point, problem.certify(point))


def convex_solver(
    problem: RobustProblem, solver: Any = "auto", tuning: RobustSettings = DEFAULTS, until: float = math.inf
) -> Solver:
    """Choose the solver of the convex steps: by features where there are few, or the kernel's rank is low.

    Elsewhere a machine with one loss per example, as all are with utilities of right predictions alone, is one of
    Crammer and Singer with a linear term and goes to the hinge machines' methods, others to the proximal Newton
    method. Smooth losses always go to the interior point, on as many features as the kernel's rank needs, or as
    were found when ``time.perf_counter()`` reached `until`. A `solver` that a user asks for must accept a step.
    """
    gram, n_classes = problem.gram, problem.weight.shape[1]
    is_named = isinstance(solver, str) and solver not in ("auto", Decomposition.name, ProximalNewton.name)
    root = (
        pivoted_cholesky(gram, gram.n + 1, until=until) if is_named and not isinstance(gram, FeatureGram) else None
    )
    methods = (InteriorSequence(root), Decomposition(), ProximalNewton(tuning))
    asked = chosen(solver, methods, problem.convex_step())
    if asked is not None:
        return asked[0]
    at_most = tuning.interior_point_unknowns // (n_classes - 1)
    smooth = problem.loss != "hinge"
    if isinstance(gram, FeatureGram) and (gram.features.shape[1] < at_most or smooth):
        return InteriorSequence()
    most = min(max(gram.n // 4, tuning.small_problem // (n_classes - 1)), at_most, gram.n + 1)
    factor = pivoted_cholesky(gram, gram.n + 1 if smooth else most, until=until)
    if not factor.shape[1]:  # a kernel that knows nothing is that of a feature that is zero
        factor = np.zeros((gram.n, 1))
    if factor.shape[1] < most or smooth:
        return InteriorSequence(factor)
    return Portfolio() if problem.losses.sees_differences else ProximalNewton(tuning)


def _step_settings(
    settings: Settings,
    progress: Progress,
    constant: float,
    previous: Any,
    tuning: RobustSettings,
    *,
    exactly: bool,
) -> Settings:
    """Return when to stop a convex step: after most of its descent from the `previous` scores, or exactly.

    The step's objective is that of the algorithm less the `constant` of its tangent.
    """
    tol, reference = tuning.step_share * settings.tol, None
    if not exactly and previous is None:
        tol = max(tol, tuning.start_tol)
    elif not exactly and previous is not None:
        reference = previous.objective - constant
    left = None if settings.time_limit is None else max(progress.seconds_left, tuning.shortest_limit)
    return Settings(tol, settings.max_iter, left, reference)


def _scores_of(problem: RobustProblem | PartitionedRobust, point: RobustPoint) -> "_Scores | _PartitionedScores":
    """Evaluate a point."""
    if isinstance(problem, PartitionedRobust):
        return _PartitionedScores.of(problem, problem.weights(point), point.step.intercept)
    R = problem.coefficients(point)
    F, objective = problem.evaluate(R, point.step.intercept)
    return _Scores(R, F - point.step.intercept, F, objective)


def _farthest(objective_at: Callable[[float], float], objective: float, boosts: tuple[float, ...]) -> float:
    """Return the multiple of a step up to which the objective falls beyond its end; zero for none."""
    best = 0.0
    for length in boosts:
        value = objective_at(length)
        if value >= objective:
            break
        best, objective = length, value
    return best


@dataclass(frozen=True, slots=True)
class _Scores:
    """Coefficients R, kernel functions H and scores F of the training rows, and the objective there."""

    R: NDArray[np.float64]
    H: NDArray[np.float64]
    F: NDArray[np.float64]
    objective: float

    def boosted(self, problem: RobustProblem, previous: "_Scores", boosts: tuple[float, ...]) -> "_Scores":
        """Return the point beyond this one, on the line from the `previous`, up to which the objective falls."""
        dR, dH, dF = self.R - previous.R, self.H - previous.H, self.F - previous.F
        square, linear, constant = np.vdot(dR, dH), np.vdot(self.R, dH), np.vdot(self.R, self.H)

        def objective_at(length: float) -> float:
            penalty = 0.5 * float(constant + 2.0 * length * linear + length**2 * square)
            return penalty + problem.truncated_losses(self.F + length * dF)

        best = _farthest(objective_at, self.objective, boosts)
        if best == 0.0:
            return self
        return _Scores(self.R + best * dR, self.H + best * dH, self.F + best * dF, objective_at(best))


@dataclass(frozen=True, slots=True)
class _PartitionedScores:
    """The same of rows in partitions, by the weights W (n_features, k) and the intercept; F is in blocks."""

    W: NDArray[np.float64]
    intercept: NDArray[np.float64]
    F: Blocks
    objective: float

    @classmethod
    def of(
        cls, problem: PartitionedRobust, W: NDArray[np.float64], intercept: NDArray[np.float64]
    ) -> "_PartitionedScores":
        """Evaluate weights and intercept."""
        return cls(W, intercept, *problem.evaluate(W, intercept))

    def boosted(
        self, problem: PartitionedRobust, previous: "_PartitionedScores", boosts: tuple[float, ...]
    ) -> "_PartitionedScores":
        """Return the point beyond this one, on the line from the `previous`, up to which the objective falls."""

        def beyond(length: float) -> "_PartitionedScores":
            W = self.W + length * (self.W - previous.W)
            return _PartitionedScores.of(
                problem, W, self.intercept + length * (self.intercept - previous.intercept)
            )

        best = _farthest(lambda length: beyond(length).objective, self.objective, boosts)
        return beyond(best) if best else self
