"""The solvers on explicit features against the reference solver, on every storage of the features."""

import numpy as np
import pytest
from scipy import sparse

from polymargin.gram import FeatureGram
from polymargin.problems.hinge import (
    HingePoint,
    HingeProblem,
    SimplexLosses,
    crammer_singer,
    lee_lin_wahba,
    weston_watkins,
)
from polymargin.solvers.contract import Progress, Settings, Status
from polymargin.solvers.hinge import block_descent
from polymargin.solvers.hinge.block_descent import BlockDescent
from polymargin.solvers.hinge.descent_settings import DescentSettings
from polymargin.solvers.hinge.feasibility import balanced
from polymargin.solvers.hinge.feature_newton import FeatureNewton, FeatureNewtonSettings, _Curvature, _Smoothed
from tests.oracles import hinge_optimum
from tests.simulate import blobs, random_costs

LOSSES = ("lee", "weston", "crammer")
both_solvers = pytest.mark.parametrize("solver", [BlockDescent(), FeatureNewton()], ids=lambda s: type(s).__name__)


def random_losses(rng, loss, labels, k, C):
    weights = C * rng.uniform(0.5, 2.0, len(labels))
    if loss == "crammer":
        return crammer_singer(labels, weights, k)
    upper = weights[:, None] * random_costs(rng, k)[labels]
    return lee_lin_wahba(labels, upper) if loss == "lee" else weston_watkins(labels, upper)


def check_against_reference(solver, problem, tol):
    solution = solver.solve(problem, Settings(tol, 50_000))
    optimum = hinge_optimum(problem)
    accuracy_of_reference = 1e-7 * max(1.0, optimum)
    assert solution.status is Status.SOLVED
    assert solution.certificate.dual <= optimum + accuracy_of_reference
    assert solution.certificate.primal >= optimum - accuracy_of_reference


def random_problem(rng, loss, log_C, fit_intercept):
    k, p = int(rng.integers(2, 7)), int(rng.integers(2, 9))
    X, labels = blobs(rng, int(rng.integers(10, 60)), p, k)
    return HingeProblem(FeatureGram(X), random_losses(rng, loss, labels, k, 10**log_C), fit_intercept)


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("seed", range(12))
def test_block_descent_reaches_the_optimum(loss, seed):
    rng = np.random.default_rng(seed)
    problem = random_problem(rng, loss, rng.uniform(-2.5, -0.5), seed % 4 > 0)
    check_against_reference(BlockDescent(seed), problem, 1e-5)


@pytest.mark.parametrize("storage", [np.asarray, sparse.csr_array])
@pytest.mark.parametrize("loss", LOSSES)
def test_block_descent_takes_rows_from_their_mean(loss, storage):
    """Where the origin lies makes no difference to a machine with an intercept: it took 200 times as long."""
    rng = np.random.default_rng(0)
    X, labels = blobs(rng, 200, 6, 4)
    losses = random_losses(rng, loss, labels, 4, 0.03)
    near, far = (
        BlockDescent().solve(HingeProblem(FeatureGram(storage(X + place)), losses, True), Settings(1e-4, 5000))
        for place in (0.0, 30.0)
    )
    assert near.status is far.status is Status.SOLVED
    assert far.n_iter <= 2 * near.n_iter
    assert far.certificate.primal == pytest.approx(near.certificate.primal, rel=2e-4)


def test_a_mean_of_primal_points_is_sooner_within_the_tolerance():
    rng = np.random.default_rng(0)
    X, labels = blobs(rng, 400, 30, 6)
    problem = HingeProblem(FeatureGram(X), random_losses(rng, "lee", labels, 6, 0.03), True)
    last, mean = (
        BlockDescent(tuning=tuning).solve(problem, Settings(1e-4, 5000))
        for tuning in (DescentSettings(averaged=0.0), DescentSettings())
    )
    assert last.status is mean.status is Status.SOLVED
    assert mean.n_iter <= 0.95 * last.n_iter
    assert problem.certify(mean.point).gap == pytest.approx(mean.certificate.gap, abs=1e-9)


@pytest.mark.parametrize("storage", [np.asarray, sparse.csr_array])
@pytest.mark.parametrize("fit_intercept", [True, False])
def test_matrices_of_classes_made_whole_solve_newtons_system(storage, fit_intercept):
    rng = np.random.default_rng(1)
    X, labels = blobs(rng, 50, 6, 4)
    losses = random_losses(rng, "lee", labels, 4, 0.1)
    problem = HingeProblem(FeatureGram(storage(30.0 * X)), losses, fit_intercept)
    model = _Smoothed(problem, Progress(Settings()), None, FeatureNewtonSettings(pair_rows=16))
    curvature = _Curvature(model, model.first(None, 1e-3))
    assert curvature.is_small
    V = rng.normal(size=(7, 4))
    V -= V.mean(axis=1, keepdims=True)
    V[-1] *= fit_intercept
    np.testing.assert_allclose(curvature.preconditioner()(curvature.product(V)), V, atol=1e-4)


@pytest.mark.parametrize("seed", range(5))
def test_feature_newton_reaches_the_optimum_by_samples_of_rows(seed):
    rng = np.random.default_rng(seed)
    problem = random_problem(rng, "lee", rng.uniform(-2.5, 2.5), seed % 4 > 0)
    check_against_reference(FeatureNewton(FeatureNewtonSettings(whole_features=0)), problem, 1e-7)


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("seed", range(20))
def test_feature_newton_reaches_the_optimum(loss, seed):
    rng = np.random.default_rng(seed)
    problem = random_problem(rng, loss, rng.uniform(-3.0, 2.0), seed % 4 > 0)
    check_against_reference(FeatureNewton(), problem, 1e-7)


@both_solvers
@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("max_iter", [0, 3])
def test_a_start_that_another_problem_left_is_certified_truly(solver, loss, max_iter):
    """Without some rows the classes' coefficients no longer sum to zero, which no dual bound may overlook."""
    rng = np.random.default_rng(3)
    problem = random_problem(rng, loss, -1.0, fit_intercept=True)
    point = FeatureNewton().solve(problem, Settings(1e-7, 50_000)).point
    rest = np.arange(5, problem.gram.n)
    losses = problem.losses.restricted(rest)
    smaller = HingeProblem(FeatureGram(problem.gram.features[rest]), losses, fit_intercept=True)
    start = HingePoint(losses.dual_of(problem.coefficients(point.dual)[rest]), point.intercept)
    certificate = solver.solve(smaller, Settings(1e-7, max_iter), start=start).certificate
    optimum = hinge_optimum(smaller)
    assert certificate.dual <= optimum + 1e-7 * max(1.0, optimum)
    assert certificate.gap >= 0.0


@both_solvers
@pytest.mark.parametrize("loss", LOSSES)
def test_storage_does_not_matter(solver, loss):
    rng = np.random.default_rng(3)
    X, labels = blobs(rng, 50, 6, 4)
    X[np.abs(X) < 0.7] = 0.0
    X = X.astype(np.float32).astype(np.float64)  # so that single precision holds the same numbers
    losses = random_losses(rng, loss, labels, 4, 0.3)
    wide = sparse.csr_array(X)
    wide.indices, wide.indptr = wide.indices.astype(np.int64), wide.indptr.astype(np.int64)
    duals = [
        solver.solve(HingeProblem(FeatureGram(features), losses), Settings(1e-6, 50_000)).point.dual
        for features in (X, np.asfortranarray(X), X.astype(np.float32), sparse.csr_matrix(X), wide,
                         sparse.csr_array(X.astype(np.float32)))
    ]  # fmt: skip
    for dual in duals[1:]:
        np.testing.assert_allclose(dual, duals[0], atol=1e-6)


@both_solvers
def test_several_simplices_an_example_and_a_tilt(solver):
    rng = np.random.default_rng(5)
    k, n = 4, 30
    X, labels = blobs(rng, n, 3, k)
    example = np.repeat(np.arange(n), 2)
    anchor = np.column_stack([labels, (labels + 1) % k]).ravel()
    losses = SimplexLosses(example, anchor, rng.uniform(0.1, 0.5, 2 * n), 1.0, n, k)
    tilt = rng.normal(size=(n, k)) * 0.02
    tilt -= tilt.mean(axis=1, keepdims=True)
    problem = HingeProblem(FeatureGram(X), losses, tilt=tilt)
    solution = solver.solve(problem, Settings(1e-6, 50_000))
    assert solution.status is Status.SOLVED
    assert solution.certificate.primal == pytest.approx(hinge_optimum(problem), rel=2e-6)


@both_solvers
@pytest.mark.parametrize("loss", LOSSES)
def test_warm_start_saves_iterations(solver, loss):
    rng = np.random.default_rng(8)
    X, labels = blobs(rng, 60, 5, 3)
    problem = HingeProblem(FeatureGram(X), random_losses(rng, loss, labels, 3, 0.2))
    cold = solver.solve(problem, Settings(1e-5, 5000))
    warm = solver.solve(problem, Settings(1e-5, 5000), start=cold.point)
    assert warm.status is Status.SOLVED
    assert warm.n_iter < cold.n_iter / 2


@both_solvers
@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("limits", [{"max_iter": 2}, {"time_limit": 1e-9}])
def test_stopped_early_keeps_a_feasible_point(solver, loss, limits):
    rng = np.random.default_rng(9)
    X, labels = blobs(rng, 200, 5, 4)
    problem = HingeProblem(FeatureGram(X), random_losses(rng, loss, labels, 4, 1.0))
    solution = solver.solve(problem, Settings(1e-9, **limits))
    assert solution.status in (Status.MAX_ITER, Status.TIME_LIMIT)
    assert solution.certificate.infeasibility < 1e-12
    assert solution.certificate.gap > 1e-9


@pytest.mark.parametrize("form", [np.asarray, sparse.csr_array])
@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("C", [1e-4, 0.03, 1.0])
def test_what_block_descent_leaves_is_what_it_certifies(form, loss, C):
    """Weights are those of the scores; their objective and that of the repaired dual point are certified."""
    rng = np.random.default_rng(3)
    X, labels = blobs(rng, 120, 5, 4)
    problem = HingeProblem(FeatureGram(form(X)), random_losses(rng, loss, labels, 4, C))
    solution = BlockDescent().solve(problem, Settings(1e-4, 5_000))
    point, certificate = solution.point, solution.certificate
    assert solution.status is Status.SOLVED
    W, R = X.T @ problem.model(point), problem.coefficients(point.dual)
    np.testing.assert_allclose(point.weights, W, atol=1e-12 * np.abs(W).max())
    primal = 0.5 * np.vdot(W, W) + problem.losses.value(X @ W + point.intercept)
    dual = problem.losses.dual_value(point.dual) - 0.5 * np.square(X.T @ R).sum()
    np.testing.assert_allclose([certificate.primal, certificate.dual], [primal, dual], rtol=1e-12)
    afresh = problem.certify(point)
    np.testing.assert_allclose([afresh.primal, afresh.dual], [primal, dual], rtol=1e-12)
    assert max(afresh.infeasibility, certificate.infeasibility) <= 1e-9


def test_a_point_far_from_the_tolerance_is_not_repaired(monkeypatch):
    """What it will be worth is seen before; only the last one is repaired whatever that is."""
    rng = np.random.default_rng(0)
    X, labels = blobs(rng, 120, 5, 4)
    problem = HingeProblem(FeatureGram(X), weston_watkins(labels, random_costs(rng, 4)[labels]))
    repaired = []
    monkeypatch.setattr(
        block_descent, "balanced", lambda problem, dual: repaired.append(1) or balanced(problem, dual)
    )
    dual = problem.losses.upper * rng.random((120, 4))
    point = HingePoint(dual, np.zeros(4), primal=problem.coefficients(dual))
    best = block_descent._Best(problem, HingePoint(problem.losses.resting_dual(), np.zeros(4)), 1e-3, 0.0)
    seen = best.offer(point, may_fail=True)
    assert not repaired
    assert not seen.is_proof
    certificate = best.offer(point)
    assert repaired
    assert certificate.is_proof
