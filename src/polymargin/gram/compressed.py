"""Products of rows with tables of a few columns, in double precision; of compressed rows by compiled loops."""

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from polymargin._native.sparse_rows import add_product, add_squares, add_transposed_product

_COMPILED = (np.float64, np.float32)
"""Kinds of entries that the compiled loops take."""

_GROUP = 4
"""Numbers of a register: tables are as wide as whole ones."""


def rows_times(X: Any, W: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return ``X @ W`` for rows X, dense or sparse, and W of a few columns.

    Examples
    --------
    >>> rows_times(sparse.csr_array([[0.0, 2.0], [1.0, 0.0]]), np.array([[1.0, 2.0], [3.0, 4.0]]))
    array([[6., 8.],
           [1., 2.]])
    """
    if not _is_compiled(X, W):
        return np.asarray(X @ W, dtype=np.float64)
    out = np.zeros((X.shape[0], padded_width(W.shape[1])))
    if out.size and X.nnz:
        add_product(*compressed_parts(X), padded(W), out)
    return np.ascontiguousarray(out[:, : W.shape[1]])


def transposed_times(X: Any, V: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return ``X.T @ V`` for rows X, dense or sparse, and V of a few columns.

    Examples
    --------
    >>> transposed_times(sparse.csr_array([[0.0, 2.0], [1.0, 0.0]]), np.array([[1.0, 2.0], [3.0, 4.0]]))
    array([[3., 4.],
           [2., 4.]])
    """
    if not _is_compiled(X, V):
        return np.asarray(X.T @ V, dtype=np.float64)
    width = padded_width(V.shape[1])
    out = np.zeros((X.shape[1], width))
    if out.size and X.nnz:
        add_transposed_product(*compressed_parts(X), V, out, np.zeros(width))
    return np.ascontiguousarray(out[:, : V.shape[1]])


def compressed_squares(X: Any) -> NDArray[np.float64]:
    """Return the squared lengths of compressed rows that name every column once."""
    values, _, starts = compressed_parts(X if X.dtype in _COMPILED else X.astype(np.float64))
    squares = np.zeros(X.shape[0])
    add_squares(values, starts, squares)
    return squares


def compressed_parts(X: Any) -> tuple[NDArray, NDArray, NDArray]:
    """Return entries, columns and starts of compressed rows, integers of both of one kind."""
    kind = np.int64 if X.indices.dtype == np.int64 else np.int32
    return X.data, X.indices.astype(kind, copy=False), X.indptr.astype(kind, copy=False)


def padded(V: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return V with columns of zeros behind its own up to whole registers; itself where none are missing."""
    k = V.shape[1]
    if k == padded_width(k):
        return np.ascontiguousarray(V)
    wider = np.zeros((len(V), padded_width(k)))
    wider[:, :k] = V
    return wider


def padded_width(k: int) -> int:
    """Return the columns of whole registers that k columns take."""
    return _GROUP * -(-k // _GROUP)


def _is_compiled(X: Any, V: NDArray) -> bool:
    """Tell whether the compiled loops take a product: a single column is another matter."""
    return (
        sparse.issparse(X)
        and X.format == "csr"
        and X.dtype in _COMPILED
        and V.ndim == 2
        and V.shape[1] > 1
        and V.dtype == np.float64
    )
