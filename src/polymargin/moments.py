"""Additive statistics of classes: all that the least-squares machines need to know of the data.

The proximal and the shared-structure machines fit the augmented rows ``E = [B, -1]``. Their normal equations are
made of the weighted Gram matrix of every class alone, which adds up over chunks, machines and time.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

ROUNDING = 1e-9
"""Share of a class that rounding may leave of it, or add to it, when rows are removed."""


@dataclass(frozen=True, slots=True)
class ClassMoments:
    """Weighted Gram matrices ``E_c' N_c E_c`` of the rows E of every class, augmented by a column of -1.

    Attributes
    ----------
    grams : (k, p+1, p+1); the last row and column hold the negated sums, the corner the summed weights.

    Examples
    --------
    >>> moments = ClassMoments.of(np.array([[1.0], [3.0], [5.0]]), np.array([0, 0, 1]), n_classes=2)
    >>> moments.totals, moments.sums[:, 0]
    (array([2., 1.]), array([4., 5.]))
    """

    grams: NDArray[np.float64]

    @classmethod
    def of(
        cls,
        X: Any,
        labels: NDArray[np.intp],
        weights: NDArray[np.float64] | None = None,
        *,
        n_classes: int,
        transform: Callable[[Any], NDArray] | None = None,
        chunk_bytes: int = 2**23,
    ) -> "ClassMoments":
        """Collect the moments of the rows of `X` in one pass.

        Parameters
        ----------
        X : dense array or CSR matrix (n, q), in single or double precision; sums are in double precision.
        labels : (n,) classes in 0..k-1.
        weights : (n,) non-negative weights; None for ones.
        n_classes : k; classes without a row get zeros.
        transform : maps rows of `X` to dense features B (n, p), chunk by chunk; B is X where None.
        chunk_bytes : memory for a chunk of B. It is raised to the order of the Gram matrices themselves, as
            smaller chunks would cost more in adding up than in multiplying.
        """
        n_features = X.shape[1] if transform is None else transform(X[:1]).shape[1]
        grams = np.zeros((n_classes, n_features + 1, n_features + 1))
        if sparse.issparse(X) and transform is None:
            for c, rows in _members(labels, n_classes):
                _add_sparse(grams[c], X[rows], None if weights is None else weights[rows])
            return cls(grams)
        height = max(chunk_bytes // (8 * (n_features + 1)), 2 * n_classes * n_features)
        # one buffer for all chunks: fresh pages for each would cost as much as the multiplications
        buffer = None if sparse.issparse(X) else np.empty((min(height, X.shape[0]), X.shape[1]), dtype=X.dtype)
        for first in range(0, X.shape[0], height):
            chunk = slice(first, first + height)
            order, ends = _sorted_by_class(labels[chunk], n_classes)
            rows = X[chunk][order] if buffer is None else _take(X[chunk], order, buffer)
            roots = None if weights is None else np.sqrt(weights[chunk][order])
            _add_dense(grams, rows if transform is None else transform(rows), roots, ends)
        return cls(grams)

    @property
    def n_classes(self) -> int:
        """Number of classes k."""
        return self.grams.shape[0]

    @property
    def n_features(self) -> int:
        """Number of features p, without the column of -1."""
        return self.grams.shape[1] - 1

    @property
    def totals(self) -> NDArray[np.float64]:
        """Summed weights (k,) of the classes."""
        return self.grams[:, -1, -1].copy()

    @property
    def sums(self) -> NDArray[np.float64]:
        """Weighted sums ``E_c' N_c e`` (k, p+1) of the augmented rows."""
        return -self.grams[:, :, -1]

    @property
    def total(self) -> NDArray[np.float64]:
        """Gram matrix (p+1, p+1) of all rows."""
        return self.grams.sum(axis=0)

    def __add__(self, other: "ClassMoments") -> "ClassMoments":
        return ClassMoments(self.grams + other.grams)

    def __sub__(self, other: "ClassMoments") -> "ClassMoments":
        """Remove rows; a class of which only rounding is left becomes exactly empty."""
        grams = self.grams - other.grams
        grams[grams[:, -1, -1] <= ROUNDING * self.totals] = 0.0
        return ClassMoments(grams)

    def exceeded_by(self, other: "ClassMoments") -> NDArray[np.intp]:
        """Return the classes in which some feature of `other` has more squares or weight than it has here."""
        mine, others = (np.diagonal(moments.grams, axis1=1, axis2=2) for moments in (self, other))
        return np.flatnonzero((others > mine + ROUNDING * mine.max(axis=1, keepdims=True)).any(axis=1))


def _members(labels: NDArray[np.intp], n_classes: int) -> Iterator[tuple[int, NDArray[np.intp]]]:
    """Yield every class that has rows, with the positions of its rows."""
    order, ends = _sorted_by_class(labels, n_classes)
    first = 0
    for c, end in enumerate(ends):
        if end > first:
            yield c, order[first:end]
        first = end


def _sorted_by_class(labels: NDArray[np.intp], n_classes: int) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    """Return the order that sorts rows by class, and where each class ends in it."""
    narrow = labels.astype(np.min_scalar_type(n_classes), copy=False)  # radix sort is for at most 16 bits
    return np.argsort(narrow, kind="stable"), np.cumsum(np.bincount(labels, minlength=n_classes))


def _take(X: NDArray, order: NDArray[np.intp], buffer: NDArray) -> NDArray:
    """Return ``X[order]`` in `buffer`; with a mode other than "raise" NumPy writes there directly."""
    return np.take(X, order, axis=0, out=buffer[: len(order)], mode="clip")


def _add_dense(
    grams: NDArray[np.float64], rows: NDArray, roots: NDArray[np.float64] | None, ends: NDArray[np.intp]
) -> None:
    """Add the moments of rows that are sorted by class, given the roots of their weights."""
    features = np.asarray(rows, dtype=np.float64)
    first = 0
    for gram, end in zip(grams, ends, strict=True):
        if end > first:
            part = features[first:end]
            root = np.ones(end - first) if roots is None else roots[first:end]
            _add_rows(gram, part if roots is None else part * root[:, None], root)
        first = end


def _add_rows(gram: NDArray[np.float64], scaled: NDArray[np.float64], root: NDArray[np.float64]) -> None:
    """Add the moments of rows that are `scaled` by the roots of their weights."""
    gram[:-1, :-1] += scaled.T @ scaled
    _add_border(gram, root @ scaled, float(root @ root))


def _add_sparse(gram: NDArray[np.float64], X: Any, weights: NDArray[np.float64] | None) -> None:
    """Add the moments of the sparse rows of one class; only the Gram matrix is dense."""
    X = X.astype(np.float64)
    weights = np.ones(X.shape[0]) if weights is None else weights
    gram[:-1, :-1] += (X.T @ sparse.diags_array(weights) @ X).toarray()
    _add_border(gram, X.T @ weights, float(weights.sum()))


def _add_border(gram: NDArray[np.float64], sums: NDArray[np.float64], total: float) -> None:
    """Add what the column of -1 contributes."""
    gram[-1, :-1] -= sums
    gram[:-1, -1] -= sums
    gram[-1, -1] += total
