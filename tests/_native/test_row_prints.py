"""The prints of rows against arithmetic with Python's integers."""

import numpy as np
import pytest
from scipy import sparse

from polymargin._native.row_prints import add_prints, add_prints_of_compressed, compressed_rows_agree


def print_of(row, factors):
    total = 0
    for value, factor in zip(row.tolist(), factors.tolist(), strict=True):
        bits = int(np.float64(value if value else 0.0).view(np.uint64))
        total += (bits ^ bits >> 32) * factor
    return total % 2**64


@pytest.mark.parametrize("values", [np.float32, np.float64])
@pytest.mark.parametrize("indices", [np.int32, np.int64])
@pytest.mark.parametrize("p", [0, 1, 7, 30])
def test_dense_and_compressed_rows_have_the_prints_of_their_values(values, indices, p):
    rng = np.random.default_rng(p)
    X = np.where(rng.random((20, p)) < 0.5, rng.normal(size=(20, p)), -0.0).astype(values)
    factors, before = rng.integers(0, 2**64, (2, max(p, 20)), dtype=np.uint64)
    factors, before = factors[:p], before[:20]
    expected = [(print_of(row, factors) + start) % 2**64 for row, start in zip(X, before.tolist(), strict=True)]
    prints, of_compressed = before.copy(), before.copy()
    add_prints(X, factors, prints)
    rows = sparse.csr_array(X)
    arrays = rows.data, rows.indices.astype(indices), rows.indptr.astype(indices)
    add_prints_of_compressed(*arrays, factors, of_compressed)
    assert prints.tolist() == of_compressed.tolist() == expected


@pytest.mark.parametrize("values", [np.float32, np.float64])
@pytest.mark.parametrize("indices", [np.int32, np.int64])
@pytest.mark.parametrize("seed", range(20))
def test_compressed_rows_agree_if_they_store_the_same(values, indices, seed):
    rng = np.random.default_rng(seed)
    X = (rng.integers(0, 2, (3, 4)) * rng.normal(size=(3, 4))).astype(values)[rng.integers(0, 3, 12)]
    if seed % 2:
        X[rng.integers(0, 12), rng.integers(0, 4)] += 1.0
    rows = sparse.csr_array(X)
    arrays = rows.data, rows.indices.astype(indices), rows.indptr.astype(indices)
    first = rng.integers(0, 12, 4)
    same = np.array([rng.choice(np.flatnonzero((X[at] == X).all(axis=1))) for at in first])
    for second in (same, rng.integers(0, 12, 4), first[:0]):
        expected = np.array_equal(X[first[: len(second)]], X[second])
        assert compressed_rows_agree(*arrays, first[: len(second)], second) == expected
