"""Watching fits from outside: who shows how far they are, or may want to end them, watches those of a thread."""

from collections.abc import Callable
from contextvars import ContextVar, Token
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from polymargin.solvers.contract import Record

_current: ContextVar["Watch | None"] = ContextVar("polymargin_watch", default=None)


class Watch:
    """Sees the iterations of every fit in its ``with`` block, however deep in a search, and may end them.

    `end` may be called from another thread: the fit comes to rest at a feasible point, as it does for Ctrl-C, and
    raises `Interrupted`. Of solvers within solvers the outermost is seen. A watch within another one shows that
    what it sees, and is ended with it.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from polymargin import MulticategorySVC
    >>> gaps = []
    >>> with Watch(lambda record: gaps.append(record.gap)):
    ...     model = MulticategorySVC().fit(*load_iris(return_X_y=True))
    >>> min(gaps) < 1e-4
    True
    """

    def __init__(self, see: Callable[["Record"], None] | None = None):
        self.is_taken = False
        self._see = see
        self._is_ended = False
        self._outer: Watch | None = None
        self._token: Token | None = None

    @property
    def ended(self) -> bool:
        """Whether fits are to end."""
        return self._is_ended or (self._outer is not None and self._outer.ended)

    def end(self) -> None:
        """End the fit under way, and any that begins later."""
        self._is_ended = True

    def see(self, record: "Record") -> None:
        """Take in an iteration."""
        if self._see is not None:
            self._see(record)
        if self._outer is not None:
            self._outer.see(record)

    def __enter__(self) -> "Watch":
        self._outer = _current.get()
        self._token = _current.set(self)
        return self

    def __exit__(self, *exception: Any) -> None:
        assert self._token is not None
        _current.reset(self._token)


def current_watch() -> Watch | None:
    """Return the watch over the fits of this thread, if there is one."""
    return _current.get()
