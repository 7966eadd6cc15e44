"""`polymargin report`: one page about a saved model, on rows it has not seen."""

from pathlib import Path
from typing import Annotated

import numpy as np
import typer

from polymargin.cli._terminal import Data, Debug, one_line_errors, working
from polymargin.cli.fit import Format, write_report
from polymargin.cli.predict import Model, load_model
from polymargin.files import check_writable


def report(
    model: Model,
    data: Data,
    out: Annotated[Path, typer.Option(help="Page to write.")] = Path("report.html"),
    file_format: Format = None,
    debug: Debug = False,
) -> None:
    """Write a self-contained page about a model: certificate, confusion, decisions, costs."""
    with one_line_errors(debug):
        check_writable(out, "--out")
        classifier, columns, metadata = load_model(model)
        rows = columns.read(data, metadata["target"], file_format)
        assert rows.y is not None
        unknown = np.setdiff1d(rows.y.astype(str), classifier.classes_.astype(str))
        if len(unknown):
            raise ValueError(f"{data} holds classes that the model does not know: {', '.join(unknown[:8])}.")
        held_out = columns.select(rows), rows.y.astype(classifier.classes_.dtype)
        costs = None if metadata["costs"] is None else np.array(metadata["costs"])
        with working("writing the report", len(rows.y)):
            write_report(classifier, held_out, costs, out, metadata["command"], f"{model.name} on {data.name}")
