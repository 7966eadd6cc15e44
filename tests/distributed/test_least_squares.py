"""The least-squares machines on Dask are those of one machine."""

import dask.array as da
import numpy as np
import pytest

from polymargin import ProximalSVC, ProximalSVCCV, SharedStructureSVC, TraceNormSVC

RTOL = 1e-8
UNEVEN = (37, 0, 163, 5, 195)
MACHINES = {
    "proximal": ProximalSVC(C=2.0),
    "unbalanced": ProximalSVC(C=2.0, balance=False, refine_weights="balanced"),
    "ill-conditioned": ProximalSVC(C=1e12),
    "landmarks": ProximalSVC(kernel="rbf", landmarks=25, random_state=3),
    "shared": SharedStructureSVC(C=0.1, class_weight="balanced"),
    "pairs": SharedStructureSVC(C=0.1, scheme="ovo", kernel="rbf", landmarks=0.05, random_state=1),
    "trace norm": TraceNormSVC(C=0.1, relation_penalty=20.0),
    "leave-one-out": ProximalSVCCV(Cs=[0.5, 8.0, 2.0**30]),
}


@pytest.fixture(scope="module")
def sample():
    """Rows sorted by class, so that chunks hold few of them and the last class is in one chunk only."""
    rng = np.random.default_rng(0)
    y = np.repeat([0, 1, 2], [150, 170, 80])
    X = rng.normal(size=(400, 5)) + rng.normal(size=(3, 5))[y]
    return X, np.array(["red", "green", "blue"])[y], rng.integers(0, 4, 400).astype(float)


def chunked(X, *columns, chunks=UNEVEN):
    return da.from_array(X, chunks=(chunks, X.shape[1])), *(
        da.from_array(column, chunks=chunks) for column in columns
    )


def clone(machine, **changes):
    return type(machine)(**{**machine.get_params(deep=False), **changes})


def assert_same_fit(ours, other, X, rtol=RTOL):
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


@pytest.mark.parametrize("name", MACHINES)
def test_equals_the_fit_in_memory(name, sample, threads):
    X, y, _ = sample
    machine = MACHINES[name]
    assert_same_fit(clone(machine).fit(*chunked(X, y)), clone(machine).fit(X, y), X)
    one, *_ = chunked(X, chunks=(400,))
    assert_same_fit(clone(machine).fit(one, y), clone(machine).fit(X, y), X)


@pytest.mark.parametrize("name", ["proximal", "landmarks", "shared", "trace norm", "leave-one-out"])
def test_equals_the_fit_in_memory_on_worker_processes(name, sample, client):
    X, y, weights = sample
    machine = MACHINES[name]
    if name == "leave-one-out":
        weights = weights + 1.0
    with client.as_current():
        model = clone(machine).fit(*chunked(X, y, weights))
    assert_same_fit(model, clone(machine).fit(X, y, weights), X)


@pytest.mark.parametrize("name", ["proximal", "landmarks", "shared"])
def test_weights_and_rows_of_weight_zero(name, sample, threads):
    X, y, weights = sample
    weights[:37] = 0.0
    machine = MACHINES[name]
    assert_same_fit(clone(machine).fit(*chunked(X, y, weights)), clone(machine).fit(X, y, weights), X)
