"""The exact unpenalised intercept for given score functions, central where it is not unique."""

import numpy as np
from numpy.typing import NDArray

from polymargin._native.relative import cheapest_cycle
from polymargin.problems.hinge import BoxLosses, SimplexLosses
from polymargin.solvers.moves import NONE, class_arcs

_SAME_WEIGHT = 1e-11
"""Cumulative weights that differ by less than this part of the total are one weight summed in another order."""


def central_intercept(
    losses: BoxLosses | SimplexLosses, dual: NDArray[np.float64], H: NDArray[np.float64]
) -> NDArray[np.float64]:
    """Return intercepts b (k,), of zero sum, that minimise the losses at the scores ``H + b``.

    For relative losses they do so where the dual point is optimal, and only roughly elsewhere.
    """
    match losses:
        case BoxLosses() if losses.is_absolute:
            return quantile_intercept(-losses.margins(H), losses.upper)
        case _:
            arcs, _ = class_arcs(losses, dual, H)
            optimal, rough = potential_intercept(arcs), halfway_intercept(arcs)
            return rough if losses.value(H + rough) < (1.0 - 1e-9) * losses.value(H + optimal) else optimal


def quantile_intercept(G: NDArray[np.float64], upper: NDArray[np.float64]) -> NDArray[np.float64]:
    """Minimise ``sum_ij upper_ij [b_j - G_ij]_+`` over b of zero sum; of several minimisers take the central one.

    b_j is the upper-weighted quantile of ``G[:, j]`` at a cumulative weight mu that all classes share, mu such
    that b sums to zero. Where the quantiles at mu are intervals ``[left_j, right_j]``, the solution is
    ``left + theta (right - left)``, with infinite ends replaced by a number larger than the sum of the others:
    a choice that depends neither on the order of the rows nor on that of the classes.
    """
    classes = [_Quantiles(G[:, j], upper[:, j]) for j in range(G.shape[1])]
    heaviest = max(c.total for c in classes)
    if heaviest == 0.0:
        return np.zeros(len(classes))
    slack = _SAME_WEIGHT * heaviest
    candidates = np.unique(np.concatenate([[0.0], *(c.cumulative for c in classes)]))
    candidates = candidates[candidates <= min(c.total for c in classes) + slack]
    # the sum of the right ends grows with mu: find the first candidate where it reaches zero
    first, last = 0, len(candidates) - 1
    while first < last:
        middle = (first + last) // 2
        if sum(c.right_end(candidates[middle] + slack) for c in classes) >= 0.0:
            last = middle
        else:
            first = middle + 1
    mu = candidates[first]
    left = np.array([c.left_end(mu - slack) for c in classes])
    right = np.array([c.right_end(mu + slack) for c in classes])
    return _between(left, right)


class _Quantiles:
    """Weighted quantiles of one class."""

    def __init__(self, values: NDArray[np.float64], weights: NDArray[np.float64]):
        there = np.flatnonzero(weights)
        order = there[np.argsort(values[there])]
        self.values = values[order]
        self.cumulative = np.cumsum(weights[order])
        self.total = float(self.cumulative[-1]) if len(order) else 0.0

    def left_end(self, mu: float) -> float:
        """First value whose cumulative weight reaches `mu`; minus infinity if none has to lie below."""
        position = int(np.searchsorted(self.cumulative, mu, side="left"))
        if mu <= 0.0 or not len(self.values):
            return -np.inf
        return float(self.values[min(position, len(self.values) - 1)])

    def right_end(self, mu: float) -> float:
        """First value whose cumulative weight exceeds `mu`; infinity if none does."""
        position = int(np.searchsorted(self.cumulative, mu, side="right"))
        return float(self.values[position]) if position < len(self.values) else np.inf


def _between(left: NDArray[np.float64], right: NDArray[np.float64]) -> NDArray[np.float64]:
    """Point of zero sum on the segment from `left` to `right`, whose infinite ends are made finite."""
    finite = np.concatenate([left[np.isfinite(left)], right[np.isfinite(right)]])
    far = 1.0 + np.abs(finite).sum()
    left = np.where(np.isfinite(left), left, -far)
    right = np.where(np.isfinite(right), right, far)
    width = float((right - left).sum())
    theta = -float(left.sum()) / width if width > 0.0 else 0.0
    b = left + min(max(theta, 0.0), 1.0) * (right - left)
    return b - b.mean()


def potential_intercept(arcs: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return potentials of the classes: b of zero sum with ``b_d - b_c <= arcs[d, c] + slack``, slack least.

    `arcs` are the lowest rates at which weight moves from class d to class c. At an optimum no cycle of them is
    negative, the least slack is zero, and the inequalities are the optimality conditions of b; elsewhere it is
    minus the lowest mean of a cycle, and b spreads the violation evenly. Where b is not unique take
    ``b_c = mean over s of (dist(c, s) - dist(s, c)) / 2``, dist the shortest paths: as an average of potentials it
    is one, and it depends neither on the order of the rows nor on that of the classes. A class to which (from
    which) nothing can move is taken to be as far as the farthest of the others, at least 2, the margin.
    """
    missing = arcs >= NONE / 10
    slack = max(0.0, -cheapest_cycle(arcs)[0])
    distance = _shortest_paths(np.where(missing, np.inf, arcs + slack))
    finite = distance[np.isfinite(distance)]
    far = max(2.0, float(np.abs(finite).max()))
    distance = _shortest_paths(np.where(missing, far, arcs + slack))
    return (distance - distance.T).mean(axis=1) / 2


def halfway_intercept(arcs: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return b halfway between the bounds that either direction sets to a pair of classes, averaged over pairs.

    Far from the optimum, where the bounds contradict each other, this is often better than potentials, which
    serve the worst cycle alone.
    """
    missing = np.maximum(arcs, arcs.T) >= NONE / 10
    return np.where(missing, 0.0, arcs - arcs.T).mean(axis=1) / 2


def _shortest_paths(lengths: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the distances between all pairs of classes (Floyd & Warshall)."""
    distance = lengths.copy()
    np.fill_diagonal(distance, 0.0)
    for stop in range(len(distance)):
        distance = np.minimum(distance, distance[:, [stop]] + distance[stop])
    return distance
