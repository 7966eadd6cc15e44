"""What is said of rejected predictions: the label that stands for them, and why each was rejected."""

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from polymargin.selection.decisions import expected_costs


def resolve_reject_label(reject_label: Any, classes: NDArray) -> Any:
    """Return the label of rejections: of the classes' type and none of them."""
    is_numeric = classes.dtype.kind in "biuf"
    if classes.dtype.kind == "u" and int(classes.max()) > np.iinfo(np.int64).max:
        raise TypeError(
            f"y must hold integers up to {np.iinfo(np.int64).max}, so that there is a label for rejections, got "
            f"{int(classes.max())}."
        )
    if reject_label is None:
        return min(-1, int(np.floor(classes.min())) - 1) if is_numeric else "rejected"
    given = np.asarray(reject_label)
    same_type = given.ndim == 0 and (given.dtype.kind in ("iuf" if is_numeric else "US"))
    if same_type and classes.dtype.kind in "biu":
        same_type = given.dtype.kind in "iu"
    if not same_type:
        raise TypeError(
            f"reject_label must be of the type of the classes {classes.tolist()}, got {reject_label!r} of type "
            f"{type(reject_label).__name__}."
        )
    if reject_label in classes.tolist():
        raise ValueError(f"reject_label must not be one of the classes {classes.tolist()}, got {reject_label!r}.")
    return reject_label


def reasons_by_scores(
    scores: NDArray[np.float64],
    losses_of: Callable[[NDArray[np.float64]], NDArray[np.float64]],
    thresholds: Any,
) -> NDArray[np.str_]:
    """Tell whether predictions are accepted and, if not, whether they were without the second best class."""
    if scores.shape[1] > 2:
        rivals = scores.copy()
        np.put_along_axis(rivals, np.argsort(scores, axis=1)[:, -2:-1], -np.inf, axis=1)
        between_two = losses_of(rivals) <= thresholds
    else:
        between_two = np.ones(len(scores), dtype=bool)
    return np.where(losses_of(scores) <= thresholds, "accepted", np.where(between_two, "ambiguous", "novel"))


def reasons_by_expected_costs(
    P: NDArray[np.float64], costs: NDArray[np.float64], thresholds: Any
) -> NDArray[np.str_]:
    """Tell which one class, were it impossible, would let a prediction be accepted."""
    expected = expected_costs(P, costs)
    winners, rows = expected.argmin(axis=1), np.arange(len(P))
    parts = P * costs[:, winners].T  # what every true class contributes

    def accepted_without(classes: NDArray[np.intp]) -> NDArray[np.bool_]:
        rest = 1.0 - P[rows, classes]
        left = expected[rows, winners] - parts[rows, classes]
        return left <= thresholds * np.maximum(rest, 0.0)

    others = P.copy()
    others[rows, winners] = -1.0
    reasons = np.where(accepted_without(others.argmax(axis=1)), "ambiguous", "novel")
    reasons = np.where((reasons == "novel") & accepted_without(parts.argmax(axis=1)), "costly", reasons)
    return np.where(expected[rows, winners] <= thresholds, "accepted", reasons)
