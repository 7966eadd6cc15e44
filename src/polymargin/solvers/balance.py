"""Dual points whose coefficients have exactly zero column sums, from points that nearly do.

An unpenalised intercept asks for ``1'R = 0``; only then is a duality gap a proof. The nearest feasible point in
relative entropy keeps every bound: with multipliers t (k,),

    boxes       u_ij  = upper_ij sigmoid(logit(u_ij / upper_ij) + <directions[y_i, j], t>),
    simplices   a_pm  proportional to a_pm exp(t_m),

and t minimises a smooth convex function of k - 1 unknowns (Newton). Entries at a bound stay there, so near the
optimum, where the free entries have zero gradient, the repair costs the dual objective only a second-order term.
"""

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray
from scipy.sparse.csgraph import connected_components
from scipy.special import expit, logit

from polymargin.problems.hinge import BoxLosses, HingeProblem, SimplexLosses
from polymargin.solvers._slots import row_sums

_BLENDS = (0.0, 1e-9, 1e-6, 1e-4, 1e-2, 0.1, 0.5)
_EXACT = 1e-13

Balance = Callable[[NDArray[np.float64]], tuple[NDArray[np.float64], NDArray[np.float64], NDArray[np.float64]]]
"""From t to the entries, the column sums of what they contribute to -R, and the Jacobian of these sums."""


def balanced(problem: HingeProblem, dual: NDArray[np.float64]) -> NDArray[np.float64] | None:
    """Return a point near `dual` with zero column sums, or None if Newton found none.

    Where the free entries cannot make up for the imbalance, all are drawn off their bounds a little first.
    """
    dual = np.where(forced_to_zero(problem.losses), 0.0, dual) if isinstance(problem.losses, BoxLosses) else dual
    for blend in _BLENDS:
        blended = dual + blend * (_centre(problem.losses) - dual) if blend else dual
        repaired = _on_face(problem, blended)
        if repaired is not None:
            return repaired
    return None


def resting_dual(losses: BoxLosses | SimplexLosses) -> NDArray[np.float64]:
    """Return the dual point of no losses at all, for which R = 0 but for a tilt."""
    if isinstance(losses, BoxLosses):
        return np.zeros(losses.upper.shape)
    dual = np.zeros((len(losses.weight), losses.n_classes))
    dual[np.arange(len(dual)), losses.anchor] = losses.weight
    return dual


def forced_to_zero(losses: BoxLosses) -> NDArray[np.bool_]:
    """Tell which entries are zero at every balanced point (because some costs are zero).

    Weston-Watkins: u is a flow from class y to class j, and balance means circulation, so only arcs within a
    strongly connected component carry any. Lee-Lin-Wahba: all columns have the same sum, so one empty column
    empties all.
    """
    k = losses.n_classes
    present = np.zeros((k, k), dtype=bool)
    np.logical_or.at(present, losses.labels, losses.upper > 0)
    if losses.is_absolute:
        usable = np.full((k, k), bool(present.any(axis=0).all()))
    else:
        component = connected_components(present, connection="strong")[1]
        usable = component[:, None] == component[None, :]
    return ~usable[losses.labels] | (losses.upper == 0)


def _centre(losses: BoxLosses | SimplexLosses) -> NDArray[np.float64]:
    if isinstance(losses, BoxLosses):
        return np.where(forced_to_zero(losses), 0.0, losses.upper / 2)
    return np.broadcast_to(losses.weight[:, None] / losses.n_classes, (len(losses.weight), losses.n_classes))


def _on_face(problem: HingeProblem, dual: NDArray[np.float64]) -> NDArray[np.float64] | None:
    """Balance `dual` by its free entries alone, if they can."""
    R = problem.coefficients(dual)
    sums = R.sum(axis=0)
    scale = max(float(np.abs(R).sum(axis=0).max()), np.finfo(np.float64).tiny)
    if np.abs(sums).max() <= _EXACT * scale:
        return dual
    free, balance = (
        _box_face(problem.losses, dual)
        if isinstance(problem.losses, BoxLosses)
        else _simplex_face(problem.losses, dual)
    )
    if not free.any():
        return None
    t = np.zeros(len(sums))
    entries, start, jacobian = balance(t)
    residual = sums
    for _ in range(50):
        step = np.linalg.lstsq(jacobian, residual, rcond=1e-12)[0]
        length = min(1.0, 10.0 / max(np.abs(step).max(), 1e-300))
        while length > 1e-6:
            entries, now, jacobian = balance(t + length * step)
            following = sums + start - now
            if np.abs(following).max() < np.abs(residual).max():
                break
            length /= 2
        else:
            return None
        t, residual = t + length * step, following
        if np.abs(residual).max() <= _EXACT * scale:
            repaired = dual.copy()
            repaired[free] = entries
            return repaired
    return None


def _box_face(losses: BoxLosses, dual: NDArray[np.float64]) -> tuple[NDArray[np.bool_], Balance]:
    upper, k = losses.upper, losses.n_classes
    free = (dual > 0) & (dual < upper)
    example, column = np.nonzero(free)
    group = losses.labels[example] * k + column
    directions = losses.directions.reshape(k * k, k)
    bounds = upper[free]
    position = logit(dual[free] / bounds)

    def balance(t):
        fraction = expit(position + (directions @ t)[group])
        entries = bounds * fraction
        slopes = np.bincount(group, entries * (1 - fraction), minlength=k * k)
        sums = np.bincount(group, entries, minlength=k * k) @ directions
        return entries, sums, directions.T @ (slopes[:, None] * directions)

    return free, balance


def _simplex_face(losses: SimplexLosses, dual: NDArray[np.float64]) -> tuple[NDArray[np.bool_], Balance]:
    pairs = np.flatnonzero((dual > 0).sum(axis=1) > 1)
    free = np.zeros(dual.shape, dtype=bool)
    free[pairs] = True
    weight, start = losses.weight[pairs], dual[pairs]

    def balance(t):
        block = start * np.exp(t - t.max())
        block *= (weight / row_sums(block))[:, None]
        sums = np.ones(len(pairs)) @ block
        return block.ravel(), sums, np.diag(sums) - block.T @ (block / weight[:, None])

    return free, balance
