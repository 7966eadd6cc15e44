"""Left-out scores of a hinge machine on features, the active set frozen, in the features' dimension.

What `left_out` does with the free multipliers, said of the weights: the machine without row i differs from the one
with it by the change v of the weights and b of the intercepts at which

    epsilon/2 ||v||^2 + 1/2 sum_a (<d_a, v'x_a> + <d_a, b>)^2 - epsilon <r_i, v'x_i + b>

is least, r_i being minus the coefficients of row i, the sum over the free multipliers a of the other rows, with
directions d_a, and epsilon the ridge. With A_i (k-1, k-1) the block of the inverse Hessian that row i sees, all
free multipliers included, and B_i the sum of d_a d_a' over its own ones,

    delta f_i = epsilon (A_i^-1 - B_i)^-1 r_i.

Rows enter by their second moments and one by one: memory goes by features, time by rows.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.linalg
from numpy.typing import NDArray
from scipy import sparse

from polymargin.coding import zero_sum_basis
from polymargin.solvers.hinge.settings import LeftOutSettings

Array = NDArray[np.float64]


def score_changes(
    features: Any,
    place: NDArray[np.intp],
    direction: Array,
    lost: Array,
    *,
    ridge: float,
    fit_intercept: bool,
    tuning: LeftOutSettings,
) -> Array:
    """Return the changes (n, k) of the rows' own scores when each leaves.

    Parameters
    ----------
    features : (n, q) of the support vectors.
    place, direction : (m,) row and (m, k) direction of every free multiplier.
    lost : (n, k) minus the coefficients of the rows.
    ridge : epsilon.
    fit_intercept : whether there are intercepts.
    tuning : see `LeftOutSettings`.
    """
    kinds, kind = np.unique(np.round(direction, tuning.digits), axis=0, return_inverse=True)
    moments = [_Moments.of(features, place[kind == at]) for at in range(len(kinds))]
    hessian = _Hessian(moments, kinds, features.shape[1], ridge)
    intercepts = _Intercepts(hessian, moments, kinds) if fit_intercept else None
    basis = zero_sum_basis(lost.shape[1])
    own = _own_directions(len(lost), place, direction @ basis)
    right = lost @ basis
    change = np.empty_like(lost)
    height = max(1, tuning.feature_entries // hessian.entries_per_row)
    for first in range(0, len(lost), height):
        rows = slice(first, first + height)
        X = _dense(features[rows])
        seen = hessian.seen_by(X)
        if intercepts is not None:
            seen += intercepts.seen_by(X)
        change[rows] = ridge * _without_own(seen, own[rows], right[rows]) @ basis.T
    return change


@dataclass(frozen=True, slots=True)
class _Moments:
    """Number, sum (q,) and second moments (q, q) of some rows."""

    count: int
    sums: Array
    second: Array

    @classmethod
    def of(cls, features: Any, rows: NDArray[np.intp]) -> "_Moments":
        X = features[rows]
        return cls(len(rows), np.asarray(X.sum(axis=0), dtype=np.float64).ravel(), _dense(X.T @ X))


class _Hessian:
    """Inverse Hessian of any directions, in the zero-sum basis."""

    def __init__(self, moments: list[_Moments], kinds: Array, width: int, ridge: float):
        self.basis = zero_sum_basis(kinds.shape[1])
        free = self.basis.shape[1]
        self.entries_per_row = 2 * width * free**2
        blocks = np.zeros((free, width, free, width))
        for kind, of_kind in zip(kinds @ self.basis, moments, strict=True):
            blocks += np.einsum("a,b,pq->apbq", kind, kind, of_kind.second)
        hessian = blocks.reshape(free * width, free * width)
        hessian.flat[:: len(hessian) + 1] += ridge
        self.root = _inverse_root(hessian)

    def seen_by(self, X: Array) -> Array:
        """Return what rows see of it, (n, k-1, k-1)."""
        parts = self.root.reshape(len(self.root), -1, X.shape[1])
        return _products(np.einsum("dap,ip->iad", parts, X, optimize=True))

    def solve(self, right: Array) -> Array:
        """Return the answer (k, q, r) to right-hand sides (k, q, r)."""
        _, width, count = right.shape
        flat = np.einsum("ka,kqr->aqr", self.basis, right).reshape(-1, count)
        answer = (self.root.T @ (self.root @ flat)).reshape(-1, width, count)
        return np.einsum("ka,aqr->kqr", self.basis, answer)


class _Intercepts:
    """What the intercepts add to what rows see: they are free, so what the weights leave of them is inverted."""

    def __init__(self, hessian: _Hessian, moments: list[_Moments], kinds: Array):
        self.basis = zero_sum_basis(kinds.shape[1])
        B = kinds @ self.basis
        counts = np.array([of_kind.count for of_kind in moments], dtype=np.float64)
        sums = np.stack([of_kind.sums for of_kind in moments])
        right = np.einsum("gk,gq,ga->kqa", kinds, sums, B)
        self.answers = hessian.solve(right)
        left = (B.T * counts) @ B - np.einsum("kqa,kqb->ab", right, self.answers)
        # of low rank where all free multipliers are of few classes, whose rounding error must not be inverted
        self.schur = np.linalg.pinv(0.5 * (left + left.T), rcond=1e-12, hermitian=True)

    def seen_by(self, X: Array) -> Array:
        """Return what rows see of them, (n, k-1, k-1)."""
        effect = np.eye(self.basis.shape[1]) - np.einsum(
            "kc,kqa,iq->ica", self.basis, self.answers, X, optimize=True
        )
        return effect @ self.schur @ effect.transpose(0, 2, 1)


def _own_directions(n_rows: int, place: NDArray[np.intp], direction: Array) -> Array:
    """Return the sums of ``d d'`` over the free multipliers of every row, (n, k-1, k-1)."""
    own = np.zeros((n_rows, direction.shape[1], direction.shape[1]))
    np.add.at(own, place, direction[:, :, None] * direction[:, None, :])
    return own


def _without_own(seen: Array, own: Array, right: Array) -> Array:
    """Return ``(A^-1 - B)^-1 r`` for every row: with A = G G' it is ``G (1 - G' B G)^-1 G' r``."""
    values, vectors = np.linalg.eigh(seen)
    G = vectors * np.sqrt(np.maximum(values, 0.0))[:, None, :]
    kept, axes = np.linalg.eigh(np.eye(own.shape[1]) - G.transpose(0, 2, 1) @ own @ G)
    tiny = own.shape[1] * np.finfo(np.float64).eps
    inverse = np.divide(1.0, kept, out=np.zeros_like(kept), where=kept > tiny)
    along = axes.transpose(0, 2, 1) @ (G.transpose(0, 2, 1) @ right[:, :, None])
    return (G @ (axes @ (inverse[:, :, None] * along)))[:, :, 0]


def _products(factors: Array) -> Array:
    """Return the inner products of the rows of every matrix."""
    return factors @ factors.transpose(0, 2, 1)


def _inverse_root(matrix: Array) -> Array:
    """Return the inverse of the Cholesky factor."""
    factor = scipy.linalg.cholesky(matrix, lower=True, check_finite=False)
    return np.tril(scipy.linalg.lapack.dtrtri(factor, lower=1)[0])


def _dense(X: Any) -> Array:
    return np.asarray(X.toarray() if sparse.issparse(X) else X, dtype=np.float64)
