"""Products of compressed rows with tables of a few columns, and lengths of rows, against SciPy."""

import numpy as np
import pytest
from scipy import sparse

from polymargin.gram import FeatureGram, row_norms_squared, rows_times, transposed_times
from polymargin.gram.compressed import compressed_parts, padded


def random_rows(seed: int, n: int, p: int, dtype, far: bool) -> sparse.csr_array:
    """Return rows with some empty ones, indices of 32 or of 64 bits."""
    rng = np.random.default_rng(seed)
    X = sparse.random_array((n, p), density=0.3, format="csr", rng=rng, dtype=np.float64).astype(dtype)
    if far:
        X = sparse.csr_array((X.data, X.indices.astype(np.int64), X.indptr.astype(np.int64)), shape=(n, p))
        X.indices, X.indptr = X.indices.astype(np.int64), X.indptr.astype(np.int64)
    return X


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("far", [False, True])
@pytest.mark.parametrize("k", [2, 3, 4, 5, 8, 11, 16, 23, 70])
def test_products_agree_with_those_of_dense_rows(dtype, far, k):
    rng = np.random.default_rng(k)
    X = random_rows(k, 37, 19, dtype, far)
    rows = X.toarray().astype(np.float64)
    W, V = rng.normal(size=(19, k)), rng.normal(size=(37, k))
    V[rng.random(37) < 0.3] = 0.0
    for scores, expected in ((rows_times(X, W), rows @ W), (transposed_times(X, V), rows.T @ V)):
        assert scores.dtype == np.float64
        assert scores.flags.c_contiguous
        np.testing.assert_allclose(scores, expected, atol=1e-13)
    # columns of another table, which lie apart
    np.testing.assert_allclose(rows_times(X, W.T.copy().T), rows @ W, atol=1e-13)
    np.testing.assert_allclose(transposed_times(X, V.T.copy().T), rows.T @ V, atol=1e-13)


@pytest.mark.parametrize("shape", [(0, 3), (3, 0), (1, 1), (4, 5)])
@pytest.mark.parametrize("k", [1, 2, 5])
def test_nothing_to_multiply(shape, k):
    X = sparse.csr_array(shape)
    np.testing.assert_array_equal(rows_times(X, np.ones((shape[1], k))), np.zeros((shape[0], k)))
    np.testing.assert_array_equal(transposed_times(X, np.ones((shape[0], k))), np.zeros((shape[1], k)))
    np.testing.assert_array_equal(row_norms_squared(X), np.zeros(shape[0]))


@pytest.mark.parametrize("form", ["csc", "bsr", "lil"])
def test_other_forms_are_multiplied_as_well(form):
    rng = np.random.default_rng(0)
    X = random_rows(1, 12, 7, np.float64, False)
    W, V = rng.normal(size=(7, 3)), rng.normal(size=(12, 3))
    np.testing.assert_allclose(rows_times(X.asformat(form), W), X @ W, atol=1e-14)
    np.testing.assert_allclose(transposed_times(X.asformat(form), V), X.T @ V, atol=1e-14)


def test_columns_named_twice_are_added():
    X = sparse.csr_array((np.array([1.0, 2.0, 4.0]), np.array([1, 1, 0]), np.array([0, 2, 3])), shape=(2, 2))
    np.testing.assert_array_equal(rows_times(X, np.eye(2)), [[0.0, 3.0], [4.0, 0.0]])
    np.testing.assert_array_equal(transposed_times(X, np.eye(2)), [[0.0, 4.0], [3.0, 0.0]])
    np.testing.assert_array_equal(row_norms_squared(X), [9.0, 16.0])
    assert X.nnz == 3  # the rows given stay as they are


@pytest.mark.parametrize("dtype", [np.float64, np.float32, np.int64])
def test_lengths_of_rows(dtype):
    X = random_rows(3, 20, 9, np.float64, False)
    X.data *= 10.0
    X = X.astype(dtype)
    rows = X.toarray().astype(np.float64)
    np.testing.assert_allclose(row_norms_squared(X), (rows**2).sum(axis=1), rtol=1e-14)
    np.testing.assert_allclose(FeatureGram(X).diagonal(), (rows**2).sum(axis=1), rtol=1e-14)


def test_tables_are_as_wide_as_registers():
    V = np.arange(6.0).reshape(2, 3)
    np.testing.assert_array_equal(padded(V), [[0, 1, 2, 0], [3, 4, 5, 0]])
    wide = np.ones((2, 4))
    assert padded(wide) is wide
    X = random_rows(0, 3, 3, np.float64, False)
    assert [part.dtype for part in compressed_parts(X)[1:]] == [np.int32, np.int32]
