"""Which rows are equal, dense or sparse, zeros being equal whatever their sign."""

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from polymargin._native.row_prints import add_prints, add_prints_of_compressed, compressed_rows_agree


def ranked_rows(labels: NDArray[np.intp], X: Any, *others: NDArray) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    """Return the first of every set of equal rows, in an order of their own, and the place of every row in it.

    Rows are equal if their labels and their rows of all the tables are. They are ordered by their labels, then by
    the prints of their rows of `X`, integers that belong to their values, the same for dense and for sparse rows;
    the few that agree there are ordered by their values themselves, those in the other tables included.
    """
    prints = _prints(labels, X)
    order = np.argsort(prints)
    is_first = _is_other(prints[order])
    if not is_first.all():
        is_alike = ~is_first
        is_alike[:-1] |= is_alike[1:]
        alike = np.sort(order[is_alike])
        alike = alike[np.argsort(prints[alike], kind="stable")]
        later = np.flatnonzero(~is_first[is_alike])
        if not all(_agree(table, alike[later - 1], alike[later]) for table in (X, *others)):
            alike = np.sort(alike)
            ranks = _ranks(alike, (X, *others))
            by = np.lexsort((ranks, prints[alike]))
            alike = alike[by]
            is_first[is_alike] = _is_other(prints[alike]) | _is_other(ranks[by])
        order[is_alike] = alike
    place = np.empty(len(order), dtype=np.intp)
    place[order] = np.cumsum(is_first) - 1
    return order[is_first], place


def _prints(labels: NDArray[np.intp], X: Any) -> NDArray[np.uint64]:
    """Return an integer for every row: its label on top of what its entries make."""
    factors = np.random.default_rng(1).integers(0, 2**64, X.shape[1], dtype=np.uint64) | np.uint64(1)
    prints = np.zeros(len(labels), dtype=np.uint64)
    if sparse.issparse(X):
        rows = canonical_rows(X)
        add_prints_of_compressed(rows.data, rows.indices, rows.indptr, factors, prints)
    else:
        add_prints(np.ascontiguousarray(X), factors, prints)
    bits = np.uint64(int(labels.max(initial=0)).bit_length())
    # the low bits of a product depend on the low bits of its factors alone
    return (labels.astype(np.uint64) << (np.uint64(64) - bits)) | (prints >> bits) if bits else prints


def _is_other(values: NDArray) -> NDArray[np.bool_]:
    """Tell which of some values, in their order, are not the one before them."""
    return np.concatenate([[True], values[1:] != values[:-1]])


def _agree(table: Any, first: NDArray[np.intp], second: NDArray[np.intp]) -> bool:
    """Tell whether some rows are those at their places in other ones, if that is seen at once.

    Sparse rows that differ in nothing but zeros that are stored are left to who looks closer.
    """
    if not sparse.issparse(table):
        return bool((table[first] == table[second]).all())
    rows = canonical_rows(table)
    return bool(compressed_rows_agree(rows.data, rows.indices, rows.indptr, first, second))


def _ranks(rows: NDArray[np.intp], tables: tuple) -> NDArray[np.intp]:
    """Return a number for each of some rows, which equal ones alone have in common."""
    keys = list(zip(*(row_keys(table[rows]) for table in tables), strict=True))
    position = {key: at for at, key in enumerate(sorted(set(keys)))}
    return np.array([position[key] for key in keys], dtype=np.intp)


def canonical_rows(X: Any) -> Any:
    """Return sparse rows as compressed ones that name every column once, in order."""
    rows = X if X.format == "csr" else sparse.csr_array(X)  # which know it of themselves from then on
    if not rows.has_canonical_format:
        rows = rows.copy()
        rows.sum_duplicates()
    return rows


def rows_at(X: Any, places: NDArray[np.intp]) -> Any:
    """Return some rows; of those that were found to name every column once it need not be found again."""
    rows = X[places]
    if sparse.issparse(X) and X.format == "csr" and X.has_canonical_format:
        rows.has_canonical_format = True
    return rows


def row_keys(X: Any) -> list[bytes]:
    """Return for every row bytes that are the same for equal rows, zeros being equal whatever their sign."""
    if not sparse.issparse(X):
        return [row.tobytes() for row in np.ascontiguousarray(X + 0.0, dtype=np.float64)]
    X = canonical_rows(X).astype(np.float64)
    X.eliminate_zeros()
    columns, values = X.indices.tobytes(), X.data.tobytes()
    in_columns, in_values = (X.indptr.astype(np.int64) * part.itemsize for part in (X.indices, X.data))
    spans = zip(
        in_columns[:-1].tolist(),
        in_columns[1:].tolist(),
        in_values[:-1].tolist(),
        in_values[1:].tolist(),
        strict=True,
    )
    return [columns[a:b] + values[c:d] for a, b, c, d in spans]


def distinct_rows(X: Any) -> NDArray[np.intp]:
    """Return the positions of the first of every set of equal rows, in ascending order.

    A basis of kernel functions is a set of points: given twice, a point must not count twice.
    """
    firsts = {key: row for row, key in reversed(list(enumerate(row_keys(X))))}
    return np.sort(np.fromiter(firsts.values(), dtype=np.intp))
