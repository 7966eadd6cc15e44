"""The command line: one file per command, which imports nothing heavy: help and errors come at once."""

import sys


def main(arguments: list[str] | None = None) -> int:
    """Run the `polymargin` command and return its exit code: 0, 1 for data that cannot be used, 2 for misuse."""
    from importlib.util import find_spec

    for package in ("typer", "rich", "pandas"):
        if (package in sys.modules and sys.modules[package] is None) or find_spec(package) is None:
            print(f'polymargin: {package} is not installed: pip install "polymargin[cli]"', file=sys.stderr)
            return 1
    from polymargin.cli.app import run

    return run(sys.argv[1:] if arguments is None else arguments)
