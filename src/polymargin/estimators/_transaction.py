"""Fits that leave an estimator fitted or as it was, never in between, and the threads of BLAS as they were."""

import functools
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, TypeVar

import numpy as np

from polymargin.solvers.contract import Interrupted
from polymargin.threads import one_blas_thread

Method = TypeVar("Method", bound=Callable[..., Any])


def all_or_nothing(method: Method) -> Method:
    """Let a method that fits leave the estimator as it found it if it fails.

    So an estimator whose first fit failed is not fitted, and one whose later fit failed is the model it was. A fit
    that Ctrl-C has ended keeps the certified point that it stored before it passed the interruption on. Meanwhile
    BLAS has one thread, except for large products (see `polymargin.threads`), and parameters are plain numbers.
    """

    @functools.wraps(method)
    def whole(self: Any, *arguments: Any, **named: Any) -> Any:
        before = self.__dict__.copy()
        try:
            with one_blas_thread(), plain_numbers(self):
                return method(self, *arguments, **named)
        except BaseException as failure:
            if not (isinstance(failure, Interrupted) and failure.stored_by is self):
                self.__dict__.clear()
                self.__dict__.update(before)
            if isinstance(failure, MemoryError) and not any(name in str(failure) for name in SAVING):
                raise MemoryError(_what_saves_memory(self, failure)) from failure
            raise

    return whole  # type: ignore[return-value]


@contextmanager
def plain_numbers(estimator: Any) -> Iterator[None]:
    """Let parameters that are numpy's scalars be Python's numbers meanwhile.

    A product of ``np.float32(0.5)`` and a Python number is of single precision, and one of ``np.int8(100)`` may
    overflow: what a number means must not depend on the type that it was given in.
    """
    numbers = (np.integer, np.floating)
    given = {name: value for name, value in estimator.__dict__.items() if isinstance(value, numbers)}
    plain = {name: int(value) if isinstance(value, np.integer) else float(value) for name, value in given.items()}
    estimator.__dict__.update(plain)
    try:
        yield
    finally:
        unchanged = (name for name in given if estimator.__dict__.get(name) is plain[name])
        estimator.__dict__.update({name: given[name] for name in unchanged})


SAVING = ("cache_size", "landmarks")
"""Parameters by which a machine gets along with less memory."""


def _what_saves_memory(estimator: Any, failure: MemoryError) -> str:
    """Return what to do about a lack of memory that nobody foresaw."""
    names = [name for name in SAVING if name in estimator.get_params(deep=False)]
    remedy = f"set {' or '.join(names)}, or fit" if names else "fit"
    return f"{type(estimator).__name__} ran out of memory ({failure or 'no details'}): {remedy} fewer rows."


def refuses_costs(reason: str) -> Callable[[Method], Method]:
    """Let a method that fits say why it cannot use the costs of rows that other machines can."""

    def decorate(method: Method) -> Method:
        @functools.wraps(method)
        def checked(self: Any, *arguments: Any, **named: Any) -> Any:
            if "costs" in named:
                raise TypeError(
                    f"{type(self).__name__} cannot use costs of rows: {reason}. MulticategorySVC, SparseSVC and "
                    "RobustSVC can; Decider decides by them after any classifier with probabilities."
                )
            return method(self, *arguments, **named)

        return checked  # type: ignore[return-value]

    return decorate
