"""Preprocessing as a sum over columns: what scalers and encoders do, found by trying them, and confirmed."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

CONFIRMED_ROWS = 200
"""Held-out rows on which the sum is compared with the transformers themselves."""

TOLERANCE = 1e-9
"""Largest difference that is taken for rounding, relative to the largest feature but at least 1."""


@dataclass(frozen=True, slots=True)
class Column:
    """A column of the rows as users give them.

    Attributes
    ----------
    name : its name.
    typical : the mean of a number, the most frequent value of a category.
    levels : values of a category; None for a number.
    effects : (q,) change of the features for a number that is larger by 1; (levels, q) change of the features when
        the category moves from the typical value to each.
    """

    name: str
    typical: Any
    levels: tuple[Any, ...] | None
    effects: NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class AdditiveSteps:
    """Features (q,) of a row: those of the typical row, plus what each column adds."""

    columns: tuple[Column, ...]
    typical: NDArray[np.float64]

    @classmethod
    def of(cls, steps: Any, X: Any) -> "AdditiveSteps | None":
        """Try the fitted transformers column by column; None where they are no sum over columns."""
        if sparse.issparse(X):
            return None
        table = _as_table(X)
        complete = [row for row in range(len(table[0][1])) if not any(_is_missing(c[row]) for _, c in table)]
        if not complete:
            return None
        try:
            found = cls._probe(steps, X, [(name, column[complete]) for name, column in table])
            rows = np.array(complete[:CONFIRMED_ROWS])
            seen = _transform(steps, X.iloc[rows] if hasattr(X, "iloc") else np.asarray(X)[rows])
            summed = np.array([found.features([column[row] for _, column in table]) for row in rows])
        except (ValueError, TypeError, ArithmeticError, KeyError):
            return None  # a step refused rows that nobody has measured; the page does without the form
        error = np.abs(seen - summed).max() if seen.shape == summed.shape else np.inf
        return found if error <= TOLERANCE * max(1.0, np.abs(seen).max()) else None

    @classmethod
    def _probe(cls, steps: Any, X: Any, table: list[tuple[str, NDArray]]) -> "AdditiveSteps":
        typical = [_typical(column) for _, column in table]
        probes, meaning = [list(typical)], []
        for at, (_, column) in enumerate(table):
            others: Any
            if column.dtype.kind == "f":
                step = float(np.ptp(column)) or 1.0
                others = [typical[at] + step]
            else:
                step, others = None, sorted(set(column.tolist()))
            for value in others:
                probes.append([*typical[:at], value, *typical[at + 1 :]])
            meaning.append((step, others))
        features = _transform(steps, _like(X, probes))
        columns, row = [], 1
        for (name, _), middle, (step, others) in zip(table, typical, meaning, strict=True):
            change = features[row : row + len(others)] - features[0]
            row += len(others)
            if step is not None:
                actual = others[0] - middle
                columns.append(Column(name, middle, None, change[0] / actual))
            else:
                columns.append(Column(name, middle, tuple(others), change))
        return cls(tuple(columns), features[0])

    def features(self, values: list[Any]) -> NDArray[np.float64]:
        """Return the features of one row."""
        total = self.typical.copy()
        for column, value in zip(self.columns, values, strict=True):
            if column.levels is None:
                total += (float(value) - column.typical) * column.effects
            else:
                total += column.effects[column.levels.index(value)]
        return total


def _as_table(X: Any) -> list[tuple[str, NDArray]]:
    """Return the columns with their names: numbers as doubles, everything else as objects."""
    if hasattr(X, "columns"):
        return [(str(name), _column(np.asarray(X[name]))) for name in X.columns]
    return [(f"variable {at}", _column(column)) for at, column in enumerate(np.asarray(X).T)]


def _column(values: NDArray) -> NDArray:
    return values.astype(np.float64) if values.dtype.kind in "biuf" else values.astype(object)


def _is_missing(value: Any) -> bool:
    return value is None or value != value


def _typical(column: NDArray) -> Any:
    if column.dtype.kind == "f":
        return float(column.mean())
    return max(sorted(set(column.tolist())), key=column.tolist().count)


def _like(X: Any, rows: list[list[Any]]) -> Any:
    """Return rows in the container that the given ones came in."""
    if not hasattr(X, "columns"):
        return np.array(rows, dtype=np.float64)
    return type(X)({name: [row[at] for row in rows] for at, name in enumerate(X.columns)})


def _transform(steps: Any, X: Any) -> NDArray[np.float64]:
    for _, step in steps:
        X = step.transform(X)
    return np.asarray(X.toarray() if sparse.issparse(X) else X, dtype=np.float64)
