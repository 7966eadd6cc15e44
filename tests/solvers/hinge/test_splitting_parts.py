"""Steps on a part of the examples: the solution is that of all, whatever part they begin with."""

from dataclasses import replace

import numpy as np
import pytest

from polymargin.gram import DenseGram, Kernel
from polymargin.problems.hinge import HingePoint, HingeProblem, lee_lin_wahba
from polymargin.solvers.contract import Progress, Settings, Status
from polymargin.solvers.hinge.decomposition import Decomposition, DecompositionSettings
from polymargin.solvers.hinge.splitting import DEFAULTS, Splitting
from polymargin.solvers.hinge.splitting_parts import Parts
from polymargin.solvers.hinge.splitting_penalty import climbed, pilot_of
from tests.oracles import hinge_optimum
from tests.simulate import blobs, random_costs

PARTS = replace(DEFAULTS, least_rows=0, pilot_rows=(20, 1000))
"""Parts however few examples there are, by pilots of few."""


def problem_of(seed, n, k, C, *, spread=1.0, fit_intercept=True, dtype=np.float64):
    rng = np.random.default_rng(seed)
    X, y = blobs(rng, n, 4, k, spread=spread)
    costs = random_costs(rng, k)[y] * rng.uniform(0.2, 2.0, (n, 1))
    K = Kernel("rbf", gamma=0.3)(X).astype(dtype)
    return HingeProblem(DenseGram(K), lee_lin_wahba(y, C * costs), fit_intercept)


def beginning(problem, rows):
    """A dual point with variables above zero on these examples alone."""
    dual = np.zeros(problem.losses.upper.shape)
    dual[rows] = 0.1 * problem.losses.upper[rows]
    return HingePoint(dual, np.zeros(dual.shape[1]))


@pytest.mark.parametrize("fit_intercept", [True, False])
@pytest.mark.parametrize("seed", range(8))
def test_the_solution_is_that_of_all_examples(seed, fit_intercept):
    rng = np.random.default_rng(seed)
    n, k, C = 60 + 10 * seed, 3 + seed % 4, 10.0 ** (seed % 4 - 1)
    problem = problem_of(seed, n, k, C, spread=[0.5, 1.0, 3.0][seed % 3], fit_intercept=fit_intercept)
    start = beginning(problem, rng.permutation(n)[: n // 3])
    solution = Splitting(PARTS).solve(problem, Settings(tol=1e-5), start=start)
    assert solution.status is Status.SOLVED
    assert solution.certificate.infeasibility <= 1e-9
    assert solution.certificate.gap == pytest.approx(problem.certify(solution.point).gap, abs=1e-12)
    optimum = hinge_optimum(problem)
    assert solution.certificate.dual <= optimum * (1 + 1e-5)
    assert solution.certificate.primal == pytest.approx(optimum, rel=2e-5)


@pytest.mark.parametrize("rows", ["one", "one class", "two classes", "repeated"])
def test_any_part_will_do_to_begin_with(rows):
    problem = problem_of(3, 90, 4, 10.0)
    labels = problem.losses.labels
    if rows == "repeated":
        twice = np.repeat(np.arange(45), 2)
        gram = DenseGram(problem.gram.matrix[np.ix_(twice, twice)])
        problem = HingeProblem(gram, problem.losses.restricted(twice))
        part = np.arange(0, 90, 2)
    else:
        part = {"one": [0], "one class": labels == 1, "two classes": labels < 2}[rows]
    solution = Splitting(PARTS).solve(problem, Settings(tol=1e-5), start=beginning(problem, part))
    assert solution.status is Status.SOLVED
    assert solution.certificate.primal == pytest.approx(hinge_optimum(problem), rel=2e-5)


def test_examples_at_zero_are_left_out_and_the_work_is_less():
    """At a large C most examples of classes that lie apart have no part in the solution."""
    problem = problem_of(0, 1200, 4, 100.0, spread=2.0)
    settings = Settings(tol=1e-3)
    start = (
        Decomposition(DecompositionSettings(working_set=600)).solve(problem, replace(settings, max_iter=2)).point
    )
    in_parts, whole = (
        Splitting(replace(tuning, least_rows=rows)).solve(problem, settings, start=start)
        for tuning, rows in ((DEFAULTS, 900), (DEFAULTS, 10**9))
    )
    assert in_parts.status is whole.status is Status.SOLVED
    assert in_parts.trace[0].work < 0.7 * whole.trace[0].work
    assert in_parts.certificate.primal == pytest.approx(whole.certificate.primal, rel=2e-3)


def test_the_models_of_ever_more_examples_tell_which_have_a_part():
    """Hardly any that has one is missed, and most that have none are left out; rho grows with the examples."""
    problem = problem_of(4, 1600, 4, 1.0, spread=2.0)
    with Progress(Settings(tol=1e-6)) as progress:
        resting = HingePoint(problem.losses.resting_dual(), np.zeros(4))
        pilot = pilot_of(problem, progress)
        last = climbed(problem, pilot, progress)
        parts = Parts(problem, resting, progress, DEFAULTS)
        solved = Splitting().solve(problem, Settings(tol=1e-6))
    assert last.rho >= pilot.rho
    assert len(pilot.seen.rows) == 300
    assert len(last.seen.rows) < 1600 / DEFAULTS.growth
    active = np.flatnonzero((solved.point.dual > 0.0).any(axis=1))
    assert len(np.setdiff1d(active, parts.rows)) <= 0.03 * 1600
    assert len(np.setdiff1d(parts.rows, active)) <= 0.5 * (1600 - len(active))


def test_no_example_leaves_twice():
    """Those that had fallen to zero and lost for it come back to stay: parts cannot go in circles."""
    n = 1000
    problem = problem_of(1, n, 5, 100.0, spread=2.0)
    with Progress(Settings(tol=1e-5)) as progress:
        parts = Parts(problem, beginning(problem, np.arange(n)), progress, replace(PARTS, believed=np.inf))
        departures = np.zeros(n, dtype=int)
        inside = np.isin(np.arange(n), parts.rows)
        for _ in progress:
            assert parts.iterate.advance(15, progress)
            parts.look()
            if parts.best.within(1e-5):
                break
            assert parts.go_on()
            now = np.isin(np.arange(n), parts.rows)
            departures += inside & ~now
            inside = now
    assert parts.best.within(1e-5)
    assert departures.max() <= 1
    assert departures.sum() > 0


@pytest.mark.parametrize("max_iter", [1, 2, 3, 5])
def test_stopped_on_a_part_the_point_is_certified_on_all(max_iter):
    problem = problem_of(2, 150, 4, 10.0)
    start = beginning(problem, np.arange(60))
    solution = Splitting(PARTS).solve(problem, Settings(tol=1e-14, max_iter=max_iter), start=start)
    assert solution.status is Status.MAX_ITER
    measured = problem.certify(solution.point)
    assert solution.certificate.primal == pytest.approx(measured.primal, rel=1e-11)
    assert solution.certificate.dual == pytest.approx(measured.dual, rel=1e-9, abs=1e-9)
    assert solution.certificate.gap <= problem.certify(start).gap


def test_a_matrix_in_single_precision_will_do():
    problem = problem_of(5, 100, 3, 1.0, dtype=np.float32)
    solution = Splitting(PARTS).solve(problem, Settings(tol=1e-4), start=beginning(problem, np.arange(40)))
    assert solution.status is Status.SOLVED
