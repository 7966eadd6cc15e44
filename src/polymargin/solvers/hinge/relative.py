"""The inner loop of the decomposition for relative losses: Weston & Watkins, Crammer & Singer."""

import numpy as np
from numpy.typing import NDArray

from polymargin._native.cycles import cheapest_cycle
from polymargin._native.relative import RelativeWorkingSet
from polymargin.problems.hinge import HingeProblem, polyhedral
from polymargin.solvers.hinge.inner_loop import Burst, check_curvature
from polymargin.solvers.hinge.moves import class_arcs, coefficient_bounds, movable, own_class


class RelativeLoop:
    """Exchanges and cycles of weight between classes, for losses of differences of scores."""

    takes_all = True

    def __init__(self, problem: HingeProblem):
        self.problem = problem
        self.losses = polyhedral(problem.losses, "The loop of exchanges")

    def extremes(
        self, dual: NDArray[np.float64], H: NDArray[np.float64], intercept: NDArray[np.float64], count: int
    ) -> NDArray[np.intp]:
        """Return the rows of a worst cycle, and the examples whose best moves have the lowest rates."""
        arcs, movers = class_arcs(self.losses, dual, H)
        cycle = cheapest_cycle(arcs)[1]
        up, down = movable(self.losses, self.losses.coefficients(dual), H)
        rates = (up + intercept).min(axis=1) - (down + intercept).max(axis=1)
        count = min(2 * self.losses.n_classes * count, len(rates) - 1)
        return np.union1d(movers[cycle, np.roll(cycle, -1)], np.argpartition(rates, count)[:count])

    def improve(
        self,
        rows: NDArray[np.intp],
        K: NDArray[np.float64],
        dual: NDArray[np.float64],
        H: NDArray[np.float64],
        burst: Burst,
    ) -> tuple[NDArray[np.float64], float]:
        """Run the compiled loop."""
        losses = self.losses.restricted(rows)
        lower, upper = (np.ascontiguousarray(bound.T) for bound in coefficient_bounds(losses))
        R = np.array(losses.coefficients(dual).T, order="C")
        gradient = np.ascontiguousarray((H - losses.offset * own_class(losses)).T)
        loop = RelativeWorkingSet(K, lower, upper, R, gradient, self.problem.fit_intercept)
        loop.improve(burst.reduction, burst.max_steps)
        check_curvature(loop.most_negative_curvature, K, burst.negative_curvature)
        return losses.dual_of(R.T), loop.entries
