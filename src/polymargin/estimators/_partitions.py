"""Training data in partitions that are never brought together: what estimators know of it, and may ask."""

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from polymargin.blocks import Blocks, joined, total
from polymargin.estimators._base import TrainingSet
from polymargin.gram import (
    Kernel,
    RowHash,
    given_landmarks,
    kernel_for,
    landmark_quota,
    lowest_rows,
    row_norms_squared,
)


@dataclass(frozen=True, slots=True)
class PartitionedSet:
    """Validated training data in blocks, of which only sums are known here.

    It has the part of the interface of `TrainingSet` that sums over rows can serve.

    Attributes
    ----------
    blocks : one `TrainingSet` a partition that has rows; their `rows` are positions within the partition.
    classes : (k,) the class labels, sorted.
    costs : (k, k) misclassification costs.
    counts : (blocks, k) numbers of rows.
    totals : (k,) summed weights of the classes.
    lightest : least weight of a row.
    first_rows : (blocks,) positions of the partitions' first rows in the data that the user gave.
    n_features : number of columns.
    dtype : precision of the rows.
    """

    blocks: Blocks
    classes: NDArray
    costs: NDArray[np.float64]
    counts: NDArray[np.intp]
    totals: NDArray[np.float64]
    lightest: float
    first_rows: NDArray[np.intp]
    n_features: int
    dtype: np.dtype

    @property
    def n_classes(self) -> int:
        """Number of classes."""
        return len(self.classes)

    @property
    def n_rows(self) -> int:
        """Number of rows."""
        return int(self.counts.sum())

    def gathered(self) -> TrainingSet:
        """Bring all rows together: for fewer of them than unknowns, when sums over them would be no smaller."""
        parts = self.blocks.reduce(joined, _alone)
        stack = sparse.vstack if sparse.issparse(parts[0].X) else np.vstack
        return replace(
            parts[0],
            X=stack([part.X for part in parts]),
            labels=np.concatenate([part.labels for part in parts]),
            weights=np.concatenate([part.weights for part in parts]),
            rows=np.concatenate([first + part.rows for first, part in zip(self.first_rows, parts, strict=True)]),
        )

    def restricted(self, classes: Any) -> "PartitionedSet":
        """Return the partitions that have rows of the classes marked in `classes` (k,)."""
        used = np.flatnonzero((self.counts[:, classes] > 0).any(axis=1))
        return replace(
            self,
            blocks=self.blocks.restricted(used.tolist()),
            counts=self.counts[used],
            first_rows=self.first_rows[used],
        )

    def resolve_kernel(self, kernel: Any, gamma: Any, degree: Any, coef0: Any) -> Kernel:
        """Check a kernel specification and resolve gamma on the rows."""
        return kernel_for(kernel, gamma, degree, coef0, self.n_features, self._variance)

    def _variance(self) -> float:
        """Weighted variance over all entries, in two passes."""
        entries = float(self.totals.sum()) * self.n_features
        mean = total(self.blocks, _entry_sum) / entries
        return total(self.blocks, _centred_squares, mean) / entries

    def draw_landmarks(self, landmarks: Any, rng: np.random.RandomState, *, centres: bool = False) -> Any:
        """Return the landmarks asked for: the rows that would be drawn if all were in memory."""
        points = given_landmarks(landmarks, self.n_features, self.dtype)
        if points is not None:
            return points
        if centres:
            raise ValueError(
                "landmark_method must be 'sample' for Dask collections: k-means needs all rows in memory. Find "
                "centres in a sample of the rows and give them as landmarks."
            )
        quota = landmark_quota(landmarks, self.totals, self.n_rows)
        parts = self.blocks.reduce(joined, _lowest_of_block, quota, RowHash.drawn(rng, self.n_features))
        stack = sparse.vstack if sparse.issparse(parts[0][1]) else np.vstack
        numbers = np.concatenate([np.concatenate(numbers) for numbers, _ in parts])
        labels = np.concatenate([np.repeat(np.arange(len(quota)), list(map(len, n))) for n, _ in parts])
        rows = stack([rows for _, rows in parts])
        chosen = []
        for c, size in enumerate(quota):
            members = np.flatnonzero(labels == c)
            chosen.append(members[np.unique(numbers[members], return_index=True)[1][:size]])
        return rows[np.concatenate(chosen)]


def rows_in_memory(data: TrainingSet | PartitionedSet, who: str) -> TrainingSet:
    """Return the rows in memory that `who` needs.

    Raises
    ------
    TypeError
        They are in partitions.
    """
    if isinstance(data, PartitionedSet):
        raise TypeError(f"{who} needs all rows in memory, not in partitions.")
    return data


def _alone(block: TrainingSet) -> list[TrainingSet]:
    return [block]


def _entry_sum(block: TrainingSet) -> float:
    return float(block.weights @ np.asarray(block.X.sum(axis=1, dtype=np.float64)).ravel())


def _centred_squares(block: TrainingSet, mean: float) -> float:
    if sparse.issparse(block.X):
        around_zero = float(block.weights @ row_norms_squared(block.X))
        return around_zero - 2 * mean * _entry_sum(block) + mean**2 * float(block.weights.sum()) * block.n_features
    return float(block.weights @ row_norms_squared(block.X - mean))


def _lowest_of_block(block: TrainingSet, quota: NDArray[np.intp], hashed: RowHash) -> list:
    numbers, rows = lowest_rows(block.X, block.labels, quota, hashed)
    return [(numbers, block.X[rows])]
