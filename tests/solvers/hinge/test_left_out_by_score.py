"""Left-out scores with every class by itself: the variances as defined, and exact where classes do not meet."""

import numpy as np
import pytest

from polymargin.estimators.multicategory import hinge_losses
from polymargin.gram import DenseGram, Kernel
from polymargin.problems.hinge import HingeProblem
from polymargin.solvers.contract import Settings
from polymargin.solvers.hinge.left_out import frozen_left_out_scores
from polymargin.solvers.hinge.left_out_by_score import _Given, _left_open, score_changes
from polymargin.solvers.hinge.left_out_refitted import left_out_scores
from polymargin.solvers.hinge.portfolio import Portfolio
from polymargin.solvers.hinge.settings import LeftOutSettings
from tests.simulate import blobs

LOSSES = ["lee", "weston", "crammer"]
BY_SCORE, EXACTLY = LeftOutSettings(by_score=0), LeftOutSettings()


def solved(loss, k, C, *, n=60, fit_intercept=True, spread=1.5, repeated=0, gamma=0.2):
    X, y = blobs(np.random.default_rng(8), n, 3, k, spread=spread)
    X[n - repeated :] = X[:repeated]
    losses = hinge_losses(loss, y, C * (1 - np.eye(k))[y])
    problem = HingeProblem(DenseGram(Kernel("rbf", gamma)(X)), losses, fit_intercept)
    return problem, Portfolio().solve(problem, Settings(tol=1e-11)).point


@pytest.mark.parametrize("fit_intercept", [True, False])
@pytest.mark.parametrize("loss", LOSSES)
def test_two_classes_have_the_exact_answer(loss, fit_intercept):
    problem, point = solved(loss, 2, 1.0, fit_intercept=fit_intercept)
    exact = frozen_left_out_scores(problem, point, EXACTLY)
    np.testing.assert_allclose(frozen_left_out_scores(problem, point, BY_SCORE), exact, atol=1e-6)


@pytest.mark.parametrize("fit_intercept", [True, False])
def test_a_machine_that_pins_all_scores_has_the_exact_answer(fit_intercept):
    problem, point = solved("lee", 4, 1e6, n=30, fit_intercept=fit_intercept, gamma=5.0)
    scores = problem.gram.matmul(problem.coefficients(point.dual)) + point.intercept
    example, _ = problem.losses.free_directions(point.dual, scores)
    assert (np.bincount(example, minlength=30) == 3).all()
    exact = frozen_left_out_scores(problem, point, EXACTLY)
    np.testing.assert_allclose(frozen_left_out_scores(problem, point, BY_SCORE), exact, atol=1e-6)


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("k", [3, 5])
def test_changes_are_near_those_of_all_free_multipliers(loss, k):
    problem, point = solved(loss, k, 4.0, n=200, gamma=1.0)
    scores = problem.gram.matmul(problem.coefficients(point.dual)) + point.intercept
    exact = frozen_left_out_scores(problem, point, EXACTLY) - scores
    found = frozen_left_out_scores(problem, point, BY_SCORE) - scores
    assert np.abs(exact).max() > 0.5
    assert np.corrcoef(found.ravel(), exact.ravel())[0, 1] > 0.95
    assert 0.9 < (found * exact).sum() / (exact**2).sum() < 1.4
    np.testing.assert_allclose(found.sum(axis=1), 0.0, atol=1e-9)


@pytest.mark.parametrize("n", [120, 240])
def test_small_samples_are_not_approximated(n):
    problem, point = solved("lee", 5, 4.0, n=n, gamma=1.0)
    settings, tuning = Settings(tol=1e-11), LeftOutSettings(by_score=0, far=np.inf)
    found = left_out_scores(problem, point, settings, tuning)
    is_exact = np.allclose(found, frozen_left_out_scores(problem, point, EXACTLY), atol=1e-6)
    assert is_exact == (n <= tuning.refitted_rows)


def conditional(K, told, noise, fit_intercept):
    """Variance of the value at every row given noisy values at the other rows of `told`, by its definition."""
    K = K + (1e7 if fit_intercept else 0.0)
    variance = np.empty(len(K))
    for i in range(len(K)):
        at = np.flatnonzero(told & (np.arange(len(K)) != i))
        given = K[np.ix_(at, at)] + np.diag(noise[at])
        variance[i] = K[i, i] - K[i, at] @ np.linalg.solve(given, K[at, i])
    return variance


@pytest.mark.parametrize("fit_intercept", [True, False])
@pytest.mark.parametrize("share", [0.3, 0.9])
def test_variances_as_defined(share, fit_intercept):
    rng = np.random.default_rng(1)
    K = Kernel("rbf", 1.0)(rng.normal(size=(40, 3)))
    told = rng.random((40, 6)) < share
    noise = rng.uniform(0.1, 1.0, told.shape)
    given = _Given(K, told, fit_intercept, ridge=1e-10, pivot=0.0)
    for found, open_ in (
        (given.variances(noise, np.ones_like(told)), noise),
        (given.noiseless_variances(), np.zeros_like(noise)),
    ):
        expected = [conditional(K, *column, fit_intercept) for column in zip(told.T, open_.T, strict=True)]
        np.testing.assert_allclose(found.T, expected, rtol=1e-4, atol=1e-5)


def test_what_a_row_leaves_open_as_defined():
    """The scores 0 and 2 of four have a pinned difference, and all sum to zero."""
    variance = np.array([[0.3, 0.8, 0.5, 0.4]])
    told = np.array([[True, False, True, False]])
    pins = np.array([[1.0, 0.0, -1.0, 0.0], [1.0, 1.0, 1.0, 1.0]])
    V = np.diag(variance[0])
    given = V - V @ pins.T @ np.linalg.solve(pins @ V @ pins.T, pins @ V)
    for j in (0, 2):
        news = 1.0 / (1.0 / given[j, j] - 1.0 / variance[0, j])
        np.testing.assert_allclose(_left_open(told, variance)[0, j], news)


@pytest.mark.parametrize("loss", LOSSES)
def test_repeated_rows_and_single_precision(loss):
    problem, point = solved(loss, 4, 4.0, n=120, repeated=40)
    double = frozen_left_out_scores(problem, point, BY_SCORE)
    single = frozen_left_out_scores(problem, point, LeftOutSettings(by_score=0, single_error=1e-3))
    assert np.isfinite(double).all()
    assert np.abs(single - double).mean() < 1e-2


def test_a_class_that_no_row_tells_of_keeps_its_own_variance():
    lost = np.array([[0.5, -0.5, 0.0], [-0.5, 0.5, 0.0]])
    nothing = np.empty(0, dtype=np.intp), np.empty((0, 3))
    options = {"fit_intercept": True, "ridge": 1e-8, "pivot": 0.0, "untold": 0.4, "sweeps": 2}
    for single_scores in (True, False):
        found = score_changes(2.0 * np.eye(2), *nothing, lost, single_scores=single_scores, **options)
        np.testing.assert_allclose(found, 2.0 * lost)
