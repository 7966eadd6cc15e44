"""The formula of the scores: right for every kernel, made once, never stored, and never out of date."""

import pickle

import numpy as np
import pytest
from scipy import sparse
from sklearn.metrics.pairwise import pairwise_kernels

from polymargin import MulticategorySVC, ProximalSVC, SharedStructureSVC, SparseSVC
from polymargin.gram import Kernel, PointKernel
from tests.simulate import blobs

PARAMETERS = {
    "linear": {},
    "rbf": {"gamma": 0.3},
    "laplacian": {"gamma": 0.3},
    "poly": {"gamma": 0.3, "degree": 3, "coef0": 0.5},
    "sigmoid": {"gamma": 0.3, "coef0": 0.5},
}


@pytest.fixture(scope="module")
def data():
    X, y = blobs(np.random.default_rng(0), 90, 4, 3)
    return X, y


@pytest.mark.parametrize("kind", ["dense", "single", "sparse rows", "sparse points", "many rows"])
@pytest.mark.parametrize("name", PARAMETERS)
def test_the_prepared_kernel_is_the_kernel(name, kind, data):
    X, points = data[0] + 3.0, data[0][:40] + 3.0
    if kind == "many rows":
        points, X = np.tile(points, (60, 1)), np.tile(X, (3, 1))  # more than one block
    rows = X.astype(np.float32) if kind == "single" else sparse.csr_array(X) if kind == "sparse rows" else X
    at = PointKernel(
        Kernel(name, **PARAMETERS[name]), sparse.csr_array(points) if kind == "sparse points" else points
    )
    expected = pairwise_kernels(
        np.asarray(rows.toarray() if sparse.issparse(rows) else rows, float),
        points,
        metric=name,
        **PARAMETERS[name],
    )
    np.testing.assert_allclose(at(rows), expected, rtol=1e-9, atol=1e-12)
    V = np.random.default_rng(1).normal(size=(len(points), 2))
    np.testing.assert_allclose(at.times(rows, V), expected @ V, rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("degree", [0, 1, 2, 2.5, 12])
def test_powers(degree, data):
    X = np.abs(data[0])
    at = PointKernel(Kernel("poly", gamma=0.3, degree=degree, coef0=1.0), X[:9])
    np.testing.assert_allclose(at(X), (0.3 * X @ X[:9].T + 1.0) ** degree, rtol=1e-10)


def test_rows_far_from_all_points_have_no_kernel_value(data):
    at = PointKernel(Kernel("rbf", gamma=0.3), data[0])
    assert not at(np.full((1, 4), 1e20)).any()


MACHINES = (
    MulticategorySVC(kernel="rbf"),
    MulticategorySVC(kernel="linear"),
    ProximalSVC(kernel="rbf"),
    SharedStructureSVC(kernel="rbf"),
    SparseSVC(C=0.1),
)


@pytest.mark.parametrize("model", MACHINES, ids=repr)
def test_what_is_prepared_is_not_stored(model, data):
    X, y = data
    model.fit(X, y)
    before = pickle.dumps(model)
    model.predict(X)
    assert pickle.dumps(model) == before


@pytest.mark.parametrize("model", MACHINES, ids=repr)
def test_new_fits_and_new_arrays_are_noticed(model, data):
    X, y = data
    old = model.fit(X, y).decision_function(X)
    assert model._scoring() is not None
    new = model.fit(X[:60], y[:60]).decision_function(X)
    assert np.abs(new - old).max() > 1e-6
    np.testing.assert_array_equal(pickle.loads(pickle.dumps(model)).decision_function(X), new)
    if hasattr(model, "base_coef_"):
        model.base_coef_ = 2 * model.base_coef_
        model.base_intercept_ = 2 * model.base_intercept_
    else:
        name = "coef_" if hasattr(model, "coef_") else "dual_coef_"
        setattr(model, name, 2 * getattr(model, name))
        model.intercept_ = 2 * model.intercept_
    np.testing.assert_allclose(model.decision_function(X), 2 * new, rtol=1e-9, atol=1e-9)


def test_rows_that_need_no_conversion_are_checked_all_the_same(data):
    X, y = data
    model = ProximalSVC().fit(X, y)
    for wrong, words in ((np.nan, "NaN"), (np.inf, "infinity"), (1e31, "at most")):
        rows = X.copy()
        rows[3, 2] = wrong
        with pytest.raises(ValueError, match=words):
            model.predict(rows)
    for shape in ((0, 4), (3, 5), (4,)):
        with pytest.raises(ValueError, match=r"sample|features|1D|2D"):
            model.predict(np.zeros(shape))
