"""The multinomial logistic loss."""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray
from scipy.special import logsumexp, wrightomega, xlogy

from polymargin.problems.hinge.crammer import one_cost_per_class
from polymargin.problems.hinge.losses import Array, Loss
from polymargin.problems.hinge.tabled import TabledLosses
from polymargin.problems.hinge.tables import Differences

NEWTON_STEPS = 50


@dataclass(frozen=True, slots=True)
class LogisticLosses(TabledLosses):
    """``sum_i weight_i log sum_j exp(f_ij - f_i,y_i)``, whose dual blocks lie on simplices.

    The conjugate of a block ``weight p`` is ``weight sum_j p_j log p_j``.
    """

    is_smooth: ClassVar[bool] = True

    def margins(self, F: Array) -> Array:
        """Return ``f_ij - f_i,y_i``."""
        return F - F[np.arange(len(F)), self.labels][:, None]

    def value(self, F: Array) -> float:
        """Sum of the losses at the scores `F`."""
        return float(self.weights[:, 0] @ logsumexp(self.margins(F), axis=1))

    def dual_value(self, dual: Array) -> float:
        """Return the entropies."""
        share = np.maximum(dual, 0.0) / self.weights
        return -float(self.weights[:, 0] @ xlogy(share, share).sum(axis=1))

    def violation(self, dual: Array) -> tuple[float, float]:
        """Largest violation of a simplex, and the largest of them."""
        off = float(np.abs(dual.sum(axis=1) - self.weights[:, 0]).max(initial=0.0))
        return max(off, float(-dual.min(initial=0.0))), float(self.weights.max(initial=0.0))

    def resting_dual(self) -> Array:
        """Return the point with all weight on the own class."""
        dual = np.zeros((len(self.labels), self.n_classes))
        dual[np.arange(len(dual)), self.labels] = self.weights[:, 0]
        return dual

    def proximal(self, margins: Array, centre: Array, width: float) -> Array:
        """Return the maximiser ``weight p``: ``log p + width p`` is the target up to a constant of the row."""
        target = margins + width * centre / self.weights
        constant = target.max(axis=1) - width  # the largest p is 1 there, and no constant below it is the solution
        for _ in range(NEWTON_STEPS):
            share = wrightomega(target - constant[:, None] + np.log(width)) / width
            excess = share.sum(axis=1) - 1.0
            if float(np.abs(excess).max(initial=0.0)) <= 1e-15:
                break
            constant = constant + excess / (share / (1.0 + width * share)).sum(axis=1)
        return self.weights * (share / share.sum(axis=1, keepdims=True))

    def proximal_slopes(self, margins: Array, centre: Array, width: float) -> Array:
        """Return the derivatives of `proximal`."""
        share = self.proximal(margins, centre, width) / self.weights
        free = share / (1.0 + width * share)
        spread = free[:, :, None] * free[:, None, :] / free.sum(axis=1)[:, None, None]
        return self.weights[:, :, None] * (free[:, :, None] * np.eye(free.shape[1]) - spread)


class LogisticLoss(Loss):
    """``cost log sum_j exp(f_j - f_y)``: multinomial logistic regression, which gives probabilities."""

    def over(self, labels: NDArray[np.intp], costs: Array) -> LogisticLosses:
        """Return the loss over examples."""
        return LogisticLosses(labels, costs.max(axis=1, keepdims=True), Differences(costs.shape[1]), 1.0)

    def check_costs(self, labels: NDArray[np.intp], costs: Array) -> None:
        """Refuse costs that differ between the classes other than the own one."""
        one_cost_per_class("logistic", labels, costs, "sees all other classes at once")
