"""Relative losses (Weston & Watkins, Crammer & Singer) as moves of weight between classes.

In the coefficients R (n, k) both machines are one problem with bounds,

    min 1/2 tr(R'KR) - offset sum_i R[i, y_i],   lower <= R <= upper,   rows (and, with an intercept, columns)
    of R of zero sum,

where ``-upper_ij <= R_ij <= 0`` off the own class for Weston & Watkins (the own class needs no bound: it makes up
the row), and ``R_ij <= weight_i [j = y_i]`` for Crammer & Singer (which needs no lower bound).
"""

import numpy as np
from numpy.typing import NDArray

from polymargin._native.relative import class_moves
from polymargin.problems.hinge import PolyhedralLosses

NONE = 1e300
"""A bound that is none, and the rate of a move that is not allowed."""

_ROUNDING = 1e-13


def own_class(losses: PolyhedralLosses) -> NDArray[np.bool_]:
    """Mark the class of every example, (n, k)."""
    return losses.block_labels[:, None] == np.arange(losses.n_classes)


def coefficient_bounds(
    losses: PolyhedralLosses,
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return the bounds (n, k) of the coefficients R, as the compiled loop takes them."""
    lower, upper = losses.coefficient_bounds()
    return np.maximum(lower, -NONE), np.minimum(upper, NONE)


def movable(
    losses: PolyhedralLosses, R: NDArray[np.float64], H: NDArray[np.float64]
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return the gradient (n, k) at the scores `H` where R may grow, and where it may shrink; else +-1e300."""
    lower, upper = coefficient_bounds(losses)
    gradient = H - losses.offset * own_class(losses)
    # what is off its bound by rounding alone has no say in the intercept
    rounding = _ROUNDING * np.abs(R).max(axis=1, keepdims=True)
    return np.where(upper - rounding > R, gradient, NONE), np.where(lower + rounding < R, gradient, -NONE)


def class_arcs(
    losses: PolyhedralLosses, dual: NDArray[np.float64], H: NDArray[np.float64]
) -> tuple[NDArray[np.float64], NDArray[np.intp]]:
    """Return the lowest rates (k, k) at which examples can move weight from a class to another, and whose."""
    up, down = movable(losses, losses.coefficients(dual), H)
    return class_moves(np.ascontiguousarray(up.T), np.ascontiguousarray(down.T))
