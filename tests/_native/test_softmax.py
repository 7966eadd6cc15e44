"""Sums of the maps from scores to probabilities against those of `problems.softmax`."""

import numpy as np
import pytest

from polymargin._native.softmax import SoftmaxSums, factorise, solve
from polymargin.problems.softmax import SoftmaxProblem, logits, probabilities, pulled_back
from polymargin.selection.calibration import log_losses

SIZES = {2: (1, 3, 7), 3: (1, 4, 13), 11: (1, 12, 133)}


def problem(k, n):
    """More rows than are multiplied out at a time, with weights orders apart."""
    rng = np.random.default_rng(k)
    targets = rng.dirichlet(np.ones(k), n)
    weights = 10.0 ** rng.uniform(-2, 2, n)
    return SoftmaxProblem(rng.normal(size=(n, k)), targets, weights, np.full(1 + k + k * k, 1e-3))


def sums_of(stated):
    by_class = (np.ascontiguousarray(values.T) for values in (stated.scores, stated.targets))
    return SoftmaxSums(*by_class, stated.weights)


def curvature(scores, P, weights, size):
    """Return ``sum_i w_i J_i' (diag(p_i) - p_i p_i') J_i``, J_i the derivative of the logits of row i."""
    J = np.stack([logits(unit, scores) for unit in np.eye(size)], axis=2)
    within = np.einsum("i,ij,ija,ijb->ab", weights, P, J, J, optimize=True)
    means = np.einsum("ij,ija->ia", P, J)
    return within - (weights[:, None] * means).T @ means


@pytest.mark.parametrize("n", [7, 256, 700])
@pytest.mark.parametrize("k", SIZES)
def test_objective_gradient_and_curvature_as_defined(k, n):
    stated = problem(k, n)
    sums, rng = sums_of(stated), np.random.default_rng(n)
    for size in SIZES[k]:
        theta, gradient, H = rng.normal(size=size), np.empty(size), np.empty((size, size))
        plain = SoftmaxProblem(stated.scores, stated.targets, stated.weights, np.zeros(size))
        expected = plain.at(theta)
        np.testing.assert_allclose(sums.objective(theta, gradient), expected.value, rtol=1e-12)
        np.testing.assert_allclose(gradient, expected.gradient, rtol=1e-9, atol=1e-9 * stated.weights.sum())
        np.testing.assert_allclose(sums.probabilities.T, expected.probabilities, rtol=1e-12)
        sums.curvature(0, n, H)
        twin = curvature(stated.scores, expected.probabilities, stated.weights, size)
        np.testing.assert_allclose(H, twin, rtol=1e-9, atol=1e-12 * stated.weights.sum())


@pytest.mark.parametrize("k", SIZES)
def test_steps_and_losses_without_folds_as_defined(k):
    n, edges = 700, np.array([300, 300, 420, 700])
    stated = problem(k, n)
    sums, rng = sums_of(stated), np.random.default_rng(0)
    labels = rng.integers(0, k, n)
    for size in SIZES[k]:
        theta, gradient, H = 0.3 * rng.normal(size=size), np.empty(size), np.empty((size, size))
        sums.objective(theta, gradient)
        P = sums.probabilities.T.copy()
        sums.curvature(0, n, H)
        H += np.eye(size)
        steps = np.empty((4, size))
        assert sums.steps_without(edges, gradient, H, steps).all()
        residual = stated.weights[:, None] * (P - stated.targets)
        for first, last, step in zip([0, *edges[:-1]], edges, steps, strict=True):
            out = slice(first, last)
            rest = H - curvature(stated.scores[out], P[out], stated.weights[out], size)
            right = gradient - pulled_back(residual[out], stated.scores[out], size)
            np.testing.assert_allclose(step, -np.linalg.solve(rest, right), rtol=1e-6, atol=1e-9)
        losses = sums.losses(theta + steps, edges, labels)
        for first, last, step in zip([0, *edges[:-1]], edges, steps, strict=True):
            expected = log_losses(probabilities(theta + step, stated.scores[first:last]), labels[first:last])
            np.testing.assert_allclose(losses[first:last], expected, rtol=1e-9, atol=1e-12)


def test_a_fold_without_which_nothing_is_told_has_no_step():
    stated = problem(3, 300)
    sums = sums_of(stated)
    gradient, H, steps = np.empty(4), np.empty((4, 4)), np.empty((2, 4))
    sums.objective(np.zeros(4), gradient)
    sums.curvature(0, 150, H)
    H += 1e-3 * np.eye(4)
    np.testing.assert_array_equal(sums.steps_without(np.array([0, 300]), gradient, H, steps), [True, False])


@pytest.mark.parametrize("first", [0, 1, 5])
def test_factors_solve_from_the_first_free_coordinate_on(first):
    rng = np.random.default_rng(0)
    A = rng.normal(size=(5, 8))
    H, factor, right = A @ A.T, np.empty((5, 5)), rng.normal(size=5)
    assert factorise(H, first, factor)
    found = right.copy()
    solve(factor, first, found)
    np.testing.assert_array_equal(found[:first], right[:first])
    np.testing.assert_allclose(H[first:, first:] @ found[first:], right[first:], atol=1e-9)
    assert first == 5 or not factorise(H - 100.0 * np.eye(5), first, factor)
