"""`polymargin predict`: classes of new rows, by a saved model."""

import io
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import pandas as pd
import typer

from polymargin import persistence
from polymargin.cli._terminal import Data, Debug, one_line_errors, results, working
from polymargin.cli.columns import Columns, read_columns
from polymargin.cli.fit import Format
from polymargin.cli.methods import machine_of
from polymargin.cli.summary import plain_predictions
from polymargin.cli.tables import format_of
from polymargin.files import check_writable, write_atomically

Model = Annotated[Path, typer.Argument(help="Model saved by polymargin fit --save.", show_default=False)]


def predict(
    model: Model,
    data: Data,
    out: Annotated[
        Path | None, typer.Option(help="CSV, TSV or Parquet file to write; standard output if left out.")
    ] = None,
    reject: Annotated[bool, typer.Option("--reject", help="Reject weak predictions, and say why.")] = False,
    file_format: Format = None,
    debug: Debug = False,
) -> None:
    """Predict the classes of the rows of a file, with the scores of all classes."""
    with one_line_errors(debug):
        if out is not None:
            check_writable(out, "--out")
            if format_of(out) not in WRITERS:
                raise ValueError(f"--out {out}: predictions are written as {', '.join(WRITERS)}.")
        classifier, columns, _ = load_model(model)
        if reject and not hasattr(classifier[-1], "threshold_"):
            raise ValueError(f"--reject: {model} has no rejection threshold; fit it with --reject.")
        rows = columns.read(data, None, file_format, need_target=False)
        with working(f"predicting {rows.X.shape[0]} rows", rows.X.shape[0]):
            table = predictions(classifier, columns.select(rows), reject=reject)
        if out is None:
            print(table.to_csv(index=False), end="")
            return
        write_atomically(out, WRITERS[format_of(out)](table))
        results().print(f"{len(table)} predictions: {out}")


def load_model(path: Path) -> tuple[Any, Columns, dict[str, Any]]:
    """Read a saved model; return the pipeline, its columns and all that is known about it."""
    if path.is_dir():
        raise ValueError(f"{path} is a folder, not a saved model.")
    if not path.exists():
        raise ValueError(f"{path} does not exist.")
    saved = persistence.load(path)
    columns = read_columns(saved.metadata, path)
    return saved.model, columns, saved.metadata


def predictions(model: Any, X: Any, *, reject: bool) -> pd.DataFrame:
    """Return a table of predictions and scores."""
    machine = machine_of(model)
    features = model[:-1].transform(X)
    scores = np.asarray(machine.decision_function(features))
    if scores.ndim == 1:
        scores = np.column_stack([-scores, scores])
    table: dict[str, Any] = {"prediction": plain_predictions(model, X)}
    if reject:
        table["prediction"], table["reason"] = model[-1].predict_with_reason(features)
    table |= {f"score {label}": scores[:, at] for at, label in enumerate(machine.classes_)}
    return pd.DataFrame(table)


def _to_parquet(table: pd.DataFrame) -> bytes:
    buffer = io.BytesIO()
    table.to_parquet(buffer, index=False)
    return buffer.getvalue()


WRITERS = {
    "csv": lambda table: table.to_csv(index=False),
    "tsv": lambda table: table.to_csv(index=False, sep="\t"),
    "parquet": _to_parquet,
}
