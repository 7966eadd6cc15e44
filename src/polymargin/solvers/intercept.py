"""The exact unpenalised intercept for given score functions, central where it is not unique."""

from typing import cast

import numpy as np
from numpy.typing import NDArray

from polymargin._native.relative import cheapest_cycle
from polymargin.problems.hinge import BoxLosses, SimplexLosses
from polymargin.solvers.moves import NONE, class_arcs

_SAME_WEIGHT = 1e-11
"""Cumulative weights that differ by less than this part of the total are one weight summed in another order."""


def central_intercept(
    losses: BoxLosses | SimplexLosses,
    dual: NDArray[np.float64],
    H: NDArray[np.float64],
    *,
    guess: NDArray[np.float64] | None = None,
) -> NDArray[np.float64]:
    """Return the intercepts b (k,), of zero sum, that minimise the losses at the scores ``H + b``.

    A `guess` makes it faster where it is good; with it b may be another minimiser than the central one. For
    relative losses b is that of the dual point: exact where it is optimal, rough elsewhere.
    """
    match losses:
        case BoxLosses() if losses.is_absolute:
            G = -losses.margins(H)
            reach = 0.05 * losses.offset
            for _ in range(3):
                if guess is None:
                    break
                b = quantile_intercept(G, losses.upper, window=(guess - reach, guess + reach))
                if b is not None:
                    return b
                reach *= 4.0
            return cast(NDArray[np.float64], quantile_intercept(G, losses.upper))
        case _:
            arcs, _ = class_arcs(losses, dual, H)
            optimal, rough = potential_intercept(arcs), halfway_intercept(arcs)
            return rough if losses.value(H + rough) < (1.0 - 1e-9) * losses.value(H + optimal) else optimal


def quantile_intercept(
    G: NDArray[np.float64],
    upper: NDArray[np.float64],
    window: tuple[NDArray[np.float64], NDArray[np.float64]] | None = None,
) -> NDArray[np.float64] | None:
    """Minimise ``sum_ij upper_ij [b_j - G_ij]_+`` over b of zero sum; of several minimisers take the central one.

    b_j is the upper-weighted quantile of ``G[:, j]`` at a cumulative weight mu that all classes share, mu such
    that b sums to zero. Where the quantiles at mu are intervals ``[left_j, right_j]``, the solution is
    ``left + theta (right - left)``, with infinite ends replaced by a number larger than the sum of the others:
    a choice that depends neither on the order of the rows nor on that of the classes.

    Within a `window` (lowest, highest) only the values in it are sorted; None if the solution is not inside.
    """
    classes = _quantiles(G, upper, window)
    heaviest = max(c.total for c in classes)
    if heaviest == 0.0:
        return np.zeros(len(classes))
    if window is not None and any(not len(c.values) for c in classes):
        return None
    slack = _SAME_WEIGHT * heaviest
    # the sum of the right ends grows with mu by the jumps from one value to the next: where does it reach zero?
    weights = np.concatenate([[0.0], *(c.cumulative for c in classes)])
    jumps = np.concatenate([[sum(c.right_end(slack) for c in classes)], *(c.jumps() for c in classes)])
    order = np.argsort(weights, kind="stable")
    mu = weights[order[np.argmax(np.cumsum(jumps[order]) >= 0.0)]]
    left = np.array([c.left_end(mu - slack) for c in classes])
    right = np.array([c.right_end(mu + slack) for c in classes])
    if window is not None and not (np.isfinite(left).all() and np.isfinite(right).all()):
        return None
    return _between(left, right)


class _Quantiles:
    """Weighted quantiles of one class, whose values are sorted; `before` is the weight that lies below them."""

    def __init__(self, values: NDArray[np.float64], weights: NDArray[np.float64], before: float = 0.0):
        self.values = values
        self.cumulative = before + np.cumsum(weights)
        self.before = before
        self.total = float(self.cumulative[-1]) if len(values) else 0.0

    def jumps(self) -> NDArray[np.float64]:
        """Return by how much the right end grows at every cumulative weight."""
        return np.diff(self.values, append=np.inf)

    def left_end(self, mu: float) -> float:
        """First value whose cumulative weight reaches `mu`; minus infinity if none has to lie below."""
        if mu <= self.before or not len(self.values):
            return -np.inf
        position = int(np.searchsorted(self.cumulative, mu, side="left"))
        return float(self.values[min(position, len(self.values) - 1)])

    def right_end(self, mu: float) -> float:
        """First value whose cumulative weight exceeds `mu`; infinity if none does."""
        position = int(np.searchsorted(self.cumulative, mu, side="right"))
        return float(self.values[position]) if position < len(self.values) else np.inf


def _quantiles(
    G: NDArray[np.float64],
    upper: NDArray[np.float64],
    window: tuple[NDArray[np.float64], NDArray[np.float64]] | None,
) -> list[_Quantiles]:
    """Sort the values of every class that carry weight, within the window where there is one."""
    used = upper > 0
    before = np.zeros(G.shape[1])
    if window is not None:
        below = window[0] > G
        before = np.einsum("ij,ij->j", upper, below)
        used &= ~below & (window[1] >= G)
    classes = []
    for j, weight_below in enumerate(before):
        rows = np.flatnonzero(used[:, j])
        rows = rows[np.argsort(G[rows, j])]
        classes.append(_Quantiles(G[rows, j], upper[rows, j], weight_below))
    return classes


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
