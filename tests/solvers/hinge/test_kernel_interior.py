"""The preconditioned interior point on a kernel against a general-purpose solver and the decomposition."""

import numpy as np
import pytest

from polymargin.gram import DenseGram, Kernel
from polymargin.problems.hinge import HingeProblem, lee_lin_wahba
from polymargin.solvers.contract import Settings, Status
from polymargin.solvers.hinge.kernel_interior import KernelInteriorPoint, KernelInteriorSettings
from polymargin.solvers.hinge.portfolio import Portfolio
from polymargin.solvers.hinge.splitting import SplittingSettings
from polymargin.solvers.policy import Policy
from tests.oracles import hinge_optimum
from tests.simulate import blobs, random_costs


def problem_of(seed, n, k, C, fit_intercept=True):
    rng = np.random.default_rng(seed)
    X, y = blobs(rng, n, 4, k, spread=1.0)
    costs = random_costs(rng, k)[y] * rng.uniform(0.2, 2.0, (n, 1))
    return HingeProblem(DenseGram(Kernel("rbf", gamma=0.3)(X)), lee_lin_wahba(y, C * costs), fit_intercept)


@pytest.mark.parametrize("fit_intercept", [True, False])
@pytest.mark.parametrize("seed", range(6))
def test_agrees_with_a_general_solver(seed, fit_intercept):
    problem = problem_of(seed, 60 + 10 * seed, 3 + seed % 4, 10.0 ** (seed % 3), fit_intercept)
    solution = KernelInteriorPoint().solve(problem, Settings(tol=1e-5, max_iter=100))
    assert solution.status is Status.SOLVED
    assert solution.certificate.gap == pytest.approx(problem.certify(solution.point).gap, abs=1e-12)
    optimum = hinge_optimum(problem)
    assert solution.certificate.dual <= optimum * (1 + 1e-7)
    assert solution.certificate.primal == pytest.approx(optimum, rel=2e-5)


def test_the_rank_is_lower_than_the_number_of_rows():
    problem = problem_of(1, 400, 6, 10.0)
    solution = KernelInteriorPoint().solve(problem, Settings(tol=1e-4, max_iter=100))
    assert solution.status is Status.SOLVED
    other = Portfolio().solve(problem, Settings(tol=1e-6))
    assert solution.certificate.primal == pytest.approx(other.certificate.primal, rel=2e-4)


@pytest.mark.parametrize("limits", [{"max_iter": 2}, {"time_limit": 1e-9}])
def test_a_stopped_solution_is_feasible(limits):
    solution = KernelInteriorPoint().solve(problem_of(2, 200, 5, 10.0), Settings(tol=1e-9, **limits))
    assert solution.status in (Status.MAX_ITER, Status.TIME_LIMIT)
    assert solution.certificate.infeasibility <= 1e-9
    assert solution.certificate.dual <= solution.certificate.primal


def test_the_policy_names_it_where_it_pays():
    problem = problem_of(4, 700, 6, 3.0)
    cheap = KernelInteriorSettings(iterations=0)  # expected to cost nothing
    dear = SplittingSettings(steps=10**9)
    solution = Portfolio(policy=Policy(kernel_interior=cheap, splitting=dear)).solve(problem, Settings(tol=1e-3))
    assert "kernel_interior" in [row.method for row in solution.trace]
    assert solution.status is Status.SOLVED
    assert solution.certificate.gap == pytest.approx(problem.certify(solution.point).gap, abs=1e-9)
    finer = Portfolio().solve(problem, Settings(tol=1e-6))
    assert finer.status is Status.SOLVED
    assert solution.certificate.primal == pytest.approx(finer.certificate.primal, rel=2e-3)


@pytest.mark.parametrize("C", [1.0, 100.0, 1e5])
@pytest.mark.parametrize("gamma", [0.01, 1.0])
def test_asked_for_more_than_can_be_had_it_stops_and_does_not_raise(C, gamma):
    X, y = blobs(np.random.default_rng(0), 60, 3, 4, spread=3.0)
    problem = HingeProblem(DenseGram(Kernel("rbf", gamma)(X)), lee_lin_wahba(y, C * (1 - np.eye(4))[y]))
    solution = KernelInteriorPoint().solve(problem, Settings(tol=1e-14, max_iter=200))
    assert abs(solution.certificate.gap) < 1e-5
    assert np.isfinite(solution.point.dual).all()


@pytest.mark.parametrize("fit_intercept", [True, False])
@pytest.mark.parametrize("seed", range(3))
def test_a_solution_for_smaller_bounds_is_a_start(seed, fit_intercept):
    smaller, problem = (problem_of(seed, 200, 5, C, fit_intercept) for C in (10.0, 18.0))
    settings = Settings(tol=1e-6, max_iter=100)
    start = KernelInteriorPoint().solve(smaller, settings).point
    warm, cold = (KernelInteriorPoint().solve(problem, settings, start=point) for point in (start, None))
    assert warm.status is cold.status is Status.SOLVED
    assert warm.n_iter < 0.8 * cold.n_iter
    assert warm.certificate.primal == pytest.approx(cold.certificate.primal, rel=2e-6)
    assert Portfolio().solve(problem, settings, start=start).status is Status.SOLVED
    back = KernelInteriorPoint().solve(smaller, settings, start=warm.point)  # beyond whose bounds it is no start
    assert back.status is Status.SOLVED
