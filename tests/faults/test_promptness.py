"""Ctrl-C and `time_limit` are heard within a second of the processor, whatever a solver or search is at.

Ctrl-C is pressed when the process has used so much of that time, and what it uses until the fit has ended is
measured by the same clock: others on the machine do not count, and work that hears nothing does, in Python or not.
"""

import signal
import threading
import time
import warnings

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.datasets import make_blobs

import polymargin
from polymargin import (
    BudgetSearch,
    MarginSearch,
    MulticategorySVC,
    NewtonRefinement,
    PredictionSetClassifier,
    ProbabilityClassifier,
    ProximalSVC,
    ProximalSVCCV,
    RejectOptionClassifier,
    RobustSearch,
    RobustSVC,
    SharedStructureSearch,
    SharedStructureSVC,
    SparseSVC,
    SparseSVCCV,
    TraceNormSVC,
)

SECONDS = 1.0
MOMENTS = (0.05, 0.5)
"""Of the kernel matrix or the start, and of the solver at work."""
HARD = {"C": 100.0, "tol": 1e-13}


def blobs(n_rows, n_features, n_classes):
    X, y = make_blobs(n_rows, n_features, centers=n_classes, cluster_std=12.0, random_state=0)
    return (X - X.mean(axis=0)) / X.std(axis=0), y


TALL, FEWER, WIDE = blobs(2000, 20, 3), blobs(1200, 20, 3), blobs(1000, 80, 4)
KERNEL_METHODS = ("decomposition", "active_set", "splitting", "kernel_interior")
LINEAR_METHODS = ("interior_point", "feature_newton", "block_descent", "general_newton")
TIMED = {
    **{f"{loss}, {kernel}": (MulticategorySVC(loss=loss, kernel=kernel, **HARD), TALL)
       for loss in ("lee", "weston", "crammer", "mmr", "logistic") for kernel in ("rbf", "linear")},
    **{method: (MulticategorySVC(solver=method, **HARD), TALL) for method in KERNEL_METHODS},
    **{method: (MulticategorySVC(solver=method, kernel="linear", **HARD), TALL) for method in LINEAR_METHODS},
    "splitting, features": (MulticategorySVC(solver="splitting", kernel="linear", **HARD), TALL),
    **{f"relative splitting, {loss}": (MulticategorySVC(loss=loss, solver="relative_splitting", kernel="linear",
                                                        **HARD), TALL) for loss in ("weston", "crammer")},
    "laplacian": (MulticategorySVC(kernel="laplacian", **HARD), TALL),
    "small cache": (MulticategorySVC(cache_size=5.0, **HARD), TALL),
    "landmarks": (MulticategorySVC(landmarks=400, random_state=0, **HARD), TALL),
    **{f"robust {loss}, {kernel}": (RobustSVC(loss=loss, kernel=kernel, random_state=0, n_init=5, **HARD), TALL)
       for loss in ("hinge", "logistic") for kernel in ("rbf", "linear")},
    **{f"{penalty}, {loss}": (SparseSVC(penalty=penalty, loss=loss, tol=1e-13), WIDE)
       for penalty in ("fusion", "supnorm", "l1", "l2", "group") for loss in ("weston", "lee", "crammer")},
    "adaptive": (SparseSVC(adaptive=True, adaptive_rounds=3, tol=1e-13), WIDE),
}  # fmt: skip
OTHERS = {
    "proximal, rbf": (ProximalSVC(kernel="rbf", C=100.0), TALL),
    "shared, rbf": (SharedStructureSVC(kernel="rbf", max_iter=-1, random_state=0), FEWER),
    "shared, psd": (SharedStructureSVC(kernel="rbf", constraint="psd", max_iter=-1, random_state=0), FEWER),
    "trace norm, squared": (TraceNormSVC(kernel="rbf", tol=1e-14), FEWER),
    "trace norm, smoothed": (TraceNormSVC(kernel="rbf", loss="smoothed_hinge", tol=1e-14), FEWER),
    "refinement": (NewtonRefinement(MulticategorySVC()), TALL),
    "MarginSearch, loo": (MarginSearch(MulticategorySVC()), FEWER),
    "MarginSearch, folds": (MarginSearch(MulticategorySVC(), criterion=3), TALL),
    "ProximalSVCCV, loo": (ProximalSVCCV(ProximalSVC(kernel="rbf")), FEWER),
    "ProximalSVCCV, folds": (ProximalSVCCV(ProximalSVC(kernel="rbf"), criterion=3), FEWER),
    "RobustSearch": (RobustSearch(RobustSVC(random_state=0)), FEWER),
    "SharedStructureSearch": (SharedStructureSearch(SharedStructureSVC(kernel="rbf")), FEWER),
    "SparseSVCCV": (SparseSVCCV(), WIDE),
    "rejection": (RejectOptionClassifier(MulticategorySVC(), cv=3), TALL),
    "probabilities": (ProbabilityClassifier(MulticategorySVC()), FEWER),
    "prediction sets": (PredictionSetClassifier(MulticategorySVC()), FEWER),
    "BudgetSearch": (BudgetSearch(MulticategorySVC(), {"C": [0.1, 1.0, 10.0]}, budget="60s"), TALL),
}
PATHS = {
    "sparse_path": lambda: polymargin.sparse_path(*WIDE, n_Cs=60),
    "stability_selection": lambda: polymargin.stability_selection(SparseSVC(), *WIDE, n_resamples=99),
    "trace_norm_path": lambda: polymargin.trace_norm_path(TraceNormSVC(kernel="rbf"), *FEWER),
    "proximal_path": lambda: polymargin.proximal_path(
        ProximalSVC(kernel="rbf"), *FEWER, Cs=np.logspace(-3, 3, 30)
    ),
}
CALLS = {
    **{name: lambda machine=machine, rows=rows: clone(machine).fit(*rows)
       for name, (machine, rows) in {**TIMED, **OTHERS}.items()},
    **PATHS,
}  # fmt: skip


@pytest.fixture(autouse=True)
def alone():
    """Wait for what an interrupted fit has abandoned: its time is that of this process too."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    known = set(threading.enumerate())
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield
    for thread in set(threading.enumerate()) - known:
        thread.join()
    signal.signal(signal.SIGINT, before)


@pytest.mark.parametrize("moment", MOMENTS)
@pytest.mark.parametrize("name", CALLS)
def test_ctrl_c_is_heard(name, moment):
    at_work = True
    before = signal.signal(signal.SIGPROF, lambda *_: signal.raise_signal(signal.SIGINT) if at_work else None)
    begun = time.process_time()
    try:
        try:
            signal.setitimer(signal.ITIMER_PROF, moment)
            CALLS[name]()
        finally:
            at_work = False
    except KeyboardInterrupt:
        assert time.process_time() - begun - moment <= SECONDS
    else:
        pytest.skip("was over before")
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0.0)
        signal.signal(signal.SIGPROF, before)


@pytest.mark.parametrize("name", TIMED)
def test_a_time_limit_is_kept(name):
    machine, rows = TIMED[name]
    limit, begun = MOMENTS[-1], time.process_time()
    clone(machine).set_params(time_limit=limit).fit(*rows)
    assert time.process_time() - begun - limit <= SECONDS
