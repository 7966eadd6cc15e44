"""Ctrl-C ends what was begun, fits, searches, paths, pipelines and cross-validation, and leaves whole models."""

import signal
import threading
import warnings

import numpy as np
import pytest
from sklearn.datasets import make_blobs
from sklearn.exceptions import NotFittedError
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import polymargin
from polymargin import (
    MarginSearch,
    MulticategorySVC,
    ProximalSVC,
    ProximalSVCCV,
    RejectOptionClassifier,
    RobustSVC,
    SharedStructureSearch,
    SharedStructureSVC,
    SparseSVC,
    SparseSVCCV,
    TraceNormSVC,
)
from polymargin.solvers.contract import Progress

X, Y = make_blobs(90, 4, centers=3, cluster_std=4.0, random_state=0)
KEEPING = [
    MulticategorySVC(C=100.0, tol=1e-12),
    MulticategorySVC(C=100.0, tol=1e-12, loss="weston"),
    MulticategorySVC(C=100.0, tol=1e-10, loss="crammer", kernel="linear"),
    RobustSVC(tol=1e-10),
    SparseSVC(tol=1e-12),
    SparseSVC(tol=1e-12, penalty="l2"),
    SharedStructureSVC(max_iter=-1),
    TraceNormSVC(tol=1e-12),
    TraceNormSVC(tol=1e-12, loss="smoothed_hinge"),
]
"""Machines that have a point to keep while they are being fitted."""


class PressedAtFirstLine:
    """Logging during whose first line Ctrl-C is pressed: a solver is then in the midst of its work."""

    pressed = 0

    def __call__(self, message):
        """Press Ctrl-C once."""
        if not self.pressed:
            self.pressed = 1
            signal.raise_signal(signal.SIGINT)


def pressing_kernel(A, B):
    """Press Ctrl-C when the kernel matrix is asked for."""
    signal.raise_signal(signal.SIGINT)
    return A @ B.T


class PressingFolds:
    """Folds during whose making Ctrl-C is pressed."""

    def get_n_splits(self, X=None, y=None, groups=None):
        """Return the number of folds."""
        return 2

    def split(self, X, y=None, groups=None):
        """Press Ctrl-C after the first fold."""
        half = np.arange(X.shape[0]) % 2 == 0
        yield np.flatnonzero(half), np.flatnonzero(~half)
        signal.raise_signal(signal.SIGINT)
        yield np.flatnonzero(~half), np.flatnonzero(half)


@pytest.fixture(autouse=True)
def own_handler():
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
    signal.signal(signal.SIGINT, before)


@pytest.fixture
def pressing_records(monkeypatch):
    """Press Ctrl-C whenever a solver notes its objectives."""
    record = Progress.record

    def pressing(self, primal, dual):
        if not self.interrupted:
            signal.raise_signal(signal.SIGINT)
        return record(self, primal, dual)

    monkeypatch.setattr(Progress, "record", pressing)


@pytest.mark.parametrize("machine", KEEPING, ids=repr)
def test_an_interrupted_fit_raises_and_keeps_its_certified_point(machine, monkeypatch):
    machine = machine.set_params(verbose=True)
    monkeypatch.setattr("polymargin.logs.tell", PressedAtFirstLine())
    with pytest.raises(KeyboardInterrupt, match="relative gap"):
        machine.fit(X, Y)
    assert machine.certificate_.is_finite
    assert machine.certificate_.infeasibility <= 1e-9
    assert machine.predict(X).shape == (90,)
    monkeypatch.undo()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        whole = machine.set_params(verbose=False).fit(X, Y)
    assert whole.n_iter_ > 1


@pytest.mark.parametrize(
    "machine",
    [
        MulticategorySVC(kernel=pressing_kernel),
        RobustSVC(kernel=pressing_kernel),
        ProximalSVC(kernel=pressing_kernel),
        SharedStructureSVC(kernel=pressing_kernel),
        TraceNormSVC(kernel=pressing_kernel),
        SparseSVCCV(cv=PressingFolds()),
        ProximalSVCCV(criterion=PressingFolds()),
        MarginSearch(criterion=PressingFolds()),
        SharedStructureSearch(cv=PressingFolds()),
        RejectOptionClassifier(ProximalSVC(), cv=PressingFolds()),
        make_pipeline(StandardScaler(), MulticategorySVC(kernel=pressing_kernel)),
    ],
    ids=lambda machine: type(machine).__name__,
)
def test_before_there_is_a_point_an_interrupted_fit_leaves_nothing(machine):
    with pytest.raises(KeyboardInterrupt):
        machine.fit(X, Y)
    with pytest.raises(NotFittedError):
        machine.predict(X)


def test_a_refit_that_is_interrupted_early_leaves_the_model_as_it_was():
    machine = ProximalSVC().fit(X, Y)
    before = machine.decision_function(X)
    with pytest.raises(KeyboardInterrupt):
        machine.set_params(kernel=pressing_kernel).fit(X[:, :2], Y)
    np.testing.assert_array_equal(machine.set_params(kernel="linear").decision_function(X), before)


@pytest.mark.parametrize(
    "search",
    [
        MarginSearch(MulticategorySVC(), Cs=[1.0], gammas=[0.1]),
        GridSearchCV(MulticategorySVC(C=100.0, tol=1e-12), {"C": [1.0]}, error_score=0.0),
        make_pipeline(StandardScaler(), MulticategorySVC(C=100.0, tol=1e-12)),
        SparseSVCCV(n_Cs=3),
        SparseSVC(adaptive=True),
    ],
    ids=lambda machine: type(machine).__name__,
)
def test_an_interruption_within_a_solver_ends_searches_and_pipelines(search, pressing_records):
    with pytest.raises(KeyboardInterrupt):
        search.fit(X, Y)


def test_cross_validation_ends(monkeypatch):
    monkeypatch.setattr("polymargin.logs.tell", PressedAtFirstLine())
    with pytest.raises(KeyboardInterrupt):
        cross_val_score(MulticategorySVC(C=100.0, tol=1e-12, verbose=True), X, Y, error_score=0.0)


@pytest.mark.parametrize(
    "path",
    [
        lambda: polymargin.sparse_path(X, Y, n_Cs=3, verbose=True),
        lambda: polymargin.stability_selection(SparseSVC(verbose=True), X, Y, n_resamples=3),
    ],
    ids=["sparse_path", "stability_selection"],
)
def test_paths_end(path, pressing_records):
    with pytest.raises(KeyboardInterrupt):
        path()


def test_a_fit_in_another_thread_goes_on_and_the_main_thread_is_interrupted():
    fitted = []
    thread = threading.Thread(target=lambda: fitted.append(MulticategorySVC().fit(X, Y)))
    thread.start()
    with pytest.raises(KeyboardInterrupt):
        signal.raise_signal(signal.SIGINT)
    thread.join()
    assert fitted[0].converged_
