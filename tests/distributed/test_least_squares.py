"""The least-squares machines on Dask are those of one machine."""

import dask.dataframe as dd
import numpy as np
import pandas as pd
import pytest

from polymargin import ProximalSVC, ProximalSVCCV, SharedStructureSVC, TraceNormSVC
from polymargin.solvers.ridge.settings import RidgeSettings
from tests.distributed.samples import assert_same_fit, chunked, fresh, make_sample

MACHINES = {
    "proximal": ProximalSVC(C=2.0),
    "unbalanced": ProximalSVC(C=2.0, balance=False, refine_weights="balanced"),
    "ill-conditioned": ProximalSVC(C=1e12),
    "landmarks": ProximalSVC(kernel="rbf", landmarks=25, random_state=3),
    "shared": SharedStructureSVC(C=0.1, class_weight="balanced"),
    "pairs": SharedStructureSVC(C=0.1, scheme="ovo", kernel="rbf", landmarks=0.05, random_state=1),
    "trace norm": TraceNormSVC(C=0.1, relation_penalty=20.0),
    "leave-one-out": ProximalSVCCV(Cs=[0.5, 8.0, 2.0**30]),
    "widths": ProximalSVCCV(
        ProximalSVC(kernel="rbf", landmarks=20, random_state=0), Cs=[1.0, 64.0], gammas=[0.1, 0.5]
    ),
}


@pytest.fixture(scope="module")
def sample():
    return make_sample()


@pytest.mark.parametrize("name", MACHINES)
def test_equals_the_fit_in_memory(name, sample, threads):
    X, y, _ = sample
    machine = MACHINES[name]
    expected = fresh(machine).fit(X, y)
    assert_same_fit(fresh(machine).fit(*chunked(X, y)), expected, X)
    one, *_ = chunked(X, chunks=(400,))
    assert_same_fit(fresh(machine).fit(one, y), expected, X)


@pytest.mark.parametrize("name", ["proximal", "landmarks", "shared", "trace norm", "leave-one-out"])
def test_equals_the_fit_in_memory_on_worker_processes(name, sample, client):
    X, y, weights = sample
    machine = MACHINES[name]
    if name == "leave-one-out":
        weights = weights + 1.0
    with client.as_current():
        model = fresh(machine).fit(*chunked(X, y, weights))
    assert_same_fit(model, fresh(machine).fit(X, y, weights), X)


@pytest.mark.parametrize("name", ["proximal", "landmarks", "shared"])
def test_weights_and_rows_of_weight_zero(name, sample, threads):
    X, y, weights = sample
    weights = np.where(np.arange(len(y)) < 37, 0.0, weights)
    machine = MACHINES[name]
    assert_same_fit(fresh(machine).fit(*chunked(X, y, weights)), fresh(machine).fit(X, y, weights), X)


@pytest.mark.parametrize("name", ["proximal", "landmarks", "trace norm"])
def test_single_precision(name, sample, threads):
    X, y, _ = sample
    X = X.astype(np.float32)
    machine = MACHINES[name]
    # features at landmarks are themselves in single precision, and rounded differently in blocks of other heights
    rtol = 1e-6 if name == "landmarks" else 1e-8
    assert_same_fit(fresh(machine).fit(*chunked(X, y)), fresh(machine).fit(X, y), X, rtol=rtol)


def test_data_frames_of_unknown_sizes_from_parquet(sample, scheduler, tmp_path):
    X, y, weights = sample
    frame = pd.DataFrame(X, columns=list("abcde")).assign(label=y, weight=weights)
    for part, rows in enumerate((slice(0, 20), slice(20, 250), slice(250, 250), slice(250, 400))):
        frame[rows].to_parquet(tmp_path / f"{part}.parquet")
    table = dd.read_parquet(tmp_path)
    columns = list("abcde")
    model = ProximalSVC(C=2.0).fit(table[columns], table["label"], table["weight"])
    assert_same_fit(model, ProximalSVC(C=2.0).fit(frame[columns], y, weights), frame[columns])
    np.testing.assert_array_equal(model.feature_names_in_, columns)
    np.testing.assert_array_equal(model.predict(table[columns]).compute(), model.predict(frame[columns]))


def test_no_more_rows_than_unknowns(threads):
    rng = np.random.default_rng(1)
    X, y, weights = rng.normal(size=(12, 20)), np.arange(12) % 3, np.append(0.0, np.ones(11))
    for machine in (ProximalSVC(), SharedStructureSVC(C=0.1), ProximalSVCCV(Cs=[1.0, 4.0])):
        ours = fresh(machine).fit(*chunked(X, y, weights, chunks=(5, 7)))
        other = fresh(machine).fit(X, y, weights)
        assert_same_fit(ours, other, X)
        if isinstance(machine, ProximalSVC):
            np.testing.assert_array_equal(ours.support_, other.support_)


class Thinned(ProximalSVC):
    _tuning = RidgeSettings(thinned_rows=50)


def test_many_rows_are_thinned_out_before_the_refinement(sample, threads):
    X, y, weights = sample
    assert_same_fit(Thinned().fit(*chunked(X, y, weights)), Thinned().fit(X, y, weights), X)


def test_streams_go_on_from_a_fit_on_dask(sample, threads):
    X, y, _ = sample
    whole = ProximalSVC(refine=False).fit(X, y)
    shuffled = np.random.default_rng(0).permutation(len(y))
    first, rest = shuffled[:300], shuffled[300:]
    stream = ProximalSVC(refine=False).fit(*chunked(X[first], y[first], chunks=(100, 200)))
    assert_same_fit(stream.partial_fit(X[rest], y[rest]), whole, X)
