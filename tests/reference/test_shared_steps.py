"""M-steps with a symmetric or semi-definite matrix against CVXPY."""

import cvxpy
import numpy as np
import pytest

from polymargin.relations import RelationSet
from polymargin.solvers.shared.relation_step import relation_step


def reference_step(F, Y, kappa, relations):
    b = F.shape[1]
    M = cvxpy.Variable((b, b))
    constraints = [M == M.T]
    if relations.psd:
        constraints += [M >> 0]
    if relations.is_bounded:
        constraints += [relations.lower <= M, relations.upper >= M]
    objective = cvxpy.Minimize(cvxpy.sum_squares(Y - F @ M) + kappa * cvxpy.sum_squares(M))
    cvxpy.Problem(objective, constraints).solve(
        solver="CLARABEL", tol_gap_abs=1e-10, tol_gap_rel=1e-10, tol_feas=1e-10
    )
    return M.value


@pytest.mark.parametrize("psd", [False, True])
@pytest.mark.parametrize("bound", [None, 0.15])
@pytest.mark.parametrize("seed", range(4))
def test_symmetric_and_semidefinite_steps_equal_cvxpy(seed, bound, psd):
    rng = np.random.default_rng(seed)
    n, b, kappa = 30, 5, 10.0 ** rng.uniform(-2, 1)
    F = rng.normal(size=(n, b)) @ rng.normal(size=(b, b))
    Y = rng.choice([-1.0, 1.0], size=(n, b))
    limit = np.full((b, b), np.inf if bound is None else bound)
    relations = RelationSet(-limit, limit, symmetric=True, psd=psd)
    M, multiplier = relation_step(F.T @ F, F.T @ Y, kappa, relations)
    reference = reference_step(F, Y, kappa, relations)

    def objective(M):
        return np.sum((Y - F @ M) ** 2) + kappa * np.sum(M**2)

    assert relations.violation(M) <= 1e-11
    assert objective(M) == pytest.approx(objective(reference), abs=1e-8)
    if psd and bound is None:
        slope = F.T @ (F @ M - Y) + kappa * M
        np.testing.assert_allclose(slope + slope.T, multiplier, rtol=0, atol=1e-9)
    if psd:
        assert np.linalg.eigvalsh(multiplier)[0] >= -1e-9
        assert abs(np.vdot(multiplier, M)) <= 1e-8 * max(1, np.abs(multiplier).max())


@pytest.mark.parametrize("psd", [False, True])
def test_fixed_diagonal_of_ones(psd):
    rng = np.random.default_rng(9)
    F, Y = rng.normal(size=(20, 4)), rng.choice([-1.0, 1.0], size=(20, 4))
    lower, upper = np.full((4, 4), -np.inf), np.full((4, 4), np.inf)
    np.fill_diagonal(lower, 1.0)
    np.fill_diagonal(upper, 1.0)
    relations = RelationSet(lower, upper, symmetric=True, psd=psd)
    M, _ = relation_step(F.T @ F, F.T @ Y, 0.1, relations)
    np.testing.assert_allclose(np.diag(M), 1.0, rtol=0, atol=1e-11)
    np.testing.assert_allclose(M, reference_step(F, Y, 0.1, relations), rtol=0, atol=1e-5)
