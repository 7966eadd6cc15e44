"""The pairwise fusion penalty."""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from polymargin.coding import class_pairs
from polymargin.cuts import steepest_cuts
from polymargin.problems.penalties.penalty import Atoms, Penalty, PriceRule, sum_of_atoms

MOST_LISTED_CLASSES = 12
"""Classes up to which a walk along C gets a table of all their sets."""


@dataclass(frozen=True)
class FusionPenalty(Penalty):
    """Pairwise fusion, (5) of Guo: ``sum_j sum_{k<l} tau_jkl |w_kj - w_lj|``.

    Atoms are the indicators ``1_S`` of sets of classes (centred by `combine`), their cost the cut
    ``F(S) = sum_{k in S, l not in S} tau_kl``: classes k and l are fused unless an active S separates them.

    Attributes
    ----------
    weights : (k(k-1)/2, p) positive tau in the order of `coding.class_pairs`, or None for ones.
    """

    takes_weights: ClassVar[bool] = True
    weights: NDArray[np.float64] | None = None

    def value(self, coef: NDArray[np.float64]) -> float:
        """Return J(W)."""
        active = np.flatnonzero(coef.any(axis=0))
        coef = coef[:, active]
        total = 0.0
        for index, (a, b) in enumerate(class_pairs(len(coef))):
            differences = np.abs(coef[a] - coef[b])
            total += differences.sum() if self.weights is None else differences @ self.weights[index, active]
        return float(total)

    def polars(self, G: NDArray[np.float64], *, above: float = 1.0) -> NDArray[np.float64]:
        """``max_S |sum_{k in S} gbar_k| / F(S)`` with gbar the centred g.

        Unit weights: S is a prefix of the descending order. Otherwise minimum cuts find it, but only for variables
        whose bound ``unit polar / min tau`` is greater than `above`; for the others the bound is returned.
        """
        unit = self._prefix_ratios(np.sort(G, axis=0)[::-1]).max(axis=0)
        if self.weights is None:
            return unit
        polars = unit / self.weights.min(axis=0)
        suspects = np.flatnonzero(polars > above)
        if len(suspects):
            polars[suspects] = steepest_cuts(G[:, suspects], self.weights[:, suspects], above=above)[0]
        return polars

    def best_atoms(self, G: NDArray[np.float64], variables: NDArray[np.intp]) -> Atoms:
        """Return the set of classes of the steepest cut, named without the last class."""
        k = len(G)
        if self.weights is None:
            order = np.argsort(-G[:, variables], axis=0, kind="stable")
            size = 1 + self._prefix_ratios(np.take_along_axis(G[:, variables], order, axis=0)).argmax(axis=0)
            rank = np.empty_like(order)
            np.put_along_axis(rank, order, np.arange(k)[:, None], axis=0)
            members = rank < size
            members = np.where(members[-1], ~members, members)
            return Atoms(variables, members.T.astype(np.float64), (size * (k - size)).astype(np.float64))
        _, costs, members = steepest_cuts(G[:, variables], self.weights[:, variables])
        members = np.where(members[:, -1:], ~members, members)
        return Atoms(variables, members.astype(np.float64), costs)

    def combine(self, atoms: Atoms, multipliers: NDArray[np.float64], n_features: int) -> NDArray[np.float64]:
        """Return W with columns of zero sum; fused classes are exactly equal."""
        coef = sum_of_atoms(atoms, multipliers, n_features)
        return coef - coef.mean(axis=0)

    def restricted(self, variables: NDArray[np.intp]) -> "FusionPenalty":
        """Return the penalty of some of the variables."""
        return FusionPenalty(None if self.weights is None else self.weights[:, variables])

    def sizes(self, coef: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return the differences between classes (pairs, p)."""
        return pair_differences(coef)

    def weighted(self, weights: NDArray[np.float64]) -> "FusionPenalty":
        """Return the penalty with weights (pairs, p)."""
        return FusionPenalty(weights)

    def price_rule(self, n_classes: int, n_features: int) -> tuple[PriceRule, NDArray[np.float64]] | None:
        """Return the steepest prefix or, with weights of few classes, the steepest of all sets and their cuts."""
        if self.weights is None:
            return PriceRule.PREFIXES, np.zeros((0, 0))
        if n_classes > MOST_LISTED_CLASSES:
            return None
        return PriceRule.CUTS, separated_pairs(n_classes) @ self.weights

    @staticmethod
    def _prefix_ratios(descending: NDArray[np.float64]) -> NDArray[np.float64]:
        k = len(descending)
        centred = descending - descending.mean(axis=0)
        size = np.arange(1, k)[:, None]
        return np.cumsum(centred, axis=0)[:-1] / (size * (k - size))


def class_subsets(n_classes: int) -> NDArray[np.float64]:
    """Return indicators (2^(k-1) - 1, k) of the non-empty sets of classes without the last one.

    >>> class_subsets(3)
    array([[1., 0., 0.],
           [0., 1., 0.],
           [1., 1., 0.]])
    """
    codes = np.arange(1, 2 ** (n_classes - 1))
    return (codes[:, None] >> np.arange(n_classes) & 1).astype(np.float64)


def separated_pairs(n_classes: int) -> NDArray[np.float64]:
    """Which pairs of classes (columns) the sets of `class_subsets` (rows) separate.

    >>> separated_pairs(3)
    array([[1., 1., 0.],
           [1., 0., 1.],
           [0., 1., 1.]])
    """
    subsets = class_subsets(n_classes)
    first, second = class_pairs(n_classes).T
    return np.abs(subsets[:, first] - subsets[:, second])


def pair_differences(coef: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return ``|w_kj - w_lj|`` (pairs, p) of coefficients (k, p), in the order of `class_pairs`."""
    first, second = class_pairs(len(coef)).T
    return np.abs(coef[first] - coef[second])
