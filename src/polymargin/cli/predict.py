"""`polymargin predict`: classes of new rows, by a saved model."""

from pathlib import Path
from typing import Annotated

import typer

from polymargin.cli._terminal import one_line_errors, results, working
from polymargin.cli.given import check_file, check_inputs, check_table, format_of
from polymargin.cli.names import Misuse
from polymargin.cli.options import CostColumns, Costs, Data, Debug, Decimal, Encoding, Format, Model, Na, Sep


def predict(
    model: Model,
    data: Data,
    out: Annotated[
        Path | None, typer.Option(help="CSV, TSV, Excel or Parquet file; standard output if left out.")
    ] = None,
    keep: Annotated[
        list[str] | None, typer.Option(help="Column of the data to repeat, an ID for example.")
    ] = None,
    keep_all: Annotated[bool, typer.Option("--keep-all", help="Repeat all columns of the data.")] = False,
    reject: Annotated[bool, typer.Option("--reject", help="Reject weak predictions, and say why.")] = False,
    costs: Costs = None,
    cost_columns: CostColumns = None,
    safe_csv: Annotated[
        bool,
        typer.Option("--safe-csv", help="Put ' before texts that a spreadsheet would take for a formula."),
    ] = False,
    file_format: Format = None,
    sep: Sep = None,
    decimal: Decimal = None,
    encoding: Encoding = None,
    na: Na = None,
    debug: Debug = False,
) -> None:
    """Predict the classes of the rows of a file, with row numbers and the scores of all classes."""
    with one_line_errors(debug):
        if keep and keep_all:
            raise Misuse("--keep and --keep-all exclude each other.")
        given = [
            name for name, value in (("--costs", costs), ("--cost-columns", cost_columns)) if value is not None
        ]
        if len(given) + reject > 1:
            raise Misuse("--costs, --cost-columns and --reject exclude each other.")
        check_table(out, "predictions")
        check_file(model, "a saved model")
        check_inputs(data, file_format=file_format)
        from polymargin.cli import predicting
        from polymargin.cli.tables import Reading
        from polymargin.files import write_atomically

        classifier, columns, _ = predicting.load_model(model)
        if reject and not hasattr(classifier[-1], "threshold_"):
            raise ValueError(f"--reject: {model} has no rejection threshold; fit it with --reject.")
        if given and not hasattr(classifier, "predict_proba"):
            raise ValueError(
                f"{given[0]}: {model} has no probabilities to decide by; fit it with --probabilities."
            )
        reading = Reading(file_format, sep, decimal, encoding, tuple(na or ()))
        rows = columns.read(data, None, reading, need_target=False)
        kept = predicting.kept_columns(rows, tuple(keep or ()), keep_all=keep_all)
        with working(f"predicting {rows.X.shape[0]} rows", rows.X.shape[0]):
            X = columns.select(rows)
            columns.warn_of_new_categories(classifier[0], X)
            table = predicting.predictions(classifier, X, reject=reject, kept=kept)
            if given:
                table["prediction"] = predicting.decided(classifier, X, rows, costs, cost_columns)
        if safe_csv:
            table = predicting.without_formulas(table)
        if out is None:
            print(table.to_csv(index=False), end="")
            return
        write_atomically(out, predicting.WRITERS[format_of(out)](table))
        results().print(f"{len(table)} predictions: {out}")
