"""Which predictions are too weak: thresholds of the loss from counts of left-out predictions."""

import warnings
from dataclasses import dataclass
from typing import Literal, assert_never, get_args

import numpy as np
from numpy.typing import NDArray

Rule = Literal["quantile", "target_error", "coverage", "rejection_cost"]
RULES: tuple[Rule, ...] = get_args(Rule)
"""By what a threshold is found."""


@dataclass(frozen=True, slots=True)
class Tally:
    """Weighted counts of the left-out predictions of at most every distinct loss, ascending."""

    loss: NDArray[np.float64]
    accepted: NDArray[np.float64]
    errors: NDArray[np.float64]

    @classmethod
    def of(cls, losses: NDArray[np.float64], right: NDArray[np.bool_], counts: NDArray[np.float64]) -> "Tally":
        """Count."""
        kept = counts > 0
        distinct, position = np.unique(losses[kept], return_inverse=True)
        accepted, errors = (
            np.cumsum(np.bincount(position, weights).astype(np.float64))
            for weights in (counts[kept], counts[kept] * ~right[kept])
        )
        return cls(distinct, accepted, errors)


def find_threshold(tally: Tally, rule: Rule, level: float) -> float:
    """Return the highest loss to accept; infinite if nothing is to be rejected."""
    match rule:
        case "quantile":
            return order_statistic(tally.loss, tally.accepted - tally.errors, level)
        case "coverage":
            return order_statistic(tally.loss, tally.accepted, level)
        case "target_error":
            # One more error among one more prediction: the last crossing of the raw share would be optimistic.
            within = np.flatnonzero((tally.errors + 1.0) / (tally.accepted + 1.0) <= level)
            if len(within) == 0:
                warnings.warn(
                    f"No threshold reaches target_error={level:g} on the left-out predictions: everything will be "
                    "rejected. Raise the target, or give more data.",
                    stacklevel=3,
                )
                return -np.inf
            return float(tally.loss[within[-1]])
        case "rejection_cost":
            cost = tally.errors - level * tally.accepted
            best = len(cost) - 1 - int(np.argmin(cost[::-1]))
            return float(tally.loss[best]) if cost[best] <= 0 else -np.inf
        case unknown:
            assert_never(unknown)


def order_statistic(loss: NDArray[np.float64], counts: NDArray[np.float64], level: float) -> float:
    """Return the ceil((n + 1) level)-th smallest loss, n = counts[-1]; infinite if there are not so many."""
    position = int(np.searchsorted(counts, np.ceil((counts[-1] + 1.0) * level * (1 - 1e-12))))
    return float(loss[position]) if position < len(loss) else np.inf
