"""Whether a fitted model is sound: its parts finite, of shapes that fit together, and able to score a row.

A model that was fitted is sound by itself; one that comes from a file may have been altered on the way.
"""

import warnings
from collections.abc import Iterator
from typing import Any

import numpy as np
from scipy import sparse
from sklearn.base import BaseEstimator

FINITE = (
    *("coef_", "dual_coef_", "intercept_", "support_vectors_", "landmarks_", "base_coef_", "base_intercept_"),
    *("relation_", "_proximal", "threshold_", "_gamma"),
)
"""What scores are computed from: none of it may be NaN or infinite."""

INNER = ("best_estimator_", "estimator_", "final_estimator_")


def check_sound(model: Any) -> None:
    """Raise ValueError, in one sentence, if a fitted classifier or something that it wraps is not sound."""
    for part in _classifiers(model):
        name = type(part).__name__
        try:
            _check_part(part, name)
        except ValueError:
            raise
        except Exception as error:  # attributes of any kind may meet in an altered file
            raise ValueError(f"the parts of {name} do not fit together: {error}") from error


def _check_part(part: Any, name: str) -> None:
    _check_classes(part, name)
    for attribute in FINITE:
        _check_finite(getattr(part, attribute, None), f"{attribute} of {name}")
    _check_shapes(part, name)
    _check_scores(part, name)


def _classifiers(model: Any) -> Iterator[Any]:
    """Yield the fitted classifiers, of ours or of others, within a model."""
    if hasattr(model, "steps"):
        yield from _classifiers(model.steps[-1][1])
        return
    if isinstance(model, BaseEstimator) and hasattr(model, "classes_"):
        yield model
    for name in INNER:
        if hasattr(model, name):
            yield from _classifiers(getattr(model, name))


def _check_classes(part: Any, name: str) -> None:
    classes = part.classes_
    if not isinstance(classes, np.ndarray) or classes.ndim != 1 or len(classes) < 2:
        raise ValueError(f"classes_ of {name} must be an array of at least two labels.")
    try:
        ordered = np.array_equal(np.unique(classes), classes)
    except TypeError:
        ordered = False
    if not ordered:
        raise ValueError(f"classes_ of {name} must be sorted, without repetition and of one type.")


def _check_finite(values: Any, name: str) -> None:
    entries = values.data if sparse.issparse(values) else values
    if values is None or callable(values):
        return
    entries = np.asarray(entries)
    if entries.dtype.kind not in "biuf":
        raise ValueError(f"{name} must hold numbers, got {entries.dtype}.")
    if not np.isfinite(entries).all():
        raise ValueError(f"{name} must be finite, got NaN or infinity.")


def _check_shapes(part: Any, name: str) -> None:
    """Check the arrays whose sizes must agree: coefficients, intercepts, points and features."""
    coef, dual, intercept = (_of(part, at) for at in ("coef_", "dual_coef_", "intercept_"))
    features = getattr(part, "n_features_in_", None)
    linear = coef if coef is not None else dual
    if linear is not None and np.ndim(linear) == 2 and np.ndim(intercept) and linear.shape[0] != 1:
        _check_length(intercept, linear.shape[0], f"intercept_ of {name}")
    if coef is not None and np.ndim(coef) == 2 and features is not None and coef.shape[1] != features:
        raise ValueError(f"coef_ of {name} must have {features} columns, got {coef.shape[1]}.")
    for attribute in ("support_vectors_", "landmarks_"):
        points = _of(part, attribute)
        if points is None or np.ndim(points) != 2 or not points.shape[0]:
            continue
        if features is not None and points.shape[1] != features:
            raise ValueError(f"{attribute} of {name} must have {features} columns, got {points.shape[1]}.")
        if dual is not None and dual.shape[-1] not in (points.shape[0], 0) and _of(part, "coef_") is None:
            raise ValueError(
                f"dual_coef_ of {name} must have a column for each of its {points.shape[0]} points, got "
                f"{dual.shape[-1]}."
            )


def _check_length(values: Any, expected: int, name: str) -> None:
    if len(values) != expected:
        raise ValueError(f"{name} must have {expected} entries, got {len(values)}.")


def _of(part: Any, attribute: str) -> Any:
    return getattr(part, attribute, None)


def _check_scores(part: Any, name: str) -> None:
    """Let the classifier score rows of zeros and of ones: what does not fit together shows here at the latest."""
    features = getattr(part, "n_features_in_", None)
    if not isinstance(features, (int, np.integer)) or not hasattr(part, "decision_function"):
        return
    rows = np.vstack([np.zeros(int(features)), np.ones(int(features))])
    try:
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", "X does not have valid feature names")
            scores = np.asarray(part.decision_function(rows))
    except Exception as error:  # whatever an altered file has made of it
        raise ValueError(f"{name} cannot score a row: {error}") from error
    k = len(part.classes_)
    expected = (2,) if k == 2 else (2, k)
    if scores.shape != expected and scores.shape[0] != 2:
        raise ValueError(f"{name} must give scores of shape {expected} for two rows, got {scores.shape}.")
    if not np.isfinite(scores).all():
        raise ValueError(f"{name} must give finite scores, got NaN or infinity.")
