"""The Hessian of the machine of Lee, Lin & Wahba on a face, factorised class by class.

    Q_ab = ([j_a = j_b] - 1/k) K(a, b),   j_a the class that variable a belongs to.

Let F_j be the rows with a variable of class j, c_j the other rows. ``K_FF^-1 K_F.`` is the identity on F_j and X_j
on c_j, and T_j is the Schur complement of K_FF. With D the blocks K_FF of all classes and X their ``(I, X_j)``,

    Q^-1 = D^-1 + X S^-1 X',   S = sum_j T_j,  each T_j on its rows c_j.

Where examples have several free variables this takes a fraction of the cost of factorising Q.
"""

import numpy as np
import scipy.linalg
from numpy.typing import NDArray
from scipy.linalg.blas import get_blas_funcs
from scipy.linalg.lapack import get_lapack_funcs

from polymargin.problems.hinge import Losses
from polymargin.solvers.hinge.settings import CLASSWISE, ClasswiseSettings

Array = NDArray[np.float64]


def is_classwise(losses: Losses, n_free: int, n_rows: int, tuning: ClasswiseSettings = CLASSWISE) -> bool:
    """Tell whether a face of `n_free` variables of `n_rows` examples is best taken class by class."""
    return losses.sees_single_scores and tuning.many_free * n_rows < n_free <= tuning.max_entries / n_rows


def check_pivots(factor: Array, least: float) -> None:
    """Refuse a Cholesky factor with a pivot so small that rounding may have taken its digits."""
    if len(factor) and float(factor.diagonal().min()) ** 2 < least:
        raise scipy.linalg.LinAlgError("The matrix is singular to rounding.")


def operations(n_free: int, n_rows: int, n_classes: int) -> float:
    """Return about how many multiplications and additions the factorisation takes."""
    block = n_free / n_classes
    others = max(n_rows - block, 0.0)
    return n_free * (block**2 / 3 + block * others + others**2) + n_rows**3 / 3


class ClassBlocks:
    """The factorised matrix Q.

    Parameters
    ----------
    K : (n, n) kernel matrix of the rows, positive definite to rounding; its precision is that of all results.
    place, slot : (m,) row and class of every variable.
    n_classes : number of classes.

    Attributes
    ----------
    members : the variables of every class.
    rows, others : F_j and c_j.
    factors : Cholesky factors of K_FF.
    halves : factors^-1 K_Fc.
    complements : T_j.
    coupling : Cholesky factor of S.
    """

    def __init__(self, K: Array, place: NDArray[np.intp], slot: NDArray[np.intp], n_classes: int):
        self.members = [np.flatnonzero(slot == j) for j in range(n_classes)]
        self.rows = [place[at] for at in self.members]
        self.others = [np.setdiff1d(np.arange(len(K)), rows) for rows in self.rows]
        self.factors: list[Array] = []
        self.halves: list[Array] = []
        self.complements: list[Array] = []
        S = np.zeros_like(K)
        for rows, others in zip(self.rows, self.others, strict=True):
            factor = scipy.linalg.cholesky(K[np.ix_(rows, rows)], lower=True, check_finite=False)
            half = _forward(factor, _block(K, rows, others))
            complement = _block(K, others, others) - half.T @ half
            S[np.ix_(others, others)] += complement
            self.factors.append(factor)
            self.halves.append(half)
            self.complements.append(complement)
        self.coupling = scipy.linalg.cholesky(S, lower=True, check_finite=False)

    def solve(self, V: Array) -> Array:
        """Return ``Q^-1 V``."""
        parts = [_forward(factor, V[at]) for at, factor in zip(self.members, self.factors, strict=True)]
        seen = np.zeros((len(self.coupling), *V.shape[1:]), dtype=V.dtype)
        for at, rows, others, half, part in zip(
            self.members, self.rows, self.others, self.halves, parts, strict=True
        ):
            seen[rows] += V[at]
            seen[others] += half.T @ part
        common = _backward(self.coupling, _forward(self.coupling, seen))
        answer = np.empty_like(V)
        for j, at in enumerate(self.members):
            part = parts[j] + self.halves[j] @ common[self.others[j]]
            answer[at] = _backward(self.factors[j], part) + common[self.rows[j]]
        return answer

    def coupling_root(self) -> Array:
        """Return the inverse of S's Cholesky factor, for which ``S^-1 = root' root``."""
        return _inverse_triangle(self.coupling)

    def inverse_diagonal(self, j: int) -> Array:
        """Return the diagonal of ``K_FF^-1``."""
        if not len(self.rows[j]):
            return np.empty(0)
        inverse = _inverse_triangle(self.factors[j])
        return np.einsum("ij,ij->j", inverse, inverse)

    def weights(self, j: int) -> Array:
        """Return X_j."""
        return _backward(self.factors[j], self.halves[j])


def _block(K: Array, rows: NDArray[np.intp], columns: NDArray[np.intp]) -> Array:
    """Return a block; whole rows first takes a third of the time of single entries."""
    return K.take(rows, axis=0).take(columns, axis=1)


def _forward(factor: Array, V: Array) -> Array:
    """Return ``factor^-1 V``."""
    return _triangular(factor, V, trans=0)


def _backward(factor: Array, V: Array) -> Array:
    """Return ``factor'^-1 V``."""
    return _triangular(factor, V, trans=1)


def _triangular(factor: Array, V: Array, trans: int) -> Array:
    if not V.size:
        return V
    if V.ndim == 1:
        return _triangular(factor, V[:, None], trans)[:, 0]
    # BLAS sees arrays by columns: rows of V, kept as they are, are columns of its transpose
    (solve,) = get_blas_funcs(("trsm",), (factor,))
    return solve(1.0, factor, V.T, side=1, lower=1, trans_a=1 - trans).T


def _inverse_triangle(factor: Array) -> Array:
    (invert,) = get_lapack_funcs(("trtri",), (factor,))
    return np.tril(invert(factor, lower=1)[0])
