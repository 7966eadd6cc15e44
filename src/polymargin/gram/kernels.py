"""Kernels, checked and resolved on the training rows."""

import math
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from scipy.spatial.distance import cdist
from sklearn.metrics.pairwise import pairwise_kernels

from polymargin.checks import LARGEST_ENTRY, LARGEST_KERNEL, check_choice, check_entries, check_real
from polymargin.gram.compressed import compressed_squares
from polymargin.gram.equal_rows import canonical_rows
from polymargin.threads import large_products, one_blas_thread, over_ranges

KERNELS = ("linear", "rbf", "poly", "sigmoid", "laplacian", "precomputed")
SEMI_DEFINITE = ("linear", "rbf", "laplacian")
"""Kernels whose matrices are positive semi-definite whatever their parameters."""
_KERNEL_PARAMETERS = {
    "rbf": ("gamma",),
    "laplacian": ("gamma",),
    "poly": ("gamma", "degree", "coef0"),
    "sigmoid": ("gamma", "coef0"),
}

KERNEL_ROUNDING = 1e-10
"""Error that rounding may make in an exponent of the Gaussian kernel."""
MOSTLY_FULL = 2 / 3
"""Part of the entries of sparse rows that are stored, from which on dense rows take no more memory."""
SMALLEST_GAMMA, LARGEST_GAMMA = 1e-65, 1e65
LARGEST_DEGREE = 100.0
LARGEST_REPEATED_POWER = 8
"""Integer degree up to which products are faster than a general power."""


@dataclass(frozen=True, slots=True)
class MatrixSettings:
    """How a kernel matrix is made.

    Attributes
    ----------
    at_once : products of entries, about, that it may take in one call, during which nobody hears Ctrl-C.
    block_entries, fewest_rows : of a block that stays in the cache, which has so many rows at least.
    blocks_of_a_thread : blocks below which a thread is not worth its start.
    """

    at_once: int = 2**30
    block_entries: int = 2**16
    fewest_rows: int = 64
    blocks_of_a_thread: int = 16

    def short_blocks(self, n: int) -> list[slice]:
        """Return blocks of rows that stay in the cache, each with the columns from its first row on."""
        ends = [0]
        while ends[-1] < n:
            ends.append(min(n, ends[-1] + max(self.fewest_rows, self.block_entries // (n - ends[-1]))))
        return [slice(first, last) for first, last in pairwise(ends)]


DEFAULTS = MatrixSettings()


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
                return self.matrix(X)
            if isinstance(Y, np.ndarray):
                points = ScaledPoints(Y, self.gamma)
                rows = points.scaled(X)
                exponents = points.exponents(rows, half_squares(rows), slice(None))
                return np.exp(exponents, out=exponents)
        X, Y = (Z.astype(np.float64) if getattr(Z, "dtype", None) == np.float32 else Z for Z in (X, Y))
        parameters = {key: getattr(self, key) for key in _KERNEL_PARAMETERS.get(self.name, ())}
        if self.name != "poly":
            return pairwise_kernels(X, Y, metric=self.name, **parameters)
        with np.errstate(over="ignore", invalid="ignore"):  # refused in the next line, and said in a sentence
            values = pairwise_kernels(X, Y, metric="linear")
            values *= self.gamma
            values += self.coef0
            values = power(values, self.degree)
        _check_size(values, f"kernel='poly' of degree {self.degree:g}")
        return values

    def matrix(
        self,
        X: Any,
        until: float = math.inf,
        dtype: type[np.floating] = np.float64,
        tuning: MatrixSettings = DEFAULTS,
    ) -> NDArray:
        """Return the kernel matrix of the rows of `X`, in blocks where it is large, or less than double.

        Raises
        ------
        OutOfTimeError
            ``time.perf_counter()`` has reached `until` before.
        """
        n, p = X.shape
        if self.name == "rbf" and isinstance(X, np.ndarray) and n:
            points = ScaledPoints(X, self.gamma)

            def gaussian(rows: slice, columns: slice) -> NDArray[np.float64]:
                exponents = points.exponents_among(rows, columns)
                return np.exp(exponents, out=exponents)

            matrix = _by_blocks(gaussian, n, dtype, tuning.short_blocks(n), until, tuning.blocks_of_a_thread)
            np.fill_diagonal(matrix, 1.0)
            return matrix
        if dtype == np.float64 and (
            self.name == "precomputed" or callable(self.name) or n * n * p <= tuning.at_once
        ):
            with large_products(n * n):
                return self(X)
        blocks = list(row_ranges(n, n * p, until, tuning.at_once))
        # a user's own function may not be meant for several threads
        blocks_of_a_thread = len(blocks) if callable(self.name) else tuning.blocks_of_a_thread
        return _by_blocks(
            lambda rows, columns: self(X[rows], X[columns]), n, dtype, blocks, until, blocks_of_a_thread
        )

    def _loses_digits(self, X: Any) -> bool:
        """Tell whether distances of sparse rows are mostly rounding, where dense ones take no more memory."""
        if not is_mostly_full(X):
            return False
        return _rounding_shows(self.gamma * row_norms_squared(X).max())

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
    n: int, products_per_row: float, until: float = math.inf, at_once: int = DEFAULTS.at_once
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


class ScaledPoints:
    """Points, prepared for the exponents of the Gaussian kernel: centred, so that little cancels in a distance.

    Attributes
    ----------
    rows : the points (m, p), centred and times the root of twice gamma.
    half_squares : halves of their squared lengths.
    """

    def __init__(self, points: NDArray, gamma: float):
        self._centre, self._scale = _central_point(points, gamma), np.sqrt(2.0 * gamma)
        self.rows = self.scaled(points)
        self.half_squares = half_squares(self.rows)
        self._far_apart = _rounding_shows(self.half_squares.max())

    def scaled(self, X: NDArray) -> NDArray[np.float64]:
        """Return the rows of `X` in the coordinates of the points."""
        return (X - self._centre) * self._scale

    def exponents(
        self, rows: NDArray[np.float64], squares: NDArray[np.float64], part: slice
    ) -> NDArray[np.float64]:
        """Return ``-gamma |x - y|^2`` of scaled rows, given halves of their squares, and a part of the points.

        Where points are so far apart that squares less products would be rounding, the differences are squared.
        """
        if self._far_apart:
            return -0.5 * cdist(rows, self.rows[part], "sqeuclidean")
        exponents = rows @ self.rows[part].T
        exponents -= squares[:, None]
        exponents -= self.half_squares[part]
        return np.minimum(exponents, 0.0, out=exponents)

    @cached_property
    def _beside_squares(self) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """The rows with their squares and ones beside them, and, as columns, with ones and squares."""
        ones, squares = np.ones((len(self.rows), 1)), -self.half_squares[:, None]
        columns = np.hstack([self.rows, ones, squares]).T
        return np.hstack([self.rows, squares, ones]), np.ascontiguousarray(columns)

    def exponents_among(self, rows: slice, columns: slice) -> NDArray[np.float64]:
        """Return the same between some points and others by one product: squares are columns beside the rows."""
        if self._far_apart:
            return self.exponents(self.rows[rows], self.half_squares[rows], columns)
        left, right = self._beside_squares
        exponents = left[rows] @ right[:, columns]
        return np.minimum(exponents, 0.0, out=exponents)


def power(values: NDArray[np.float64], degree: float) -> NDArray[np.float64]:
    """Return powers of values, which are used up: a few products take a part of the time of a general power."""
    if degree != int(degree) or not 1 <= degree <= LARGEST_REPEATED_POWER:
        return np.power(values, degree, out=values)
    result = values.copy() if degree > 1 else values
    for _ in range(int(degree) - 1):
        result *= values
    return result


def half_squares(rows: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return halves of the squared lengths of the rows."""
    return 0.5 * row_norms_squared(rows)


def _rounding_shows(exponent: float) -> bool:
    """Tell whether rounding of such an exponent of the Gaussian kernel can be seen."""
    return bool(exponent * np.finfo(np.float64).eps > KERNEL_ROUNDING)


def _central_point(points: NDArray, gamma: float) -> NDArray[np.float64]:
    """Return a point near which distances keep their digits: the mean, or the median if a row pulls that away."""
    mean = points.mean(axis=0, dtype=np.float64)
    farthest = gamma * float(row_norms_squared(points - mean).max())
    return np.median(points, axis=0) if _rounding_shows(farthest) else mean


def _by_blocks(
    block_of: Callable[[slice, slice], NDArray[np.float64]],
    n: int,
    dtype: type[np.floating],
    blocks: list[slice],
    until: float,
    blocks_of_a_thread: int,
) -> NDArray:
    """Return a symmetric matrix of which `block_of` makes rows and columns; those below come from above."""
    matrix = np.empty((n, n), dtype)
    blocks = blocks[::2] + blocks[1::2]  # long and short ones for every thread

    def fill(some: slice) -> None:
        for rows in blocks[some]:
            if time.perf_counter() >= until:
                raise OutOfTimeError
            matrix[rows, rows.start :] = block_of(rows, slice(rows.start, n))
            matrix[rows.stop :, rows] = matrix[rows, rows.stop :].T

    with one_blas_thread():
        over_ranges(fill, len(blocks), blocks_of_a_thread, idle_only=True)
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
        return compressed_squares(canonical_rows(X))
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
