"""`polymargin export`: a saved model as an ONNX file, checked on rows."""

from pathlib import Path
from typing import Annotated, Any

import typer

from polymargin.cli._terminal import notes, one_line_errors, results, working
from polymargin.cli.given import check_file, check_inputs
from polymargin.cli.options import Debug, Format, Model

LISTED = 8
"""Rows that are named before it says how many more there are."""


def export(
    model: Model,
    out: Annotated[Path, typer.Argument(help="ONNX file to write.", show_default=False)],
    check: Annotated[
        Path | None, typer.Option(help="File of rows on which graph and model must agree.", show_default=False)
    ] = None,
    precision: Annotated[str, typer.Option(help="What is computed in: single or double.")] = "single",
    overwrite: Annotated[bool, typer.Option("--overwrite", help="Replace the file if it exists.")] = False,
    file_format: Format = None,
    debug: Debug = False,
) -> None:
    """Write a model as ONNX, for any runtime: labels and scores out, plain operators only."""
    with one_line_errors(debug):
        from polymargin.files import check_writable, write_atomically

        check_writable(out, "OUT")
        if out.exists() and not overwrite:
            raise ValueError(f"OUT: {out} exists; give another name, or --overwrite.")
        check_file(model, "a saved model")
        check_inputs(check, file_format=file_format)
        from polymargin.cli.predicting import load_model
        from polymargin.cli.tables import Reading
        from polymargin.export import compare, to_onnx

        classifier, columns, _ = load_model(model)
        rows = None
        if check is not None:
            rows = columns.select(columns.read(check, None, Reading(file_format), need_target=False))
        with working("converting", 1):
            graph = to_onnx(classifier, columns.example() if rows is None else rows, precision=precision)
        if rows is not None:
            with working(f"checking {rows.shape[0]} rows", rows.shape[0]):
                _confirm(compare(classifier, graph, rows))
        else:
            notes().print("not checked: --check FILE runs graph and model on the rows of a file")
        write_atomically(out, graph.SerializeToString())
        results().print(f"{out}: {', '.join(entry.name for entry in graph.graph.input)} in, label and scores out")


def _confirm(agreement: Any) -> None:
    """Say how far graph and model agree; raise where they do not."""
    ties = f", {_named(agreement.ties)} tied within 1e-6" if len(agreement.ties) else ""
    if len(agreement.different):
        raise ValueError(
            f"the graph decides otherwise than the model for {_named(agreement.different)} of {agreement.n_rows}; "
            "nothing was written. Try --precision double."
        )
    if not agreement.holds:
        raise ValueError(
            f"the scores of the graph differ from the model's by {agreement.change:.1e}, more than "
            f"{agreement.tolerance:g}; nothing was written. Try --precision double."
        )
    results().print(
        f"{agreement.n_rows} rows: same labels{ties}, scores within {agreement.change:.1e}", soft_wrap=True
    )


def _named(rows: Any) -> str:
    more = f" and {len(rows) - LISTED} more" if len(rows) > LISTED else ""
    return f"row{'s' if len(rows) > 1 else ''} {', '.join(str(at + 1) for at in rows[:LISTED])}{more}"
