"""The exact unpenalised intercept for given score functions, central where it is not unique."""

import numpy as np
from numpy.typing import NDArray

from polymargin.problems.hinge import BoxLosses, SimplexLosses

_SAME_WEIGHT = 1e-11
"""Cumulative weights that differ by less than this part of the total are one weight summed in another order."""


def central_intercept(
    losses: BoxLosses | SimplexLosses, dual: NDArray[np.float64], H: NDArray[np.float64]
) -> NDArray[np.float64]:
    """Return the intercepts b (k,), of zero sum, that minimise the losses at the scores ``H + b``."""
    match losses:
        case BoxLosses() if losses.is_absolute:
            return quantile_intercept(-losses.margins(H), losses.upper)
        case _:
            raise NotImplementedError


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
