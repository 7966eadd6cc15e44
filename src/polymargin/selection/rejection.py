"""Saying "I don't know": predictions that are too weak are rejected (Lee, Lin & Wahba, section 6.1)."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.isotonic import IsotonicRegression
from sklearn.model_selection import StratifiedKFold
from sklearn.utils.validation import _num_samples, check_is_fitted

from polymargin.checks import check_choice, check_flag, check_real
from polymargin.costs import resolve_cost_matrix, resolve_row_costs
from polymargin.estimators.parts import all_or_nothing
from polymargin.selection._around import AroundClassifier
from polymargin.selection.decisions import expected_costs, own_costs
from polymargin.selection.folds import Fold, folds_of
from polymargin.selection.left_out import (
    check_takes_costs,
    class_scores,
    fitted_clone,
    leave_out_of_the_fit,
    scores_by_refits,
)
from polymargin.selection.probabilities import check_rows
from polymargin.selection.rejected import reasons_by_expected_costs, reasons_by_scores, resolve_reject_label
from polymargin.selection.thresholds import RULES, Rule, Tally, find_threshold
from polymargin.selection.weakness import prediction_losses

DEFAULT_QUANTILE = 0.95
BY = ("scores", "probabilities")


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
    other classifier. With ``by="probabilities"`` the predicted class is that of least expected cost
    ``sum_i p_i(x) cost[i, j]``, and that cost is the loss. At most one of `quantile`, `target_error`,
    `target_cost`, `coverage` and `rejection_cost` may be given; with none, ``quantile=0.95``, the paper's rule.

    Parameters
    ----------
    estimator : classifier with a `decision_function` that gives one score a class, or with `predict_proba`
    quantile : float or None, default=None
        Reject what is weaker than this share of the *right* left-out predictions; in (0, 1], 1 rejects nothing.
    target_error : float or None, default=None
        Accept as many predictions as possible with at most this share of errors among them; in (0, 1).
    target_cost : float or None, default=None
        Accept as many predictions as possible with at most this mean cost; above 0, below the largest cost.
    coverage : float or None, default=None
        Accept at least this share of all predictions; in (0, 1], 1 rejects nothing.
    rejection_cost : float or None, default=None
        Cost of a rejection beside those of errors: the threshold has the least total cost on left-out predictions;
        by probabilities it is this cost itself (Chow's rule). Above 0, below the largest cost.
    cost_matrix : array-like, DataFrame, dict, "ordinal" or None, default=None
        Cost of predicting class j for class i, as in `MulticategorySVC`; None: the estimator's own `cost_matrix`
        where it has one, otherwise every error costs 1.
    by : {"scores", "probabilities"}, default="scores"
        Whether the estimator's scores decide, or expected costs under its `predict_proba`; machines of Polymargin
        get probabilities by :class:`ProbabilityClassifier`.
    per_class : bool, default=False
        Whether each predicted class has a threshold of its own, at which the rule holds for that class: classes
        need not be alike. A class that no left-out row is predicted as gets the threshold of all.
    cv : int, splitter, iterable or None, default=None
        How predictions of the training rows are left out. None: as of `ProbabilityClassifier`, leave-one-out at no
        extra fit for `MulticategorySVC` and `ProximalSVC`, also as the winner of a search or the last step of a
        pipeline; five folds (fewer if a class has fewer members) for every other classifier.
    reject_label : label or None, default=None
        What `predict` returns for a rejection: of the type of the classes and none of them. None: "rejected" for
        strings; -1 for numbers, or one less than the lowest class if that is negative.

    Attributes
    ----------
    estimator_ : the classifier fitted on all rows
    classes_ : ndarray of shape (n_classes,)
        The classes, without `reject_label_`.
    threshold_ : float or ndarray of shape (n_classes,)
        The highest accepted loss; one for each predicted class with `per_class`.
    costs_ : ndarray of shape (n_classes, n_classes)
        The costs that were counted.
    left_out_cost_ : float
        Mean cost of the accepted left-out predictions; not a number where none is accepted.
    strength_curve_ : StrengthCurve
        Losses of the left-out predictions, with their strength, coverage and risk.
    reject_label_ : label

    Notes
    -----
    `score` counts a rejection as an error. For `coverage` and `quantile` the threshold is the
    ceil((n + 1) level)-th smallest left-out loss, so that the level holds for new rows too, not only for the
    left-out ones; for `target_error` it is the highest with (errors + 1)/(accepted + 1) at most the target, for
    `target_cost` with one more prediction of the largest cost.

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

    Chow's rule, where taking class 2 for class 1 costs 20 and asking an expert 0.5:

    >>> from sklearn.linear_model import LogisticRegression
    >>> chow = RejectOptionClassifier(
    ...     LogisticRegression(max_iter=1000), by="probabilities", cost_matrix={(1, 2): 20}, rejection_cost=0.5
    ... )
    >>> chow.fit(X, y).predict_with_reason([[6.7, 3.0, 5.2, 2.3], [6.0, 2.7, 5.1, 1.6]])
    (array([-1, -1]), array(['ambiguous', 'ambiguous'], dtype='<U9'))
    """

    threshold_: Any

    def __init__(
        self,
        estimator,
        *,
        quantile=None,
        target_error=None,
        coverage=None,
        rejection_cost=None,
        target_cost=None,
        cost_matrix=None,
        by="scores",
        per_class=False,
        cv=None,
        reject_label=None,
    ):
        self.estimator = estimator
        self.quantile = quantile
        self.target_error = target_error
        self.coverage = coverage
        self.rejection_cost = rejection_cost
        self.target_cost = target_cost
        self.cost_matrix = cost_matrix
        self.by = by
        self.per_class = per_class
        self.cv = cv
        self.reject_label = reject_label

    @all_or_nothing
    def fit(self, X: Any, y: Any, sample_weight: Any = None, *, costs: Any = None) -> "RejectOptionClassifier":
        """Fit the classifier, and find the threshold from left-out predictions.

        Parameters
        ----------
        X : whatever the classifier takes, of n_samples rows
        y : array-like of shape (n_samples,)
        sample_weight : array-like of shape (n_samples,) or None, default=None
            Passed on to the classifier, and used to count left-out predictions.
        costs : array-like of shape (n_samples, n_classes) or None, default=None
            What predicting each class would cost each row, instead of `cost_matrix`: passed on to the classifier,
            and counted among its left-out predictions.

        Returns
        -------
        self
        """
        rule, level = self._rule()
        self._check_arguments(costs)
        X, y, weights = check_rows(self, X, y, sample_weight)
        classes = np.unique(y)
        if len(classes) < 2:
            raise ValueError(f"y must hold at least two classes, got {len(classes)} class: {classes.tolist()}.")
        reject_label = resolve_reject_label(self.reject_label, classes)
        row_costs = None if costs is None else resolve_row_costs(costs, np.searchsorted(classes, y), classes)
        given = own_costs(self.estimator) if self.cost_matrix is None else self.cost_matrix
        class_costs = resolve_cost_matrix(given, classes)
        largest = float((class_costs if row_costs is None else row_costs).max())
        if rule in ("target_cost", "rejection_cost") and level >= largest:
            raise ValueError(f"{rule} must be below the largest cost, {largest:g}, got {level:g}.")

        self.estimator_ = fitted_clone(self.estimator, X, y, weights, row_costs, hands_on=self.cv is None)
        self.classes_ = self.estimator_.classes_
        self.costs_ = class_costs
        self.reject_label_ = reject_label
        rows, scores = self._left_out(X, y, weights, row_costs)
        predicted, labels = scores.argmax(axis=1), np.searchsorted(self.classes_, y[rows])
        charged = class_costs[labels, predicted] if row_costs is None else row_costs[rows, predicted]
        counts = np.ones(len(rows)) if weights is None else weights[rows]
        self._learn(scores, predicted == labels, counts, charged, largest, rule, level)
        return self

    def _check_arguments(self, costs: Any) -> None:
        check_choice("by", self.by, BY)
        check_flag("per_class", self.per_class)
        asked = "decision_function" if self.by == "scores" else "predict_proba"
        if not hasattr(self.estimator, asked):
            raise TypeError(
                f"estimator must have a {asked} with by={self.by!r}, got {type(self.estimator).__name__}, which "
                "has none."
            )
        if costs is not None and (self.by == "probabilities" or self.cost_matrix is not None):
            raise ValueError(
                "costs of rows must be None with by='probabilities', which decides by costs of classes, and with "
                "a cost_matrix, got both."
            )
        if costs is not None:
            check_takes_costs(self.estimator)

    def _learn(
        self,
        scores: NDArray[np.float64],
        right: NDArray[np.bool_],
        counts: NDArray[np.float64],
        charged: NDArray[np.float64],
        largest: float,
        rule: Rule,
        level: float,
    ) -> None:
        """Learn strength and thresholds from left-out predictions."""
        losses, predicted = self._losses(scores), scores.argmax(axis=1)
        self._strength = IsotonicRegression(y_min=0.0, y_max=1.0, increasing=False, out_of_bounds="clip")
        self._strength.fit(losses, right, sample_weight=counts)
        tally = Tally.of(losses, right, counts, charged, largest)
        self.strength_curve_ = StrengthCurve(
            tally.loss,
            self._strength.predict(tally.loss),
            tally.accepted / tally.accepted[-1],
            tally.errors / tally.accepted,
        )
        is_chow = self.by == "probabilities" and rule == "rejection_cost"
        self.threshold_ = level if is_chow else find_threshold(tally, rule, level)
        if self.per_class and not is_chow:
            self.threshold_ = np.full(len(self.classes_), self.threshold_)
            for j in np.unique(predicted[counts > 0]):
                own = predicted == j
                of_class = Tally.of(losses[own], right[own], counts[own], charged[own], largest)
                self.threshold_[j] = find_threshold(of_class, rule, level)
        accepted = counts * (losses <= self._thresholds(predicted))
        self.left_out_cost_ = float(accepted @ charged / accepted.sum()) if accepted.any() else np.nan

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
        "costly", by probabilities: without the one class whose confusion would cost most in expectation, which is
        not the second best, it would have been accepted.

        Parameters
        ----------
        X : whatever the classifier takes, of n_samples rows

        Returns
        -------
        labels : ndarray of shape (n_samples,)
            What `predict` returns.
        reasons : ndarray of shape (n_samples,)
            "accepted", "ambiguous", "costly" or "novel".
        """
        check_is_fitted(self)
        if self.by == "probabilities":
            P = self._probabilities(self.estimator_, X)
            scores = -expected_costs(P, self.costs_)
            thresholds = self._thresholds(scores.argmax(axis=1))
            return self._label(scores), reasons_by_expected_costs(P, self.costs_, thresholds)
        scores = self._scores(X)
        thresholds = self._thresholds(scores.argmax(axis=1))
        return self._label(scores), reasons_by_scores(scores, self._losses, thresholds)

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
        return self._strength.predict(self.prediction_loss(X))

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
        if name in ("target_cost", "rejection_cost"):
            return name, check_real(name, value, above=0.0)
        level = check_real(name, value, above=0.0, at_most=1.0)
        if name == "target_error" and level == 1.0:
            raise ValueError(f"{name} must be a number greater than 0 and below 1, got {value!r}.")
        return name, level

    def _left_out(
        self, X: Any, y: NDArray, weights: Any, row_costs: Any = None
    ) -> tuple[NDArray[np.intp], NDArray[np.float64]]:
        """Return rows and the scores that machines fitted without them give them."""
        if self.cv is None and self.by == "scores" and row_costs is None:
            left_out = leave_out_of_the_fit(self.estimator_, X, y, weights, self.classes_)
            if left_out is not None:
                return left_out.rows, left_out.scores
        splits = self._splits(X, y)
        return scores_by_refits(self.estimator, X, y, weights, splits, self._scores_of, row_costs)

    def _splits(self, X: Any, y: NDArray) -> list[Fold]:
        if self.cv is not None:
            return folds_of("cv", self.cv, X, y)
        smallest = int(np.unique(y, return_counts=True)[1].min(initial=len(y)))
        if smallest < 2:
            raise ValueError(
                "y must hold at least two rows of every class, so that one can be left out, got a class with "
                "1 row; give cv to split the rows otherwise."
            )
        return folds_of("cv", StratifiedKFold(min(5, smallest)), X, y)

    def _scores(self, X: Any) -> NDArray[np.float64]:
        check_is_fitted(self)
        return self._scores_of(self.estimator_, X)

    def _scores_of(self, machine: Any, X: Any) -> NDArray[np.float64]:
        """Return the scores (n, k), the highest of which wins: the machine's, or minus the expected costs."""
        if self.by == "scores":
            return class_scores(machine, X, self.classes_)
        return -expected_costs(self._probabilities(machine, X), self.costs_)

    def _probabilities(self, machine: Any, X: Any) -> NDArray[np.float64]:
        """Return the probabilities (n, k); a class that the machine has not seen has none."""
        P = np.zeros((_num_samples(X), len(self.classes_)))
        P[:, np.searchsorted(self.classes_, machine.classes_)] = machine.predict_proba(X)
        return P

    def _losses(self, scores: NDArray[np.float64]) -> NDArray[np.float64]:
        return prediction_losses(self.estimator_, scores) if self.by == "scores" else -scores.max(axis=1)

    def _thresholds(self, predicted: NDArray[np.intp]) -> Any:
        """Return the threshold of all predictions, or one for each."""
        return self.threshold_[predicted] if np.ndim(self.threshold_) else self.threshold_

    def _label(self, scores: NDArray[np.float64]) -> NDArray:
        winners = scores.argmax(axis=1)
        accepted = self._losses(scores) <= self._thresholds(winners)
        labels = self.classes_[winners]
        if labels.dtype.kind == "u":  # which a negative label would turn into another
            labels = labels.astype(np.int64)
        return np.where(accepted, labels, self.reject_label_)

    def _one_threshold(self, of: str) -> float:
        """Return the threshold of the scores, for what shows or exports no other rejections."""
        if self.by != "scores" or np.ndim(self.threshold_):
            raise ValueError(
                f"{of} knows rejection by one threshold of the scores, got by={self.by!r} and "
                f"per_class={self.per_class!r}; give it the classifier within, estimator_."
            )
        return float(self.threshold_)
