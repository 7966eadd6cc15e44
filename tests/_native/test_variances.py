"""Inverses, and variances of scores given others, against their definitions."""

import itertools

import numpy as np
import pytest

from polymargin._native.variances import given_inverse, given_told, invert, make_up, pin, weigh
from polymargin.gram import Kernel

DIGITS = {np.float32: 2e-4, np.float64: 1e-9}


def positive(n, dtype):
    rng = np.random.default_rng(n)
    A = rng.normal(size=(n, 2 * n + 2))
    return (A @ A.T / (2 * n + 2)).astype(dtype)


@pytest.mark.parametrize("dtype", DIGITS)
@pytest.mark.parametrize("n", [0, 1, 2, 16, 17, 33, 64, 150])
def test_inverse_of_the_upper_triangle(n, dtype):
    matrix = positive(n, dtype)
    found = matrix.copy()
    found[np.tril_indices(n, -1)] = np.nan
    assert invert(found, 0.0)
    np.testing.assert_array_equal(found, found.T)
    np.testing.assert_allclose(found @ matrix, np.eye(n), atol=100 * DIGITS[dtype])


@pytest.mark.parametrize("dtype", DIGITS)
def test_low_pivots_and_indefinite_matrices_are_refused(dtype):
    matrix = np.diag(np.array([1.0, 1e-3, 1.0])).astype(dtype)
    assert invert(matrix.copy(), 9e-4)
    assert not invert(matrix.copy(), 2e-3)
    assert not invert(-matrix, 0.0)


@pytest.mark.parametrize("dtype", DIGITS)
def test_weighing_by_places(dtype):
    rng = np.random.default_rng(0)
    matrix, K, place = rng.normal(size=(6, 6)).astype(dtype), rng.normal(size=(3, 3)), np.array([0, 0, 1, 2, 2, 2])
    found = matrix.copy()
    weigh(found, K, place)
    expected = matrix * K[np.ix_(place, place)]
    np.testing.assert_allclose(np.triu(found), np.triu(expected), rtol=1e-6)


def defined(K, told, noise, fit_intercept):
    """Variance of the value at every row given noisy values at the other rows of `told`, by its definition."""
    found = np.empty(len(K))
    for i in range(len(K)):
        at = np.flatnonzero(told & (np.arange(len(K)) != i))
        inverse = np.linalg.inv(K[np.ix_(at, at)] + np.diag(noise[at]))
        found[i] = K[i, i] - K[i, at] @ inverse @ K[at, i]
        if fit_intercept:
            found[i] += (1.0 - inverse.sum(axis=0) @ K[at, i]) ** 2 / inverse.sum()
    return found


@pytest.mark.parametrize("fit_intercept", [True, False])
@pytest.mark.parametrize("dtype", DIGITS)
def test_variances_given_what_is_told(dtype, fit_intercept):
    rng = np.random.default_rng(1)
    n, k, ridge = 60, 5, 1e-2
    K = Kernel("rbf", 1.0)(rng.normal(size=(n, 3)))
    told = rng.random((n, k)) < np.array([0.1, 0.3, 0.5, 0.9, 1.0])
    noise = rng.uniform(0.1, 1.0, (n, k))
    everything, found = np.ones((n, k), dtype=np.uint8), np.empty((n, k))
    assert given_told(K.astype(dtype), told.view(np.uint8), everything, noise, 0.0, fit_intercept, found)
    expected = np.transpose([defined(K, t, e, fit_intercept) for t, e in zip(told.T, noise.T, strict=True)])
    np.testing.assert_allclose(found, expected, rtol=DIGITS[dtype], atol=DIGITS[dtype])

    inverse = (K + ridge * np.eye(n)).astype(dtype)
    assert invert(inverse, 0.0)
    sums = inverse @ told.astype(dtype)
    assert given_inverse(inverse, told.view(np.uint8), sums, ridge, fit_intercept, found)
    expected = np.transpose([defined(K, t, np.full(n, ridge), fit_intercept) for t in told.T])
    np.testing.assert_allclose(found, expected, rtol=20 * DIGITS[dtype], atol=20 * DIGITS[dtype])


def test_only_what_is_asked_is_set_and_a_class_of_which_nothing_is_told_keeps_its_variance():
    K = Kernel("rbf", 1.0)(np.random.default_rng(0).normal(size=(10, 2)))
    told, asked = np.zeros((10, 2), dtype=np.uint8), np.zeros((10, 2), dtype=np.uint8)
    told[:4, 0], asked[7, :] = 1, 1
    found = np.full((10, 2), np.nan)
    assert given_told(K, told, asked, np.full((10, 2), 0.1), 0.0, True, found)
    np.testing.assert_array_equal(np.isfinite(found[:, 0]).nonzero()[0], [0, 1, 2, 3, 7])
    np.testing.assert_array_equal(np.isfinite(found[:, 1]).nonzero()[0], [7])
    assert found[7, 1] == K[7, 7]


def test_a_pivot_that_is_too_low_is_told():
    told = np.ones((4, 1), dtype=np.uint8)
    assert not given_told(np.ones((4, 4)), told, told, np.full((4, 1), 1e-6), 1e-4, True, np.empty((4, 1)))


EDGES = np.array([0, 1, 1, 4, 6, 6])


def test_own_multipliers_make_up_for_what_they_can():
    rng = np.random.default_rng(0)
    direction, lost, steps = rng.normal(size=(6, 4)), rng.normal(size=(5, 4)), np.empty(6)
    rest = lost.copy()
    make_up(direction, EDGES, rest, steps)
    for i, own in enumerate(itertools.starmap(slice, itertools.pairwise(EDGES))):
        expected = np.linalg.lstsq(direction[own].T, lost[i], rcond=None)[0]
        np.testing.assert_allclose(steps[own], expected, atol=1e-10)
        np.testing.assert_allclose(rest[i], lost[i] - expected @ direction[own], atol=1e-10)


@pytest.mark.parametrize("dtype", DIGITS)
def test_pinned_multipliers_do_not_move(dtype):
    rng = np.random.default_rng(1)
    inverse, spread = positive(6, dtype), rng.normal(size=(6, 2))
    pulled, start = 1e-2 * spread, rng.normal(size=(5, 6)).astype(dtype)
    step, pull = start.copy(), np.zeros((5, 2))
    assert not pin(inverse, spread, pulled, EDGES, step, pull)
    moved = step - pull @ spread.T
    answer = inverse - pulled @ spread.T
    for i, own in enumerate(itertools.starmap(slice, itertools.pairwise(EDGES))):
        np.testing.assert_allclose(moved[i, own], 0.0, atol=10 * DIGITS[dtype])
        forces = -np.linalg.solve(answer[own, own], start[i, own])
        np.testing.assert_allclose(moved[i], start[i] + forces @ answer[own], atol=100 * DIGITS[dtype])


def test_rows_whose_own_answers_are_singular_are_told_and_left_alone():
    inverse = positive(6, np.float64)
    inverse[3] = inverse[2]
    inverse[:, 3] = inverse[:, 2]
    nothing, step = np.zeros((6, 1)), np.ones((5, 6))
    assert pin(inverse, nothing, nothing, EDGES, step, np.zeros((5, 1))) == [2]
    np.testing.assert_array_equal(step[2], 1.0)
    assert (step[0] != 1.0).any()
