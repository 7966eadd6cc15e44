"""Progress through scikit-learn's callbacks (1.9 and later); older versions have `verbose` alone."""

from collections.abc import Callable
from typing import Any, TypeVar

from polymargin.solvers.contract import Observer, Record

try:
    from sklearn.callback import CallbackSupportMixin
    from sklearn.callback import with_callbacks as _with_callbacks
except ImportError:

    class CallbackSupportMixin:  # type: ignore[no-redef]
        """Nothing to support on this version of scikit-learn."""

    def _with_callbacks(method):
        """Return the method as it is."""
        return method


Method = TypeVar("Method", bound=Callable[..., Any])

__all__ = ["CallbackSupportMixin", "begin_task", "end_task", "with_callbacks"]


def with_callbacks(method: Method) -> Method:
    """Let the callbacks of an estimator be told of a method that fits; for type checkers it stays what it is."""
    return _with_callbacks(method)


def begin_task(estimator: Any) -> Observer | None:
    """Tell the callbacks of `estimator`, if any, that its fit begins; return what tells them of iterations."""
    if not hasattr(estimator, "_skl_callbacks"):
        return None
    fit_task = estimator._init_callback_context(max_subtasks=None)
    fit_task.call_on_fit_task_begin(estimator=estimator)

    def tell(record: Record) -> None:
        iteration = fit_task.subcontext(task_name="iteration")
        iteration.call_on_fit_task_begin(estimator=estimator)
        iteration.call_on_fit_task_end(estimator=estimator)

    return tell


def end_task(estimator: Any) -> None:
    """Tell the callbacks of `estimator`, if any, that its fit has ended."""
    if hasattr(estimator, "_callback_fit_ctx"):
        estimator._callback_fit_ctx.call_on_fit_task_end(estimator=estimator)
