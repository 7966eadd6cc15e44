"""Kernels, landmarks (reduced kernels) and Gram providers.

A Gram provider hands out the kernel matrix of the training rows in the form that fits the memory given to it:
whole, as products of features, or row by row.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
import scipy.linalg
from numpy.typing import NDArray
from scipy import sparse
from sklearn.metrics.pairwise import pairwise_kernels
from sklearn.utils.extmath import safe_sparse_dot

from polymargin._native.rows import add_rows, gather
from polymargin.checks import check_choice, check_integer, check_real

KERNELS = ("linear", "rbf", "poly", "sigmoid", "laplacian", "precomputed")
_KERNEL_PARAMETERS = {
    "rbf": ("gamma",),
    "laplacian": ("gamma",),
    "poly": ("gamma", "degree", "coef0"),
    "sigmoid": ("gamma", "coef0"),
}


@dataclass(frozen=True, slots=True)
class Kernel:
    """A kernel with all its parameters resolved to numbers."""

    name: str | Callable
    gamma: float = 1.0
    degree: float = 3.0
    coef0: float = 0.0

    def __call__(self, X: Any, Y: Any = None) -> NDArray:
        """Return the kernel matrix between the rows of `X` and of `Y` (of `X` itself if None)."""
        if self.name == "precomputed":
            return X
        if callable(self.name):
            return np.asarray(self.name(X, X if Y is None else Y))
        if self.name == "rbf" and Y is None and isinstance(X, np.ndarray):
            return _symmetric_rbf(X, self.gamma)
        parameters = {key: getattr(self, key) for key in _KERNEL_PARAMETERS.get(self.name, ())}
        return pairwise_kernels(X, Y, metric=self.name, **parameters)

    def diagonal(self, X: Any) -> NDArray[np.float64]:
        """Return the kernel of every row of `X` with itself."""
        n = X.shape[0]
        if self.name in ("rbf", "laplacian"):
            return np.ones(n)
        if self.name == "precomputed":
            return np.asarray(X.diagonal(), dtype=np.float64)
        if callable(self.name):
            return np.array([float(self(X[i : i + 1])[0, 0]) for i in range(n)])
        squares = row_norms_squared(X)
        if self.name == "linear":
            return squares
        inner = self.gamma * squares + self.coef0
        return inner**self.degree if self.name == "poly" else np.tanh(inner)


def _symmetric_rbf(X: NDArray, gamma: float, block_entries: int = 2**19) -> NDArray[np.float64]:
    """Return ``exp(-gamma |x_i - x_j|^2)`` of all rows; blocks below the diagonal are copied from above it."""
    n = len(X)
    centred = (X - X.mean(axis=0, dtype=np.float64)) * np.sqrt(2.0 * gamma)
    squares = 0.5 * row_norms_squared(centred)
    matrix = np.empty((n, n))
    first = 0
    while first < n:
        last = min(n, first + max(64, block_entries // (n - first)))
        block = centred[first:last] @ centred[first:].T
        block -= squares[first:last, None]
        block -= squares[first:]
        np.minimum(block, 0.0, out=block)
        np.exp(block, out=block)
        matrix[first:last, first:] = block
        matrix[last:, first:last] = block[:, last - first :].T
        first = last
    np.fill_diagonal(matrix, 1.0)
    return matrix


def resolve_kernel(
    kernel: Any, gamma: Any, degree: Any, coef0: Any, X: Any, weights: NDArray[np.float64]
) -> Kernel:
    """Check a kernel specification and resolve gamma="scale" and "auto" on the training rows.

    The variance behind "scale" is weighted, so that weights mean repeated rows here too.
    """
    return kernel_for(kernel, gamma, degree, coef0, X.shape[1], lambda: _weighted_variance(X, weights))


def kernel_for(
    kernel: Any, gamma: Any, degree: Any, coef0: Any, n_features: int, variance: Callable[[], float]
) -> Kernel:
    """Check a kernel specification and resolve gamma; `variance`, of all entries, is asked for if it matters."""
    if not callable(kernel):
        check_choice("kernel", kernel, KERNELS)
    check_real("degree", degree, at_least=0.0)
    check_real("coef0", coef0)
    if gamma == "auto" and isinstance(gamma, str):
        number = 1.0 / n_features
    elif gamma == "scale" and isinstance(gamma, str):
        spread = variance() if kernel in _KERNEL_PARAMETERS else 1.0
        number = 1.0 / (n_features * spread) if spread > 0 else 1.0
    elif isinstance(gamma, str):
        raise ValueError(f"gamma must be 'scale', 'auto' or a positive number, got {gamma!r}.")
    else:
        number = check_real("gamma", gamma, above=0.0)
    return Kernel(kernel, number, float(degree), float(coef0))


def _weighted_variance(X: Any, weights: NDArray[np.float64]) -> float:
    """Variance over all entries of `X`, each row counted `weights` times."""
    entries = weights.sum() * X.shape[1]
    row_sums = np.asarray(X.sum(axis=1, dtype=np.float64)).ravel()
    mean = weights @ row_sums / entries
    if sparse.issparse(X):
        return float(weights @ row_norms_squared(X) / entries - mean**2)
    centred = X - mean
    return float(weights @ np.einsum("ij,ij->i", centred, centred, dtype=np.float64) / entries)


def row_norms_squared(X: Any) -> NDArray[np.float64]:
    """Return the squared Euclidean norm of every row."""
    if sparse.issparse(X):
        return np.asarray(X.multiply(X).sum(axis=1), dtype=np.float64).ravel()
    return np.einsum("ij,ij->i", X, X, dtype=np.float64)


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
    """The whole matrix in memory, in double or single precision."""

    def __init__(self, matrix: NDArray):
        self.matrix = np.ascontiguousarray(matrix)
        self.n = matrix.shape[0]

    def diagonal(self) -> NDArray[np.float64]:
        """Return the diagonal."""
        return self.matrix.diagonal().astype(np.float64)

    def block(self, rows: NDArray[np.intp], columns: NDArray[np.intp] | None = None) -> NDArray[np.float64]:
        """Return rows of the matrix, restricted to `columns` where given."""
        if columns is None:
            return self.matrix[rows].astype(np.float64, copy=False)
        part = np.empty((len(rows), len(columns)))
        # Positions that come from np.nonzero of a matrix are strided.
        gather(self.matrix, np.ascontiguousarray(rows), np.ascontiguousarray(columns), part)
        return part

    def matmul(self, V: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return the product with `V`; single precision is accumulated by double-precision blocks.

        The matrix is symmetric: where most rows of `V` are zero, few rows of the matrix are read.
        """
        rows = np.flatnonzero(V.any(axis=1))
        if 3 * len(rows) < self.n:
            return self.block(rows).T @ V[rows]
        if self.matrix.dtype == np.float64:
            return self.matrix @ V
        return _matmul_by_rows(self, V)

    def add_product(self, rows: NDArray[np.intp], V: NDArray[np.float64], out: NDArray[np.float64]) -> None:
        """Add the product of some columns with `V` to `out`; as the matrix is symmetric its rows are read."""
        add_rows(self.matrix, rows, np.ascontiguousarray(V), out.T)


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
        return np.asarray(self.features @ (self.features.T @ V), dtype=np.float64)

    def add_product(self, rows: NDArray[np.intp], V: NDArray[np.float64], out: NDArray[np.float64]) -> None:
        """Add the product of some columns with `V` to `out`, through the features."""
        out += np.asarray(self.features @ (self.features[rows].T @ V))


class LazyGram:
    """Rows computed when they are asked for: for matrices that do not fit the memory given.

    The rows that `add_product` used last stay in single precision within `cache_size` megabytes. What it adds is
    thus right to single precision; `matmul` is right to double precision.
    """

    def __init__(self, kernel: Kernel, X: Any, cache_size: float = 0.0):
        self.kernel = kernel
        self.X = X
        self.n = X.shape[0]
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
        other = self.X if columns is None else self.X[columns]
        return np.asarray(self.kernel(self.X[rows], other), dtype=np.float64)

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
            self._cache[victims] = self.kernel(self.X[missing], self.X)
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


def _matmul_by_rows(gram: Gram, V: NDArray[np.float64]) -> NDArray[np.float64]:
    product = np.zeros((gram.n, V.shape[1]))
    if V.any():
        for rows, part in products_by_rows(gram, V):
            product[rows] = part
    return product


def pivoted_cholesky(gram: Gram, max_rank: int, tol: float = 1e-13) -> NDArray[np.float64]:
    """Return features L (n, r), r at most `max_rank`, with ``L L'`` near the matrix (greedy pivots).

    It stops when what is left of the trace is below `tol` of it; then L stands for the matrix to rounding.
    """
    left = gram.diagonal().copy()
    total = float(left.sum())
    L = np.zeros((gram.n, max_rank))
    for rank in range(max_rank):
        pivot = int(left.argmax())
        if left[pivot] <= 0.0 or float(left.sum()) <= tol * total:
            return L[:, :rank]
        column = gram.block(np.array([pivot]))[0] - L[:, :rank] @ L[pivot, :rank]
        L[:, rank] = column / np.sqrt(left[pivot])
        left = np.maximum(left - L[:, rank] ** 2, 0.0)
        left[pivot] = 0.0
    return L


def make_gram(kernel: Kernel, X: Any, cache_size: float) -> Gram:
    """Choose the Gram provider for `cache_size` megabytes: whole, whole in single precision, or by rows."""
    n = X.shape[0]
    budget = cache_size * 1e6
    if kernel.name == "precomputed":
        return DenseGram(X)
    if 8 * n * n <= budget:
        return DenseGram(np.ascontiguousarray(kernel(X), dtype=np.float64))
    if 4 * n * n <= budget:
        lazy = LazyGram(kernel, X)
        matrix = np.empty((n, n), dtype=np.float32)
        height = max(1, 2**26 // (8 * n))
        for first in range(0, n, height):
            rows = np.arange(first, min(first + height, n))
            matrix[rows] = lazy.block(rows)
        return DenseGram(matrix)
    return LazyGram(kernel, X, cache_size)


def check_precomputed(K: Any, *, name: str = "X") -> NDArray[np.float64]:
    """Return a precomputed training kernel, or raise if it is not square and symmetric."""
    if K.shape[0] != K.shape[1]:
        raise ValueError(
            f"With kernel='precomputed' {name} must be a square matrix (n_samples, n_samples), got {K.shape}."
        )
    asymmetry = np.abs(K - K.T).max()
    if asymmetry > 1e-8 * max(1.0, np.abs(K).max()):
        raise ValueError(
            f"With kernel='precomputed' {name} must be symmetric, but it differs from its transpose by "
            f"{asymmetry:.3g}."
        )
    return K


def draw_landmarks(
    landmarks: Any,
    X: Any,
    labels: NDArray[np.intp],
    rng: np.random.RandomState,
    *,
    weights: NDArray[np.float64] | None = None,
    centres: bool = False,
) -> Any:
    """Return the landmark rows that `landmarks` asks for: a count, a fraction, or the rows themselves.

    Counts and fractions are drawn without replacement from each class in proportion to its size, at least one
    from each; with `centres` that many centres of each class are found by (weighted) k-means instead.
    """
    points = given_landmarks(landmarks, X.shape[1], X.dtype)
    if points is not None:
        return points
    quota = landmark_quota(landmarks, np.bincount(labels))
    members = [np.flatnonzero(labels == c) for c in range(len(quota))]
    sizes = quota.tolist()
    if centres:
        parts = [
            _centres(X[rows], size, None if weights is None else weights[rows], rng)
            for rows, size in zip(members, sizes, strict=True)
            if size
        ]
        return np.vstack(parts)
    chosen = [
        rng.choice(rows, size=size, replace=False) for rows, size in zip(members, sizes, strict=True) if size
    ]
    return X[np.sort(np.concatenate(chosen))]


def given_landmarks(landmarks: Any, n_features: int, dtype: Any) -> Any:
    """Return landmarks that are given as points, checked; None where they are to be drawn."""
    if not sparse.issparse(landmarks) and (isinstance(landmarks, str) or np.ndim(landmarks) == 0):
        return None
    points = landmarks if sparse.issparse(landmarks) else np.asarray(landmarks, dtype=dtype)
    if points.ndim != 2 or points.shape[1] != n_features:
        raise ValueError(
            f"landmarks given as points must have shape (m, {n_features}), one column a feature, "
            f"got {points.shape}."
        )
    if not sparse.issparse(points) and not np.isfinite(points).all():
        raise ValueError("landmarks must be finite, got NaN or infinity.")
    return points


def landmark_quota(landmarks: Any, counts: NDArray[np.intp]) -> NDArray[np.intp]:
    """Return how many landmarks to draw from classes of `counts` rows, for a count or a fraction in all."""
    if isinstance(landmarks, (float, np.floating)):
        wanted = check_real("landmarks", landmarks, above=0.0, at_most=1.0) * counts
    else:
        n, count = counts.sum(), check_integer("landmarks", landmarks, at_least=1)
        if count > n:
            raise ValueError(f"landmarks must be at most the number of samples, {n}, got {count}.")
        wanted = count * counts / n
    return np.minimum(np.maximum(1, np.floor(wanted + 0.5)).astype(np.intp), counts)


def _centres(X: Any, n_centres: int, weights: NDArray[np.float64] | None, rng: np.random.RandomState) -> NDArray:
    if n_centres == X.shape[0]:
        return X.toarray() if sparse.issparse(X) else X
    from sklearn.cluster import MiniBatchKMeans  # slow to import, and seldom wanted

    k_means = MiniBatchKMeans(n_centres, n_init=1, random_state=rng, batch_size=max(1024, 3 * n_centres))
    return k_means.fit(X, sample_weight=weights).cluster_centers_


def row_keys(X: Any) -> list[bytes]:
    """Return for every row bytes that are the same for equal rows, zeros being equal whatever their sign."""
    if not sparse.issparse(X):
        return [row.tobytes() for row in np.ascontiguousarray(X + 0.0)]
    X = sparse.csr_array(X, copy=True)
    X.sum_duplicates()
    X.eliminate_zeros()
    spans = zip(X.indptr[:-1], X.indptr[1:], strict=True)
    return [X.indices[a:b].tobytes() + X.data[a:b].tobytes() for a, b in spans]


def distinct_rows(X: Any) -> NDArray[np.intp]:
    """Return the positions of the first of every set of equal rows, in ascending order.

    A basis of kernel functions is a set of points: given twice, a point must not count twice.
    """
    firsts = {key: row for row, key in reversed(list(enumerate(row_keys(X))))}
    return np.sort(np.fromiter(firsts.values(), dtype=np.intp))


@dataclass(frozen=True, slots=True)
class KernelFeatures:
    """Features ``K(x, landmark_m)``: the kernel at the landmarks itself, as reduced kernels use it.

    Attributes
    ----------
    kernel : the kernel.
    landmarks : points (m, p), or columns (m,) of a precomputed kernel.
    """

    kernel: Kernel
    landmarks: Any

    def __call__(self, X: Any) -> NDArray:
        """Return the features (n, m) of the rows of `X`."""
        return X[:, self.landmarks] if self.kernel.name == "precomputed" else self.kernel(X, self.landmarks)


class NystroemMap:
    """Features whose inner products are the kernel projected on the span of the landmarks.

    A function ``sum_m v_m K(., landmark_m)`` has the same norm in feature space as in the kernel's space, so a
    linear machine on these features *is* the kernel machine restricted to that span.
    """

    def __init__(self, kernel: Kernel, landmarks: Any):
        self.kernel = kernel
        self.landmarks = landmarks
        values, vectors = scipy.linalg.eigh(np.asarray(kernel(landmarks), dtype=np.float64))
        keep = values > values[-1] * len(values) * np.finfo(np.float64).eps
        self.root = vectors[:, keep] / np.sqrt(values[keep])

    def transform(self, X: Any) -> NDArray[np.float64]:
        """Return the features (n, rank) of the rows of `X`."""
        return self.kernel(X, self.landmarks) @ self.root
