"""The loss of Crammer & Singer (2001)."""

import numpy as np
from numpy.typing import NDArray

from polymargin.problems.hinge.losses import Array, Loss
from polymargin.problems.hinge.simplices import SimplexLosses, row_maxima


class CrammerLoss(Loss):
    """``cost [2 - min_{j != y} (f_y - f_j)]_+`` (Crammer & Singer)."""

    def over(self, labels: NDArray[np.intp], costs: Array) -> SimplexLosses:
        """Return the loss over examples."""
        return crammer_singer(labels, row_maxima(costs), costs.shape[1])

    def check_costs(self, labels: NDArray[np.intp], costs: Array) -> None:
        """Refuse costs that differ between the classes other than the own one."""
        one_cost_per_class("crammer", labels, costs)


def crammer_singer(labels: NDArray[np.intp], weight: Array, n_classes: int) -> SimplexLosses:
    """Losses of Crammer & Singer: ``weight_i [2 - min_{j != y} (f_y - f_j)]_+``."""
    example = np.flatnonzero(weight)
    return SimplexLosses(example, labels[example], weight[example], 2.0, len(labels), n_classes)


def one_cost_per_class(
    loss: str, labels: NDArray[np.intp], costs: Array, reason: str = "takes the maximum over classes"
) -> None:
    """Refuse costs (n, k) that are not the same for all classes other than the own one."""
    n, k = costs.shape
    others = costs[labels[:, None] != np.arange(k)].reshape(n, k - 1)
    unequal = np.flatnonzero((others != others[:, :1]).any(axis=1))
    if len(unequal):
        raise ValueError(
            f"cost_matrix must have equal costs in each row, as must costs of rows, with loss={loss!r}, whose "
            f"loss {reason}, got {costs[unequal[0]].tolist()}; loss='lee' and 'weston' use any costs."
        )
