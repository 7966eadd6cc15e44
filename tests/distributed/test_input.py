"""What comes in as Dask collections: predictions are lazy, bad partitions are named, nothing is left behind."""

import subprocess
import sys
import time

import dask
import dask.array as da
import dask.dataframe as dd
import joblib
import numpy as np
import pandas as pd
import pytest
from sklearn.model_selection import GridSearchCV

from polymargin import (
    MulticategorySVC,
    ProximalSVC,
    ProximalSVCCV,
    RobustSVC,
    SharedStructureSVC,
    SparseSVC,
    TraceNormSVC,
)
from tests.distributed.samples import chunked, make_sample


def assert_no_tasks(client):
    """Wait a moment for releases to arrive, then look at the scheduler."""
    for _ in range(100):
        left = client.run_on_scheduler(lambda dask_scheduler: len(dask_scheduler.tasks))
        if not left:
            return
        time.sleep(0.1)
    raise AssertionError(f"{left} tasks are still on the cluster")


def frames(*parts):
    """Return parts as one Dask DataFrame that does not look at them before they are computed."""
    meta = parts[0].iloc[:0]
    return dd.from_map(parts.__getitem__, list(range(len(parts))), meta=meta, enforce_metadata=False)


@pytest.mark.parametrize("n_classes", [2, 3])
def test_scores_and_predictions_are_lazy_arrays(n_classes, threads):
    X, y, _ = make_sample()
    X, y = X[: 320 if n_classes == 2 else 400], y[: 320 if n_classes == 2 else 400]
    model = ProximalSVC().fit(X, y)
    table = dd.from_pandas(pd.DataFrame(X), npartitions=3)
    for rows in (da.from_array(X, chunks=((100, 0, len(X) - 100), (2, 3))), table.to_dask_array()):
        scores, labels = model.decision_function(rows), model.predict(rows)
        assert isinstance(scores, da.Array)
        assert isinstance(labels, da.Array)
        np.testing.assert_allclose(scores.compute(), model.decision_function(X), rtol=1e-12)
        np.testing.assert_array_equal(labels.compute(), model.predict(X))
    known = model.predict(da.from_array(X, chunks=(100, 5)))
    assert known.shape == (len(X),)
    assert known.dtype == model.classes_.dtype


def test_bad_rows_to_predict_are_named(threads):
    X, y, _ = make_sample()
    model = ProximalSVC().fit(X, y)
    with pytest.raises(ValueError, match="4 features, but ProximalSVC is expecting 5"):
        model.predict(da.from_array(X[:, :4], chunks=(100, 4)))
    X[250, 0] = np.inf
    with pytest.raises(ValueError, match=r"In partition 2: .*infinity"):
        model.predict(da.from_array(X, chunks=(100, 5))).compute()


def late_nan():
    X, y, _ = make_sample()
    X[390, 2] = np.nan
    return chunked(X, y), "In partition 4: Input X contains NaN"


def other_columns():
    X, y, _ = make_sample()
    table = pd.DataFrame(X, columns=list("abcde"))
    parts = table[:100], table[100:300].rename(columns={"c": "z"}), table[300:]
    return (
        frames(*parts),
        da.from_array(y, chunks=((100, 200, 100),)),
    ), r"In partition 1: .*\['c'\] are missing, \['z'\] are not among them"


def fewer_columns():
    X, y, _ = make_sample()
    parts = [X[:100], X[100:300, :4], X[300:]]
    arrays = [da.from_delayed(dask.delayed(part), (len(part), 5), part.dtype) for part in parts]
    return (da.concatenate(arrays), y), "In partition 1: X must have 5 columns, as other partitions have, got 4"


def text_column():
    X, y, _ = make_sample()
    table = pd.DataFrame(X, columns=list("abcde"))
    late = table[300:].assign(b=pd.Categorical(["unknown"] * 100))
    return (
        frames(table[:300], late),
        da.from_array(y, chunks=((300, 100),)),
    ), "In partition 1: could not convert string to float"


def labels_of_two_kinds():
    X, y, _ = make_sample()
    parts = [da.from_delayed(dask.delayed(part), part.shape, object) for part in (y[:300], np.arange(100) % 3)]
    rows, *_ = chunked(X, chunks=(300, 100))
    return (rows, da.concatenate(parts)), "In partition 1: y holds labels of another kind"


def missing_labels():
    X, y, _ = make_sample()
    labels = y.astype(object)
    labels[210] = None
    return chunked(X, labels), "In partition 4: y must hold a label for every row"


def numbers_for_labels():
    X, _, weights = make_sample()
    return chunked(X, weights + 0.5), r"In partition \d: Unknown label type"


def negative_weights():
    X, y, weights = make_sample()
    weights[201] = -1.0
    return chunked(X, y, weights), "In partition 3: sample_weight must hold a non-negative number"


def lengths_that_differ():
    X, y, _ = make_sample()
    rows = dd.from_pandas(pd.DataFrame(X, columns=list("abcde")), npartitions=2)
    return (
        rows,
        da.from_array(y, chunks=((150, 250),)),
    ), r"In partition [01]: X and y must have the same number of rows"


BAD = (
    late_nan,
    other_columns,
    fewer_columns,
    text_column,
    labels_of_two_kinds,
    missing_labels,
    numbers_for_labels,
    negative_weights,
    lengths_that_differ,
)


@pytest.mark.parametrize("case", BAD)
def test_bad_partitions_are_named(case, threads):
    arguments, message = case()
    with pytest.raises(ValueError, match=message):
        ProximalSVC().fit(*arguments)


@pytest.mark.parametrize("machine", [ProximalSVC(), MulticategorySVC(kernel="linear")])
def test_an_error_leaves_no_tasks_on_the_cluster(machine, client):
    arguments, message = late_nan()
    with client.as_current():
        with pytest.raises(ValueError, match=message) as caught:
            machine.fit(*arguments)
        assert_no_tasks(client)
    assert caught.value is not None  # the traceback still holds the frames of the fit


def test_a_fit_leaves_no_tasks_on_the_cluster(client):
    X, y, _ = make_sample()
    with client.as_current():
        MulticategorySVC(kernel="linear", max_iter=2, tol=1e9).fit(*chunked(X, y, chunks=(150, 250)))
        assert_no_tasks(client)


def test_partitions_must_match(threads):
    X, y, _ = make_sample()
    rows = dd.from_pandas(pd.DataFrame(X), npartitions=3)
    with pytest.raises(ValueError, match="y must have as many partitions as X, 3, got 1"):
        ProximalSVC().fit(rows, da.from_array(y, chunks=400))
    with pytest.raises(TypeError, match="y must be a Dask array or Series with the partitions of X"):
        ProximalSVC().fit(rows, y)
    with pytest.raises(ValueError, match="y must have one entry per row of X, 400, got 399"):
        ProximalSVC().fit(da.from_array(X), y[:399])
    with pytest.raises(TypeError, match="X must be a Dask array of two dimensions or a Dask DataFrame"):
        ProximalSVC().fit(da.from_array(y), y)
    with pytest.raises(ValueError, match=r"at least two classes .* got 1 class: \['red'\]"):
        ProximalSVC().fit(*chunked(X[:100], y[:100], chunks=(50, 50)))
    with pytest.raises(ValueError, match="at least one row with positive sample_weight"):
        ProximalSVC().fit(*chunked(X, y, np.zeros(400)))


@pytest.mark.parametrize(
    ("machine", "error", "message"),
    [
        (
            SparseSVC(),
            TypeError,
            "SparseSVC cannot take X as a Dask collection here: it selects among many variables",
        ),
        (MulticategorySVC(), ValueError, "kernel='rbf' on Dask collections needs landmarks"),
        (RobustSVC(kernel="precomputed"), ValueError, "kernel='precomputed' on Dask collections needs landmarks"),
        (SharedStructureSVC(kernel="rbf"), ValueError, "kernel='rbf' on Dask collections needs landmarks"),
        (TraceNormSVC(loss="smoothed_hinge"), ValueError, "loss must be 'squared' for Dask collections"),
        (
            ProximalSVC(kernel="rbf", landmarks=10, landmark_method="kmeans"),
            ValueError,
            "landmark_method must be 'sample' for Dask collections",
        ),
        (ProximalSVCCV(criterion=5), ValueError, "criterion must be 'loo' for Dask collections"),
    ],
)
def test_what_cannot_be_done_is_said(machine, error, message, threads):
    X, y, _ = make_sample()
    with pytest.raises(error, match=message):
        machine.fit(*chunked(X, y))


def test_streams_take_rows_in_memory(threads):
    X, y, _ = make_sample()
    with pytest.raises(TypeError, match="ProximalSVC cannot take X as a Dask collection here"):
        ProximalSVC().partial_fit(*chunked(X, y), classes=np.unique(y))


def test_searches_run_on_the_joblib_backend_of_dask(client):
    X, y, _ = make_sample()
    shuffled = np.random.default_rng(0).permutation(len(y))
    X, y = X[shuffled], y[shuffled]
    grid = {"C": [0.1, 1.0, 10.0]}
    with client.as_current(), joblib.parallel_backend("dask"):
        found = GridSearchCV(ProximalSVC(), grid, cv=3).fit(X, y)
    expected = GridSearchCV(ProximalSVC(), grid, cv=3).fit(X, y)
    np.testing.assert_allclose(found.cv_results_["mean_test_score"], expected.cv_results_["mean_test_score"])


def test_a_missing_extra_is_named(threads, monkeypatch):
    X, y, _ = make_sample()
    monkeypatch.setitem(sys.modules, "polymargin.distributed", None)
    monkeypatch.delattr("polymargin.distributed", raising=False)
    with pytest.raises(ImportError, match=r"pip install 'polymargin\[dask\]'"):
        ProximalSVC().fit(*chunked(X, y))


def test_dask_is_not_imported_without_need():
    code = "import sys, polymargin; sys.exit('dask' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
