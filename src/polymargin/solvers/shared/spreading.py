"""Many more base classifiers than variables: the solution without bounds, spread until it keeps them."""

from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from polymargin.problems.shared import SharedPoint, SharedProblem
from polymargin.relations import RelationSet
from polymargin.solvers.contract import Accepted, Observer, Settings, Solution, Solver
from polymargin.solvers.shared.alternation import AlternationSolver, spectral_start
from polymargin.solvers.shared.base_step import BaseStep


class Spreading:
    """Solve the problem of any rank with as few base classifiers as that takes, then spread it over all of them.

    A direction of ``Z = W M`` may be shared out among several base classifiers, each with the same part of its
    relations: the objective stays, and the relations become smaller. If there are enough base classifiers to
    bring all relations within their bounds, what is found is the global minimum of the bounded problem.

    Parameters
    ----------
    base_step : the W-steps of the problem's data.
    otherwise : solves problems whose bounds cannot be kept in this way.
    """

    name = AlternationSolver.name

    def __init__(self, base_step: BaseStep, otherwise: Solver):
        self.base_step, self.otherwise = base_step, otherwise

    def accepts(self, problem: Any) -> Accepted:
        """Return True if the solver can take `problem`, else the reason why not."""
        return self.otherwise.accepts(problem)

    def solve(
        self,
        problem: SharedProblem,
        settings: Settings,
        *,
        start: NDArray[np.float64] | None = None,
        observer: Observer | None = None,
    ) -> Solution[SharedPoint]:
        """Solve; `start` is for the other solver."""
        n_variables, n_final = problem.tasks.cross.shape
        n_base = min(n_variables, n_final)
        if problem.formulation == "original" and n_base < len(problem.relations.lower):
            free = replace(problem, relations=RelationSet.free(n_base, n_final))
            directions = spectral_start(free, self.base_step)
            found = AlternationSolver(self.base_step).solve(free, settings, start=directions, observer=observer)
            point = spread(found.point, problem.relations)
            if point is not None:
                return replace(found, point=point, certificate=problem.certify(point))
        return self.otherwise.solve(problem, settings, start=start, observer=observer)


def spread(point: SharedPoint, relations: RelationSet) -> SharedPoint | None:
    """Return the same ``W M`` and penalties with M in `relations`; None if there are too few base classifiers."""
    bound = min(float(relations.upper.min()), -float(relations.lower.max()))
    if bound <= 0.0:
        return None
    largest = np.abs(point.M).max(axis=1)
    shares = np.ceil((largest / bound) ** 2).clip(largest > 0)
    missing = len(relations.lower) - shares.sum()
    if missing < 0:
        return None
    counts = shares.astype(np.intp)
    at, part = np.repeat(np.arange(len(counts)), counts), np.repeat(np.sqrt(shares), counts)
    M = np.pad(point.M[at] / part[:, None], ((0, int(missing)), (0, 0)))
    W = np.pad(point.W[:, at] / part, ((0, 0), (0, int(missing))))
    M = relations.clip(M)  # roundings of the division
    return SharedPoint(W, M) if relations.violation(M) == 0.0 else None
