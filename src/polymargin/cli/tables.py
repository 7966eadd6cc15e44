"""Reading data: text tables of any separator, Excel, Parquet, ARFF and LIBSVM files, and the classes in them."""

import difflib
import warnings
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from polymargin.cli import arff, libsvm, text
from polymargin.cli.given import check_file, format_of
from polymargin.cli.names import Misuse, Problems


@dataclass(frozen=True, slots=True)
class Reading:
    """How a file is to be read; None for what the file itself tells.

    Attributes
    ----------
    file_format : one of the values of FORMATS.
    sep, decimal, encoding : of text.
    na : texts that stand for missing values, besides the usual ones.
    as_text : columns to keep as they are written: codes that look like numbers.
    """

    file_format: str | None = None
    sep: str | None = None
    decimal: str | None = None
    encoding: str | None = None
    na: tuple[str, ...] = ()
    as_text: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Rows:
    """What a file holds.

    Attributes
    ----------
    path : the file.
    X : data frame of all columns but the target, or sparse matrix (LIBSVM).
    y : (n,) the classes as integers or strings; None where the file has none and none were asked for.
    assumed : what was assumed about the file, in words.
    reading : how it was read: of text, nothing is left open.
    """

    path: Path
    X: Any
    y: NDArray | None
    assumed: tuple[str, ...] = ()
    reading: Reading = field(default_factory=Reading)

    @property
    def is_sparse(self) -> bool:
        """Whether the columns have no names."""
        return not isinstance(self.X, pd.DataFrame)


def read_rows(
    path: Path,
    *,
    target: str | None,
    reading: Reading | None = None,
    n_features: int | None = None,
    need_target: bool = True,
) -> Rows:
    """Read a file and take the `target` column out of it.

    Parameters
    ----------
    path : the file.
    target : name of the column with the classes; a LIBSVM file has them in front, without a name.
    reading : how the file is to be read; None for what it tells itself.
    n_features : columns of a LIBSVM file, where known.
    need_target : whether a table without the target is an error.
    """
    reading = reading or Reading()
    check_file(path, "a file of data")
    kind = format_of(path, reading.file_format)
    if path.is_file() and path.stat().st_size == 0:
        raise ValueError(f"{path} is empty.")
    if kind == "libsvm":
        if target is not None:
            raise Misuse(f"{path}: a LIBSVM file has its classes in front, leave --target out; got {target!r}.")
        return _read_libsvm(path, n_features)
    if target is None and need_target:
        raise Misuse(f"--target is needed: which column of {path} holds the classes?")
    frame, assumed, reading = _read_frame(path, kind, reading)
    _check_names(path, frame)
    if frame.empty:
        raise ValueError(f"{path} has no rows below its header.")
    if target is None or target not in frame.columns:
        if need_target:
            raise ValueError(_missing_target(path, target, frame))
        return Rows(path, frame, None, assumed, reading)
    classes = labels_of(frame[target], f"{path}: the target column {target!r}")
    return Rows(path, frame.drop(columns=target), classes, assumed, reading)


def labels_of(column: pd.Series, name: str) -> NDArray:
    """Return the classes in a column, as integers where they are whole numbers and as strings otherwise."""
    if column.isna().any():
        row = int(np.flatnonzero(column.isna())[0]) + 1
        raise ValueError(f"{name} has {int(column.isna().sum())} missing values, the first in data row {row}.")
    values = column.to_numpy()
    if pd.api.types.is_bool_dtype(column):
        return values.astype(bool).astype(str)
    if pd.api.types.is_numeric_dtype(column):
        numbers = values.astype(np.float64)
        if not np.isfinite(numbers).all() or (numbers != np.round(numbers)).any():
            odd = numbers[~(np.isfinite(numbers) & (numbers == np.round(numbers)))][0]
            raise ValueError(f"{name} must hold classes, names or whole numbers, got {odd:g}.")
        return numbers.astype(np.int64)
    return values.astype(str)


def check_classes(y: NDArray, name: str) -> None:
    """Refuse labels that make no classification problem."""
    classes, counts = np.unique(y, return_counts=True)
    if len(classes) < 2:
        raise ValueError(f"{name} holds only one class, {classes[0]!s}: there is nothing to tell apart.")
    if len(y) > 20 and len(classes) > len(y) / 2:
        raise ValueError(f"{name} holds {len(classes)} different values in {len(y)} rows: are these classes?")
    if counts.min() < 2:
        raise ValueError(f"{name}: every class needs at least two rows, {classes[counts.argmin()]!s} has one.")


def _read_frame(path: Path, kind: str, reading: Reading) -> tuple[pd.DataFrame, tuple[str, ...], Reading]:
    try:
        if kind == "parquet":
            return pd.read_parquet(path).rename(columns=str), (), reading
        if kind == "excel":
            return *_read_excel(path, reading), reading
        if kind == "arff":
            return arff.read(path), (), reading
        frame, assumed, reading = text.read(path, kind, reading)
        return _without_row_numbers(frame, path), assumed, reading
    except (Problems, Misuse, ImportError):
        raise
    except PermissionError as error:
        raise ValueError(f"{path} cannot be read: no permission.") from error
    except Exception as error:  # every parser has its own kinds
        raise ValueError(f"{path} cannot be read as {kind.upper()}: {error}") from error


def _read_excel(path: Path, reading: Reading) -> tuple[pd.DataFrame, tuple[str, ...]]:
    try:
        sheets = pd.read_excel(
            path, sheet_name=None, na_values=["?", *reading.na], dtype=dict.fromkeys(reading.as_text, str)
        )
    except ImportError as error:
        raise ImportError('Excel files are read with openpyxl: pip install "polymargin[cli]".') from error
    used = {name: sheet for name, sheet in sheets.items() if not sheet.empty}
    if len(used) != 1:
        raise Problems(path, [f"it must have one sheet with data, got {len(used)}: {', '.join(used) or 'none'}."])
    (name, frame), *_ = used.items()
    return frame.rename(columns=str), (f"sheet {name!r}",) if len(sheets) > 1 else ()


def _check_names(path: Path, frame: pd.DataFrame) -> None:
    repeated = [str(name) for name, count in Counter(frame.columns).items() if count > 1]
    if repeated:
        raise Problems(path, [f"two columns have the same name: {', '.join(map(repr, repeated))}; rename one."])


def _without_row_numbers(frame: pd.DataFrame, path: Path) -> pd.DataFrame:
    """Leave out a first column that has no name and counts the rows: sorted, it would tell the class."""
    first = frame.columns[0]
    if first == "Unnamed: 0" and any(
        np.array_equal(frame[first], np.arange(len(frame)) + start) for start in (0, 1)
    ):
        warnings.warn(
            f"{path}: the first column, which has no name, counts the rows; it is left out.", stacklevel=2
        )
        return frame.drop(columns=first)
    return frame


def _read_libsvm(path: Path, n_features: int | None) -> Rows:
    try:
        X, labels = libsvm.read(path, n_features)
    except Exception as error:
        raise ValueError(f"{path} cannot be read as LIBSVM: {error}") from error
    if not len(labels):
        raise ValueError(f"{path} has no rows.")
    return Rows(path, X, labels_of(labels, f"{path}: the first column"))


def _missing_target(path: Path, target: str | None, frame: pd.DataFrame) -> str:
    names = [str(column) for column in frame.columns]
    close = difflib.get_close_matches(target or "", names, n=1)
    hint = f"; did you mean {close[0]!r}?" if close else ""
    return f"{path} has no column {target!r} (--target), its columns are {shown_names(names)}{hint}"


def shown_names(names: Sequence[str], most: int = 8) -> str:
    """Return names in quotes, or the first of them and how many more there are."""
    more = f" and {len(names) - most} more" if len(names) > most else ""
    return ", ".join(map(repr, names[:most])) + more
