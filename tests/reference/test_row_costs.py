"""Costs of rows against CVXPY, against the class matrix and against repeated rows."""

import cvxpy as cp
import numpy as np
import pytest

from polymargin import MulticategorySVC, RobustSVC, SparseSVC
from polymargin.datasets import make_triangle


def random_problem(seed):
    """Return rows with ties, labels, weights and costs with zeros and ties of few rows of up to five classes."""
    rng = np.random.default_rng(seed)
    k, p = int(rng.integers(2, 6)), int(rng.integers(1, 5))
    n = int(rng.integers(3 * k, 40))
    X = np.round(rng.normal(size=(n, p)), int(rng.integers(0, 3)))
    y = np.concatenate([np.arange(k), rng.integers(0, k, n - k)])
    costs = np.round(rng.lognormal(size=(n, k)), int(rng.integers(0, 3)))
    costs[rng.random((n, k)) < rng.choice([0.0, 0.2, 0.6])] = 0.0
    costs[np.arange(n), y] = 0.0
    costs[0, (y[0] + 1) % k] = 1.0
    weights = rng.integers(0, 4, n) / 2.0 + 0.5 if rng.random() < 0.5 else np.ones(n)
    return X, y, weights, costs, float(10 ** rng.uniform(-2, 1))


def hinges(loss, F, y, k):
    if loss == "lee":
        return cp.pos(F + 1.0 / (k - 1))
    own = cp.sum(cp.multiply(F, np.eye(k)[y]), axis=1, keepdims=True)
    return cp.pos(F - own @ np.ones((1, k)) + 2.0)


def optimum(loss, penalty, X, y, weighted):
    """Return the least objective, by CVXPY; hinges of the own class cost nothing."""
    n, k = weighted.shape
    W, b = cp.Variable((X.shape[1], k)), cp.Variable((1, k))
    F = X @ W + np.ones((n, 1)) @ b
    objective = penalty(W) + cp.sum(cp.multiply(weighted, hinges(loss, F, y, k)))
    problem = cp.Problem(cp.Minimize(objective), [cp.sum(W, axis=1) == 0, cp.sum(b) == 0])
    return problem.solve(solver=cp.CLARABEL, tol_gap_abs=1e-10, tol_gap_rel=1e-10, tol_feas=1e-10)


@pytest.mark.filterwarnings("ignore:costs are zero for every class")
@pytest.mark.parametrize("batch", range(10))
@pytest.mark.parametrize("loss", ["lee", "weston"])
def test_multicategory_random_problems(loss, batch):
    for seed in range(10 * batch, 10 * batch + 10):
        X, y, weights, costs, C = random_problem(seed)
        model = MulticategorySVC(C, loss=loss, kernel="linear", tol=1e-9).fit(X, y, weights, costs=costs)
        best = optimum(loss, lambda W: 0.5 * cp.sum_squares(W), X, y, C * weights[:, None] * costs)
        assert model.converged_
        assert model.certificate_.primal == pytest.approx(best, rel=1e-6, abs=1e-6)


@pytest.mark.filterwarnings("ignore:costs are zero for every class")
@pytest.mark.parametrize("batch", range(5))
@pytest.mark.parametrize("loss", ["lee", "weston"])
def test_sparse_random_problems(loss, batch):
    for seed in range(100 + 10 * batch, 100 + 10 * batch + 10):
        X, y, weights, costs, C = random_problem(seed)
        model = SparseSVC(C, penalty="l1", loss=loss).fit(X, y, weights, costs=costs)
        best = optimum(loss, lambda W: cp.sum(cp.abs(W)), X, y, C * weights[:, None] * costs)
        assert model.converged_
        assert model.certificate_.primal == pytest.approx(best, rel=1e-6, abs=1e-6)


def machines():
    for loss in ("lee", "weston", "lee_squared", "weston_squared"):
        yield lambda loss=loss, **given: MulticategorySVC(loss=loss, kernel="linear", tol=1e-10, **given)
    yield lambda **given: MulticategorySVC(kernel="rbf", tol=1e-10, **given)
    yield lambda **given: SparseSVC(0.3, **given)
    yield lambda **given: RobustSVC(0.3, **given)
    yield lambda **given: RobustSVC(0.3, truncation=-np.inf, **given)


@pytest.mark.parametrize("make", list(machines()))
def test_equal_to_the_class_matrix(make):
    rng = np.random.default_rng(3)
    y = rng.integers(0, 3, 60)
    X = rng.normal(size=(60, 2)) + 1.5 * np.eye(3)[y][:, :2]
    matrix = np.array([[0.0, 1.0, 4.0], [2.5, 0.0, 1.0], [0.0, 0.7, 0.0]])
    by_class, by_row = make(cost_matrix=matrix).fit(X, y), make().fit(X, y, costs=matrix[y])
    assert by_row.certificate_.primal == pytest.approx(by_class.certificate_.primal, rel=1e-12)
    np.testing.assert_allclose(by_row.decision_function(X), by_class.decision_function(X), rtol=0, atol=1e-12)


@pytest.mark.parametrize("make", list(machines()))
def test_a_weight_is_repetition(make):
    """Rows split by weights, equal rows with other costs among them, in another order."""
    rng = np.random.default_rng(5)
    y = rng.integers(0, 3, 40)
    X = rng.normal(size=(40, 2)) + 1.5 * np.eye(3)[y][:, :2]
    X[1], y[1] = X[0], y[0]
    costs = np.where(np.eye(3, dtype=bool)[y], 0.0, rng.integers(0, 4, (40, 3)) / 2.0)
    costs[0] = np.where(np.arange(3) == y[0], 0.0, 1.0)
    costs[1] = np.where(np.arange(3) == y[1], 0.0, [2.0, 3.0, 4.0])
    costs[2:][~costs[2:].any(axis=1), :] += 1.0 - np.eye(3)[y[2:]][~costs[2:].any(axis=1)]
    times = rng.integers(1, 4, 40)
    order = rng.permutation(times.sum())
    weighted = make().fit(X, y, times.astype(float), costs=costs)
    repeated = make().fit(
        *(np.repeat(part, times, axis=0)[order] for part in (X, y)), costs=np.repeat(costs, times, axis=0)[order]
    )
    np.testing.assert_array_equal(weighted.decision_function(X), repeated.decision_function(X))
    merged_away = make().fit(
        X, y, times.astype(float), costs=np.where(np.arange(40)[:, None] == 1, costs[0], costs)
    )
    assert not np.array_equal(merged_away.decision_function(X), weighted.decision_function(X))


def test_decisions_under_costs_of_rows_approach_the_bayes_rule():
    """Prices that grow in three directions; the true probabilities tell what every decision costs."""
    fresh = make_triangle(4000, random_state=0)
    corners = np.array([[1.0, 0.0], [-0.5, np.sqrt(0.75)], [-0.5, -np.sqrt(0.75)]])

    def prices(X):
        return np.exp(1.5 * X @ corners.T)

    expected = prices(fresh.data) * (1.0 - fresh.probabilities)
    bayes = expected.min(axis=1).mean()

    def excess(n, seed):
        sample = make_triangle(n, random_state=seed)
        costs = np.where(sample.target[:, None] == np.arange(3), 0.0, prices(sample.data))
        model = MulticategorySVC(tol=1e-3)
        priced = model.fit(sample.data, sample.target, costs=costs).predict(fresh.data)
        plain = model.fit(sample.data, sample.target).predict(fresh.data)
        rows = np.arange(len(priced))
        return expected[rows, priced].mean() / bayes - 1.0, expected[rows, plain].mean() / bayes - 1.0

    few, many = (np.mean([excess(n, seed) for seed in (1, 2, 3)], axis=0) for n in (50, 400))
    assert 0.0 <= many[0] < 0.5 * few[0]
    assert many[0] < 0.2
    assert many[1] > 1.0  # ignoring the prices costs more than twice as much, however many the rows
