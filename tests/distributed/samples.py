"""What the tests on Dask share: a sample, its chunks, and what it means for two fits to be the same."""

import dask.array as da
import numpy as np
import pytest
from sklearn.base import clone

UNEVEN = (37, 0, 163, 5, 195)
"""Chunks of the sample: one is empty, and the last class is in the last one only."""

COLORS = np.array(["red", "green", "blue"])


def make_sample(seed=0):
    """Return 400 rows sorted by class, their labels, and weights from 0 to 3."""
    rng = np.random.default_rng(seed)
    y = np.repeat([0, 1, 2], [150, 170, 80])
    X = rng.normal(size=(400, 5)) + rng.normal(size=(3, 5))[y]
    return X, COLORS[y], rng.integers(0, 4, 400).astype(float)


def chunked(X, *columns, chunks=UNEVEN):
    return da.from_array(X, chunks=(chunks, X.shape[1])), *(
        da.from_array(column, chunks=chunks) for column in columns
    )


def fresh(machine, **changes):
    return clone(machine).set_params(**changes)


def assert_same_fit(ours, other, X, rtol=1e-8):
    """Compare scores, coefficients and certificates, relative to the largest number."""
    np.testing.assert_array_equal(ours.classes_, other.classes_)
    expected = other.decision_function(X)
    np.testing.assert_allclose(ours.decision_function(X), expected, rtol=0, atol=rtol * np.abs(expected).max())
    for name in ("coef_", "dual_coef_", "intercept_"):
        if hasattr(other, name):
            theirs = getattr(other, name)
            np.testing.assert_allclose(getattr(ours, name), theirs, rtol=0, atol=rtol * np.abs(theirs).max())
    assert ours.certificate_.primal == pytest.approx(other.certificate_.primal, rel=rtol)
    assert ours.certificate_.gap == pytest.approx(other.certificate_.gap, abs=1e-8)
    assert ours.n_features_in_ == other.n_features_in_


def assert_same_optimum(ours, other, tol=1e-6):
    """Compare the objectives of hinge machines, both certified."""
    np.testing.assert_array_equal(ours.classes_, other.classes_)
    assert ours.converged_
    assert ours.certificate_.kind == other.certificate_.kind
    assert ours.certificate_.primal == pytest.approx(other.certificate_.primal, rel=tol)
