"""What every loss object must keep to, checked on a few examples before any work is done."""

from numbers import Real
from typing import Any

import numpy as np
from numpy.typing import NDArray

from polymargin.problems.hinge.losses import Array, Losses

FEW = 20
"""Examples of each class, about, that the checks look at."""

ROUNDING = 1e-9


def check_contract(loss: Any, labels: NDArray[np.intp], costs: Array) -> None:
    """Raise with the name of the loss and what it breaks: a part, a shape, a sign, no number, a wrong adjoint.

    These are the checks that cost little; `polymargin.extend.check_loss` verifies the mathematics.
    """
    rows = np.unique(np.linspace(0, len(labels) - 1, FEW * costs.shape[1]).astype(np.intp))
    losses = loss.over(labels[rows], costs[rows])
    name = type(loss).__name__
    if not isinstance(losses, Losses):
        raise TypeError(f"{name}.over must return polymargin.extend.Losses, got {type(losses).__name__}.")
    check_losses(f"{name}.over(...)", losses, len(rows), costs.shape[1])


def check_losses(label: str, losses: Losses, n: int, k: int, seed: int = 0) -> None:
    """Raise if losses over n examples of k classes break what one evaluation shows."""
    if (losses.n_examples, losses.n_classes) != (n, k):
        raise ValueError(
            f"{label}: n_examples and n_classes must be {n} and {k}, got {losses.n_examples} and "
            f"{losses.n_classes}."
        )
    if not getattr(losses, "offset", 0.0) > 0.0 or not np.isfinite(losses.offset):
        raise ValueError(f"{label}.offset must be positive, got {getattr(losses, 'offset', None)!r}.")
    rng = np.random.default_rng(seed)
    F = rng.normal(size=(n, k))
    F -= F.mean(axis=1, keepdims=True)
    resting = losses.resting_dual()
    if not isinstance(resting, np.ndarray) or resting.ndim != 2:
        raise ValueError(f"{label}.resting_dual() must be a matrix (blocks, slots), got {_shape(resting)}.")
    at_zero, margins = losses.margins(np.zeros((n, k))), losses.margins(F)
    _check_array(f"{label}.resting_dual()", resting, resting.shape)
    _check_array(f"{label}.margins(F)", margins, resting.shape)
    _check_number(f"{label}.value(F)", losses.value(F))
    _check_number(f"{label}.dual_value(dual)", losses.dual_value(resting))
    _check_number(f"{label}.total_weight", losses.total_weight)
    _check_sizes(f"{label}.sizes", losses.sizes, resting.shape)
    answer = losses.proximal(margins, resting, 1.0)
    for dual, of in ((resting, "resting_dual()"), (answer, "proximal(...)")):
        _check_array(f"{label}.{of}", dual, resting.shape)
        violation = losses.infeasibility(dual)
        if not violation <= ROUNDING:
            raise ValueError(
                f"{label}.{of} must lie in the conjugate's domain, got a violation of {violation:.2g}."
            )
    R = losses.coefficients(answer)
    _check_array(f"{label}.coefficients(dual)", R, (n, k))
    scale = max(1.0, float(np.abs(R).sum()))
    if losses.zero_sum and float(np.abs(R.sum(axis=1)).max(initial=0.0)) > ROUNDING * scale:
        raise ValueError(f"{label}.coefficients(dual) must have rows that sum to zero, or zero_sum be False.")
    if float(np.abs(losses.coefficients(resting)).max(initial=0.0)) > ROUNDING * scale:
        raise ValueError(f"{label}.coefficients(resting_dual()) must be zero.")
    moved, pulled = float(np.vdot(answer, margins - at_zero)), -float(np.vdot(R, F))
    if abs(moved - pulled) > ROUNDING * max(1.0, float(np.abs(answer * margins).sum())):
        raise ValueError(
            f"{label}.coefficients is not minus the adjoint of margins: <dual, margins(F) - margins(0)> is "
            f"{moved:.10g}, -<coefficients(dual), F> is {pulled:.10g}."
        )


def _check_sizes(label: str, sizes: Any, shape: tuple[int, ...]) -> None:
    if not isinstance(sizes, np.ndarray) or sizes.shape not in (shape, (shape[0], 1)):
        raise ValueError(f"{label} must have shape {shape} or {(shape[0], 1)}, got {_shape(sizes)}.")
    _check_array(label, sizes, sizes.shape)
    if sizes.min(initial=0.0) < 0.0:
        raise ValueError(f"{label} must not be negative, got {sizes.min()!s}.")


def _check_number(label: str, value: Any) -> None:
    if not isinstance(value, Real) or not np.isfinite(float(value)):
        raise ValueError(f"{label} must be a finite number, got {value!r}.")


def _check_array(label: str, value: Any, shape: tuple[int, ...]) -> None:
    if not isinstance(value, np.ndarray) or value.shape != shape:
        raise ValueError(f"{label} must have shape {shape}, got {_shape(value)}.")
    if not np.isfinite(value).all():
        raise ValueError(f"{label} must be finite, got {value[~np.isfinite(value)][0]!s}.")


def _shape(value: Any) -> Any:
    return getattr(value, "shape", type(value).__name__)
