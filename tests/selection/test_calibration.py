"""Maps from scores to probabilities: optimal, certified, and blind to how repeated rows are written."""

import numpy as np
import pytest
from scipy.optimize import minimize
from scipy.special import log_softmax
from sklearn.calibration import CalibratedClassifierCV
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LogisticRegression

from polymargin.problems.softmax import LEAST_SLOPE, SoftmaxProblem, logits
from polymargin.selection.calibration import METHODS, choose_map, fit_map, left_out_probabilities, log_losses
from polymargin.solvers.contract import Settings, Status
from polymargin.solvers.softmax_newton import SoftmaxNewton, SoftmaxSystem


def sample(seed, n=80, k=4, noise=1.5):
    rng = np.random.default_rng(seed)
    labels = np.concatenate([np.arange(k), np.arange(k), rng.integers(0, k, n - 2 * k)])
    scores = 2.0 * np.eye(k)[labels] + noise * rng.normal(size=(n, k))
    return scores, labels, rng.integers(1, 4, n).astype(float)


def problem(seed, size):
    scores, labels, weights = sample(seed)
    k = scores.shape[1]
    d = {"slope": 1, "offsets": 1 + k, "matrix": 1 + k + k * k}[size]
    ridge = np.random.default_rng(seed).uniform(0.1, 2.0, d)
    return SoftmaxProblem(scores, 0.9 * np.eye(k)[labels] + 0.1 / k, weights, ridge)


SIZES = ("slope", "offsets", "matrix")


@pytest.mark.parametrize("size", SIZES)
def test_derivatives(size):
    stated = problem(0, size)
    rng = np.random.default_rng(1)
    theta, direction = np.abs(rng.normal(size=(2, len(stated.ridge))))
    here = stated.at(theta)
    step = 1e-6 * direction
    ahead, behind = stated.at(theta + step), stated.at(theta - step)
    np.testing.assert_allclose(here.gradient @ (2 * step), ahead.value - behind.value, rtol=1e-6)
    system = SoftmaxSystem(stated)
    system.at(theta)
    change = system.hessian(0, len(theta)).H @ (2 * step)
    np.testing.assert_allclose(change, ahead.gradient - behind.gradient, rtol=1e-5, atol=1e-10)


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("size", SIZES)
def test_newton_finds_what_another_optimiser_finds(size, seed):
    stated = problem(seed, size)
    solution = SoftmaxNewton().solve(stated, Settings(1e-12, 100))
    assert solution.status is Status.SOLVED
    assert 0.0 <= solution.certificate.gap <= 1e-12

    def slow(theta):
        z = logits(theta, stated.scores)
        losses = -(stated.targets * log_softmax(z, axis=1)).sum(axis=1)
        return stated.weights @ losses + 0.5 * stated.ridge @ theta**2

    other = minimize(slow, stated.start(), method="BFGS", options={"gtol": 1e-6, "maxiter": 2000})
    np.testing.assert_allclose(solution.certificate.primal, other.fun, rtol=1e-8)
    assert solution.certificate.dual <= other.fun + 1e-9


@pytest.mark.parametrize("size", SIZES)
def test_the_gap_bounds_the_distance_from_the_optimum_anywhere(size):
    stated = problem(3, size)
    best = SoftmaxNewton().solve(stated, Settings(1e-13, 100)).certificate.primal
    rng = np.random.default_rng(0)
    for _ in range(20):
        certificate = stated.certify(np.abs(rng.normal(size=len(stated.ridge))))
        assert certificate.dual <= best + 1e-9 <= certificate.primal + 2e-9


def test_scores_that_mislead_keep_their_order_all_the_same():
    scores, labels, weights = sample(0)
    fitted = fit_map("temperature", -scores, labels, weights)
    assert fitted.parameters[0] == LEAST_SLOPE
    assert fitted.certificate.within(1e-10)
    np.testing.assert_array_equal(fitted.probabilities(scores).argmax(axis=1), scores.argmax(axis=1))


@pytest.mark.parametrize("method", METHODS)
def test_weights_are_repetition(method):
    scores, labels, weights = sample(1)
    times = weights.astype(int)
    weighted = fit_map(method, scores, labels, weights)
    repeated = fit_map(method, scores.repeat(times, axis=0), labels.repeat(times), np.ones(times.sum()))
    np.testing.assert_allclose(weighted.probabilities(scores), repeated.probabilities(scores), atol=1e-7)


@pytest.mark.parametrize("method", METHODS)
def test_probabilities_sum_to_one_and_do_not_depend_on_the_unit_of_the_scores(method):
    scores, labels, weights = sample(2)
    P = fit_map(method, scores, labels, weights).probabilities(scores)
    np.testing.assert_allclose(P.sum(axis=1), 1.0, atol=1e-12)
    assert P.min() >= 0.0
    other = fit_map(method, 1000.0 * scores, labels, weights).probabilities(1000.0 * scores)
    np.testing.assert_allclose(other, P, atol=1e-5)


def test_a_sample_without_errors_does_not_make_certain():
    labels = np.arange(60) % 3
    scores = np.eye(3)[labels] - 1 / 3
    for method in ("temperature", "vector", "matrix", "sigmoid"):
        largest = fit_map(method, scores, labels, np.ones(60)).probabilities(scores).max(axis=1)
        assert (largest > 0.9).all()
        assert (largest < 1 - 1e-3).all()


def test_equal_scores_give_the_shares_of_the_classes():
    labels = np.repeat([0, 1, 2], [10, 30, 60])
    P = fit_map("vector", np.zeros((100, 3)), labels, np.ones(100)).probabilities(np.zeros((1, 3)))
    np.testing.assert_allclose(P[0], [0.1, 0.3, 0.6], atol=0.01)


def test_sigmoids_are_those_of_scikit_learn():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(300, 3))
    y = (X @ rng.normal(size=(3, 3)) + rng.normal(size=(300, 3))).argmax(axis=1)
    machine = LogisticRegression().fit(X, y)
    theirs = CalibratedClassifierCV(FrozenEstimator(machine), method="sigmoid").fit(X, y).predict_proba(X)
    scores = machine.decision_function(X)
    ours = fit_map("sigmoid", scores, y, np.ones(300)).probabilities(scores)
    np.testing.assert_allclose(ours, theirs, atol=2e-3)


def test_the_choice_is_rich_enough_for_the_truth_and_no_richer_than_the_rows_allow():
    rng = np.random.default_rng(0)
    n, k = 3000, 3
    scores = rng.normal(size=(n, k))
    truths = {
        "vector": 3.0 * scores + [2.0, 0.0, -2.0],
        "matrix": scores @ np.array([[3.0, 2.0, 0.0], [0.0, 3.0, 0.0], [-2.0, 0.0, 3.0]]),
    }
    for method, z in truths.items():
        labels = (z + rng.gumbel(size=z.shape)).argmax(axis=1)
        choice = choose_map(scores, labels, np.ones(n), np.arange(n) % 5)
        assert choice.method in ("matrix", method)
        assert choice.log_loss[choice.method] < choice.log_loss["temperature"] - 0.05
        refit = fit_map(choice.method, scores, labels, np.ones(n))
        np.testing.assert_allclose(choice.fitted.parameters, refit.parameters, atol=1e-4)
        few = choose_map(scores[:20], labels[:20], np.ones(20), np.arange(20) % 5)
        assert set(few.log_loss) == {"temperature", "vector"}


def test_losses_of_folds_are_near_those_of_refits():
    scores, labels, weights = sample(5, n=400)
    folds = np.arange(400) % 5
    judged = choose_map(scores, labels, weights, folds).log_loss
    for method, loss in judged.items():
        losses = np.empty(400)
        for fold in range(5):
            out = folds == fold
            refit = fit_map(method, scores[~out], labels[~out], weights[~out])
            losses[out] = log_losses(refit.probabilities(scores[out]), labels[out])
        np.testing.assert_allclose(loss, np.average(losses, weights=weights), rtol=0.01)


@pytest.mark.parametrize("method", METHODS)
def test_probabilities_without_a_fold_are_near_those_of_refits(method):
    scores, labels, weights = sample(3, n=300, k=3)
    folds = np.arange(300) % 10
    fitted = fit_map(method, scores, labels, weights)
    found = left_out_probabilities(fitted, method, scores, labels, weights, folds)
    refitted = np.empty_like(found)
    for fold in range(10):
        rest = folds != fold
        without = fit_map(method, scores[rest], labels[rest], weights[rest])
        refitted[~rest] = without.probabilities(scores[~rest])
    moved = np.abs(fitted.probabilities(scores) - refitted).max()
    assert moved > 1e-3
    assert np.abs(found - refitted).max() < 0.15 * moved


@pytest.mark.parametrize("scale", [1e-20, 1e20, 1e29])
def test_weights_of_any_size_are_judged_in_a_bounded_number_of_steps(scale):
    scores, labels, weights = sample(5, n=300, k=3)
    choice = choose_map(scores, labels, scale * weights, np.arange(300) % 5)
    assert np.isfinite(list(choice.log_loss.values())).all()
    assert np.isfinite(choice.fitted.parameters).all()
