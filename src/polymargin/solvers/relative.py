"""The inner loop of the decomposition for relative losses: Weston & Watkins, Crammer & Singer."""

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from polymargin._native.relative import RelativeWorkingSet
from polymargin.problems.certificate import FEASIBLE
from polymargin.problems.hinge import BoxLosses, SimplexLosses
from polymargin.solvers.curvature import check_curvature
from polymargin.solvers.moves import coefficient_bounds, dual_of, movable, own_class

if TYPE_CHECKING:
    from polymargin.solvers.decomposition import Burst


class RelativeLoop:
    """Exchanges and cycles of weight between classes, for losses of differences of scores."""

    def __init__(self, losses: BoxLosses | SimplexLosses, fit_intercept: bool):
        self.losses = losses
        self.fit_intercept = fit_intercept

    def start(self) -> NDArray[np.float64]:
        """Return the point of zero coefficients."""
        return dual_of(self.losses, np.zeros((self.losses.n_examples, self.losses.n_classes)))

    def repair(self, dual: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return the point within its bounds and with class sums of zero; the start if they cannot be had."""
        lower, upper = coefficient_bounds(self.losses)
        R = np.clip(self.losses.coefficients(dual), lower, upper)
        own = own_class(self.losses)
        R[own] -= R.sum(axis=1)
        if self.fit_intercept:
            _balance(R, lower, upper)
            if np.abs(R.sum(axis=0)).max() > FEASIBLE * np.abs(R).sum(axis=0).max():
                return self.start()
        return dual_of(self.losses, R)

    def extremes(
        self, dual: NDArray[np.float64], H: NDArray[np.float64], intercept: NDArray[np.float64], count: int
    ) -> NDArray[np.intp]:
        """Return the examples whose best move has the lowest rate: with the intercept, the worst cycle is among them."""
        up, down = movable(self.losses, self.losses.coefficients(dual), H)
        rates = (up + intercept).min(axis=1) - (down + intercept).max(axis=1)
        return np.argpartition(rates, count)[:count]

    def improve(
        self,
        rows: NDArray[np.intp],
        K: NDArray[np.float64],
        dual: NDArray[np.float64],
        H: NDArray[np.float64],
        burst: "Burst",
    ) -> NDArray[np.float64]:
        """Run the compiled loop."""
        losses = self.losses.restricted(rows)
        lower, upper = (np.ascontiguousarray(bound.T) for bound in coefficient_bounds(losses))
        R = np.array(losses.coefficients(dual).T, order="C")
        gradient = np.ascontiguousarray((H - losses.offset * own_class(losses)).T)
        loop = RelativeWorkingSet(K, lower, upper, R, gradient, self.fit_intercept)
        loop.improve(burst.reduction, burst.max_steps)
        check_curvature(loop.most_negative_curvature, K)
        return dual_of(losses, R.T)


def _balance(R: NDArray[np.float64], lower: NDArray[np.float64], upper: NDArray[np.float64]) -> None:
    """Move weight between classes until every class sum is zero, or no example has room for a move."""
    free = (R > lower) & (R < upper)
    for _ in range(R.shape[1]):
        sums = R.sum(axis=0)
        rich, poor = sums.argmax(), sums.argmin()
        wanted = min(sums[rich], -sums[poor])
        room = np.minimum(R[:, rich] - lower[:, rich], upper[:, poor] - R[:, poor])
        # a bound that is left by a hair's breadth would count as free ever after
        inside = np.where(free[:, rich] & free[:, poor], room, 0.0)
        room = inside if inside.sum() >= wanted else room
        if not 0.0 < wanted <= room.sum():
            return
        share = wanted * (room / room.sum())
        R[:, rich] -= share
        R[:, poor] += share
