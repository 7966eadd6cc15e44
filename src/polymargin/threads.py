"""Threads: ranges of rows in threads of our own, and how many BLAS may have.

The threads of BLAS wait for each other by spinning. In thousands of small products on a busy machine they wait for
most of the time, so fits give BLAS one thread, except for a single large product or factorisation while processors
are idle. Ranges of rows, in compiled loops and products, run in threads of our own, which sleep while they wait.
"""

import threading
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
import scipy.linalg
from numpy.typing import NDArray
from sklearn.utils._openmp_helpers import _openmp_effective_n_threads
from sklearn.utils.parallel import _get_threadpool_controller

Result = TypeVar("Result")


@dataclass(frozen=True, slots=True)
class ThreadSettings:
    """When threads pay.

    Attributes
    ----------
    rows_of_a_thread : rows below which a thread is not worth its start.
    large_entries : entries of a matrix from which on products and factorisations gain by threads.
    seconds_unheard : between two looks at whether a long computation is still wanted.
    most : threads of the main thread; None for as many as scikit-learn's own loops have.
    running : file in which Linux tells how many tasks run now, as the fourth number.
    """

    rows_of_a_thread: int = 2**15
    large_entries: int = 2**20
    seconds_unheard: float = 0.02
    most: int | None = None
    running: Path = Path("/proc/loadavg")


USUAL = ThreadSettings()
_settings = ContextVar("_settings", default=USUAL)


@contextmanager
def thread_settings(settings: ThreadSettings) -> Iterator[None]:
    """Let other settings hold meanwhile."""
    before = _settings.set(settings)
    try:
        yield
    finally:
        _settings.reset(before)


def over_ranges(
    function: Callable[[slice], Result],
    n_rows: int,
    rows_of_a_thread: int | None = None,
    *,
    idle_only: bool = False,
) -> list[Result]:
    """Return what `function` makes of consecutive ranges of `n_rows` rows, one range a thread.

    There are as many threads as scikit-learn's own loops have: ``OMP_NUM_THREADS`` and threadpoolctl limit them.
    BLAS has no more of its own meanwhile. With `idle_only` there are no more than processors are idle: for short
    work, whose ranges would wait for each other, and which is the same to the last bit in any number of ranges.

    Examples
    --------
    >>> over_ranges(lambda part: part.stop - part.start, 1000)
    [1000]
    """
    n_threads = _n_threads()
    n_ranges = max(1, min(n_threads, n_rows // (rows_of_a_thread or _settings.get().rows_of_a_thread)))
    if idle_only and n_ranges > 1:
        n_ranges = min(n_ranges, idle_processors(n_threads))
    if n_ranges == 1:
        return [function(slice(0, n_rows))]
    ends = [n_rows * i // n_ranges for i in range(n_ranges + 1)]
    with one_blas_thread(), ThreadPoolExecutor(n_ranges) as threads:
        return list(threads.map(function, map(slice, ends[:-1], ends[1:])))


class AbandonedError(Exception):
    """What was computed in another thread is not waited for any more."""


def heard(function: Callable[..., Result], *arguments: Any, is_over: Callable[[], bool]) -> Result:
    """Return what `function` returns, and hear Ctrl-C meanwhile: it runs in a thread, and this one asks `is_over`.

    For seconds of numpy's linear algebra, which leaves other threads alone (SciPy's does not). Where it is over
    the thread is abandoned, as no factorisation can be stopped half-way.
    """
    outcome: Future[Result] = Future()

    def work() -> None:
        try:
            outcome.set_result(function(*arguments))
        except BaseException as failure:
            outcome.set_exception(failure)

    threading.Thread(target=work, daemon=True).start()
    while True:
        try:
            return outcome.result(timeout=_settings.get().seconds_unheard)
        except TimeoutError:
            if outcome.done():
                raise
            if is_over():
                raise AbandonedError from None


def is_large(entries: float) -> bool:
    """Tell whether a matrix of so many entries takes long to factorise."""
    return entries >= _settings.get().large_entries


def eigh(
    matrix: NDArray[np.float64], is_over: Callable[[], bool] = lambda: False
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return eigenvalues, ascending, and eigenvectors of a symmetric matrix; Ctrl-C is heard if it is large."""
    if is_large(matrix.size):
        return heard(np.linalg.eigh, matrix, is_over=is_over)
    return scipy.linalg.eigh(matrix)


def svd(matrix: NDArray[np.float64]) -> tuple[NDArray[np.float64], NDArray[np.float64], NDArray[np.float64]]:
    """Return U, s, V' of a matrix, as many as its shorter side; Ctrl-C is heard if it is large."""
    if is_large(matrix.size):
        return heard(partial(np.linalg.svd, full_matrices=False), matrix, is_over=lambda: False)
    return scipy.linalg.svd(matrix, full_matrices=False)


def cho_factor(matrix: NDArray[np.float64]) -> tuple[NDArray, bool]:
    """Return the lower Cholesky factor of a matrix, which is used up, in the form that SciPy's `cho_solve` takes.

    A large one comes from numpy, so that other threads go on: within `heard`, Ctrl-C is.
    """
    if is_large(matrix.size):
        return np.linalg.cholesky(matrix), True
    return scipy.linalg.cho_factor(matrix, lower=True, overwrite_a=True, check_finite=False)


def _n_threads() -> int:
    """Return how many threads to use: beside the main thread one, as who started another has shared the work."""
    in_main_thread = threading.current_thread() is threading.main_thread()
    return (_settings.get().most or _openmp_effective_n_threads()) if in_main_thread else 1


class _BlasLimit(threading.local):
    """The limit of BLAS's threads that a thread has set, where it has.

    Most builds of BLAS have one pool for the process, some one per thread. Who finds more than one thread sets the
    limit, and restores what was before when it leaves; who finds one has nothing to do. So nothing stays limited,
    in whatever order threads come and go.
    """

    limiter: Any = None
    depth = 0

    def set(self, most: int = 1) -> bool:
        """Let BLAS have so many threads at most; False if it has no more."""
        blas = [library for library in _get_threadpool_controller().lib_controllers if library.user_api == "blas"]
        if all(library.num_threads <= most for library in blas):
            return False
        self.limiter = _get_threadpool_controller().limit(limits=most, user_api="blas")
        self.limiter.__enter__()
        return True

    def restore(self) -> None:
        """Let BLAS have what it had, if this thread has limited it."""
        limiter, self.limiter = self.limiter, None
        if limiter is not None:
            limiter.__exit__(None, None, None)


_limit = _BlasLimit()
_lock = threading.Lock()
_limited: set[int] = set()
"""The threads that want the limit."""


@contextmanager
def one_blas_thread() -> Iterator[None]:
    """Let BLAS have one thread; may be nested, also within `large_products`, and entered by several threads."""
    with _lock:
        is_outermost = _limit.depth == 0
        if is_outermost:
            _limited.add(threading.get_ident())
        has_set = _limit.limiter is None and _limit.set()
        _limit.depth += 1
    try:
        yield
    finally:
        with _lock:
            _limit.depth -= 1
            if has_set:
                _limit.restore()
            if is_outermost:
                _limited.discard(threading.get_ident())


@contextmanager
def large_products(entries: float) -> Iterator[None]:
    """Let BLAS have as many threads as processors are idle, for a matrix of so many entries, if these are many.

    For one product or factorisation within `one_blas_thread`, not for loops of them; where other threads are
    within it as well, each keeps to its one.
    """
    idle = idle_processors() if is_large(entries) else 1
    with _lock:
        lifted = idle > 1 and _limited == {threading.get_ident()}
        if lifted:
            _limit.restore()
            _limit.set(idle)
    try:
        yield
    finally:
        with _lock:
            if lifted:
                _limit.restore()
                _limit.set()


def idle_processors(processors: int | None = None) -> int:
    """Return how many of so many processors this task may have now that others run; all where nobody tells."""
    processors = processors or _openmp_effective_n_threads()
    try:
        running = int(_settings.get().running.read_text(encoding="ascii").split()[3].split("/")[0])
    except (OSError, ValueError, IndexError):  # no Linux
        return processors
    return max(1, processors - max(running - 1, 0))
