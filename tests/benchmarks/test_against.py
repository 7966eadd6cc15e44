"""The samples that two revisions are compared on."""

import numpy as np
import pytest
from scipy import sparse

against = pytest.importorskip("benchmarks.against", reason="benchmarks need their extra")


@pytest.mark.parametrize("made", [np.asarray, sparse.csr_matrix])
def test_another_order_is_the_same_problem(made):
    rows = np.random.default_rng(0).normal(size=(30, 4))
    sample = against.Sample("random", [], {"X": made(rows), "y": np.arange(30), "C": 2.0})
    other = sample.in_order(3).named
    X, y = other["X"].toarray() if sparse.issparse(other["X"]) else other["X"], other["y"]
    assert not np.array_equal(y, np.arange(30))
    assert other["C"] == 2.0
    assert not np.array_equal(X, rows[y])
    np.testing.assert_array_equal(np.sort(X, axis=1), np.sort(rows[y], axis=1))
    order = [int(np.flatnonzero(rows[y[0]] == value)[0]) for value in X[0]]
    np.testing.assert_array_equal(X, rows[y][:, order])
