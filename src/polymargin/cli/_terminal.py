"""What the commands show: one console for results, one for progress, and one line for an error."""

import sys
import warnings
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from pathlib import Path
from typing import Annotated, Any

import typer
from rich import box
from rich.console import Console
from rich.table import Table
from sklearn.exceptions import ConvergenceWarning
from threadpoolctl import threadpool_limits

WIDE = 240
"""Columns where nobody sees a terminal: nothing is cut off in a file or a pipe."""

SMALL = 5_000
"""Rows up to which more than one thread for linear algebra costs more than it brings."""

Data = Annotated[Path, typer.Argument(help="CSV, TSV, Parquet, ARFF or LIBSVM file.", show_default=False)]
Debug = Annotated[bool, typer.Option("--debug", help="Show the whole traceback of an error.")]


def results() -> Console:
    """Return the console for results."""
    return _console(sys.stdout)


def notes() -> Console:
    """Return the console for progress and remarks, which stays out of a pipe."""
    return _console(sys.stderr)


def _console(stream: Any) -> Console:
    # No markup: a class may well be called "[a]".
    width = None if stream.isatty() else WIDE
    return Console(file=stream, width=width, markup=False, highlight=False, emoji=False)


def make_table(title: str | None, first: str, *columns: str) -> Table:
    """Return an empty table with a left-aligned first column and right-aligned others."""
    table = Table(title=title, box=box.SIMPLE_HEAD, title_justify="left", title_style="bold")
    table.add_column(first)
    for column in columns:
        table.add_column(column, justify="right")
    return table


class Misuse(ValueError):
    """Options that contradict each other, or one that is needed and was not given: exit code 2."""


@contextmanager
def one_line_errors(debug: bool) -> Iterator[None]:
    """Turn an error into one line and an exit code, a warning into one line; with `debug` let errors through."""
    with warnings.catch_warnings():
        warnings.simplefilter("once", ConvergenceWarning)
        warnings.showwarning = _show_warning
        try:
            yield
        except (typer.Exit, typer.Abort, BrokenPipeError, KeyboardInterrupt):
            raise
        except Exception as error:
            if debug:
                raise
            print(f"polymargin: {_describe(error)}", file=sys.stderr)
            raise typer.Exit(2 if isinstance(error, Misuse) else 1) from None


def _describe(error: Exception) -> str:
    if isinstance(error, OSError) and error.strerror:
        name = "" if error.filename is None else f"{error.filename}: "
        return f"{name}{error.strerror}"
    message = " ".join(str(error).split())
    if isinstance(error, (ValueError, TypeError, ImportError)):
        return message
    if isinstance(error, MemoryError):
        return f"not enough memory ({message or 'no details'}); try --method proximal, or --landmarks"
    return f"unexpected {type(error).__name__}: {message} (--debug shows where)"


def _show_warning(message: Any, category: Any, *rest: Any, **more: Any) -> None:
    print(f"polymargin: warning: {' '.join(str(message).split())}", file=sys.stderr)


@contextmanager
def working(what: str, n_rows: int, *, quiet: bool = False) -> Iterator[None]:
    """Say what is going on unless `quiet`, and keep linear algebra of small problems to one thread."""
    limit = 1 if n_rows <= SMALL else None
    shown = sys.stderr.isatty() and not quiet
    with threadpool_limits(limit), notes().status(what) if shown else nullcontext():
        yield
