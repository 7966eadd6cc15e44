"""Additive statistics of classes: all that the least-squares machines need to know of the data.

The proximal and the shared-structure machines fit the augmented rows ``E = [B, -1]``. Their normal equations are
made of the weighted Gram matrix of every class alone, which adds up over chunks, machines and time.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import reduce
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from polymargin._native.class_grams import add_rows, empty_buckets
from polymargin.checks import LARGEST_ENTRY, is_short
from polymargin.memory import check_memory
from polymargin.threads import over_ranges

ROUNDING = 1e-9
"""Share of a class that rounding may leave of it, or add to it, when rows are removed."""

NARROW = 128
"""Features up to which rows are multiplied out in buckets of their classes; wider ones are left to BLAS."""

BUCKET_BYTES = 3 * 2**13
"""Size of a bucket: it stays in the innermost cache, with room for what is added to."""


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

    def are_moderate(self) -> bool:
        """Tell whether all entries are finite and no larger than the square of the largest entry of rows."""
        largest = LARGEST_ENTRY**2
        return is_short(self.grams, largest) or bool((np.abs(self.grams) <= largest).all())

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
        kind, remedy = (
            ("variables", "use fewer of them, or landmarks")
            if transform is None
            else ("landmarks", "give fewer landmarks")
        )
        check_memory(
            8.0 * n_classes * (n_features + 1) ** 2,
            f"Moments of {n_classes} classes in {n_features} {kind}",
            remedy,
        )
        if sparse.issparse(X) and transform is None:
            grams = np.zeros((n_classes, n_features + 1, n_features + 1))
            for c, rows in _members(labels, n_classes):
                _add_sparse(grams[c], X[rows], None if weights is None else weights[rows])
            return cls(grams)
        height = max(chunk_bytes // (8 * (n_features + 1)), 2 * n_classes * n_features)
        collector = _Buckets if n_features <= NARROW else _SortedRows

        def collect(part: slice) -> NDArray[np.float64]:
            collected = collector(n_classes, n_features)
            for first in range(part.start, part.stop, height):
                chunk = slice(first, min(first + height, part.stop))
                rows = X[chunk] if transform is None else transform(X[chunk])
                roots = None if weights is None else np.sqrt(weights[chunk])
                collected.add(rows, labels[chunk], roots)
            return collected.grams()

        return cls(reduce(np.add, over_ranges(collect, X.shape[0])))

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


class _Buckets:
    """Collects narrow rows: as they come, into buckets of their classes that are multiplied out when full."""

    def __init__(self, n_classes: int, n_features: int):
        self.size = n_features + 1
        width = -4 * (-self.size // 4)  # what a tile of registers covers
        height = max(16, BUCKET_BYTES // (8 * width))
        self.buckets = _aligned_zeros((n_classes, height, width))
        self.filled = np.zeros(n_classes, dtype=np.intp)
        self.sums = _aligned_zeros((n_classes, width, width))

    def add(self, rows: NDArray, labels: NDArray[np.intp], roots: NDArray[np.float64] | None) -> None:
        """Add rows, given the roots of their weights (None for ones)."""
        add_rows(np.ascontiguousarray(rows), labels, roots, self.buckets, self.filled, self.sums)

    def grams(self) -> NDArray[np.float64]:
        """Return the moments (k, p+1, p+1) of all rows."""
        empty_buckets(self.buckets, self.filled, self.sums)
        upper = np.triu(self.sums[:, : self.size, : self.size])
        return upper + np.triu(upper, 1).swapaxes(1, 2)


class _SortedRows:
    """Collects wide rows: sorted by class, chunk by chunk, and multiplied by BLAS."""

    def __init__(self, n_classes: int, n_features: int):
        self.sums = np.zeros((n_classes, n_features + 1, n_features + 1))

    def add(self, rows: NDArray, labels: NDArray[np.intp], roots: NDArray[np.float64] | None) -> None:
        """Add rows, given the roots of their weights (None for ones)."""
        for c, members in _members(labels, len(self.sums)):
            root = np.ones(len(members)) if roots is None else roots[members]
            part = rows[members].astype(np.float64, copy=False)
            scaled = part if roots is None else part * root[:, None]
            self.sums[c, :-1, :-1] += scaled.T @ scaled
            _add_border(self.sums[c], root @ scaled, float(root @ root))

    def grams(self) -> NDArray[np.float64]:
        """Return the moments (k, p+1, p+1) of all rows."""
        return self.sums


def _aligned_zeros(shape: tuple[int, ...]) -> NDArray[np.float64]:
    """Return zeros that begin at a line of the processor's cache, which vectors then never straddle."""
    buffer = np.zeros(int(np.prod(shape)) + 8)
    first = (-buffer.ctypes.data % 64) // 8
    return buffer[first : first + buffer.size - 8].reshape(shape)


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
