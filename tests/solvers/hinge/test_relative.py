"""The inner loop of relative losses: its points, its working sets, its limits."""

import os
import signal
import threading
import time

import numpy as np
import pytest

from polymargin.gram import DenseGram, Kernel, LazyGram
from polymargin.problems.hinge import HingeProblem, crammer_singer, weston_watkins
from polymargin.solvers.contract import Settings, Status, at_rest
from polymargin.solvers.hinge.decomposition import Decomposition, DecompositionSettings
from polymargin.solvers.hinge.feasibility import feasible
from polymargin.solvers.hinge.inner_loop import IndefiniteKernelError
from polymargin.solvers.hinge.intercept import potential_intercept
from polymargin.solvers.hinge.portfolio import Portfolio
from polymargin.solvers.hinge.relative import RelativeLoop
from polymargin.solvers.policy import Policy
from tests.simulate import blobs

LOSSES = ["weston", "crammer"]


def machine(loss, gram, labels, *, C=1.0, fit_intercept=True):
    k = labels.max() + 1
    losses = (
        weston_watkins(labels, C * (1.0 - np.eye(k))[labels])
        if loss == "weston"
        else crammer_singer(labels, np.full(len(labels), C), k)
    )
    return HingeProblem(gram, losses, fit_intercept)


@pytest.fixture(scope="module")
def data():
    return blobs(np.random.default_rng(0), 150, 3, 4)


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("fit_intercept", [True, False])
def test_working_sets_and_whole_sets_agree(loss, fit_intercept, data):
    X, y = data
    kernel = Kernel("rbf", gamma=0.3)
    K = kernel(X)
    grams = [DenseGram(K), DenseGram(K.astype(np.float32)), LazyGram(kernel, X)]
    values = []
    for gram in grams:
        solution = Portfolio(policy=Policy(decomposition=DecompositionSettings(50))).solve(
            machine(loss, gram, y, fit_intercept=fit_intercept), Settings(1e-5)
        )
        assert solution.status is Status.SOLVED
        values.append(solution.certificate.primal)
    np.testing.assert_allclose(values, values[0], rtol=2e-5)


@pytest.mark.parametrize("loss", LOSSES)
def test_repair_restores_bounds_and_class_sums(loss, data):
    X, y = data
    problem = machine(loss, DenseGram(Kernel("rbf", gamma=0.3)(X)), y)
    dual = Portfolio().solve(problem, Settings(1e-3)).point.dual
    rng = np.random.default_rng(1)
    repaired = feasible(problem, dual * (1.0 + 1e-6 * rng.normal(size=dual.shape)))
    assert problem.losses.infeasibility(repaired) < 1e-14
    np.testing.assert_allclose(problem.coefficients(repaired).sum(axis=0), 0.0, atol=1e-11)
    np.testing.assert_allclose(repaired, dual, atol=1e-4)


def test_repair_starts_again_where_class_sums_cannot_be_had():
    problem = machine("weston", DenseGram(np.eye(4)), np.array([0, 0, 0, 1]))
    repaired = feasible(problem, problem.losses.upper.copy())
    assert np.abs(problem.coefficients(repaired).sum(axis=0)).max() < 1e-12


def test_potentials_are_exact_where_there_are_any():
    rng = np.random.default_rng(0)
    b = rng.normal(size=5)
    arcs = b[:, None] - b + rng.uniform(0.0, 1.0, size=(5, 5))
    arcs[0, 1:] = 1e300  # nothing can leave class 0
    np.fill_diagonal(arcs, 1e300)
    found = potential_intercept(arcs)
    assert (found[:, None] - found <= arcs + 1e-12).all()
    assert abs(found.sum()) < 1e-12
    order = rng.permutation(5)
    np.testing.assert_allclose(potential_intercept(np.ascontiguousarray(arcs[np.ix_(order, order)])), found[order])


@pytest.mark.parametrize("loss", LOSSES)
class TestLimits:
    @pytest.fixture
    def long_problem(self, loss):
        X, y = blobs(np.random.default_rng(0), 1500, 3, 6)
        return machine(loss, DenseGram(Kernel("rbf", gamma=0.3)(X)), y, C=1e4)

    def assert_feasible(self, solution):
        assert solution.certificate.infeasibility < 1e-12
        assert solution.certificate.gap > 1e-12

    def test_iterations(self, long_problem):
        solution = Portfolio().solve(long_problem, Settings(tol=1e-12, max_iter=2))
        assert solution.status is Status.MAX_ITER
        assert solution.n_iter == 2
        self.assert_feasible(solution)

    def test_time(self, long_problem):
        solution = Portfolio().solve(long_problem, Settings(tol=1e-12, time_limit=0.2))
        assert solution.status is Status.TIME_LIMIT
        self.assert_feasible(solution)

    def test_interruption(self, long_problem):
        pressed = []

        def press():
            pressed.append(time.process_time())  # of the processor: others may be at work on the machine
            os.kill(os.getpid(), signal.SIGINT)

        threading.Timer(0.2, press).start()
        solution = at_rest(Portfolio().solve, long_problem, Settings(tol=1e-14, time_limit=60.0))
        assert solution.status is Status.INTERRUPTED
        assert time.process_time() - pressed[0] < 1.0
        self.assert_feasible(solution)

    def test_indefinite_kernel_is_refused(self, loss):
        rng = np.random.default_rng(0)
        A = rng.normal(size=(30, 30))
        with pytest.raises(IndefiniteKernelError, match="semi-definite"):
            Portfolio().solve(machine(loss, DenseGram(A + A.T), np.arange(30) % 3), Settings())


@pytest.mark.parametrize("fit_intercept", [True, False])
@pytest.mark.parametrize("loss", LOSSES)
def test_rows_without_a_part_are_left_alone(loss, fit_intercept, monkeypatch):
    """Steps go over the rows that seem to have a part, and end where those over all rows end."""
    rng = np.random.default_rng(3)
    X, y = blobs(rng, 300, 3, 4, spread=3.0)
    gram = DenseGram(np.ascontiguousarray(Kernel("rbf", gamma=0.3)(X)))
    sizes, improve = [], RelativeLoop.improve

    def counted(self, rows, *arguments):
        sizes.append(len(rows))
        return improve(self, rows, *arguments)

    monkeypatch.setattr(RelativeLoop, "improve", counted)
    problem = machine(loss, gram, y, C=5.0, fit_intercept=fit_intercept)
    found = []
    for active_rows in ((1, 4000), (4000, 4000)):
        solution = Decomposition(DecompositionSettings(active_rows=active_rows)).solve(problem, Settings(tol=1e-9))
        assert solution.status is Status.SOLVED
        found.append((solution.certificate.primal, min(sizes)))
        sizes.clear()
    assert found[0][0] == pytest.approx(found[1][0], rel=1e-8)
    assert found[0][1] < 240 < found[1][1] == 300
