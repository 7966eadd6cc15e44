"""Splitting against a general-purpose solver, the decomposition and a slow twin of its steps."""

from dataclasses import replace

import numpy as np
import pytest
from scipy import sparse

from polymargin import MulticategorySVC
from polymargin._native.skinny import available
from polymargin.gram import DenseGram, FeatureGram, Kernel
from polymargin.problems.hinge import HingePoint, HingeProblem, lee_lin_wahba
from polymargin.solvers.contract import Progress, Settings, Status
from polymargin.solvers.hinge import inverses, splitting_penalty
from polymargin.solvers.hinge.decomposition import DecompositionSettings
from polymargin.solvers.hinge.inverses import Columns, FeatureInverse, Inverse, InverseSettings, Room
from polymargin.solvers.hinge.portfolio import Portfolio
from polymargin.solvers.hinge.splitting import DEFAULTS, Splitting, SplittingSettings
from polymargin.solvers.hinge.splitting_iterate import SplittingIterate, best_length, unit_of
from polymargin.solvers.policy import Policy
from tests.oracles import hinge_optimum
from tests.simulate import blobs, random_costs


def problem_of(seed, n, k, C, *, fit_intercept=True, scale=1.0):
    rng = np.random.default_rng(seed)
    X, y = blobs(rng, n, 4, k, spread=1.0)
    costs = random_costs(rng, k)[y] * rng.uniform(0.2, 2.0, (n, 1))
    K = scale * Kernel("rbf", gamma=0.3)(X)
    return HingeProblem(DenseGram(K), lee_lin_wahba(y, C * costs), fit_intercept)


def rough_point(problem):
    return (
        Portfolio(policy=Policy(decomposition=DecompositionSettings(40)))
        .solve(problem, Settings(tol=0.3, max_iter=3))
        .point
    )


@pytest.mark.parametrize("fit_intercept", [True, False])
@pytest.mark.parametrize("seed", range(6))
def test_agrees_with_a_general_solver(seed, fit_intercept):
    scale = 10.0 ** (seed % 3 - 1)
    problem = problem_of(seed, 60 + 10 * seed, 3 + seed % 4, 1.0 / scale, fit_intercept=fit_intercept, scale=scale)
    solution = Splitting().solve(problem, Settings(tol=1e-5), start=rough_point(problem))
    assert solution.status is Status.SOLVED
    assert solution.certificate.gap == pytest.approx(problem.certify(solution.point).gap, abs=1e-12)
    assert solution.certificate.infeasibility <= 1e-9
    optimum = hinge_optimum(problem)
    assert solution.certificate.dual <= optimum * (1 + 1e-7)
    assert solution.certificate.primal == pytest.approx(optimum, rel=2e-5)


@pytest.mark.parametrize("fit_intercept", [True, False])
def test_a_step_is_that_of_the_definition(fit_intercept):
    """x minimises the quadratic, class sums held equal, plus rho/2 times the squared distance from 2z - t."""
    problem = problem_of(0, 30, 4, 1.0, fit_intercept=fit_intercept)
    n, k = problem.losses.upper.shape
    iterate = SplittingIterate(problem, rough_point(problem), 0.3, DEFAULTS)
    assert iterate.prepare(Progress(Settings()))
    t = np.random.default_rng(1).normal(size=(n, k))
    iterate.t = t.copy()
    assert iterate.advance(1, Progress(Settings()))
    z = np.clip(t, 0.0, problem.losses.upper)
    P = np.eye(k) - 1.0 / k
    quadratic = np.kron(problem.gram.matrix, P) + iterate.rho * np.eye(n * k)
    linear = (iterate.rho * (2 * z - t) + problem.losses.offset).ravel()
    sums = np.kron(np.ones((1, n)), P)[:-1] if fit_intercept else np.zeros((0, n * k))
    system = np.block([[quadratic, sums.T], [sums, np.zeros((len(sums), len(sums)))]])
    x = np.linalg.solve(system, np.concatenate([linear, np.zeros(len(sums))]))[: n * k].reshape(n, k)
    np.testing.assert_allclose(iterate.t, t + DEFAULTS.relaxation * (x - z), rtol=1e-4, atol=1e-4)
    iterate.certified()
    # what the next step adds to was put right in double precision
    np.testing.assert_allclose(iterate.x, x - x.mean(axis=1, keepdims=True), rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("rho", [0.1, 1.0])
def test_a_solution_stays_where_it_is(rho):
    problem = problem_of(3, 80, 5, 1.0)
    solution = Portfolio().solve(problem, Settings(tol=1e-11))
    iterate = SplittingIterate(problem, solution.point, rho, DEFAULTS)
    assert iterate.prepare(Progress(Settings()))
    assert iterate.advance(20, Progress(Settings()))
    assert iterate.certified()[1].gap < 1e-9


@pytest.mark.parametrize("fit_intercept", [True, False])
def test_scores_and_dual_point_are_certified_each_by_itself(fit_intercept):
    """The primal is that of the scores, the bound that of the dual point; neither by what the solver kept."""
    problem = problem_of(1, 150, 5, 30.0, fit_intercept=fit_intercept)
    solution = Splitting().solve(problem, Settings(tol=1e-3), start=rough_point(problem))
    point, certificate = solution.point, solution.certificate
    assert solution.status is Status.SOLVED
    K, k = problem.gram.matrix, problem.losses.n_classes
    np.testing.assert_allclose(point.primal.sum(axis=1), 0.0, atol=1e-9)
    F = K @ point.primal + point.intercept
    primal = 0.5 * np.vdot(point.primal, K @ point.primal) + problem.losses.value(F)
    assert certificate.primal == pytest.approx(primal, rel=1e-11)
    assert (point.dual >= 0.0).all()
    assert (point.dual <= problem.losses.upper).all()
    R = point.dual.mean(axis=1, keepdims=True) - point.dual
    dual = point.dual.sum() / (k - 1) - 0.5 * np.vdot(R, K @ R)
    assert certificate.dual == pytest.approx(dual, rel=1e-11)
    if fit_intercept:
        np.testing.assert_allclose(R.sum(axis=0), 0.0, atol=1e-9 * np.abs(R).sum())
    optimum = hinge_optimum(problem)
    assert dual <= optimum * (1 + 1e-9)
    assert primal >= optimum * (1 - 1e-9)
    # the dual point's own scores are no match for them
    assert problem.certify(HingePoint(point.dual, point.intercept)).gap > certificate.gap


@pytest.mark.parametrize("C", [0.01, 1.0, 100.0])
@pytest.mark.parametrize("scale", [0.0, 0.1, 1.0])
def test_the_best_length_has_the_lowest_objective(C, scale):
    problem = problem_of(4, 60, 4, C)
    rng = np.random.default_rng(0)
    R = scale * problem.coefficients(rng.uniform(0.0, 1.0, (60, 4)) * problem.losses.upper)
    H, intercept = problem.gram.matmul(R), rng.normal(size=4)
    intercept -= intercept.mean()

    def objective(length):
        return problem.objective(length * R, length * H, length * intercept)

    best = best_length(problem, R, H, intercept)
    lengths = np.concatenate([np.linspace(0.0, 5.0, 1001), best * np.array([1 - 1e-4, 1 + 1e-4])])
    if scale:
        assert objective(best) <= min(map(objective, lengths)) * (1 + 1e-12)
    else:
        assert best == 1.0


@pytest.mark.parametrize("kind", ["one row", "equal rows", "zero kernel"])
def test_rho_of_degenerate_rows_is_a_number(kind):
    n = 1 if kind == "one row" else 40
    K = np.zeros((n, n)) if kind == "zero kernel" else np.ones((n, n))
    y = np.arange(n) % 3
    problem = HingeProblem(DenseGram(K), lee_lin_wahba(y, (1.0 - np.eye(3))[y]))
    rho = splitting_penalty.pilot_of(problem, Progress(Settings())).rho
    assert 0.0 < rho < np.inf


@pytest.mark.parametrize("C", [1.0, 100.0])
def test_rho_is_found_again_where_it_was_far_off(C):
    rng = np.random.default_rng(0)
    y = rng.integers(0, 6, 400)
    X = rng.normal(size=(400, 150)) + rng.normal(size=(6, 150))[y]
    problem = HingeProblem(DenseGram(X @ X.T, rank=150), lee_lin_wahba(y, C * (1.0 - np.eye(6))[y]))
    at_once, again = (
        Splitting(SplittingSettings(max_pilots=pilots)).solve(problem, Settings(tol=1e-6)) for pilots in (1, 6)
    )
    assert at_once.status is again.status is Status.SOLVED
    assert again.n_iter < at_once.n_iter


def test_rows_of_few_features_have_nothing_of_their_own():
    """Though no row is among the span of its nearest neighbours, all of them together span few dimensions."""
    X = np.random.default_rng(0).normal(size=(300, 100))
    y = np.arange(300) % 3
    losses = lee_lin_wahba(y, (1.0 - np.eye(3))[y])
    of_features, of_a_kernel = (
        splitting_penalty.pilot_of(HingeProblem(DenseGram(X @ X.T, rank=rank), losses), Progress(Settings())).rho
        for rank in (100, None)
    )
    assert of_features < of_a_kernel


@pytest.mark.parametrize("seed", range(4))
def test_single_precision_does_not_end_it_where_variables_are_large(seed):
    problem = problem_of(seed, 150, 4, 300.0)
    solution = Splitting().solve(problem, Settings(tol=1e-7), start=rough_point(problem))
    assert solution.status is Status.SOLVED
    assert solution.certificate.primal == pytest.approx(hinge_optimum(problem), rel=1e-6)


@pytest.mark.parametrize("precision", [np.float32, np.float64])
def test_the_inverse(precision):
    tuning = InverseSettings(block_operations=64 * 230**2)
    A = np.random.default_rng(0).normal(size=(230, 300))
    matrix = A @ A.T / 300
    V = np.random.default_rng(1).normal(size=(230, 7))
    inverse, progress = Inverse(matrix.astype(precision), tuning), Progress(Settings())
    assert inverse.prepare(progress)
    rounding = 1e3 * np.finfo(precision).eps * np.abs(np.linalg.inv(matrix)).max() * np.abs(V).max()
    np.testing.assert_allclose(inverse.solved(V), np.linalg.solve(matrix, V), atol=rounding)


@pytest.mark.parametrize("sizes", [(150, 230), (64, 100), (128, 129), (30, 230)])
@pytest.mark.parametrize("precision", [np.float32, np.float64])
def test_a_factor_is_gone_on_from(precision, sizes):
    """The factor of the first rows is that of all up to its last whole block; it stands where it was made."""
    small, large = sizes
    tuning = InverseSettings(block_operations=64 * large**2)
    A = np.random.default_rng(0).normal(size=(large, 300))
    matrix = (A @ A.T / 300).astype(precision)
    V = np.random.default_rng(1).normal(size=(large, 7))
    changed = matrix.copy()
    first = Inverse(changed[:small, :small], replace(tuning, block_operations=64 * small**2))
    assert first.prepare(Progress(Settings()))
    changed[first.whole_blocks : small] = matrix[first.whole_blocks : small]
    inverse, at_once = Inverse(changed, tuning, first), Inverse(matrix.copy(), tuning)
    for one in (inverse, at_once):
        assert one.prepare(Progress(Settings()))
    rounding = 1e3 * np.finfo(precision).eps * np.abs(np.linalg.inv(matrix)).max() * np.abs(V).max()
    np.testing.assert_allclose(inverse.solved(V), at_once.solved(V), atol=rounding)


@pytest.mark.parametrize("spare", [0.0, 0.3])
def test_a_matrix_grows_in_its_room(spare):
    """Where it lies, if the room allows, and else by a copy; what joins it is left to the caller."""
    room = Room(40, InverseSettings(spare=spare))
    first = room.square(25)
    first[:] = content = np.arange(625.0).reshape(25, 25)
    larger = room.grown(first, 30)
    assert larger.shape == (30, 30)
    assert (larger.ctypes.data, larger.strides) == (first.ctypes.data, (4 * min(32 if spare else 30, 40), 4))
    np.testing.assert_array_equal(larger[:25, :25], content)
    assert room.grown(larger, 40).shape == (40, 40)


@pytest.mark.parametrize("limits", [{"max_iter": 1}, {"time_limit": 1e-9}])
def test_a_stopped_solution_is_feasible(limits):
    problem = problem_of(2, 200, 5, 10.0)
    start = rough_point(problem)
    solution = Splitting().solve(problem, Settings(tol=1e-9, **limits), start=start)
    assert solution.status in (Status.MAX_ITER, Status.TIME_LIMIT)
    assert solution.certificate.infeasibility <= 1e-9
    assert solution.certificate.gap <= problem.certify(start).gap


def test_an_indefinite_matrix_is_no_accident():
    A = np.random.default_rng(0).normal(size=(40, 40))
    y = np.arange(40) % 3
    problem = HingeProblem(DenseGram(A + A.T + np.eye(40)), lee_lin_wahba(y, (1.0 - np.eye(3))[y]))
    solution = Splitting().solve(problem, Settings(), start=HingePoint(np.zeros((40, 3)), np.zeros(3)))
    assert solution.status is Status.NUMERICAL_ERROR


def many_free(n, k, C):
    """Rows in many dimensions: all of them far apart, most variables free."""
    rng = np.random.default_rng(5)
    X, y = blobs(rng, n, 30, k, spread=0.3)
    return HingeProblem(DenseGram(Kernel("rbf", gamma=0.02)(X)), lee_lin_wahba(y, C * (1.0 - np.eye(k))[y]))


@pytest.mark.parametrize("tol", [1e-3, 1e-6])
def test_the_policy_names_it_where_variables_are_many(tol):
    problem, sets = many_free(1100, 10, 1.0), DecompositionSettings(300)
    solution = Portfolio(policy=Policy(decomposition=sets)).solve(problem, Settings(tol=tol))
    assert [row.method for row in solution.trace].count("splitting") == 1
    assert solution.status is Status.SOLVED
    assert solution.certificate.gap == pytest.approx(problem.certify(solution.point).gap, abs=1e-9)
    never = Policy(decomposition=sets, splitting=SplittingSettings(steps=10**9))
    other = Portfolio(policy=never).solve(problem, Settings(tol=1e-5))
    assert "splitting" not in [row.method for row in other.trace]
    assert solution.certificate.primal == pytest.approx(other.certificate.primal, rel=tol + 2e-5)


def test_where_it_fails_the_point_at_hand_is_kept():
    problem = many_free(1100, 10, 1.0)
    useless = SplittingSettings(max_steps=0, relaxation=0.0)
    policy = Policy(decomposition=DecompositionSettings(300), splitting=useless)
    solution = Portfolio(policy=policy).solve(problem, Settings(tol=1e-3))
    assert "splitting" in [row.method for row in solution.trace]
    assert solution.status is Status.SOLVED


def on_features(seed, n, p, k, C, *, fit_intercept=True, form=np.asarray):
    rng = np.random.default_rng(seed)
    X, y = blobs(rng, n, p, k, spread=1.0)
    costs = random_costs(rng, k)[y] * rng.uniform(0.2, 2.0, (n, 1))
    return HingeProblem(FeatureGram(form(X)), lee_lin_wahba(y, C * costs), fit_intercept)


FORMS = {"dense": np.asarray, "sparse": sparse.csr_matrix, "single": lambda X: X.astype(np.float32)}


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("fit_intercept", [True, False])
@pytest.mark.parametrize("C", [0.01, 1.0, 100.0])
def test_on_features_it_agrees_with_a_general_solver(C, fit_intercept, form):
    problem = on_features(0, 90, 5, 4, C, fit_intercept=fit_intercept, form=FORMS[form])
    solution = Splitting().solve(problem, Settings(tol=1e-5))
    assert solution.status is Status.SOLVED
    assert solution.certificate.gap == pytest.approx(problem.certify(solution.point).gap, abs=1e-9)
    X = problem.gram.features.toarray() if form == "sparse" else problem.gram.features.astype(np.float64)
    optimum = hinge_optimum(HingeProblem(DenseGram(X @ X.T), problem.losses, fit_intercept))
    assert solution.certificate.dual <= optimum * (1 + 1e-7)
    assert solution.certificate.primal == pytest.approx(optimum, rel=2e-5)


def test_looks_ahead_save_steps_of_fine_tolerances():
    """Once the free variables are found steps are linear, and the last few tell where they lead."""
    found = []
    for stride in (DEFAULTS.stride, 10**9):
        solutions = [
            Splitting(replace(DEFAULTS, stride=stride)).solve(problem_of(seed, 300, 4, 100.0), Settings(tol=1e-8))
            for seed in range(4)
        ]
        assert stride > DEFAULTS.stride or all(each.status is Status.SOLVED for each in solutions)
        found.append(sum(each.n_iter for each in solutions))
    assert found[0] < 0.7 * found[1]


def test_on_features_steps_are_those_on_their_matrix():
    problem = on_features(1, 80, 6, 5, 1.0)
    X = problem.gram.features
    whole = HingeProblem(DenseGram(X @ X.T), problem.losses)
    start = HingePoint(np.zeros((80, 5)), np.zeros(5))
    states = []
    for form in (problem, whole):
        iterate = SplittingIterate(form, start, 0.5, DEFAULTS)
        assert iterate.prepare(Progress(Settings()))
        assert iterate.advance(12, Progress(Settings()))
        states.append(iterate.t)
    np.testing.assert_allclose(*states, rtol=1e-3, atol=1e-4)


@pytest.mark.parametrize("compiled", [True, False])
@pytest.mark.parametrize("k", [1, 7, 9, 20])
@pytest.mark.parametrize("repeated", [False, True])
def test_the_inverse_of_features(k, compiled, repeated, monkeypatch):
    """Features of which some are others once more have directions without a part."""
    monkeypatch.setattr(inverses, "available", lambda: compiled and available())
    rng = np.random.default_rng(k)
    X, V, rho = rng.normal(size=(60, 8)), rng.normal(size=(60, k)), 0.7
    X = np.hstack([X, X[:, :3], np.zeros((60, 1))]) if repeated else X
    inverse = FeatureInverse(X, rho)
    assert inverse.prepare(Progress(Settings()))
    assert len(inverse.values) == 8
    for _ in range(2):
        exact = np.linalg.solve(X @ X.T + rho * np.eye(60), V)
        np.testing.assert_allclose(inverse.solved(V), exact, atol=1e-10)
        columns = Columns(60, k, np.float32)
        columns.take(V)
        inverse.apply(columns)
        np.testing.assert_allclose(columns.answer[:, :k], exact, atol=1e-4)
        rho = inverse.rho = 0.1


def test_steps_stay_exact_where_eigenvalues_lie_far_apart():
    """Corrections by products in single precision would grow from certificate to certificate."""
    rng = np.random.default_rng(0)
    y = rng.integers(0, 4, 300)
    X = rng.normal(size=(300, 40)) + 30.0 * rng.normal(size=300)[:, None] + rng.normal(size=(4, 40))[y]
    problem = HingeProblem(FeatureGram(X), lee_lin_wahba(y, 100.0 * (1.0 - np.eye(4))[y]))
    start = HingePoint(np.zeros((300, 4)), np.zeros(4))
    unit = unit_of(problem.gram)
    iterate = SplittingIterate(problem, start, 1e-6 * unit, DEFAULTS)
    assert iterate.prepare(Progress(Settings()))
    for _ in range(10):
        assert iterate.advance(30, Progress(Settings()))
        iterate.certified()
        missing = iterate.rho * (iterate.v - iterate.x) - problem.gram.matmul(iterate.x)
        missing -= missing.mean(axis=0)
        assert np.abs(missing).max() <= 1e-6 * np.abs(problem.gram.matmul(np.abs(iterate.x))).max()


def test_on_features_rho_follows_the_ratio_on_all_rows():
    problem = on_features(2, 400, 20, 4, 10.0)
    start = HingePoint(np.zeros((400, 4)), np.zeros(4))
    iterate = SplittingIterate(problem, start, 1e3 * unit_of(problem.gram), DEFAULTS)
    assert iterate.prepare(Progress(Settings()))
    assert iterate.advance(30, Progress(Settings()))
    iterate.certified()
    z, margins, rho = np.clip(iterate.t, 0.0, iterate.upper), iterate.rho * iterate.t, iterate.rho
    margins -= rho * z
    assert iterate.improve_rho()
    assert iterate.rho < 0.5 * rho
    np.testing.assert_allclose(np.clip(iterate.t, 0.0, iterate.upper), z, atol=1e-12)
    np.testing.assert_allclose(iterate.rho * (iterate.t - z), margins, rtol=1e-9, atol=1e-9)
    whole = HingeProblem(DenseGram(problem.gram.block(np.arange(400))), problem.losses)
    fixed = SplittingIterate(whole, start, rho, DEFAULTS)
    assert fixed.prepare(Progress(Settings()))
    assert not fixed.improve_rho()


def test_features_that_are_too_many_are_refused():
    with pytest.raises(ValueError, match="fewer than half the rows, not 60 of 100"):
        Portfolio("splitting").solve(on_features(0, 100, 60, 3, 1.0), Settings())
    few = Splitting(SplittingSettings(most_entries=100.0))
    assert few.accepts(on_features(0, 100, 10, 3, 1.0)) == "features must have at most 100 entries, not 100 x 10."


def test_the_policy_names_it_for_features():
    rng = np.random.default_rng(0)
    y = np.arange(1200) % 8
    X = 0.1 * (rng.normal(size=(1200, 300)) @ rng.normal(size=(300, 300)) + 3.0 * rng.normal(size=(8, 300))[y])
    model = MulticategorySVC(kernel="linear", tol=1e-3).fit(X, y)
    assert [row.method for row in model.trace_] == ["block_descent", "splitting"]
    assert model.certificate_.gap <= 1e-3
    other = MulticategorySVC(kernel="linear", tol=1e-5, solver="interior_point").fit(X, y)
    assert model.certificate_.primal == pytest.approx(other.certificate_.primal, rel=2e-3)
