"""The loss of Lee, Lin & Wahba (2004)."""

import numpy as np
from numpy.typing import NDArray

from polymargin.problems.hinge.boxes import BoxLosses
from polymargin.problems.hinge.losses import Array, Loss
from polymargin.problems.hinge.tables import SingleScores


class LeeLoss(Loss):
    """``sum_{j != y} cost_j [f_j + 1/(k-1)]_+``, (7) of Lee, Lin & Wahba: Fisher consistent, also with costs."""

    def over(self, labels: NDArray[np.intp], costs: Array) -> BoxLosses:
        """Return the loss over examples."""
        return lee_lin_wahba(labels, costs)


def lee_lin_wahba(labels: NDArray[np.intp], upper: Array) -> BoxLosses:
    """Losses (7) of Lee, Lin & Wahba: ``sum_{j != y} upper_ij [f_j + 1/(k-1)]_+``."""
    k = upper.shape[1]
    return BoxLosses(labels, upper, SingleScores(k), 1.0 / (k - 1))
