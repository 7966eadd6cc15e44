"""Leave-one-out and GACV of fitted machines, and the cost of decisions at left-out scores."""

import numpy as np
import pytest
from scipy.optimize import minimize_scalar
from scipy.special import log_softmax, softmax
from sklearn.datasets import load_iris, load_wine
from sklearn.preprocessing import scale

from polymargin import MulticategorySVC
from polymargin.selection.criteria import SHARPNESS, gacv, loo, smoothed_cost
from tests.simulate import blobs, random_costs


def naive_gacv(model, X, y, costs):
    """(28) of Lee et al., written out example by example with the paper's symbols."""
    n, k = len(y), len(model.classes_)
    f = model.decision_function(X)
    c = np.zeros((n, k))
    c[model.support_] = model.dual_coef_.T
    K = np.exp(-model.gamma * ((X[:, None] - X[None]) ** 2).sum(-1))
    eps, total = 1e-5, 0.0
    for i in range(n):
        codes = [1.0 if j == y[i] else -1.0 / (k - 1) for j in range(k)]
        T = sum(f[i, j] < -(1 + eps) / (k - 1) for j in range(k))
        correction = 0.0
        for j in range(k):
            truncated = f[i, j] < -(1 + eps) / (k - 1)
            mu = -1.0 / (k - 1) if truncated else T / ((k - T) * (k - 1))
            step = 1.0 if f[i, j] > -(1 + eps) / (k - 1) else 0.0
            correction += costs[y[i], j] * step * c[i, j] * (codes[j] - mu)
            total += costs[y[i], j] * max(f[i, j] - codes[j], 0.0)
        total += (k - 1) * K[i, i] * correction
    return total / n


@pytest.mark.parametrize("unequal", [False, True])
@pytest.mark.parametrize("C", [0.05, 1.0, 20.0])
def test_gacv_is_its_definition(C, unequal):
    rng = np.random.default_rng(0)
    X, y = blobs(rng, 50, 2, 3)
    costs = random_costs(rng, 3) if unequal else 1.0 - np.eye(3)
    model = MulticategorySVC(C=C, gamma=0.7, cost_matrix=costs, tol=1e-10).fit(X, y)
    assert gacv(model) == pytest.approx(naive_gacv(model, X, y, costs), rel=1e-7)


def test_gacv_has_a_closed_form_for_equal_costs():
    rng = np.random.default_rng(1)
    X, y = blobs(rng, 60, 2, 4)
    k, C = 4, 0.5
    model = MulticategorySVC(C=C, gamma=0.7, tol=1e-10).fit(X, y)
    f = model.decision_function(X)
    margin = -(1 + 1e-5) / (k - 1)
    rows = np.arange(len(y))
    R = np.zeros((len(y), k))
    R[model.support_] = model.dual_coef_.T
    mean_dual = R[rows, y]  # u_iy = 0, so that R_iy is the mean of u_i
    T = (f < margin).sum(axis=1)
    mu = T / ((k - T) * (k - 1))
    others = np.arange(k) != y[:, None]
    S = ((f > margin) & others).sum(axis=1)
    D = (1 + (k - 1) * mu) * (k - S) * mean_dual
    loss = (np.maximum(f + 1 / (k - 1), 0) * others).sum(axis=1)
    assert gacv(model) == pytest.approx(float(np.mean(loss + D)), rel=1e-7)


def test_gacv_warns_where_it_is_not_a_function_of_the_fit():
    X, y = load_iris(return_X_y=True)
    with pytest.warns(UserWarning, match="singular"):
        gacv(MulticategorySVC(C=0.1, kernel="linear").fit(X, y))


@pytest.mark.parametrize("loss", ["weston", "crammer"])
def test_gacv_is_for_lee_alone(loss):
    X, y = load_iris(return_X_y=True)
    with pytest.raises(ValueError, match=f"got an estimator with loss='{loss}'"):
        gacv(MulticategorySVC(loss=loss).fit(X, y))


def test_precomputed_kernels_are_refused():
    X, y = load_iris(return_X_y=True)
    with pytest.raises(ValueError, match="precomputed"):
        loo(MulticategorySVC(kernel="precomputed").fit(X @ X.T, y))


@pytest.mark.parametrize("loss", ["lee", "weston", "crammer"])
def test_loo_is_near_the_mean_loss_of_refits(loss):
    X, y = load_wine(return_X_y=True)
    X, y = scale(X)[::3], y[::3]
    model = MulticategorySVC(C=0.1, loss=loss, gamma=0.05, tol=1e-6).fit(X, y)
    losses = []
    for i in range(len(y)):
        rest = np.delete(np.arange(len(y)), i)
        refit = MulticategorySVC(C=0.1, loss=loss, gamma=0.05, tol=1e-6).fit(X[rest], y[rest])
        f = refit.decision_function(X[i : i + 1])[0]
        others = np.arange(3) != y[i]
        hinges = {
            "lee": np.maximum(f + 0.5, 0)[others].sum(),
            "weston": np.maximum(f - f[y[i]] + 2, 0)[others].sum(),
            "crammer": np.maximum(f - f[y[i]] + 2, 0)[others].max(),
        }
        losses.append(hinges[loss])
    assert loo(model) == pytest.approx(np.mean(losses), rel=0.05)


def scored_rows(seed, n=80, k=4):
    """Return scores, some of them wrong, with labels, weights and costs."""
    rng = np.random.default_rng(seed)
    labels = rng.integers(0, k, n)
    scores = 1.5 * np.eye(k)[labels] + rng.normal(size=(n, k))
    weights = rng.integers(1, 4, n).astype(float)
    return scores, labels, weights, weights[:, None] * random_costs(rng, k)[labels]


def test_the_smoothed_cost_is_its_definition():
    """The slope by a search of one variable; what is mixed into the map's targets shifts it by little."""
    scores, labels, weights, costs = scored_rows(0)

    def log_loss(slope):
        return -weights @ log_softmax(slope * scores, axis=1)[np.arange(len(labels)), labels]

    slope = minimize_scalar(log_loss, bounds=(1e-3, 1e2), method="bounded").x
    expected = np.sum(softmax(SHARPNESS * slope * scores, axis=1) * costs) / weights.sum()
    assert smoothed_cost(scores, labels, weights, costs) == pytest.approx(expected, rel=0.01)


def test_the_smoothed_cost_knows_no_scale_and_takes_weights_for_repetition():
    scores, labels, weights, costs = scored_rows(1)
    value = smoothed_cost(scores, labels, weights, costs)
    assert smoothed_cost(1e3 * scores - 7.0, labels, weights, costs) == pytest.approx(value, rel=1e-8)
    copies = np.repeat(np.arange(len(labels)), weights.astype(int))
    single = (costs / weights[:, None])[copies]
    repeated = smoothed_cost(scores[copies], labels[copies], np.ones(len(copies)), single)
    assert repeated == pytest.approx(value, rel=1e-8)


def test_the_smoothed_cost_counts_clear_decisions_as_they_are():
    """All rows far from any other decision: what is smoothed is nothing."""
    labels = np.arange(60) % 3
    scores = 10.0 * np.eye(3)[labels]
    ones, costs = np.ones(60), 1.0 - np.eye(3)[labels]
    assert smoothed_cost(scores, labels, ones, costs) < 1e-4
    assert smoothed_cost(np.zeros((60, 3)), labels, ones, costs) == pytest.approx(2 / 3)
    # scores that speak for the wrong class are worth no more than none
    assert 2 / 3 <= smoothed_cost(-scores, labels, ones, costs) < 0.67
