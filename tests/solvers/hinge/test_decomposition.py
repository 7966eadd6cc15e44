"""The kernel solver against a general-purpose one, at its limits and on degenerate data."""

import itertools
import time

import numpy as np
import pytest

from polymargin.gram import DenseGram, FeatureGram, Kernel, LazyGram
from polymargin.problems.hinge import HingePoint, HingeProblem, lee_lin_wahba
from polymargin.solvers.contract import Settings, Status
from polymargin.solvers.hinge.decomposition import DecompositionSettings
from polymargin.solvers.hinge.inner_loop import IndefiniteKernelError
from polymargin.solvers.hinge.kernel_point import first_dual
from polymargin.solvers.hinge.portfolio import Portfolio
from polymargin.solvers.policy import Policy
from tests.oracles import hinge_optimum
from tests.simulate import blobs, random_costs


def lee_problem(seed, *, n=None, k=None, C=None, fit_intercept=True):
    rng = np.random.default_rng(seed)
    k = k or int(rng.integers(2, 8))
    n = n or int(rng.integers(k + 2, 121))
    X, y = blobs(rng, n, int(rng.integers(1, 6)), k, spread=rng.choice([0.3, 1.0, 3.0]))
    kernel = Kernel(["linear", "rbf", "poly"][seed % 3], gamma=0.5, degree=2, coef0=1.0)
    C = C or 10 ** rng.uniform(-3, 3)
    costs = (random_costs(rng, k) if seed % 2 else 1.0 - np.eye(k))[y] * rng.uniform(0.2, 2.0, (n, 1))
    return HingeProblem(DenseGram(np.ascontiguousarray(kernel(X))), lee_lin_wahba(y, C * costs), fit_intercept)


@pytest.mark.parametrize("fit_intercept", [True, False])
@pytest.mark.parametrize("seed", range(10))
def test_agrees_with_a_general_solver(seed, fit_intercept):
    problem = lee_problem(seed, fit_intercept=fit_intercept)
    solution = Portfolio().solve(problem, Settings(tol=1e-4))
    assert solution.status is Status.SOLVED
    assert solution.certificate.primal == pytest.approx(hinge_optimum(problem), rel=2e-4, abs=2e-4)


@pytest.mark.parametrize("fit_intercept", [True, False])
@pytest.mark.parametrize("seed", range(6))
def test_a_small_C_begins_at_the_upper_bounds(seed, fit_intercept):
    """There the dual rises all the way to them; else it is at rest, and both are feasible."""
    kinds = []
    for C in (1e-4, 1e3):
        problem = lee_problem(seed, n=60, k=4, C=C, fit_intercept=fit_intercept)
        dual = first_dual(problem)
        certificate = problem.certify(HingePoint(dual, np.zeros(4)))
        assert certificate.is_proof
        assert certificate.dual >= 0.0
        kinds.append(dual.any())
        solution = Portfolio().solve(problem, Settings(tol=1e-4))
        assert solution.certificate.primal == pytest.approx(hinge_optimum(problem), rel=2e-4, abs=2e-4)
    assert kinds == [True, False]


@pytest.mark.parametrize("fit_intercept", [True, False])
def test_every_gram_provider_gives_the_same_solution(fit_intercept):
    rng = np.random.default_rng(0)
    X, y = blobs(rng, 90, 200, 3)
    losses = lee_lin_wahba(y, 0.1 * (1.0 - np.eye(3))[y])
    K = X @ X.T
    providers = [DenseGram(K), DenseGram(K.astype(np.float32)), FeatureGram(X), LazyGram(Kernel("linear"), X)]
    values = []
    for gram in providers:
        solver = Portfolio(policy=Policy(decomposition=DecompositionSettings(40)))
        solution = solver.solve(HingeProblem(gram, losses, fit_intercept), Settings(tol=1e-6))
        assert solution.status is Status.SOLVED
        values.append(solution.certificate.primal)
    np.testing.assert_allclose(values, values[0], rtol=2e-6, atol=2e-6)


@pytest.mark.parametrize("seed", [1, 4])
def test_a_slow_machine_goes_the_same_way(seed, monkeypatch):
    """Where no limit is set the clock is read for the record alone: one that leaps changes no bit."""
    problem = lee_problem(seed, n=110, k=5, C=10.0)
    quick = Portfolio().solve(problem, Settings(tol=1e-6))
    leaps = itertools.count(step=1000.0)
    for clock in ("perf_counter", "monotonic", "process_time", "thread_time"):
        monkeypatch.setattr(time, clock, lambda: next(leaps))
    slow = Portfolio().solve(problem, Settings(tol=1e-6))
    assert slow.seconds > 1e3 > quick.seconds
    np.testing.assert_array_equal(slow.point.dual, quick.point.dual)


def test_a_limit_keeps_a_feasible_point():
    problem = lee_problem(4, n=110, k=7, C=100.0)
    solution = Portfolio().solve(problem, Settings(tol=1e-12, max_iter=1))
    assert solution.status is Status.MAX_ITER
    assert solution.certificate.infeasibility < 1e-12
    assert solution.certificate.gap > 0


def test_an_indefinite_kernel_is_refused():
    rng = np.random.default_rng(0)
    A = rng.normal(size=(20, 20))
    losses = lee_lin_wahba(np.arange(20) % 3, (1.0 - np.eye(3))[np.arange(20) % 3])
    with pytest.raises(IndefiniteKernelError, match="semi-definite"):
        Portfolio().solve(HingeProblem(DenseGram(A + A.T), losses), Settings())


def test_a_start_at_another_C_saves_work():
    rng = np.random.default_rng(0)
    X, y = blobs(rng, 1300, 5, 4)
    K, upper = DenseGram(Kernel("rbf", gamma=0.2)(X)), (1.0 - np.eye(4))[y]
    settings = Settings(tol=1e-3)
    first = Portfolio(policy=Policy(decomposition=DecompositionSettings(200))).solve(
        HingeProblem(K, lee_lin_wahba(y, upper)), settings
    )
    problem = HingeProblem(K, lee_lin_wahba(y, 1.2 * upper))
    cold = Portfolio(policy=Policy(decomposition=DecompositionSettings(200))).solve(problem, settings)
    warm = Portfolio(policy=Policy(decomposition=DecompositionSettings(200))).solve(
        problem, settings, start=HingePoint(1.2 * first.point.dual, first.point.intercept)
    )
    assert warm.status is cold.status is Status.SOLVED
    assert sum(row.work for row in warm.trace) < sum(row.work for row in cold.trace)


def test_products_of_a_lazy_matrix_come_from_its_cache():
    X, _ = blobs(np.random.default_rng(0), 500, 3, 3)
    calls = []

    def kernel(A, B):
        calls.append(len(A))
        return A @ B.T

    lazy, dense = LazyGram(Kernel(kernel), X, cache_size=0.4), DenseGram(X @ X.T)  # room for 200 rows
    rng = np.random.default_rng(1)
    found, expected = np.zeros((500, 3), order="F"), np.zeros((500, 3), order="F")
    for rows in (np.arange(150), np.arange(100, 180), np.arange(499, 199, -1), np.arange(150)):
        V = rng.normal(size=(len(rows), 3))
        lazy.add_product(rows, V, found)
        dense.add_product(rows, V, expected)
    np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-4)
    assert sum(calls[:3]) == 180  # rows seen before are not computed again while there is room


def test_a_stop_is_certified_by_scores_that_are_right():
    """A stop cannot wait for a pass over a matrix that is not kept: the scores kept must tell the same."""
    X, y = blobs(np.random.default_rng(3), 1500, 4, 4, spread=1.0)
    losses = lee_lin_wahba(y, 10.0 * (1.0 - np.eye(4))[y])
    problem = HingeProblem(LazyGram(Kernel("rbf", gamma=0.3), X, cache_size=3.0), losses)
    solution = Portfolio(policy=Policy(decomposition=DecompositionSettings(300))).solve(
        problem, Settings(tol=1e-8, max_iter=6)
    )
    assert solution.status is Status.MAX_ITER
    fresh = problem.certify(solution.point)
    assert solution.certificate.infeasibility <= 1e-9
    np.testing.assert_allclose(
        [solution.certificate.primal, solution.certificate.dual], [fresh.primal, fresh.dual], rtol=1e-6
    )
