"""How rows are split into folds, as scikit-learn does it, with our own words where that is impossible."""

from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.model_selection import check_cv

Fold = tuple[NDArray[np.intp], NDArray[np.intp]]
"""Positions of the rows to train on and of those left out."""


def check_folds(name: str, cv: Any) -> None:
    """Refuse an argument `name` that cannot say how to split rows."""
    if isinstance(cv, (str, bytes, np.ndarray)):
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
    folds = list(check_cv(cv, y, classifier=True).split(X, y))
    if not folds:
        raise ValueError(f"{name} must yield at least one fold, got none.")
    return folds
