"""Steps on working sets for the losses of Lee, Lin & Wahba."""

import numpy as np
from numpy.typing import NDArray

from polymargin._native.lee import LeeWorkingSet
from polymargin.problems.hinge import BoxLosses
from polymargin.solvers.hinge.inner_loop import Burst, check_curvature


class LeeLoop:
    """Pairs and tuples for (23) of Lee, Lin & Wahba."""

    takes_all = False

    def __init__(self, losses: BoxLosses, fit_intercept: bool):
        self.losses = losses
        self.fit_intercept = fit_intercept

    def extremes(
        self, dual: NDArray[np.float64], H: NDArray[np.float64], intercept: NDArray[np.float64], count: int
    ) -> NDArray[np.intp]:
        """Return by class the examples of lowest gradient that may grow and of highest that may shrink."""
        G = -self.losses.margins(H)
        growing = np.where(dual < self.losses.upper, G, np.inf)
        shrinking = np.where(dual > 0.0, -G, np.inf)
        count = min(count, len(G) - 1)
        return np.unique(np.argpartition(np.hstack([growing, shrinking]), count, axis=0)[:count])

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
        u = np.array(dual.T, order="C")
        gradient = np.ascontiguousarray(-losses.margins(H).T)
        upper = np.ascontiguousarray(losses.upper.T)
        loop = LeeWorkingSet(K, upper, u, gradient, self.fit_intercept)
        steps = loop.improve(burst.reduction, burst.max_steps)
        check_curvature(loop.most_negative_curvature, K, burst.negative_curvature)
        return np.ascontiguousarray(u.T), float(steps * u.size)
