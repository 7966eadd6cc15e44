"""Splitting for losses of differences against a general-purpose solver and the definition of its steps."""

from dataclasses import replace

import numpy as np
import pytest
from scipy import sparse

from polymargin import MulticategorySVC
from polymargin._native.skinny import available
from polymargin.gram import DenseGram, FeatureGram
from polymargin.problems.hinge import (
    HingePoint,
    HingeProblem,
    SimplexLosses,
    crammer_singer,
    lee_lin_wahba,
    weston_watkins,
)
from polymargin.solvers.contract import Progress, Settings, Status
from polymargin.solvers.hinge import relative_splitting, weighted_inverse
from polymargin.solvers.hinge.inverses import Columns
from polymargin.solvers.hinge.relative_splitting import RelativeSplitting, RelativeSplittingSettings
from polymargin.solvers.hinge.weighted_inverse import WeightedInverse
from tests.oracles import hinge_optimum
from tests.simulate import blobs, random_costs

LOSSES = ("crammer", "weston")
FORMS = {"dense": np.asarray, "sparse": sparse.csr_matrix, "single": lambda X: X.astype(np.float32)}
both = pytest.mark.parametrize("loss", LOSSES)


def losses_of(loss, rng, y, k, C):
    weights = C * rng.uniform(0.2, 2.0, len(y))
    if loss == "crammer":
        return crammer_singer(y, weights, k)
    return weston_watkins(y, weights[:, None] * random_costs(rng, k)[y])


def problem_of(loss, seed, n, p, k, C, *, fit_intercept=True, form=np.asarray):
    rng = np.random.default_rng(seed)
    X, y = blobs(rng, n, p, k, spread=1.0)
    return HingeProblem(FeatureGram(form(X)), losses_of(loss, rng, y, k, C), fit_intercept)


def optimum_of(problem):
    X = problem.gram.features
    X = X.toarray() if sparse.issparse(X) else X.astype(np.float64)
    return hinge_optimum(HingeProblem(DenseGram(X @ X.T), problem.losses, problem.fit_intercept))


def check(problem, tol=1e-5):
    solution = RelativeSplitting().solve(problem, Settings(tol=tol))
    assert solution.status is Status.SOLVED
    assert solution.certificate.gap == pytest.approx(problem.certify(solution.point).gap, abs=1e-9)
    assert solution.certificate.infeasibility <= 1e-9
    optimum = optimum_of(problem)
    assert solution.certificate.dual <= optimum + 1e-7 * max(1.0, optimum)
    assert solution.certificate.primal == pytest.approx(optimum, rel=2 * tol, abs=2 * tol)


@both
@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("fit_intercept", [True, False])
@pytest.mark.parametrize("C", [0.01, 1.0, 100.0])
def test_agrees_with_a_general_solver(loss, C, fit_intercept, form):
    check(problem_of(loss, 0, 90, 5, 4, C, fit_intercept=fit_intercept, form=FORMS[form]))


@both
@pytest.mark.parametrize("seed", range(8))
def test_agrees_on_random_problems(loss, seed):
    rng = np.random.default_rng(seed)
    k, p, scale = int(rng.integers(2, 7)), int(rng.integers(1, 9)), 10.0 ** rng.uniform(-2.0, 2.0)
    n = int(rng.integers(2 * p, 80))
    C = 10.0 ** rng.uniform(-2.0, 1.0) / scale**2
    check(problem_of(loss, seed, n, p, k, C, fit_intercept=seed % 4 > 0, form=lambda X: scale * X))


@both
@pytest.mark.parametrize("kind", ["repeated", "constant", "zero", "dependent", "one class each", "two rows"])
def test_degenerate_rows(loss, kind):
    rng = np.random.default_rng(0)
    n, k = (2, 2) if kind == "two rows" else (40, 3)
    X, y = rng.normal(size=(n, 4 if n > 2 else 1)), np.arange(n) % k
    if kind == "repeated":
        X = X[np.arange(n) % 5]
    elif kind == "constant":
        X[:, 1:] = 1.0
    elif kind == "zero":
        X[:] = 0.0
    elif kind == "dependent":
        X = np.hstack([X, X[:, :2], np.zeros((n, 1))])
    elif kind == "one class each":
        y = np.r_[np.zeros(n - 2, dtype=int), 1, 2]
    check(HingeProblem(FeatureGram(X), losses_of(loss, rng, y, k, 1.0)))


def test_hinges_without_weight():
    rng = np.random.default_rng(0)
    X, y = blobs(rng, 60, 4, 4, spread=1.0)
    upper = (1.0 - np.eye(4))[y] * (rng.random((60, 4)) < 0.6)
    check(HingeProblem(FeatureGram(X), weston_watkins(y, upper)))


@both
@pytest.mark.parametrize("fit_intercept", [True, False])
def test_a_step_is_that_of_the_definition(loss, fit_intercept):
    """x minimises the quadratic, class sums held equal, plus the weighted squared distance from 2z - t."""
    problem = problem_of(loss, 0, 30, 4, 4, 1.0, fit_intercept=fit_intercept)
    X, k, tuning = problem.gram.features, 4, relative_splitting.DEFAULTS
    start = HingePoint(problem.losses.resting_dual(), np.zeros(k))
    iterate = relative_splitting._Iterate(problem, start, tuning)
    rng = np.random.default_rng(1)
    iterate.rho = rng.uniform(0.2, 4.0, 30)
    assert iterate.prepare(Progress(Settings()))
    t = rng.normal(size=(30, k))
    t -= t.mean(axis=1, keepdims=True)
    iterate.t = t.copy()
    z = np.empty_like(t)
    relative_splitting.project(t, iterate.label, iterate.bound, iterate.shift, z)
    assert iterate.advance(1, Progress(Settings()))
    D, ones = np.diag(iterate.rho), np.ones((30, 1 if fit_intercept else 0))
    system = np.block([[X @ X.T + D, ones], [ones.T, np.zeros((ones.shape[1],) * 2)]])
    right = np.vstack([D @ (2 * z - t), np.zeros((ones.shape[1], k))])
    x = np.linalg.solve(system, right)[:30]
    np.testing.assert_allclose(iterate.t, t + tuning.relaxation * (x - z), rtol=1e-4, atol=1e-4)
    iterate.certified()
    # what the next step adds to was put right in double precision
    np.testing.assert_allclose(iterate.x, x, rtol=1e-7, atol=1e-7)


@both
def test_a_solution_stays_where_it_is(loss):
    problem = problem_of(loss, 3, 80, 5, 4, 1.0)
    solution = RelativeSplitting().solve(problem, Settings(tol=1e-9))
    assert solution.status is Status.SOLVED
    again = RelativeSplitting().solve(problem, Settings(tol=1e-6, max_iter=2), start=solution.point)
    assert again.certificate.gap < 1e-6


@both
def test_scores_and_dual_point_are_certified_each_by_itself(loss):
    problem = problem_of(loss, 1, 150, 6, 5, 30.0)
    solution = RelativeSplitting().solve(problem, Settings(tol=1e-3))
    point, certificate, X = solution.point, solution.certificate, problem.gram.features
    assert solution.status is Status.SOLVED
    np.testing.assert_allclose(point.primal.sum(axis=1), 0.0, atol=1e-9)
    W = X.T @ point.primal
    primal = 0.5 * np.vdot(W, W) + problem.losses.value(X @ W + point.intercept)
    assert certificate.primal == pytest.approx(primal, rel=1e-11)
    R = problem.coefficients(point.dual)
    np.testing.assert_allclose(R.sum(axis=0), 0.0, atol=1e-9 * np.abs(R).sum())
    dual = problem.losses.dual_value(point.dual) - 0.5 * np.square(X.T @ R).sum()
    assert certificate.dual == pytest.approx(dual, rel=1e-11)
    optimum = optimum_of(problem)
    assert dual <= optimum * (1 + 1e-9)
    assert primal >= optimum * (1 - 1e-9)


@both
@pytest.mark.parametrize("C", [0.01, 1.0, 100.0])
@pytest.mark.parametrize("scale", [0.0, 0.1, 1.0])
def test_the_best_length_has_about_the_lowest_objective(loss, C, scale):
    problem = problem_of(loss, 4, 60, 4, 4, C)
    rng = np.random.default_rng(0)
    dual = problem.losses.within_bounds(rng.uniform(0.1, 1.0, (60, 4)) * problem.losses.sizes)
    R = scale * problem.coefficients(dual)
    H, intercept = problem.gram.matmul(R), rng.normal(size=4)
    intercept -= intercept.mean()

    def objective(length):
        return problem.objective(length * R, length * H, length * intercept)

    best = relative_splitting.best_length(problem, R, H, intercept, RelativeSplittingSettings(lengths=40))
    if scale:
        assert objective(best) <= min(map(objective, np.linspace(0.0, 5.0, 1001))) * (1 + 1e-9)
    else:
        assert best == 1.0


@both
def test_rows_at_a_vertex_are_told(loss):
    problem = problem_of(loss, 2, 120, 5, 4, 1.0)
    solution = RelativeSplitting().solve(problem, Settings(tol=1e-8))
    dual, sizes = solution.point.dual, problem.losses.sizes
    inside = (dual > 1e-7 * sizes) & (dual < (1.0 - 1e-7) * sizes)
    iterate = relative_splitting._Iterate(problem, solution.point, RelativeSplittingSettings(inside=1e-7))
    np.testing.assert_array_equal(iterate._is_free(), inside.any(axis=1))
    least = iterate.rho.min()
    np.testing.assert_allclose(iterate.rho, np.where(inside.any(axis=1), least, 10.0 * least))


@pytest.mark.parametrize("compiled", [True, False])
@pytest.mark.parametrize("k", [1, 7, 9, 20])
@pytest.mark.parametrize("repeated", [False, True])
def test_the_inverse(k, compiled, repeated, monkeypatch):
    """Features of which some are others once more have directions without a part."""
    monkeypatch.setattr(weighted_inverse, "available", lambda: compiled and available())
    monkeypatch.setattr("polymargin.solvers.hinge.inverses.available", lambda: compiled and available())
    rng = np.random.default_rng(k)
    X, V = rng.normal(size=(60, 8)), rng.normal(size=(60, k))
    X = np.hstack([X, X[:, :3], np.zeros((60, 1))]) if repeated else X
    inverse = WeightedInverse(X)
    assert inverse.prepare(Progress(Settings()))
    assert inverse.rows.shape == (60, 8)
    for spread in (0.0, 2.0):
        D = 0.7 * 10.0 ** rng.uniform(-spread, spread, 60)
        inverse.weigh(D)
        exact = np.linalg.solve(X @ X.T + np.diag(D), V)
        np.testing.assert_allclose(inverse.solved(V), exact, atol=1e-4 * np.abs(exact).max())
        columns = Columns(60, k, np.float32)
        columns.take(V)
        inverse.apply(columns)
        answer = V - columns.answer[:, :k] / D[:, None]
        np.testing.assert_allclose(answer, np.linalg.solve(X @ X.T + np.diag(D), D[:, None] * V), atol=1e-3)


@both
@pytest.mark.parametrize("limits", [{"max_iter": 0}, {"max_iter": 1}, {"time_limit": 1e-9}, {"work": 1e-9}])
def test_a_stopped_solution_is_feasible(loss, limits):
    problem = problem_of(loss, 2, 200, 5, 4, 10.0)
    solution = RelativeSplitting().solve(problem, Settings(tol=1e-9, **limits))
    assert solution.status in (Status.MAX_ITER, Status.TIME_LIMIT, Status.WORK_LIMIT, Status.STALLED)
    assert solution.certificate.infeasibility <= 1e-9
    assert solution.certificate.dual <= optimum_of(problem) * (1 + 1e-7)


@both
def test_the_start_of_another_problem_is_certified_truly(loss):
    problem = problem_of(loss, 5, 100, 5, 4, 1.0)
    point, rest = RelativeSplitting().solve(problem, Settings(tol=1e-6)).point, np.arange(5, 100)
    losses = problem.losses.restricted(rest)
    smaller = HingeProblem(FeatureGram(problem.gram.features[rest]), losses)
    start = HingePoint(losses.dual_of(problem.coefficients(point.dual)[rest]), point.intercept)
    certificate = RelativeSplitting().solve(smaller, Settings(tol=1e-6, max_iter=0), start=start).certificate
    assert certificate.infeasibility <= 1e-9
    assert 0.0 <= certificate.gap < 1.0


def test_what_it_does_not_take():
    problem = problem_of("weston", 0, 100, 10, 4, 1.0)
    few = RelativeSplitting(RelativeSplittingSettings(most_entries=100.0))
    assert few.accepts(problem) == "features must have at most 100 entries, not 100 x 10."
    assert "fewer than half the rows, not 60 of 100" in RelativeSplitting().accepts(
        problem_of("weston", 0, 100, 60, 3, 1.0)
    )
    assert "no linear term" in RelativeSplitting().accepts(replace(problem, tilt=np.zeros((100, 4))))
    assert "differences" in RelativeSplitting().accepts(
        replace(problem, losses=lee_lin_wahba(problem.losses.labels, problem.losses.upper))
    )
    assert "FeatureGram" in RelativeSplitting().accepts(replace(problem, gram=DenseGram(np.eye(100))))
    pairs = SimplexLosses(np.zeros(100, dtype=int), problem.losses.labels, np.ones(100), 2.0, 100, 4)
    assert "one maximum per example" in RelativeSplitting().accepts(replace(problem, losses=pairs))


@both
def test_the_policy_names_it_where_rows_overlap_at_a_large_C(loss):
    rng = np.random.default_rng(0)
    y = np.arange(1500) % 12
    X = rng.normal(size=(1500, 200)) + 0.15 * rng.normal(size=(12, 200))[y]
    model = MulticategorySVC(loss=loss, kernel="linear", tol=1e-3, C=100.0).fit(X, y)
    assert "relative_splitting" in [row.method for row in model.trace_]
    assert model.certificate_.gap <= 1e-3
