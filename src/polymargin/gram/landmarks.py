"""Landmarks: the points at which reduced kernels are placed, and the features that they give."""

from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.linalg
from numpy.typing import NDArray
from scipy import sparse

from polymargin.checks import check_entries, check_integer, check_real
from polymargin.gram.kernels import Kernel, row_ranges
from polymargin.gram.points import PointKernel


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

    Counts and fractions are shared among the classes in proportion to their summed weights, at least one for each,
    and drawn from the distinct rows of a class; with `centres` that many centres of each class are found by
    (weighted) k-means instead. A row given twice, or with a weight, is drawn as once, and the order of the rows
    has no effect: they are drawn by random numbers that belong to their values.
    """
    points = given_landmarks(landmarks, X.shape[1], X.dtype)
    if points is not None:
        return points
    totals = np.bincount(labels, weights).astype(np.float64)
    quota = landmark_quota(landmarks, totals, len(labels))
    if centres:
        members = [np.flatnonzero(labels == c) for c in range(len(quota))]
        parts = [
            _centres(X[rows], min(size, len(rows)), None if weights is None else weights[rows], rng)
            for rows, size in zip(members, quota.tolist(), strict=True)
            if size
        ]
        return np.vstack(parts)
    _, rows = lowest_rows(X, labels, quota, RowHash.drawn(rng, X.shape[1]))
    return X[rows]


@dataclass(frozen=True, slots=True)
class RowHash:
    """Random numbers that belong to the values of a row, wherever it stands: equal rows have equal ones.

    Rows are told apart by their values in single precision, so that rows in either precision draw the same.

    Attributes
    ----------
    keys : (p,) one random number a column.
    """

    keys: NDArray[np.uint64]

    @classmethod
    def drawn(cls, rng: np.random.RandomState, n_features: int) -> "RowHash":
        """Draw the numbers of the columns."""
        return cls(rng.randint(0, 2**64, size=n_features, dtype=np.uint64))

    def __call__(self, X: Any) -> NDArray[np.uint64]:
        """Return the numbers (n,) of the rows, dense or sparse; zeros add nothing, so that both give the same."""
        if sparse.issparse(X):
            X = sparse.csr_array(X, copy=True)
            X.sum_duplicates()
            X.data = _single(X.data)
            X.eliminate_zeros()
            entries = _scrambled(_bits(X.data) ^ self.keys[X.indices])
            owners = np.repeat(np.arange(X.shape[0]), np.diff(X.indptr))
            numbers = np.zeros(X.shape[0], dtype=np.uint64)
            np.add.at(numbers, owners, entries)
            return _scrambled(numbers)
        numbers = np.zeros(len(X), dtype=np.uint64)
        for column, key in zip(_single(X).T, self.keys, strict=True):
            numbers += np.where(column != 0, _scrambled(_bits(column) ^ key), np.uint64(0))
        return _scrambled(numbers)


def _single(values: NDArray) -> NDArray[np.float64]:
    return np.asarray(values).astype(np.float32).astype(np.float64)


def _bits(values: NDArray) -> NDArray[np.uint64]:
    return np.ascontiguousarray(values, dtype=np.float64).view(np.uint64)


def _scrambled(numbers: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """Mix the bits of integers: the finaliser of splitmix64 (Steele, Lea & Flood, 2014)."""
    numbers = (numbers ^ (numbers >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    numbers = (numbers ^ (numbers >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return numbers ^ (numbers >> np.uint64(31))


def lowest_rows(
    X: Any, labels: NDArray[np.intp], quota: NDArray[np.intp], hashed: RowHash
) -> tuple[list[NDArray[np.uint64]], NDArray[np.intp]]:
    """Return, class by class, the distinct rows of lowest random number, and those numbers for every class."""
    numbers = hashed(X)
    lowest, rows = [], []
    for c, size in enumerate(quota):
        members = np.flatnonzero(labels == c)
        distinct, first = np.unique(numbers[members], return_index=True)
        lowest.append(distinct[:size])
        rows.append(members[first[:size]])
    return lowest, np.concatenate(rows)


def given_landmarks(landmarks: Any, n_features: int, dtype: Any) -> Any:
    """Return landmarks that are given as points, checked; None where they are to be drawn."""
    if not sparse.issparse(landmarks) and (isinstance(landmarks, str) or np.ndim(landmarks) == 0):
        return None
    try:
        points = landmarks if sparse.issparse(landmarks) else np.asarray(landmarks, dtype=dtype)
    except (TypeError, ValueError):
        raise TypeError(
            f"landmarks must be a count, a fraction or points of {n_features} numbers each, got {landmarks!r}."
        ) from None
    if points.ndim != 2 or points.shape[1] != n_features:
        raise ValueError(
            f"landmarks given as points must have shape (m, {n_features}), one column per feature, "
            f"got {points.shape}."
        )
    if not sparse.issparse(points) and not np.isfinite(points).all():
        raise ValueError("landmarks must be finite, got NaN or infinity.")
    if points.shape[0] == 0:
        raise ValueError("landmarks must hold at least one point, got none.")
    check_entries("landmarks", points)
    return points


def landmark_quota(landmarks: Any, totals: NDArray[np.float64], n_rows: int) -> NDArray[np.intp]:
    """Return how many landmarks to draw from classes of summed weights `totals`: a count or a fraction in all."""
    if isinstance(landmarks, (float, np.floating)):
        wanted = check_real("landmarks", landmarks, above=0.0, at_most=1.0) * totals
    else:
        count = check_integer("landmarks", landmarks, at_least=1)
        most = max(n_rows, int(totals.sum()))
        if count > most:
            raise ValueError(f"landmarks must be at most the number of samples, {most}, got {count}.")
        wanted = count * totals / totals.sum()
    rounded = np.maximum(1.0, np.floor(wanted + 0.5))
    return np.where(totals > 0, np.minimum(rounded, 2.0**62), 0.0).astype(np.intp)


def _centres(X: Any, n_centres: int, weights: NDArray[np.float64] | None, rng: np.random.RandomState) -> NDArray:
    if n_centres == X.shape[0]:
        return X.toarray() if sparse.issparse(X) else X
    from sklearn.cluster import MiniBatchKMeans  # slow to import, and seldom wanted

    k_means = MiniBatchKMeans(n_centres, n_init=1, random_state=rng, batch_size=max(1024, 3 * n_centres))
    return k_means.fit(X, sample_weight=weights).cluster_centers_


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

    def at_points(self) -> PointKernel:
        """Return the features prepared for many products."""
        return PointKernel(self.kernel, self.landmarks)


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
        (n, p), (m, rank) = X.shape, self.root.shape
        features = np.empty((n, rank))
        for rows in row_ranges(n, m * (p + rank)):
            features[rows] = self.kernel(X[rows], self.landmarks) @ self.root
        return features
