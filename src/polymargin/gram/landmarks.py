"""Landmarks: the points at which reduced kernels are placed, and the features that they give."""

from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.linalg
from numpy.typing import NDArray
from scipy import sparse

from polymargin.checks import check_entries, check_integer, check_real
from polymargin.gram.kernels import Kernel
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
    try:
        points = landmarks if sparse.issparse(landmarks) else np.asarray(landmarks, dtype=dtype)
    except (TypeError, ValueError):
        raise TypeError(
            f"landmarks must be a count, a fraction or points of {n_features} numbers each, got {landmarks!r}."
        ) from None
    if points.ndim != 2 or points.shape[1] != n_features:
        raise ValueError(
            f"landmarks given as points must have shape (m, {n_features}), one column a feature, "
            f"got {points.shape}."
        )
    if not sparse.issparse(points) and not np.isfinite(points).all():
        raise ValueError("landmarks must be finite, got NaN or infinity.")
    if points.shape[0] == 0:
        raise ValueError("landmarks must hold at least one point, got none.")
    check_entries("landmarks", points)
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
        return [row.tobytes() for row in np.ascontiguousarray(X + 0.0, dtype=np.float64)]
    X = sparse.csr_array(X, copy=True, dtype=np.float64)
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
        return self.kernel(X, self.landmarks) @ self.root
