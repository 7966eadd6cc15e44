"""Kernels, checked and resolved on the training rows."""

import math
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from sklearn.metrics.pairwise import pairwise_kernels

from polymargin.checks import LARGEST_ENTRY, LARGEST_KERNEL, check_choice, check_entries, check_real
from polymargin.gram.equal_rows import canonical_rows
from polymargin.threads import one_blas_thread, over_ranges

KERNELS = ("linear", "rbf", "poly", "sigmoid", "laplacian", "precomputed")
SEMI_DEFINITE = ("linear", "rbf", "laplacian")
"""Kernels whose matrices are positive semi-definite whatever their parameters."""
_KERNEL_PARAMETERS = {
    "rbf": ("gamma",),
    "laplacian": ("gamma",),
    "poly": ("gamma", "degree", "coef0"),
    "sigmoid": ("gamma", "coef0"),
}

AT_ONCE = 2**30
"""Products of entries, about, that a kernel matrix may take in one call, during which nobody hears Ctrl-C."""
KERNEL_ROUNDING = 1e-10
"""Error that rounding may make in an exponent of the Gaussian kernel."""
MOSTLY_FULL = 2 / 3
"""Part of the entries of sparse rows that are stored, from which on dense rows take no more memory."""
SMALLEST_GAMMA, LARGEST_GAMMA = 1e-65, 1e65
LARGEST_DEGREE = 100.0


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
        if X.shape[0] == 0 or (Y is not None and Y.shape[0] == 0):  # a machine without support vectors
            return np.zeros((X.shape[0], X.shape[0] if Y is None else Y.shape[0]))
        if callable(self.name):
            return _checked_values(self.name, X, X if Y is None else Y)
        if self.name == "rbf" and self._loses_digits(X if Y is None else Y):
            X, Y = (Z.toarray() if sparse.issparse(Z) else Z for Z in (X, Y))
        if self.name == "rbf" and isinstance(X, np.ndarray):
            if Y is None:
                return _symmetric_rbf(X, self.gamma)
            if isinstance(Y, np.ndarray):  # near their centre, distances of rows keep their digits
                centre = central_point(Y, self.gamma)
                X, Y = X - centre, Y - centre
        X, Y = (Z.astype(np.float64) if getattr(Z, "dtype", None) == np.float32 else Z for Z in (X, Y))
        parameters = {key: getattr(self, key) for key in _KERNEL_PARAMETERS.get(self.name, ())}
        if self.name != "poly":
            return pairwise_kernels(X, Y, metric=self.name, **parameters)
        with np.errstate(over="ignore", invalid="ignore"):  # refused in the next line, and said in a sentence
            values = pairwise_kernels(X, Y, metric=self.name, **parameters)
        _check_size(values, f"kernel='poly' of degree {self.degree:g}")
        return values

    def matrix(self, X: Any, until: float = math.inf, at_once: int = AT_ONCE) -> NDArray:
        """Return the kernel matrix of the rows of `X`, in parts where it takes more than `at_once` products.

        Raises
        ------
        OutOfTimeError
            ``time.perf_counter()`` has reached `until` before.
        """
        n, p = X.shape
        if self.name == "rbf" and isinstance(X, np.ndarray) and n:
            return _symmetric_rbf(X, self.gamma, until)
        if self.name == "precomputed" or callable(self.name) or n * n * p <= at_once:
            return self(X)
        matrix = np.empty((n, n))
        for rows in row_ranges(n, n * p, until, at_once):
            block = self(X[rows], X[rows.start :])
            matrix[rows, rows.start :] = block
            matrix[rows.stop :, rows] = block[:, rows.stop - rows.start :].T
        return matrix

    def _loses_digits(self, X: Any) -> bool:
        """Tell whether distances of sparse rows are mostly rounding, where dense ones take no more memory."""
        if not is_mostly_full(X):
            return False
        rounding = np.finfo(np.float64).eps * self.gamma * row_norms_squared(X).max()
        return bool(rounding > KERNEL_ROUNDING)

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


class OutOfTimeError(Exception):
    """The time given has run out before a kernel matrix was whole."""


def row_ranges(
    n: int, products_per_row: float, until: float = math.inf, at_once: int = AT_ONCE
) -> Iterator[slice]:
    """Yield ranges of `n` rows that take so many products of entries each, short enough to stop between them.

    Raises
    ------
    OutOfTimeError
        ``time.perf_counter()`` has reached `until` before the last range.
    """
    height = max(1, int(at_once / 16 / max(products_per_row, 1.0)))
    for first in range(0, n, height):
        if time.perf_counter() >= until:
            raise OutOfTimeError
        yield slice(first, min(first + height, n))


def _checked_values(kernel: Callable, X: Any, Y: Any) -> NDArray[np.float64]:
    """Return what a kernel that a user wrote gives, or raise if that is no kernel matrix."""
    name = getattr(kernel, "__name__", type(kernel).__name__)
    try:
        values = np.asarray(kernel(X, Y), dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise type(error)(f"kernel={name} failed on arrays of shapes {X.shape} and {Y.shape}: {error}") from error
    if values.shape != (X.shape[0], Y.shape[0]):
        raise ValueError(
            f"kernel={name} must return an array of shape {(X.shape[0], Y.shape[0])}, one row for each row of its "
            f"first argument and one column for each row of its second, got {values.shape}."
        )
    _check_size(values, f"kernel={name}")
    return values


def _check_size(values: NDArray[np.float64], name: str) -> None:
    if not np.isfinite(values).all():
        raise ValueError(f"{name} must have finite values, got NaN or infinity; scale the features.")
    check_entries(f"The matrix of {name}", values, LARGEST_KERNEL)


def central_point(points: NDArray, gamma: float) -> NDArray[np.float64]:
    """Return a point near which distances keep their digits: the mean, or the median if a row pulls that away."""
    mean = points.mean(axis=0, dtype=np.float64)
    farthest = gamma * float(row_norms_squared(points - mean).max())
    return mean if farthest * np.finfo(np.float64).eps <= KERNEL_ROUNDING else np.median(points, axis=0)


def _symmetric_rbf(
    X: NDArray, gamma: float, until: float = math.inf, block_entries: int = 2**16, blocks_of_a_thread: int = 16
) -> NDArray[np.float64]:
    """Return ``exp(-gamma |x_i - x_j|^2)`` of all rows; blocks below the diagonal are copied from above it."""
    n = len(X)
    centred = (X - central_point(X, gamma)) * np.sqrt(2.0 * gamma)
    squares = 0.5 * row_norms_squared(centred)
    matrix = np.empty((n, n))

    def fill(some: slice) -> None:
        for first, last in blocks[some]:
            if time.perf_counter() >= until:
                raise OutOfTimeError
            block = centred[first:last] @ centred[first:].T
            block -= squares[first:last, None]
            block -= squares[first:]
            np.minimum(block, 0.0, out=block)
            np.exp(block, out=matrix[first:last, first:])
            matrix[last:, first:last] = matrix[first:last, last:].T

    ends = [0]
    while ends[-1] < n:
        ends.append(min(n, ends[-1] + max(64, block_entries // (n - ends[-1]))))
    blocks = list(pairwise(ends))
    blocks = blocks[::2] + blocks[1::2]  # long and short ones for every thread
    with one_blas_thread():
        over_ranges(fill, len(blocks), blocks_of_a_thread, idle_only=True)
    np.fill_diagonal(matrix, 1.0)
    return matrix


def check_kernel_name(kernel: Any) -> None:
    """Refuse what is neither a function nor the name of a kernel."""
    if not callable(kernel):
        check_choice("kernel", kernel, KERNELS)


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
    check_kernel_name(kernel)
    check_real("degree", degree, at_least=0.0, at_most=LARGEST_DEGREE)
    check_real("coef0", coef0, at_least=-LARGEST_ENTRY, at_most=LARGEST_ENTRY)
    if isinstance(gamma, str) and gamma == "auto":
        number = 1.0 / n_features
    elif isinstance(gamma, str) and gamma == "scale":
        spread = variance() if kernel in _KERNEL_PARAMETERS else 1.0
        if 0.0 < spread < 1.0 / (n_features * LARGEST_GAMMA):
            raise ValueError(
                f"gamma='scale' cannot be used: the variance of the entries of X is {spread:.3g}, and one over it "
                f"above {LARGEST_GAMMA:g}; scale the features."
            )
        number = 1.0 / (n_features * spread) if spread > 0 else 1.0
    elif isinstance(gamma, str):
        raise ValueError(f"gamma must be 'scale', 'auto' or a positive number, got {gamma!r}.")
    else:
        number = check_real("gamma", gamma, at_least=SMALLEST_GAMMA, at_most=LARGEST_GAMMA)
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


def is_mostly_full(X: Any) -> bool:
    """Tell whether sparse rows take no less memory than dense ones."""
    return sparse.issparse(X) and X.nnz >= MOSTLY_FULL * X.shape[0] * X.shape[1]


def row_norms_squared(X: Any) -> NDArray[np.float64]:
    """Return the squared Euclidean norm of every row."""
    if sparse.issparse(X):
        rows = canonical_rows(X)
        squares = np.square(rows.data, dtype=np.float64)
        return sparse.csr_array((squares, rows.indices, rows.indptr), shape=rows.shape) @ np.ones(rows.shape[1])
    return np.einsum("ij,ij->i", X, X, dtype=np.float64)


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
