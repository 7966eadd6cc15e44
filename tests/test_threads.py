"""Rows in threads: every row is in one range, results come in order, errors come through; the threads of BLAS."""

import sys
import threading

import numpy as np
import pytest
from joblib import parallel_config
from sklearn.utils._openmp_helpers import _openmp_effective_n_threads
from threadpoolctl import threadpool_info, threadpool_limits

from polymargin import (
    MarginSearch,
    MulticategorySVC,
    ProximalSVC,
    ProximalSVCCV,
    RobustSearch,
    RobustSVC,
    SharedStructureSearch,
    SharedStructureSVC,
    SparseSVC,
    SparseSVCCV,
    TraceNormSVC,
    threads,
)
from polymargin.threads import (
    ThreadSettings,
    idle_processors,
    large_products,
    one_blas_thread,
    over_ranges,
    thread_settings,
)

LARGE_ENTRIES = ThreadSettings().large_entries


@pytest.mark.parametrize("n", [0, 1, 19, 20, 39, 40, 61, 1000])
def test_ranges_cover_the_rows_in_order(threads, n):
    ranges = over_ranges(lambda part: part, n)
    assert len(ranges) == max(1, min(threads, n // 20))
    covered = np.concatenate([np.arange(part.start, part.stop) for part in ranges])
    np.testing.assert_array_equal(covered, np.arange(n))


def test_an_error_in_a_thread_is_raised(threads):
    with pytest.raises(ZeroDivisionError):
        over_ranges(lambda part: 1 // part.start, 1000)


@pytest.fixture
def blas_threads():
    """Let BLAS have three threads; return what tells how many it has."""
    if not threadpool_info_of_blas():
        pytest.skip("threadpoolctl knows no BLAS here")
    with threadpool_limits(3, user_api="blas"):
        yield lambda: {library["num_threads"] for library in threadpool_info_of_blas()}


def threadpool_info_of_blas():
    return [library for library in threadpool_info() if library["user_api"] == "blas"]


@pytest.mark.parametrize("first_leaves", [True, False])
def test_nothing_is_left_limited_in_whatever_order_threads_leave(blas_threads, first_leaves):
    before = blas_threads()
    inside, leave = threading.Barrier(2), threading.Event()

    def other():
        with one_blas_thread():
            inside.wait()
            leave.wait()

    thread = threading.Thread(target=other)
    with one_blas_thread():
        thread.start()
        inside.wait()
        assert blas_threads() == {1}
        with large_products(LARGE_ENTRIES):
            assert blas_threads() == {1}, "another thread wants the limit"
        if not first_leaves:
            leave.set()
            thread.join()
            assert blas_threads() == {1}
    leave.set()
    thread.join()
    assert blas_threads() == before


@pytest.fixture
def tasks(tmp_path):
    """Return what says how many tasks run; one, at first."""
    file = tmp_path / "loadavg"

    def run(count):
        file.write_text(f"0.20 0.18 0.12 {count}/80 11206\n", encoding="ascii")

    run(1)
    with thread_settings(ThreadSettings(running=file)):
        yield run


def test_large_products_have_the_threads_that_are_idle(blas_threads, tasks, monkeypatch):
    monkeypatch.setattr("polymargin.threads._openmp_effective_n_threads", lambda: 3)
    before = blas_threads()  # some builds of BLAS have one thread at most
    with one_blas_thread():
        for running, idle in ((0, 3), (1, 3), (2, 2), (3, 1), (9, 1)):
            tasks(running)
            with large_products(LARGE_ENTRIES):
                assert blas_threads() == {min(idle, threads) for threads in before}
            assert blas_threads() == {1}


def test_short_work_has_the_threads_that_are_idle(tmp_path):
    file = tmp_path / "loadavg"
    with thread_settings(ThreadSettings(rows_of_a_thread=1, most=4, running=file)):
        for running, ranges in ((1, 4), (2, 3), (4, 1), (9, 1)):
            file.write_text(f"0.20 0.18 0.12 {running}/80 11206\n", encoding="ascii")
            assert len(over_ranges(lambda part: part, 100, idle_only=True)) == ranges
            assert len(over_ranges(lambda part: part, 2, idle_only=True)) == min(ranges, 2)
            assert len(over_ranges(lambda part: part, 100)) == 4


@pytest.mark.parametrize("text", [None, "", "1 2 3", "a b c d/e f"])
def test_all_processors_are_idle_where_nobody_tells(tmp_path, text):
    file = tmp_path / "loadavg"
    if text is not None:
        file.write_text(text, encoding="ascii")
    with thread_settings(ThreadSettings(running=file)):
        assert idle_processors() == _openmp_effective_n_threads()


def test_one_thread_is_one_within_large_products_too(blas_threads, tasks, monkeypatch):
    monkeypatch.setattr("polymargin.threads._openmp_effective_n_threads", lambda: 3)
    before = blas_threads()
    with one_blas_thread(), large_products(LARGE_ENTRIES):
        with one_blas_thread():
            assert blas_threads() == {1}
        assert blas_threads() == before
    assert blas_threads() == before


def test_large_products_have_all_threads_and_small_ones_one(blas_threads, tasks, monkeypatch):
    monkeypatch.setattr("polymargin.threads._openmp_effective_n_threads", lambda: 3)
    before = blas_threads()
    with large_products(LARGE_ENTRIES):
        assert blas_threads() == before
    with one_blas_thread():
        with one_blas_thread(), large_products(LARGE_ENTRIES):
            assert blas_threads() == before
        assert blas_threads() == {1}
        with large_products(LARGE_ENTRIES - 1):
            assert blas_threads() == {1}
        with pytest.raises(ZeroDivisionError), large_products(LARGE_ENTRIES):
            raise ZeroDivisionError
        assert blas_threads() == {1}
    assert blas_threads() == before


def test_fits_have_one_thread_and_leave_what_was(blas_threads):
    seen = []

    def kernel(X, Y):
        seen.append(blas_threads())
        return np.exp(-np.square(X[:, None] - Y).sum(axis=2))

    X, y = np.random.default_rng(0).normal(size=(30, 2)), np.arange(30) % 3
    before = blas_threads()
    MulticategorySVC(kernel=kernel).fit(X, y)
    assert seen[0] == {1}
    assert blas_threads() == before
    with pytest.raises(ValueError, match="C must"):
        MulticategorySVC(C=-1.0).fit(X, y)
    assert blas_threads() == before


FITS = [
    MulticategorySVC(),
    MulticategorySVC(loss="weston", kernel="linear"),
    ProximalSVC(),
    ProximalSVC(kernel="rbf"),
    SparseSVC(),
    SharedStructureSVC(),
    TraceNormSVC(),
    RobustSVC(),
    RobustSVC(kernel="rbf"),
]
SEARCHES = [
    MarginSearch(Cs=[1.0, 8.0], gammas=[0.1, 1.0]),
    MarginSearch(Cs=[1.0, 8.0], gammas=[0.1, 1.0], criterion=3),
    RobustSearch(RobustSVC(), Cs=[0.1, 1.0], cv=3),
    SharedStructureSearch(Cs=[0.1, 1.0], cv=3),
    SparseSVCCV(cv=3),
    ProximalSVCCV(),
]


@pytest.mark.parametrize("estimator", [*FITS, *SEARCHES], ids=repr)
def test_every_solver_runs_with_one_thread(estimator):
    """Also in the threads of joblib, whose processes begin with as many threads of BLAS as they may have."""
    unlimited = []

    def called(frame, event, _):
        if event == "call" and "/polymargin/solvers/" in frame.f_code.co_filename and not threads._limit.depth:
            unlimited.append(frame.f_code.co_qualname)

    X, y = np.random.default_rng(0).normal(size=(60, 3)), np.arange(60) % 3
    before = sys.getprofile()
    sys.setprofile(called)
    threading.setprofile(called)
    try:
        with parallel_config("threading", n_jobs=2):
            estimator.fit(X + y[:, None], y)
    finally:
        sys.setprofile(before)
        threading.setprofile(None)
    assert not unlimited
