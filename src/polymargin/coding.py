"""Class codes: simplex codes, one-vs-rest signs, class pairs and the zero-sum basis."""

from functools import cache

import numpy as np
from numpy.typing import NDArray


def simplex_codes(labels: NDArray[np.intp], n_classes: int) -> NDArray[np.float64]:
    """Codes of Lee, Lin & Wahba: 1 in the column of the class, -1/(k-1) elsewhere.

    >>> simplex_codes(np.array([0, 2]), 3)
    array([[ 1. , -0.5, -0.5],
           [-0.5, -0.5,  1. ]])
    """
    codes = np.full((len(labels), n_classes), -1.0 / (n_classes - 1))
    codes[np.arange(len(labels)), labels] = 1.0
    return codes


def one_vs_rest_signs(labels: NDArray[np.intp], n_classes: int) -> NDArray[np.float64]:
    """Signs of every class against the rest: 1 in the column of the class, -1 elsewhere.

    >>> one_vs_rest_signs(np.array([0, 2]), 3)
    array([[ 1., -1., -1.],
           [-1., -1.,  1.]])
    """
    signs = np.full((len(labels), n_classes), -1.0)
    signs[np.arange(len(labels)), labels] = 1.0
    return signs


@cache
def class_pairs(n_classes: int) -> NDArray[np.intp]:
    """All pairs a < b of classes, one per row, in lexicographic order; not to be written to.

    >>> class_pairs(3)
    array([[0, 1],
           [0, 2],
           [1, 2]])
    """
    pairs = np.column_stack(np.triu_indices(n_classes, 1))
    pairs.flags.writeable = False
    return pairs


@cache
def zero_sum_basis(n_classes: int) -> NDArray[np.float64]:
    """Orthonormal basis (k, k-1) of the vectors that sum to zero (Helmert's); not to be written to.

    >>> zero_sum_basis(2).round(4)
    array([[ 0.7071],
           [-0.7071]])
    """
    basis = np.zeros((n_classes, n_classes - 1))
    for column in range(n_classes - 1):
        basis[: column + 1, column] = 1.0
        basis[column + 1, column] = -(column + 1.0)
    basis /= np.linalg.norm(basis, axis=0)
    basis.flags.writeable = False
    return basis
