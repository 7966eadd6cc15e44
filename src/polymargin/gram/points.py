"""The kernel at fixed points, prepared: what does not depend on the rows is made once."""

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from scipy.spatial.distance import cdist
from sklearn.utils import gen_batches

from polymargin.gram.kernels import Kernel, ScaledPoints, half_squares, power

BLOCK_BYTES = 2**20
"""Size of the block of kernel values formed at a time: it should stay in the processor's second cache."""

FEWEST_ROWS = 32
"""Rows of a block at least: matrix products of fewer are slow."""

FEWEST_POINTS = 256
"""Points of a block at least, for the same reason."""


class PointKernel:
    """The kernel between rows and fixed points, in double precision.

    Parameters
    ----------
    kernel : the kernel.
    points : points (m, p), dense or sparse, or columns (m,) of a precomputed kernel.
    """

    def __init__(self, kernel: Kernel, points: Any):
        self.kernel = kernel
        self.points = points
        self.n_points = points.shape[0]
        self._dense = None if sparse.issparse(points) else _DENSE.get(str(kernel.name), _general)(kernel, points)

    def __call__(self, X: Any) -> NDArray[np.float64]:
        """Return the kernel (n, m) between the rows of `X` and the points."""
        if self.kernel.name == "precomputed":
            return X[:, self.points]
        if self._dense is None or sparse.issparse(X):
            return self.kernel(X, self.points)
        return self._dense(X)

    def times(self, X: Any, V: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return the kernel times `V` (m, t), block by block."""
        height = max(FEWEST_ROWS, BLOCK_BYTES // (8 * max(1, self.n_points)))
        if X.shape[0] <= height:
            return np.asarray(self(X) @ V)
        products = np.empty((X.shape[0], V.shape[1]))
        for batch in gen_batches(X.shape[0], height):
            products[batch] = self(X[batch]) @ V
        return products


Prepared = Callable[[NDArray], NDArray[np.float64]]


def _linear(kernel: Kernel, points: NDArray) -> Prepared:
    columns = np.asarray(points, dtype=np.float64).T
    return lambda X: X @ columns


def _rbf(kernel: Kernel, points: NDArray) -> Prepared:
    """Return ``exp(-gamma |x - y|^2)``, a part of the points at a time."""
    if len(points) == 0:
        return lambda X: np.zeros((len(X), 0))
    prepared = ScaledPoints(points, kernel.gamma)

    def block(X: NDArray) -> NDArray[np.float64]:
        rows = prepared.scaled(X)
        squares, values = half_squares(rows), np.empty((len(rows), len(points)))
        for part in gen_batches(len(points), max(FEWEST_POINTS, BLOCK_BYTES // (8 * max(1, len(rows))))):
            np.exp(prepared.exponents(rows, squares, part), out=values[:, part])
        return values

    return block


def _laplacian(kernel: Kernel, points: NDArray) -> Prepared:
    own = np.ascontiguousarray(points, dtype=np.float64)

    def block(X: NDArray) -> NDArray[np.float64]:
        values = cdist(X, own, "cityblock")
        values *= -kernel.gamma
        return np.exp(values, out=values)

    return block


def _poly(kernel: Kernel, points: NDArray) -> Prepared:
    columns = kernel.gamma * points.T.astype(np.float64)

    def block(X: NDArray) -> NDArray[np.float64]:
        values = X @ columns
        values += kernel.coef0
        return power(values, kernel.degree)

    return block


def _sigmoid(kernel: Kernel, points: NDArray) -> Prepared:
    columns = kernel.gamma * points.T.astype(np.float64)

    def block(X: NDArray) -> NDArray[np.float64]:
        values = X @ columns
        values += kernel.coef0
        return np.tanh(values, out=values)

    return block


def _general(kernel: Kernel, points: NDArray) -> Prepared:
    return lambda X: kernel(X, points)


_DENSE: dict[str, Callable[[Kernel, NDArray], Prepared]] = {
    "linear": _linear,
    "rbf": _rbf,
    "laplacian": _laplacian,
    "poly": _poly,
    "sigmoid": _sigmoid,
}
