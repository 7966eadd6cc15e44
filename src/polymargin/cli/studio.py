"""`polymargin studio`: the same work in the browser, served to this machine alone."""

from pathlib import Path
from typing import Annotated

import typer

from polymargin.cli._terminal import Interrupted, one_line_errors, results
from polymargin.cli.given import check_inputs
from polymargin.cli.options import Data, Debug, Decimal, Encoding, Format, Na, Sep


def studio(
    data: Data,
    port: Annotated[int, typer.Option(help="Port on the loopback address; 0 for any.", min=0, max=65535)] = 0,
    browser: Annotated[bool, typer.Option(help="Open the page in the browser.")] = True,
    file_format: Format = None,
    sep: Sep = None,
    decimal: Decimal = None,
    encoding: Encoding = None,
    na: Na = None,
    debug: Debug = False,
) -> None:
    """Work on a file in the browser: columns, costs, training, predictions; nothing leaves this machine."""
    with one_line_errors(debug):
        check_inputs(data, file_format=file_format)
        import tempfile
        from contextlib import suppress

        from polymargin.cli.tables import Reading

        try:
            from polymargin.studio.server import Studio, open_browser
        except ModuleNotFoundError as error:
            if error.name not in ("starlette", "uvicorn"):
                raise
            raise ImportError(f'{error.name} is not installed: pip install "polymargin[studio]"') from error
        from polymargin.studio.session import Session

        reading = Reading(file_format, sep, decimal, encoding, tuple(na or ()))
        served = Studio(Session(data, reading), port)
        results().print(f"studio: {served.address}", soft_wrap=True)
        results().print("Keep the address to yourself; Ctrl-C ends the studio.")
        with tempfile.TemporaryDirectory(prefix="polymargin-") as folder:
            if browser:
                open_browser(served.address, Path(folder))
            with suppress(Interrupted, KeyboardInterrupt):  # how a studio is ended
                served.serve()
