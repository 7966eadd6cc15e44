"""Gram providers.

They hand out the kernel matrix of the training rows in the form that fits the memory given to them: whole, as
products of features, or row by row.
"""

import math
import time
from collections.abc import Callable, Iterator
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.extmath import safe_sparse_dot

from polymargin._native.rows import add_rows, gather
from polymargin.gram.compressed import rows_times, transposed_times
from polymargin.gram.kernels import DEFAULTS, Kernel, MatrixSettings, OutOfTimeError, row_norms_squared
from polymargin.gram.points import PointKernel
from polymargin.gram.products import skinny_product, symmetric_product, transposed_product
from polymargin.memory import check_memory
from polymargin.threads import eigh


class Gram(Protocol):
    """The kernel matrix of the training rows."""

    n: int

    def diagonal(self) -> NDArray[np.float64]:
        """Return the diagonal."""
        ...

    def block(self, rows: NDArray[np.intp], columns: NDArray[np.intp] | None = None) -> NDArray[np.float64]:
        """Return the rows `rows`, restricted to `columns` where given, in double precision."""
        ...

    def matmul(self, V: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return the product with `V` (n, m)."""
        ...

    def add_product(self, rows: NDArray[np.intp], V: NDArray[np.float64], out: NDArray[np.float64]) -> None:
        """Add the product of the columns `rows` with `V` (len(rows), m) to `out` (n, m), in Fortran order."""
        ...


class DenseGram:
    """The whole matrix in memory, in double or single precision; its rank at most, where that is known."""

    def __init__(self, matrix: NDArray, rank: int | None = None):
        self.matrix = np.ascontiguousarray(matrix)
        self.n = matrix.shape[0]
        self.rank = self.n if rank is None else rank

    def diagonal(self) -> NDArray[np.float64]:
        """Return the diagonal."""
        return self.matrix.diagonal().astype(np.float64)

    def block(self, rows: NDArray[np.intp], columns: NDArray[np.intp] | None = None) -> NDArray[np.float64]:
        """Return rows of the matrix, restricted to `columns` where given."""
        if columns is None:
            return self.matrix[rows].astype(np.float64, copy=False)
        return self.gather(rows, columns, np.empty((len(rows), len(columns))))

    def gather(self, rows: NDArray[np.intp], columns: NDArray[np.intp], out: NDArray) -> NDArray:
        """Write the rows of the matrix, restricted to `columns`, to `out`, and return it."""
        # Positions that come from np.nonzero of a matrix are strided.
        gather(self.matrix, np.ascontiguousarray(rows), np.ascontiguousarray(columns), out)
        return out

    def matmul(self, V: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return the product with `V`; single precision is accumulated by double-precision blocks.

        The matrix is symmetric: where most rows of `V` are zero, few rows of the matrix are read.
        """
        product = symmetric_product(self.matrix, V)
        if product is not None:
            return product
        if self.matrix.dtype == np.float64:
            return skinny_product(self.matrix, V)
        return _matmul_by_rows(self, V)

    def add_product(self, rows: NDArray[np.intp], V: NDArray[np.float64], out: NDArray[np.float64]) -> None:
        """Add the product of some columns with `V` to `out`; as the matrix is symmetric its rows are read."""
        add_rows(self.matrix, rows, np.ascontiguousarray(V), out.T)


class PartGram:
    """The matrix of some rows of a matrix in memory, read where it lies: to copy it takes longer than products."""

    def __init__(self, whole: DenseGram, rows: NDArray[np.intp]):
        self.whole, self.rows = whole, np.ascontiguousarray(rows)
        self.n = len(rows)

    def diagonal(self) -> NDArray[np.float64]:
        """Return the diagonal."""
        return self.whole.diagonal()[self.rows]

    def block(self, rows: NDArray[np.intp], columns: NDArray[np.intp] | None = None) -> NDArray[np.float64]:
        """Return rows of the matrix, restricted to `columns` where given."""
        return self.whole.block(self.rows[rows], self.rows if columns is None else self.rows[columns])

    def matmul(self, V: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return the product with `V`."""
        return self.matmul_on_all(V)[self.rows]

    def matmul_on_all(self, V: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return the product of these columns of the whole matrix, which is symmetric, with `V`."""
        return transposed_product(self.whole.matrix, self.rows, V)

    def add_product(self, rows: NDArray[np.intp], V: NDArray[np.float64], out: NDArray[np.float64]) -> None:
        """Add the product of some columns with `V` to `out`."""
        out += self.block(np.arange(self.n), rows) @ V


class FeatureGram:
    """Inner products of feature rows, never formed: products cost O(n p)."""

    def __init__(self, features: Any):
        self.features = features
        self.n = features.shape[0]

    def diagonal(self) -> NDArray[np.float64]:
        """Return the diagonal."""
        return row_norms_squared(self.features)

    def block(self, rows: NDArray[np.intp], columns: NDArray[np.intp] | None = None) -> NDArray[np.float64]:
        """Return rows of the matrix, restricted to `columns` where given."""
        part = self.features[rows].astype(np.float64)
        other = self.features if columns is None else self.features[columns]
        return safe_sparse_dot(part, other.T.astype(np.float64), dense_output=True)

    def matmul(self, V: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return the product with `V` through the features."""
        return self.scores(self.weights(V))

    def scores(self, W: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return the products of the rows with weights of features."""
        return rows_times(self.features, W)

    def weights(self, V: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return the weights of features that coefficients `V` stand for."""
        return transposed_times(self.features, V)

    def add_product(self, rows: NDArray[np.intp], V: NDArray[np.float64], out: NDArray[np.float64]) -> None:
        """Add the product of some columns with `V` to `out`, through the features."""
        out += rows_times(self.features, transposed_times(self.features[rows], V))


class LazyGram:
    """Rows computed when they are asked for: for matrices that do not fit the memory given.

    The rows that `add_product` used last stay in single precision within `cache_size` megabytes. What it adds is
    thus right to single precision; `matmul` is right to double precision.
    """

    def __init__(self, kernel: Kernel, X: Any, cache_size: float = 0.0):
        self.kernel = kernel
        self.X = X
        self.n = X.shape[0]
        self._kernel_of_all = PointKernel(kernel, X)
        slots = min(self.n, max(_ROWS_AT_A_TIME, int(cache_size * 1e6 / (4 * self.n))))
        self._cache = np.empty((slots, self.n), dtype=np.float32)
        self._slot_of = np.full(self.n, -1, dtype=np.intp)
        self._row_in = np.full(slots, -1, dtype=np.intp)
        self._used_at = np.zeros(slots, dtype=np.int64)
        self._clock = 0

    def diagonal(self) -> NDArray[np.float64]:
        """Return the diagonal."""
        return self.kernel.diagonal(self.X)

    def block(self, rows: NDArray[np.intp], columns: NDArray[np.intp] | None = None) -> NDArray[np.float64]:
        """Compute rows of the matrix, restricted to `columns` where given."""
        if columns is None:
            return np.asarray(self._kernel_of_all(self.X[rows]), dtype=np.float64)
        return np.asarray(self.kernel(self.X[rows], self.X[columns]), dtype=np.float64)

    def matmul(self, V: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return the product with `V`, computing the matrix once in blocks of rows."""
        return _matmul_by_rows(self, V)

    def add_product(self, rows: NDArray[np.intp], V: NDArray[np.float64], out: NDArray[np.float64]) -> None:
        """Add the product of some columns with `V` to `out`, from the cache where they are there."""
        for first in range(0, len(rows), _ROWS_AT_A_TIME):
            part = slice(first, first + _ROWS_AT_A_TIME)
            add_rows(self._cache, self._cached(rows[part]), np.ascontiguousarray(V[part]), out.T)

    def _cached(self, rows: NDArray[np.intp]) -> NDArray[np.intp]:
        """Return the slots of the rows; missing rows take the place of those unused for longest."""
        self._clock += 1
        slots = self._slot_of[rows]
        self._used_at[slots[slots >= 0]] = self._clock
        missing = rows[slots < 0]
        if len(missing):
            victims = np.argpartition(self._used_at, len(missing) - 1)[: len(missing)]
            evicted = self._row_in[victims]
            self._slot_of[evicted[evicted >= 0]] = -1
            self._cache[victims] = self._kernel_of_all(self.X[missing])
            self._slot_of[missing] = victims
            self._row_in[victims] = missing
            self._used_at[victims] = self._clock
        return self._slot_of[rows]


_ROWS_AT_A_TIME = 128


def products_by_rows(
    gram: Gram, V: NDArray[np.float64], block_bytes: int = 2**26
) -> Iterator[tuple[NDArray[np.intp], NDArray[np.float64]]]:
    """Yield some rows of the matrix's product with `V` after the others, with their positions.

    Only the columns that meet a row of `V` other than zero are computed.
    """
    met = np.flatnonzero(V.any(axis=1))
    columns, V = (None, V) if len(met) == gram.n else (met, V[met])
    height = max(1, block_bytes // (8 * max(1, len(V))))
    for first in range(0, gram.n, height):
        rows = np.arange(first, min(first + height, gram.n))
        yield rows, gram.block(rows, columns) @ V


def as_dense(gram: Gram, who: str) -> DenseGram:
    """Return the matrix held in memory that `who` needs.

    Raises
    ------
    TypeError
        It is none.
    """
    if not isinstance(gram, DenseGram):
        raise TypeError(f"{who} needs the whole matrix in memory: a DenseGram, got a {type(gram).__name__}.")
    return gram


def as_features(gram: Gram, who: str) -> FeatureGram:
    """Return the inner products of features that `who` needs.

    Raises
    ------
    TypeError
        They are none.
    """
    if not isinstance(gram, FeatureGram):
        raise TypeError(f"{who} needs features: a FeatureGram, got a {type(gram).__name__}.")
    return gram


def restricted(gram: Gram, rows: NDArray[np.intp]) -> Gram:
    """Return the kernel of some rows: as features where it is one of features."""
    if isinstance(gram, FeatureGram):
        return FeatureGram(gram.features[rows])
    return DenseGram(gram.block(rows, rows))


def products_at(gram: Gram, rows: NDArray[np.intp], V: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the rows `rows` of the matrix's product with `V`."""
    if isinstance(gram, FeatureGram):
        return rows_times(gram.features[rows], gram.weights(V))
    met = np.flatnonzero(V.any(axis=1))
    return gram.block(rows, met) @ V[met]


def _matmul_by_rows(gram: Gram, V: NDArray[np.float64]) -> NDArray[np.float64]:
    product = np.zeros((gram.n, V.shape[1]))
    if V.any():
        for rows, part in products_by_rows(gram, V):
            product[rows] = part
    return product


def pivoted_cholesky(
    gram: Gram, max_rank: int, tol: float = 1e-13, until: float = math.inf
) -> NDArray[np.float64]:
    """Return features L (n, r), r at most `max_rank`, with ``L L'`` near the matrix (greedy pivots).

    It stops when what is left of the trace is below `tol` of it; then L stands for the matrix to rounding. It also
    stops, after the first column, when ``time.perf_counter()`` reaches `until`.
    """
    left = gram.diagonal().copy()
    total = float(left.sum())
    L = np.zeros((gram.n, max_rank))
    for rank in range(max_rank):
        pivot = int(left.argmax())
        is_late = rank > 0 and time.perf_counter() >= until
        if is_late or left[pivot] <= 0.0 or float(left.sum()) <= tol * total:
            return L[:, :rank]
        column = gram.block(np.array([pivot]))[0] - L[:, :rank] @ L[pivot, :rank]
        L[:, rank] = column / np.sqrt(left[pivot])
        left = np.maximum(left - L[:, rank] ** 2, 0.0)
        left[pivot] = 0.0
    return L


def kernel_root(gram: Gram, is_over: Callable[[], bool] = lambda: False) -> NDArray[np.float64]:
    """Return features (n, rank) whose inner products are the kernel matrix; give up where it is over."""
    values, vectors = eigh(gram.block(np.arange(gram.n)), is_over)
    keep = values > values[-1] * len(values) * np.finfo(np.float64).eps
    return vectors[:, keep] * np.sqrt(values[keep])


def make_gram(
    kernel: Kernel, X: Any, cache_size: float, until: float = math.inf, tuning: MatrixSettings = DEFAULTS
) -> Gram:
    """Choose the Gram provider for `cache_size` megabytes: whole, whole in single precision, or by rows.

    Where ``time.perf_counter()`` reaches `until` before a matrix is whole, it is given up: a solver without time
    asks for none of its rows.
    """
    n = X.shape[0]
    if kernel.name == "precomputed":
        return DenseGram(X)
    size = next((size for size in (8, 4) if size * n * n <= cache_size * 1e6), None)
    if size is None:
        return LazyGram(kernel, X, cache_size)
    check_memory(
        size * n * n,
        f"The kernel matrix of {n} rows",
        f"lower cache_size, which is {cache_size:g} megabytes, and its rows are computed when they are needed, or "
        "give landmarks",
    )
    try:
        dtype = np.float64 if size == 8 else np.float32
        return DenseGram(np.ascontiguousarray(kernel.matrix(X, until, dtype, tuning), dtype=dtype))
    except OutOfTimeError:
        return LazyGram(kernel, X)
