"""One machine per class against the rest, stated as one problem."""

from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from polymargin.problems.hinge.boxes import BoxLosses
from polymargin.problems.hinge.crammer import one_cost_per_class
from polymargin.problems.hinge.losses import Array, Loss, Shape
from polymargin.problems.hinge.tables import KeptTable


class IndependentHinges(BoxLosses):
    """Hinges of scores that need not sum to zero."""

    shape: ClassVar[Shape] = "other"
    zero_sum = False


class OneVsRestLoss(Loss):
    """``cost ([1 - f_y]_+ + sum_{j != y} [1 + f_j]_+)`` over scores that need not sum to zero.

    Every score is that of a binary machine, its class against the rest.
    """

    def over(self, labels: NDArray[np.intp], costs: Array) -> IndependentHinges:
        """Return the loss over examples."""
        k = costs.shape[1]
        signs = np.ones((k, k)) - 2.0 * np.eye(k)
        directions = signs[:, :, None] * np.eye(k)[None, :, :]
        weights = np.repeat(costs.max(axis=1, keepdims=True), k, axis=1)
        return IndependentHinges(labels, weights, KeptTable(directions), 1.0)

    def check_costs(self, labels: NDArray[np.intp], costs: Array) -> None:
        """Refuse costs that differ between the classes other than the own one."""
        one_cost_per_class("one_vs_rest", labels, costs, "has a hinge of the own class")
