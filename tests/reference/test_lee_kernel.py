"""The exact kernel solver of Lee, Lin & Wahba's machine against Clarabel, on random and on degenerate problems."""

import numpy as np
import pytest

from polymargin.gram import DenseGram, Kernel
from polymargin.problems.hinge import HingeProblem, lee_lin_wahba
from polymargin.solvers.contract import Settings, Status
from polymargin.solvers.hinge.portfolio import Portfolio
from tests.oracles import hinge_optimum
from tests.simulate import blobs, random_costs

TOL = 1e-9


def machine(K, labels, costs, *, C=1.0, fit_intercept=True):
    return HingeProblem(DenseGram(np.ascontiguousarray(K)), lee_lin_wahba(labels, C * costs), fit_intercept)


def assert_optimal(problem):
    solution = Portfolio().solve(problem, Settings(tol=TOL))
    optimum = hinge_optimum(problem)
    assert solution.status is Status.SOLVED
    assert solution.certificate.within(TOL)
    assert abs(solution.certificate.primal - optimum) <= 1e-7 * max(1.0, abs(optimum))
    return solution


@pytest.mark.parametrize("seed", range(120))
def test_random_problem(seed):
    rng = np.random.default_rng(seed)
    k = int(rng.integers(2, 8))
    n = int(rng.integers(max(10, k + 2), 121))
    X, y = blobs(rng, n, int(rng.integers(1, 6)), k, spread=rng.choice([0.3, 1.0, 3.0]))
    kernel = Kernel(["linear", "rbf", "poly"][seed % 3], gamma=0.5, degree=2, coef0=1.0)
    weights = rng.uniform(0.2, 2.0, n) if rng.random() < 0.5 else np.ones(n)
    costs = random_costs(rng, k) if rng.random() < 0.5 else 1.0 - np.eye(k)
    C = 10 ** rng.uniform(-3, 3)
    assert_optimal(
        machine(kernel(X), y, weights[:, None] * costs[y], C=C, fit_intercept=bool(rng.random() < 0.75))
    )


def rbf(X):
    return Kernel("rbf", gamma=0.5)(X)


@pytest.mark.parametrize("fit_intercept", [True, False])
@pytest.mark.parametrize("C", [1e-2, 1.0, 100.0])
class TestDegenerate:
    k = 4

    @pytest.fixture
    def data(self):
        return blobs(np.random.default_rng(0), 60, 2, self.k)

    def equal_costs(self, y):
        return (1.0 - np.eye(self.k))[y]

    def test_points_repeated_with_another_label(self, data, C, fit_intercept):
        X, y = data
        X, y = np.vstack([X, X]), np.concatenate([y, (y + 1) % self.k])
        for K in (rbf(X), X @ X.T):
            assert_optimal(machine(K, y, self.equal_costs(y), C=C, fit_intercept=fit_intercept))

    @pytest.mark.parametrize("rank", [0, 1, 3])
    def test_kernel_of_low_rank(self, data, C, fit_intercept, rank):
        Z = np.random.default_rng(1).normal(size=(60, rank))
        y = data[1]
        assert_optimal(machine(Z @ Z.T, y, self.equal_costs(y), C=C, fit_intercept=fit_intercept))

    def test_no_cost_for_predicting_a_class(self, data, C, fit_intercept):
        X, y = data
        costs = 1.0 - np.eye(self.k)
        costs[:, 2] = 0.0
        solution = assert_optimal(machine(rbf(X), y, costs[y], C=C, fit_intercept=fit_intercept))
        if fit_intercept:
            assert solution.certificate.primal == 0.0

    def test_no_cost_for_a_true_class(self, data, C, fit_intercept):
        X, y = data
        costs = 1.0 - np.eye(self.k)
        costs[1] = 0.0
        assert_optimal(machine(rbf(X), y, costs[y], C=C, fit_intercept=fit_intercept))

    def test_class_with_one_member(self, data, C, fit_intercept):
        X, y = data
        y = np.where(y == 3, 2, y)
        y[0] = 3
        assert_optimal(machine(rbf(X), y, self.equal_costs(y), C=C, fit_intercept=fit_intercept))

    def test_two_classes(self, data, C, fit_intercept):
        X, y = data
        y = (y > 1).astype(np.intp)
        assert_optimal(machine(rbf(X), y, (1.0 - np.eye(2))[y], C=C, fit_intercept=fit_intercept))


def test_no_free_variables_under_heavy_regularisation():
    # lambda = 10: every variable of the balanced problem is on a bound, and the intercept is not unique
    X, _ = blobs(np.random.default_rng(0), 60, 2, 4)
    y = np.repeat(np.arange(4), 15)
    upper = (1.0 - np.eye(4))[y] / (60 * 10.0)
    solution = assert_optimal(machine(rbf(X), y, upper))
    dual = solution.point.dual
    assert not ((dual > 0) & (dual < upper)).any()
    order = np.random.default_rng(1).permutation(60)
    shuffled = assert_optimal(machine(rbf(X[order]), y[order], upper[order]))
    np.testing.assert_allclose(shuffled.point.intercept, solution.point.intercept, atol=1e-12)
