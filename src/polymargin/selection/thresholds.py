"""Which predictions are too weak: thresholds of the loss from counts and costs of left-out predictions."""

import warnings
from dataclasses import dataclass
from typing import Literal, assert_never, get_args

import numpy as np
from numpy.typing import NDArray

Rule = Literal["quantile", "target_error", "target_cost", "coverage", "rejection_cost"]
RULES: tuple[Rule, ...] = get_args(Rule)
"""By what a threshold is found."""


@dataclass(frozen=True, slots=True)
class Tally:
    """Weighted counts of the left-out predictions of at most every distinct loss, ascending.

    Attributes
    ----------
    loss : (m,) the distinct losses.
    accepted, errors : (m,) predictions, and wrong ones, of at most this loss.
    cost : (m,) their summed costs.
    largest_cost : what one more prediction may cost.
    """

    loss: NDArray[np.float64]
    accepted: NDArray[np.float64]
    errors: NDArray[np.float64]
    cost: NDArray[np.float64]
    largest_cost: float

    @classmethod
    def of(
        cls,
        losses: NDArray[np.float64],
        right: NDArray[np.bool_],
        counts: NDArray[np.float64],
        charged: NDArray[np.float64] | None = None,
        largest_cost: float = 1.0,
    ) -> "Tally":
        """Count; without what the predictions are `charged` every error costs 1."""
        charged = (~right).astype(np.float64) if charged is None else charged
        kept = counts > 0
        distinct, position = np.unique(losses[kept], return_inverse=True)
        accepted, errors, cost = (
            np.cumsum(np.bincount(position, weights).astype(np.float64))
            for weights in (counts[kept], counts[kept] * ~right[kept], counts[kept] * charged[kept])
        )
        return cls(distinct, accepted, errors, cost, largest_cost)


def find_threshold(tally: Tally, rule: Rule, level: float) -> float:
    """Return the highest loss to accept; infinite if nothing is to be rejected."""
    match rule:
        case "quantile":
            return order_statistic(tally.loss, tally.accepted - tally.errors, level)
        case "coverage":
            return order_statistic(tally.loss, tally.accepted, level)
        case "target_error":
            # One more error among one more prediction: the last crossing of the raw share would be optimistic.
            return _last_within(tally, tally.errors + 1.0, rule, level)
        case "target_cost":
            return _last_within(tally, tally.cost + tally.largest_cost, rule, level)
        case "rejection_cost":
            cost = tally.cost - level * tally.accepted
            best = len(cost) - 1 - int(np.argmin(cost[::-1]))
            return float(tally.loss[best]) if cost[best] <= 0 else -np.inf
        case unknown:
            assert_never(unknown)


def _last_within(tally: Tally, charged: NDArray[np.float64], rule: str, level: float) -> float:
    within = np.flatnonzero(charged / (tally.accepted + 1.0) <= level)
    if len(within):
        return float(tally.loss[within[-1]])
    warnings.warn(
        f"No threshold reaches {rule}={level:g} on the left-out predictions: everything will be rejected. Raise "
        "the target, or give more data.",
        stacklevel=4,
    )
    return -np.inf


def order_statistic(loss: NDArray[np.float64], counts: NDArray[np.float64], level: float) -> float:
    """Return the ceil((n + 1) level)-th smallest loss, n = counts[-1]; infinite if there are not so many."""
    position = int(np.searchsorted(counts, np.ceil((counts[-1] + 1.0) * level * (1 - 1e-12))))
    return float(loss[position]) if position < len(loss) else np.inf
