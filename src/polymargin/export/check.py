"""Running a graph beside the model that it was made from."""

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from sklearn.pipeline import Pipeline

from polymargin.selection.left_out import class_scores
from polymargin.selection.prediction_sets import PredictionSetClassifier, misfits
from polymargin.selection.probabilities import ProbabilityClassifier
from polymargin.selection.rejection import RejectOptionClassifier

NEAR = 1e-6
"""Difference of scores below which a decision is a tie."""

TOLERANCES = {"tensor(float)": 1e-5, "tensor(double)": 1e-10}
"""Largest change of a score, relative to the largest score but at least 1, by the type of the scores."""


@dataclass(frozen=True, slots=True)
class Agreement:
    """How far a graph and its model agree on some rows.

    Attributes
    ----------
    n_rows : number of rows.
    ties : positions of the rows where a decision hangs on less than 1e-6.
    different : positions of the other rows whose labels, or sets, differ.
    difference : largest difference of a score or probability.
    change : the same, relative to the largest score but at least 1.
    tolerance : what `change` may be, 1e-5 in single precision and 1e-10 in double.
    """

    n_rows: int
    ties: NDArray[np.intp]
    different: NDArray[np.intp]
    difference: float
    change: float
    tolerance: float

    @property
    def holds(self) -> bool:
        """Whether all labels, ties aside, are the same and the scores are within the tolerance."""
        return not len(self.different) and self.change <= self.tolerance


def compare(model: Any, graph: Any, X: Any) -> Agreement:
    """Run an ONNX graph, and the model it was made from, on the same rows.

    Parameters
    ----------
    model : the fitted model
    graph : onnx.ModelProto, or its bytes
    X : array-like, sparse matrix or DataFrame of shape (n_samples, n_features)
        Rows; rounded to single precision for both where the graph takes that.

    Returns
    -------
    Agreement
    """
    try:
        from onnxruntime import InferenceSession
    except ImportError as error:
        raise ImportError('Running ONNX graphs needs onnxruntime: pip install "polymargin[onnx]".') from error
    data = graph if isinstance(graph, bytes) else graph.SerializeToString()
    session = InferenceSession(data, providers=["CPUExecutionProvider"])
    X, feed = _feed(session, X)
    second = session.get_outputs()[1]
    labels, scores, *sets = session.run(None, feed)
    ours = model.predict_proba(X) if second.name == "probabilities" else _scores(model, X)
    unequal = np.asarray(labels != model.predict(X), dtype=bool)
    close = _is_close(model, ours)
    if sets:
        steps, last = _last_step(model)
        rows = steps.transform(X) if steps else X
        unequal |= (sets[0] != last.predict_set(rows)).any(axis=1)
        close |= _nearly_in(last, rows).any(axis=1)
    difference = float(np.abs(scores - ours).max())
    return Agreement(
        len(ours),
        np.flatnonzero(close),
        np.flatnonzero(unequal & ~close),
        difference,
        difference / max(1.0, float(np.abs(ours).max())),
        TOLERANCES[second.type],
    )


def _feed(session: Any, X: Any) -> tuple[Any, dict[str, NDArray]]:
    """Return the rows as the graph takes them, for the model and by the names of the inputs."""
    inputs = session.get_inputs()
    if hasattr(X, "columns") and len(inputs) > 1:
        named = list(zip(X.columns, inputs, strict=True))
        X = X.astype({name: np.float32 for name, one in named if one.type == "tensor(float)"})
        return X, {one.name: np.asarray(X[name]).reshape(-1, 1) for name, one in named}
    dense = np.asarray(X.toarray() if sparse.issparse(X) else X)
    dense = dense.astype(np.float32 if inputs[0].type == "tensor(float)" else np.float64)
    return dense.astype(np.float64), {inputs[0].name: dense}


def _scores(model: Any, X: Any) -> NDArray[np.float64]:
    """Return the scores of all classes, those of a rejector inside a pipeline as well."""
    steps, model = _last_step(model)
    if steps:
        return _scores(model, steps.transform(X))
    scorer = model.estimator_ if isinstance(model, RejectOptionClassifier) else model
    return class_scores(scorer, X, model.classes_)


def _is_close(model: Any, scores: NDArray[np.float64]) -> NDArray[np.bool_]:
    highest = np.partition(scores, -2, axis=1)
    close = highest[:, -1] - highest[:, -2] <= NEAR
    _, last = _last_step(model)
    if isinstance(last, RejectOptionClassifier):
        close |= np.abs(last._losses(scores) - last.threshold_) <= NEAR
    if isinstance(last, ProbabilityClassifier) and last._costs is not None:
        lowest = np.partition(scores @ last._costs, 1, axis=1)
        close = lowest[:, 1] - lowest[:, 0] <= NEAR
    return close


def _nearly_in(model: PredictionSetClassifier, X: Any) -> NDArray[np.bool_]:
    """Tell which classes would enter or leave the set of a row if misfits were 1e-6 smaller or larger."""
    if model.cv is None:
        return np.abs(misfits(model.predict_proba(X), model.misfit) - model.thresholds_) <= NEAR

    def better(shift: float) -> NDArray[np.float64]:
        return model._count_better([replace(fold, misfits=fold.misfits + shift) for fold in model._folds], X)

    most = model._most_better(model.coverage)
    return (better(-NEAR) < most) != (better(NEAR) < most)


def _last_step(model: Any) -> tuple[Any, Any]:
    """Return the steps of a pipeline before its last, if there are any, and the last."""
    if not isinstance(model, Pipeline):
        return None, model
    return model[:-1] if len(model) > 1 else None, model.steps[-1][1]
