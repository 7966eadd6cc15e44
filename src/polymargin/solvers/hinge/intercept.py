"""The exact unpenalised intercept for given score functions, central where it is not unique."""

from itertools import pairwise
from typing import cast

import numpy as np
from numpy.typing import NDArray

from polymargin._native.cycles import ROUNDING, cheapest_cycle, shortest_paths
from polymargin._native.quantiles import entries_within
from polymargin.problems.hinge import PolyhedralLosses, boxes
from polymargin.solvers.hinge.moves import NONE, class_arcs
from polymargin.solvers.hinge.settings import INTERCEPT

_SAME_WEIGHT = 1e-11
"""Cumulative weights that differ by less than this part of the total are one weight summed in another order."""


def central_intercept(
    losses: PolyhedralLosses,
    dual: NDArray[np.float64],
    H: NDArray[np.float64],
    *,
    guess: NDArray[np.float64] | None = None,
) -> NDArray[np.float64]:
    """Return the intercepts b (k,), of zero sum, that minimise the losses at the scores ``H + b``.

    A `guess` makes it faster where it is good; with it b may be another minimiser than the central one. For
    relative losses b is that of the dual point: exact where it is optimal, rough elsewhere.
    """
    if not losses.sees_single_scores:
        arcs, _ = class_arcs(losses, dual, H)
        optimal, rough = potential_intercept(arcs), halfway_intercept(arcs)
        return rough if losses.value(H + rough) < (1.0 - 1e-9) * losses.value(H + optimal) else optimal
    G, upper = -losses.margins(H), boxes(losses, "The intercept by quantiles").upper
    if guess is not None:
        b = quantile_intercept(G, upper, window=_narrow_window(G, upper, guess, INTERCEPT.reach * losses.offset))
        if b is not None:
            return b
    return cast(NDArray[np.float64], quantile_intercept(G, upper))


def _narrow_window(
    G: NDArray[np.float64], upper: NDArray[np.float64], guess: NDArray[np.float64], reach: float
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return bounds of the solution, if it is within `reach` of the guess: counted in bins, not sorted.

    All classes pass a number of bins by the weight mu; where the bins' lower ends, or their upper ones, sum to
    zero is told by how many are passed in all.
    """
    n, k = G.shape
    bins = min(INTERCEPT.bins, max(n, 1))  # no more than there are scores to count
    width, lowest = 2.0 * reach / bins, guess - reach
    # below the first bin, in one of them, or beyond the last
    place = np.clip((G - lowest) / width + 1.0, 0.0, bins + 1.0).astype(np.intp)
    place += np.arange(k) * (bins + 2)
    cumulative = np.bincount(place.ravel(), upper.ravel(), k * (bins + 2)).reshape(k, -1).cumsum(axis=1)
    weights = np.sort(cumulative, axis=None)
    fewest = -float(lowest.sum()) / width
    first, last = (weights[min(max(int(np.ceil(passed)), 1), weights.size) - 1] for passed in (fewest, fewest + k))
    slack = _SAME_WEIGHT * weights[-1]
    # the left end at the least weight may lie some bins before the right end
    begin, end = (cumulative < first - slack).sum(axis=1), (cumulative <= last + slack).sum(axis=1)
    return lowest + (begin - 2) * width, lowest + (end + 1) * width  # with a bin to spare for rounding


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
    quantiles = _Quantiles(G, upper, window)
    heaviest = float(quantiles.totals.max())
    if heaviest == 0.0:  # nothing is lost by any intercept, or all that could be is beyond the window
        return np.zeros(G.shape[1]) if window is None else None
    slack = _SAME_WEIGHT * heaviest
    mu = quantiles.weight_where_right_ends_reach_zero()
    left, right = quantiles.left_ends(mu - slack), quantiles.right_ends(mu + slack)
    if window is not None and not (np.isfinite(left).all() and np.isfinite(right).all()):
        return None
    return _between(left, right)


class _Quantiles:
    """Weighted quantiles of all classes; with a window, of the values in it above the weight below it."""

    def __init__(
        self,
        G: NDArray[np.float64],
        upper: NDArray[np.float64],
        window: tuple[NDArray[np.float64], NDArray[np.float64]] | None,
    ):
        k = G.shape[1]
        lowest, highest = (np.full(k, -np.inf), np.full(k, np.inf)) if window is None else window
        values, weights, counts, self.before = entries_within(G, upper, lowest, highest)
        self.owner = np.repeat(np.arange(k), counts)
        self.starts = np.concatenate([[0], np.cumsum(counts)])
        columns = [slice(*ends) for ends in pairwise(self.starts)]
        # each column by itself: one sort by column and value takes twice as long
        order = np.concatenate([column.start + np.argsort(values[column]) for column in columns])
        self.values = values[order]
        running = np.concatenate([[0.0], np.cumsum(weights[order])])
        self.cumulative = running[1:] - running[self.starts[self.owner]] + self.before[self.owner]
        self.totals = self.before + np.diff(running[self.starts])
        self.empty = np.diff(self.starts) == 0

    def left_ends(self, mu: float) -> NDArray[np.float64]:
        """First values whose cumulative weight reaches `mu`; minus infinity where none has to lie below."""
        return np.where(mu > self.before, self._values_after(self.cumulative < mu), -np.inf)

    def right_ends(self, mu: float) -> NDArray[np.float64]:
        """First values whose cumulative weight exceeds `mu`; infinity where none does."""
        return self._values_after(self.cumulative <= mu)

    def _values_after(self, passed: NDArray[np.bool_]) -> NDArray[np.float64]:
        position = self.starts[:-1] + np.bincount(self.owner[passed], minlength=len(self.empty))
        return np.where(position < self.starts[1:], np.append(self.values, np.inf)[position], np.inf)

    def weight_where_right_ends_reach_zero(self) -> float:
        """Return the least mu at which the right ends, which jump at cumulative weights, have no negative sum."""
        if self.empty.any() or self.values[self.starts[:-1]].sum() >= 0.0:
            return 0.0
        jumps = np.diff(self.values, append=np.inf)
        jumps[self.starts[1:] - 1] = np.inf
        order = np.argsort(self.cumulative)
        sums = self.values[self.starts[:-1]].sum() + np.cumsum(jumps[order])
        return float(self.cumulative[order[np.argmax(sums >= 0.0)]])


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
    mean = cheapest_cycle(arcs)[0]
    # cycles below zero by rounding alone would make shortest paths double their length at every class
    sizes = np.abs(np.where(missing, 0.0, arcs))
    slack = max(0.0, -mean) + 2.0 * ROUNDING * len(arcs) * float(sizes.max())
    distance = _shortest_paths(np.where(missing, np.inf, arcs + slack))
    finite = distance[np.isfinite(distance)]
    far = max(2.0, float(np.abs(finite).max()))
    if missing.sum() > len(arcs):  # besides the diagonal
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
    """Return the distances between all pairs of classes."""
    distance = lengths.copy()
    np.fill_diagonal(distance, 0.0)
    shortest_paths(distance)
    return distance
