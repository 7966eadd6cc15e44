"""The exact intercept: against a linear program, and its centre where it is not unique."""

import numpy as np
import pytest
from scipy.optimize import linprog

from polymargin.problems.hinge.catalogue import loss_of
from polymargin.solvers.hinge.intercept import central_intercept, potential_intercept, quantile_intercept
from polymargin.solvers.hinge.moves import NONE


def value(G, upper, b):
    return float((upper * np.maximum(b - G, 0.0)).sum())


def linear_program(G, upper):
    """Smallest value over b of zero sum, one slack a hinge."""
    n, k = G.shape
    # slack_ij >= b_j - G_ij
    hinges = np.hstack([np.kron(np.ones((n, 1)), np.eye(k)), -np.eye(n * k)])
    sums = np.concatenate([np.ones(k), np.zeros(n * k)])[None]
    cost = np.concatenate([np.zeros(k), upper.ravel()])
    bounds = [(None, None)] * k + [(0, None)] * (n * k)
    return linprog(cost, hinges, G.ravel(), sums, [0.0], bounds).fun


@pytest.mark.parametrize("seed", range(20))
def test_intercept_minimises_the_losses(seed):
    rng = np.random.default_rng(seed)
    n, k = rng.integers(2, 30), rng.integers(2, 6)
    G = rng.normal(size=(n, k))
    if seed % 2:
        G = G.round(1)  # ties
    upper = rng.choice([0.0, 1.0, 2.0, 0.3], size=(n, k))
    b = quantile_intercept(G, upper)
    assert abs(b.sum()) < 1e-12
    assert value(G, upper, b) == pytest.approx(linear_program(G, upper), abs=1e-9)


def test_intercept_that_is_not_unique_is_central_whatever_the_order():
    # balanced classes, no margin violated: weights tie in every class
    rng = np.random.default_rng(0)
    labels = np.repeat(np.arange(4), 6)
    upper = 0.1 * (labels[:, None] != np.arange(4))
    G = np.where(upper > 0, rng.normal(size=(24, 4)), 0.0)
    b = quantile_intercept(G, upper)
    for _ in range(10):
        rows, classes = rng.permutation(24), rng.permutation(4)
        shuffled = quantile_intercept(G[rows][:, classes], upper[rows][:, classes])
        np.testing.assert_allclose(shuffled, b[classes], atol=1e-12)


def test_intercept_of_a_class_without_losses():
    upper = np.array([[0.0, 1.0, 0.0], [1.0, 0.0, 0.0]])
    b = quantile_intercept(np.array([[0.0, -1.0, 0.0], [-2.0, 0.0, 0.0]]), upper)
    assert b[0] <= -2.0
    assert b[1] <= -1.0
    assert abs(b.sum()) < 1e-12


@pytest.mark.parametrize("seed", range(60))
def test_a_guess_changes_no_value(seed):
    """Near or far, of few rows or many, with ties, and where nothing is lost near the guess."""
    rng = np.random.default_rng(seed)
    n, k = int(rng.integers(2, 2000)), int(rng.integers(2, 9))
    H = rng.normal(size=(n, k)) * 10.0 ** rng.integers(-3, 2)
    if seed % 3 == 0:
        H = H.round(2)  # ties
    upper = rng.choice([0.0, 1.0, 2.0, 0.3], size=(n, k))
    if seed % 5 == 0:
        upper[:, 0] = 0.0  # a class that costs nothing
    labels = rng.integers(0, k, n)
    upper[np.arange(n), labels] = 0.0
    losses, nothing = loss_of("lee").over(labels, upper), np.zeros((n, k))
    b = central_intercept(losses, nothing, H)
    for far in (0.0, 0.01, 0.3, 30.0):
        guess = b + far * rng.normal(size=k)
        found = central_intercept(losses, nothing, H, guess=guess - guess.mean())
        assert abs(found.sum()) < 1e-12 * max(1.0, abs(found).max())
        assert losses.value(H + found) == pytest.approx(losses.value(H + b), rel=1e-12, abs=1e-12)


def test_potentials_of_many_classes_where_cycles_are_zero_but_for_rounding():
    # as at the solution on a face: shortest paths along cycles that rounding makes negative used to run away
    rng = np.random.default_rng(0)
    k = 150
    b = rng.normal(size=k)
    b -= b.mean()
    arcs = b[:, None] - b + 1e-14 * rng.normal(size=(k, k))  # the only potentials, from either side
    np.fill_diagonal(arcs, NONE)
    np.testing.assert_allclose(potential_intercept(arcs), b, atol=1e-10)
