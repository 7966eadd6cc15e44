"""The sup-norm penalty."""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from polymargin.problems.penalties.penalty import Atoms, Penalty, PriceRule


@dataclass(frozen=True)
class SupnormPenalty(Penalty):
    """Sup-norm, (4) of Guo: ``sum_j max_k tau_kj |w_kj|``.

    Atoms have all coordinates at ±1/tau_k but one, which makes the sum zero, and cost 1.

    Attributes
    ----------
    weights : (k, p) positive tau, or None for ones.
    """

    takes_weights: ClassVar[bool] = True
    weights: NDArray[np.float64] | None = None

    def value(self, coef: NDArray[np.float64]) -> float:
        """Return J(W)."""
        sizes = np.abs(coef)
        return float(np.max(sizes if self.weights is None else self.weights * sizes, axis=0).sum())

    def polars(self, G: NDArray[np.float64], *, above: float = 1.0) -> NDArray[np.float64]:
        """``sum_k |g_k - mu| / tau_k`` with mu the median of g weighted by 1/tau."""
        weights = self._table(G)
        order, median = _medians(G, weights)
        centre = np.take_along_axis(G, np.take_along_axis(order, median[None], axis=0), axis=0)
        return np.sum(np.abs(G - centre) / weights, axis=0)

    def best_atoms(self, G: NDArray[np.float64], variables: NDArray[np.intp]) -> Atoms:
        """Return -1/tau below the median, 1/tau above it, and the balance at the median."""
        G = G[:, variables]
        weights = self.restricted(variables)._table(G)
        reach = 1.0 / weights
        order, median = _medians(G, weights)
        signs = np.sign(np.arange(len(G))[:, None] - median)
        sorted_directions = signs * np.take_along_axis(reach, order, axis=0)
        rows = np.arange(len(variables))
        sorted_directions[median, rows] = -sorted_directions.sum(axis=0)
        directions = np.empty_like(reach)
        np.put_along_axis(directions, order, sorted_directions, axis=0)
        return Atoms(variables, directions.T, np.ones(len(variables)))

    def restricted(self, variables: NDArray[np.intp]) -> "SupnormPenalty":
        """Return the penalty of some of the variables."""
        return self if self.weights is None else SupnormPenalty(self.weights[:, variables])

    def weighted(self, weights: NDArray[np.float64]) -> "SupnormPenalty":
        """Return the penalty with weights (k, p)."""
        return SupnormPenalty(weights)

    def price_rule(self, n_classes: int, n_features: int) -> tuple[PriceRule, NDArray[np.float64]]:
        """Return the signs about the median, and the weights."""
        weights = np.ones((n_classes, n_features)) if self.weights is None else self.weights
        return PriceRule.SIGNS, np.ascontiguousarray(weights)

    def _table(self, G: NDArray[np.float64]) -> NDArray[np.float64]:
        return np.ones(G.shape) if self.weights is None else self.weights


def _medians(G: NDArray[np.float64], weights: NDArray[np.float64]) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    """Return the ascending order of the classes and the position of the weighted median in it."""
    order = np.argsort(G, axis=0, kind="stable")
    mass = np.cumsum(np.take_along_axis(1.0 / weights, order, axis=0), axis=0)
    return order, np.argmax(mass >= 0.5 * mass[-1], axis=0)
