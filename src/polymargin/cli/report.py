"""`polymargin report`: one page about a saved model, on rows it has not seen."""

from pathlib import Path
from typing import Annotated

import typer

from polymargin.cli._terminal import one_line_errors, results, working
from polymargin.cli.fit import page
from polymargin.cli.given import check_file, check_inputs, check_page
from polymargin.cli.options import Data, Debug, Decimal, Encoding, Format, Model, Na, Sep


def report(
    model: Model,
    data: Data,
    out: Annotated[Path, typer.Option(help="Page to write (.html).")] = Path("report.html"),
    target: Annotated[
        str | None, typer.Option(help="Column of the classes, where it is not called as when fitted.")
    ] = None,
    file_format: Format = None,
    sep: Sep = None,
    decimal: Decimal = None,
    encoding: Encoding = None,
    na: Na = None,
    debug: Debug = False,
) -> None:
    """Write a self-contained page about a model: certificate, confusion, decisions, costs."""
    with one_line_errors(debug):
        check_page(out, "--out")
        check_file(model, "a saved model")
        check_inputs(data, file_format=file_format)
        import numpy as np

        from polymargin.cli.predicting import load_model
        from polymargin.cli.tables import Reading

        classifier, columns, metadata = load_model(model)
        reading = Reading(file_format, sep, decimal, encoding, tuple(na or ()))
        rows = columns.read(data, target or metadata["target"], reading)
        assert rows.y is not None
        unknown = np.setdiff1d(rows.y.astype(str), classifier.classes_.astype(str))
        if len(unknown):
            raise ValueError(f"{data} holds classes that the model does not know: {', '.join(unknown[:8])}.")
        held_out = columns.select(rows), rows.y.astype(classifier.classes_.dtype)
        columns.warn_of_new_categories(classifier[0], held_out[0])
        costs = None if metadata["costs"] is None else np.array(metadata["costs"])
        with working("writing the report", len(rows.y)):
            page(classifier, held_out, costs, out, metadata["command"], f"{model.name} on {data.name}")
        results().print(f"report: {out.resolve()}")
