"""Extrapolated states of an iteration: near the fixed point sooner, and never lost."""

import numpy as np
import pytest

from polymargin.solvers.hinge.acceleration import Acceleration, AccelerationSettings


def contraction(p=12, slowest=0.99):
    rng = np.random.default_rng(0)
    Q = np.linalg.qr(rng.normal(size=(p, p)))[0]
    matrix, right = Q @ np.diag(np.linspace(0.1, slowest, p)) @ Q.T, rng.normal(size=(p, 1))
    return (lambda t: matrix @ t + right), np.linalg.solve(np.eye(p) - matrix, right)


@pytest.mark.parametrize("memory", [2, 8])
def test_it_is_nearer_than_the_iteration(memory):
    step, solution = contraction()
    acceleration, scale = Acceleration(AccelerationSettings(memory=memory)), np.linspace(0.5, 2.0, 12)[:, None]
    plain = ahead = np.zeros((12, 1))
    for _ in range(40):
        plain, ahead = step(plain), acceleration.following(ahead, step(ahead), scale)
    assert np.linalg.norm(ahead - solution) < 0.1 * np.linalg.norm(plain - solution)


def test_at_the_fixed_point_it_stays():
    step, solution = contraction()
    acceleration, state = Acceleration(), solution
    for _ in range(5):
        state = acceleration.following(state, step(state), np.ones((12, 1)))
    np.testing.assert_allclose(state, solution, atol=1e-9)


def test_what_leads_away_is_taken_back():
    """Behind an extrapolation whose step is much longer the state before it comes next, and all is forgotten."""
    step, _ = contraction()
    acceleration, state, one = Acceleration(), np.zeros((12, 1)), np.ones((12, 1))
    for _ in range(3):
        plain = step(state)
        before, state = state, acceleration.following(state, plain, one)
    assert np.abs(state - plain).max() > 0.0
    back = acceleration.following(state, state + 1e3 * np.linalg.norm(plain - before), one)
    np.testing.assert_array_equal(back, plain)
    np.testing.assert_array_equal(acceleration.following(back, step(back), one), step(back))


def test_the_state_returned_may_be_changed_in_place():
    """What it has been given is kept, and must not change with it."""
    step, _ = contraction()
    first, second, one = Acceleration(), Acceleration(), np.ones((12, 1))
    state, other = np.zeros((12, 1)), np.zeros((12, 1))
    for _ in range(6):
        state = first.following(state, step(state), one)
        before, other[:] = other.copy(), step(other)
        other = second.following(before, other, one)
        np.testing.assert_array_equal(other, state)
