"""Products of a large matrix with a few columns: by a compiled loop, for most numbers of them faster than BLAS."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from polymargin._native.skinny import (
    available,
    has_wide,
    multiply,
    multiply_transposed,
    pack,
    register_width,
)
from polymargin.threads import over_ranges


@dataclass(frozen=True, slots=True)
class ProductSettings:
    """When the compiled loop pays.

    Attributes
    ----------
    max_columns, max_wide : beyond which BLAS is as fast; the second where there is AVX-512, which some builds of
        BLAS leave alone on processors that they do not know.
    max_transposed : the same of transposed rows, of which BLAS has to be given copies.
    least_entries : of the matrix, below which a call costs more than the work.
    entries_of_a_thread : entries of the matrix times columns below which a thread is not worth its start.
    rows_at_a_time : rows that BLAS is given copies of, where they stay in the cache.
    rows_of_a_block : rows at least, or columns, that are one product of BLAS.
    few_rows : part of the rows of a symmetric matrix below which to read these alone takes less.
    """

    max_columns: int = 40
    max_wide: int = 1000
    max_transposed: int = 100
    least_entries: int = 2**17
    entries_of_a_thread: int = 2**25
    rows_at_a_time: int = 64
    rows_of_a_block: int = 192
    few_rows: float = 0.75

    def pays(self, entries: int, columns: int) -> bool:
        """Tell whether the compiled loop is there, and the product large and narrow enough for it."""
        most = self.max_wide if has_wide() else self.max_columns
        return available() and 0 < columns <= most and entries >= self.least_entries

    def pays_transposed(self, entries: int, columns: int) -> bool:
        """Tell the same of a product with transposed rows."""
        return available() and 0 < columns <= self.max_transposed and entries >= self.least_entries

    def lines_of_a_thread(self, entries: int) -> int:
        """Return how many lines of the matrix, which meet so many numbers each, are worth a thread."""
        return max(1, self.entries_of_a_thread // max(1, entries))


DEFAULTS = ProductSettings()


def skinny_product(matrix: NDArray, V: NDArray, tuning: ProductSettings = DEFAULTS) -> NDArray:
    """Return ``matrix @ V``, of the matrix's precision, for V (n, k) of few columns.

    Examples
    --------
    >>> skinny_product(np.eye(2, dtype=np.float32), np.ones((2, 3)))
    array([[1., 1., 1.],
           [1., 1., 1.]], dtype=float32)
    """
    V = V.astype(matrix.dtype, copy=False)
    (m, n), k = matrix.shape, V.shape[1]
    if not (k > 1 and tuning.pays(m * n, k) and _rows_lie_together(matrix)):
        return matrix @ V
    width = _width(k, matrix.itemsize)
    panels, out = np.zeros(n * width, dtype=matrix.dtype), np.empty((m, width), dtype=matrix.dtype)
    pack(V, panels)
    multiply_packed(matrix, panels, out, tuning)
    return out[:, :k]


def multiply_packed(matrix: NDArray, panels: NDArray, out: NDArray, tuning: ProductSettings = DEFAULTS) -> None:
    """Write to `out` the product of a matrix with columns as `pack` has laid them out."""
    out[:] = 0.0
    over_ranges(
        lambda rows: multiply(matrix[rows], panels, out[rows]),
        len(out),
        tuning.lines_of_a_thread(len(panels)),
        idle_only=True,
    )


def wide_product(A: Any, B: Any, tuning: ProductSettings = DEFAULTS) -> Any:
    """Return ``A @ B``, compiled or by BLAS, rows in threads of our own: these sleep where BLAS's own spin.

    The blocks are the same for any number of threads, and so is the product, to the last bit.

    Examples
    --------
    >>> wide_product(np.eye(2), np.ones((2, 3)))
    array([[1., 1., 1.],
           [1., 1., 1.]])
    """
    if sparse.issparse(A) or sparse.issparse(B):
        return A @ B
    if A.dtype == B.dtype and tuning.pays(A.size, B.shape[1]) and _rows_lie_together(A):
        return skinny_product(A, B, tuning)
    out = np.empty((len(A), B.shape[1]), dtype=np.result_type(A, B))
    height = max(tuning.rows_of_a_block, tuning.lines_of_a_thread(B.size))

    def fill(some: slice) -> None:
        for rows in blocks[some]:
            np.matmul(A[rows], B, out=out[rows])

    blocks = blocks_of(len(A), height)
    over_ranges(fill, len(blocks), 1, idle_only=True)
    return out


def squares_of(X: Any, tuning: ProductSettings = DEFAULTS) -> NDArray:
    """Return ``X'X``, dense, for rows X; of dense ones in blocks of columns, as `wide_product` has them of rows.

    Examples
    --------
    >>> squares_of(np.array([[1.0, 2.0], [0.0, 1.0]]))
    array([[1., 2.],
           [2., 5.]])
    """
    if sparse.issparse(X):
        return np.asarray((X.T @ X).toarray())
    n, p = X.shape
    squares = np.empty((p, p), dtype=X.dtype)

    def fill(some: slice) -> None:
        for columns in blocks[some]:
            own, before = X[:, columns], X[:, : columns.start]
            squares[columns, columns] = own.T @ own
            squares[: columns.start, columns] = before.T @ own
            squares[columns, : columns.start] = squares[: columns.start, columns].T

    blocks = blocks_of(p, tuning.rows_of_a_block)
    blocks = blocks[::2] + blocks[1::2]  # long and short ones for every thread
    over_ranges(fill, len(blocks), tuning.lines_of_a_thread(n * p * tuning.rows_of_a_block), idle_only=True)
    return squares


def blocks_of(n: int, height: int) -> list[slice]:
    """Return slices of so many of n rows each, the last of what is left."""
    return [slice(first, min(first + height, n)) for first in range(0, n, height)]


def transposed_product(
    matrix: NDArray, rows: NDArray[np.intp], V: NDArray[np.float64], tuning: ProductSettings = DEFAULTS
) -> NDArray[np.float64]:
    """Return ``matrix[rows].T @ V`` in double precision, for V of few columns; other rows are not read.

    Examples
    --------
    >>> transposed_product(np.array([[1.0, 2.0], [3.0, 4.0]]), np.array([1]), np.array([[10.0]]))
    array([[30.],
           [40.]])
    """
    n, k = matrix.shape[1], V.shape[1]
    is_double, pays = matrix.dtype == np.float64, tuning.pays_transposed(len(rows) * n, k)
    if not (is_double and pays and _rows_lie_together(matrix)):
        product = np.zeros((n, k))
        for first in range(0, len(rows), tuning.rows_at_a_time):
            part = slice(first, first + tuning.rows_at_a_time)
            product += matrix[rows[part]].astype(np.float64, copy=False).T @ V[part]
        return product
    width, out = _width(k, matrix.itemsize), np.zeros((n, _width(k, matrix.itemsize)))
    padded = np.zeros((-(-len(rows) // 6) * 6, width))
    padded[: len(rows), :k] = V
    rows = np.ascontiguousarray(rows)
    over_ranges(
        lambda columns: multiply_transposed(matrix[:, columns], rows, padded, out[columns]),
        n,
        tuning.lines_of_a_thread(padded.size),
        idle_only=True,
    )
    return out[:, :k]


def symmetric_product(
    matrix: NDArray, V: NDArray[np.float64], tuning: ProductSettings = DEFAULTS
) -> NDArray[np.float64] | None:
    """Return the product of a symmetric matrix with V where few rows of V are not zero, else None."""
    rows = np.flatnonzero(V.any(axis=1))
    return transposed_product(matrix, rows, V[rows], tuning) if len(rows) < tuning.few_rows * len(V) else None


def _width(k: int, itemsize: int) -> int:
    """Return the columns of whole registers that k columns take."""
    lanes = register_width(itemsize)
    return lanes * -(-k // lanes)


def _rows_lie_together(matrix: NDArray) -> bool:
    return matrix.strides[1] == matrix.itemsize
