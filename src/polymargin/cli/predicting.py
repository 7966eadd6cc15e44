"""Predictions by a saved model as a table that can be joined to its input, without a command line."""

import io
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from polymargin import Decider, persistence
from polymargin.cli.columns import Columns, read_columns
from polymargin.cli.costs import read_costs, read_row_costs
from polymargin.cli.given import check_file
from polymargin.cli.methods import machine_of
from polymargin.cli.names import Misuse
from polymargin.cli.summary import plain_predictions
from polymargin.cli.tables import Rows, shown_names

SET_SEPARATOR = " | "
"""Between the classes of a set."""


def load_model(path: Path) -> tuple[Any, Columns, dict[str, Any]]:
    """Read a saved model; return the pipeline, its columns and all that is known about it."""
    check_file(path, "a saved model")
    saved = persistence.load(path)
    columns = read_columns(saved.metadata, path)
    return saved.model, columns, saved.metadata


def kept_columns(rows: Rows, names: tuple[str, ...] = (), *, keep_all: bool = False) -> pd.DataFrame | None:
    """Return the columns of the data that predictions are to repeat."""
    if not names and not keep_all:
        return None
    if rows.is_sparse:
        raise Misuse(f"--keep and --keep-all need named columns, {rows.path} (LIBSVM) has none.")
    unknown = [name for name in names if name not in rows.X.columns]
    if unknown:
        known = shown_names([str(name) for name in rows.X.columns])
        raise ValueError(f"--keep: {rows.path} has no column {unknown[0]!r}, its columns are {known}.")
    return rows.X if keep_all else rows.X[list(names)]


def decided(model: Any, X: Any, rows: Rows, costs: Path | None, cost_columns: str | None) -> Any:
    """Return the classes of least expected cost, under costs of classes or of rows that came after training."""
    if costs is not None:
        return Decider(model, cost_matrix=read_costs(costs, model.classes_)).predict(X)
    assert cost_columns is not None
    return Decider(model).predict(X, read_row_costs(cost_columns, rows, model.classes_))


def predictions(model: Any, X: Any, *, reject: bool = False, kept: pd.DataFrame | None = None) -> pd.DataFrame:
    """Return a table of row numbers, columns kept from the data, predictions, scores, probabilities and sets.

    Rows are counted from 1, below the header. A column kept from the data that bears the name of one of ours is
    marked as "data NAME".
    """
    machine = machine_of(model)
    features = model[:-1].transform(X)
    scores = np.asarray(machine.decision_function(features))
    if scores.ndim == 1:
        scores = np.column_stack([-scores, scores])
    table: dict[str, Any] = {"row": np.arange(1, len(scores) + 1), "prediction": plain_predictions(model, X)}
    if reject:
        table["prediction"], table["reason"] = model[-1].predict_with_reason(features)
    table |= {f"score {label}": scores[:, at] for at, label in enumerate(machine.classes_)}
    if hasattr(model[-1], "predict_proba"):
        P = model[-1].predict_proba(features)
        table |= {f"probability {label}": P[:, at] for at, label in enumerate(machine.classes_)}
    if hasattr(model[-1], "predict_set"):
        names = np.array([str(label) for label in machine.classes_], dtype=object)
        table["set"] = [SET_SEPARATOR.join(names[members]) for members in model[-1].predict_set(features)]
    ours = pd.DataFrame(table)
    if kept is None:
        return ours
    theirs = kept.reset_index(drop=True).rename(columns=lambda name: f"data {name}" if name in table else name)
    return pd.concat([ours[["row"]], theirs, ours.drop(columns="row")], axis=1)


FORMULA = ("=", "+", "-", "@", "\t", "\r")
"""How texts begin that a spreadsheet reads as a formula."""


def without_formulas(table: pd.DataFrame) -> pd.DataFrame:
    """Return the table with ' before every text, and every column's name, that begins like a formula.

    Numbers, negative ones too, stay as they are.
    """

    def quoted(value: Any) -> Any:
        return f"'{value}" if isinstance(value, str) and value.startswith(FORMULA) else value

    return table.rename(columns=quoted).map(quoted)


def _written(write: Callable[[io.BytesIO], None]) -> bytes:
    buffer = io.BytesIO()
    write(buffer)
    return buffer.getvalue()


WRITERS: dict[str, Callable[[pd.DataFrame], bytes | str]] = {
    "csv": lambda table: table.to_csv(index=False),
    "tsv": lambda table: table.to_csv(index=False, sep="\t"),
    "excel": lambda table: _written(lambda buffer: table.to_excel(buffer, index=False, engine="openpyxl")),
    "parquet": lambda table: _written(lambda buffer: table.to_parquet(buffer, index=False)),
}
