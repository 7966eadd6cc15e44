"""Parts of searches and paths, side by side or one after another, and how far they are."""

from collections.abc import Callable, Iterable, Iterator
from typing import Any, TypeVar

from joblib import Parallel, delayed

from polymargin import logs
from polymargin.threads import one_blas_thread

Result = TypeVar("Result")


def side_by_side(
    part: Callable[..., Result],
    arguments: Iterable[tuple],
    n_jobs: int | None,
    *,
    total: int,
    label: str,
    shown: bool,
) -> Iterator[Result]:
    """Yield what a function makes of each of some arguments, in their order, `n_jobs` of them at a time.

    Arguments are asked for when it is their turn, as shares of a budget must be. The limit of BLAS's threads that
    a fit sets ends with its process, so that each worker sets its own. If `shown`, it is logged how many of
    `total` have come.
    """
    calls = (delayed(_with_one_blas_thread)(part, some) for some in arguments)
    yield from counted(Parallel(n_jobs=n_jobs, return_as="generator")(calls), total, label, shown=shown)


def counted(results: Iterable[Result], total: int, label: str, *, shown: bool) -> Iterator[Result]:
    """Yield the results as they come; if `shown`, log how many of `total` have come."""
    for done, result in enumerate(results, start=1):
        if shown:
            logs.tell(f"{label}: {done} of {total}")
        yield result


def _with_one_blas_thread(part: Callable[..., Result], arguments: tuple[Any, ...]) -> Result:
    with one_blas_thread():
        return part(*arguments)
