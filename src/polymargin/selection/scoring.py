"""Scores that speak of the same costs as the machines that were trained with them."""

from dataclasses import dataclass
from typing import Any

import numpy as np
import sklearn
from numpy.typing import NDArray
from sklearn.utils.metadata_routing import MetadataRequest
from sklearn.utils.validation import _check_sample_weight, check_consistent_length, column_or_1d

from polymargin.checks import check_labels
from polymargin.costs import resolve_cost_matrix, resolve_row_costs, resolve_utility


def expected_cost(
    y_true: Any,
    y_pred: Any,
    cost_matrix: Any = None,
    *,
    costs: Any = None,
    labels: Any = None,
    sample_weight: Any = None,
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
    costs : array-like or DataFrame of shape (n_samples, n_classes) or None, default=None
        What predicting each class costs each row, instead of `cost_matrix`: in the order of `labels`, or a
        DataFrame whose columns are the classes.
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
    >>> expected_cost(["a", "b"], ["b", "a"], costs=[[0, 3.0], [0.5, 0]])
    1.75
    """
    true, predicted, classes = _positions(y_true, y_pred, labels)
    weights = _check_sample_weight(sample_weight, true, dtype=np.float64, ensure_non_negative=True)
    if costs is None:
        charged = resolve_cost_matrix(cost_matrix, classes)[true, predicted]
    elif cost_matrix is not None:
        raise ValueError("costs and cost_matrix are two ways to price errors: give one of them, got both.")
    else:
        charged = resolve_row_costs(costs, true, classes)[np.arange(len(true)), predicted]
    return float(np.average(charged, weights=weights))


def _positions(y_true: Any, y_pred: Any, labels: Any) -> tuple[NDArray[np.intp], NDArray[np.intp], NDArray]:
    """Return the positions of true and predicted classes among all classes, and these."""
    y_true, y_pred = column_or_1d(y_true), column_or_1d(y_pred)
    check_consistent_length(y_true, y_pred)
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
    return np.searchsorted(classes, y_true), np.searchsorted(classes, y_pred), classes


class RoutedScorer:
    """Base of scorers that scikit-learn can route metadata to: `sample_weight`, and `costs` of rows."""

    def set_score_request(self, **requests: Any) -> Any:
        """Say which metadata the scorer wants, as ``set_score_request(costs=True)``.

        Parameters
        ----------
        **requests : True, False, None or the name under which a search is given it

        Returns
        -------
        self
        """
        if not sklearn.get_config()["enable_metadata_routing"]:
            raise RuntimeError(
                "set_score_request needs metadata routing: sklearn.set_config(enable_metadata_routing=True)."
            )
        request = MetadataRequest(owner=type(self).__name__)
        for name, alias in requests.items():
            request.score.add_request(param=name, alias=alias)
        object.__setattr__(self, "_metadata_request", request)
        return self

    def get_metadata_routing(self) -> MetadataRequest:
        """Return what `set_score_request` was told."""
        return getattr(self, "_metadata_request", MetadataRequest(owner=type(self).__name__))


@dataclass(frozen=True)
class CostScorer(RoutedScorer):
    """A scorer ``(estimator, X, y) -> -expected_cost``; made by :func:`make_cost_scorer`."""

    cost_matrix: Any
    labels: Any = None

    def __call__(self, estimator: Any, X: Any, y: Any, sample_weight: Any = None, costs: Any = None) -> float:
        """Return minus the mean cost of the estimator's predictions; `costs` of the rows replace the matrix."""
        labels = estimator.classes_ if self.labels is None else self.labels
        return -expected_cost(
            y,
            estimator.predict(X),
            self.cost_matrix if costs is None else None,
            costs=costs,
            labels=labels,
            sample_weight=sample_weight,
        )


def make_cost_scorer(cost_matrix: Any = None, *, labels: Any = None) -> CostScorer:
    """Make a scikit-learn scorer out of a cost matrix: minus the mean cost, so that greater is better.

    Pass it as ``scoring=`` to `GridSearchCV`, `cross_val_score` and their like, with the `cost_matrix` that the
    estimator was given: training, tuning and reporting then speak of the same costs. Costs of rows reach it by
    scikit-learn's metadata routing: ``make_cost_scorer().set_score_request(costs=True)``.

    Parameters
    ----------
    cost_matrix : array-like, DataFrame, dict, "ordinal" or None, default=None
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


def expected_utility(
    y_true: Any, y_pred: Any, utility: Any = None, *, labels: Any = None, sample_weight: Any = None
) -> float:
    """Compute the mean utility of predictions, sum_i w_i utility[y_i, yhat_i] / sum_i w_i.

    Parameters
    ----------
    y_true, y_pred : array-like of shape (n_samples,)
        True and predicted classes.
    utility : array-like, DataFrame, dict, "ordinal" or None, default=None
        Utility of predicting class j for class i, as `RobustSVC` takes it; None: 1 for the true class, else 0.
    labels : array-like of shape (n_classes,) or None, default=None
        All classes; None: those that occur, sorted. Give them where a class may be missing from both.
    sample_weight : array-like of shape (n_samples,) or None, default=None

    Returns
    -------
    float

    Examples
    --------
    >>> from polymargin import expected_utility
    >>> expected_utility(["a", "a", "b", "b"], ["a", "b", "a", "b"], {("a", "b"): 0.5})
    0.625
    """
    true, predicted, classes = _positions(y_true, y_pred, labels)
    weights = _check_sample_weight(sample_weight, true, dtype=np.float64, ensure_non_negative=True)
    return float(np.average(resolve_utility(utility, classes)[true, predicted], weights=weights))


@dataclass(frozen=True)
class UtilityScorer(RoutedScorer):
    """A scorer ``(estimator, X, y) -> expected_utility``; made by :func:`make_utility_scorer`."""

    utility: Any
    labels: Any = None

    def __call__(self, estimator: Any, X: Any, y: Any, sample_weight: Any = None) -> float:
        """Return the mean utility of the estimator's predictions."""
        labels = estimator.classes_ if self.labels is None else self.labels
        return expected_utility(y, estimator.predict(X), self.utility, labels=labels, sample_weight=sample_weight)


def make_utility_scorer(utility: Any = None, *, labels: Any = None) -> UtilityScorer:
    """Make a scikit-learn scorer out of utilities: the mean utility.

    Parameters
    ----------
    utility : array-like, DataFrame, dict, "ordinal" or None, default=None
        As of :func:`expected_utility`.
    labels : array-like of shape (n_classes,) or None, default=None
        All classes, in the order of an array of utilities; None: the `classes_` of the estimator that is scored.

    Returns
    -------
    UtilityScorer

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from sklearn.linear_model import LogisticRegression
    >>> from sklearn.model_selection import cross_val_score
    >>> from polymargin import make_utility_scorer
    >>> X, y = load_iris(return_X_y=True)
    >>> cross_val_score(LogisticRegression(max_iter=1000), X, y, scoring=make_utility_scorer("ordinal")).shape
    (5,)
    """
    return UtilityScorer(utility, labels)
