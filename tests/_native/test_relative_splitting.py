"""The loops of splitting for losses of differences against slow twins, whatever the shape and the precision."""

import numpy as np
import pytest
from scipy.optimize import brentq

from polymargin._native.relative_splitting import project, reflect, relax
from polymargin.problems.hinge.simplices import onto_simplices
from polymargin.solvers.hinge.inverses import Columns
from tests._native.test_splitting import unpacked

SHAPES = [(1, 2), (7, 3), (50, 9), (61, 10), (40, 17), (33, 26)]
OFFSET = 2.0


def state(n, k, shape):
    rng = np.random.default_rng(n + k)
    label = rng.integers(0, k, n).astype(np.int32)
    own = label[:, None] == np.arange(k)
    if shape == "simplex":
        bound = rng.uniform(0.1, 2.0, (n, 1))
    else:
        bound = np.where(own, 0.0, rng.uniform(0.0, 1.0, (n, k)) * (rng.random((n, k)) < 0.8))
    t = rng.normal(size=(n, k))
    t -= t.mean(axis=1, keepdims=True)
    return rng, t, label, own, bound, rng.uniform(0.5, 3.0, n)


def nearest(t, own, bound, shift):
    """The nearest coefficients to t and a step along the own class: on simplices, or by the root of the sum."""
    t = t + shift[:, None] * own
    if bound.shape[1] == 1:
        return bound * own - onto_simplices(bound * own - t, bound[:, 0])
    z = np.zeros_like(t)
    for i, (row, upper) in enumerate(zip(t, bound, strict=True)):
        y = int(own[i].argmax())

        def moved(total, row=row, upper=upper, y=y):
            return np.clip(row[y] - row - total, 0.0, upper)

        total = brentq(lambda total: moved(total).sum() - total, 0.0, upper.sum() + 1.0, xtol=1e-15)
        z[i] = -moved(total)
        z[i, y] = -z[i].sum()
    return z


@pytest.mark.parametrize("shape", ["simplex", "box"])
@pytest.mark.parametrize(("n", "k"), SHAPES)
def test_projection(n, k, shape):
    _, t, label, own, bound, rho = state(n, k, shape)
    z = np.empty_like(t)
    project(t, label, bound, OFFSET / rho, z)
    np.testing.assert_allclose(z, nearest(t, own, bound, OFFSET / rho), atol=1e-10)
    np.testing.assert_allclose(z.sum(axis=1), 0.0, atol=1e-14 * k)


@pytest.mark.parametrize("shape", ["simplex", "box"])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize(("n", "k"), SHAPES)
def test_reflection(n, k, dtype, shape):
    rng, t, label, own, bound, rho = state(n, k, shape)
    before, columns = rng.normal(size=(n, k)), Columns(n, k - 1, dtype)
    v = before.copy()
    reflect(t, label, bound, OFFSET / rho, v, columns.right, columns.panel)
    np.testing.assert_allclose(v, 2.0 * nearest(t, own, bound, OFFSET / rho) - t, atol=1e-10)
    np.testing.assert_allclose(unpacked(columns, k - 1), (v - before)[:, :-1], atol=10 * np.finfo(dtype).eps)


@pytest.mark.parametrize("fit_intercept", [True, False])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize(("n", "k"), SHAPES)
def test_relaxation(n, k, dtype, fit_intercept):
    rng, t, _, _, _, rho = state(n, k, "box")
    x, v = (table - table.mean(axis=1, keepdims=True) for table in rng.normal(size=(2, n, k)))
    of_ones, columns = rng.uniform(1.0, 2.0, n), Columns(n, k - 1, dtype)
    columns.take(rng.normal(size=(n, k - 1)))
    columns.answer[:] = rng.normal(size=columns.answer.shape)
    change = unpacked(columns, k - 1) - columns.answer[:, : k - 1].astype(np.float64) / rho[:, None]
    if fit_intercept:
        change -= np.outer(of_ones, change.sum(axis=0) / of_ones.sum())
    expected_x = x + np.column_stack([change, -change.sum(axis=1)])
    expected_t = t + 1.9 * (expected_x - 0.5 * (t + v))
    relax(
        t, x, v, columns.right, columns.panel, columns.answer, of_ones if fit_intercept else np.empty(0), rho, 1.9
    )
    np.testing.assert_allclose(x, expected_x, atol=1e-12)
    np.testing.assert_allclose(t, expected_t, atol=1e-12)
