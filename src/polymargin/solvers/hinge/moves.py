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
from polymargin.problems.hinge import BoxLosses, SimplexLosses

NONE = 1e300
"""A bound that is none, and the rate of a move that is not allowed."""

_ROUNDING = 1e-13


def own_class(losses: BoxLosses | SimplexLosses) -> NDArray[np.bool_]:
    """Mark the class of every example, (n, k)."""
    labels = losses.labels if isinstance(losses, BoxLosses) else losses.anchor
    return labels[:, None] == np.arange(losses.n_classes)


def coefficient_bounds(
    losses: BoxLosses | SimplexLosses,
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return the bounds (n, k) of the coefficients R."""
    own = own_class(losses)
    if isinstance(losses, BoxLosses):
        return np.where(own, -NONE, -losses.upper), np.where(own, NONE, 0.0)
    return np.full(own.shape, -NONE), np.where(own, losses.weight[:, None], 0.0)


def movable(
    losses: BoxLosses | SimplexLosses, R: NDArray[np.float64], H: NDArray[np.float64]
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return the gradient (n, k) at the scores `H` where R may grow, and where it may shrink; else +-1e300."""
    lower, upper = coefficient_bounds(losses)
    gradient = H - losses.offset * own_class(losses)
    # what is off its bound by rounding alone has no say in the intercept
    rounding = _ROUNDING * np.abs(R).max(axis=1, keepdims=True)
    return np.where(upper - rounding > R, gradient, NONE), np.where(lower + rounding < R, gradient, -NONE)


def class_arcs(
    losses: BoxLosses | SimplexLosses, dual: NDArray[np.float64], H: NDArray[np.float64]
) -> tuple[NDArray[np.float64], NDArray[np.intp]]:
    """Return the lowest rates (k, k) at which examples can move weight from a class to another, and whose."""
    up, down = movable(losses, losses.coefficients(dual), H)
    return class_moves(np.ascontiguousarray(up.T), np.ascontiguousarray(down.T))
