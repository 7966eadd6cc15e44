"""`polymargin reproduce`: the front end of the reproductions, which live in a checkout."""

import sys
from pathlib import Path

import typer

ELSEWHERE = "polymargin reproduce: the reproductions do not come with the package; run this in a checkout of it"


def reproduce(context: typer.Context) -> None:
    """Reproduce tables and figures of the papers, from a checkout; --list names them all."""
    from importlib import import_module
    from importlib.util import find_spec

    here = str(Path.cwd())
    if here not in sys.path:
        sys.path.insert(0, here)
    if find_spec("reproductions") is None:
        if any(word in ("-h", "--help") for word in context.args):
            print("Usage: polymargin reproduce [--list] [NAME ...]\n\n" + ELSEWHERE)
            raise typer.Exit(0)
        print(ELSEWHERE, file=sys.stderr)
        raise typer.Exit(1)
    raise typer.Exit(import_module("reproductions.__main__").main(list(context.args)))
