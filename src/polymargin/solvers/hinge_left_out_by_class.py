"""Left-out scores of the machine of Lee, Lin & Wahba, the active set frozen, class by class.

What `hinge_left_out` does for any hinge machine, in the terms of `class_blocks`: with r the coefficients that row
i loses, the free multipliers' answer is never formed, only what it does to the scores of the row itself,

    delta f_i = [r_j T_j,ii + <T_j,.i, U + w> - g_j]_j + G (beta - pull),   made zero-sum,

where U, w are solutions with S for the removal and for the forces g that keep the row's own multipliers at zero,
beta and pull the changes of the intercepts that go with them, and G their effect on the scores.
"""

import numpy as np
from numpy.typing import NDArray

from polymargin.solvers.class_blocks import ClassBlocks

Array = NDArray[np.float64]


def score_changes(K: Array, place: NDArray[np.intp], slot: NDArray[np.intp], lost: Array, basis: Array) -> Array:
    """Return the changes (n, k) of the rows' own scores when each leaves.

    Parameters
    ----------
    K : (n, n) kernel matrix of the support vectors, positive definite to rounding; with an intercept, a constant
        is added to it, which changes no answer.
    place, slot : (m,) row and class of every free multiplier, sorted by rows.
    lost : (n, k) minus the coefficients of the rows.
    basis : (k, k-1) zero-sum basis of the intercepts, (k, 0) for none.
    """
    n, k = lost.shape
    blocks = ClassBlocks(K, place, slot, k)
    removal = np.zeros_like(K)
    for j, at in enumerate(blocks.others):
        removal[np.ix_(at, at)] -= blocks.complements[j] * lost[at, j]
    root = blocks.coupling_root()
    inverse = root.T @ root
    U = inverse @ removal
    intercepts = _Intercepts(K, blocks, place, slot, basis)
    beta = intercepts.answer(np.einsum("ijb,ij->ib", intercepts.effect, lost))

    weights = [blocks.weights(j) for j in range(k)]
    step = lost[place, slot] + U[place, place] + np.einsum("ab,ab->a", intercepts.spread, beta[place])
    for j, at in enumerate(blocks.members):
        step[at] += np.einsum("al,la->a", weights[j], U[np.ix_(blocks.others[j], blocks.rows[j])])
    force = _forces(blocks, weights, root, intercepts, place, step)

    pull = np.zeros((n, k))
    pull[place, slot] = force
    caused = np.zeros_like(K)
    for j, at in enumerate(blocks.members):
        caused[np.ix_(blocks.others[j], blocks.rows[j])] += weights[j].T * force[at]
        caused[blocks.rows[j], blocks.rows[j]] += force[at]
    U += inverse @ caused
    change = -pull
    for j, at in enumerate(blocks.others):
        T = blocks.complements[j]
        change[at, j] += lost[at, j] * T.diagonal() + np.einsum("li,li->i", T, U[np.ix_(at, at)])
    change -= change.mean(axis=1, keepdims=True)
    back = np.zeros_like(beta)
    np.add.at(back, place, force[:, None] * intercepts.spread)
    return change + np.einsum("ijb,ib->ij", intercepts.effect, beta - intercepts.answer(back))


class _Intercepts:
    """How the intercepts, in the zero-sum basis, answer and act.

    Attributes
    ----------
    spread : (m, k-1) moves of the free multipliers that go with a unit of each.
    effect : (n, k, k-1) their effect on the scores of every row, those moves included.
    """

    def __init__(
        self, K: Array, blocks: ClassBlocks, place: NDArray[np.intp], slot: NDArray[np.intp], basis: Array
    ):
        B = basis[slot]
        self.spread = blocks.solve(B)
        # of low rank where all free multipliers are of few classes, whose rounding error must not be inverted
        self.schur = np.linalg.pinv(B.T @ self.spread, rcond=1e-12, hermitian=True)
        moved = np.stack(
            [K[:, rows] @ self.spread[at] for rows, at in zip(blocks.rows, blocks.members, strict=True)], axis=1
        )
        self.effect = basis - moved + moved.mean(axis=1, keepdims=True)

    def answer(self, right: Array) -> Array:
        """Return the intercepts' moves for right-hand sides in rows."""
        return right @ self.schur


def _forces(
    blocks: ClassBlocks,
    weights: list[Array],
    root: Array,
    intercepts: _Intercepts,
    place: NDArray[np.intp],
    step: Array,
) -> Array:
    """Return the forces that take the steps of every row's own multipliers back."""
    columns = np.ascontiguousarray(root.T)
    half = columns[place]
    diagonal = np.empty(len(place))
    for j, at in enumerate(blocks.members):
        half[at] += weights[j] @ columns[blocks.others[j]]
        diagonal[at] = blocks.inverse_diagonal(j)
    counts = np.bincount(place, minlength=len(blocks.coupling))
    first = np.cumsum(counts) - counts
    force = np.empty(len(place))
    for size in np.unique(counts[counts > 0]):
        own = first[counts == size, None] + np.arange(size)
        spread = intercepts.spread[own]
        systems = half[own] @ half[own].transpose(0, 2, 1) - spread @ intercepts.schur @ spread.transpose(0, 2, 1)
        systems[:, np.arange(size), np.arange(size)] += diagonal[own]
        inverses = np.linalg.pinv(systems, rcond=size * np.finfo(np.float64).eps, hermitian=True)
        force[own] = -np.einsum("cab,cb->ca", inverses, step[own])
    return force
