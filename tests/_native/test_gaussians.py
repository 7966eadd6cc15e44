"""Compiled exponentials against NumPy's: a few units in the last place, from one down to nothing."""

import numpy as np
import pytest

from polymargin._native.gaussians import available
from polymargin.gram import kernels


@pytest.mark.skipif(not available(), reason="the processor has no AVX2")
@pytest.mark.parametrize("m", [1, 2, 3, 4, 5, 8, 1001])
def test_are_exponentials_to_the_last_places(m):
    rng = np.random.default_rng(m)
    x = -np.exp(rng.uniform(-40.0, np.log(707.0), (50, m)))
    values = kernels.gaussians_of(x.copy(), np.zeros(50), np.zeros(m))
    np.testing.assert_allclose(values, np.exp(x), rtol=4 * np.finfo(np.float64).eps)


def test_ends():
    x = np.array([[0.0, -0.0, 1e-20, 3.0, -708.5, -745.0, -1e308]])
    values = kernels.gaussians_of(x.copy(), np.zeros(1), np.zeros(7))
    np.testing.assert_array_equal(values[0, :4], 1.0)
    assert (values[0, 4:] <= np.exp(-708.0)).all()
    assert values[0, -1] == 0.0


@pytest.mark.parametrize(("n", "p"), [(1, 1), (3, 2), (130, 7)])
def test_agree_with_the_plain_formula(monkeypatch, n, p):
    rng = np.random.default_rng(n)
    X = rng.normal(size=(n, p))
    products, squares = X @ X.T, 0.5 * np.square(X).sum(axis=1)
    fast = kernels.gaussians_of(products.copy(), squares, squares)
    monkeypatch.setattr(kernels, "gaussians_are_compiled", lambda: False)
    slow = kernels.gaussians_of(products.copy(), squares, squares)
    np.testing.assert_allclose(fast, slow, rtol=1e-14)
    np.testing.assert_allclose(fast, np.exp(-0.5 * np.square(X[:, None] - X).sum(axis=2)), rtol=1e-12)
