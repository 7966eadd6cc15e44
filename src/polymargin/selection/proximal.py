"""ProximalSVCCV and proximal_path: all values of C from one decomposition per class."""

from dataclasses import replace
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone

from polymargin.checks import check_choice, check_positive_values
from polymargin.estimators import steps
from polymargin.estimators.parts import (
    MarginClassifier,
    PartitionedSet,
    Scoring,
    TrainingSet,
    all_or_nothing,
    brought_together,
    refuses_costs,
    rows_in_memory,
)
from polymargin.estimators.proximal import ProximalSVC
from polymargin.gram import LARGEST_GAMMA, SMALLEST_GAMMA, KernelFeatures
from polymargin.selection.folds import check_folds, folds_of
from polymargin.selection.results import copy_from, cv_results, keep_results
from polymargin.selection.spending import Budget, middle_first
from polymargin.solvers.contract import Settings, Solution, Status
from polymargin.solvers.ridge.left_out import LeftOutSides, left_out_sums
from polymargin.solvers.ridge.path import decompose
from polymargin.solvers.trace import Trace, TraceRow

DEFAULT_CS = tuple(2.0**power for power in range(36))
DEFAULT_WIDTHS = tuple(2.0**power for power in range(-4, 5))
"""Multiples of the width gamma="scale" that are searched where no gammas are given."""


def proximal_path(
    estimator: ProximalSVC, X: Any, y: Any, Cs: Any = DEFAULT_CS, *, sample_weight: Any = None
) -> list[ProximalSVC]:
    """Fit a proximal machine for every C, from one pass over the data and one decomposition per class.

    Parameters
    ----------
    estimator : ProximalSVC
        The machine; its `C` is replaced.
    X : array-like or sparse matrix of shape (n_samples, n_features)
    y : array-like of shape (n_samples,)
    Cs : array-like of shape (n_Cs,), default=(2^0, ..., 2^35)
        Values of C.
    sample_weight : array-like of shape (n_samples,) or None, default=None

    Returns
    -------
    list of ProximalSVC
        The fitted machines, in the order of `Cs`.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from polymargin import ProximalSVC, proximal_path
    >>> X, y = load_iris(return_X_y=True)
    >>> [round(model.score(X, y), 2) for model in proximal_path(ProximalSVC(), X, y, [1, 32])]
    [0.97, 0.91]
    """
    values = check_positive_values("Cs", Cs)
    machine = clone(estimator)
    settings = steps.check_arguments(machine)
    data = steps.training_set(machine, X, y, sample_weight)
    machine.n_features_in_ = data.X.shape[1]
    return _path(machine, data, steps.features(machine, data), values, settings)


def _path(
    machine: ProximalSVC,
    data: TrainingSet,
    features: KernelFeatures | None,
    Cs: NDArray[np.float64],
    settings: Settings,
) -> list[ProximalSVC]:
    moments, problem, rows, class_qr = steps.statement(machine, data, features)
    spectra = decompose(problem, rows, Cs.max(), class_qr)
    Z = np.stack([spectrum.coefficients(Cs) for spectrum in spectra], axis=1)
    images = None if problem is None else problem.images(Z)
    models = []
    for at, C in enumerate(Cs):
        model = clone(machine).set_params(C=float(C))
        for name in ("n_features_in_", "feature_names_in_"):
            if hasattr(machine, name):
                setattr(model, name, getattr(machine, name))
        steps.adopt(model, data, features, moments, Z[:, :, at], rows)
        if problem is None or images is None:
            certificate = replace(rows, C=float(C)).certify(Z[:, :, at])
        else:
            certificate = replace(problem, C=float(C)).judge(Z[:, :, at], images[:, :, at])
        status = Status.SOLVED if certificate.within(settings.tol) else Status.STALLED
        trace = Trace((TraceRow("spectral", 0, certificate.primal, certificate.dual),))
        steps.conclude(model, Solution(Z[:, :, at], status, certificate, 0, 0.0, trace=trace), settings.tol)
        models.append(model)
    return models


class ProximalSVCCV(MarginClassifier):
    """Proximal support vector machine whose C and kernel width are chosen by leave-one-out, in closed form.

    The machine is linear in its targets, so that the scores of left-out rows follow from the fit itself (PRESS),
    for all C from one decomposition per class. What is judged are the scores before the Newton refinement, with
    the landmarks kept; folds of a cross-validation judge refined scores, with the landmarks of each fold.

    Parameters
    ----------
    estimator : ProximalSVC or None, default=None
        The machine; its `C` and, where searched, its `gamma` are replaced. None for ``ProximalSVC()``.
    Cs : array-like of shape (n_Cs,) or None, default=None
        Values of C; None for the powers of two from 2^0 to 2^35.
    gammas : array-like of shape (n_gammas,) or None, default=None
        Kernel widths; None for 2^-4 to 2^4 times "scale" where the kernel is rbf or laplacian, and for the
        estimator's own otherwise.
    criterion : {"loo"}, int, CV splitter or iterable, default="loo"
        "loo": accuracy of left-out rows. A row of weight w counts as w rows of which one is left out, so weights
        must not be below one. Otherwise the accuracy over folds, given as in scikit-learn.
    budget : str, int, float or None, default=None
        What the search may take: seconds, given as "60s", "5m" or "1h", or a number of training rows given to all
        fits together. No further width, of those in the middle first, is begun when it is spent; every
        width serves all C. None searches them all.

    Attributes
    ----------
    best_estimator_ : ProximalSVC
        The winner, fitted to all rows; `intercept_`, `certificate_` and the rest of how it was found are its own.
    best_params_ : dict
        Its C and gamma.
    best_score_ : float
        Its accuracy by the criterion; ties go to the smaller squared error ("loo"), then to the smaller C.
    best_index_ : int
        Its place in `cv_results_`.
    cv_results_ : dict of ndarrays, one entry per grid point
        "params", "param_C", "param_gamma", "mean_test_score" (accuracy), "rank_test_score" (1 for the best), and
        "mean_squared_error" (of the left-out scores against the signs) for "loo", "split<i>_test_score" for folds.
    classes_ : ndarray of shape (n_classes,)
    n_features_in_ : int
    feature_names_in_ : ndarray of shape (`n_features_in_`,)

    Examples
    --------
    >>> from sklearn.datasets import load_wine
    >>> from polymargin import ProximalSVCCV
    >>> X, y = load_wine(return_X_y=True)
    >>> search = ProximalSVCCV().fit(X, y)
    >>> len(search.cv_results_["param_C"]), bool(search.best_score_ > 0.95)
    (36, True)
    """

    def __init__(
        self,
        estimator: ProximalSVC | None = None,
        *,
        Cs: Any = None,
        gammas: Any = None,
        criterion: Any = "loo",
        budget: str | float | None = None,
    ) -> None:
        self.estimator = estimator
        self.Cs = Cs
        self.gammas = gammas
        self.criterion = criterion
        self.budget = budget

    @refuses_costs("its squared errors separate one class from the rest, whichever of these is predicted")
    @all_or_nothing
    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Search the grid and fit the winner.

        Parameters
        ----------
        X : array-like, sparse matrix, Dask array or Dask DataFrame of shape (n_samples, n_features)
        y : array-like, Dask array or Dask Series of shape (n_samples,)
        sample_weight : array-like of shape (n_samples,) or None, default=None

        Returns
        -------
        self
        """
        budget = Budget.given(self.budget)
        machine = ProximalSVC() if self.estimator is None else clone(self.estimator)
        if not isinstance(machine, ProximalSVC):
            raise TypeError(f"estimator must be a ProximalSVC, got {self.estimator!r}.")
        if isinstance(self.criterion, str):
            check_choice("criterion", self.criterion, ("loo",))
        else:
            check_folds("criterion", self.criterion)
        if machine.class_weight is not None:
            raise ValueError(
                "class_weight of the estimator must be None in ProximalSVCCV, where weights count rows, got "
                f"{machine.class_weight!r}; give sample_weight to fit, and a number of folds as criterion."
            )
        settings = steps.check_arguments(machine)
        Cs = np.sort(check_positive_values("Cs", DEFAULT_CS if self.Cs is None else self.Cs))
        data = self._data(X, y, sample_weight)
        if self.criterion == "loo" and data.lightest < 1.0:
            raise ValueError(
                "sample_weight must not be below 1 with criterion='loo', where a weight counts rows of which one "
                f"is left out, got {data.lightest:g}; give criterion a number of folds instead."
            )
        features = steps.features(machine, data)
        data = brought_together(data, features)
        if not isinstance(self.criterion, str) and isinstance(data, PartitionedSet):
            raise ValueError("criterion must be 'loo' for Dask collections: folds need all rows in memory.")
        gammas = self._gammas(machine, data)
        tables: list[tuple[float | None, dict[str, NDArray]]] = []
        for at in range(len(gammas)) if self.budget is None else middle_first(len(gammas)):
            if tables and budget.searched():
                break
            gamma = gammas[at]
            budget.count(int(np.ceil(data.totals.sum())))
            if isinstance(self.criterion, str):
                measures = _leave_one_out(machine, data, _with_width(features, gamma), Cs)
            else:
                rows = rows_in_memory(data, "Cross-validation")
                measures = self._over_folds(machine, rows, gamma, Cs, settings)
            tables.append((gamma, measures))
        results = _table(tables, Cs, machine)
        winner = self._winner(machine, data, features, results, settings)
        keep_results(self, results, winner)
        copy_from(self, winner)
        return self

    def _gammas(self, machine: ProximalSVC, data: TrainingSet | PartitionedSet) -> list:
        """Return the widths to search; None keeps the estimator's own."""
        if self.gammas is not None:
            if machine.kernel not in ("rbf", "laplacian", "poly", "sigmoid"):
                raise ValueError(f"gammas must be None with kernel={machine.kernel!r}, which has no width.")
            return list(
                check_positive_values("gammas", self.gammas, at_least=SMALLEST_GAMMA, at_most=LARGEST_GAMMA)
            )
        if machine.kernel not in ("rbf", "laplacian"):
            return [None]
        scale = data.resolve_kernel(machine.kernel, "scale", 3, 0.0).gamma
        return [float(scale * width) for width in DEFAULT_WIDTHS]

    def _over_folds(
        self,
        machine: ProximalSVC,
        data: TrainingSet,
        gamma: float | None,
        Cs: NDArray[np.float64],
        settings: Settings,
    ) -> dict[str, NDArray]:
        """Judge every C for one width by cross-validation."""
        folds = folds_of("criterion", self.criterion, data.X, data.labels)
        splits = {}
        for at, (train, test) in enumerate(folds):
            part = _part(data, train, pairwise=self._is_pairwise())
            models = _path(machine, part, _with_width(steps.features(machine, part), gamma), Cs, settings)
            scores = [_accuracy(steps.scores(model, data.X[test]), data, test) for model in models]
            splits[f"split{at}_test_score"] = np.array(scores)
        return {**splits, "mean_test_score": np.mean(list(splits.values()), axis=0)}

    def _winner(
        self,
        machine: ProximalSVC,
        data: TrainingSet | PartitionedSet,
        features: KernelFeatures | None,
        results: dict[str, Any],
        settings: Settings,
    ) -> ProximalSVC:
        """Fit the best of the results to all rows."""
        winner = machine.set_params(**results["params"][int(np.argmin(results["rank_test_score"]))])
        winner.n_features_in_ = self.n_features_in_
        if hasattr(self, "feature_names_in_"):
            winner.feature_names_in_ = self.feature_names_in_
        gamma = None if isinstance(winner.gamma, str) else float(winner.gamma)
        solution = steps.fit_prepared(winner, data, _with_width(features, gamma), settings)
        steps.conclude(winner, solution, settings.tol)
        return winner

    def _check_partitionable(self) -> None:
        steps.check_partitionable(ProximalSVC() if self.estimator is None else self.estimator)

    def _is_pairwise(self) -> bool:
        return getattr(self.estimator, "kernel", None) == "precomputed"

    def _scoring(self) -> Scoring:
        return steps.scoring(self.best_estimator_)


def _table(
    tables: list[tuple[float | None, dict[str, NDArray]]], Cs: NDArray[np.float64], machine: ProximalSVC
) -> dict[str, Any]:
    """Return the results; ties go to the smaller squared error, then to the smaller C."""
    params = [
        {"C": float(C), "gamma": machine.gamma if gamma is None else gamma} for gamma, _ in tables for C in Cs
    ]
    columns = {name: np.concatenate([measures[name] for _, measures in tables]) for name in tables[0][1]}
    accuracy = columns.pop("mean_test_score")
    losses = columns.get("mean_squared_error", np.zeros(len(accuracy)))
    order = np.lexsort((np.tile(Cs, len(tables)), losses, -accuracy))
    return cv_results(params, accuracy, order, columns)


def _leave_one_out(
    machine: ProximalSVC,
    data: TrainingSet | PartitionedSet,
    features: KernelFeatures | None,
    Cs: NDArray[np.float64],
) -> dict[str, NDArray]:
    moments, problem, rows, _ = steps.statement(machine, data, features)
    sides = LeftOutSides.of(data.totals, machine.balance)
    right, squares = left_out_sums(rows, None if problem is None else moments, sides, Cs)
    total = data.totals.sum()
    return {"mean_test_score": right / total, "mean_squared_error": squares / total}


def _accuracy(scores: NDArray[np.float64], data: TrainingSet, rows: NDArray[np.intp]) -> float:
    return float(np.average(scores.argmax(axis=1) == data.labels[rows], weights=data.weights[rows]))


def _part(data: TrainingSet, rows: NDArray[np.intp], *, pairwise: bool) -> TrainingSet:
    X = data.X[np.ix_(rows, rows)] if pairwise else data.X[rows]
    return TrainingSet(X, data.labels[rows], data.classes, data.weights[rows], data.costs, rows)


def _with_width(features: KernelFeatures | None, gamma: float | None) -> KernelFeatures | None:
    """Return the same landmarks with another kernel width."""
    if features is None or gamma is None:
        return features
    kernel = features.kernel
    return KernelFeatures(type(kernel)(kernel.name, float(gamma), kernel.degree, kernel.coef0), features.landmarks)
