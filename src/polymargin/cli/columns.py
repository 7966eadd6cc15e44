"""Columns of a table: which are numbers, which categories, and what a classifier is given of them."""

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from sklearn.compose import ColumnTransformer
from sklearn.impute import SimpleImputer
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler

from polymargin.cli._terminal import Misuse
from polymargin.cli.tables import Rows, format_of, read_rows

LISTED = 8
"""Columns that a message names before it says how many more there are."""


@dataclass(frozen=True, slots=True)
class Columns:
    """The columns that a model was trained on.

    Attributes
    ----------
    numeric, categorical : their names; both empty for a sparse matrix.
    n_features : columns of a sparse matrix, None for a table.
    impute : whether missing values are filled in.
    """

    numeric: list[str]
    categorical: list[str]
    n_features: int | None = None
    impute: bool = False

    @classmethod
    def of(cls, rows: Rows, *, categorical: Sequence[str], drop: Sequence[str], impute: bool) -> "Columns":
        """Decide what every column is; a column that is neither numbers nor categories is an error."""
        if rows.is_sparse:
            if categorical or drop:
                raise Misuse(f"--categorical and --drop need named columns, {rows.path} (LIBSVM) has none.")
            return cls([], [], rows.X.shape[1], impute)
        for option, names in (("--categorical", categorical), ("--drop", drop)):
            unknown = [name for name in names if name not in rows.X.columns]
            if unknown:
                raise ValueError(f"{option}: {rows.path} has no column {unknown[0]!r}.")
        kinds = {
            str(name): name in categorical or not _is_numeric(rows.X[name], f"{rows.path}: column {name!r}")
            for name in rows.X.columns
            if name not in drop
        }
        if not kinds:
            raise ValueError(f"{rows.path} has no columns besides the target.")
        return cls(
            [name for name, is_category in kinds.items() if not is_category],
            [name for name, is_category in kinds.items() if is_category],
            None,
            impute,
        )

    def read(self, path: Path, target: str | None, file_format: str | None, *, need_target: bool = True) -> Rows:
        """Read another file in the way of the one that these are the columns of."""
        if self.n_features is None and format_of(path, file_format) == "libsvm":
            raise ValueError(f"{path} is a LIBSVM file, the model was fitted to named columns.")
        if self.n_features is not None and format_of(path, file_format) != "libsvm":
            raise ValueError(f"{path} is a table, the model was fitted to a LIBSVM file.")
        return read_rows(
            path,
            target=target,
            file_format=file_format,
            n_features=self.n_features,
            as_text=tuple(self.categorical),
            need_target=need_target,
        )

    def select(self, rows: Rows) -> Any:
        """Return the rows with these columns alone, numbers as floats and categories as strings, all checked."""
        if rows.is_sparse:
            return rows.X
        missing = [name for name in (*self.numeric, *self.categorical) if name not in rows.X.columns]
        if missing:
            raise ValueError(f"{rows.path} lacks columns of the model: {_listed(missing)}.")
        columns = {name: _numbers(rows.X[name], f"{rows.path}: column {name!r}") for name in self.numeric}
        columns |= {name: _categories(rows.X[name]) for name in self.categorical}
        frame = pd.DataFrame(columns, index=rows.X.index)
        infinite = [name for name in self.numeric if np.isinf(frame[name]).any()]
        if infinite:
            raise ValueError(f"{rows.path} holds infinite values in: {_listed(infinite)}.")
        if not self.impute:
            holes = frame.isna().sum()
            if holes.any():
                named = _listed([f"{name} ({count})" for name, count in holes[holes > 0].items()])
                raise ValueError(
                    f"{rows.path} has missing values in: {named}; fill them in, or fit with --impute."
                )
        return frame

    def example(self) -> Any:
        """Return one row of no meaning in the types that `select` gives."""
        if self.n_features is not None:
            return np.zeros((1, self.n_features))
        return pd.DataFrame({name: [0.0] for name in self.numeric} | {name: [""] for name in self.categorical})

    def preprocessing(self, *, scale: bool) -> Any:
        """Return the transformer that makes features of the selected columns."""
        if self.n_features is not None:
            return StandardScaler(with_mean=False) if scale else "passthrough"
        numeric: list[Any] = [SimpleImputer(strategy="median")] if self.impute else []
        categorical: list[Any] = [SimpleImputer(strategy="most_frequent")] if self.impute else []
        numeric += [StandardScaler()] if scale else []
        categorical += [OneHotEncoder(handle_unknown="warn", sparse_output=False)]
        parts = [("numeric", make_pipeline(*numeric) if numeric else "passthrough", self.numeric)]
        parts += [("categorical", make_pipeline(*categorical), self.categorical)]
        used = [part for part in parts if part[2]]
        return ColumnTransformer(used, verbose_feature_names_out=False).set_output(transform="pandas")

    def to_dict(self) -> dict[str, Any]:
        """Return plain data, for the metadata of a saved model."""
        return asdict(self)


def _is_numeric(column: pd.Series, name: str) -> bool:
    """Tell numbers from categories; refuse text among numbers, text without repetition, dates and objects."""
    if column.isna().all():
        raise ValueError(f"{name} has no value at all; leave it out with --drop.")
    if pd.api.types.is_numeric_dtype(column):
        if pd.api.types.is_complex_dtype(column):
            raise ValueError(f"{name} holds complex numbers; leave it out with --drop.")
        return True
    if isinstance(column.dtype, pd.CategoricalDtype):
        return False
    present = column.dropna()
    if not present.map(lambda value: np.isscalar(value) or hasattr(value, "as_tuple")).all():
        kind = "dates" if pd.api.types.is_datetime64_any_dtype(column) else type(present.iloc[0]).__name__
        raise ValueError(f"{name} holds {kind}, neither numbers nor categories; leave it out with --drop.")
    readable = pd.to_numeric(present, errors="coerce").notna()
    if readable.all():
        return True
    if readable.mean() >= 0.5:
        at = int(np.flatnonzero(~readable)[0])
        row = int(np.flatnonzero(column.notna())[at]) + 1
        raise ValueError(
            f"{name} holds numbers but also text, first {present.iloc[at]!r} in data row {row}; correct it, or "
            "declare the column with --categorical."
        )
    if len(present) > 20 and present.nunique() > len(present) / 2:
        raise ValueError(
            f"{name} holds {present.nunique()} different texts in {len(present)} rows; leave it out with "
            "--drop, or declare it with --categorical."
        )
    return False


def _numbers(column: pd.Series, name: str) -> np.ndarray:
    """Return the values as floats, missing ones as NaN."""
    present = column.notna()
    numbers = pd.to_numeric(column, errors="coerce").astype("Float64").to_numpy(dtype=np.float64, na_value=np.nan)
    unreadable = np.flatnonzero(np.isnan(numbers) & present.to_numpy())
    if len(unreadable):
        raise ValueError(
            f"{name} must hold numbers, got {column.iloc[unreadable[0]]!r} in data row {unreadable[0] + 1}."
        )
    return numbers


def _categories(column: pd.Series) -> np.ndarray:
    """Return the values as strings, whole numbers without a decimal point, missing ones as NaN."""
    values = column.to_numpy(dtype=object, na_value=np.nan)
    return np.array([_category(value) for value in values], dtype=object)


def _category(value: Any) -> Any:
    if isinstance(value, float):
        return value if np.isnan(value) else (str(int(value)) if value.is_integer() else str(value))
    return str(value)


def _listed(names: Sequence[str]) -> str:
    more = f" and {len(names) - LISTED} more" if len(names) > LISTED else ""
    return ", ".join(names[:LISTED]) + more


def read_columns(stored: dict[str, Any], path: Path) -> Columns:
    """Return the columns that the metadata of a saved model tells of."""
    try:
        return Columns(**stored["columns"])
    except (KeyError, TypeError) as error:
        raise ValueError(
            f"{path} was not saved by polymargin fit: it does not say which columns it was fitted to."
        ) from error
