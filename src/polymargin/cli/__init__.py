"""The command line."""

import argparse
from importlib.metadata import version


def main(arguments: list[str] | None = None) -> int:
    """Run the `polymargin` command."""
    parser = argparse.ArgumentParser(prog="polymargin", description="Large-margin classification.")
    parser.add_argument("--version", action="version", version=version("polymargin"))
    commands = parser.add_subparsers(dest="command", required=True)
    commands.add_parser("demo", help="fit the classifiers on embedded data and print a table")
    parser.parse_args(arguments)

    from polymargin.cli.demo import run

    return run()
