"""What every penalty object must keep to, checked on the sizes of a problem before any work is done."""

from numbers import Real
from typing import Any

import numpy as np
from numpy.typing import NDArray

from polymargin.problems.penalties.penalty import Atoms, Penalty


def check_contract(penalty: Any, n_classes: int, n_features: int) -> Penalty:
    """Return the penalty, or raise with its name and what it breaks: a missing part, a shape, a sign, no number.

    These are the checks that cost one evaluation; `polymargin.extend.check_penalty` verifies the mathematics.
    """
    name = type(penalty).__name__
    allowed = "penalty must be a name or an object that inherits from polymargin.extend.Penalty"
    if isinstance(penalty, type):
        raise TypeError(f"{allowed}, got the class {penalty.__name__} instead of an object of it.")
    missing = [part for part in _parts(penalty) if not callable(getattr(penalty, part, None))]
    if missing:
        raise TypeError(f"{allowed}, got {penalty!r}, which lacks {', '.join(missing)}.")
    rng = np.random.default_rng(0)
    W, G = rng.normal(size=(2, n_classes, n_features))
    W, G = W - W.mean(axis=0), G - G.mean(axis=0)
    _check_number(f"{name}.value(W)", penalty.value(W))
    at_zero = penalty.value(np.zeros_like(W))
    if at_zero != 0.0:
        raise ValueError(f"{name}.value(W) must be 0 where all coefficients are 0, got {at_zero!r}.")
    prices = penalty.polars(G, above=0.0) if penalty.is_norm else penalty.conjugates(G)
    label = f"{name}.{'polars' if penalty.is_norm else 'conjugates'}(G)"
    _check_array(label, prices, (n_features,))
    if prices.min(initial=0.0) < 0.0:
        raise ValueError(f"{label} must not be negative, got {prices.min()!s}.")
    few = np.arange(min(n_features, 3))
    check_atoms(f"{name}.best_atoms(G, variables)", penalty.best_atoms(G, few), few, n_classes)
    return penalty


def check_atoms(label: str, atoms: Any, variables: NDArray[np.intp], n_classes: int) -> None:
    """Refuse what are no atoms of the given variables."""
    if not isinstance(atoms, Atoms):
        raise TypeError(f"{label} must return Atoms, got {type(atoms).__name__}.")
    if not np.array_equal(atoms.variables, variables):
        raise ValueError(f"{label} must return one atom per variable, in their order, got {atoms.variables!r}.")
    _check_array(f"{label}.directions", atoms.directions, (len(variables), n_classes))
    _check_array(f"{label}.costs", atoms.costs, (len(variables),))
    if atoms.costs.min(initial=0.0) < 0.0:
        raise ValueError(f"{label}.costs must not be negative, got {atoms.costs.min()!s}.")


def _parts(penalty: Any) -> tuple[str, ...]:
    price = "polars" if getattr(penalty, "is_norm", True) else "conjugates"
    return ("value", "best_atoms", price, "combine", "restricted", "at_zero", "price_rule", "sizes", "weighted")


def _check_number(label: str, value: Any) -> None:
    if not isinstance(value, Real) or not np.isfinite(float(value)):
        raise ValueError(f"{label} must be a finite number, got {value!r}.")
    if float(value) < 0.0:
        raise ValueError(f"{label} must not be negative, got {value!r}.")


def _check_array(label: str, value: Any, shape: tuple[int, ...]) -> None:
    if not isinstance(value, np.ndarray) or value.shape != shape:
        raise ValueError(
            f"{label} must have shape {shape}, got {getattr(value, 'shape', type(value).__name__)!s}."
        )
    if not np.isfinite(value).all():
        raise ValueError(f"{label} must be finite, got {value[~np.isfinite(value)][0]!s}.")
