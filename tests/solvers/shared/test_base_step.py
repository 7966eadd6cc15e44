"""W-steps against dense Kronecker systems built from the rows."""

import numpy as np
import pytest

from polymargin.solvers.shared.base_step import make_base_step
from polymargin.solvers.shared.settings import SharedSettings
from tests.simulate_shared import loss, written_out


def dense_step(tasks, M, C, penalty):
    """Minimise ``sum_l ||y_l - A_l W m_l||^2 + vec(W)' penalty vec(W) / C`` over vec(W), row-major."""
    q, b = tasks[0][0].shape[1], len(M)
    system, right = penalty / C, np.zeros(q * b)
    for (A, sign), m in zip(tasks, M.T, strict=True):
        rows = np.kron(A, m)
        system = system + rows.T @ rows
        right += rows.T @ sign
    return np.linalg.solve(system, right).reshape(q, b)


@pytest.mark.parametrize("C", [1e-3, 1.0, 50.0])
@pytest.mark.parametrize(("scheme", "b"), [("ovr", 4), ("ovr", 2), ("ovo", 6), ("ovo", 3)])
@pytest.mark.parametrize("seed", range(3))
def test_original_equals_the_kronecker_system(seed, scheme, b, C):
    rng = np.random.default_rng(seed)
    moments, tasks = written_out(rng, 40, 5, 4, scheme)
    M = rng.uniform(-1, 1, size=(b, len(tasks)))
    step = make_base_step(moments)
    W = step.restore(step.solve(M, C, "original", None))
    reference = dense_step(tasks, M, C, np.eye(W.size))
    np.testing.assert_allclose(W, reference, rtol=0, atol=1e-10 * max(1, np.abs(reference).max()))


@pytest.mark.parametrize("warm", [False, True])
def test_conjugate_gradients_equal_the_kronecker_system(warm):
    rng = np.random.default_rng(3)
    moments, tasks = written_out(rng, 60, 7, 5, "ovo")
    M = rng.uniform(-1, 1, size=(4, len(tasks)))
    start = rng.normal(size=(8, 4)) if warm else None
    W = make_base_step(moments, SharedSettings(dense_unknowns=0)).solve(M, 2.0, "original", start)
    np.testing.assert_allclose(W, dense_step(tasks, M, 2.0, np.eye(W.size)), rtol=0, atol=1e-10)


@pytest.mark.parametrize("scheme", ["ovr", "ovo"])
def test_with_the_identity_the_tasks_are_independent(scheme):
    moments, tasks = written_out(np.random.default_rng(4), 40, 5, 4, scheme)
    step = make_base_step(moments)
    W = step.restore(step.solve(np.eye(len(tasks)), 0.7, "original", None))
    np.testing.assert_allclose(W, step.restore(step.independent(0.7)), rtol=0, atol=1e-12)
    for (A, sign), w in zip(tasks, W.T, strict=True):
        np.testing.assert_allclose(w, np.linalg.solve(A.T @ A + np.eye(6) / 0.7, A.T @ sign), rtol=0, atol=1e-10)


def test_sum_to_zero_equals_the_kronecker_system_where_that_is_regular():
    rng = np.random.default_rng(5)
    moments, tasks = written_out(rng, 60, 4, 4, "ovr")
    M = rng.uniform(-1, 1, size=(3, 4))
    step = make_base_step(moments)
    W = step.restore(step.solve(M, 0.3, "sum_to_zero", None))
    reference = dense_step(tasks, M, 0.3, np.kron(np.eye(5), np.ones((3, 3))))
    np.testing.assert_allclose(W, reference, rtol=0, atol=1e-10)


def test_sum_to_zero_is_optimal_where_the_features_are_dependent():
    rng = np.random.default_rng(6)
    moments, tasks = written_out(rng, 6, 10, 3, "ovr")
    M = rng.uniform(-1, 1, size=(3, 3))
    step = make_base_step(moments)
    W = step.restore(step.solve(M, 0.3, "sum_to_zero", None))

    def objective(W):
        return 0.3 * loss(tasks, W @ M) + np.sum(W.sum(axis=1) ** 2)

    for _ in range(20):
        assert objective(W) <= objective(W + 1e-3 * rng.normal(size=W.shape)) + 1e-12


def test_fast_unmixes_the_ridge_classifiers():
    rng = np.random.default_rng(7)
    moments, _ = written_out(rng, 50, 5, 4, "ovr")
    M = rng.uniform(-1, 1, size=(4, 4))
    step = make_base_step(moments)
    Z = step.restore(step.solve(M, 0.5, "fast", None)) @ M
    np.testing.assert_allclose(Z, step.restore(step.independent(0.5)), rtol=0, atol=1e-10)


@pytest.mark.parametrize("scheme", ["ovr", "ovo"])
def test_terms_and_residuals_equal_those_of_the_rows(scheme):
    rng = np.random.default_rng(8)
    moments, tasks = written_out(rng, 40, 5, 4, scheme)
    step = make_base_step(moments)
    W_inside, M = rng.normal(size=(6, 3)), rng.normal(size=(3, len(tasks)))
    W = step.restore(W_inside)
    Q, R = step.relation_terms(W_inside)
    pull, fit = step.residual(W_inside, M, 2.0)
    pull = step.restore(pull)
    for index, (A, sign) in enumerate(tasks):
        F = A @ W
        np.testing.assert_allclose(Q if Q.ndim == 2 else Q[index], F.T @ F, atol=1e-10)
        np.testing.assert_allclose(R[:, index], F.T @ sign, atol=1e-10)
        np.testing.assert_allclose(pull[:, index], 2.0 * A.T @ (sign - F @ M[:, index]), atol=1e-9)
    assert fit == pytest.approx(sum((A @ W @ m) @ sign for (A, sign), m in zip(tasks, M.T, strict=True)))
