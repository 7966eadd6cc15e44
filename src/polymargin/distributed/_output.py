"""Scores and predictions of Dask collections, as lazy Dask arrays."""

from typing import Any

import dask
import dask.array
import numpy as np
from sklearn.utils.validation import validate_data

from polymargin.distributed._input import as_rows, naming, stand_in
from polymargin.estimators.parts import MarginClassifier


def by_partitions(estimator: MarginClassifier, method: str, X: Any) -> Any:
    """Return what a method of a fitted estimator makes of every partition of `X`, as a lazy Dask array."""
    X = as_rows(X)
    validate_data(estimator, stand_in(X), skip_check_array=True, reset=False)
    k = len(estimator.classes_)
    like = np.empty(0, dtype=estimator.classes_.dtype)
    if method == "decision_function":
        like = np.empty((0,) if k == 2 else (0, k))
    lengths = X.chunks[0] if hasattr(X, "chunks") else (np.nan,) * X.npartitions
    model = dask.delayed(estimator, traverse=False)
    parts = [
        dask.array.from_delayed(
            dask.delayed(_of_partition, pure=False)(part, at, model, method, like),
            shape=(length, *like.shape[1:]),
            meta=like,
        )
        for at, (part, length) in enumerate(zip(np.ravel(X.to_delayed()), lengths, strict=True))
    ]
    return dask.array.concatenate(parts, allow_unknown_chunksizes=True)


def _of_partition(part: Any, at: int, model: Any, method: str, like: np.ndarray) -> np.ndarray:
    with naming(at):
        return getattr(model, method)(part) if len(part) else like
