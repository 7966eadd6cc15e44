"""`to_onnx`: a fitted model as an ONNX graph."""

from typing import Any

import numpy as np
import skl2onnx
from scipy import sparse
from sklearn.pipeline import Pipeline
from sklearn.utils.validation import check_is_fitted

from polymargin.checks import check_choice
from polymargin.export.graph import NO_FORM

INSIDE = ("best_estimator_", "model_", "estimator_")
"""Where searches and wrappers keep the classifier inside."""

DTYPES = {"single": np.float32, "double": np.float64}


def to_onnx(model: Any, X: Any, *, precision: str | None = None) -> Any:
    """Convert a fitted model to ONNX.

    The graph takes any number of rows and gives ``label``, what `predict` returns, and ``scores``, one column for
    each of ``classes_``: what `decision_function` returns, for two classes with its negative before it. A
    `ProbabilityClassifier` gives ``probabilities`` instead, a `PredictionSetClassifier` these and ``sets``, what
    `predict_set` returns. The graph is made of plain operators, so that any ONNX runtime can run it, in a browser
    or on a phone as well.

    Parameters
    ----------
    model : fitted classifier of Polymargin
        Or a pipeline that ends in one, or a search that found one; wrapped in `RejectOptionClassifier`,
        `ProbabilityClassifier`, `PredictionSetClassifier` or `NewtonRefinement` as well. The other steps of a
        pipeline are converted by skl2onnx.
    X : array-like or DataFrame of shape (n_samples, n_features)
        Rows as the model takes them, of which only the types and names of the columns are used: an array makes one
        input ``X``, a DataFrame one input per column.
    precision : {"single", "double"} or None, default=None
        That of the rows that the graph takes and of the scores that it gives; None for that of `X`: single for
        float32, double for float64. Scores and decisions are computed in double precision either way, and rounded
        once.

    Returns
    -------
    onnx.ModelProto
        Write its ``SerializeToString()`` to a file, or give it to a runtime.

    Examples
    --------
    >>> import numpy as np
    >>> from onnxruntime import InferenceSession
    >>> from sklearn.datasets import load_iris
    >>> from sklearn.pipeline import make_pipeline
    >>> from sklearn.preprocessing import StandardScaler
    >>> from polymargin import MulticategorySVC
    >>> from polymargin.export import to_onnx
    >>> X, y = load_iris(return_X_y=True)
    >>> model = make_pipeline(StandardScaler(), MulticategorySVC()).fit(X, y)
    >>> session = InferenceSession(to_onnx(model, X).SerializeToString())
    >>> label, scores = session.run(None, {"X": X})
    >>> bool((label == model.predict(X)).all()), float(np.abs(scores - model.decision_function(X)).max()) < 1e-10
    (True, True)
    """
    if precision is not None:
        check_choice("precision", precision, tuple(DTYPES))
    check_is_fitted(model)
    best = _winner(model)
    _check_kernel(best)
    rows = _rows(model, X, precision)
    return skl2onnx.to_onnx(best, rows)


def _winner(model: Any) -> Any:
    """Return what a search found, without steps that do nothing: skl2onnx knows neither all searches nor those."""
    while not hasattr(model, "_scoring") and hasattr(model, "best_estimator_"):
        model = model.best_estimator_
    if not isinstance(model, Pipeline):
        return model
    *steps, (last, classifier) = model.steps
    used = [(name, step) for name, step in steps if step not in (None, "passthrough")]
    return Pipeline([*used, (last, _winner(classifier))])


def machine_of(model: Any) -> Any:
    """Return the machine inside pipelines, searches and wrappers."""
    while True:
        if isinstance(model, Pipeline):
            model = model.steps[-1][1]
            continue
        inner = next((getattr(model, name) for name in INSIDE if hasattr(model, name)), None)
        if inner is None:
            return model
        model = inner


def _check_kernel(model: Any) -> None:
    kernel = getattr(machine_of(model), "kernel", None)
    if kernel == "precomputed" or callable(kernel):
        raise ValueError(f"kernel={kernel!r} {NO_FORM}.")


def _rows(model: Any, X: Any, precision: str | None) -> Any:
    """Return a row of `X` in the types that the graph should take, after checking the width."""
    width = getattr(X, "shape", np.shape(X))
    expected = getattr(model, "n_features_in_", None)
    if len(width) != 2 or (expected is not None and width[1] != expected) or not width[0]:
        raise ValueError(
            f"X must hold at least one row of {expected} columns, as the model was fitted with, got shape "
            f"{tuple(width)}."
        )
    if hasattr(X, "columns"):
        _check_columns(model, X)
        return _frame(X, precision)
    row = np.asarray(X[:1].toarray() if sparse.issparse(X) else X[:1])
    if row.dtype.kind not in "biuf":
        raise TypeError(
            f"X must be numbers, got an array of type {row.dtype}; give columns of text as a DataFrame, to a "
            "pipeline that encodes them."
        )
    single = row.dtype == np.float32 if precision is None else precision == "single"
    return row.astype(np.float32 if single else np.float64)


def _check_columns(model: Any, X: Any) -> None:
    """Refuse a frame whose columns the model does not take: the graph would take them, under their names."""
    names, expected = list(X.columns), list(getattr(model, "feature_names_in_", X.columns))
    if names != expected:
        missing = [name for name in expected if name not in names]
        what = f"lacks {missing[0]!r}" if missing else "has them in another order"
        raise ValueError(f"X must have the columns that the model was fitted with, but it {what}.")
    text = [name for name in names if getattr(X[name].dtype, "kind", "O") not in "biuf"]
    if text and not _transforms(model) and hasattr(X, "iloc"):
        raise TypeError(
            f"X must be numbers, got the column {text[0]!r} of type {X[text[0]].dtype}; a pipeline can encode it."
        )


def _transforms(model: Any) -> bool:
    """Tell whether rows go through other steps before they reach the machine."""
    if isinstance(model, Pipeline):
        return len(model) > 1 or _transforms(model.steps[-1][1])
    inner = next((getattr(model, name) for name in INSIDE if hasattr(model, name)), None)
    return inner is not None and _transforms(inner)


def _frame(X: Any, precision: str | None) -> Any:
    """Return the first row of a frame of pandas with its numbers in the precision asked for."""
    row = (X if hasattr(X, "iloc") else X.to_pandas()).iloc[:1]
    if precision is None:
        return row
    numbers = [name for name, dtype in row.dtypes.items() if getattr(dtype, "kind", "O") in "biuf"]
    return row.astype(dict.fromkeys(numbers, DTYPES[precision]))
