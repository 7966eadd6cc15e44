"""The absolute machine that sums the hinges of all classes (Doğan, Glasmachers & Igel 2016)."""

import numpy as np
from numpy.typing import NDArray

from polymargin.problems.hinge.boxes import BoxLosses
from polymargin.problems.hinge.crammer import one_cost_per_class
from polymargin.problems.hinge.losses import Array, Loss
from polymargin.problems.hinge.tables import signed_scores


class AtsLoss(Loss):
    """``cost ([1 - f_y]_+ + sum_{j != y} [1 + f_j]_+)``, ATS: absolute margin, total sum."""

    def over(self, labels: NDArray[np.intp], costs: Array) -> BoxLosses:
        """Return the loss over examples."""
        k = costs.shape[1]
        return BoxLosses(labels, np.repeat(costs.max(axis=1, keepdims=True), k, axis=1), signed_scores(k), 1.0)

    def check_costs(self, labels: NDArray[np.intp], costs: Array) -> None:
        """Refuse costs that differ between the classes other than the own one."""
        one_cost_per_class("ats", labels, costs, "has a hinge of the own class")
