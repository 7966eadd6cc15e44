"""Penalties of Guo (2010) that zero or fuse the coefficients of a variable, with their polars and atoms.

A penalty is a sum over the variables of polyhedral norms, ``J(W) = sum_j P_j(w_j)``, of coefficients w_j (k,) that
sum to zero. Its polar ``max {g.w : 1'w = 0, P_j(w) <= 1}`` is attained at one of finitely many *atoms*.
"""

from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from polymargin.coding import class_pairs

MAX_CLASSES_OF_WEIGHTED_FUSION = 12
_CHUNK_ENTRIES = 4_000_000
SMALLEST_SIZE = 1e-6
"""Denominators of adaptive weights are at least this fraction of the largest."""


@dataclass(frozen=True, slots=True)
class Atoms:
    """Extreme directions of single variables: `directions[m]` (k,) moves variable `variables[m]` at `costs[m]`."""

    variables: NDArray[np.intp]
    directions: NDArray[np.float64]
    costs: NDArray[np.float64]

    def at(self, positions: Any) -> "Atoms":
        """Return the atoms at the given positions."""
        return Atoms(self.variables[positions], self.directions[positions], self.costs[positions])


class Penalty(Protocol):
    """A sum over the variables of polyhedral norms of their coefficients (k,) of zero sum."""

    def value(self, coef: NDArray[np.float64]) -> float:
        """Return J(W) for W (k, p)."""
        ...

    def polars(self, G: NDArray[np.float64], *, above: float = 1.0) -> NDArray[np.float64]:
        """Return the polar of every variable at G (k, p); of one not greater than `above` a bound may do."""
        ...

    def best_atoms(self, G: NDArray[np.float64], variables: NDArray[np.intp]) -> Atoms:
        """Return the atoms that attain the polars of some variables at G (k, p)."""
        ...

    def combine(self, atoms: Atoms, multipliers: NDArray[np.float64], n_features: int) -> NDArray[np.float64]:
        """Return W (k, p), the sum of the atoms times their multipliers, with exact zeros and ties."""
        ...

    def restricted(self, variables: NDArray[np.intp]) -> "Penalty":
        """Return the penalty of some of the variables."""
        ...


def _sum_of_atoms(atoms: Atoms, multipliers: NDArray[np.float64], n_features: int) -> NDArray[np.float64]:
    """Add atoms one by one: classes that every atom of a variable treats alike get identical sums."""
    coef = np.zeros((n_features, atoms.directions.shape[1]))
    np.add.at(coef, atoms.variables, multipliers[:, None] * atoms.directions)
    return coef.T


@dataclass(frozen=True, slots=True)
class LassoPenalty:
    """l1, (3) of Guo: ``sum_kj tau_kj |w_kj|``; atoms ``e_k - e_l`` of cost ``tau_k + tau_l``.

    Attributes
    ----------
    weights : (k, p) positive tau.
    """

    weights: NDArray[np.float64]

    def value(self, coef: NDArray[np.float64]) -> float:
        """Return J(W)."""
        return float(np.sum(self.weights * np.abs(coef)))

    def polars(self, G: NDArray[np.float64], *, above: float = 1.0) -> NDArray[np.float64]:
        """``max_{k<l} |g_k - g_l| / (tau_k + tau_l)``."""
        return self._steepest(G, self.weights)[0]

    def best_atoms(self, G: NDArray[np.float64], variables: NDArray[np.intp]) -> Atoms:
        """Return the pair of classes of steepest difference."""
        weights = self.weights[:, variables]
        _, pair = self._steepest(G[:, variables], weights)
        first, second = class_pairs(len(G))[pair].T
        rows = np.arange(len(variables))
        directions = np.zeros((len(variables), len(G)))
        directions[rows, first] = 1.0
        directions[rows, second] = -1.0
        return Atoms(variables, directions, weights[first, rows] + weights[second, rows])

    def combine(self, atoms: Atoms, multipliers: NDArray[np.float64], n_features: int) -> NDArray[np.float64]:
        """Return W; a class that no atom names has exactly 0."""
        return _sum_of_atoms(atoms, multipliers, n_features)

    def restricted(self, variables: NDArray[np.intp]) -> "LassoPenalty":
        """Return the penalty of some of the variables."""
        return LassoPenalty(self.weights[:, variables])

    @staticmethod
    def _steepest(
        G: NDArray[np.float64], weights: NDArray[np.float64]
    ) -> tuple[NDArray[np.float64], NDArray[np.intp]]:
        best = np.full(G.shape[1], -1.0)
        winner = np.zeros(G.shape[1], dtype=np.intp)
        for index, (a, b) in enumerate(class_pairs(len(G))):
            slope = np.abs(G[a] - G[b]) / (weights[a] + weights[b])
            better = slope > best
            best[better] = slope[better]
            winner[better] = index
        return best, winner


@dataclass(frozen=True, slots=True)
class SupnormPenalty:
    """Sup-norm, (4) of Guo: ``sum_j max_k tau_kj |w_kj|``.

    Atoms have all coordinates at ±1/tau_k but one, which makes the sum zero, and cost 1.

    Attributes
    ----------
    weights : (k, p) positive tau.
    """

    weights: NDArray[np.float64]

    def value(self, coef: NDArray[np.float64]) -> float:
        """Return J(W)."""
        return float(np.max(self.weights * np.abs(coef), axis=0).sum())

    def polars(self, G: NDArray[np.float64], *, above: float = 1.0) -> NDArray[np.float64]:
        """``sum_k |g_k - mu| / tau_k`` with mu the median of g weighted by 1/tau."""
        order, median = self._medians(G, self.weights)
        centre = np.take_along_axis(G, np.take_along_axis(order, median[None], axis=0), axis=0)
        return np.sum(np.abs(G - centre) / self.weights, axis=0)

    def best_atoms(self, G: NDArray[np.float64], variables: NDArray[np.intp]) -> Atoms:
        """Return -1/tau below the median, 1/tau above it, and the balance at the median."""
        reach = 1.0 / self.weights[:, variables]
        order, median = self._medians(G[:, variables], self.weights[:, variables])
        signs = np.sign(np.arange(len(G))[:, None] - median)
        sorted_directions = signs * np.take_along_axis(reach, order, axis=0)
        rows = np.arange(len(variables))
        sorted_directions[median, rows] = -sorted_directions.sum(axis=0)
        directions = np.empty_like(reach)
        np.put_along_axis(directions, order, sorted_directions, axis=0)
        return Atoms(variables, directions.T, np.ones(len(variables)))

    def combine(self, atoms: Atoms, multipliers: NDArray[np.float64], n_features: int) -> NDArray[np.float64]:
        """Return W; classes of equal tau that every atom puts on the same side are exactly equal."""
        return _sum_of_atoms(atoms, multipliers, n_features)

    def restricted(self, variables: NDArray[np.intp]) -> "SupnormPenalty":
        """Return the penalty of some of the variables."""
        return SupnormPenalty(self.weights[:, variables])

    @staticmethod
    def _medians(
        G: NDArray[np.float64], weights: NDArray[np.float64]
    ) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
        """Return the ascending order of the classes and the position of the weighted median in it."""
        order = np.argsort(G, axis=0, kind="stable")
        mass = np.cumsum(np.take_along_axis(1.0 / weights, order, axis=0), axis=0)
        return order, np.argmax(mass >= 0.5 * mass[-1], axis=0)


@dataclass(frozen=True, slots=True)
class FusionPenalty:
    """Pairwise fusion, (5) of Guo: ``sum_j sum_{k<l} tau_jkl |w_kj - w_lj|``.

    Atoms are the indicators ``1_S`` of sets of classes (centred by `combine`), their cost the cut
    ``F(S) = sum_{k in S, l not in S} tau_kl``: classes k and l are fused unless an active S separates them.

    Attributes
    ----------
    weights : (k(k-1)/2, p) positive tau in the order of `coding.class_pairs`, or None for ones.
    """

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

        Unit weights: S is a prefix of the descending order. Otherwise all S are tried, but only for variables
        whose bound ``unit polar / min tau`` is greater than `above`; for the others the bound is returned.
        """
        unit = self._prefix_ratios(np.sort(G, axis=0)[::-1]).max(axis=0)
        if self.weights is None:
            return unit
        polars = unit / self.weights.min(axis=0)
        suspects = np.flatnonzero(polars > above)
        if len(suspects):
            polars[suspects] = self._steepest_cuts(G, suspects)[0]
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
        _, cut, costs = self._steepest_cuts(G, variables)
        return Atoms(variables, class_subsets(k)[cut], costs)

    def combine(self, atoms: Atoms, multipliers: NDArray[np.float64], n_features: int) -> NDArray[np.float64]:
        """Return W with columns of zero sum; fused classes are exactly equal."""
        coef = _sum_of_atoms(atoms, multipliers, n_features)
        return coef - coef.mean(axis=0)

    def restricted(self, variables: NDArray[np.intp]) -> "FusionPenalty":
        """Return the penalty of some of the variables."""
        return FusionPenalty(None if self.weights is None else self.weights[:, variables])

    @staticmethod
    def _prefix_ratios(descending: NDArray[np.float64]) -> NDArray[np.float64]:
        k = len(descending)
        centred = descending - descending.mean(axis=0)
        size = np.arange(1, k)[:, None]
        return np.cumsum(centred, axis=0)[:-1] / (size * (k - size))

    def _steepest_cuts(
        self, G: NDArray[np.float64], variables: NDArray[np.intp]
    ) -> tuple[NDArray[np.float64], NDArray[np.intp], NDArray[np.float64]]:
        """Return polar, index and cost of the best cut of some variables, in chunks that fit the cache."""
        assert self.weights is not None
        k = len(G)
        subsets, separated = class_subsets(k), separated_pairs(k)
        polars = np.empty(len(variables))
        winners = np.empty(len(variables), dtype=np.intp)
        costs = np.empty(len(variables))
        step = max(1, _CHUNK_ENTRIES // len(subsets))
        for start in range(0, len(variables), step):
            part = slice(start, start + step)
            chunk = variables[part]
            g = G[:, chunk] - G[:, chunk].mean(axis=0)
            cuts = separated @ self.weights[:, chunk]
            slopes = np.abs(subsets @ g) / cuts
            winners[part] = slopes.argmax(axis=0)
            columns = np.arange(len(chunk))
            polars[part] = slopes[winners[part], columns]
            costs[part] = cuts[winners[part], columns]
        return polars, winners, costs


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


def adaptive_weights(
    sizes: NDArray[np.float64], *, power: float = 1.0, per_variable: bool = False
) -> NDArray[np.float64]:
    """Return ``1 / size^power``, sizes floored at 1e-6 of the largest; ones where all are zero.

    `sizes` (m, p) are |w_kj| or |w_kj - w_lj| of an initial fit; with `per_variable` the largest of a variable
    stands for all of them.

    >>> adaptive_weights(np.array([[2.0, 0.5], [1.0, 0.0]])).round(3)
    array([[5.e-01, 2.e+00],
           [1.e+00, 5.e+05]])
    """
    if per_variable:
        sizes = np.broadcast_to(sizes.max(axis=0), sizes.shape)
    largest = float(sizes.max())
    if largest == 0.0:
        return np.ones(sizes.shape)
    return np.maximum(sizes, SMALLEST_SIZE * largest) ** -power


def pair_differences(coef: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return ``|w_kj - w_lj|`` (pairs, p) of coefficients (k, p), in the order of `class_pairs`."""
    first, second = class_pairs(len(coef)).T
    return np.abs(coef[first] - coef[second])
