"""The loss of Weston & Watkins (1999)."""

import numpy as np
from numpy.typing import NDArray

from polymargin.problems.hinge.boxes import BoxLosses
from polymargin.problems.hinge.losses import Array, Loss
from polymargin.problems.hinge.tables import Differences


class WestonLoss(Loss):
    """``sum_{j != y} cost_j [f_j - f_y + 2]_+`` (Weston & Watkins)."""

    def over(self, labels: NDArray[np.intp], costs: Array) -> BoxLosses:
        """Return the loss over examples."""
        return weston_watkins(labels, costs)


def weston_watkins(labels: NDArray[np.intp], upper: Array) -> BoxLosses:
    """Losses of Weston & Watkins: ``sum_{j != y} upper_ij [f_j - f_y + 2]_+``."""
    return BoxLosses(labels, upper, Differences(upper.shape[1]), 2.0)
