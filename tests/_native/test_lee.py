"""The compiled working-set loop of Lee, Lin & Wahba's machine against a slow NumPy twin."""

import numpy as np
import pytest

from polymargin._native.lee import LeeWorkingSet


def objective(K, u):
    """Dual objective (to be minimised) of class-major variables, up to its linear part."""
    B = u - u.mean(axis=0)
    return 0.5 * np.sum((B @ K) * B)


def clip_step(g, low, high, eta):
    """Minimise 1/2 eta (|t|^2 - (sum t)^2/k) + g't over a box, by bisection on S = sum t."""
    bottom, top = low.sum(), high.sum()
    for _ in range(200):
        S = 0.5 * (bottom + top)
        t = np.clip(S / len(g) - g / eta, low, high)
        bottom, top = (S, top) if t.sum() > S else (bottom, S)
    return t


def twin(K, upper, u, G, intercept, reduction, max_steps):
    """The same moves with plain NumPy, on copies; returns the variables and the gradient."""
    u, G = u.copy(), G.copy()
    k = len(u)
    tolerance = 0.0
    for step in range(max_steps):
        up, down = np.where(u < upper, G, np.inf), np.where(u > 0, G, -np.inf)
        lowest, highest = up.min(axis=1), down.max(axis=1)
        change = np.zeros_like(u)
        if intercept:
            pair, tuple_ = (highest - lowest).max(), max(-lowest.sum(), highest.sum())
            violation = max(pair, tuple_)
            if violation <= tolerance:
                break
            if tuple_ > 0 and tuple_**2 / (k - 1) > max(pair, 0) ** 2 * k / (k - 1):
                violation = tuple_
                upwards = -lowest.sum() >= highest.sum()
                rows = up.argmin(axis=1) if upwards else down.argmax(axis=1)
                classes = np.arange(k)
                room = (upper - u if upwards else u)[classes, rows].min()
                curvature = K[rows, rows].sum() - K[np.ix_(rows, rows)].sum() / k
                size = min(room, abs(G[classes, rows].sum()) / curvature)
                change[classes, rows] = size if upwards else -size
            else:
                violation = pair
                worst = (highest - lowest).argmax()
                i = up[worst].argmin()
                eta = np.maximum(K[i, i] + np.diag(K) - 2 * K[i], 1e-12 * np.abs(np.diag(K)).max())
                j = (np.maximum(down[worst] - G[worst, i], 0.0) ** 2 / eta).argmax()
                low = np.maximum(-u[:, i], u[:, j] - upper[:, j])
                high = np.minimum(upper[:, i] - u[:, i], u[:, j])
                change[:, i] = clip_step(G[:, i] - G[:, j], low, high, eta[j])
                change[:, j] = -change[:, i]
        else:
            violation = max(-lowest.min(), highest.max())
            if violation <= tolerance:
                break
            worst = np.unravel_index(np.argmax(np.maximum(-up, down)), u.shape)
            i = worst[1]
            change[:, i] = clip_step(G[:, i], -u[:, i], upper[:, i] - u[:, i], K[i, i])
        if step == 0:
            tolerance = reduction * violation
        u = np.clip(u + change, 0.0, upper)
        G = G + (change - change.mean(axis=0)) @ K
    return u, G


def working_set(seed, m=25, k=4):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(m, 3))
    K = np.exp(-0.3 * ((X[:, None] - X) ** 2).sum(axis=2))
    labels = rng.integers(0, k, m)
    upper = rng.uniform(0.5, 2.0, (k, m)) * (np.arange(k)[:, None] != labels)
    return K, np.ascontiguousarray(upper)


@pytest.mark.parametrize("intercept", [True, False])
@pytest.mark.parametrize("max_steps", [1, 2, 5, 40])
@pytest.mark.parametrize("seed", range(3))
def test_takes_the_steps_of_the_twin(seed, max_steps, intercept):
    K, upper = working_set(seed)
    u, G = np.zeros_like(upper), np.full_like(upper, -1.0 / 3.0)
    expected_u, expected_G = twin(K, upper, u, G, intercept, 1e-3, max_steps)
    LeeWorkingSet(K, upper, u, G, intercept).improve(1e-3, max_steps)
    np.testing.assert_allclose(u, expected_u, atol=1e-9)
    np.testing.assert_allclose(G, expected_G, atol=1e-9)


@pytest.mark.parametrize("intercept", [True, False])
def test_every_step_lowers_the_objective_and_keeps_the_constraints(intercept):
    K, upper = working_set(7, m=40, k=5)
    u, G = np.zeros_like(upper), np.full_like(upper, -0.25)
    loop = LeeWorkingSet(K, upper, u, G, intercept)
    before = 0.0
    for _ in range(60):
        loop.improve(0.0, 1)
        value = objective(K, u) - 0.25 * u.sum()
        assert value <= before + 1e-13
        assert (u >= 0).all()
        assert (u <= upper).all()
        before = value
        if intercept:
            np.testing.assert_allclose(u.sum(axis=1), u.sum(axis=1).mean(), atol=1e-12)
        np.testing.assert_allclose(G, (u - u.mean(axis=0)) @ K - 0.25, atol=1e-12)


def test_reports_negative_curvature():
    K = np.array([[1.0, 3.0], [3.0, 1.0]])
    upper = np.array([[0.0, 1.0], [1.0, 0.0], [1.0, 1.0]])
    u = np.array([[0.0, 0.5], [0.5, 0.0], [0.5, 0.2]])
    G = (u - u.mean(axis=0)) @ K - 0.5
    loop = LeeWorkingSet(K, upper, u, np.ascontiguousarray(G), True)
    loop.improve(0.0, 5)
    assert loop.most_negative_curvature < 0
