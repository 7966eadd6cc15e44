"""Saying "I don't know": predictions that are too weak are rejected (Lee, Lin & Wahba, section 6.1)."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone
from sklearn.isotonic import IsotonicRegression
from sklearn.model_selection import StratifiedKFold, check_cv
from sklearn.utils import indexable
from sklearn.utils.metaestimators import _safe_split
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import _check_sample_weight, _check_y, check_is_fitted

from polymargin.checks import check_labels, check_real
from polymargin.estimators._transaction import all_or_nothing
from polymargin.selection._around import AroundClassifier
from polymargin.selection.left_out import class_scores
from polymargin.selection.thresholds import RULES, Rule, Tally, find_threshold
from polymargin.solvers.hinge.left_out import frozen_left_out_scores

DEFAULT_QUANTILE = 0.95


@dataclass(frozen=True, slots=True)
class StrengthCurve:
    """What left-out predictions teach about the loss of the predicted class; every array ascends in `loss`.

    Attributes
    ----------
    loss : (m,) the distinct losses of the left-out predictions.
    strength : (m,) estimated probability that a prediction of this loss is right (never rising with the loss).
    coverage : (m,) share of the left-out predictions of at most this loss.
    risk : (m,) share of errors among those.
    """

    loss: NDArray[np.float64]
    strength: NDArray[np.float64]
    coverage: NDArray[np.float64]
    risk: NDArray[np.float64]


class RejectOptionClassifier(AroundClassifier):
    """Classifier that rejects its weak predictions.

    A prediction is weak if the loss of the predicted class is above a threshold, which left-out predictions of the
    training rows determine. The loss is the one of Lee, Lin & Wahba (2004), section 6.1, ::

        g(x) = sum_{j != yhat} [f_j(x) + 1/(k-1)]_+

    for machines that minimise it (``loss="lee"``), and minus the difference of the two highest scores for every
    other classifier. At most one of `quantile`, `target_error`, `coverage` and `rejection_cost` may be given; with
    none, ``quantile=0.95``, the paper's rule.

    Parameters
    ----------
    estimator : classifier with a `decision_function` that gives one score a class
    quantile : float or None, default=None
        Reject what is weaker than this share of the *right* left-out predictions; in (0, 1], 1 rejects nothing.
    target_error : float or None, default=None
        Accept as many predictions as possible with at most this share of errors among them; in (0, 1).
    coverage : float or None, default=None
        Accept at least this share of all predictions; in (0, 1], 1 rejects nothing.
    rejection_cost : float or None, default=None
        Cost of a rejection, where an error costs 1: the threshold has the least total cost; in (0, 1).
    cv : int, splitter, iterable or None, default=None
        How predictions of the training rows are left out. None: leave-one-out with the active set frozen, at no
        extra fit, for a `MulticategorySVC` that has its rows at hand; five folds (fewer if a class has fewer
        members) for every other classifier.
    reject_label : label or None, default=None
        What `predict` returns for a rejection: of the type of the classes and none of them. None: "rejected" for
        strings; -1 for numbers, or one less than the lowest class if that is negative.

    Attributes
    ----------
    estimator_ : the classifier fitted on all rows
    classes_ : ndarray of shape (n_classes,)
        The classes, without `reject_label_`.
    threshold_ : float
        The highest accepted loss.
    strength_curve_ : StrengthCurve
        Losses of the left-out predictions, with their strength, coverage and risk.
    reject_label_ : label

    Notes
    -----
    `score` counts a rejection as an error. For `coverage` and `quantile` the threshold is the
    ceil((n + 1) level)-th smallest left-out loss, so that the level holds for new rows too, not only for the
    left-out ones; for `target_error` it is the highest with (errors + 1)/(accepted + 1) at most the target.

    References
    ----------
    Y. Lee, Y. Lin & G. Wahba (2004), JASA 99(465), 67-81, section 6.1.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from sklearn.svm import LinearSVC
    >>> from polymargin import RejectOptionClassifier
    >>> X, y = load_iris(return_X_y=True)
    >>> careful = RejectOptionClassifier(LinearSVC(random_state=0), target_error=0.02).fit(X, y)
    >>> careful.predict([[5.0, 3.4, 1.5, 0.2], [6.0, 2.7, 5.1, 1.6]])
    array([ 0, -1])
    >>> careful.predict_with_reason([[6.0, 2.7, 5.1, 1.6]])[1]
    array(['ambiguous'], dtype='<U9')
    """

    def __init__(
        self,
        estimator,
        *,
        quantile=None,
        target_error=None,
        coverage=None,
        rejection_cost=None,
        cv=None,
        reject_label=None,
    ):
        self.estimator = estimator
        self.quantile = quantile
        self.target_error = target_error
        self.coverage = coverage
        self.rejection_cost = rejection_cost
        self.cv = cv
        self.reject_label = reject_label

    @all_or_nothing
    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> "RejectOptionClassifier":
        """Fit the classifier, and find the threshold from left-out predictions.

        Parameters
        ----------
        X : whatever the classifier takes, of n_samples rows
        y : array-like of shape (n_samples,)
        sample_weight : array-like of shape (n_samples,) or None, default=None
            Passed on to the classifier, and used to count left-out predictions.

        Returns
        -------
        self
        """
        rule, level = self._rule()
        if not hasattr(self.estimator, "decision_function"):
            raise TypeError(
                f"estimator must have a decision_function, got {type(self.estimator).__name__}, which has none."
            )
        if y is None:
            raise ValueError(
                "This RejectOptionClassifier estimator requires y to be passed, but the target y is None."
            )
        X, y = indexable(X, _check_y(y))
        check_labels("y", y)
        check_classification_targets(y)
        classes = np.unique(y)
        reject_label = resolve_reject_label(self.reject_label, classes)
        weights = None
        if sample_weight is not None:
            weights = _check_sample_weight(sample_weight, y, dtype=np.float64, ensure_non_negative=True)

        self.estimator_ = _fit(self.estimator, X, y, weights)
        self.classes_ = self.estimator_.classes_
        self.reject_label_ = reject_label
        rows, scores = self._left_out(X, y, weights)
        right = self.classes_[scores.argmax(axis=1)] == y[rows]
        counts = np.ones(len(rows)) if weights is None else weights[rows]
        losses = self._losses(scores)
        self._strength = IsotonicRegression(y_min=0.0, y_max=1.0, increasing=False, out_of_bounds="clip")
        self._strength.fit(losses, right, sample_weight=counts)
        tally = Tally.of(losses, right, counts)
        self.strength_curve_ = StrengthCurve(
            tally.loss,
            self._strength.predict(tally.loss),
            tally.accepted / tally.accepted[-1],
            tally.errors / tally.accepted,
        )
        self.threshold_ = find_threshold(tally, rule, level)
        return self

    def predict(self, X: Any) -> NDArray:
        """Predict the class of highest score, or `reject_label_` where the prediction is too weak.

        Parameters
        ----------
        X : whatever the classifier takes, of n_samples rows

        Returns
        -------
        ndarray of shape (n_samples,)
        """
        return self._label(self._scores(X))

    def predict_with_reason(self, X: Any) -> tuple[NDArray, NDArray[np.str_]]:
        """Predict, and say why a prediction was rejected.

        "ambiguous": without the second best class the prediction would have been accepted, so the row lies between
        two classes. "novel": it would not, so at least three classes are left, and the row is like none of them.

        Parameters
        ----------
        X : whatever the classifier takes, of n_samples rows

        Returns
        -------
        labels : ndarray of shape (n_samples,)
            What `predict` returns.
        reasons : ndarray of shape (n_samples,)
            "accepted", "ambiguous" or "novel".
        """
        scores = self._scores(X)
        rivals = scores.copy()
        if scores.shape[1] > 2:
            np.put_along_axis(rivals, np.argsort(scores, axis=1)[:, -2:-1], -np.inf, axis=1)
            between_two = self._losses(rivals) <= self.threshold_
        else:
            between_two = np.ones(len(scores), dtype=bool)
        accepted = self._losses(scores) <= self.threshold_
        reasons = np.where(accepted, "accepted", np.where(between_two, "ambiguous", "novel"))
        return self._label(scores), reasons

    def prediction_loss(self, X: Any) -> NDArray[np.float64]:
        """Loss of the predicted class, which `predict` compares with `threshold_`.

        Parameters
        ----------
        X : whatever the classifier takes, of n_samples rows

        Returns
        -------
        ndarray of shape (n_samples,)
        """
        return self._losses(self._scores(X))

    def prediction_strength(self, X: Any) -> NDArray[np.float64]:
        """Estimate the probability that the highest score is right: a monotone fit to the left-out predictions.

        Parameters
        ----------
        X : whatever the classifier takes, of n_samples rows

        Returns
        -------
        ndarray of shape (n_samples,)
        """
        losses = self.prediction_loss(X)
        return self._strength.predict(losses)

    def _rule(self) -> tuple[Rule, float]:
        """Return the one rule that was chosen, and its level."""
        given = {name: getattr(self, name) for name in RULES if getattr(self, name) is not None}
        if len(given) > 1:
            raise ValueError(
                f"At most one of {', '.join(RULES)} may be given, got "
                f"{' and '.join(f'{name}={value!r}' for name, value in given.items())}."
            )
        name: Rule = next(iter(given), "quantile")
        value = given.get(name, DEFAULT_QUANTILE)
        level = check_real(name, value, above=0.0, at_most=1.0)
        if name in ("target_error", "rejection_cost") and level == 1.0:
            raise ValueError(f"{name} must be a number greater than 0 and below 1, got {value!r}.")
        return name, level

    def _left_out(self, X: Any, y: NDArray, weights: Any) -> tuple[NDArray[np.intp], NDArray[np.float64]]:
        """Return rows and the scores that machines fitted without them give them."""
        if self.cv is None and _keeps_rows(self.estimator_):
            scores = self._scores(X)
            scores[self.estimator_.support_] = frozen_left_out_scores(*self.estimator_._support_problem())
            return np.arange(len(y)), scores
        rows, blocks = [], []
        for train, test in self._splitter(y).split(X, y):
            X_train, y_train = _safe_split(self.estimator, X, y, train)
            X_test, _ = _safe_split(self.estimator, X, y, test, train)
            machine = _fit(self.estimator, X_train, y_train, None if weights is None else weights[train])
            rows.append(test)
            blocks.append(class_scores(machine, X_test, self.classes_))
        return np.concatenate(rows), np.vstack(blocks)

    def _splitter(self, y: NDArray) -> Any:
        if self.cv is not None:
            return check_cv(self.cv, y, classifier=True)
        smallest = int(np.unique(y, return_counts=True)[1].min())
        if smallest < 2:
            raise ValueError(
                "y must hold at least two rows of every class, so that one can be left out, got a class with "
                "1 row; give cv to split the rows otherwise."
            )
        return StratifiedKFold(min(5, smallest))

    def _scores(self, X: Any) -> NDArray[np.float64]:
        check_is_fitted(self)
        return class_scores(self.estimator_, X, self.classes_)

    def _losses(self, scores: NDArray[np.float64]) -> NDArray[np.float64]:
        return prediction_losses(self.estimator_, scores)

    def _label(self, scores: NDArray[np.float64]) -> NDArray:
        labels = self.classes_[scores.argmax(axis=1)]
        return np.where(self._losses(scores) <= self.threshold_, labels, self.reject_label_)


def prediction_losses(machine: Any, scores: NDArray[np.float64]) -> NDArray[np.float64]:
    """Loss of the predicted class: the paper's where the machine minimises it, else minus the winner's lead."""
    return paper_loss(scores) if minimises_paper_loss(machine) else gap_loss(scores)


def paper_loss(scores: NDArray[np.float64]) -> NDArray[np.float64]:
    """Loss of the predicted class, sum_{j != yhat} [f_j + 1/(k-1)]_+."""
    hinges = np.maximum(scores + 1.0 / (scores.shape[1] - 1), 0.0)
    return hinges.sum(axis=1) - hinges.max(axis=1)


def gap_loss(scores: NDArray[np.float64]) -> NDArray[np.float64]:
    """Minus the difference of the two highest scores."""
    ordered = np.partition(scores, -2, axis=1)
    return ordered[:, -2] - ordered[:, -1]


def resolve_reject_label(reject_label: Any, classes: NDArray) -> Any:
    """Return the label of rejections: of the classes' type and none of them."""
    is_numeric = classes.dtype.kind in "biuf"
    if reject_label is None:
        return min(-1, int(np.floor(classes.min())) - 1) if is_numeric else "rejected"
    given = np.asarray(reject_label)
    same_type = given.ndim == 0 and (given.dtype.kind in ("iuf" if is_numeric else "US"))
    if same_type and classes.dtype.kind in "biu":
        same_type = given.dtype.kind in "iu"
    if not same_type:
        raise TypeError(
            f"reject_label must be of the type of the classes {classes.tolist()}, got {reject_label!r} of type "
            f"{type(reject_label).__name__}."
        )
    if reject_label in classes.tolist():
        raise ValueError(f"reject_label must not be one of the classes {classes.tolist()}, got {reject_label!r}.")
    return reject_label


def _fit(estimator: Any, X: Any, y: NDArray, weights: NDArray[np.float64] | None) -> Any:
    return clone(estimator).fit(X, y) if weights is None else clone(estimator).fit(X, y, sample_weight=weights)


def _keeps_rows(machine: Any) -> bool:
    """Tell whether leave-one-out scores can be had from the fitted machine itself."""
    return hasattr(machine, "_support_problem") and machine.kernel != "precomputed" and machine.landmarks is None


def minimises_paper_loss(machine: Any) -> bool:
    """Tell whether the machine, perhaps the last step of a pipeline or found by a search, has ``loss="lee"``."""
    machine = getattr(machine, "best_estimator_", machine)
    if hasattr(machine, "steps"):
        return minimises_paper_loss(machine.steps[-1][1])
    return getattr(machine, "loss", None) == "lee"
