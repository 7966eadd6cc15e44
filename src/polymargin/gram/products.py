"""Products of a large matrix with a few columns: by a compiled loop, for most numbers of them faster than BLAS."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from polymargin._native.skinny import available, multiply, pack, register_width
from polymargin.threads import over_ranges


@dataclass(frozen=True, slots=True)
class ProductSettings:
    """When the compiled loop pays.

    Attributes
    ----------
    max_columns : beyond which BLAS is as fast.
    least_entries : of the matrix, below which a call costs more than the work.
    entries_of_a_thread : entries of the matrix times columns below which a thread is not worth its start.
    """

    max_columns: int = 40
    least_entries: int = 2**17
    entries_of_a_thread: int = 2**25


DEFAULTS = ProductSettings()


def skinny_product(
    matrix: NDArray, V: NDArray, tuning: ProductSettings = DEFAULTS, rows: NDArray[np.intp] | None = None
) -> NDArray:
    """Return ``matrix @ V``, or some `rows` of it, of the matrix's precision, for V (n, k) of few columns.

    Examples
    --------
    >>> skinny_product(np.eye(2, dtype=np.float32), np.ones((2, 3)))
    array([[1., 1., 1.],
           [1., 1., 1.]], dtype=float32)
    """
    V = V.astype(matrix.dtype, copy=False)
    (m, n), k = matrix.shape, V.shape[1]
    m = m if rows is None else len(rows)
    pays = 1 < k <= tuning.max_columns and m * n >= tuning.least_entries
    if not (pays and available() and matrix.strides[1] == matrix.itemsize):
        return (matrix if rows is None else matrix[rows]) @ V
    lanes = register_width(matrix.itemsize)
    width = lanes * -(-k // lanes)
    panels, out = np.zeros(n * width, dtype=matrix.dtype), np.empty((m, width), dtype=matrix.dtype)
    pack(V, panels)
    multiply_packed(matrix, panels, out, tuning, rows)
    return out[:, :k]


def multiply_packed(
    matrix: NDArray,
    panels: NDArray,
    out: NDArray,
    tuning: ProductSettings = DEFAULTS,
    rows: NDArray[np.intp] | None = None,
) -> None:
    """Write to `out` the product of a matrix, or of some `rows`, with columns as `pack` has laid them out."""
    rows_of_a_thread = max(1, tuning.entries_of_a_thread // max(1, len(panels)))
    out[:] = 0.0

    def multiply_some(part: slice) -> None:
        if rows is None:
            multiply(matrix[part], panels, out[part])
        else:
            multiply(matrix, panels, out[part], rows[part])

    over_ranges(multiply_some, len(out), rows_of_a_thread)
