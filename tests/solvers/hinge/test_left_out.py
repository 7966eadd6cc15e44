"""Frozen leave-one-out against refits: equal wherever the active set does not change."""

import numpy as np
import pytest

from polymargin.coding import zero_sum_basis
from polymargin.estimators.multicategory import hinge_losses
from polymargin.gram import DenseGram, FeatureGram, Kernel
from polymargin.problems.hinge import HingePoint, HingeProblem
from polymargin.solvers.contract import Settings
from polymargin.solvers.hinge.interior_point import InteriorPoint
from polymargin.solvers.hinge.kernel_interior import KernelInteriorPoint
from polymargin.solvers.hinge.left_out import frozen_left_out_scores, support_rows
from polymargin.solvers.hinge.left_out_refitted import left_out_scores, refitted_left_out_scores
from polymargin.solvers.hinge.portfolio import Portfolio
from polymargin.solvers.hinge.settings import ROUGHLY, ClasswiseSettings, LeftOutSettings, RoughSettings
from tests.simulate import blobs, random_costs

EXACT = Settings(tol=1e-11)


def solve(problem):
    return Portfolio().solve(problem, EXACT).point


def active_set(problem, point):
    """What is at which bound, as a comparable value."""
    scores = problem.gram.matmul(problem.coefficients(point.dual)) + point.intercept
    example, direction = problem.losses.free_directions(point.dual, scores)
    return {(int(i), tuple(np.round(d, 6))) for i, d in zip(example, direction, strict=True)}


@pytest.mark.parametrize("fit_intercept", [True, False])
@pytest.mark.parametrize("loss", ["lee", "weston", "crammer"])
def test_equals_a_refit_where_the_active_set_stays(loss, fit_intercept):
    rng = np.random.default_rng(3)
    stayed = 0
    for _ in range(6):
        X, y = blobs(rng, 24, 2, 3, spread=1.5)
        K = Kernel("rbf", 0.5)(X)
        costs = random_costs(rng, 3) if loss != "crammer" else 1.0 - np.eye(3)
        upper = 0.5 * costs[y]
        problem = HingeProblem(DenseGram(K), hinge_losses(loss, y, upper), fit_intercept)
        point = solve(problem)
        left_out = frozen_left_out_scores(problem, point)
        free = active_set(problem, point)
        for i in range(len(y)):
            rest = np.delete(np.arange(len(y)), i)
            smaller = HingeProblem(
                DenseGram(K[np.ix_(rest, rest)]), hinge_losses(loss, y[rest], upper[rest]), fit_intercept
            )
            refit = solve(smaller)
            of_rest = {(a - (a > i), d) for a, d in free if a != i}
            bound_alike = np.allclose(
                np.isclose(refit.dual, 0.0, atol=1e-9), np.isclose(point.dual[rest], 0.0, atol=1e-9)
            )
            if active_set(smaller, refit) == of_rest and bound_alike and len(of_rest) > 4:
                stayed += 1
                scores = K[i, rest] @ smaller.coefficients(refit.dual) + refit.intercept
                np.testing.assert_allclose(left_out[i], scores, atol=1e-6)
    assert stayed >= 5


def test_an_interior_point_has_the_active_set_of_the_solution():
    """Its multipliers are near bounds and never at them."""
    X, y = blobs(np.random.default_rng(6), 30, 3, 3)
    losses = hinge_losses("lee", y, 0.1 * (1 - np.eye(3))[y])
    exact = HingeProblem(DenseGram(X @ X.T), losses)
    features = HingeProblem(FeatureGram(X), losses)
    expected = losses.value(frozen_left_out_scores(exact, solve(exact)))
    for tol, error in ((1e-6, 1e-3), (1e-8, 1e-4)):
        point = InteriorPoint().solve(features, Settings(tol=tol)).point
        assert losses.value(frozen_left_out_scores(features, point)) == pytest.approx(expected, rel=error)


def test_rows_without_coefficients_keep_their_scores():
    X = np.array([[-3.0], [-1.0], [1.0], [3.0]])
    y = np.array([0, 0, 1, 1])
    problem = HingeProblem(DenseGram(X @ X.T), hinge_losses("lee", y, 10.0 * (1 - np.eye(2))[y]))
    point = solve(problem)
    R = problem.coefficients(point.dual)
    assert not R[[0, 3]].any()
    scores = problem.gram.matmul(R) + point.intercept
    np.testing.assert_allclose(frozen_left_out_scores(problem, point)[[0, 3]], scores[[0, 3]])


def test_without_any_coefficient_nothing_changes():
    y = np.array([0, 1, 2])
    problem = HingeProblem(DenseGram(np.eye(3)), hinge_losses("lee", y, (1 - np.eye(3))[y]))
    point = HingePoint(np.zeros((3, 3)), np.zeros(3))
    np.testing.assert_array_equal(frozen_left_out_scores(problem, point), np.zeros((3, 3)))


def left_out_one_by_one(problem, point):
    """The definition: for every row a least-squares solution of the system of the others' free multipliers."""
    K = problem.gram.block(np.arange(problem.gram.n))
    R = problem.coefficients(point.dual)
    scores = K @ R + point.intercept
    example, direction = problem.losses.free_directions(point.dual, scores)
    basis = zero_sum_basis(R.shape[1])[:, : (R.shape[1] - 1) * problem.fit_intercept]
    left_out = scores.copy()
    for i in np.flatnonzero(R.any(axis=1)):
        a, d = example[example != i], direction[example != i]
        B = d @ basis
        system = np.block([[K[np.ix_(a, a)] * (d @ d.T), -B], [B.T, np.zeros((B.shape[1],) * 2)]])
        right = np.concatenate([K[a, i] * -(d @ R[i]), -(basis.T @ R[i])])
        answer = np.linalg.lstsq(system, right, rcond=1e-13)[0]
        left_out[i] -= K[i, i] * R[i] + (K[i, a] * answer[: len(a)]) @ d - basis @ answer[len(a) :]
    return left_out


@pytest.mark.parametrize("many_free", [0.0, np.inf])
@pytest.mark.parametrize("C", [0.3, 20.0])  # with and without rows whose multipliers are all at bounds
@pytest.mark.parametrize("repeated", [0, 20])
@pytest.mark.parametrize("fit_intercept", [True, False])
def test_class_by_class_and_at_once_are_as_defined(fit_intercept, repeated, C, many_free):
    X, y = blobs(np.random.default_rng(8), 60, 4, 5, spread=1.5)
    X[60 - repeated :] = X[:repeated]  # a singular kernel matrix
    losses = hinge_losses("lee", y, C * (1 - np.eye(5))[y])
    problem = HingeProblem(DenseGram(Kernel("rbf", 0.5)(X)), losses, fit_intercept)
    point = solve(problem)
    tuning = LeftOutSettings(classwise=ClasswiseSettings(many_free, np.inf))
    found, defined = frozen_left_out_scores(problem, point, tuning), left_out_one_by_one(problem, point)
    # the ridge of 1e-8 times coefficients of up to 20; repeated rows have larger ones yet
    error = (1e-6 if repeated else 1e-7) * np.abs(defined).max()
    np.testing.assert_allclose(found, defined, rtol=0, atol=error)


def test_an_interior_point_on_the_kernel_has_the_support_of_the_solution():
    X, y = blobs(np.random.default_rng(4), 120, 3, 4, spread=2.0)
    problem = HingeProblem(DenseGram(Kernel("rbf", 0.2)(X)), hinge_losses("lee", y, (1 - np.eye(4))[y]))
    inside = KernelInteriorPoint().solve(problem, Settings(tol=1e-6)).point
    exact = solve(problem)
    support = support_rows(problem, exact)
    assert len(support) < len(y)
    assert problem.coefficients(inside.dual).any(axis=1).all()
    np.testing.assert_array_equal(support_rows(problem, inside), support)
    np.testing.assert_allclose(
        frozen_left_out_scores(problem, inside), frozen_left_out_scores(problem, exact), atol=1e-3
    )


def rough_fit(loss, n_features, fit_intercept, copies=4):
    """A machine on features with more free multipliers than unknowns: copies share what one row would have."""
    X, y = blobs(np.random.default_rng(5), 60, n_features, 3, spread=2.0)
    X, y = np.repeat(X, copies, axis=0), np.repeat(y, copies)
    problem = HingeProblem(FeatureGram(X), hinge_losses(loss, y, 0.2 * (1 - np.eye(3))[y]), fit_intercept)
    point = InteriorPoint().solve(problem, Settings(tol=1e-9)).point
    unknowns = (n_features + fit_intercept) * 2
    assert len(active_directions(problem, point)) > unknowns
    return problem, point


def active_directions(problem, point):
    scores = problem.gram.matmul(problem.coefficients(point.dual)) + point.intercept
    return problem.losses.free_directions(point.dual, scores)[0]


@pytest.mark.parametrize("fit_intercept", [True, False])
@pytest.mark.parametrize("loss", ["lee", "weston", "crammer"])
@pytest.mark.parametrize("n_features", [2, 5])
def test_in_the_features_dimension_as_defined(n_features, loss, fit_intercept, monkeypatch):
    """With more free multipliers than unknowns no kernel between rows is asked for at all."""
    problem, point = rough_fit(loss, n_features, fit_intercept)
    defined = left_out_one_by_one(problem, point)

    def refuse(*args):
        raise AssertionError("a kernel matrix of rows was asked for")

    monkeypatch.setattr(FeatureGram, "block", refuse)
    found = frozen_left_out_scores(problem, point)
    support = support_rows(problem, point)
    np.testing.assert_allclose(found[support], defined[support], rtol=0, atol=1e-5 * np.abs(defined).max())


def test_rows_are_treated_some_at_a_time():
    X, y = blobs(np.random.default_rng(9), 50, 3, 4, spread=2.0)
    problem = HingeProblem(FeatureGram(X), hinge_losses("weston", y, (1 - np.eye(4))[y]))
    point = solve(problem)
    together = frozen_left_out_scores(problem, point)
    one_by_one = frozen_left_out_scores(problem, point, LeftOutSettings(entries_at_a_time=1))
    np.testing.assert_allclose(one_by_one, together, rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("loss", ["lee", "weston", "crammer"])
@pytest.mark.parametrize("many_free", [0.0, np.inf])
@pytest.mark.parametrize("repeated", [0, 40])
def test_single_precision_is_near_double(repeated, many_free, loss):
    X, y = blobs(np.random.default_rng(8), 120, 4, 5, spread=1.5)
    X[120 - repeated :] = X[:repeated]  # a singular kernel matrix
    losses = hinge_losses(loss, y, 4.0 * (1 - np.eye(5))[y])
    problem = HingeProblem(DenseGram(Kernel("rbf", 0.1)(X)), losses)
    point = solve(problem)
    classwise = ClasswiseSettings(many_free, np.inf)
    double = frozen_left_out_scores(problem, point, LeftOutSettings(classwise=classwise))
    single = frozen_left_out_scores(problem, point, RoughSettings(classwise=classwise, by_score=np.inf))
    assert (single != double).any() or repeated  # where the matrix is singular to rounding all is done in double
    assert np.abs(single - double).mean() < 1e-3


@pytest.mark.parametrize("loss", ["lee", "weston", "crammer"])
@pytest.mark.parametrize("apart", [1.0, 1e-2, 5e-3, 1e-3, 0.0])
def test_single_precision_is_near_double_score_by_score(apart, loss):
    X, y = blobs(np.random.default_rng(8), 120, 4, 5, spread=1.5)
    X[80:] = X[:40] + apart * np.random.default_rng(0).normal(size=(40, 4))  # from far to equal
    losses = hinge_losses(loss, y, 4.0 * (1 - np.eye(5))[y])
    problem = HingeProblem(DenseGram(Kernel("rbf", 0.1)(X)), losses)
    point = solve(problem)
    single, double = (
        frozen_left_out_scores(problem, point, RoughSettings(by_score=0, single_error=error))
        for error in (1.0, 0.0)
    )
    assert np.abs(single - double).mean() < 1e-3


def test_coefficients_too_large_for_single_precision():
    X, y = blobs(np.random.default_rng(8), 60, 2, 3, spread=0.1)
    problem = HingeProblem(DenseGram(Kernel("rbf", 0.5)(X)), hinge_losses("lee", y, 1e4 * (1 - np.eye(3))[y]))
    point = solve(problem)
    assert np.abs(problem.coefficients(point.dual)).max() > ROUGHLY.single_error / ROUGHLY.single_ridge
    rough, fine = (frozen_left_out_scores(problem, point, tuning) for tuning in (ROUGHLY, LeftOutSettings()))
    np.testing.assert_array_equal(rough, fine)


@pytest.mark.parametrize("loss", ["lee", "weston"])
def test_rows_of_small_samples_that_move_by_a_margin_are_refitted(loss):
    X, y = blobs(np.random.default_rng(1), 60, 4, 3, spread=1.5)
    problem = HingeProblem(DenseGram(Kernel("rbf", 0.3)(X)), hinge_losses(loss, y, 4.0 * (1 - np.eye(3))[y]))
    point = solve(problem)
    refitted = refitted_left_out_scores(problem, point, np.arange(60), EXACT)
    frozen = frozen_left_out_scores(problem, point, ROUGHLY)
    mended = left_out_scores(problem, point, EXACT)
    scores = problem.gram.matmul(problem.coefficients(point.dual)) + point.intercept
    far = np.abs(frozen - scores).max(axis=1) > ROUGHLY.far
    assert 0 < far.sum() < 30
    assert np.abs(frozen[far] - refitted[far]).max() > 0.01
    np.testing.assert_allclose(mended[far], refitted[far], atol=1e-6)
    np.testing.assert_array_equal(mended[~far], frozen[~far])
    many = RoughSettings(refitted_rows=59)
    np.testing.assert_array_equal(left_out_scores(problem, point, EXACT, many), frozen)
