"""Progress through scikit-learn's callbacks (1.9 and later); older versions have `verbose` alone."""

from typing import Any

from polymargin.solvers.contract import Observer, Record

try:
    from sklearn.callback import CallbackSupportMixin, with_callbacks
except ImportError:

    class CallbackSupportMixin:  # type: ignore[no-redef]
        """Nothing to support on this version of scikit-learn."""

    def with_callbacks(method):
        """Return the method as it is."""
        return method


__all__ = ["CallbackSupportMixin", "begin_task", "end_task", "with_callbacks"]


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
