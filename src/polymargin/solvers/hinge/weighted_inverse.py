"""The inverse of a linear kernel matrix plus a diagonal one, by which a few columns are multiplied many times."""

from typing import Any

import numpy as np
import scipy.linalg
from numpy.typing import NDArray

from polymargin._native.skinny import available
from polymargin.gram import multiply_packed, squares_of
from polymargin.solvers.contract import Progress
from polymargin.solvers.hinge.inverses import DEFAULTS, Columns, InverseSettings, rotated
from polymargin.threads import AbandonedError

Array = NDArray[np.float64]


class WeightedInverse:
    """The inverse of ``X X' + D`` for features X (n, p), fewer than rows, and a positive diagonal D.

    With the eigenvectors Q of ``X'X``, ``Y = X Q`` and ``M = (I + Y'D^-1 Y)^-1`` it is ``D^-1 - D^-1 Y M Y'D^-1``.
    D may change. Y is in single precision: each of its columns has digits of its own, so that none loses them to
    another one, and M, which is diagonal where D is a multiple of the identity, is as exact as the condition of D
    allows.
    `solved` goes by X, in double precision.
    """

    def __init__(self, features: Any, tuning: InverseSettings = DEFAULTS):
        self.features, self.tuning = features, tuning

    def prepare(self, progress: Progress) -> bool:
        """Find the eigenvectors; False if there is no time for it."""
        try:
            _, self.vectors, self.rows = rotated(self.features, progress, self.tuning)
        except AbandonedError:
            return False
        self.transposed = np.ascontiguousarray(self.rows.T)
        return not progress.out_of_time()

    def weigh(self, diagonal: Array) -> None:
        """Take a diagonal."""
        self.diagonal = diagonal
        scaled = self.rows / np.sqrt(diagonal).astype(np.float32)[:, None]
        matrix = squares_of(scaled).astype(np.float64)
        matrix[np.diag_indices_from(matrix)] += 1.0
        self.within = scipy.linalg.inv(matrix, overwrite_a=True) if len(matrix) else matrix

    def solved(self, right: Array) -> Array:
        """Return the inverse times columns, all products but the innermost in double precision."""
        right = right / self.diagonal[:, None]
        within = self.vectors @ (self.within @ (self.vectors.T @ (self.features.T @ right)))
        return np.asarray(right - (self.features @ within) / self.diagonal[:, None], dtype=np.float64)

    def apply(self, columns: Columns) -> None:
        """Answer right-hand sides V by ``Y M Y' V``: V less a D-th of it is the inverse times D V."""
        n, width = columns.answer.shape
        if available():
            within = Columns(len(self.within), width, np.float32)
            multiply_packed(self.transposed, columns.right, within.answer)
            within.take(self.within @ within.answer)
            multiply_packed(self.rows, within.right, columns.answer)
        else:
            within_rows = self.transposed @ columns.right.reshape(n, width)
            columns.answer[:] = self.rows @ (self.within @ within_rows).astype(np.float32)
