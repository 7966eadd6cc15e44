"""ProbabilityClassifier: probabilities that agree with `predict`, from the left-out scores of one fit."""

from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils import indexable
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import _check_sample_weight, _check_y, check_is_fitted

from polymargin.checks import check_choice, check_labels, check_magnitudes
from polymargin.costs import resolve_cost_matrix, resolve_row_costs
from polymargin.problems.certificate import Certificate
from polymargin.selection._around import AroundClassifier
from polymargin.selection.calibration import (
    JUDGING_FOLDS,
    METHODS,
    ScoreMap,
    choose_map,
    fit_map,
)
from polymargin.selection.decisions import expected_costs, least_costly
from polymargin.selection.left_out import (
    LeftOut,
    check_takes_costs,
    class_scores,
    fitted_clone,
    leave_out,
)


class ProbabilityClassifier(AroundClassifier):
    """Classifier with probabilities: a map from scores to probabilities, learnt from left-out scores.

    The classifier is fitted once, to all rows. Scores that its training rows get when they are left out then teach
    the map ::

        p(x) = softmax(a s(x) + b + M s(x))

    by penalised maximum likelihood, convex and certified. Machines of Polymargin yield left-out scores from the
    one fit; other classifiers are refitted on folds. `predict` takes the most probable class or, with costs, the
    class of least expected cost, so it never contradicts `predict_proba`.

    Parameters
    ----------
    estimator : classifier with a `decision_function` or with `predict_proba`
    method : {"auto", "temperature", "vector", "matrix", "sigmoid", "isotonic"}, default="auto"
        The map. "temperature": a alone, which keeps the order of the classes, so `predict` is the estimator's own.
        "vector": also an offset b per class. "matrix": also M, shrunk to zero. "sigmoid" (Platt) and "isotonic":
        every class against the rest, made to sum to one, as in scikit-learn. "auto": the richest of temperature,
        vector and, for enough rows, matrix whose log loss, over folds of the left-out scores, is within one
        standard error of the least.
    cv : int, splitter, iterable or None, default=None
        How scores of the training rows are left out. None: leave-one-out at no extra fit for `MulticategorySVC`
        and `ProximalSVC`, also as the winner of a search or the last step of a pipeline whose other steps do not
        use y; five folds (fewer if a class has fewer rows) for every other classifier. Hinges are left out with
        the active set frozen (lee, weston and crammer up to 200 rows with refits without the few that change much,
        every class by itself where many multipliers are free; not linear machines of fewer features than rows,
        for which that is rough), smooth losses by a step of Newton's method, `ProximalSVC` in closed form.
        Otherwise folds as in scikit-learn.
    cost_matrix : array-like, DataFrame, dict, "ordinal" or None, default=None
        Cost of predicting class j for class i, by which `predict` decides: (n_classes, n_classes) in the order of
        `classes_`, a DataFrame labelled by classes, ``{(true, predicted): cost}`` (others 1) or "ordinal"
        (``|i - j|``). The estimator does not get it.

    Attributes
    ----------
    estimator_ : the classifier fitted to all rows
    classes_ : ndarray of shape (n_classes,)
    method_ : str
        The map that was taken.
    map_ : ScoreMap
        The fitted map, a record of its parameters.
    method_losses_ : dict or None
        With "auto", the log loss of every map over the folds.
    certificate_ : Certificate or None
        How good the fit of the map provably is; None for "isotonic".
    left_out_ : LeftOut
        The left-out scores, with the rows they belong to.

    Notes
    -----
    Probabilities are those of the population that the rows, by their weights, are a sample of; :class:`Decider`
    takes other shares of the classes. Equal rows of a class are left out together, so that a weight of 2 equals
    the row given twice. The map sees one row's worth of equal probabilities besides the data, so that a sample
    without errors does not make it certain.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from polymargin import MulticategorySVC, ProbabilityClassifier
    >>> X, y = load_iris(return_X_y=True)
    >>> model = ProbabilityClassifier(MulticategorySVC(C=4.0)).fit(X, y)
    >>> model.predict_proba(X[[0, 90, 130]]).round(1)
    array([[1., 0., 0.],
           [0., 1., 0.],
           [0., 0., 1.]])
    >>> model.predict(X[[70]], cost_matrix={(1, 2): 10}), model.predict(X[[70]], cost_matrix={(2, 1): 10})
    (array([1]), array([2]))
    """

    classes_: NDArray
    map_: ScoreMap
    method_losses_: dict[str, float] | None
    certificate_: Certificate | None
    left_out_: LeftOut

    def __init__(self, estimator, *, method="auto", cv=None, cost_matrix=None):
        self.estimator = estimator
        self.method = method
        self.cv = cv
        self.cost_matrix = cost_matrix

    def fit(self, X: Any, y: Any, sample_weight: Any = None, *, costs: Any = None) -> "ProbabilityClassifier":
        """Fit the classifier, and the map to its left-out scores.

        Parameters
        ----------
        X : whatever the classifier takes, of n_samples rows
        y : array-like of shape (n_samples,)
        sample_weight : array-like of shape (n_samples,) or None, default=None
            Passed on to the classifier, and used to fit the map; a weight of 2 equals the row given twice.
        costs : array-like or DataFrame of shape (n_samples, n_classes) or None, default=None
            What predicting each class would cost each row, passed on to the classifier. The map estimates
            probabilities, which no costs change; `Decider` decides by them under the costs of new rows.

        Returns
        -------
        self
        """
        check_choice("method", self.method, ("auto", *METHODS))
        X, y, weights = check_rows(self, X, y, sample_weight)
        classes = classes_of(y, weights)
        class_costs = None if self.cost_matrix is None else resolve_cost_matrix(self.cost_matrix, classes)
        row_costs = None if costs is None else check_row_costs(self.estimator, costs, y, weights, classes)
        machine = fitted_clone(self.estimator, X, y, weights, row_costs, hands_on=self.cv is None)
        left_out = leave_out(self.estimator, machine, X, y, weights, self.cv, classes, row_costs)
        check_all_seen(left_out, classes)
        rows = left_out.merged()
        if self.method == "auto":
            folds = rows.folds(JUDGING_FOLDS)
            choice = choose_map(rows.scores, rows.labels, rows.weights, folds)
            self.map_, self.method_, self.method_losses_ = choice.fitted, choice.method, choice.log_loss
        else:
            self.map_ = fit_map(self.method, rows.scores, rows.labels, rows.weights)
            self.method_, self.method_losses_ = self.method, None
        self.certificate_ = self.map_.certificate
        self.left_out_ = left_out
        self.estimator_ = machine
        self.classes_ = classes
        self._costs = class_costs
        return self

    def predict_proba(self, X: Any) -> NDArray[np.float64]:
        """Probabilities of the classes.

        Parameters
        ----------
        X : whatever the classifier takes, of n_samples rows

        Returns
        -------
        ndarray of shape (n_samples, n_classes)
        """
        check_is_fitted(self)
        return self.map_.probabilities(class_scores(self.estimator_, X, self.classes_))

    def predict_log_proba(self, X: Any) -> NDArray[np.float64]:
        """Logarithms of the probabilities of the classes.

        Parameters
        ----------
        X : whatever the classifier takes, of n_samples rows

        Returns
        -------
        ndarray of shape (n_samples, n_classes)
        """
        with np.errstate(divide="ignore"):
            return np.log(self.predict_proba(X))

    def decision_function(self, X: Any) -> NDArray[np.float64]:
        """Probabilities or, with costs, minus the expected costs: the highest wins in `predict`.

        Parameters
        ----------
        X : whatever the classifier takes, of n_samples rows

        Returns
        -------
        ndarray of shape (n_samples, n_classes), or (n_samples,) for two classes
            For two classes, that of ``classes_[1]`` less that of ``classes_[0]``.
        """
        scores = self.predict_proba(X)
        if self._costs is not None:
            scores = -expected_costs(scores, self._costs)
        return scores[:, 1] - scores[:, 0] if len(self.classes_) == 2 else scores

    def predict(self, X: Any, cost_matrix: Any = None) -> NDArray:
        """Predict the most probable class, or with costs the one of least expected cost.

        Parameters
        ----------
        X : whatever the classifier takes, of n_samples rows
        cost_matrix : array-like, DataFrame, dict, "ordinal" or None, default=None
            Costs to decide by; None for those of the constructor.

        Returns
        -------
        ndarray of shape (n_samples,)
        """
        check_is_fitted(self)
        costs = self._costs if cost_matrix is None else resolve_cost_matrix(cost_matrix, self.classes_)
        return self.classes_[least_costly(self.predict_proba(X), costs)]


def check_rows(model: Any, X: Any, y: Any, sample_weight: Any) -> tuple[Any, NDArray, NDArray[np.float64] | None]:
    """Check what a classifier around another one is fitted to, and that the other one has scores."""
    inner = model.estimator
    if not (hasattr(inner, "decision_function") or hasattr(inner, "predict_proba")):
        raise TypeError(
            f"estimator must have a decision_function or predict_proba, got {type(inner).__name__}, which has "
            "neither."
        )
    name = type(model).__name__
    if y is None:
        raise ValueError(f"This {name} estimator requires y to be passed, but the target y is None.")
    are_classes = type(y) is np.ndarray and y.ndim == 1 and y.dtype.kind in "biuUS"  # integers and strings are
    X, y = indexable(X, y if are_classes else _check_y(y))
    check_labels("y", y)
    if y.dtype.kind not in "biuUS":
        check_classification_targets(y)
    if sample_weight is None:
        return X, y, None
    weights = _check_sample_weight(sample_weight, y, dtype=np.float64, ensure_non_negative=True)
    check_magnitudes("sample_weight", weights)
    return X, y, weights


def check_row_costs(
    estimator: Any, costs: Any, y: NDArray, weights: NDArray[np.float64] | None, classes: NDArray
) -> NDArray[np.float64]:
    """Check costs of rows that are to be passed on; return those of all rows, zero where the weight is."""
    check_takes_costs(estimator)
    rows = np.arange(len(y)) if weights is None else np.flatnonzero(weights)
    checked = np.zeros((len(y), len(classes)))
    labels = np.searchsorted(classes, y[rows])
    checked[rows] = resolve_row_costs(costs, labels, classes, rows=rows, n_rows=len(y))
    return checked


def classes_of(y: NDArray, weights: NDArray[np.float64] | None) -> NDArray:
    """Return the classes that have rows of positive weight, at least two."""
    classes = np.unique(y if weights is None else y[weights > 0])
    if len(classes) < 2:
        raise ValueError(
            f"y must hold at least two classes with positive sample_weight, got {len(classes)} class"
            f"{'' if len(classes) == 1 else 'es'}: {classes.tolist()}."
        )
    return classes


def check_all_seen(left_out: LeftOut, classes: NDArray) -> None:
    """Refuse left-out scores of machines that had not seen every class."""
    unseen = np.isneginf(left_out.scores).any(axis=0)
    if unseen.any():
        raise ValueError(
            f"cv must leave rows of every class to train on, but class {classes[unseen.argmax()]} is missing from "
            "the training rows of a fold."
        )
