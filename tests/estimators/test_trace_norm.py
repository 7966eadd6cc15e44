"""TraceNormSVC: equal to the unconstrained shared structure, certified, low rank."""

import cvxpy
import numpy as np
import pytest
from scipy import sparse

from polymargin import SharedStructureSVC, TraceNormSVC
from polymargin.coding import class_pairs, one_vs_rest_signs
from tests.simulate import blobs


@pytest.fixture
def data():
    return blobs(np.random.default_rng(0), 50, 4, 4, spread=1.5)


@pytest.mark.parametrize("scheme", ["ovr", "ovo"])
def test_squared_loss_is_shared_structure_without_constraints(data, scheme):
    X, y = data
    trace = TraceNormSVC(0.05, 0.5, scheme=scheme, tol=1e-9).fit(X, y)
    shared = SharedStructureSVC(0.05, 0.5, scheme=scheme, bounds=None, tol=1e-9).fit(X, y)
    np.testing.assert_allclose(trace.coef_, shared.coef_, atol=1e-6)
    assert trace.certificate_.primal == pytest.approx(shared.certificate_.primal, rel=1e-9)


@pytest.mark.parametrize("scheme", ["ovr", "ovo"])
@pytest.mark.parametrize("penalty", [0.1, 1.0])
def test_smoothed_hinge_equals_the_semidefinite_program(data, scheme, penalty):
    X, y = data
    weights = np.random.default_rng(1).uniform(0.5, 2, len(y))
    model = TraceNormSVC(0.1, penalty, loss="smoothed_hinge", scheme=scheme, tol=1e-7).fit(X, y, weights)
    A = np.column_stack([X, -np.ones(len(X))])
    if scheme == "ovr":
        signs = one_vs_rest_signs(y, 4)
    else:
        signs = np.column_stack([(y == i).astype(float) - (y == j) for i, j in class_pairs(4)])
    Z = cvxpy.Variable((5, signs.shape[1]))
    # the smoothed hinge is huber(1 - z)/2 for z <= 1 with its linear part from 0 on
    losses = cvxpy.huber(cvxpy.pos(1 - cvxpy.multiply(signs, A @ Z)), 1) / 2
    objective = 0.1 * cvxpy.sum(cvxpy.multiply(weights[:, None] * np.abs(signs), losses))
    reference = cvxpy.Problem(cvxpy.Minimize(objective + 2 * np.sqrt(penalty) * cvxpy.normNuc(Z)))
    reference.solve(solver="CLARABEL", tol_gap_abs=1e-8, tol_gap_rel=1e-8, tol_feas=1e-8)
    assert model.converged_
    assert model.certificate_.primal == pytest.approx(reference.value, rel=3e-7)
    assert model.certificate_.dual <= reference.value * (1 + 3e-7)


@pytest.mark.parametrize("loss", ["squared", "smoothed_hinge"])
def test_a_strong_penalty_lowers_the_rank(data, loss):
    X, y = data
    weak, strong = (TraceNormSVC(0.1, nu, loss=loss, tol=1e-9).fit(X, y) for nu in (1e-4, 3.0))
    np.testing.assert_allclose(
        weak.singular_values_,
        np.linalg.svd(np.column_stack([weak.coef_, weak.intercept_]), compute_uv=False),
        atol=1e-9,
    )
    assert np.sum(weak.singular_values_ > 1e-4) == 4
    assert np.sum(strong.singular_values_ > 1e-4) < 4


@pytest.mark.parametrize("loss", ["squared", "smoothed_hinge"])
def test_weights_equal_repeated_rows(data, loss):
    X, y = data
    weights = np.random.default_rng(1).integers(0, 3, len(y))
    weights[:4] = 1
    options = {"class_weight": "balanced", "loss": loss, "tol": 1e-9}
    weighted = TraceNormSVC(0.1, **options).fit(X, y, sample_weight=weights)
    repeated = TraceNormSVC(0.1, **options).fit(np.repeat(X, weights, axis=0), np.repeat(y, weights))
    np.testing.assert_allclose(weighted.decision_function(X), repeated.decision_function(X), atol=1e-6)


@pytest.mark.parametrize("loss", ["squared", "smoothed_hinge"])
def test_sparse_wide_rows(loss):
    X, y = blobs(np.random.default_rng(2), 20, 30, 3)
    X[np.abs(X) < 0.7] = 0.0
    dense, from_sparse = (TraceNormSVC(0.1, loss=loss).fit(rows, y) for rows in (X, sparse.csr_array(X)))
    assert dense.converged_
    np.testing.assert_allclose(dense.coef_, from_sparse.coef_, atol=1e-10)


def test_stream_equals_batch_and_needs_the_squared_loss(data):
    X, y = data
    stream = TraceNormSVC(0.1, tol=1e-10)
    for rows in np.array_split(np.arange(len(y)), 4):
        stream.partial_fit(X[rows], y[rows], classes=np.arange(4))
    np.testing.assert_allclose(stream.coef_, TraceNormSVC(0.1, tol=1e-10).fit(X, y).coef_, atol=1e-6)
    assert not hasattr(TraceNormSVC(loss="smoothed_hinge"), "partial_fit")


def test_wrong_loss_is_named(data):
    with pytest.raises(ValueError, match="loss must be one of 'squared', 'smoothed_hinge'"):
        TraceNormSVC(loss="hinge").fit(*data)
