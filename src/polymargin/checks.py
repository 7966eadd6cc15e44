"""Checks of arguments: each failure names the argument, what was given and what is allowed.

The ranges stated here are those within which no sum of squares that a solver forms can overflow or vanish. What
lies outside is refused before any work, never rounded to something that fits.
"""

from collections.abc import Sequence
from numbers import Integral, Real
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from sklearn.utils import assert_all_finite, check_random_state

SMALLEST, LARGEST = 1e-15, 1e15
"""Range of C and other penalty weights, and of sample weights, class weights and costs other than zero."""

LARGEST_ENTRY = 1e30
"""Largest absolute value of an entry of X."""

LARGEST_KERNEL = LARGEST_ENTRY**2
"""Largest absolute value of a kernel."""


def check_real(
    name: str,
    value: Any,
    *,
    above: float | None = None,
    at_least: float | None = None,
    at_most: float | None = None,
    finite: bool = True,
) -> float:
    """Return `value` as a float, or raise if it is no number within the bounds."""
    allowed = "a " + ("finite " if finite else "") + "number"
    if above is not None:
        allowed += f" greater than {above:g}"
    if at_least is not None:
        allowed += f" of at least {at_least:g}"
    if at_most is not None:
        allowed += f" and at most {at_most:g}"
    if isinstance(value, (bool, np.bool_)) or not isinstance(value, Real):
        raise TypeError(f"{name} must be {allowed}, got {value!r} of type {type(value).__name__}.")
    try:
        number = float(value)
    except OverflowError:
        number = np.inf
    outside = (
        np.isnan(number)
        or (finite and np.isinf(number))
        or (above is not None and number <= above)
        or (at_least is not None and number < at_least)
        or (at_most is not None and number > at_most)
    )
    if outside:
        raise ValueError(f"{name} must be {allowed}, got {value!r}.")
    return number


MOST = 10**9
"""Largest count of anything."""


def check_integer(name: str, value: Any, *, at_least: int) -> int:
    """Return `value` as an int, or raise if it is no integer from `at_least` to a thousand million."""
    if isinstance(value, (bool, np.bool_)) or not isinstance(value, Integral):
        raise TypeError(
            f"{name} must be an integer of at least {at_least}, got {value!r} of type {type(value).__name__}."
        )
    if value < at_least:
        raise ValueError(f"{name} must be an integer of at least {at_least}, got {value!r}.")
    if int(value) > MOST:
        raise ValueError(f"{name} must be at most {MOST}, got an integer of {len(str(value))} digits.")
    return int(value)


def check_weight(name: str, value: Any) -> float:
    """Return C, or another weight of a term of an objective, as a float, or raise if it is out of range."""
    return check_real(name, value, at_least=SMALLEST, at_most=LARGEST)


def check_positive_values(
    name: str, values: Any, *, at_least: float = SMALLEST, at_most: float = LARGEST
) -> NDArray[np.float64]:
    """Return a grid of positive numbers as an array, or raise if one is out of range, or there are none."""
    try:
        flat = np.ravel(values).tolist()
    except ValueError:
        raise ValueError(f"{name} must be a list of numbers, got {values!r}.") from None
    grid = [check_real(f"every entry of {name}", value, at_least=at_least, at_most=at_most) for value in flat]
    if not grid:
        raise ValueError(f"{name} must hold at least one value, got none.")
    return np.array(grid)


def check_magnitudes(name: str, values: NDArray[np.float64]) -> None:
    """Refuse weights or costs, non-negative by now, that are neither zero nor in range."""
    outside = (values != 0.0) & ((values < SMALLEST) | (values > LARGEST))
    if outside.any():
        raise ValueError(
            f"{name} must be 0 or between {SMALLEST:g} and {LARGEST:g}, got {values[outside].flat[0]!s}."
        )


def check_finite_rows(X: Any, estimator: Any) -> None:
    """Refuse a dense or sparse matrix of rows with an entry that is missing, infinite, complex or out of range."""
    entries = X.data if sparse.issparse(X) else X
    if is_short(entries, LARGEST_ENTRY):
        return
    with np.errstate(invalid="ignore"):  # scikit-learn adds up all entries to find infinities
        assert_all_finite(X, estimator_name=type(estimator).__name__, input_name="X")
    check_entries("X", X)


def check_entries(name: str, X: Any, largest: float = LARGEST_ENTRY) -> None:
    """Refuse a dense or sparse matrix with an entry, all of them finite, that is complex or out of range."""
    entries = X.data if sparse.issparse(X) else X
    if entries.dtype.kind == "c":
        raise ValueError(f"{name} must hold real numbers, got complex ones ({entries.dtype}).")
    if entries.size == 0 or is_short(entries, largest):
        return
    extreme = max(float(entries.max()), -float(entries.min()))
    if extreme > largest:
        raise ValueError(
            f"{name} must have entries of absolute value at most {largest:g}, got {extreme:.3g}; scale it."
        )


def is_short(entries: NDArray, largest: float) -> bool:
    """Tell by one product, quicker than extremes are found, whether all entries are numbers and none is larger."""
    if entries.dtype.kind != "f" or not entries.flags.forc:  # it would be copied
        return False
    flat = entries.ravel(order="K")
    with np.errstate(over="ignore", invalid="ignore"):
        return float(np.vdot(flat, flat)) <= largest**2  # in double precision, where the bound is a number


def check_labels(name: str, labels: NDArray) -> None:
    """Refuse labels that are missing, or cannot be ordered because their types differ."""
    if labels.dtype.kind == "f" and np.isnan(labels).any():
        raise ValueError(f"{name} must hold a label for every row, got NaN.")
    if labels.dtype.kind != "O":
        return
    if any(label is None or label != label for label in labels.ravel().tolist()):
        raise ValueError(f"{name} must hold a label for every row, got missing ones (None or NaN).")
    kinds = {"str" if isinstance(label, str) else type(label).__name__ for label in labels.ravel()}
    try:
        sorted(set(labels.ravel().tolist()))
    except TypeError:
        raise TypeError(
            f"{name} must hold labels of one type, strings or numbers, got {' and '.join(sorted(kinds))}."
        ) from None


def check_seed(name: str, seed: Any) -> np.random.RandomState:
    """Return the random numbers that an argument asks for, as scikit-learn does, or raise if it cannot."""
    try:
        return check_random_state(seed)
    except (TypeError, ValueError):
        raise ValueError(
            f"{name} must be None, an integer from 0 to {2**32 - 1} or a RandomState of numpy, got {seed!r}."
        ) from None


def check_flag(name: str, value: Any) -> bool:
    """Return `value` as a bool, or raise if it is not one."""
    if not isinstance(value, (bool, np.bool_)):
        raise TypeError(f"{name} must be True or False, got {value!r} of type {type(value).__name__}.")
    return bool(value)


def check_choice(name: str, value: Any, choices: Sequence[str]) -> str:
    """Return `value`, or raise if it is not one of the `choices`."""
    if not isinstance(value, str) or value not in choices:
        raise ValueError(f"{name} must be one of {', '.join(map(repr, choices))}, got {value!r}.")
    return value
