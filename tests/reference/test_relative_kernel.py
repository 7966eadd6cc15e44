"""The kernel solver of Weston & Watkins and Crammer & Singer against Clarabel and scikit-learn."""

import numpy as np
import pytest
from sklearn.svm import SVC

from polymargin.estimators.multicategory import MulticategorySVC
from polymargin.gram import DenseGram, Kernel
from polymargin.problems.hinge import HingeProblem, crammer_singer, weston_watkins
from polymargin.solvers.contract import Settings, Status
from polymargin.solvers.hinge.portfolio import Portfolio
from tests.oracles import hinge_optimum
from tests.simulate import blobs, random_costs

TOL = 1e-9
LOSSES = ["weston", "crammer"]


def machine(loss, K, labels, costs, *, weights=1.0, fit_intercept=True):
    """Crammer and Singer's machine has no use for costs of pairs."""
    upper = np.broadcast_to(weights, len(labels))[:, None] * costs[labels]
    k = len(costs)
    losses = weston_watkins(labels, upper) if loss == "weston" else crammer_singer(labels, upper.max(axis=1), k)
    return HingeProblem(DenseGram(np.ascontiguousarray(K)), losses, fit_intercept)


def assert_optimal(problem):
    solution = Portfolio().solve(problem, Settings(tol=TOL))
    optimum = hinge_optimum(problem)
    assert solution.status is Status.SOLVED
    assert solution.certificate.within(TOL)
    assert abs(solution.certificate.primal - optimum) <= 1e-7 * max(1.0, abs(optimum))
    return solution


@pytest.mark.parametrize("seed", range(120))
def test_random_problem(seed):
    rng = np.random.default_rng(1000 + seed)
    k = int(rng.integers(2, 8))
    n = int(rng.integers(max(10, k), 121))
    X, y = blobs(rng, n, int(rng.integers(1, 6)), k, spread=rng.choice([0.3, 1.0, 3.0]))
    kernel = Kernel(["linear", "rbf", "poly"][seed % 3], gamma=0.5, degree=3, coef0=1.0)
    costs = random_costs(rng, k) if rng.random() < 0.5 else 1.0 - np.eye(k)
    weights = 10 ** rng.uniform(-3, 3) * (rng.uniform(0.2, 2.0, n) if rng.random() < 0.5 else 1.0)
    fit_intercept = bool(rng.random() < 0.75)
    assert_optimal(machine(LOSSES[seed % 2], kernel(X), y, costs, weights=weights, fit_intercept=fit_intercept))


def degenerate_problems():
    """Yield a name, a kernel matrix, labels and costs, four classes or two."""
    rng = np.random.default_rng(0)
    X, y = blobs(rng, 60, 2, 4)
    K, equal = Kernel("rbf", gamma=0.5)(X), 1.0 - np.eye(4)
    twice = np.vstack([X, X])
    yield "repeated points, other labels, rbf", Kernel("rbf", gamma=0.5)(twice), np.r_[y, (y + 1) % 4], equal
    yield "repeated points, other labels, linear", twice @ twice.T, np.r_[y, (y + 1) % 4], equal
    for rank in (0, 1, 3):
        Z = rng.normal(size=(60, rank))
        yield f"rank {rank}", Z @ Z.T, y, equal
    yield "one member", K, np.where(np.arange(60) == 0, 3, np.minimum(y, 2)), equal
    yield "two classes", K, (y > 1).astype(np.intp), equal[:2, :2]
    yield "no cost for predicting class 2", K, y, np.where(np.arange(4) == 2, 0.0, equal)
    yield "no cost for true class 1", K, y, np.where(np.arange(4)[:, None] == 1, 0.0, equal)
    yield "costs in one direction only", K, y, np.triu(equal)


@pytest.mark.parametrize("fit_intercept", [True, False])
@pytest.mark.parametrize("C", [1e-2, 1.0, 100.0])
@pytest.mark.parametrize(("name", "K", "y", "costs"), [pytest.param(*p, id=p[0]) for p in degenerate_problems()])
def test_degenerate_problem(name, K, y, costs, C, fit_intercept):
    for loss in LOSSES:
        if loss == "weston" or (costs[y].max(axis=1) > 0).all():
            assert_optimal(machine(loss, K, y, costs, weights=C, fit_intercept=fit_intercept))


@pytest.mark.parametrize("loss", LOSSES)
def test_intercept_that_is_not_unique_does_not_depend_on_any_order(loss):
    # lambda = 10: every variable of the balanced problem is on a bound
    rng = np.random.default_rng(0)
    X, _ = blobs(rng, 60, 2, 4)
    y = np.repeat(np.arange(4), 15)
    K = Kernel("rbf", gamma=0.5)(X)
    problem = machine(loss, K, y, 1.0 - np.eye(4), weights=1 / 600)
    intercept = assert_optimal(problem).point.intercept
    order, classes = rng.permutation(60), rng.permutation(4)
    shuffled = machine(loss, K[np.ix_(order, order)], classes[y[order]], 1.0 - np.eye(4), weights=1 / 600)
    np.testing.assert_allclose(assert_optimal(shuffled).point.intercept[classes], intercept, atol=1e-10)


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("C", [0.1, 1.0, 30.0])
def test_two_classes_are_the_binary_machine(loss, C):
    X, y = blobs(np.random.default_rng(3), 150, 3, 2)
    ours = MulticategorySVC(C=C, loss=loss, gamma=0.3, tol=1e-9).fit(X, y)
    theirs = SVC(C=C, gamma=0.3, tol=1e-9).fit(X, y)
    np.testing.assert_allclose(ours.decision_function(X), theirs.decision_function(X), atol=1e-5)


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("fit_intercept", [True, False])
def test_weights_are_repetitions_at_any_tolerance(loss, fit_intercept):
    rng = np.random.default_rng(4)
    X, y = blobs(rng, 80, 3, 4)
    repeats = rng.integers(0, 4, 80)
    repeats[:4] = 1
    model = MulticategorySVC(loss=loss, gamma=0.3, fit_intercept=fit_intercept, tol=1e-2)
    weighted = model.fit(X, y, sample_weight=repeats).decision_function(X)
    repeated = model.fit(np.repeat(X, repeats, axis=0), np.repeat(y, repeats)).decision_function(X)
    np.testing.assert_allclose(weighted, repeated, rtol=1e-7, atol=1e-7)
