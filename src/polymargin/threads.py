"""Ranges of rows in threads, for work that lets other threads run meanwhile: compiled loops, BLAS, NumPy."""

import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

from sklearn.utils._openmp_helpers import _openmp_effective_n_threads
from sklearn.utils.parallel import _get_threadpool_controller

ROWS_OF_A_THREAD = 2**15
"""Rows below which a thread is not worth its start."""

Result = TypeVar("Result")


def over_ranges(
    function: Callable[[slice], Result], n_rows: int, rows_of_a_thread: int | None = None
) -> list[Result]:
    """Return what `function` makes of consecutive ranges of `n_rows` rows, one range a thread.

    There are as many threads as scikit-learn's own loops have: ``OMP_NUM_THREADS`` and threadpoolctl limit them.
    BLAS has no more of its own meanwhile.

    Examples
    --------
    >>> over_ranges(lambda part: part.stop - part.start, 1000)
    [1000]
    """
    n_ranges = max(1, min(_n_threads(), n_rows // (rows_of_a_thread or ROWS_OF_A_THREAD)))
    if n_ranges == 1:
        return [function(slice(0, n_rows))]
    ends = [n_rows * i // n_ranges for i in range(n_ranges + 1)]
    one_each = _get_threadpool_controller().limit(limits=1, user_api="blas")
    with one_each, ThreadPoolExecutor(n_ranges) as threads:
        return list(threads.map(function, map(slice, ends[:-1], ends[1:])))


def _n_threads() -> int:
    """Return how many threads to use: beside the main thread one, as who started another has shared the work."""
    in_main_thread = threading.current_thread() is threading.main_thread()
    return _openmp_effective_n_threads() if in_main_thread else 1
