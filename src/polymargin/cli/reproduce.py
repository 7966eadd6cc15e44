"""`polymargin reproduce`: the front end of the reproductions, which live in a checkout."""

import sys
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path

import typer


def reproduce(context: typer.Context) -> None:
    """Reproduce tables and figures of the papers, from a checkout; --list names them all."""
    here = str(Path.cwd())
    if here not in sys.path:
        sys.path.insert(0, here)
    if find_spec("reproductions") is None:
        print(
            "polymargin reproduce: the reproductions are not installed with the package; run this in a checkout "
            "of Polymargin",
            file=sys.stderr,
        )
        raise typer.Exit(1)
    raise typer.Exit(import_module("reproductions.__main__").main(list(context.args)))
