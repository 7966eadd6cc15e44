"""Costs and priors as the command line takes them."""

import re
from pathlib import Path

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from polymargin.cli.tables import Rows
from polymargin.costs import resolve_cost_matrix, resolve_priors

LONG_FORM = ["true", "predicted", "cost"]
PRIOR = re.compile(r"\s*(?P<label>.+?)\s*=\s*(?P<value>[^,=]+?)\s*(?:,|$)")


def read_costs(path: Path, classes: NDArray) -> NDArray[np.float64]:
    """Read a cost matrix (k, k) in the order of `classes` from a CSV file.

    The file is a square table with the predicted classes in its header and the true ones in its first column, or
    has the columns true, predicted and cost, one line per pair (pairs left out cost 1).
    """
    name = f"--costs {path}"
    table = _read(path, name)
    by_name = {str(label): label for label in classes}
    if list(table.columns) == LONG_FORM:
        listed = zip(table["true"], table["predicted"], table["cost"], strict=True)
        costs = {(_label(t, by_name, name), _label(p, by_name, name)): _cost(c, t, p, name) for t, p, c in listed}
        return resolve_cost_matrix(costs, classes, name=name)
    rows = [_label(label, by_name, name) for label in table.iloc[:, 0]]
    columns = [_label(label, by_name, name) for label in table.columns[1:]]
    for axis, labels in (("rows", rows), ("columns", columns)):
        absent = [str(label) for label in classes.tolist() if label not in labels]
        if absent:
            raise ValueError(f"{name} must have {axis} for all classes, missing: {', '.join(absent)}.")
        if len(set(labels)) < len(labels):
            raise ValueError(f"{name} has two {axis} for one class: {', '.join(map(str, labels))}.")
    values = [
        [_cost(table.iat[i, j + 1], rows[i], columns[j], name) for j in range(len(columns))]
        for i in range(len(rows))
    ]
    return resolve_cost_matrix(pd.DataFrame(values, index=rows, columns=columns), classes, name=name)


def cost_columns_of(text: str, classes: NDArray) -> list[str]:
    """Return the columns of the costs, in the order of `classes`, from CLASS=COLUMN,CLASS=COLUMN,...

    >>> cost_columns_of("b=cost b,a=loss", np.array(["a", "b"]))
    ['loss', 'cost b']
    """
    by_name = {str(label): label for label in classes}
    named: dict[object, str] = {}
    for part in text.split(","):
        label, found, column = part.partition("=")
        if not found or not column.strip():
            raise ValueError(f"--cost-columns must look like CLASS=COLUMN,CLASS=COLUMN,..., got {text!r}.")
        named[_label(label, by_name, "--cost-columns")] = column.strip()
    absent = [str(label) for label in classes.tolist() if label not in named]
    if absent:
        raise ValueError(f"--cost-columns must name a column for all classes, missing: {', '.join(absent)}.")
    return [named[label] for label in classes.tolist()]


def where_wrong(costs: NDArray[np.float64], y: NDArray, classes: NDArray) -> NDArray[np.float64]:
    """Return costs (n, k) of rows whose classes are known: predicting these costs nothing.

    >>> where_wrong(np.array([[1.0, 2.0], [3.0, 4.0]]), np.array(["b", "a"]), np.array(["a", "b"]))
    array([[1., 0.],
           [0., 4.]])
    """
    return np.where(y[:, None] == classes, 0.0, costs)


def read_row_costs(text: str, rows: Rows, classes: NDArray) -> NDArray[np.float64]:
    """Return the costs (n, k) of rows from the columns that the text names, in the order of `classes`."""
    if rows.is_sparse:
        raise ValueError(f"--cost-columns needs named columns, {rows.path} (LIBSVM) has none.")
    names = cost_columns_of(text, classes)
    unknown = [name for name in names if name not in rows.X.columns]
    if unknown:
        raise ValueError(f"--cost-columns: {rows.path} has no column {unknown[0]!r}.")
    costs = rows.X[names].apply(pd.to_numeric, errors="coerce").to_numpy(dtype=np.float64)
    wrong = np.argwhere(~(np.isfinite(costs) & (costs >= 0)))
    if len(wrong):
        row, column = wrong[0]
        raise ValueError(
            f"--cost-columns: column {names[column]!r} must hold numbers that are not negative, got "
            f"{rows.X[names[column]].iloc[row]!r} in data row {row + 1}."
        )
    return costs


def parse_priors(text: str, classes: NDArray) -> NDArray[np.float64]:
    """Read the proportions (k,) of the classes in the population from text.

    >>> parse_priors("ash=0.25, beech, red=0.75", np.array(["ash", "beech, red"]))
    array([0.25, 0.75])
    """
    name = "--priors"
    by_name = {str(label): label for label in classes}
    priors, end = {}, 0
    for match in PRIOR.finditer(text):
        if match.start() != end:
            break
        end = match.end()
        try:
            value = float(match["value"])
        except ValueError:
            raise ValueError(
                f"{name}: the share of {match['label']!r} must be a number, got {match['value']!r}."
            ) from None
        priors[_label(match["label"], by_name, name)] = value
    if end != len(text) or not priors:
        raise ValueError(f"{name} must look like CLASS=SHARE,CLASS=SHARE,..., got {text!r}.")
    resolved = resolve_priors(priors, classes)
    assert resolved is not None
    return resolved


def _read(path: Path, name: str) -> pd.DataFrame:
    if path.is_dir():
        raise ValueError(f"{name} is a folder, not a CSV file.")
    try:
        table = pd.read_csv(path, dtype=str, keep_default_na=False, encoding="utf-8-sig")
    except FileNotFoundError:
        raise ValueError(f"{name} does not exist.") from None
    except PermissionError:
        raise ValueError(f"{name} cannot be read: no permission.") from None
    except Exception as error:  # pandas has many
        raise ValueError(f"{name} cannot be read as CSV: {error}") from error
    if table.shape[1] < 2 or table.empty:
        raise ValueError(
            f"{name} must be a table with the predicted classes in its header and the true ones in its "
            f"first column, got {len(table)} rows and {table.shape[1]} columns."
        )
    return table


def _label(text: str, by_name: dict[str, object], name: str) -> object:
    text = text if text in by_name else text.strip()
    if text not in by_name:
        raise ValueError(f"{name} names the class {text!r}, the classes of the data are {', '.join(by_name)}.")
    return by_name[text]


def _cost(text: str, true: object, predicted: object, name: str) -> float:
    try:
        return float(text)
    except ValueError:
        raise ValueError(f"{name}: the cost of {predicted} for {true} must be a number, got {text!r}.") from None
