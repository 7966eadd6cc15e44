"""What the commands show: one console for results, one for progress, one line for an error, and Ctrl-C."""

import signal
import sys
import threading
import time
import warnings
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from typing import Any

import typer

from polymargin.cli.names import Misuse, Problems

WIDE = 240
"""Columns where nobody sees a terminal: nothing is cut off in a file or a pipe."""

LONGEST_WORD = 12
"""Letters of a heading that are kept together whatever the width."""

SMALL = 5_000
"""Rows up to which more than one thread for linear algebra costs more than it brings."""


class Interrupted(BaseException):
    """Ctrl-C: ends what the person started. No solver takes it for its own interruption and goes on."""


@contextmanager
def interruptible() -> Iterator[None]:
    """Let Ctrl-C raise `Interrupted` in the main thread."""

    def stop(signum: int, frame: Any) -> None:
        signal.signal(signal.SIGINT, signal.SIG_DFL)  # a second one ends the process at once
        raise Interrupted

    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = signal.signal(signal.SIGINT, stop)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)


def results() -> Any:
    """Return the console for results."""
    return _console(sys.stdout)


def notes() -> Any:
    """Return the console for progress and remarks, which stays out of a pipe."""
    return _console(sys.stderr)


def printable(text: str) -> str:
    """Return text with control characters written out: names in a file must not command a terminal."""
    if text.isprintable():
        return text
    shown = (one if one.isprintable() or one in "\n\t" else ascii(one)[1:-1] for one in text)
    return "".join(shown)


def complain(text: str) -> None:
    """Write a line to standard error."""
    print(printable(text), file=sys.stderr)


def _console(stream: Any) -> Any:
    from rich.console import Console

    class Escaping(Console):
        """A console that shows control characters instead of obeying them."""

        def render_str(self, text: str, *arguments: Any, **named: Any) -> Any:
            return super().render_str(printable(text), *arguments, **named)

    # No markup: a class may well be called "[a]".
    width = None if stream.isatty() else WIDE
    return Escaping(file=stream, width=width, markup=False, highlight=False, emoji=False)


def make_table(title: str | None, first: str, *columns: str) -> Any:
    """Return an empty table with a left-aligned first column, never cut off, and right-aligned others.

    Their headings may be broken between words, not within them.
    """
    from rich import box
    from rich.table import Table

    table = Table(title=title, box=box.SIMPLE_HEAD, title_justify="left", title_style="bold")
    table.add_column(first, no_wrap=True)
    for column in columns:
        longest = max(map(len, column.split()), default=0)
        table.add_column(column, justify="right", min_width=min(longest, LONGEST_WORD))
    return table


@contextmanager
def one_line_errors(debug: bool) -> Iterator[None]:
    """Turn an error into one line and an exit code, a warning into one line; with `debug` let errors through."""
    with warnings.catch_warnings():
        warnings.simplefilter("once", UserWarning)
        warnings.showwarning = _show_warning
        try:
            yield
        except (typer.Exit, typer.Abort, BrokenPipeError):
            raise
        except Exception as error:
            if debug:
                raise
            complain(f"polymargin: {describe(error)}")
            raise typer.Exit(2 if isinstance(error, Misuse) else 1) from None


def describe(error: Exception) -> str:
    """Return an error in words for a person."""
    if isinstance(error, Problems):
        return str(error)
    if isinstance(error, OSError) and error.strerror:
        name = "" if error.filename is None else f"{error.filename}: "
        return f"{name}{error.strerror}"
    message = " ".join(str(error).split())
    if isinstance(error, (ValueError, TypeError, ImportError)):
        return message
    if isinstance(error, MemoryError):
        return f"not enough memory ({message or 'no details'}); leave --method out, or give fewer --landmarks"
    return f"unexpected {type(error).__name__}: {message} (--debug shows where)"


def _show_warning(message: Any, category: Any, *rest: Any, **more: Any) -> None:
    complain(f"polymargin: warning: {' '.join(str(message).split())}")


@contextmanager
def working(what: str, n_rows: int, *, quiet: bool = False) -> Iterator["Status"]:
    """Say what is going on unless `quiet`, and keep linear algebra of small problems to one thread."""
    from threadpoolctl import threadpool_limits

    from polymargin.solvers.watch import Watch

    shown = sys.stderr.isatty() and not quiet
    status = Status(what)
    line = notes().status(status) if shown else nullcontext()
    with threadpool_limits(1 if n_rows <= SMALL else None), line, Watch(status.see):
        yield status


class Status:
    """The line that says what is going on, for how long, and how far the fit under way is."""

    def __init__(self, what: str):
        self.what, self.started = what, time.perf_counter()
        self.more = self.fit = ""

    def say(self, more: str) -> None:
        """Add to the line how far things are."""
        self.more = f", {more}"

    def see(self, record: Any) -> None:
        """Add to the line how far the fit under way is."""
        self.fit = f"; objective {record.primal:.5g}, gap {max(record.gap, 0.0):.0e}"

    def __str__(self) -> str:
        return f"{self.what}: {time.perf_counter() - self.started:.0f} s{self.more}{self.fit}"

    def __rich__(self) -> str:
        # Asked for whenever the line is drawn, so that the seconds go on whatever the fit does.
        return str(self)
