"""How rows are split into folds, as scikit-learn does it, with our own words where that is impossible."""

from collections.abc import Iterator
from contextlib import contextmanager
from numbers import Integral, Number
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.model_selection import check_cv

from polymargin.checks import check_integer

Fold = tuple[NDArray[np.intp], NDArray[np.intp]]
"""Positions of the rows to train on and of those left out."""


def check_folds(name: str, cv: Any) -> None:
    """Refuse an argument `name` that cannot say how to split rows."""
    if isinstance(cv, Integral) and not isinstance(cv, bool):
        check_integer(name, cv, at_least=2)
    elif isinstance(cv, (str, bytes, np.ndarray, Number)):
        allowed = "a number of folds, a splitter or a list of (train, test) rows"
        raise ValueError(f"{name} must be {allowed}, got {cv!r}.")


def folds_of(name: str, cv: Any, X: Any, y: Any) -> list[Fold]:
    """Return the folds that the argument `name`, scikit-learn's `cv`, asks for.

    Examples
    --------
    >>> folds_of("cv", "often", np.zeros((4, 1)), np.array([0, 0, 1, 1]))
    Traceback (most recent call last):
    ValueError: cv must be a number of folds, a splitter or a list of (train, test) rows, got 'often'.
    >>> len(folds_of("cv", 2, np.zeros((4, 1)), np.array([0, 0, 1, 1])))
    2
    """
    check_folds(name, cv)
    with asked_by(name, cv, len(y)):
        folds = list(check_cv(cv, y, classifier=True).split(X, y))
        if not folds:
            raise ValueError("there must be at least one fold, got none")
        rows = np.arange(len(y))
        return [(rows[train], rows[test]) for train, test in folds]


@contextmanager
def asked_by(name: str, value: Any, n_rows: int) -> Iterator[None]:
    """Name the argument by whose value scikit-learn cannot split the rows, which it knows by another name."""
    try:
        yield
    except (TypeError, ValueError, IndexError) as reason:
        raise ValueError(f"{name}={value!r} cannot split {n_rows} rows: {str(reason).rstrip('.')}.") from reason
