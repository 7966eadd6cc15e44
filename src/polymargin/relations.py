"""What a relation matrix M may be: bounds, fixed entries and symmetry, resolved to one checked set."""

import reprlib
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from polymargin.checks import LARGEST, check_choice, check_real

CONSTRAINTS = ("symmetric", "psd", "nonnegative")


@dataclass(frozen=True, slots=True)
class RelationSet:
    """The matrices M (b, p) with ``lower <= M <= upper``, symmetric or positive semi-definite where asked.

    Infinite bounds stand for none, equal bounds for a fixed entry. With `psd` the set is symmetric too, and
    symmetric sets have symmetric bounds.
    """

    lower: NDArray[np.float64]
    upper: NDArray[np.float64]
    symmetric: bool = False
    psd: bool = False

    @classmethod
    def free(cls, n_base: int, n_final: int) -> "RelationSet":
        """Return the set of all matrices."""
        return cls(np.full((n_base, n_final), -np.inf), np.full((n_base, n_final), np.inf))

    @property
    def is_bounded(self) -> bool:
        """Whether any entry has a finite bound."""
        return bool(np.isfinite(self.lower).any() or np.isfinite(self.upper).any())

    @property
    def is_free(self) -> bool:
        """Whether every matrix is allowed."""
        return not (self.symmetric or self.is_bounded)

    def clip(self, M: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return the nearest matrix within the bounds."""
        return np.clip(M, self.lower, self.upper)

    def violation(self, M: NDArray[np.float64]) -> float:
        """Largest violation of a constraint, relative to the largest entry of M (at least one)."""
        worst = float(np.abs(M - self.clip(M)).max())
        if self.symmetric:
            worst = max(worst, float(np.abs(M - M.T).max()))
        if self.psd:
            worst = max(worst, float(-np.linalg.eigvalsh((M + M.T) / 2)[0]))
        return worst / max(1.0, float(np.abs(M).max()))


def resolve_relations(
    bounds: Any, constraint: Any, fixed_relations: Any, shape: tuple[int, int], classes: NDArray, scheme: str
) -> RelationSet:
    """Return the set that `bounds`, `constraint` and `fixed_relations` describe for M of `shape` (b, p).

    >>> resolve_relations((-1, 1), None, {("a", "b"): 0.5}, (2, 2), np.array(["a", "b"]), "ovr").lower
    array([[-1. ,  0.5],
           [-1. , -1. ]])
    """
    if constraint is not None:
        check_choice("constraint", constraint, CONSTRAINTS)
    symmetric = constraint in ("symmetric", "psd")
    if symmetric and scheme == "ovo":
        raise ValueError(
            f"constraint={constraint!r} relates classes to classes and needs scheme='ovr', got scheme='ovo', "
            "whose matrix mixes base classifiers into pairs of classes."
        )
    if symmetric and shape[0] != shape[1]:
        raise ValueError(
            f"constraint={constraint!r} needs a square matrix, n_base = n_classes = {shape[1]}, got "
            f"n_base={shape[0]}."
        )
    lower, upper = _resolve_bounds(bounds, shape)
    if constraint == "nonnegative":
        if (upper < 0).any():
            raise ValueError(
                f"constraint='nonnegative' contradicts upper bounds below zero, got bounds={bounds!r}."
            )
        lower = np.maximum(lower, 0.0)
    fixed = _resolve_fixed(fixed_relations, shape, classes, scheme)
    if symmetric:
        lower, upper = np.maximum(lower, lower.T), np.minimum(upper, upper.T)
        if (lower > upper).any():
            raise ValueError(f"bounds leave no symmetric matrix, got {bounds!r}.")
        fixed = _symmetrise_fixed(fixed, constraint)
    if constraint == "psd" and (np.diag(upper) < 0).any():
        raise ValueError(f"constraint='psd' contradicts upper bounds below zero on the diagonal, got {bounds!r}.")
    given = ~np.isnan(fixed)
    outside = given & ((fixed < lower) | (fixed > upper))
    if outside.any():
        row, column = np.argwhere(outside)[0]
        raise ValueError(
            f"fixed_relations must lie within the bounds, got {fixed[row, column]:g} for entry ({row}, {column}) "
            f"with bounds [{lower[row, column]:g}, {upper[row, column]:g}]."
        )
    lower, upper = np.where(given, fixed, lower), np.where(given, fixed, upper)
    return RelationSet(lower, upper, symmetric, constraint == "psd")


def _resolve_bounds(bounds: Any, shape: tuple[int, int]) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    if bounds is None:
        return np.full(shape, -np.inf), np.full(shape, np.inf)
    message = (
        f"bounds must be None or a pair (lower, upper) of numbers or arrays of shape {shape}, got {bounds!r}."
    )
    try:
        pair = [np.array(side, dtype=np.float64) for side in bounds]
    except (TypeError, ValueError):
        raise TypeError(message) from None
    if len(pair) != 2 or any(side.shape not in ((), shape) for side in pair):
        raise ValueError(message)
    lower, upper = (np.broadcast_to(side, shape).copy() for side in pair)
    if np.isnan(lower).any() or np.isnan(upper).any() or not (lower < np.inf).all() or not (upper > -np.inf).all():
        raise ValueError(f"bounds must not be NaN, nor leave an entry no number, got {bounds!r}.")
    if (lower > upper).any():
        raise ValueError(f"bounds must have lower <= upper in every entry, got {bounds!r}.")
    sides = np.abs([lower, upper])
    if (np.isfinite(sides) & (sides > LARGEST)).any():
        raise ValueError(f"bounds must be at most {LARGEST:g} in size, or infinite for none, got {bounds!r}.")
    return lower, upper


def _resolve_fixed(fixed: Any, shape: tuple[int, int], classes: NDArray, scheme: str) -> NDArray[np.float64]:
    """Return the fixed values (b, p), NaN where an entry is free."""
    values = np.full(shape, np.nan)
    if fixed is None:
        return values
    if isinstance(fixed, Mapping):
        if scheme == "ovo" or shape[0] != len(classes):
            raise ValueError(
                "fixed_relations as a dict {(class, class): value} needs scheme='ovr' and n_base = n_classes; "
                f"give an array of shape {shape} with NaN for free entries instead."
            )
        position = {label: index for index, label in enumerate(classes.tolist())}
        for pair, value in fixed.items():
            if not (isinstance(pair, tuple) and len(pair) == 2 and all(label in position for label in pair)):
                raise ValueError(
                    f"fixed_relations: keys must be pairs of the classes {classes.tolist()}, got {pair!r}."
                )
            values[position[pair[0]], position[pair[1]]] = check_real(f"fixed_relations[{pair!r}]", value)
    else:
        try:
            values = np.array(fixed, dtype=np.float64)
        except (TypeError, ValueError):
            raise TypeError(f"fixed_relations must be an array of numbers or a dict, got {fixed!r}.") from None
        except OverflowError:
            raise ValueError(
                f"fixed_relations must hold numbers of moderate size, got {reprlib.repr(fixed)}."
            ) from None
        if values.shape != shape:
            raise ValueError(
                f"fixed_relations must have shape {shape}, one row a base and one column a final classifier, got "
                f"{values.shape}."
            )
    if np.isinf(values).any():
        raise ValueError("fixed_relations must be finite, or NaN for free entries, got infinity.")
    return values


def _symmetrise_fixed(fixed: NDArray[np.float64], constraint: str) -> NDArray[np.float64]:
    both = ~np.isnan(fixed) & ~np.isnan(fixed.T)
    if (fixed[both] != fixed.T[both]).any():
        raise ValueError(
            f"fixed_relations must be symmetric with constraint={constraint!r}, got {fixed.tolist()}."
        )
    return np.where(np.isnan(fixed), fixed.T, fixed)
