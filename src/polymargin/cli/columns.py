"""Columns of a table: which are numbers, which categories, and what a classifier is given of them."""

import re
import warnings
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from sklearn.compose import ColumnTransformer
from sklearn.impute import SimpleImputer
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler

from polymargin.cli.given import format_of
from polymargin.cli.names import Misuse, Problems
from polymargin.cli.tables import Reading, Rows, read_rows

GROUPED = r"[-+]?\d{1,3}([.,' \u00a0\u202f]\d{3})+([.,]\d+)?"
PLAIN = r"[-+]?\d+([.,]\d+)?"
"""Numbers with signs between thousands, and such as stand beside them."""

LISTED = 8
"""Columns that a message names before it says how many more there are."""

LARGEST = 1e150
"""Beyond it squares overflow."""

ID_NAME = re.compile(r"(.*[\W_])?(id|ids|index|nr|key|row|uuid)|.*[a-z]I[Dd]", re.ASCII)
FEW_ROWS = 20
"""Rows up to which different values are no sign of an identifier."""


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
    def of(
        cls,
        rows: Rows,
        *,
        categorical: Sequence[str] = (),
        numeric: Sequence[str] = (),
        drop: Sequence[str] = (),
        impute: bool = False,
        target: str | None = None,
    ) -> "Columns":
        """Decide what every column is; all columns that are neither numbers nor categories are named at once."""
        if rows.is_sparse:
            if categorical or drop or numeric:
                raise Misuse(
                    f"--categorical, --numeric and --drop need named columns, {rows.path} (LIBSVM) has none."
                )
            return cls([], [], rows.X.shape[1], impute)
        given = {"--categorical": categorical, "--numeric": numeric, "--drop": drop}
        chosen = {option: _named(option, names, rows, target) for option, names in given.items()}
        problems: list[str] = []
        kinds: dict[str, bool] = {}
        for name in rows.X.columns:
            if name in chosen["--drop"]:
                continue
            column = rows.X[name]
            if name not in chosen["--numeric"] and name not in chosen["--categorical"] and is_identifier(column):
                warnings.warn(
                    f"{rows.path}: column {name!r} tells every row apart, like an ID; it is left out "
                    f"(--numeric {name!r} keeps it).",
                    stacklevel=2,
                )
                continue
            kind = problem_or_kind(column, declared_categorical=name in chosen["--categorical"])
            if isinstance(kind, str):
                problems.append(f"column {name!r} {kind}")
            else:
                kinds[str(name)] = kind
        if problems:
            raise Problems(rows.path, problems)
        if not kinds:
            raise ValueError(f"{rows.path} has no columns besides the target.")
        return cls(
            [name for name, is_category in kinds.items() if not is_category],
            [name for name, is_category in kinds.items() if is_category],
            None,
            impute,
        )

    def read(self, path: Path, target: str | None, reading: Reading, *, need_target: bool = True) -> Rows:
        """Read another file in the way of the one that these are the columns of."""
        is_libsvm = format_of(path, reading.file_format) == "libsvm"
        if self.n_features is None and is_libsvm:
            raise ValueError(f"{path} is a LIBSVM file, the model was fitted to named columns.")
        if self.n_features is not None and not is_libsvm:
            raise ValueError(f"{path} is a table, the model was fitted to a LIBSVM file.")
        return read_rows(
            path,
            target=target,
            reading=replace(reading, as_text=tuple(self.categorical)),
            n_features=self.n_features,
            need_target=need_target,
        )

    def select(self, rows: Rows) -> Any:
        """Return the rows with these columns alone, numbers as floats and categories as strings, all checked."""
        if rows.is_sparse:
            return rows.X
        missing = [name for name in (*self.numeric, *self.categorical) if name not in rows.X.columns]
        if missing:
            raise ValueError(f"{rows.path} lacks columns of the model: {_listed(missing)}.")
        problems: list[str] = []
        columns: dict[str, np.ndarray] = {}
        for name in self.numeric:
            numbers, unreadable = _numbers(rows.X[name])
            columns[name] = numbers
            if unreadable is not None:
                problems.append(f"column {name!r} must hold numbers, got {unreadable}.")
        columns |= {name: _categories(rows.X[name]) for name in self.categorical}
        frame = pd.DataFrame(columns, index=rows.X.index)
        infinite = [name for name in self.numeric if np.isinf(frame[name]).any()]
        if infinite:
            problems.append(f"it holds infinite values in: {_listed(infinite)}.")
        huge = [name for name in self.numeric if name not in infinite and (frame[name].abs() > LARGEST).any()]
        if huge:
            problems.append(
                f"it holds numbers beyond {LARGEST:g}, which no arithmetic stands, in: {_listed(huge)}."
            )
        holes = frame.isna().sum()
        if not self.impute and holes.any() and not any("must hold numbers" in problem for problem in problems):
            named = _listed([f"{name} ({count})" for name, count in holes[holes > 0].items()])
            problems.append(f"it has missing values in: {named}; fill them in, or fit with --impute.")
        if problems:
            raise Problems(rows.path, problems)
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
        categorical += [OneHotEncoder(handle_unknown="ignore", sparse_output=False)]
        parts = [("numeric", make_pipeline(*numeric) if numeric else "passthrough", self.numeric)]
        parts += [("categorical", make_pipeline(*categorical), self.categorical)]
        used = [part for part in parts if part[2]]
        return ColumnTransformer(used, verbose_feature_names_out=False).set_output(transform="pandas")

    def warn_of_new_categories(self, prepare: Any, X: Any) -> None:
        """Name the categories that the rows to which a preparation was fitted did not have."""
        if not self.categorical:
            return
        known = prepare.named_transformers_["categorical"][-1].categories_
        for name, categories in zip(self.categorical, known, strict=True):
            new = sorted(set(X[name].dropna()) - set(categories))
            if new:
                warnings.warn(
                    f"column {name!r} holds categories that the training rows did not have: {_listed(new)}; they "
                    "count as none of those known.",
                    stacklevel=2,
                )

    def to_dict(self) -> dict[str, Any]:
        """Return plain data, for the metadata of a saved model."""
        return asdict(self)


def _named(option: str, names: Sequence[str], rows: Rows, target: str | None) -> list[str]:
    """Return the columns that an option names, which must exist; "a,b" stands for two columns."""
    found: list[str] = []
    for name in names:
        parts = [name] if name in rows.X.columns or name == target else [part.strip() for part in name.split(",")]
        for part in parts:
            if target is not None and part == target:
                raise Misuse(f"{option} {part!r}: this is the --target itself.")
            if part not in rows.X.columns:
                raise ValueError(f"{option}: {rows.path} has no column {part!r}.")
        found += parts
    return found


def is_identifier(column: pd.Series) -> bool:
    """Tell whether a column tells all rows apart by whole numbers: counting them, or called an ID."""
    if not pd.api.types.is_integer_dtype(column) or len(column) <= FEW_ROWS or not column.is_unique:
        return False
    counts = int(column.max()) - int(column.min()) == len(column) - 1
    return counts or bool(ID_NAME.fullmatch(str(column.name))) or bool(ID_NAME.fullmatch(str(column.name).lower()))


def problem_or_kind(column: pd.Series, *, declared_categorical: bool) -> str | bool:
    """Return whether a column holds categories; or, as text, what is wrong with it."""
    if column.isna().all():
        return "has no value at all; leave it out with --drop."
    if declared_categorical:
        return True
    if pd.api.types.is_numeric_dtype(column):
        if pd.api.types.is_complex_dtype(column):
            return "holds complex numbers; leave it out with --drop."
        return False
    if isinstance(column.dtype, pd.CategoricalDtype):
        return True
    present = column.dropna()
    if not present.map(lambda value: np.isscalar(value) or hasattr(value, "as_tuple")).all():
        kind = "dates" if pd.api.types.is_datetime64_any_dtype(column) else type(present.iloc[0]).__name__
        return f"holds {kind}, neither numbers nor categories; leave it out with --drop."
    readable = pd.to_numeric(present, errors="coerce").notna()
    if readable.all():
        return False
    grouped = present.astype(str).str.strip().str.fullmatch(GROUPED)
    if grouped.any() and (readable | grouped | present.astype(str).str.strip().str.fullmatch(PLAIN)).all():
        shown = present[grouped].iloc[0]
        return f"holds numbers with signs between thousands, such as {shown!r}; take these out of the file."
    if readable.mean() >= 0.5:
        at = int(np.flatnonzero(~readable)[0])
        row = int(np.flatnonzero(column.notna())[at]) + 1
        return (
            f"holds numbers but also text, first {present.iloc[at]!r} in data row {row}; correct it, declare the "
            "column with --categorical, or the text as missing with --na."
        )
    if len(present) > FEW_ROWS and present.nunique() > len(present) / 2:
        return (
            f"holds {present.nunique()} different texts in {len(present)} rows; leave it out with "
            "--drop, or declare it with --categorical."
        )
    return True


def _numbers(column: pd.Series) -> tuple[np.ndarray, str | None]:
    """Return the values as floats, missing ones as NaN, and the first that is no number, in words."""
    present = column.notna()
    numbers = pd.to_numeric(column, errors="coerce").astype("Float64").to_numpy(dtype=np.float64, na_value=np.nan)
    unreadable = np.flatnonzero(np.isnan(numbers) & present.to_numpy())
    if not len(unreadable):
        return numbers, None
    return numbers, f"{column.iloc[unreadable[0]]!r} in data row {unreadable[0] + 1}"


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
