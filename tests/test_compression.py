"""Compressed kernel machines: the certificate bounds every change, and the coefficients are the best there are."""

import numpy as np
import pytest
from scipy import sparse
from sklearn.exceptions import NotFittedError
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC

from polymargin import (
    MarginSearch,
    MulticategorySVC,
    ProximalSVC,
    RejectOptionClassifier,
    RobustSVC,
    SharedStructureSVC,
    TraceNormSVC,
    compress,
)
from tests.simulate import blobs

MACHINES = (
    MulticategorySVC(kernel="rbf", gamma=0.3),
    MulticategorySVC(kernel="laplacian"),
    MulticategorySVC(kernel="rbf", gamma=0.05, landmarks=40, random_state=0),
    ProximalSVC(kernel="rbf", gamma=0.05),
    RobustSVC(kernel="rbf"),
    SharedStructureSVC(kernel="rbf"),
    SharedStructureSVC(kernel="rbf", scheme="ovo"),
    TraceNormSVC(kernel="rbf"),
)


@pytest.fixture(scope="module")
def data():
    X, y = blobs(np.random.default_rng(3), 400, 4, 3)
    return X[:120], y[:120], X[120:]


@pytest.mark.parametrize("max_loss", [1.0, 0.05, 1e-6])
@pytest.mark.parametrize("machine", MACHINES, ids=repr)
def test_no_score_changes_by_more_than_the_certificate(machine, max_loss, data):
    X, y, rows = data
    model = machine.fit(X, y)
    scores = model.decision_function(rows)
    small = compress(model, max_loss=max_loss, X=rows)
    assert small.n_points <= small.n_points_before
    assert small.largest_change <= small.bound <= max_loss
    assert small.n_rows == len(rows)
    np.testing.assert_array_equal(model.decision_function(rows), scores)  # the model itself stays as it was
    if getattr(machine, "scheme", "ovr") == "ovr":
        change = np.abs(small.model.decision_function(rows) - scores).max()
        assert change == pytest.approx(small.largest_change, abs=1e-12)
    assert small.n_changed == (small.model.predict(rows) != model.predict(rows)).sum()


def test_kernels_whose_diagonal_is_not_constant(data):
    X, y, _ = data
    model = MulticategorySVC(kernel="poly", gamma=0.05, coef0=1.0).fit(X, y)
    small = compress(model, max_loss=0.1)  # judged at the model's own points, for which the certificate holds
    assert small.largest_change <= small.bound <= 0.1


def test_coefficients_are_those_of_least_distance(data):
    """Beside a projection that is computed from the whole kernel matrix at once."""
    X, y, _ = data
    model = MulticategorySVC(kernel="rbf", gamma=0.1).fit(X, y)
    small = compress(model, max_loss=0.3)
    points, weights = model.support_vectors_, model.dual_coef_.T

    def kernel(A, B):
        return np.exp(-0.1 * np.square(A[:, None] - B[None]).sum(axis=2))

    chosen = small.model.landmarks_
    best = np.linalg.lstsq(kernel(chosen, chosen), kernel(chosen, points) @ weights, rcond=None)[0]
    np.testing.assert_allclose(small.model.dual_coef_.T, best, atol=1e-8)
    everything, coefs = np.vstack([points, chosen]), np.vstack([weights, -best])
    distance = np.sqrt(np.einsum("ic,ij,jc->c", coefs, kernel(everything, everything), coefs).max())
    assert small.distance == pytest.approx(distance, rel=1e-6)


def test_points_that_repeat_or_span_little_are_left_out(data):
    X, y, _ = data
    flat = np.column_stack([X[:, 0], np.zeros((len(X), 3))])
    model = ProximalSVC(kernel="poly", degree=2, coef0=1.0).fit(flat, y)
    small = compress(model, max_loss=1e-4)
    assert small.n_points == 3  # the span of 1, x and x^2
    assert small.n_changed == 0


def test_pipelines_searches_rejection_and_sparse_rows(data):
    X, y, rows = data
    machine = MulticategorySVC(kernel="rbf")
    for model in (
        make_pipeline(StandardScaler(), machine),
        make_pipeline(StandardScaler(), RejectOptionClassifier(machine)),
        RejectOptionClassifier(make_pipeline(StandardScaler(), machine)),
        MarginSearch(machine, Cs=[0.1, 1.0], gammas=[0.1]),
    ):
        small = compress(model.fit(X, y), max_loss=0.2, X=rows)
        assert 0 < small.n_points < small.n_points_before
        assert small.n_changed <= (small.model.predict(rows) != model.predict(rows)).sum() <= 5
    small = compress(machine.fit(sparse.csr_array(X), y), max_loss=0.2, X=sparse.csr_array(rows))
    assert small.largest_change <= small.bound <= 0.2


def test_bad_input(data):
    X, y, _ = data
    with pytest.raises(NotFittedError):
        compress(MulticategorySVC(), max_loss=0.1)
    fitted = MulticategorySVC(kernel="rbf").fit(X, y)
    for wrong in (0.0, -1.0, "a", None):
        with pytest.raises((ValueError, TypeError), match="max_loss"):
            compress(fitted, max_loss=wrong)
    with pytest.raises(ValueError, match="nothing to compress"):
        compress(ProximalSVC().fit(X, y), max_loss=0.1)
    with pytest.raises(ValueError, match="precomputed"):
        compress(MulticategorySVC(kernel="precomputed").fit(X @ X.T, y), max_loss=0.1)
    with pytest.raises(ValueError, match="not positive definite: it has no norm"):
        compress(MulticategorySVC(kernel="sigmoid", gamma=0.05).fit(X, y), max_loss=0.1)
    indefinite = ProximalSVC(kernel=lambda A, B: np.tanh(A @ B.T - 1.0))
    with pytest.raises(ValueError, match="not positive definite"):
        compress(indefinite.fit(X, y), max_loss=0.1)
    with pytest.raises(TypeError, match="kernel classifier of polymargin, got SVC"):
        compress(SVC().fit(X, y), max_loss=0.1)
    with pytest.raises(ValueError, match="features"):
        compress(fitted, max_loss=0.1, X=X[:, 1:])
