"""Variable projection for shared structure: W is eliminated, and what is left is smooth in M alone."""

import contextlib
from typing import Any

import numpy as np
import scipy.optimize
from numpy.typing import NDArray

from polymargin.problems.certificate import Certificate
from polymargin.problems.shared import SharedPoint, SharedProblem
from polymargin.solvers.choice import chosen
from polymargin.solvers.contract import Accepted, Observer, Progress, Settings, Solution, Solver, accepts_kinds
from polymargin.solvers.shared.alternation import AlternationSolver, round_of_steps
from polymargin.solvers.shared.base_step import BaseStep, make_base_step
from polymargin.solvers.shared.settings import DEFAULTS
from polymargin.solvers.shared.spreading import Spreading
from polymargin.solvers.trace import TraceRow


class VariableProjection:
    """Minimise ``h(M) = min_W f(W, M)`` over the bounds of M by L-BFGS-B, then alternate with extrapolation.

    The least W for a given M is one W-step, and the slope of h is that of f there. Where M has to be
    semi-definite, or digits are missing, rounds of the alternation go on from the M that was found.

    Parameters
    ----------
    base_step : the W-steps of the problem's data; made anew where None.
    """

    name = "variable_projection"

    def __init__(self, base_step: BaseStep | None = None):
        self.base_step = base_step

    def accepts(self, problem: Any) -> Accepted:
        """Return True if the solver can take `problem`, else the reason why not."""
        accepted = accepts_kinds(problem, SharedProblem)
        if accepted is True and problem.formulation != "original":
            return f"formulation {problem.formulation!r} has no objective of W and M together."
        return accepted

    def solve(
        self,
        problem: SharedProblem,
        settings: Settings,
        *,
        start: NDArray[np.float64] | None = None,
        observer: Observer | None = None,
    ) -> Solution[SharedPoint]:
        """Solve from the relation matrix `start` (the identity by default)."""
        base_step = make_base_step(problem.tasks) if self.base_step is None else self.base_step
        M = problem.relations.clip(np.eye(*problem.relations.lower.shape) if start is None else start)
        with Progress(settings, observer, method=self.name) as progress:
            descent = Descent(problem, base_step, progress)
            M = descent.run(M)
            if descent.W is not None and descent.measured is not None and descent.measured.within(settings.tol):
                return self._finish(problem, base_step, SharedPoint(descent.W, M), progress)
            if progress.out_of_time():
                return self._finish(problem, base_step, round_of_steps(problem, base_step, M), progress)
            seconds = None if settings.time_limit is None else progress.seconds_left
            rest = Settings(settings.tol, settings.max_iter, seconds)
            polished = AlternationSolver(base_step, extrapolated=True).solve(
                problem, rest, start=M, observer=observer
            )
            if progress.history:
                last = progress.history[-1]
                progress.trace.append(TraceRow(self.name, progress.iteration, last.primal, last.dual))
            progress.take(polished, None)
            progress.history += polished.history
            return progress.finish(polished.point, polished.certificate)

    @staticmethod
    def _finish(
        problem: SharedProblem, base_step: BaseStep, point: SharedPoint, progress: Progress
    ) -> Solution[SharedPoint]:
        point = SharedPoint(base_step.restore(point.W), point.M, point.multiplier)
        return progress.finish(point, problem.certify(point))


def task_solver(solver: Any, problem: SharedProblem, base_step: BaseStep, *, to_the_end: bool) -> Solver:
    """Return the solver that a user asks for; for "auto" projection where a fit runs to the end and M is bound.

    Where M has very many entries, its bounds seldom bind, and the solution without them is spread instead.
    """
    alternation, projection = AlternationSolver(base_step), VariableProjection(base_step)
    asked = chosen(solver, (alternation, projection), problem)
    if asked is not None:
        return asked[0]
    suited = projection if to_the_end and not problem.relations.is_free else alternation
    is_large = to_the_end and problem.relations.lower.size > DEFAULTS.many_relations
    return Spreading(base_step, otherwise=suited) if is_large else suited


class Descent:
    """L-BFGS-B on h over the bounds of M, or of its upper triangle where M is symmetric."""

    def __init__(self, problem: SharedProblem, base_step: BaseStep, progress: Progress):
        self.problem, self.base_step, self.progress = problem, base_step, progress
        self.shape = problem.relations.lower.shape
        symmetric = problem.relations.symmetric
        self.places = np.triu_indices(self.shape[0]) if symmetric else tuple(np.indices(self.shape).reshape(2, -1))
        self.unit = max(problem.C * problem.tasks.squares, np.finfo(np.float64).tiny)  # the objective of W = 0
        self.W: NDArray[np.float64] | None = None
        self.measured: Certificate | None = None
        self.unfinished = base_step.unfinished

    def run(self, M: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return the M that was reached; `W` answers it, and `measured` is the certificate of both."""
        bounds = scipy.optimize.Bounds(
            self.problem.relations.lower[self.places], self.problem.relations.upper[self.places]
        )
        self.M = M
        # where a W-step breaks down, the M before is kept, and the alternation tells how far it is
        with contextlib.suppress(np.linalg.LinAlgError):
            scipy.optimize.minimize(
                self._value_and_slope,
                M[self.places],
                jac=True,
                method="L-BFGS-B",
                bounds=bounds,
                callback=self._look,
                options={
                    "maxiter": min(self.progress.settings.max_iter, DEFAULTS.descent_steps),
                    "maxfun": 2 * DEFAULTS.descent_steps,
                    "maxcor": DEFAULTS.descent_memory,
                    "ftol": np.finfo(np.float64).eps,
                    "gtol": 0.0,
                },
            )
        return self.M

    def _filled(self, entries: NDArray[np.float64]) -> NDArray[np.float64]:
        M = np.empty(self.shape)
        M[self.places] = entries
        if self.problem.relations.symmetric:
            M.T[self.places] = entries
        return M

    def _value_and_slope(self, entries: NDArray[np.float64]) -> tuple[float, NDArray[np.float64]]:
        problem, M = self.problem, self._filled(entries)
        W = self.base_step.solve(M, problem.C, "original", self.W)
        pull, fit = self.base_step.residual(W, M, problem.C)
        self.W = W
        self.seen = M, W, problem.measure(SharedPoint(W, M), pull, fit)
        slope = 2.0 * (problem.relation_penalty * M - W.T @ pull)
        if problem.relations.symmetric:
            slope = slope + slope.T - np.diag(np.diag(slope))
        return self.seen[2].primal / self.unit, slope[self.places] / self.unit

    def _look(self, intermediate_result: scipy.optimize.OptimizeResult) -> None:
        """Keep the point of an iteration, and stop when it is good enough or time is over."""
        if not np.array_equal(self._filled(intermediate_result.x), self.seen[0]):
            self._value_and_slope(intermediate_result.x)
        self.M, self.W, self.measured = self.seen
        self.progress.iteration += 1
        self.progress.record(self.measured.primal, self.measured.dual)
        exhausted = self.base_step.unfinished - self.unfinished >= DEFAULTS.unfinished_steps
        if exhausted or self.measured.within(self.progress.settings.tol) or self.progress.out_of_time():
            raise StopIteration
