"""PredictionSetClassifier: for every row the set of classes that holds the true one with a stated probability."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.metaestimators import _safe_split
from sklearn.utils.validation import check_is_fitted

from polymargin.checks import check_choice, check_real
from polymargin.selection._around import AroundClassifier
from polymargin.selection.calibration import METHODS, left_out_probabilities
from polymargin.selection.folds import folds_of
from polymargin.selection.probabilities import ProbabilityClassifier, check_rows, classes_of
from polymargin.selection.thresholds import order_statistic

Array = NDArray[np.float64]

MISFITS = ("lac", "aps", "raps")
COVERAGES = ("all", "class")
FORMS = ("plus", "minmax")

MAP_FOLDS = 10
"""Folds by which left-out rows are left out of the map from scores to probabilities as well."""

FREE_RANKS, RANK_PENALTY = 2, 0.05
"""RAPS: ranks that cost nothing, and what each further one does."""


@dataclass(frozen=True, slots=True)
class _Fold:
    """A classifier, and how badly rows that it was not fitted to fit their own classes."""

    model: ProbabilityClassifier
    misfits: Array
    labels: NDArray[np.intp]
    weights: Array


class PredictionSetClassifier(AroundClassifier):
    """Classifier that returns sets of classes, by leave-one-out conformal prediction.

    How badly a class y fits a row x is told by the probabilities: ``1 - p_y(x)`` ("lac", least ambiguous sets),
    the summed probability of the classes up to y ("aps", adaptive sets), or that with a penalty on ranks ("raps").
    A class is in the set of a row unless it fits worse than a share `coverage` of the left-out training rows fit
    their own classes.

    Parameters
    ----------
    estimator : classifier with a `decision_function` or with `predict_proba`
        `ProbabilityClassifier` gives it probabilities.
    coverage : float, default=0.9
        Probability that a set holds the true class; in (0, 1).
    coverage_of : {"all", "class"}, default="all"
        Whether that holds over all rows, or for the rows of every class by themselves. A class of fewer than
        ``coverage / (1 - coverage)`` rows is then in every set.
    misfit : {"lac", "aps", "raps"}, default="lac"
        How badly a class fits. "lac" gives the smallest sets on average, "aps" and "raps" longer ones where a
        row is hard.
    method : str, default="auto"
        Map from scores to probabilities, as of `ProbabilityClassifier`.
    cv : int, splitter, iterable or None, default=None
        None: the jackknife from one fit, left-out probabilities as of `ProbabilityClassifier`. Otherwise folds,
        each with a classifier and map of its own.
    form : {"plus", "minmax"}, default="plus"
        With folds, how a class is compared with the left-out rows: each by the classifier that it was left out of
        (CV+), or all by the classifier that the class fits best (min-max: larger sets, a stronger guarantee).

    cost_matrix : array-like, DataFrame, dict, "ordinal" or None, default=None
        Costs by which `predict` decides, as of `ProbabilityClassifier`; the sets do not depend on them.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
    model_ : ProbabilityClassifier
        Fitted to all rows.
    thresholds_ : ndarray of shape (n_classes,)
        The worst fit that is accepted of every class, for ``cv=None``; infinite where rows are too few.

    Notes
    -----
    For rows drawn independently from one distribution, alpha = 1 - coverage, K folds and n rows, whatever the
    classifier (Barber et al., 2021; Romano et al., 2020):

    - with folds and ``form="minmax"`` the coverage is at least ``1 - alpha``;
    - with folds and ``form="plus"`` at least ``1 - 2 alpha - min(2 (1 - 1/K) / (n/K + 1), (1 - K/n) / (K + 1))``,
      and in practice near ``1 - alpha``;
    - the jackknife (``cv=None``) reaches ``1 - alpha`` as far as one row changes the scores of others little
      (stability), which is no finite-sample guarantee; active sets that are frozen add to the approximation. Rows
      are left out of the map to probabilities as well, a tenth at a time.

    With ``coverage_of="class"`` the same holds within every class, n being its rows. Weights count rows.

    References
    ----------
    R. F. Barber, E. J. Candes, A. Ramdas & R. J. Tibshirani (2021). Predictive inference with the jackknife+.
    Annals of Statistics 49(1), 486-507.
    Y. Romano, M. Sesia & E. J. Candes (2020). Classification with valid and adaptive coverage. NeurIPS 33.
    A. N. Angelopoulos, S. Bates, J. Malik & M. I. Jordan (2021). Uncertainty sets for image classifiers using
    conformal prediction. ICLR.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from polymargin import MulticategorySVC, PredictionSetClassifier
    >>> X, y = load_iris(return_X_y=True)
    >>> model = PredictionSetClassifier(MulticategorySVC(C=4.0), coverage=0.98).fit(X, y)
    >>> model.predict_set(X[[0, 70]])
    array([[ True, False, False],
           [False,  True,  True]])
    >>> model.predict_with_reason(X[[0, 70]])[1]
    array(['certain', 'ambiguous'], dtype='<U9')
    """

    classes_: NDArray
    model_: ProbabilityClassifier

    _fitted = "model_"

    def __init__(
        self,
        estimator,
        *,
        coverage=0.9,
        coverage_of="all",
        misfit="lac",
        method="auto",
        cv=None,
        form="plus",
        cost_matrix=None,
    ):
        self.estimator = estimator
        self.coverage = coverage
        self.coverage_of = coverage_of
        self.misfit = misfit
        self.method = method
        self.cv = cv
        self.form = form
        self.cost_matrix = cost_matrix

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> "PredictionSetClassifier":
        """Fit the classifier, and learn how badly left-out rows fit their own classes.

        Parameters
        ----------
        X : whatever the classifier takes, of n_samples rows
        y : array-like of shape (n_samples,)
        sample_weight : array-like of shape (n_samples,) or None, default=None
            Passed on to the classifier, and used to count rows.

        Returns
        -------
        self
        """
        coverage = check_coverage(self.coverage)
        check_choice("coverage_of", self.coverage_of, COVERAGES)
        check_choice("misfit", self.misfit, MISFITS)
        check_choice("method", self.method, ("auto", *METHODS))
        check_choice("form", self.form, FORMS)
        if self.form == "minmax" and self.cv is None:
            raise ValueError("form='minmax' compares the classifiers of folds: give cv, got cv=None.")
        X, y, weights = check_rows(self, X, y, sample_weight)
        classes = classes_of(y, weights)
        model = ProbabilityClassifier(self.estimator, method=self.method, cost_matrix=self.cost_matrix)
        model.fit(X, y, weights)
        folds = [self._left_out_fold(model)] if self.cv is None else self._fitted_folds(X, y, weights, classes)
        self._folds = folds
        self.model_ = model
        self.classes_ = classes
        self.__dict__.pop("thresholds_", None)
        if self.cv is None:
            self.thresholds_ = self._thresholds(folds[0], coverage)
        return self

    def predict_set(self, X: Any, coverage: float | None = None) -> NDArray[np.bool_]:
        """Say which classes are in the set of every row.

        Parameters
        ----------
        X : whatever the classifier takes, of n_samples rows
        coverage : float or None, default=None
            Another probability to hold the true class than that of the constructor, in (0, 1): no refit is needed.

        Returns
        -------
        ndarray of bool of shape (n_samples, n_classes)
        """
        check_is_fitted(self)
        level = check_coverage(self.coverage if coverage is None else coverage)
        if self.cv is None:
            thresholds = self.thresholds_ if coverage is None else self._thresholds(self._folds[0], level)
            return misfits(self.model_.predict_proba(X), self.misfit) <= thresholds
        return self._count_better(self._folds, X) < self._most_better(level)

    def predict_with_reason(self, X: Any) -> tuple[NDArray, NDArray[np.str_]]:
        """Predict, and say what kind of set the row has.

        Parameters
        ----------
        X : whatever the classifier takes, of n_samples rows

        Returns
        -------
        labels : ndarray of shape (n_samples,)
            What `predict` returns.
        reasons : ndarray of shape (n_samples,)
            "certain": one class is in the set. "ambiguous": more are. "novel": none is, the row is like no class.
        """
        sizes = self.predict_set(X).sum(axis=1)
        return self.predict(X), np.array(["novel", "certain", "ambiguous"])[np.minimum(sizes, 2)]

    def predict_proba(self, X: Any) -> Array:
        """Probabilities of the classes, those of `model_`.

        Parameters
        ----------
        X : whatever the classifier takes, of n_samples rows

        Returns
        -------
        ndarray of shape (n_samples, n_classes)
        """
        check_is_fitted(self)
        return self.model_.predict_proba(X)

    def predict(self, X: Any) -> NDArray:
        """Predict the most probable class, or with costs the one of least expected cost.

        Parameters
        ----------
        X : whatever the classifier takes, of n_samples rows

        Returns
        -------
        ndarray of shape (n_samples,)
        """
        check_is_fitted(self)
        return self.model_.predict(X)

    def _left_out_fold(self, model: ProbabilityClassifier) -> "_Fold":
        """Return how badly rows fit that were left out, of the machine and, fold by fold, of the map."""
        rows = model.left_out_.merged()
        folds = rows.folds(MAP_FOLDS)
        P = left_out_probabilities(model.map_, model.method_, rows.scores, rows.labels, rows.weights, folds)
        return _Fold(model, *self._own_misfits(P, rows.labels), rows.weights)

    def _own_misfits(self, P: Array, labels: NDArray[np.intp]) -> tuple[Array, NDArray[np.intp]]:
        return misfits(P, self.misfit)[np.arange(len(labels)), labels], labels

    def _fitted_folds(self, X: Any, y: NDArray, weights: Array | None, classes: NDArray) -> list["_Fold"]:
        folds = []
        for train, test in folds_of("cv", self.cv, X, y):
            test = test if weights is None else test[weights[test] > 0]
            X_train, y_train = _safe_split(self.estimator, X, y, train)
            X_test, y_test = _safe_split(self.estimator, X, y, test, train)
            model = ProbabilityClassifier(self.estimator, method=self.method)
            model.fit(X_train, y_train, None if weights is None else weights[train])
            if not np.array_equal(model.classes_, classes):
                missing = np.setdiff1d(classes, model.classes_)[0]
                raise ValueError(
                    f"cv must leave rows of every class to train on, but class {missing} is missing from the "
                    "training rows of a fold."
                )
            own = self._own_misfits(model.predict_proba(X_test), np.searchsorted(classes, y_test))
            folds.append(_Fold(model, *own, np.ones(len(test)) if weights is None else weights[test]))
        return folds

    def _thresholds(self, fold: "_Fold", coverage: float) -> Array:
        """Return the worst accepted misfit of every class."""
        k = len(fold.model.classes_)
        if self.coverage_of == "all":
            return np.full(k, _quantile(fold.misfits, fold.weights, coverage))
        of_class = (fold.labels == j for j in range(k))
        return np.array([_quantile(fold.misfits[at], fold.weights[at], coverage) for at in of_class])

    def _count_better(self, folds: list["_Fold"], X: Any) -> Array:
        """Return how many rows of the folds fit their classes better than every class fits rows X, (n, k)."""
        candidates = [misfits(fold.model.predict_proba(X), self.misfit) for fold in folds]
        if self.form == "minmax":
            candidates = [np.min(candidates, axis=0)] * len(folds)
        return np.sum([self._better_in(*pair) for pair in zip(folds, candidates, strict=True)], axis=0)

    def _better_in(self, fold: "_Fold", candidates: Array) -> Array:
        """Return how many rows of the fold fit their classes better than as badly as `candidates`, (n, k)."""
        counts = np.empty_like(candidates)
        for j in range(candidates.shape[1]):
            at = np.flatnonzero(fold.labels == j) if self.coverage_of == "class" else np.arange(len(fold.labels))
            order = at[np.argsort(fold.misfits[at], kind="stable")]
            cumulated = np.concatenate([[0.0], np.cumsum(fold.weights[order])])
            counts[:, j] = cumulated[np.searchsorted(fold.misfits[order], candidates[:, j], side="left")]
        return counts

    def _most_better(self, coverage: float) -> Array:
        """Return how many rows of all folds must fit better for a class to leave the set, (k,)."""
        totals = np.sum([self._totals(fold) for fold in self._folds], axis=0)
        return np.ceil((totals + 1.0) * coverage * (1 - 1e-12))

    def _totals(self, fold: "_Fold") -> Array:
        """Return the weight of the rows that every class is compared with, (k,)."""
        k = len(fold.model.classes_)
        if self.coverage_of == "all":
            return np.full(k, fold.weights.sum())
        return np.bincount(fold.labels, fold.weights, k).astype(np.float64)


def check_coverage(coverage: Any) -> float:
    """Check a probability strictly between 0 and 1."""
    level = check_real("coverage", coverage, finite=False)
    if not 0.0 < level < 1.0:
        raise ValueError(f"coverage must be a number greater than 0 and below 1, got {coverage!r}.")
    return level


def misfits(P: Array, kind: str) -> Array:
    """Return how badly every class fits, (n, k), for probabilities P (n, k)."""
    if kind == "lac":
        return 1.0 - P
    order = np.argsort(-P, axis=1, kind="stable")
    ranks = np.argsort(order, axis=1, kind="stable")
    summed = np.take_along_axis(np.cumsum(np.take_along_axis(P, order, axis=1), axis=1), ranks, axis=1)
    if kind == "raps":
        summed = summed + RANK_PENALTY * np.maximum(ranks + 1 - FREE_RANKS, 0)
    return summed


def _quantile(values: Array, weights: Array, level: float) -> float:
    """Return the ceil((n + 1) level)-th smallest value, n the summed weights; infinite if there is none."""
    order = np.argsort(values, kind="stable")
    return order_statistic(values[order], np.cumsum(weights[order]), level)
