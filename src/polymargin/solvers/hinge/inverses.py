"""Inverses of positive definite matrices, by which a few columns are multiplied again and again."""

from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.linalg
from numpy.typing import NDArray

from polymargin._native.skinny import available, pack, register_width
from polymargin._native.splitting import sweep
from polymargin.gram import blocks_of, multiply_packed, squares_of, wide_product
from polymargin.solvers.contract import Progress
from polymargin.threads import AbandonedError, eigh

Array = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class InverseSettings:
    """How inverses are made.

    Attributes
    ----------
    block_operations, block_widths : operations of one stretch of the factorisation, a small part of a second, and
        the least and largest width of its block: the inverses on the diagonal of wide ones are work of their own.
    spare : part of a larger matrix that others may join it by where it lies.
    no_square : eigenvalue, relative to the largest, below which features have no part in that direction.
    """

    block_operations: float = 2e10
    block_widths: tuple[int, int] = (64, 96)
    spare: float = 0.15
    no_square: float = 1e-13


DEFAULTS = InverseSettings()


class Columns:
    """Right-hand sides (n, k), laid out as compiled products take them, and room for the answers.

    Attributes
    ----------
    panel : columns that lie together.
    right : the panels, one after the other.
    answer : (n, k) and columns beyond them that fill a register.
    """

    def __init__(self, n: int, k: int, dtype: Any):
        lanes = register_width(np.dtype(dtype).itemsize) if available() else 1
        width = lanes * -(-k // lanes)
        self.panel = 2 * lanes if available() else max(width, 1)
        self.right, self.answer = np.zeros(n * width, dtype=dtype), np.zeros((n, width), dtype=dtype)

    def take(self, V: NDArray) -> None:
        """Copy V (n, k) to the right-hand sides."""
        V = V.astype(self.right.dtype, copy=False)
        if available():
            pack(V, self.right)
        else:
            self.right.reshape(self.answer.shape)[:] = V


class Inverse:
    """A positive definite matrix, which is used up, by whose inverse columns are multiplied.

    It is held as its Cholesky factor: below the diagonal, its transpose above, the blocks on the diagonal
    inverted. The inverse itself takes three times the work, and is applied hardly sooner. Where `begun`, the
    factor of the first rows and columns of the matrix, stands in them already, only the rows behind are to do.
    """

    def __init__(self, matrix: NDArray, tuning: InverseSettings = DEFAULTS, begun: "Inverse | None" = None):
        self.matrix, self.done = matrix, 0
        self.blocks = _blocks(len(matrix), tuning.block_operations, tuning.block_widths)
        if begun is not None:
            self.blocks, self.done = blocks_of(len(matrix), begun.blocks[0].stop), begun.whole_blocks

    @property
    def whole_blocks(self) -> int:
        """Rows in whole blocks of the factor, which are its own whatever rows come behind them."""
        width = self.blocks[0].stop
        return len(self.matrix) // width * width

    def prepare(self, progress: Progress) -> bool:
        """Factorise the matrix; False if there is no time for it."""
        matrix, blocks = self.matrix, self.blocks
        for p in blocks:
            if progress.out_of_time():
                return False
            ahead = slice(max(p.start, self.done), None)
            matrix[ahead, p] -= wide_product(matrix[ahead, : p.start], matrix[p, : p.start].T)
            if p.start >= self.done:
                matrix[p, p] = _inverse_factor(matrix[p, p])
            below = slice(max(p.stop, self.done), None)
            matrix[below, p] = wide_product(matrix[below, p], matrix[p, p].T)
            matrix[p, below] = matrix[below, p].T
        self.transposed = np.zeros((len(matrix), blocks[0].stop), dtype=matrix.dtype)
        for p in blocks:
            self.transposed[p, : p.stop - p.start] = matrix[p, p].T
        return True

    def solved(self, right: Array) -> Array:
        """Return the inverse times columns, to the precision of the matrix."""
        n, k = right.shape
        columns = Columns(n, k, self.matrix.dtype)
        columns.take(right)
        self.apply(columns)
        return columns.answer[:, :k].astype(np.float64)

    def apply(self, columns: Columns) -> None:
        """Answer right-hand sides, which may be spent."""
        if available():
            sweep(self.matrix, self.transposed, columns.right, columns.answer)
        else:
            columns.answer[:] = self._by_blas(columns.right.reshape(columns.answer.shape))

    def _by_blas(self, V: NDArray) -> NDArray:
        matrix, X = self.matrix, V.copy()
        for p in self.blocks:
            X[p] = matrix[p, p] @ (X[p] - matrix[p, : p.start] @ X[: p.start])
        for p in reversed(self.blocks):
            X[p] = matrix[p, p].T @ (X[p] - matrix[p, p.stop :] @ X[p.stop :])
        return X


class Room:
    """Memory in single precision for one square matrix after the other: only its first use takes the system time.

    The rows of a matrix are some of the room apart, so that others may `grow` it where it lies.
    """

    def __init__(self, most: int, tuning: InverseSettings = DEFAULTS):
        self.numbers, self.most, self.tuning = np.empty(most * most, dtype=np.float32), most, tuning
        self.apart = 0

    def square(self, size: int) -> NDArray[np.float32]:
        """Return room for a matrix; what was in it before is none any more."""
        self.apart = min(size + int(self.tuning.spare * size), self.most)
        return self._rows(size)

    def grown(self, matrix: NDArray[np.float32], size: int) -> NDArray[np.float32]:
        """Return room for a larger matrix that begins with this one, the last that had room here."""
        if size <= self.apart:
            return self._rows(size)
        first = matrix.copy()
        larger = self.square(size)
        larger[: len(first), : len(first)] = first
        return larger

    def _rows(self, size: int) -> NDArray[np.float32]:
        return self.numbers[: size * self.apart].reshape(size, self.apart)[:, :size]


class FeatureInverse:
    """The inverse of ``X X' + rho I`` for features X (n, p), fewer than rows; rho may change.

    With the eigenvectors Q and eigenvalues of ``X'X`` and ``Y = X Q`` it is ``(I - Y diag(1 / (eigenvalues + rho))
    Y') / rho``. Steps go by Y in single precision. Where they add up, what they leave in the directions of the
    largest eigenvalues is the rounding error of all others: `solved` goes by X, in double precision.
    """

    def __init__(self, features: Any, rho: float, tuning: InverseSettings = DEFAULTS):
        self.features, self.rho, self.tuning = features, rho, tuning

    def prepare(self, progress: Progress) -> bool:
        """Find the eigenvectors; False if there is no time for it."""
        try:
            self.values, self.vectors, self.rows = rotated(self.features, progress, self.tuning)
        except AbandonedError:
            return False
        self.transposed = np.ascontiguousarray(self.rows.T)
        return not progress.out_of_time()

    def solved(self, right: Array) -> Array:
        """Return the inverse times columns, in double precision."""
        scale = (1.0 / (self.values + self.rho))[:, None]
        within = self.vectors @ (scale * (self.vectors.T @ (self.features.T @ right)))
        return np.asarray(right - self.features @ within, dtype=np.float64) / self.rho

    def apply(self, columns: "Columns") -> None:
        """Answer right-hand sides."""
        n, width = columns.answer.shape
        scale = (1.0 / (self.values + self.rho)).astype(np.float32)[:, None]
        answer, right = columns.answer, columns.right
        if available():
            within = Columns(len(scale), width, np.float32)
            multiply_packed(self.transposed, right, within.answer)
            within.take(scale * within.answer)
            multiply_packed(self.rows, within.right, answer)
        else:
            answer[:] = self.rows @ (scale * (self.transposed @ right.reshape(n, width)))
        for first in range(0, width, columns.panel):
            part = slice(first, min(first + columns.panel, width))
            panel = right[part.start * n : part.stop * n].reshape(n, -1)
            np.subtract(panel, answer[:, part], out=answer[:, part])
        answer /= np.float32(self.rho)


def rotated(
    features: Any, progress: Progress, tuning: InverseSettings
) -> tuple[Array, Array, NDArray[np.float32]]:
    """Return the eigenvalues of ``X'X`` for features X, its eigenvectors Q, and X Q in single precision.

    Directions in which the features have no part are left out.

    Raises
    ------
    AbandonedError
        There was no time for it.
    """
    values, vectors = eigh(squares_of(features.astype(np.float64, copy=False)), progress.out_of_time)
    kept = values > tuning.no_square * max(float(values[-1]), 0.0)
    vectors = np.ascontiguousarray(vectors[:, kept])
    return values[kept], vectors, np.ascontiguousarray(wide_product(features, vectors), dtype=np.float32)


def _inverse_factor(matrix: NDArray) -> NDArray:
    """Return the inverse of the Cholesky factor of a matrix of which the lower triangle is given."""
    potrf, trtri = scipy.linalg.get_lapack_funcs(("potrf", "trtri"), (matrix,))
    # our lower triangle is LAPACK's upper one
    factor, failed = potrf(matrix.T, lower=0, clean=0)
    if failed:
        raise scipy.linalg.LinAlgError("the matrix is not positive definite")
    return np.tril(trtri(factor, lower=0)[0].T)


def _blocks(n: int, operations: float, widths: tuple[int, int]) -> list[slice]:
    return blocks_of(n, int(np.clip(operations / n**2, *widths)))
