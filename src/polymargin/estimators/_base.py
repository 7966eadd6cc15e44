"""The base of every classifier: the only validation, label encoding, weighting, prediction and warning."""

import sys
import warnings
from abc import ABCMeta, abstractmethod
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import _check_sample_weight, check_is_fitted, validate_data

from polymargin import logs
from polymargin.blocks import OneBlock
from polymargin.checks import (
    LARGEST_ENTRY,
    check_finite_rows,
    check_integer,
    check_labels,
    check_magnitudes,
    check_real,
)
from polymargin.costs import resolve_class_weight, resolve_cost_matrix, resolve_priors, resolve_row_costs
from polymargin.estimators._callbacks import CallbackSupportMixin, begin_task, end_task
from polymargin.estimators._scoring import Scoring
from polymargin.gram import Kernel, check_precomputed, draw_landmarks, ranked_rows, resolve_kernel, rows_at
from polymargin.solvers.contract import Interrupted, Observer, Record, Settings, Solution, Status

OUTCOME = ("certificate_", "converged_", "n_iter_", "solver_", "status_", "trace_")
"""What every fitted model says about how it was found; a search says it of its winner."""


@dataclass(frozen=True, slots=True)
class TrainingSet:
    """Validated training data.

    Attributes
    ----------
    X : rows of positive weight, dense or CSR, in single or double precision.
    labels : (n,) positions of the rows' classes in `classes`.
    classes : (k,) the class labels, sorted.
    weights : (n,) sample weights times class weights times the correction for `priors`.
    costs : (k, k) misclassification costs.
    rows : (n,) positions of the rows in the data that the user gave.
    row_costs : (n, k) what each class would cost each row, where that was given instead of a matrix.
    is_own : whether the rows were copied for this set, so that nobody else can change them.
    """

    X: Any
    labels: NDArray[np.intp]
    classes: NDArray
    weights: NDArray[np.float64]
    costs: NDArray[np.float64]
    rows: NDArray[np.intp]
    row_costs: NDArray[np.float64] | None = None
    is_own: bool = False

    @property
    def n_classes(self) -> int:
        """Number of classes."""
        return len(self.classes)

    @property
    def n_rows(self) -> int:
        """Number of rows."""
        return len(self.labels)

    @property
    def n_features(self) -> int:
        """Number of columns of the rows."""
        return self.X.shape[1]

    @property
    def totals(self) -> NDArray[np.float64]:
        """Summed weights (k,) of the classes."""
        return np.bincount(self.labels, self.weights, self.n_classes).astype(np.float64)

    @property
    def lightest(self) -> float:
        """Least weight of a row."""
        return float(self.weights.min())

    @property
    def blocks(self) -> OneBlock:
        """The set as the one block of rows that it is."""
        return OneBlock(self)

    def gathered(self) -> "TrainingSet":
        """Return the set itself, which is in memory."""
        return self

    def resolve_kernel(self, kernel: Any, gamma: Any, degree: Any, coef0: Any) -> Kernel:
        """Check a kernel specification and resolve gamma on the rows."""
        return resolve_kernel(kernel, gamma, degree, coef0, self.X, self.weights)

    def draw_landmarks(self, landmarks: Any, rng: np.random.RandomState, *, centres: bool = False) -> Any:
        """Return the landmarks asked for."""
        return draw_landmarks(landmarks, self.X, self.labels, rng, weights=self.weights, centres=centres)

    @property
    def example_costs(self) -> NDArray[np.float64]:
        """Weighted cost L_ij of predicting class j for example i, (n, k)."""
        return self.weights[:, None] * self.unweighted_costs

    @property
    def has_costs(self) -> NDArray[np.bool_]:
        """Whether any class costs example i anything, (n,)."""
        return (
            np.any(self.costs, axis=1)[self.labels] if self.row_costs is None else np.any(self.row_costs, axis=1)
        )

    def costs_of(self, rows: NDArray[np.intp]) -> NDArray[np.float64]:
        """Return the weighted costs of some rows."""
        unweighted = self.costs[self.labels[rows]] if self.row_costs is None else self.row_costs[rows]
        return self.weights[rows, None] * unweighted

    @property
    def unweighted_costs(self) -> NDArray[np.float64]:
        """Cost of predicting class j for example i, (n, k)."""
        return self.costs[self.labels] if self.row_costs is None else self.row_costs

    def restricted(self, kept: NDArray[np.intp], *, pairwise: bool) -> "TrainingSet":
        """Return the rows `kept`, in that order; of a `pairwise` (kernel) matrix also those columns."""
        if np.array_equal(kept, np.arange(len(self.rows))):
            return self
        X = self.X[np.ix_(kept, kept)] if pairwise else rows_at(self.X, kept)
        row_costs = None if self.row_costs is None else self.row_costs[kept]
        return replace(
            self,
            X=X,
            labels=self.labels[kept],
            weights=self.weights[kept],
            rows=self.rows[kept],
            row_costs=row_costs,
            is_own=True,
        )

    def merged(self, *, pairwise: bool = False) -> tuple["TrainingSet", NDArray[np.intp]]:
        """Return the set with equal rows of a class made one, in an order of their own, and where every row went.

        So a row given twice and a row of weight 2 are the same problem to the last bit, and the order of the rows
        has no effect. Rows that differ in their costs stay apart.
        """
        others = () if self.row_costs is None else (self.row_costs,)
        first, place = ranked_rows(self.labels, self.X, *others)
        weights = np.bincount(place, self.weights).astype(np.float64)
        return replace(self.restricted(first, pairwise=pairwise), weights=weights), place


FITTED_NUMBERS = ("coef_", "dual_coef_", "intercept_", "base_coef_", "relation_")
"""What predictions are made of, where a family has it."""


def _why(solution: Solution) -> str:
    """Say why a solution is not within its tolerance."""
    if solution.certificate.is_contradicted:
        return "The dual lies above the primal by more than rounding explains, so that the gap proves nothing."
    return solution.status.value


def _are_few_integers(y: NDArray) -> bool:
    """Tell whether labels are integers in a range so narrow that they can be counted instead of sorted."""
    if y.dtype.kind not in "iu" or len(y) == 0:
        return False
    lowest, highest = int(y.min()), int(y.max())
    return highest - lowest < len(y) // 2 and highest <= np.iinfo(np.intp).max


def _encoded_integers(y: NDArray) -> tuple[NDArray, NDArray[np.intp]]:
    """Return what ``np.unique(y, return_inverse=True)`` does, for integers in a narrow range."""
    lowest = int(y.min())
    places = np.subtract(y, lowest, dtype=np.intp, casting="unsafe") if lowest else y.astype(np.intp, copy=False)
    present = np.bincount(places) > 0
    classes = (np.flatnonzero(present) + lowest).astype(y.dtype)
    return classes, places if present.all() else (np.cumsum(present) - 1)[places]


def is_dask_collection(X: Any) -> bool:
    """Tell whether `X` is a Dask collection, without importing Dask."""
    return not isinstance(X, type) and getattr(X, "__dask_graph__", None) is not None


def _dask_drivers() -> Any:
    """Return `polymargin.distributed`: the one place from which it is reached, only when a collection has come."""
    try:
        from polymargin import distributed
    except ImportError as error:
        raise ImportError("Dask collections need the extra [dask]: pip install 'polymargin[dask]'.") from error
    return distributed


class MarginClassifier(CallbackSupportMixin, ClassifierMixin, BaseEstimator, metaclass=ABCMeta):
    """Base of the classifiers; a family adds `fit` and `_scoring`.

    The weight of a row means repetition, exactly: rows of weight zero are left out, and everything computed from
    the data (class proportions, the kernel width "scale") counts rows by their weights.
    """

    _why_in_memory = "it needs all rows in memory"
    """Reason to give where a machine cannot be fitted to Dask collections."""

    @abstractmethod
    def _scoring(self) -> Scoring:
        """Return the formula of the scores."""

    def _scores(self, X: Any) -> NDArray[np.float64]:
        """Return the scores (n, k) of validated rows."""
        return self._scoring()(X)

    def decision_function(self, X: Any) -> NDArray[np.float64]:
        """Scores of the classes.

        Parameters
        ----------
        X : array-like, sparse matrix or Dask collection of shape (n_samples, n_features)

        Returns
        -------
        ndarray of shape (n_samples, n_classes), or (n_samples,) for two classes
            The highest score wins; for two classes the score of ``classes_[1]``, whose sign decides. For a Dask
            collection a lazy Dask array.
        """
        check_is_fitted(self)
        if is_dask_collection(X):
            return _dask_drivers().by_partitions(self, "decision_function", X)
        scores = self._scores(self._validated(X))
        return scores[:, 1] if len(self.classes_) == 2 else scores

    def _validated(self, X: Any) -> Any:
        """Return rows of the features that were seen in `fit`, dense or CSR."""
        if not self._needs_no_validation(X):
            as_numbers = {"accept_sparse": "csr", "dtype": [np.float64, np.float32], "ensure_all_finite": False}
            X = validate_data(self, X, **as_numbers, reset=False)
            check_finite_rows(X, self)
        return X

    def _needs_no_validation(self, X: Any) -> bool:
        """Tell whether `X` is what validation would return: for one row, that takes longer than scoring it."""
        return (
            type(X) is np.ndarray
            and X.dtype in (np.float64, np.float32)
            and X.ndim == 2
            and len(X) > 0
            and X.shape[1] == self.n_features_in_
            and not hasattr(self, "feature_names_in_")
            and bool(np.abs(X).max(initial=0.0) <= LARGEST_ENTRY)
        )

    def predict(self, X: Any) -> NDArray:
        """Predict the class of highest score.

        Parameters
        ----------
        X : array-like, sparse matrix or Dask collection of shape (n_samples, n_features)

        Returns
        -------
        ndarray of shape (n_samples,)
            For a Dask collection a lazy Dask array.
        """
        if is_dask_collection(X):
            check_is_fitted(self)
            return _dask_drivers().by_partitions(self, "predict", X)
        scores = self.decision_function(X)
        winners = (scores > 0).astype(np.intp) if scores.ndim == 1 else scores.argmax(axis=1)
        return self.classes_[winners]

    def _data(
        self,
        X: Any,
        y: Any,
        sample_weight: Any = None,
        *,
        costs: Any = None,
        weigh_classes: bool = True,
        check_finite: bool = True,
    ) -> Any:
        """Validate the data in memory (a `TrainingSet`), or in the partitions of Dask (a `PartitionedSet`)."""
        if not is_dask_collection(X):
            return self._training_set(
                X, y, sample_weight, costs=costs, weigh_classes=weigh_classes, check_finite=check_finite
            )
        self._check_partitionable()
        if costs is not None:
            self._check_only_costs()
        return _dask_drivers().training_set(self, X, y, sample_weight, costs=costs, weigh_classes=weigh_classes)

    def _check_only_costs(self) -> None:
        """Refuse costs of classes beside those of rows."""
        for name in ("cost_matrix", "utility"):
            if getattr(self, name, None) is not None:
                raise ValueError(
                    f"costs and {name} are two ways to price errors, by row and by class: give one of them and "
                    "leave the other None, got both."
                )

    def _warn_of_free_rows(self, free: int, n_rows: int, first: int | None = None) -> None:
        """Say how many rows cost nothing whatever is predicted."""
        if free == n_rows:
            raise ValueError("costs must have at least one positive entry, got only zeros.")
        if free:
            where = "" if first is None else f", the first is row {first}"
            warnings.warn(
                f"costs are zero for every class in {free} row{'' if free == 1 else 's'}{where}: nothing is "
                "learnt from them.",
                UserWarning,
                stacklevel=4,
            )

    def _check_partitionable(self) -> None:
        """Refuse what rows in partitions cannot have: above all, kernels between all of them."""
        if self._is_pairwise() or (self.kernel != "linear" and self.landmarks is None):
            raise ValueError(
                f"kernel={self.kernel!r} on Dask collections needs landmarks, a count or points: the kernel "
                "matrix of all rows is of the size of their number squared, and is never formed there."
            )

    def _training_set(
        self,
        X: Any,
        y: Any,
        sample_weight: Any = None,
        *,
        costs: Any = None,
        classes: NDArray | None = None,
        reset: bool = True,
        weigh_classes: bool = True,
        check_finite: bool = True,
    ) -> TrainingSet:
        """Validate the data and resolve `cost_matrix`, `priors` and `class_weight` where the family has them.

        With `costs` (n, k) of the rows given, `cost_matrix` must not be.

        With `classes` (incremental fitting) the labels must be among them; otherwise `classes_` is learnt.
        Without `weigh_classes` the weights are those of the samples alone: a machine that sees its rows in chunks
        can weigh classes only when all have come. Without `check_finite` it is left to the caller to find NaN and
        infinity in `X`.
        """
        if is_dask_collection(X):
            raise TypeError(
                f"{type(self).__name__} cannot take X as a Dask collection here: {self._why_in_memory}. Give rows "
                "that fit into memory, such as X.compute() or a sample of them."
            )
        if costs is not None:
            self._check_only_costs()
        X, y = validate_data(
            self,
            X,
            y,
            accept_sparse="csr",
            dtype=[np.float64, np.float32],
            reset=reset,
            y_numeric=False,
            ensure_all_finite=False,
        )
        if check_finite:
            check_finite_rows(X, self)
        check_labels("y", y)
        few_integers = _are_few_integers(y)
        if not few_integers:
            check_classification_targets(y)
        if sample_weight is None:
            weights = np.ones(X.shape[0])
        else:
            weights = _check_sample_weight(sample_weight, X, dtype=np.float64, ensure_non_negative=True)
            check_magnitudes("sample_weight", weights)
        if self._is_pairwise():
            check_precomputed(X)
        n_given = len(weights)
        rows = np.arange(n_given) if sample_weight is None else np.flatnonzero(weights)
        if len(rows) < n_given:
            X, y, weights = (
                (X[np.ix_(rows, rows)] if self._is_pairwise() else X[rows]),
                y[rows],
                weights[rows],
            )
        if classes is None:
            classes, labels = _encoded_integers(y) if few_integers else np.unique(y, return_inverse=True)
            if len(classes) < 2:
                raise ValueError(
                    f"y must hold at least two classes with positive sample_weight, got {len(classes)} class"
                    f"{'' if len(classes) == 1 else 'es'}: {classes.tolist()}."
                )
        else:
            labels = np.searchsorted(classes, y)
            unknown = np.unique(y[classes.take(labels, mode="clip") != y])
            if len(unknown):
                raise ValueError(f"y holds labels {unknown.tolist()} that are not among the classes {classes}.")
        if weigh_classes and any(getattr(self, name, None) is not None for name in ("class_weight", "priors")):
            totals = np.bincount(labels, weights, minlength=len(classes)).astype(np.float64)
            weights = weights * self._class_factors(classes, totals)[labels]
        matrix = resolve_cost_matrix(getattr(self, "cost_matrix", None), classes)
        if costs is None:
            return TrainingSet(X, labels, classes, weights, matrix, rows)
        row_costs = resolve_row_costs(costs, labels, classes, rows=rows, n_rows=n_given)
        free = np.flatnonzero(~row_costs.any(axis=1))
        self._warn_of_free_rows(len(free), len(rows), int(rows[free[0]]) if len(free) else None)
        return TrainingSet(X, labels, classes, weights, matrix, rows, row_costs)

    def _class_factors(self, classes: NDArray, totals: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return what `class_weight` and `priors` multiply the rows of classes with summed weights `totals` by.

        Priors undo biased sampling as in section 3.2 of Lee et al.: pi_j over the sample proportion of class j.
        """
        factors = resolve_class_weight(getattr(self, "class_weight", None), classes, totals)
        priors = resolve_priors(getattr(self, "priors", None), classes)
        return factors if priors is None else factors * priors * totals.sum() / totals

    def _is_pairwise(self) -> bool:
        kernel = getattr(self, "kernel", None)
        return isinstance(kernel, str) and kernel == "precomputed"

    def _iteration_limit(self) -> Any:
        """Return `max_iter`, or what it stands for."""
        return self.max_iter

    def _settings(self) -> Settings:
        """Check and collect `tol`, `max_iter` (-1: no limit) and `time_limit`."""
        tol = check_real("tol", self.tol, above=0.0)
        max_iter = check_integer("max_iter", self._iteration_limit(), at_least=-1)
        time_limit = getattr(self, "time_limit", None)
        if time_limit is not None:
            time_limit = check_real("time_limit", time_limit, above=0.0)
        return Settings(tol, sys.maxsize if max_iter == -1 else max_iter, time_limit)

    def _observer(self) -> Observer | None:
        """Return what tells scikit-learn's callbacks of every iteration, and logs a line of it if `verbose`."""
        tell = begin_task(self)
        if not getattr(self, "verbose", False):
            return tell
        name = type(self).__name__

        def show(record: Record) -> None:
            logs.tell(
                f"[{name}] iteration {record.iteration}: primal {record.primal:.8g}, dual {record.dual:.8g}, "
                f"gap {record.gap:.2e}, {record.seconds:.2f} s"
            )
            if tell is not None:
                tell(record)

        return show

    def _conclude(self, solution: Solution, tol: float, *, early_stopping: bool = False) -> None:
        """Store what every fit reports, and warn where the certificate is not within the tolerance.

        With `early_stopping` the limit of iterations is part of the method, and reaching it no reason to warn.
        """
        certificate = solution.certificate
        self._check_numbers(solution)
        self.certificate_ = certificate
        self.converged_ = certificate.within(tol)
        self.n_iter_ = solution.n_iter
        self.trace_ = solution.trace
        self.solver_ = solution.trace[-1].method
        self.status_ = solution.status.name.lower()
        end_task(self)
        if solution.status is Status.INTERRUPTED:
            stop = Interrupted(solution)
            stop.stored_by = self
            raise stop
        if not self.converged_ and not (early_stopping and solution.status is Status.MAX_ITER):
            warnings.warn(
                f"{type(self).__name__} stopped with a relative duality gap of {certificate.gap:.3g} (primal "
                f"{certificate.primal:.8g}, dual {certificate.dual:.8g}, infeasibility "
                f"{certificate.infeasibility:.1g}), tol is {tol:g}. {_why(solution)} Raise the limit, scale the "
                "features, or lower C.",
                ConvergenceWarning,
                stacklevel=3,
            )

    def _check_numbers(self, solution: Solution) -> None:
        """Raise if what a fit has stored is not finite: a model with NaN is not a model."""
        fitted = {name: getattr(self, name, None) for name in FITTED_NUMBERS}
        wrong = [name for name, values in fitted.items() if values is not None and not np.isfinite(values).all()]
        if not solution.certificate.is_finite:
            wrong.append("certificate_")
        if wrong:
            raise FloatingPointError(
                f"{type(self).__name__} could not be fitted in floating-point arithmetic: {' and '.join(wrong)} "
                f"would not be finite. {solution.status.value} Scale the features to about unit size, or lower C."
            )

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.input_tags.pairwise = self._is_pairwise()
        return tags
