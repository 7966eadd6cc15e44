"""Products of a large matrix with a few columns: by a compiled loop, for most numbers of them faster than BLAS."""

import numpy as np
from numpy.typing import NDArray

from polymargin._native.skinny import available, multiply, pack, register_width
from polymargin.threads import over_ranges

MAX_COLUMNS = 40
"""Beyond, BLAS is as fast."""
LEAST_ENTRIES = 2**17
"""Of the matrix, below which a call costs more than the work."""
ENTRIES_OF_A_THREAD = 2**25
"""Entries of the matrix times columns below which a thread is not worth its start."""


def skinny_product(matrix: NDArray, V: NDArray) -> NDArray:
    """Return ``matrix @ V``, of the matrix's precision, for V (n, k) of few columns.

    Examples
    --------
    >>> skinny_product(np.eye(2, dtype=np.float32), np.ones((2, 3)))
    array([[1., 1., 1.],
           [1., 1., 1.]], dtype=float32)
    """
    V = V.astype(matrix.dtype, copy=False)
    (m, n), k = matrix.shape, V.shape[1]
    if not (available() and 1 < k <= MAX_COLUMNS and m * n >= LEAST_ENTRIES and matrix.flags.c_contiguous):
        return matrix @ V
    lanes = register_width(matrix.itemsize)
    width = lanes * -(-k // lanes)
    panels, out = np.zeros(n * width, dtype=matrix.dtype), np.zeros((m, width), dtype=matrix.dtype)
    pack(V, panels)
    rows_of_a_thread = max(1, ENTRIES_OF_A_THREAD // (n * width))
    over_ranges(lambda rows: multiply(matrix[rows], panels, out[rows]), m, rows_of_a_thread)
    return out[:, :k]
