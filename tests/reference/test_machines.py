"""Every loss that has a name against CVXPY, each written out anew, and against scikit-learn where that has it."""

import cvxpy as cp
import numpy as np
import pytest
from sklearn.datasets import make_blobs
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import train_test_split
from sklearn.svm import SVC

from polymargin import MulticategorySVC, ReinforcedLoss
from polymargin.problems.hinge import LOSSES
from tests.simulate import blobs, random_costs

ANY_COSTS = ("lee", "weston", "lee_squared", "weston_squared")


def written_out(loss, F, y, costs):
    """The losses of all examples at the scores `F`, a CVXPY expression (n, k)."""
    n, k = costs.shape
    others = np.array([[j for j in range(k) if j != label] for label in y])
    own = cp.hstack([F[i, y[i]] for i in range(n)])
    rest = cp.vstack([cp.hstack([F[i, j] for j in others[i]]) for i in range(n)])
    cost = np.take_along_axis(costs, others, axis=1)
    weight = costs.max(axis=1)
    own_column = cp.reshape(own, (n, 1), order="C") @ np.ones((1, k - 1))
    match loss:
        case "lee":
            return cp.sum(cp.multiply(cost, cp.pos(rest + 1 / (k - 1))))
        case "weston":
            return cp.sum(cp.multiply(cost, cp.pos(rest - own_column + 2)))
        case "crammer":
            return weight @ cp.pos(cp.max(rest - own_column, axis=1) + 2)
        case "mmr":
            return weight @ cp.pos(1 - own)
        case "adm":
            return weight @ cp.pos(1 + cp.max(rest, axis=1))
        case "atm":
            return weight @ cp.pos(cp.maximum(1 - own, 1 + cp.max(rest, axis=1)))
        case "ats" | "one_vs_rest":
            return weight @ (cp.pos(1 - own) + cp.sum(cp.pos(1 + rest), axis=1))
        case "reinforced":
            return weight @ (0.5 * cp.pos(1 - own) + 0.5 * cp.sum(cp.pos(rest + 1 / (k - 1)), axis=1))
        case "lee_squared":
            return cp.sum(cp.multiply(cost, cp.square(cp.pos(rest + 1 / (k - 1)))))
        case "weston_squared":
            return cp.sum(cp.multiply(cost, cp.square(cp.pos(rest - own_column + 2))))
        case "logistic":
            return weight @ (cp.log_sum_exp(F, axis=1) - own)
    raise AssertionError(loss)


def optimum(loss, X, y, costs, *, fit_intercept):
    k = costs.shape[1]
    W, b = cp.Variable((X.shape[1], k)), cp.Variable((1, k))
    F = X @ W + np.ones((len(X), 1)) @ b
    constraints = [] if fit_intercept else [b == 0]
    if loss != "one_vs_rest":
        constraints += [cp.sum(W, axis=1) == 0, cp.sum(b) == 0]
    objective = 0.5 * cp.sum_squares(W) + written_out(loss, F, y, costs)
    return cp.Problem(cp.Minimize(objective), constraints).solve(solver=cp.CLARABEL)


@pytest.mark.parametrize("kernel", ["linear", "precomputed"])
@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("loss", LOSSES)
def test_objective_is_the_optimum(loss, seed, kernel):
    rng = np.random.default_rng(seed)
    k = 2 + seed % 3
    X, y = blobs(rng, 16, 3, k)
    X[8:11] = X[:3]
    C, weights, fit_intercept = 10.0 ** rng.uniform(-2, 1), rng.uniform(0.5, 2.0, 16), seed % 2 == 0
    costs = random_costs(rng, k) if loss in ANY_COSTS else rng.uniform(0.5, 2.0, (k, 1)) * (1.0 - np.eye(k))
    model = MulticategorySVC(C, loss=loss, kernel=kernel, cost_matrix=costs, fit_intercept=fit_intercept, tol=1e-8)
    model.fit(X @ X.T if kernel == "precomputed" else X, y, sample_weight=weights)
    expected = optimum(loss, X, y, C * weights[:, None] * costs[y], fit_intercept=fit_intercept)
    assert model.converged_
    assert model.certificate_.primal == pytest.approx(expected, rel=1e-6, abs=1e-7)


@pytest.mark.parametrize("loss", [name for name in LOSSES if name not in ANY_COSTS])
def test_unequal_costs_are_refused_by_losses_that_cannot_use_them(loss):
    X, y = blobs(np.random.default_rng(0), 12, 2, 3)
    with pytest.raises(ValueError, match=f"cost_matrix must have equal costs.*{loss}"):
        MulticategorySVC(loss=loss, cost_matrix=[[0, 1, 2], [1, 0, 1], [1, 1, 0]]).fit(X, y)


def test_two_classes_of_the_logistic_loss_are_logistic_regression():
    X, y = blobs(np.random.default_rng(1), 60, 3, 2)
    ours = MulticategorySVC(0.3, loss="logistic", kernel="linear", tol=1e-10).fit(X, y)
    theirs = LogisticRegression(C=0.6, tol=1e-10, max_iter=1000).fit(X, y)
    np.testing.assert_allclose(ours.decision_function(X), theirs.decision_function(X) / 2, atol=1e-4)


def test_one_vs_rest_is_one_machine_for_each_class():
    X, y = blobs(np.random.default_rng(2), 60, 3, 4)
    ours = MulticategorySVC(0.7, loss="one_vs_rest", kernel="rbf", gamma=0.3, tol=1e-8).fit(X, y)
    for label in range(4):
        theirs = SVC(C=0.7, gamma=0.3, tol=1e-9).fit(X, y == label)
        np.testing.assert_allclose(ours.decision_function(X)[:, label], theirs.decision_function(X), atol=1e-4)


@pytest.mark.parametrize(("loss", "factor"), [("mmr", 0.5), ("adm", 0.5), ("atm", 0.5), ("ats", 1.0)])
def test_two_classes_are_the_binary_machine(loss, factor):
    X, y = blobs(np.random.default_rng(3), 40, 2, 2)
    ours = MulticategorySVC(0.8, loss=loss, kernel="rbf", gamma=0.5, tol=1e-8).fit(X, y)
    theirs = SVC(C=0.8 * factor, gamma=0.5, tol=1e-9).fit(X, y)
    np.testing.assert_allclose(ours.decision_function(X), theirs.decision_function(X), atol=1e-4)


def test_reinforced_without_own_part_is_lee():
    X, y = blobs(np.random.default_rng(4), 50, 2, 3)
    lee = MulticategorySVC(loss="lee", tol=1e-10).fit(X, y)
    reinforced = MulticategorySVC(loss=ReinforcedLoss(gamma=0.0), tol=1e-10).fit(X, y)
    np.testing.assert_allclose(reinforced.decision_function(X), lee.decision_function(X), atol=1e-5)


@pytest.mark.parametrize("gamma", [-0.1, 1.1, "half"])
def test_reinforced_refuses_other_parts(gamma):
    X, y = blobs(np.random.default_rng(4), 20, 2, 3)
    with pytest.raises((TypeError, ValueError), match="gamma"):
        MulticategorySVC(loss=ReinforcedLoss(gamma=gamma)).fit(X, y)


@pytest.mark.parametrize("kernel", ["linear", "rbf"])
def test_mmr_of_extreme_weights_ties_two_classes(kernel):
    """The data of scikit-learn's check of class weights: by the intercepts alone the optimum is 3 * 15 * 1e-4.

    The scores of the heavy class 0 reach the margin 1, and so do those of class 2, of which there is one row more
    than of class 1: that takes f_1 = -2. Only h, with RBF of the size of the light weights, tells 0 from 2.
    """
    X, y = make_blobs(centers=3, random_state=0, cluster_std=20)
    X, _, y, _ = train_test_split(X, y, test_size=0.5, random_state=0)
    assert np.bincount(y).tolist() == [19, 15, 16]
    model = MulticategorySVC(loss="mmr", kernel=kernel, class_weight={0: 1000, 1: 1e-4, 2: 1e-4}, tol=1e-6)
    model.fit(X, y)
    assert model.converged_
    assert model.certificate_.dual <= 45e-4
    if kernel == "rbf":
        assert model.certificate_.primal == pytest.approx(45e-4, rel=1e-3)
        np.testing.assert_allclose(model.decision_function(X), np.tile([1.0, -2.0, 1.0], (50, 1)), atol=1e-3)
