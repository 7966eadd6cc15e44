"""Newton refinement (Algorithm 1 of Fung & Mangasarian): slide and scale scores to the least margin errors.

Along scores ``s_i = B_i v`` of a direction v, of class r with signs d and weights omega, (12) reads

    min over (a, g)   C/2 sum_i omega_i (1 - d_i (a s_i - g))_+^2 + 1/2 (a^2 |v|^2 + g^2).

A step needs six sums over the rows, which add up over chunks: this is all that a stream has to pass on.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from polymargin._native.margin_sums import margin_sums as add_margin_sums
from polymargin.blocks import Blocks, OneBlock, total
from polymargin.coding import one_vs_rest_signs
from polymargin.solvers.ridge.settings import DEFAULTS, RidgeSettings


@dataclass(frozen=True, slots=True)
class Refinement:
    """The refined scores ``scale * s - offset`` of every class.

    Attributes
    ----------
    scale, offset : (k,) the paper's lambda and gamma.
    n_iter : (k,) Newton steps.
    objective : (k,) values of (12).
    gap : (k,) upper bounds on what is left to gain, relative to ``max(1, objective)``.
    """

    scale: NDArray[np.float64]
    offset: NDArray[np.float64]
    n_iter: NDArray[np.intp]
    objective: NDArray[np.float64]
    gap: NDArray[np.float64]


Sums = NDArray[np.float64]
"""(6, k): over rows with positive error t, weighted sums of ``t^2, d s t, d t, s^2, s, 1``."""


def margin_sums(
    scores: NDArray[np.float64],
    labels: NDArray[np.intp],
    weights: NDArray[np.float64],
    factors: NDArray[np.float64],
    scale: NDArray[np.float64],
    offset: NDArray[np.float64],
) -> Sums:
    """Return the sums (6, k) of rows with scores (n, k); rows of class c weigh ``weights * factors[c]`` (k,)."""
    k = len(factors)
    sums = np.zeros((6, k))
    signs = one_vs_rest_signs(np.arange(k), k)
    scores = np.ascontiguousarray(scores, dtype=np.float64)
    add_margin_sums(scores, labels, weights, factors, signs, scale, offset, np.empty((6, k)), sums)
    return sums


def rows_within_margins(
    scores: NDArray[np.float64],
    labels: NDArray[np.intp],
    scale: NDArray[np.float64],
    offset: NDArray[np.float64],
) -> NDArray[np.intp]:
    """Return the rows with a positive multiplier (17) in the problem of some class."""
    within = np.empty(len(scores), dtype=bool)
    for first in range(0, len(scores), DEFAULTS.block_rows):
        part = slice(first, first + DEFAULTS.block_rows)
        signs = one_vs_rest_signs(labels[part], scores.shape[1])
        within[part] = (signs * (scale * scores[part] - offset) < 1.0).any(axis=1)
    return np.flatnonzero(within)


def refine(
    sums_at: Callable[[NDArray[np.float64], NDArray[np.float64]], Sums],
    squared_norms: NDArray[np.float64],
    offset: NDArray[np.float64],
    C: float,
    *,
    scale: NDArray[np.float64] | None = None,
    tol: float = 1e-12,
    tuning: RidgeSettings = DEFAULTS,
) -> Refinement:
    """Minimise (12) for all classes together.

    Parameters
    ----------
    sums_at : returns the sums over all rows at given (scale, offset); called once per step.
    squared_norms : (k,) of the directions v.
    offset, scale : (k,) where to start; None starts the scale at one.
    C : the paper's nu.
    tol : relative gap at which to stop.
    tuning : see `RidgeSettings`.
    """
    k = len(offset)
    point = np.vstack([np.ones(k) if scale is None else scale, offset])
    ridge = np.vstack([np.where(squared_norms > 0, squared_norms, 1.0), np.ones(k)])
    value, gradient, hessian = _model(sums_at(*point), point, ridge, C)
    n_iter = np.zeros(k, dtype=np.intp)
    solved = _gap(gradient, ridge, value) <= tol
    for _ in range(tuning.newton_steps):
        if solved.all():
            break
        n_iter += ~solved
        step = np.where(solved, 0.0, -_solved(hessian, gradient.T).T)
        decrease = -np.einsum("ij,ij->j", gradient, step)
        enough = value + 1e-14 * np.abs(value)
        length = np.ones(k)
        while True:
            trial = point + length * step
            trial_value, gradient, trial_hessian = _model(sums_at(*trial), trial, ridge, C)
            short = trial_value > enough - tuning.sufficient_decrease * length * decrease
            if not short.any() or length.min() < tuning.shortest_step:
                break
            length = np.where(short, 0.5 * length, length)
        # a full step within one piece of the piecewise quadratic ends in its minimum
        same_piece = (trial_hessian == hessian).all(axis=(1, 2)) & (length == 1.0)
        point, value, hessian = trial, trial_value, trial_hessian
        solved |= same_piece | (_gap(gradient, ridge, value) <= tol) | (length < tuning.shortest_step)
    return Refinement(point[0], point[1], n_iter, value, _gap(gradient, ridge, value))


def refined_left_out(
    left_out: NDArray[np.float64],
    products: NDArray[np.float64],
    labels: NDArray[np.intp],
    weights: NDArray[np.float64],
    factors: NDArray[np.float64],
    squared_norms: NDArray[np.float64],
    offset: NDArray[np.float64],
    refinement: Refinement,
    C: float,
) -> NDArray[np.float64]:
    """Return refined left-out scores (n, k): a Newton step of (12) without the row, from the refinement with it.

    `left_out` are the scores ``B v - offset`` with v and offset found without the row, `products` those ``B v``
    with it; the offsets are taken to change as little as one row can change them.
    """
    k = len(factors)
    signs = one_vs_rest_signs(labels, k)
    errors = 1.0 - signs * (refinement.scale * products - refinement.offset)
    own = C * weights[:, None] * factors[labels] * (errors > 0)
    sums = margin_sums(products, labels, weights, factors, refinement.scale, refinement.offset)
    ridge = np.vstack([np.where(squared_norms > 0, squared_norms, 1.0), np.ones(k)])
    _, _, hessian = _model(sums, np.vstack([refinement.scale, refinement.offset]), ridge, C)
    directions = np.stack([products, -np.ones_like(products)], axis=2)
    without = hessian - own[:, :, None, None] * directions[:, :, :, None] * directions[:, :, None, :]
    pull = -(own * errors * signs)[:, :, None] * directions
    step = _solved(without, pull)
    scale, shift = refinement.scale + step[:, :, 0], refinement.offset + step[:, :, 1]
    return scale * (left_out + offset) - shift


class ScoredRows(NamedTuple):
    """Scores ``B v`` (n, k) of some rows, their classes and weights."""

    scores: NDArray[np.float64]
    labels: NDArray[np.intp]
    weights: NDArray[np.float64]


def refine_rows(
    scores: NDArray[np.float64],
    labels: NDArray[np.intp],
    weights: NDArray[np.float64],
    factors: NDArray[np.float64],
    squared_norms: NDArray[np.float64],
    offset: NDArray[np.float64],
    C: float,
    *,
    tuning: RidgeSettings = DEFAULTS,
) -> Refinement:
    """Minimise (12) over rows in memory; the arguments are those of `margin_sums` and `refine`."""
    rows = ScoredRows(scores, labels, weights)
    return refine_blocks(OneBlock(rows), len(scores), factors, squared_norms, offset, C, tuning=tuning)


def refine_blocks(
    rows: Blocks,
    n_rows: int,
    factors: NDArray[np.float64],
    squared_norms: NDArray[np.float64],
    offset: NDArray[np.float64],
    C: float,
    *,
    tuning: RidgeSettings = DEFAULTS,
) -> Refinement:
    """Minimise (12) over blocks of `ScoredRows`.

    Many rows are thinned out first: their optimum is near that of all rows, which saves most passes over them.
    """
    scale = None
    stride = n_rows // tuning.thinned_rows
    if stride > 1:
        few = rows.map(_thinned, stride, keep=True)
        near = refine(lambda *at: total(few, _sums_of, factors, *at), squared_norms, offset, C, tuning=tuning)
        scale, offset = near.scale, near.offset
    sums_at = partial(total, rows, _sums_of, factors)
    return refine(sums_at, squared_norms, offset, C, scale=scale, tuning=tuning)


def _thinned(rows: ScoredRows, stride: int) -> ScoredRows:
    return ScoredRows(rows.scores[::stride].copy(), rows.labels[::stride].copy(), stride * rows.weights[::stride])


def _sums_of(
    rows: ScoredRows,
    factors: NDArray[np.float64],
    scale: NDArray[np.float64],
    offset: NDArray[np.float64],
) -> Sums:
    return margin_sums(*rows, factors, scale, offset)


def _model(
    sums: Sums, point: NDArray[np.float64], ridge: NDArray[np.float64], C: float
) -> tuple[NDArray[np.float64], NDArray[np.float64], NDArray[np.float64]]:
    """Value (k,), gradient (2, k) by (14) and generalised Hessian (k, 2, 2) by (15)."""
    squares, pull_scores, pull, scores_squared, scores, total = sums
    value = 0.5 * C * squares + 0.5 * ((np.sqrt(ridge) * point) ** 2).sum(axis=0)
    gradient = C * np.vstack([-pull_scores, pull]) + ridge * point
    hessian = np.empty((len(value), 2, 2))
    hessian[:, 0, 0] = C * scores_squared + ridge[0]
    hessian[:, 0, 1] = hessian[:, 1, 0] = -C * scores
    hessian[:, 1, 1] = C * total + ridge[1]
    return value, gradient, hessian


def _solved(hessians: NDArray[np.float64], gradients: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return Newton directions (..., 2); where large weights leave no digits for the ridge, the shortest."""
    right = gradients[..., None]
    try:
        return np.asarray(np.linalg.solve(hessians, right), dtype=np.float64)[..., 0]
    except np.linalg.LinAlgError:
        diagonal = np.einsum("...ii->...i", hessians)
        scale = np.sqrt(np.where(diagonal > 0, diagonal, 1.0))[..., None]  # rounding may leave nothing
        inverse = np.linalg.pinv(hessians / (scale * scale.swapaxes(-1, -2)), hermitian=True)
        return np.asarray(inverse @ (right / scale) / scale, dtype=np.float64)[..., 0]


def _gap(
    gradient: NDArray[np.float64], ridge: NDArray[np.float64], value: NDArray[np.float64]
) -> NDArray[np.float64]:
    """Bound the relative distance to the optimal value, by the strong convexity that the ridge gives."""
    return 0.5 * ((gradient / np.sqrt(ridge)) ** 2).sum(axis=0) / np.maximum(1.0, value)
