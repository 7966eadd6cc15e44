"""The absolute machine that takes the largest hinge of the other classes (Doğan, Glasmachers & Igel 2016)."""

import numpy as np
from numpy.typing import NDArray

from polymargin.problems.hinge.crammer import one_cost_per_class
from polymargin.problems.hinge.losses import Array, Loss
from polymargin.problems.hinge.maxima import LargestHinges
from polymargin.problems.hinge.tables import KeptTable


class AdmLoss(Loss):
    """``cost max_{j != y} [1 + f_j]_+``, ADM: absolute margin, discriminative maximum."""

    def over(self, labels: NDArray[np.intp], costs: Array) -> LargestHinges:
        """Return the loss over examples."""
        k = costs.shape[1]
        others = np.stack([np.delete(np.eye(k) - 1.0 / k, y, axis=0) for y in range(k)])
        return LargestHinges(labels, costs.max(axis=1, keepdims=True), KeptTable(others), 1.0)

    def check_costs(self, labels: NDArray[np.intp], costs: Array) -> None:
        """Refuse costs that differ between the classes other than the own one."""
        one_cost_per_class("adm", labels, costs)
