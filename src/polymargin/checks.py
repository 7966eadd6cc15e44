"""Checks of scalar arguments: each failure names the argument, what was given and what is allowed."""

from collections.abc import Sequence
from numbers import Integral, Real
from typing import Any

import numpy as np


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
    number = float(value)
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


def check_integer(name: str, value: Any, *, at_least: int) -> int:
    """Return `value` as an int, or raise if it is no integer of at least `at_least`."""
    if isinstance(value, (bool, np.bool_)) or not isinstance(value, Integral):
        raise TypeError(
            f"{name} must be an integer of at least {at_least}, got {value!r} of type {type(value).__name__}."
        )
    if value < at_least:
        raise ValueError(f"{name} must be an integer of at least {at_least}, got {value!r}.")
    return int(value)


def check_positive_values(name: str, values: Any) -> np.ndarray:
    """Return a grid of positive numbers as an array, or raise if one is not, or there are none."""
    grid = [check_real(f"every entry of {name}", value, above=0.0) for value in np.ravel(values).tolist()]
    if not grid:
        raise ValueError(f"{name} must hold at least one value, got none.")
    return np.array(grid)


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
