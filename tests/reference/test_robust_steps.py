"""The convex steps of the robust SVM against Clarabel and PIQP, and the DC algorithm's descent."""

import warnings

import cvxpy as cp
import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from polymargin.gram import DenseGram, FeatureGram, Kernel
from polymargin.problems.robust import (
    LOSSES,
    Curve,
    RobustProblem,
    consistent_truncation,
    margins,
)
from polymargin.solvers.contract import Settings, Status
from polymargin.solvers.hinge import _models, interior_point
from polymargin.solvers.hinge.decomposition import Decomposition
from polymargin.solvers.hinge.interior_point import InteriorPoint, InteriorSequence
from polymargin.solvers.hinge.portfolio import Portfolio
from polymargin.solvers.hinge.settings import InteriorSettings
from polymargin.solvers.robust.dc import DCAlgorithm, convex_solver
from polymargin.solvers.robust.proximal_newton import ProximalNewton, project_on_simplices
from tests.oracles import features_of_gram, hinge_optimum
from tests.simulate import blobs

UTILITIES = ("identity", "diagonal", "dense", "zeros")


def some_utility(kind, rng, k):
    match kind:
        case "identity":
            return np.eye(k)
        case "diagonal":
            return np.diag(rng.uniform(0.2, 3.0, k))
        case "dense":
            return np.eye(k) + rng.uniform(0.0, 0.8, (k, k))
        case "zeros":
            return np.eye(k) + rng.uniform(0.0, 0.8, (k, k)) * (rng.uniform(size=(k, k)) < 0.3)


def some_problem(rng, kernel, utility, *, loss="hinge"):
    k = int(rng.integers(2, 6))
    X, labels = blobs(rng, int(rng.integers(k + 3, 31)), int(rng.integers(1, 5)), k, spread=rng.choice([0.5, 2.0]))
    gram = FeatureGram(X) if kernel == "linear" else DenseGram(Kernel("rbf", 0.5)(X))
    weight = 10 ** rng.uniform(-2, 1.5) * some_utility(utility, rng, k)[labels]
    return RobustProblem(gram, weight, consistent_truncation(loss, k), bool(rng.integers(4)), loss)


@pytest.mark.parametrize("utility", UTILITIES)
@pytest.mark.parametrize("kernel", ["linear", "rbf"])
@pytest.mark.parametrize("seed", range(20))
def test_convex_step_agrees_with_clarabel_and_piqp(kernel, utility, seed):
    rng = np.random.default_rng([seed, len(utility), len(kernel)])
    problem = some_problem(rng, kernel, utility)
    scores = rng.normal(size=problem.weight.shape)
    step = problem.convex_step(
        problem.linearise(scores - scores.mean(axis=1, keepdims=True)) if seed % 4 else None
    )
    solver = InteriorPoint() if kernel == "linear" else ProximalNewton()

    solution = solver.solve(step, Settings(tol=1e-9, max_iter=200))

    assert solution.status is Status.SOLVED
    for oracle in ("clarabel", "piqp"):
        assert solution.certificate.primal == pytest.approx(hinge_optimum(step, oracle), rel=1e-7, abs=1e-7)


@pytest.mark.parametrize("flipped", [0, 1, 3, 25])
@pytest.mark.parametrize("seed", range(6))
def test_step_near_the_last_one_goes_on_from_there(seed, flipped):
    rng = np.random.default_rng([seed, flipped])
    X, labels = blobs(rng, 120, 2, 3, spread=1.0)
    problem = RobustProblem(FeatureGram(X), 0.3 * some_utility("dense", rng, 3)[labels], -0.5)
    scores = rng.normal(size=(120, 3))
    first = problem.linearise(scores)
    scores[:flipped] *= -1.0
    second = problem.linearise(scores) if flipped else first
    solver, exactly = InteriorSequence(), Settings(tol=1e-9, max_iter=200)
    solver.solve(problem.convex_step(first), Settings(tol=1e-3, max_iter=200))

    step = problem.convex_step(second)
    solution = solver.solve(step, exactly, start=problem.vertices(second))

    assert solution.status is Status.SOLVED
    assert solution.certificate.primal == pytest.approx(hinge_optimum(step), rel=1e-7, abs=1e-7)
    if flipped <= 1:
        assert solution.n_iter < InteriorPoint().solve(step, exactly, start=problem.vertices(second)).n_iter


def test_a_start_too_near_the_last_solution_is_given_up():
    tuning = InteriorSettings(stretch=0.0, narrowest=1e-7)
    rng = np.random.default_rng(0)
    X, labels = blobs(rng, 200, 2, 3, spread=2.0)
    problem = RobustProblem(FeatureGram(X), np.eye(3)[labels], -0.5)
    solver, exactly = InteriorSequence(tuning=tuning), Settings(tol=1e-9, max_iter=200)
    solver.solve(problem.convex_step(), exactly)
    tangent = problem.linearise(rng.normal(size=(200, 3)))
    step = problem.convex_step(tangent)
    solution = solver.solve(step, exactly, start=problem.vertices(tangent))
    from_afar = InteriorPoint().solve(step, exactly, start=problem.vertices(tangent))
    assert solution.status is Status.SOLVED
    assert solution.n_iter >= from_afar.n_iter + tuning.short_steps_nearby
    assert solution.certificate.primal == pytest.approx(hinge_optimum(step), rel=1e-7)


def restricted_steps(monkeypatch, seed, share):
    """A solver after a first step, the next step with a few slopes changed, and the numbers of losses kept."""
    kept = []

    class Watched(_models.NearKinks):
        def __init__(self, *arguments):
            super().__init__(*arguments)
            kept.append(len(self.kept))

    monkeypatch.setattr(_models, "NearKinks", Watched)
    monkeypatch.setattr(interior_point, "NearKinks", Watched)
    rng = np.random.default_rng(seed)
    X, labels = blobs(rng, 300, 2, 3, spread=2.0)
    problem = RobustProblem(FeatureGram(X), some_utility("zeros", rng, 3)[labels], -0.5)
    solver = InteriorSequence(tuning=InteriorSettings(few_losses=50, share=share))
    scores = rng.normal(size=(300, 3))
    solver.solve(problem.convex_step(problem.linearise(scores)), Settings(tol=1e-6, max_iter=200))
    scores[:3] *= -1.0
    second = problem.linearise(scores)
    return problem, solver, second, kept


@pytest.mark.parametrize("share", [0.02, 0.3])
@pytest.mark.parametrize("seed", range(6))
def test_step_restricted_to_losses_near_a_kink_is_the_step_of_all(monkeypatch, seed, share):
    problem, solver, tangent, kept = restricted_steps(monkeypatch, seed, share)
    step = problem.convex_step(tangent)
    solution = solver.solve(step, Settings(tol=1e-9, max_iter=300), start=problem.vertices(tangent))
    assert len(kept) == 1
    assert kept[0] <= share * problem.n_pairs
    assert solution.status is Status.SOLVED
    assert solution.certificate.primal == pytest.approx(hinge_optimum(step), rel=1e-7, abs=1e-7)


def test_dc_descends_by_steps_that_are_restricted():
    convex = InteriorSequence(tuning=InteriorSettings(few_losses=50))
    rng = np.random.default_rng(0)
    X, labels = blobs(rng, 400, 2, 3, spread=3.0)
    problem = RobustProblem(FeatureGram(X), some_utility("dense", rng, 3)[labels], -0.5)
    solution = DCAlgorithm(convex, 50).solve(problem, Settings(tol=1e-7, max_iter=200))
    objectives = np.array([record.primal for record in solution.history])
    assert solution.status is Status.SOLVED
    assert len(objectives) > 3
    assert (np.diff(objectives) <= 1e-9 * np.abs(objectives[1:])).all()


def curved_optimum(step):
    """Optimal value of a step with smooth losses: phi is the infimal convolution of the loss and its tangent.

    Clarabel alone: the exponential cone is nothing for PIQP, which solves quadratic programs.
    """
    losses, (n, k) = step.losses, (step.losses.n_examples, step.losses.n_classes)
    X = features_of_gram(step.gram)
    W, b, z = cp.Variable((X.shape[1], k)), cp.Variable((1, k)), cp.Variable(len(losses.weight))
    F = X @ W + np.ones((n, 1)) @ b
    maxima = cp.hstack(
        [
            cp.max(F[i, [m for m in range(k) if m != j]]) - F[i, j]
            for i, j in zip(losses.example, losses.anchor, strict=True)
        ]
    )
    curve = losses.curve
    smooth = cp.exp(z) if curve.loss == "exponential" else cp.logistic(z)
    objective = 0.5 * cp.sum_squares(W) + losses.pair_weight @ (smooth + curve.steepest * cp.pos(maxima - z))
    if step.tilt is not None:
        objective += cp.sum(cp.multiply(step.tilt, F))
    constraints = [z <= -curve.truncation, cp.sum(W, axis=1) == 0, cp.sum(b) == 0]
    if not step.fit_intercept:
        constraints.append(b == 0)
    exactly = dict.fromkeys(("tol_gap_abs", "tol_gap_rel", "tol_feas"), 1e-10)
    with warnings.catch_warnings():
        # short of 1e-10 Clarabel warns; an answer that is too far off fails the comparison
        warnings.filterwarnings("ignore", message="Solution may be inaccurate")
        return cp.Problem(cp.Minimize(objective), constraints).solve(solver="CLARABEL", **exactly)


@pytest.mark.parametrize("utility", ["identity", "diagonal"])
@pytest.mark.parametrize("solver", [Portfolio(), Decomposition()], ids=["portfolio", "decomposition"])
@pytest.mark.parametrize("seed", range(15))
def test_hinge_machines_methods_take_the_linear_term(solver, utility, seed):
    rng = np.random.default_rng([seed, len(utility)])
    problem = some_problem(rng, "rbf", utility)
    assert problem.losses.sees_differences
    start = None
    for _ in range(3):
        # the point that a step leaves holds coefficients of its own linear term, not of the next one's
        step = problem.convex_step(problem.linearise(rng.normal(size=problem.weight.shape)))
        solution = solver.solve(step, Settings(tol=1e-8, max_iter=10_000), start=start)
        expected = ProximalNewton().solve(step, Settings(tol=1e-9, max_iter=200))
        assert solution.certificate.within(1e-8)
        assert solution.certificate.primal == pytest.approx(expected.certificate.primal, rel=1e-7, abs=1e-9)
        assert step.certify(solution.point).within(1e-8)
        start = solution.point


@pytest.mark.parametrize("loss", ["exponential", "logistic"])
@pytest.mark.parametrize("kernel", ["linear", "rbf"])
@pytest.mark.parametrize("seed", range(8))
def test_smooth_step_agrees_with_clarabel(kernel, loss, seed):
    rng = np.random.default_rng(seed)
    problem = some_problem(rng, kernel, UTILITIES[seed % 4], loss=loss)
    step = problem.convex_step(problem.linearise(rng.normal(size=problem.weight.shape)) if seed % 3 else None)
    solution = convex_solver(problem).solve(step, Settings(tol=1e-9, max_iter=200))
    assert solution.status is Status.SOLVED
    primal, optimum = solution.certificate.primal, curved_optimum(step)
    assert primal <= optimum + 1e-7 * max(1.0, optimum)
    # Clarabel may end early, above the optimum, and calls its answer inaccurate; our own lower bound holds then
    assert primal == pytest.approx(optimum, rel=1e-6, abs=1e-6)


@settings(max_examples=25, deadline=None)
@given(
    seed=st.integers(0, 10_000),
    utility=st.sampled_from(UTILITIES),
    loss=st.sampled_from(LOSSES),
    s=st.one_of(st.just(0.0), st.floats(-2.0, 0.0)),
    from_noise=st.booleans(),
)
# these stalled, started at the solution of the step before
@example(seed=1389, utility="diagonal", loss="hinge", s=0.0, from_noise=True)
@example(seed=1869, utility="diagonal", loss="hinge", s=0.0, from_noise=True)
@example(seed=1936, utility="identity", loss="exponential", s=-0.5194120467041148, from_noise=False)
@example(seed=2267, utility="zeros", loss="logistic", s=-0.6478476236493258, from_noise=True)
def test_objective_never_rises(seed, utility, loss, s, from_noise):
    rng = np.random.default_rng(seed)
    problem = some_problem(rng, "linear", utility, loss=loss)
    problem = RobustProblem(problem.gram, problem.weight, s, problem.fit_intercept, loss)
    start = rng.normal(size=problem.weight.shape) if from_noise else None
    solution = DCAlgorithm(InteriorSequence(), 50).solve(problem, Settings(tol=1e-8, max_iter=200), start=start)
    objectives = np.array([record.primal for record in solution.history])
    # a step may miss its minimum by its gap, and the objective rise by no more than that
    assert np.all(np.diff(objectives) <= 1e-8 * np.maximum(1.0, np.abs(objectives[:-1])))
    if solution.n_iter < 50:
        assert solution.certificate.within(1e-8)
        assert solution.certificate.primal == pytest.approx(objectives[-1], rel=1e-7, abs=1e-7)


def test_tangent_touches_from_above_and_ties_get_one_slope():
    rng = np.random.default_rng(0)
    problem = some_problem(rng, "linear", "dense")
    scores = np.round(rng.normal(size=problem.weight.shape))  # many ties
    tangent = problem.linearise(scores)
    losses = problem.losses

    def concave(F):
        return float(
            losses.weight @ np.minimum(0.0, margins(F)[losses.example, losses.anchor] - problem.truncation)
        )

    at_scores = float(np.vdot(tangent.tilt, scores)) + tangent.constant
    assert at_scores == pytest.approx(concave(scores))
    np.testing.assert_allclose(tangent.tilt.sum(axis=1), 0.0, atol=1e-12)
    for _ in range(100):
        F = rng.normal(size=scores.shape) * 2
        assert float(np.vdot(tangent.tilt, F)) + tangent.constant >= concave(F) - 1e-9


def test_fixed_point_at_zero_scores_is_certified():
    """Where the untruncated machine collapses to zero it is a stationary point, and its certificate says so."""
    utility = np.array([[1, 0.2, 0.3], [0.4, 1, 0.1], [0.4, 0.25, 1]])
    X, labels = blobs(np.random.default_rng(1), 60, 2, 3, spread=0.1)
    problem = RobustProblem(FeatureGram(X), utility[labels], -0.5)
    solution = DCAlgorithm(InteriorSequence(), 20).solve(problem, Settings(tol=1e-6, max_iter=100))
    assert solution.n_iter == 1
    assert solution.certificate.within(1e-6)
    assert solution.certificate.primal == pytest.approx(utility[labels].sum(), rel=1e-6)


def test_unfinished_descent_is_not_certified():
    rng = np.random.default_rng(3)
    X, labels = blobs(rng, 200, 2, 3)
    flipped = np.where(rng.uniform(size=200) < 0.2, rng.integers(0, 3, 200), labels)
    problem = RobustProblem(FeatureGram(X), np.eye(3)[flipped], -0.5)
    first = DCAlgorithm(InteriorSequence(), 1).solve(problem, Settings(tol=1e-6, max_iter=100))
    assert first.status is Status.MAX_ITER
    assert first.certificate.gap > 1e-3


@pytest.mark.parametrize("loss", ["exponential", "logistic"])
@pytest.mark.parametrize("s", [0.0, -0.7])
def test_curves_are_what_they_say(loss, s):
    curve = Curve(loss, s)
    xi = np.linspace(-3.0, 3.0, 121)
    plain = np.exp(xi) if loss == "exponential" else np.log1p(np.exp(xi))
    np.testing.assert_allclose(curve.value(xi)[xi <= -s], plain[xi <= -s])
    step = 1e-6
    slope = (curve.value(xi + step) - curve.value(xi - step)) / (2 * step)
    np.testing.assert_allclose(np.minimum(curve.slope(xi), curve.steepest), slope, atol=1e-5)
    curvature = (curve.slope(xi + step) - curve.slope(xi - step)) / (2 * step)
    np.testing.assert_allclose(curve.curvature(xi), curvature, rtol=1e-5)
    t = np.linspace(1e-6, curve.steepest, 9)
    grid = np.linspace(-16.0, 6.0, 200_001)
    brute = (t[:, None] * grid - curve.value(grid)).max(axis=1)
    np.testing.assert_allclose(curve.conjugate(t), brute, atol=1e-5)


@pytest.mark.parametrize("k", [3, 5, 10])
@pytest.mark.parametrize("loss", LOSSES)
def test_consistent_truncation_meets_theorem_3_1_with_equality(loss, k):
    """At the lowest s the supremum over u of (l(0) - l(u)) / (l(s) - l(0)) is k - 1, approached at large u."""
    value = {
        "hinge": lambda u: max(1.0 - u, 0.0),
        "exponential": lambda u: np.exp(-u),
        "logistic": lambda u: np.log1p(np.exp(-u)),
    }[loss]
    s = consistent_truncation(loss, k)
    assert (value(0.0) - value(50.0)) / (value(s) - value(0.0)) == pytest.approx(k - 1)


def test_projection_on_simplices_is_the_nearest_point():
    rng = np.random.default_rng(4)
    points, sizes = rng.normal(size=(50, 4)) * 3, rng.uniform(0.1, 5.0, 50)
    projected = project_on_simplices(points, sizes)
    assert (projected >= 0).all()
    np.testing.assert_allclose(projected.sum(axis=1), sizes)
    # obtuse angles with every vertex characterise the projection
    for m in range(4):
        vertex = np.zeros((50, 4))
        vertex[:, m] = sizes
        assert np.all(np.einsum("pk,pk->p", points - projected, vertex - projected) <= 1e-9)
