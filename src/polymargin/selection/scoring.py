"""Scores that speak of the same costs as the machines that were trained with them."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.utils.validation import _check_sample_weight, check_consistent_length, column_or_1d

from polymargin.checks import check_labels
from polymargin.costs import resolve_cost_matrix


def expected_cost(
    y_true: Any, y_pred: Any, cost_matrix: Any = None, *, labels: Any = None, sample_weight: Any = None
) -> float:
    """Compute the mean cost of predictions, sum_i w_i cost[y_i, yhat_i] / sum_i w_i.

    Parameters
    ----------
    y_true, y_pred : array-like of shape (n_samples,)
        True and predicted classes.
    cost_matrix : array-like, DataFrame, dict, "ordinal" or None, default=None
        Cost of predicting class j for class i, as the estimators take it: (n_classes, n_classes) in the order of
        `labels`, a DataFrame labelled by classes, ``{(true, predicted): cost}`` (others 1), "ordinal"
        (``|i - j|``), or None (every error costs 1).
    labels : array-like of shape (n_classes,) or None, default=None
        All classes; None: those that occur, sorted. Give them where a class may be missing from both.
    sample_weight : array-like of shape (n_samples,) or None, default=None

    Returns
    -------
    float

    Examples
    --------
    >>> from polymargin import expected_cost
    >>> expected_cost(["a", "a", "b"], ["a", "b", "a"], {("a", "b"): 5})
    2.0
    """
    y_true, y_pred = column_or_1d(y_true), column_or_1d(y_pred)
    check_consistent_length(y_true, y_pred, sample_weight)
    given = [("y_true", y_true), ("y_pred", y_pred)]
    if labels is not None:
        given.append(("labels", column_or_1d(labels)))
    for name, some in given:
        check_labels(name, some)
    check_labels(
        " and ".join(name for name, _ in given), np.concatenate([some.astype(object) for _, some in given])
    )
    occurring = np.union1d(y_true, y_pred)
    classes = occurring if labels is None else np.unique(column_or_1d(labels))
    unknown = np.setdiff1d(occurring, classes)
    if len(unknown):
        raise ValueError(f"labels must hold every class of y_true and y_pred, missing: {unknown.tolist()}.")
    weights = _check_sample_weight(sample_weight, y_true, dtype=np.float64, ensure_non_negative=True)
    costs = resolve_cost_matrix(cost_matrix, classes)
    return float(
        np.average(costs[np.searchsorted(classes, y_true), np.searchsorted(classes, y_pred)], weights=weights)
    )


@dataclass(frozen=True)
class CostScorer:
    """A scorer ``(estimator, X, y) -> -expected_cost``; made by :func:`make_cost_scorer`."""

    cost_matrix: Any
    labels: Any = None

    def __call__(self, estimator: Any, X: Any, y: Any, sample_weight: Any = None) -> float:
        """Return minus the mean cost of the estimator's predictions."""
        labels = estimator.classes_ if self.labels is None else self.labels
        return -expected_cost(
            y, estimator.predict(X), self.cost_matrix, labels=labels, sample_weight=sample_weight
        )


def make_cost_scorer(cost_matrix: Any, *, labels: Any = None) -> CostScorer:
    """Make a scikit-learn scorer out of a cost matrix: minus the mean cost, so that greater is better.

    Pass it as ``scoring=`` to `GridSearchCV`, `cross_val_score` and their like, with the `cost_matrix` that the
    estimator was given: training, tuning and reporting then speak of the same costs.

    Parameters
    ----------
    cost_matrix : array-like, DataFrame, dict, "ordinal" or None
        As of :func:`expected_cost`.
    labels : array-like of shape (n_classes,) or None, default=None
        All classes, in the order of an array of costs; None: the `classes_` of the estimator that is scored. Give
        them where a class may be missing from a training fold.

    Returns
    -------
    CostScorer

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from sklearn.linear_model import LogisticRegression
    >>> from sklearn.model_selection import cross_val_score
    >>> from polymargin import make_cost_scorer
    >>> X, y = load_iris(return_X_y=True)
    >>> scorer = make_cost_scorer({(1, 2): 5})
    >>> cross_val_score(LogisticRegression(max_iter=1000), X, y, scoring=scorer).shape
    (5,)
    """
    return CostScorer(cost_matrix, labels)
