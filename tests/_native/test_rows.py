"""Products with rows read in place, and gathered blocks, against NumPy."""

import numpy as np
import pytest

from polymargin._native.rows import add_rows, gather


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize(("n", "m", "k"), [(1, 1, 2), (7, 5, 3), (1300, 9, 2), (600, 4, 5), (10, 0, 2)])
def test_agrees_with_numpy(dtype, n, m, k):
    rng = np.random.default_rng(n)
    matrix = rng.normal(size=(n, n)).astype(dtype)
    rows = rng.integers(0, n, m)
    factors, out = rng.normal(size=(m, k)), rng.normal(size=(k, n))
    expected = out + factors.T @ matrix[rows].astype(np.float64)
    add_rows(matrix, rows, factors, out)
    np.testing.assert_allclose(out, expected, atol=1e-12)
    block = np.empty((m, m))
    gather(matrix, rows, rows, block)
    np.testing.assert_array_equal(block, matrix[np.ix_(rows, rows)])
