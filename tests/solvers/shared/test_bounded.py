"""Block principal pivoting against SciPy's bounded least squares, and on degenerate programs."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import lsq_linear

from polymargin.solvers.shared.bounded import bounded_quadratic
from polymargin.solvers.shared.settings import DEFAULTS


def pivoting_twin(Q, r, lower, upper):
    """Slow NumPy twin of the compiled pivoting, for one program."""
    m = np.linalg.solve(Q, r)
    held = lower == upper
    side = np.where((m <= lower) | held, -1, np.where(m >= upper, 1, 0))
    fewest, patience = len(r) + 1, DEFAULTS.pivot_patience
    while True:
        free = side == 0
        m = np.where(side < 0, lower, np.where(side > 0, upper, 0.0))
        m[free] = np.linalg.solve(Q[np.ix_(free, free)], r[free] - Q[np.ix_(free, ~free)] @ m[~free])
        slope = Q @ m - r
        better = np.where(free, np.where(m < lower, -1, np.where(m > upper, 1, 0)), side)
        better[(side < 0) & ~held & (slope < -1e-13)] = 0
        better[(side > 0) & (slope > 1e-13)] = 0
        wrong = np.flatnonzero(better != side)
        if len(wrong) == 0:
            return m
        patience = DEFAULTS.pivot_patience if len(wrong) < fewest else patience - 1
        fewest = min(fewest, len(wrong))
        change = wrong if patience >= 0 else wrong[-1:]
        side[change] = better[change]


def random_programs(rng, b, p, *, width=0.3, ridge=1e-2):
    F = np.vstack([rng.normal(size=(b + 3, b)), np.sqrt(ridge) * np.eye(b)])
    Y = np.vstack([rng.choice([-1.0, 1.0], size=(b + 3, p)), np.zeros((b, p))])
    return F, Y, -rng.uniform(0.01, width, size=(b, p)), rng.uniform(0.01, width, size=(b, p))


@pytest.mark.parametrize("seed", range(20))
@pytest.mark.parametrize("b", [1, 4, 9])
def test_equals_bounded_least_squares_of_scipy(seed, b):
    rng = np.random.default_rng(seed)
    F, Y, lower, upper = random_programs(rng, b, p=5)
    M = bounded_quadratic(F.T @ F, F.T @ Y, lower, upper)
    for m, y, low, up in zip(M.T, Y.T, lower.T, upper.T, strict=True):
        reference = lsq_linear(F, y, (low, up), method="bvls", tol=1e-15).x
        np.testing.assert_allclose(m, reference, rtol=0, atol=1e-10)


@pytest.mark.parametrize("seed", range(20))
def test_compiled_pivoting_equals_its_twin(seed):
    rng = np.random.default_rng(seed)
    F, Y, lower, upper = random_programs(rng, 8, p=6, width=0.1)
    lower[3, 2] = upper[3, 2] = 0.05
    Q, R = F.T @ F, F.T @ Y
    M = bounded_quadratic(Q, R, lower, upper)
    for m, r, low, up in zip(M.T, R.T, lower.T, upper.T, strict=True):
        np.testing.assert_allclose(m, pivoting_twin(Q, r, low, up), rtol=0, atol=1e-12)


def test_matrices_that_are_not_positive_definite_are_refused():
    indefinite, R = np.diag([1.0, -1.0]), np.ones((2, 1))
    with pytest.raises(np.linalg.LinAlgError):
        bounded_quadratic(indefinite, R, -R, R)
    with pytest.raises(np.linalg.LinAlgError):
        bounded_quadratic(indefinite[None], np.array([[2.0], [0.5]]), -R, R)


def test_programs_with_matrices_of_their_own():
    rng = np.random.default_rng(0)
    parts = [random_programs(rng, 6, 1) for _ in range(7)]
    Q = np.stack([F.T @ F for F, *_ in parts])
    R, lower, upper = (
        np.hstack(side) for side in zip(*((F.T @ Y, lo, up) for F, Y, lo, up in parts), strict=True)
    )
    together = bounded_quadratic(Q, R, lower, upper)
    for column, (F, Y, lo, up) in enumerate(parts):
        np.testing.assert_allclose(
            together[:, column], bounded_quadratic(F.T @ F, F.T @ Y, lo, up)[:, 0], rtol=0, atol=1e-13
        )


def test_infinite_bounds_give_the_linear_system_and_equal_bounds_fix_entries():
    rng = np.random.default_rng(1)
    F, Y, lower, upper = random_programs(rng, 5, 3)
    Q, R = F.T @ F, F.T @ Y
    free = np.full_like(lower, np.inf)
    np.testing.assert_allclose(Q @ bounded_quadratic(Q, R, -free, free), R, atol=1e-12)
    lower[2] = upper[2] = 0.05
    assert np.all(bounded_quadratic(Q, R, lower, upper)[2] == 0.05)


@settings(max_examples=150, deadline=None)
@given(seed=st.integers(0, 10**6), b=st.integers(1, 12), ridge=st.sampled_from([1e-8, 1e-3, 1.0]))
def test_satisfies_the_optimality_conditions_also_when_nearly_singular(seed, b, ridge):
    rng = np.random.default_rng(seed)
    F = rng.normal(size=(max(1, b // 2), b))  # rank at most b / 2
    Q = F.T @ F + ridge * np.eye(b)
    R = F.T @ rng.normal(size=(len(F), 4)) * 10
    lower, upper = np.full(R.shape, -0.1), np.full(R.shape, rng.choice([0.0, 0.1, 1.0]))
    M = bounded_quadratic(Q, R, lower, upper)
    slope = Q @ M - R
    scale = 1e-9 * max(1.0, np.abs(R).max())
    assert np.all((lower <= M) & (upper >= M))
    assert np.all((slope <= scale) | (lower == M))
    assert np.all((slope >= -scale) | (upper == M))
