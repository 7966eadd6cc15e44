"""The l1 penalty."""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from polymargin.coding import class_pairs
from polymargin.problems.penalties.penalty import Atoms, Penalty, PriceRule


@dataclass(frozen=True)
class LassoPenalty(Penalty):
    """l1, (3) of Guo: ``sum_kj tau_kj |w_kj|``; atoms ``e_k - e_l`` of cost ``tau_k + tau_l``.

    Attributes
    ----------
    weights : (k, p) positive tau, or None for ones.
    """

    takes_weights: ClassVar[bool] = True
    weights: NDArray[np.float64] | None = None

    def value(self, coef: NDArray[np.float64]) -> float:
        """Return J(W)."""
        sizes = np.abs(coef)
        return float(np.sum(sizes if self.weights is None else self.weights * sizes))

    def polars(self, G: NDArray[np.float64], *, above: float = 1.0) -> NDArray[np.float64]:
        """``max_{k<l} |g_k - g_l| / (tau_k + tau_l)``."""
        return self._steepest(G)[0]

    def best_atoms(self, G: NDArray[np.float64], variables: NDArray[np.intp]) -> Atoms:
        """Return the pair of classes of steepest difference."""
        some = self.restricted(variables)
        _, pair = some._steepest(G[:, variables])
        first, second = class_pairs(len(G))[pair].T
        rows = np.arange(len(variables))
        directions = np.zeros((len(variables), len(G)))
        directions[rows, first] = 1.0
        directions[rows, second] = -1.0
        costs = np.full(len(rows), 2.0)
        if some.weights is not None:
            costs = some.weights[first, rows] + some.weights[second, rows]
        return Atoms(variables, directions, costs)

    def restricted(self, variables: NDArray[np.intp]) -> "LassoPenalty":
        """Return the penalty of some of the variables."""
        return self if self.weights is None else LassoPenalty(self.weights[:, variables])

    def weighted(self, weights: NDArray[np.float64]) -> "LassoPenalty":
        """Return the penalty with weights (k, p)."""
        return LassoPenalty(weights)

    def price_rule(self, n_classes: int, n_features: int) -> tuple[PriceRule, NDArray[np.float64]]:
        """Return the steepest pair, and the weights."""
        weights = np.ones((n_classes, n_features)) if self.weights is None else self.weights
        return PriceRule.PAIRS, np.ascontiguousarray(weights)

    def _steepest(self, G: NDArray[np.float64]) -> tuple[NDArray[np.float64], NDArray[np.intp]]:
        """Return the steepest slope of every variable and the pair of classes that has it."""
        best = np.full(G.shape[1], -1.0)
        winner = np.zeros(G.shape[1], dtype=np.intp)
        for index, (a, b) in enumerate(class_pairs(len(G))):
            costs = 2.0 if self.weights is None else self.weights[a] + self.weights[b]
            slope = np.abs(G[a] - G[b]) / costs
            better = slope > best
            best[better] = slope[better]
            winner[better] = index
        return best, winner
