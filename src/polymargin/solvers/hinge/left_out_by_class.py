"""Left-out scores of the machine of Lee, Lin & Wahba, the active set frozen, class by class.

What `hinge_left_out` does for any hinge machine, in the terms of `class_blocks`: with r the coefficients that row
i loses, the free multipliers' answer is never formed, only what it does to the scores of the row itself,

    delta f_i = [r_j T_j,ii + <T_j,.i, S^-1 (x + w)> - g_j]_j + G (beta - pull),   made zero-sum,

where x is what the removal and w what the forces g that keep the row's own multipliers at zero do to S, beta and
pull the changes of the intercepts that go with them, and G their effect on the scores. S only has the rows with
free multipliers; rows whose multipliers are all at bounds, which have no force either, are right-hand sides.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.linalg.blas import get_blas_funcs

from polymargin.solvers.hinge.class_blocks import ClassBlocks, check_pivots

Array = NDArray[np.float64]


def score_changes(
    K: Array,
    place: NDArray[np.intp],
    slot: NDArray[np.intp],
    lost: Array,
    basis: Array,
    *,
    rank: float,
    pivot: float,
    height: int,
) -> Array:
    """Return the changes (n, k) of the rows' own scores when each leaves.

    Parameters
    ----------
    K : (n, n) kernel matrix of the support vectors, positive definite to rounding; with an intercept, a constant
        is added to it, which changes no answer. Its precision is that of all work.
    place, slot : (m,) row and class of every free multiplier, sorted by rows.
    lost : (n, k) minus the coefficients of the rows.
    basis : (k, k-1) zero-sum basis of the intercepts, (k, 0) for none.
    rank : relative size below which an eigenvalue of the intercepts' system is rounding.
    pivot : least pivot at which enough digits are left.
    height : rows whose own multipliers are treated together, so that what is needed for them stays small.
    """
    lost, basis = lost.astype(K.dtype, copy=False), basis.astype(K.dtype, copy=False)
    active, owner = np.unique(place, return_inverse=True)
    bound = np.setdiff1d(np.arange(len(K)), active)
    blocks = ClassBlocks(K[np.ix_(active, active)], owner, slot, lost.shape[1])
    for factor in (*blocks.factors, blocks.coupling):
        check_pivots(factor, pivot)
    intercepts = _Intercepts(K[:, active], blocks, slot, basis, rank)
    beta = intercepts.answer(np.einsum("ijb,ij->ib", intercepts.effect, lost))
    change = np.empty_like(lost)
    change[active], beta[active] = _changes_of_active(
        blocks, intercepts, owner, slot, lost[active], beta[active], height
    )
    change[bound] = _changes_of_bound(K, blocks, active, bound, lost[bound])
    change -= change.mean(axis=1, keepdims=True)
    return change + np.einsum("ijb,ib->ij", intercepts.effect, beta)


def _changes_of_active(
    blocks: ClassBlocks,
    intercepts: "_Intercepts",
    owner: NDArray[np.intp],
    slot: NDArray[np.intp],
    lost: Array,
    beta: Array,
    height: int,
) -> tuple[Array, Array]:
    """Return the changes for rows with free multipliers, and those of the intercepts."""
    views = [_View(others, T, T.diagonal()) for others, T in zip(blocks.others, blocks.complements, strict=True)]
    seen = _forward(blocks.coupling, _removals(blocks, views, lost))
    effects = _UnitEffects(blocks, owner)
    step = lost[owner, slot] + np.einsum("ab,ab->a", intercepts.spread, beta[owner])
    force = np.empty_like(step)
    first = np.searchsorted(owner, np.arange(len(lost) + 1))
    for start in range(0, len(lost), height):
        edges = first[start : start + height + 1]
        own, rows = slice(edges[0], edges[-1]), slice(start, start + len(edges) - 1)
        effect = effects.of(own)
        systems = _Systems(effect, effects.diagonal[own], intercepts.spread[own], intercepts.schur)
        step[own] += np.einsum("al,al->a", effect, seen[owner[own]])
        force[own] = -systems.solve(edges - own.start, step[own])
        seen[rows] += np.add.reduceat(force[own, None] * effect, edges[:-1] - own.start)
    change = _own_scores(blocks, views, lost, _backward(blocks.coupling, seen))
    change[owner, slot] -= force
    pull = np.add.reduceat(force[:, None] * intercepts.spread, first[:-1])
    return change, beta - intercepts.answer(pull)


def _changes_of_bound(
    K: Array, blocks: ClassBlocks, active: NDArray[np.intp], bound: NDArray[np.intp], lost: Array
) -> Array:
    """Return the changes for rows without free multipliers."""
    between, variance = K[np.ix_(bound, active)], K[bound, bound]
    everyone = np.arange(len(bound))
    views = []
    for rows, others, factor, half in zip(blocks.rows, blocks.others, blocks.factors, blocks.halves, strict=True):
        part = _forward(factor, between[:, rows])
        T = between[:, others] - part @ half
        views.append(_View(everyone, T, variance - np.einsum("ir,ir->i", part, part)))
    seen = _forward(blocks.coupling, _removals(blocks, views, lost))
    return _own_scores(blocks, views, lost, _backward(blocks.coupling, seen))


@dataclass(frozen=True, slots=True)
class _View:
    """How rows that may leave see a class.

    Attributes
    ----------
    rows : those without a free multiplier of the class.
    T : of these, to the rows c_j.
    variance : T of every such row with itself.
    """

    rows: NDArray[np.intp]
    T: Array
    variance: Array


def _removals(blocks: ClassBlocks, views: list[_View], lost: Array) -> Array:
    """Return what every removal does to the rows of S, a row a removal."""
    removals = np.zeros((len(lost), len(blocks.coupling)), dtype=blocks.coupling.dtype)
    for j, (view, others) in enumerate(zip(views, blocks.others, strict=True)):
        removals[np.ix_(view.rows, others)] -= view.T * lost[view.rows, j, None]
    return removals


def _own_scores(blocks: ClassBlocks, views: list[_View], lost: Array, answers: Array) -> Array:
    """Return what a removal and the answers of S to it, a row each, do to the scores of the row itself."""
    scores = np.zeros_like(lost)
    for j, (view, others) in enumerate(zip(views, blocks.others, strict=True)):
        answer = np.einsum("il,il->i", view.T, answers[np.ix_(view.rows, others)])
        scores[view.rows, j] = lost[view.rows, j] * view.variance + answer
    return scores


class _UnitEffects:
    """What a unit of force on every free multiplier does: to S, halfway, and to itself by its class alone.

    The former are rows of ``X coupling'^-1``, the latter the `diagonal` of D^-1.
    """

    def __init__(self, blocks: ClassBlocks, owner: NDArray[np.intp]):
        self.blocks, self.owner = blocks, owner
        self.columns = np.ascontiguousarray(blocks.coupling_root().T)
        self.inner = [self.columns[others] for others in blocks.others]
        self.weights = [blocks.weights(j) for j in range(len(blocks.members))]
        self.diagonal = np.empty(len(owner), dtype=blocks.coupling.dtype)
        for j, at in enumerate(blocks.members):
            self.diagonal[at] = blocks.inverse_diagonal(j)

    def of(self, own: slice) -> Array:
        """Return the effects of these free multipliers."""
        effects = self.columns[self.owner[own]]
        for at, inner, weights in zip(self.blocks.members, self.inner, self.weights, strict=True):
            start, stop = np.searchsorted(at, (own.start, own.stop))
            effects[at[start:stop] - own.start] += weights[start:stop] @ inner
        return effects


class _Intercepts:
    """How the intercepts, in the zero-sum basis, answer and act.

    Attributes
    ----------
    spread : (m, k-1) moves of the free multipliers that go with a unit of each.
    effect : (n, k, k-1) their effect on the scores of every row, those moves included.
    """

    def __init__(self, K: Array, blocks: ClassBlocks, slot: NDArray[np.intp], basis: Array, rank: float):
        B = basis[slot]
        self.spread = blocks.solve(B)
        # of low rank where all free multipliers are of few classes, whose rounding error must not be inverted
        self.schur = np.linalg.pinv(B.T @ self.spread, rcond=rank, hermitian=True)
        moved = np.stack(
            [K[:, rows] @ self.spread[at] for rows, at in zip(blocks.rows, blocks.members, strict=True)], axis=1
        )
        self.effect = basis - moved + moved.mean(axis=1, keepdims=True)

    def answer(self, right: Array) -> Array:
        """Return the intercepts' moves for right-hand sides in rows."""
        return right @ self.schur


@dataclass(frozen=True, slots=True)
class _Systems:
    """The inverse system of the free multipliers and intercepts, of which only every row's own block is needed."""

    effect: Array
    diagonal: Array
    spread: Array
    schur: NDArray[np.floating]

    def solve(self, edges: NDArray[np.intp], right: Array) -> Array:
        """Solve with the blocks between `edges`."""
        counts = np.diff(edges)
        answer = np.empty_like(right)
        for size in np.unique(counts):
            own = edges[:-1][counts == size, None] + np.arange(size)
            effect, spread = self.effect[own], self.spread[own]
            blocks = effect @ effect.transpose(0, 2, 1) - spread @ self.schur @ spread.transpose(0, 2, 1)
            blocks[:, np.arange(size), np.arange(size)] += self.diagonal[own]
            inverses = np.linalg.pinv(blocks, rcond=size * np.finfo(right.dtype).eps, hermitian=True)
            answer[own] = np.einsum("cab,cb->ca", inverses, right[own])
        return answer


def _forward(factor: Array, rows: Array) -> Array:
    """Return ``factor^-1 v`` for every row v."""
    return _solved(factor, rows, trans=0)


def _backward(factor: Array, rows: Array) -> Array:
    """Return ``factor'^-1 v`` for every row v."""
    return _solved(factor, rows, trans=1)


def _solved(factor: Array, rows: Array, trans: int) -> Array:
    if not rows.size:
        return rows
    (solve,) = get_blas_funcs(("trsm",), (factor,))
    return solve(1.0, factor, rows.T, side=0, lower=1, trans_a=trans).T
