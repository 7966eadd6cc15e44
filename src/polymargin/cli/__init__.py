"""The command line: one file per command."""

import sys


def main(arguments: list[str] | None = None) -> int:
    """Run the `polymargin` command and return its exit code: 0, 1 for data that cannot be used, 2 for misuse."""
    try:
        import pandas  # noqa: F401
        import rich  # noqa: F401
        import typer  # noqa: F401
    except ImportError as error:
        print(f'polymargin: {error.name} is not installed: pip install "polymargin[cli]"', file=sys.stderr)
        return 1
    from polymargin.cli.app import run

    return run(sys.argv[1:] if arguments is None else arguments)
