"""The columns of a file for a person to look at: what they hold, what they would be used as, what is wrong."""

from dataclasses import asdict
from typing import Any

import numpy as np
import pandas as pd

from polymargin.cli.columns import LARGEST, is_identifier, problem_or_kind
from polymargin.cli.tables import Rows, check_classes, labels_of

SHOWN_VALUES = 4
"""Categories that are named per column."""


def overview(rows: Rows) -> dict[str, Any]:
    """Return all columns and their problems, and which may hold the classes."""
    if rows.is_sparse:
        return {
            "rows": rows.X.shape[0],
            "columns": [],
            "features": rows.X.shape[1],
            "targets": [],
            "assumed": list(rows.assumed),
            "reading": asdict(rows.reading),
        }
    columns = [_column(str(name), rows.X[name]) for name in rows.X.columns]
    return {
        "rows": len(rows.X),
        "columns": columns,
        "features": None,
        "targets": _likely_targets(rows.X),
        "assumed": list(rows.assumed),
        "reading": asdict(rows.reading),
    }


def _column(name: str, column: pd.Series) -> dict[str, Any]:
    identifier = is_identifier(column)
    kind = problem_or_kind(column, declared_categorical=False)
    problems = [kind] if isinstance(kind, str) else []
    if identifier:
        use = "leave out"
        problems = ["tells every row apart, like an ID."]
    else:
        use = "leave out" if problems else ("category" if kind else "number")
    missing = int(column.isna().sum())
    if use == "number":
        numbers = pd.to_numeric(column, errors="coerce").astype("Float64").to_numpy(dtype=float, na_value=np.nan)
        if np.isinf(numbers).any():
            problems.append("holds infinite values.")
        elif (np.abs(numbers) > LARGEST).any():
            problems.append(f"holds numbers beyond {LARGEST:g}, which no arithmetic stands.")
        shown = _range(numbers)
    else:
        shown = _commonest(column)
    if 0 < missing < len(column):
        values = "a missing value: fill it in" if missing == 1 else f"{missing} missing values: fill them in"
        problems.append(f"has {values}, or leave the column out.")
    return {
        "name": name,
        "use": use,
        "distinct": int(column.astype(str).nunique()),
        "missing": missing,
        "values": shown,
        "problems": problems,
    }


def _range(numbers: np.ndarray) -> str:
    low, middle, high = np.nanmin(numbers), np.nanmedian(numbers), np.nanmax(numbers)
    return f"{low:.4g} to {high:.4g}, median {middle:.4g}"


def _commonest(column: pd.Series) -> str:
    counts = column.dropna().astype(str).value_counts()
    named = ", ".join(f"{value[:30]} ({count})" for value, count in counts.head(SHOWN_VALUES).items())
    return named + (f" and {len(counts) - SHOWN_VALUES} more" if len(counts) > SHOWN_VALUES else "")


def _likely_targets(frame: pd.DataFrame) -> list[str]:
    """Return the columns that may hold classes, the likeliest first: few values, text before numbers, the last."""
    likely: list[tuple[Any, str]] = []
    for place, name in enumerate(frame.columns):
        column = frame[name]
        try:
            labels = labels_of(column, name)
            check_classes(labels, name)
        except ValueError:
            continue
        few = len(np.unique(labels)) <= max(30, len(labels) // 50)
        likely.append(((not few, pd.api.types.is_numeric_dtype(column), -place), str(name)))
    return [name for _, name in sorted(likely)]


def classes_of(y: np.ndarray) -> list[dict[str, Any]]:
    """Return the classes and how many rows each has."""
    names, counts = np.unique(y, return_counts=True)
    return [{"name": str(name), "rows": int(count)} for name, count in zip(names, counts, strict=True)]
