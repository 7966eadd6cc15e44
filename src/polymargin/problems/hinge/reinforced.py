"""The reinforced machine of Liu & Yuan (2011), between hinges of the own class and of the others."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from polymargin.checks import check_real
from polymargin.problems.hinge.boxes import BoxLosses
from polymargin.problems.hinge.crammer import one_cost_per_class
from polymargin.problems.hinge.losses import Array, Loss
from polymargin.problems.hinge.tables import KeptTable


@dataclass(frozen=True)
class ReinforcedLoss(Loss):
    """``cost (gamma [1 - f_y]_+ + (1 - gamma) sum_{j != y} [f_j + 1/(k-1)]_+)``.

    Fisher consistent for gamma up to 1/2. With 0 it is "lee"; Liu & Yuan's own scores are k - 1 times these.

    Parameters
    ----------
    gamma : float, default=0.5
        Part of the own class, from 0 to 1.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from polymargin import MulticategorySVC, ReinforcedLoss
    >>> X, y = load_iris(return_X_y=True)
    >>> MulticategorySVC(loss=ReinforcedLoss(gamma=0.25)).fit(X, y).certificate_.gap < 1e-4
    True
    """

    gamma: float = 0.5

    def over(self, labels: NDArray[np.intp], costs: Array) -> BoxLosses:
        """Return the loss over examples."""
        check_real("gamma", self.gamma, at_least=0.0, at_most=1.0)
        k = costs.shape[1]
        own = np.eye(k)[:, :, None]
        # one margin for all hinges: that of the own class is k - 1 times [1/(k-1) - f_y/(k-1)]_+
        centred = np.broadcast_to(np.eye(k) - 1.0 / k, (k, k, k))
        directions = np.where(own == 1.0, -centred / (k - 1), centred)
        is_own = labels[:, None] == np.arange(k)
        parts = np.where(is_own, self.gamma * (k - 1), 1.0 - self.gamma)
        return BoxLosses(labels, costs.max(axis=1, keepdims=True) * parts, KeptTable(directions), 1.0 / (k - 1))

    def check_costs(self, labels: NDArray[np.intp], costs: Array) -> None:
        """Refuse costs that differ between the classes other than the own one."""
        one_cost_per_class("reinforced", labels, costs, "has a hinge of the own class")
