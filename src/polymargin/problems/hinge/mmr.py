"""Maximum margin regression (Szedmak, Shawe-Taylor & Parado-Hernandez 2006)."""

import numpy as np
from numpy.typing import NDArray

from polymargin.problems.hinge.boxes import BoxLosses
from polymargin.problems.hinge.crammer import one_cost_per_class
from polymargin.problems.hinge.losses import Array, Loss
from polymargin.problems.hinge.tables import KeptTable


class MmrLoss(Loss):
    """``cost [1 - f_y]_+``, MMR: the own class alone has a hinge."""

    def over(self, labels: NDArray[np.intp], costs: Array) -> BoxLosses:
        """Return the loss over examples."""
        k = costs.shape[1]
        return BoxLosses(
            labels, costs.max(axis=1, keepdims=True), KeptTable((1.0 / k - np.eye(k))[:, None, :]), 1.0
        )

    def check_costs(self, labels: NDArray[np.intp], costs: Array) -> None:
        """Refuse costs that differ between the classes other than the own one."""
        one_cost_per_class("mmr", labels, costs, "sees the own class alone")
