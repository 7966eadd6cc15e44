"""The loops of a splitting's step against slow twins, whatever the shape and the precision."""

import numpy as np
import pytest

from polymargin._native.skinny import available
from polymargin._native.splitting import reflect, relax
from polymargin.solvers.contract import Progress, Settings
from polymargin.solvers.hinge import inverses
from polymargin.solvers.hinge.inverses import Columns, Inverse, InverseSettings

needs_avx2 = pytest.mark.skipif(not available(), reason="the processor has no AVX2")
SHAPES = [(1, 2), (7, 3), (50, 9), (61, 10), (40, 17), (33, 26), (20, 41)]


def unpacked(columns, k):
    """Return the right-hand sides (n, k), entry by entry."""
    n, width = columns.answer.shape
    V = np.empty((n, k))
    for i in range(n):
        for c in range(k):
            first = c // columns.panel * columns.panel
            V[i, c] = columns.right[first * n + i * min(columns.panel, width - first) + c - first]
    return V


def state(n, k):
    rng = np.random.default_rng(n + k)
    upper = rng.uniform(0.0, 1.0, (n, k)) * (rng.random((n, k)) < 0.8)
    return rng, rng.normal(size=(n, k)), upper, np.clip


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize(("n", "k"), SHAPES)
def test_reflection(n, k, dtype):
    rng, t, upper, clip = state(n, k)
    before, mean, columns = rng.normal(size=(n, k)), np.empty(n), Columns(n, k - 1, dtype)
    v = before.copy()
    reflect(t, upper, v, mean, columns.right, columns.panel)
    reflected = 2.0 * clip(t, 0.0, upper) - t
    np.testing.assert_allclose(mean, reflected.mean(axis=1), atol=1e-12)
    np.testing.assert_allclose(v, reflected - reflected.mean(axis=1, keepdims=True), atol=1e-12)
    np.testing.assert_allclose(unpacked(columns, k - 1), (v - before)[:, :-1], atol=10 * np.finfo(dtype).eps)


@pytest.mark.parametrize("fit_intercept", [True, False])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize(("n", "k"), SHAPES)
def test_relaxation(n, k, dtype, fit_intercept):
    rng, t, upper, clip = state(n, k)
    x, mean, of_ones = rng.normal(size=(n, k)), rng.normal(size=n), rng.uniform(1.0, 2.0, n)
    answer = rng.normal(size=(n, k + 3)).astype(dtype)
    change = answer[:, : k - 1].astype(np.float64)
    if fit_intercept:
        change -= np.outer(of_ones, change.sum(axis=0) / of_ones.sum())
    change = 0.3 * np.column_stack([change, -change.sum(axis=1)])
    expected_x = x + change
    expected_t = t + 1.9 * (expected_x + mean[:, None] + 0.7 - clip(t, 0.0, upper))
    relax(t, x, upper, mean, answer, of_ones if fit_intercept else np.empty(0), 0.3, 0.7, 1.9)
    np.testing.assert_allclose(x, expected_x, atol=1e-12)
    np.testing.assert_allclose(t, expected_t, atol=1e-12)


@pytest.mark.parametrize("compiled", [pytest.param(True, marks=needs_avx2), False])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("n", [1, 63, 64, 65, 200])
@pytest.mark.parametrize("k", [1, 7, 8, 9, 17, 40])
def test_solutions_by_blocks(n, k, dtype, compiled, monkeypatch):
    monkeypatch.setattr(inverses, "available", lambda: compiled)
    rng = np.random.default_rng(n + k)
    A = rng.normal(size=(n, n + 20))
    matrix, V = A @ A.T / n + 0.5 * np.eye(n), rng.normal(size=(n, k))
    inverse = Inverse(matrix.astype(dtype), InverseSettings(block_operations=0.0))
    assert inverse.prepare(Progress(Settings()))
    np.testing.assert_allclose(inverse.solved(V), np.linalg.solve(matrix, V), atol=1e3 * np.finfo(dtype).eps)
