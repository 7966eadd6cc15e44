"""Fits watched, and ended, from outside."""

import threading

import pytest
from sklearn.datasets import make_blobs
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from polymargin import (
    MarginSearch,
    MulticategorySVC,
    RobustSVC,
    SharedStructureSVC,
    SparseSVC,
    SparseSVCCV,
    TraceNormSVC,
)
from polymargin.solvers.contract import Interrupted
from polymargin.solvers.watch import Watch, current_watch

X, Y = make_blobs(90, 4, centers=3, cluster_std=4.0, random_state=0)
MACHINES = [
    MulticategorySVC(),
    MulticategorySVC(loss="weston", kernel="linear"),
    RobustSVC(),
    SparseSVC(),
    SharedStructureSVC(bounds=None),
    TraceNormSVC(),
]


@pytest.mark.parametrize("machine", MACHINES, ids=repr)
def test_objective_and_gap_are_seen_down_to_those_of_the_certificate(machine):
    records = []
    with Watch(records.append):
        model = machine.fit(X, Y)
    assert records[-1].primal == pytest.approx(model.certificate_.primal, rel=1e-3)
    assert records[-1].gap <= 0.1
    assert current_watch() is None


@pytest.mark.parametrize(
    "search",
    [
        MulticategorySVC(C=100.0, tol=1e-12),
        MarginSearch(Cs=[1.0], gammas=[0.1]),
        GridSearchCV(MulticategorySVC(C=100.0, tol=1e-12), {"C": [1.0]}, error_score=0.0),
        make_pipeline(StandardScaler(), MulticategorySVC(C=100.0, tol=1e-12)),
        SparseSVCCV(n_Cs=3),
    ],
    ids=lambda search: type(search).__name__,
)
@pytest.mark.parametrize("in_a_thread", [False, True])
def test_the_end_of_a_watch_ends_fits_searches_and_pipelines(search, in_a_thread):
    watch = Watch(lambda record: watch.end())
    raised = []

    def fit():
        with watch:
            try:
                search.fit(X, Y)
            except Interrupted as stop:
                raised.append(stop)

    if in_a_thread:
        thread = threading.Thread(target=fit)
        thread.start()
        thread.join(60.0)
    else:
        fit()
    assert raised, "the fit went on"
    assert raised[0].solution.certificate.is_finite
