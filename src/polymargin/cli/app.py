"""The commands together, and the exit codes."""

import os
import sys
from typing import Annotated, Any

import typer
from typer.main import get_command_name

from polymargin.cli._terminal import Interrupted, complain, interruptible
from polymargin.cli.compare import compare
from polymargin.cli.demo import demo
from polymargin.cli.export import export
from polymargin.cli.fit import fit
from polymargin.cli.labels import labels
from polymargin.cli.predict import predict
from polymargin.cli.report import report
from polymargin.cli.reproduce import reproduce
from polymargin.cli.studio import studio

app = typer.Typer(
    name="polymargin",
    add_completion=False,
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,  # rich takes longer to import than all the rest of help
    context_settings={"help_option_names": ["-h", "--help"]},
)
for command in (demo, fit, predict, report, export, compare, labels, studio):
    app.command()(command)
# Its options are those of the reproductions, --help included.
passed_on = {"ignore_unknown_options": True, "allow_extra_args": True, "help_option_names": []}
app.command(context_settings=passed_on)(reproduce)

# Some versions of typer bring a click of their own; this is the right class in all of them.
UsageError: Any = typer.BadParameter.__bases__[0]


def _show_version(asked: bool) -> None:
    if asked:
        from polymargin import __version__

        print(__version__)
        raise typer.Exit()


@app.callback()
def polymargin(
    show_version: Annotated[
        bool, typer.Option("--version", is_eager=True, callback=_show_version, help="Show the version and leave.")
    ] = False,
) -> None:
    """Large-margin classification with more than two classes: exact, certified, cost-aware."""


def _misspelt(arguments: list[str]) -> str | None:
    """Return the complaint about a first word that is no command: typer would first build the options of all."""
    made = [(command.name, command.callback) for command in app.registered_commands]
    names = [get_command_name(name or callback.__name__) for name, callback in made if callback]
    if not arguments or arguments[0].startswith("-") or arguments[0] in names:
        return None
    from difflib import get_close_matches

    close = get_close_matches(arguments[0], names, n=1)
    return f"No such command {arguments[0]!r}.{f' Did you mean {close[0]!r}?' if close else ''}"


def run(arguments: list[str]) -> int:
    """Run the command that the arguments name and return its exit code."""
    for stream in (sys.stdout, sys.stderr):
        # A class may be called what the terminal cannot show; that is no reason to fail.
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="replace")
    if misspelt := _misspelt(arguments):
        complain(f"polymargin: {misspelt} (see polymargin --help)")
        return 2
    try:
        with interruptible():
            code = app(arguments, prog_name="polymargin", standalone_mode=False) or 0
            sys.stdout.flush()
        return code
    except UsageError as error:
        context = error.ctx.command_path if error.ctx else "polymargin"
        message = " ".join(error.format_message().split())
        if message:
            complain(f"{context}: {message} (see {context} --help)")
        return 2
    except BrokenPipeError:
        # Whoever read the results has had enough; models and reports were saved before.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    except (Interrupted, KeyboardInterrupt, typer.Abort) as stop:
        said = str(stop)
        complain(f"polymargin: interrupted{f'; {said}' if said else ''}")
        return 130
