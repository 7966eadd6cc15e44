"""Least squares in the space of a kernel: the exact scores of rows left out, for the price of one factorisation.

Functions ``f = h + b``, one per column of the targets t, minimise
``C sum_i w_i (t_i - f(x_i))^2 + ||h||^2 + b^2``. A row leaves with all its weight.
"""

import numpy as np
import scipy.linalg
from numpy.typing import NDArray

Array = NDArray[np.float64]


def left_out_by_rows(K: Array, targets: Array, weights: Array, C: float) -> Array:
    """Return the left-out scores (n, k) from the kernel matrix, which is overwritten.

    They are ``t_i - a_i / A^-1_ii`` with ``A = K + 1 + diag(1/(C w))`` and ``a = A^-1 t``.
    """
    K += 1.0
    K.flat[:: len(K) + 1] += 1.0 / (C * weights)
    factor = scipy.linalg.cholesky(K, lower=True, overwrite_a=True, check_finite=False)
    multipliers = scipy.linalg.cho_solve((factor, True), targets, check_finite=False)
    inverse = scipy.linalg.lapack.dtrtri(factor, lower=1, overwrite_c=True)[0]
    return targets - multipliers / np.einsum("ij,ij->j", inverse, inverse)[:, None]


def left_out_by_features(Z: Array, targets: Array, weights: Array, C: float) -> Array:
    """Return the same from features whose inner products are the kernel, where they are fewer than the rows.

    With fitted scores s and leverages l they are ``(s_i - l_i t_i) / (1 - l_i)``.
    """
    Z = np.column_stack([Z, np.ones(len(Z))])
    A = Z.T @ (weights[:, None] * Z)
    A.flat[:: len(A) + 1] += 1.0 / C
    factor = scipy.linalg.cholesky(A, lower=True, overwrite_a=True, check_finite=False)
    axes = scipy.linalg.solve_triangular(factor, Z.T, lower=True, check_finite=False)
    fitted = axes.T @ (axes @ (weights[:, None] * targets))
    leverage = (weights * np.einsum("ij,ij->j", axes, axes))[:, None]
    return (fitted - leverage * targets) / (1.0 - leverage)
