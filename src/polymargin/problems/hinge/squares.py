"""The squared hinges of Lee, Lin & Wahba and of Weston & Watkins."""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from polymargin.problems.hinge.losses import Array, Loss
from polymargin.problems.hinge.tabled import TabledLosses
from polymargin.problems.hinge.tables import Differences, SingleScores


@dataclass(frozen=True, slots=True)
class SquaredHinges(TabledLosses):
    """``sum_im weights_im [offset + <directions[y_i, m], f_i>]_+^2`` with dual variables ``a >= 0``.

    The conjugate of a hinge is ``a^2 / (4 weight)``.
    """

    is_smooth: ClassVar[bool] = True

    def value(self, F: Array) -> float:
        """Sum of the losses at the scores `F`."""
        return float(np.vdot(self.weights, np.maximum(self.margins(F), 0.0) ** 2))

    def dual_value(self, dual: Array) -> float:
        """Return the linear part less the conjugates."""
        used = self.weights > 0.0
        return self.offset * float(dual.sum()) - 0.25 * float((dual[used] ** 2 / self.weights[used]).sum())

    def violation(self, dual: Array) -> tuple[float, float]:
        """Largest negative variable, or variable of a hinge without weight, and the largest weight."""
        without = np.abs(np.where(self.weights > 0.0, 0.0, dual)).max(initial=0.0)
        return max(float(-dual.min(initial=0.0)), float(without)), float(self.weights.max(initial=0.0))

    def resting_dual(self) -> Array:
        """Return zero."""
        return np.zeros(self.weights.shape)

    def proximal(self, margins: Array, centre: Array, width: float) -> Array:
        """Return the maximiser, which is linear in the margins where it is positive."""
        step = (self.weights * margins + width * centre) / (0.5 + width)
        return np.where(self.weights > 0.0, np.maximum(step, 0.0), 0.0)

    def proximal_slopes(self, margins: Array, centre: Array, width: float) -> Array:
        """Return the derivatives of `proximal`."""
        free = np.where(self.proximal(margins, centre, width) > 0.0, self.weights / (0.5 + width), 0.0)
        return free[:, :, None] * np.eye(free.shape[1])


class SquaredLeeLoss(Loss):
    """``sum_{j != y} cost_j [f_j + 1/(k-1)]_+^2``: smooth, and Fisher consistent, also with costs."""

    def over(self, labels: NDArray[np.intp], costs: Array) -> SquaredHinges:
        """Return the loss over examples."""
        k = costs.shape[1]
        return SquaredHinges(labels, costs, SingleScores(k), 1.0 / (k - 1))


class SquaredWestonLoss(Loss):
    """``sum_{j != y} cost_j [f_j - f_y + 2]_+^2``."""

    def over(self, labels: NDArray[np.intp], costs: Array) -> SquaredHinges:
        """Return the loss over examples."""
        return SquaredHinges(labels, costs, Differences(costs.shape[1]), 2.0)
