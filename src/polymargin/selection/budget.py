"""BudgetSearch: settings of any classifier within a budget, on few rows first and on more while it lasts."""

import re
import time
import warnings
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, ClassifierMixin, MetaEstimatorMixin, clone
from sklearn.model_selection import ParameterGrid, StratifiedKFold
from sklearn.utils import _safe_indexing, check_random_state, get_tags, indexable
from sklearn.utils.metaestimators import available_if
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import _check_y, check_is_fitted

from polymargin.checks import check_integer, check_real
from polymargin.costs import resolve_row_costs
from polymargin.selection.scoring import CostScorer

KEPT = 1 / 3
"""Part of the settings that goes on to the next round, which has three times as many rows."""

FOLDS = 5
REPEATS = 4
"""Divisions into folds by which the best settings are judged once all rows take part."""

LEAST_PER_CLASS = 2 * FOLDS
"""Rows of every class that take part from the first round on, where there are as many."""

GROWTH = 2.0
"""Exponent by which the time of a fit is taken to grow with the rows where that was not seen yet."""

FINAL_SHARE = 0.4
"""Part of a budget of seconds that is kept for the last fit."""

_SECONDS = re.compile(r"\s*(\d+(?:\.\d*)?|\.\d+)\s*(s|m|min|h)\s*")
_UNITS = {"s": 1.0, "m": 60.0, "min": 60.0, "h": 3600.0}


def parse_seconds(text: str) -> float:
    """Return the seconds that a text such as "60s", "5m" or "1.5h" stands for.

    >>> parse_seconds("60s"), parse_seconds("1.5 h")
    (60.0, 5400.0)
    """
    match = _SECONDS.fullmatch(text)
    if match is None or float(match[1]) == 0.0:
        raise ValueError(f"budget must be a time above zero such as 60s, 5m or 1h, got {text!r}.")
    return float(match[1]) * _UNITS[match[2]]


@dataclass(frozen=True, slots=True)
class Trial:
    """One setting tried on some of the rows.

    Attributes
    ----------
    params : the setting.
    n_rows : training rows of each of its fits.
    score : mean over the folds; greater is better.
    error : standard error of that mean.
    seconds : that one fit took on average.
    """

    params: dict[str, Any]
    n_rows: int
    score: float
    error: float
    seconds: float


class BudgetSearch(MetaEstimatorMixin, ClassifierMixin, BaseEstimator):
    """Search for the settings of a classifier while a budget lasts.

    All settings are judged by cross-validation on a few hundred rows, the best third of them on three times as
    many, and so on while the budget lasts; then the best is fitted to all rows, or to as many as the rest of the
    budget is estimated to allow. Whenever the budget ends, or the search is interrupted, `best_estimator_` is the
    best fitted model so far, with its own certificate.

    Parameters
    ----------
    estimator : classifier
        Where it has a `time_limit` (as Polymargin's have), the last fit is given what is left of the seconds.
    param_grid : dict or list of dicts
        The settings, as in scikit-learn's `GridSearchCV`.
    budget : str, int or float, default="60s"
        Seconds, given as "60s", "5m" or "1h"; a number counts work instead, the training rows given to all fits
        together, so that a search can be repeated exactly.
    scoring : callable ``(estimator, X, y) -> float`` or None, default=None
        What is to be large; None for the estimator's own score.
    first_rows : int, default=500
        Rows of the first round.
    random_state : int, RandomState instance or None, default=None
        Draws rows and folds.
    observer : callable or None, default=None
        Called with every `Trial` as it ends.

    Attributes
    ----------
    best_estimator_ : classifier
    best_params_ : dict
    best_score_ : float
        The mean score over the folds of the last round, on `best_trial_.n_rows` rows.
    best_trial_ : Trial
    trials_ : list of Trial, in the order of time
    n_rows_ : int
        Rows that `best_estimator_` was fitted to.
    complete_ : bool
        Whether the best of all settings was fitted to all rows.
    classes_ : ndarray of shape (n_classes,)

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from polymargin import BudgetSearch, MulticategorySVC
    >>> X, y = load_iris(return_X_y=True)
    >>> search = BudgetSearch(MulticategorySVC(), {"C": [0.01, 1.0]}, budget=5_000, random_state=0).fit(X, y)
    >>> search.best_params_, search.n_rows_, search.complete_
    ({'C': 1.0}, 150, True)
    """

    def __init__(
        self,
        estimator,
        param_grid,
        *,
        budget="60s",
        scoring=None,
        first_rows=500,
        random_state=None,
        observer=None,
    ):
        self.estimator = estimator
        self.param_grid = param_grid
        self.budget = budget
        self.scoring = scoring
        self.first_rows = first_rows
        self.random_state = random_state
        self.observer = observer

    def fit(self, X: Any, y: Any, *, costs: Any = None) -> "BudgetSearch":
        """Search, and fit the best setting to as many rows as the budget allows.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
        y : array-like of shape (n_samples,)
        costs : array-like of shape (n_samples, n_classes) or None, default=None
            What predicting each class would cost each row, for estimators whose `fit` takes it. Settings are then
            judged by their mean cost, or by a `scoring` that takes costs, too.

        Returns
        -------
        self
        """
        budget = _Budget.of(self.budget)
        first_rows = check_integer("first_rows", self.first_rows, at_least=10)
        X, y = indexable(X, y)
        y = _check_y(y)
        check_classification_targets(y)
        self.classes_ = np.unique(y)
        if costs is not None:
            costs = resolve_row_costs(costs, np.searchsorted(self.classes_, y), self.classes_)
        data = _Data(X, y, costs)
        self.trials_: list[Trial] = []
        self.complete_ = False
        settings = list(ParameterGrid(self.param_grid))
        rng = check_random_state(self.random_state)
        # In random order what an early end has seen is spread over the grid.
        settings = [settings[at] for at in rng.permutation(len(settings))]
        order = _order(y, rng)
        seed = int(rng.randint(2**31 - 1))
        for size in _sizes(first_rows, y):
            rows = np.sort(order[:size])
            judged = [trial for trial, _ in self._round(settings, data, rows, seed, budget, keep=True)]
            if len(judged) < len(settings):
                break
            if size == len(y):
                self._repeat(judged, data, seed, budget)
                break
            judged.sort(key=lambda trial: -trial.score)
            settings = [trial.params for trial in judged[: int(np.ceil(KEPT * len(judged)))]]
            while len(settings) > 1 and not budget.affords(FOLDS * len(settings), judged, _next(size, y)):
                settings.pop()
            if len(settings) == 1:
                break
        self._last_fit(data, order, budget)
        return self

    def _repeat(self, judged: list[Trial], data: "_Data", seed: int, budget: "_Budget") -> None:
        """Judge the best settings on all rows by other folds as well: with few rows one division is much luck."""
        everyone = np.arange(len(data.y))
        for number in range(1, REPEATS):
            judged.sort(key=lambda trial: -trial.score)
            judged = judged[: int(np.ceil(KEPT * len(judged)))] if number == 1 else judged
            if len(judged) == 1 or not budget.affords(FOLDS * len(judged), judged, judged[0].n_rows):
                return
            settings = [trial.params for trial in judged]
            again = self._round(settings, data, everyone, seed + number, budget, keep=False)
            if len(again) < len(judged):
                return
            judged = [_averaged(old, new, number) for old, (new, _) in zip(judged, again, strict=True)]
            best = max(range(len(judged)), key=lambda at: judged[at].score)
            self._adopt(again[best][1], judged[best], judged[best].n_rows)

    def _round(
        self,
        settings: list[dict[str, Any]],
        data: "_Data",
        rows: NDArray[np.intp],
        seed: int,
        budget: "_Budget",
        *,
        keep: bool,
    ) -> list[tuple[Trial, Any]]:
        """Judge settings on some rows while the budget lasts; with `keep` the best so far stays on the model."""
        folds = StratifiedKFold(FOLDS, shuffle=True, random_state=seed)
        judged: list[tuple[Trial, Any]] = []
        with warnings.catch_warnings():
            # A class may have fewer rows than there are folds, and a rough fit need not converge.
            warnings.simplefilter("ignore")
            splits = [(rows[train], rows[test]) for train, test in folds.split(rows, data.y[rows])]
            for params in settings:
                if self.trials_ and budget.searched():
                    break
                model, trial = self._judge(params, data, splits, budget)
                self.trials_.append(trial)
                judged.append((trial, None if keep else model))
                if keep:
                    self._keep_if_best(model, trial)
                if self.observer is not None:
                    self.observer(trial)
        return judged

    def _judge(
        self, params: dict[str, Any], data: "_Data", splits: list[Any], budget: "_Budget"
    ) -> tuple[Any, Trial]:
        scores, started, model = [], time.perf_counter(), None
        for train, test in splits:
            model = self._fitted(params, data.part(train))
            budget.count(len(train))
            scores.append(self._score(model, data.part(test)))
        seconds = (time.perf_counter() - started) / len(splits)
        error = float(np.std(scores, ddof=1) / np.sqrt(len(scores)))
        return model, Trial(params, len(splits[0][0]), float(np.mean(scores)), error, seconds)

    def _fitted(self, params: dict[str, Any], data: "_Data") -> Any:
        return clone(self.estimator).set_params(**params).fit(data.X, data.y, **data.priced)

    def _score(self, model: Any, data: "_Data") -> float:
        if self.scoring is None and data.costs is None:
            return model.score(data.X, data.y)
        scoring = CostScorer(None, self.classes_) if self.scoring is None else self.scoring
        return scoring(model, data.X, data.y, **data.priced)

    def _keep_if_best(self, model: Any, trial: Trial) -> None:
        """Remember the best of the round with the most rows so far."""
        best = getattr(self, "best_trial_", None) if len(self.trials_) > 1 else None
        if best is None or (trial.n_rows, trial.score) > (best.n_rows, best.score):
            self._adopt(model, trial, trial.n_rows)

    def _adopt(self, model: Any, trial: Trial, n_rows: int) -> None:
        self.best_estimator_, self.best_trial_, self.n_rows_ = model, trial, n_rows
        self.best_params_, self.best_score_ = trial.params, trial.score
        for name in ("n_features_in_", "feature_names_in_", "certificate_", "converged_", "n_iter_"):
            if hasattr(model, name):
                setattr(self, name, getattr(model, name))

    def _last_fit(self, data: "_Data", order: NDArray[np.intp], budget: "_Budget") -> None:
        """Fit the best setting to all rows, or to as many as the rest of the budget allows."""
        trial, y = self.best_trial_, data.y
        size = budget.rows_allowed(self.trials_, trial, len(y))
        if size <= trial.n_rows < len(y):
            return
        rows = np.arange(len(y)) if size == len(y) else np.sort(order[:size])
        if len(np.unique(y[rows])) < len(self.classes_):
            return
        params = dict(trial.params)
        limit = budget.seconds_left
        if np.isfinite(limit) and "time_limit" in self.estimator.get_params(deep=False):
            params["time_limit"] = max(limit, 0.1)
        model = self._fitted(params, data.part(rows))
        if "time_limit" in params and "time_limit" not in trial.params:
            model.set_params(time_limit=self.estimator.time_limit)
        budget.count(len(rows))
        self._adopt(model, trial, len(rows))
        self.complete_ = size == len(y)

    @available_if(lambda self: hasattr(self.estimator, "decision_function"))
    def decision_function(self, X: Any) -> NDArray[np.float64]:
        """Return the scores of the best model."""
        check_is_fitted(self, "best_estimator_")
        return self.best_estimator_.decision_function(X)

    def predict(self, X: Any) -> NDArray:
        """Return the classes that the best model predicts."""
        check_is_fitted(self, "best_estimator_")
        return self.best_estimator_.predict(X)

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "best_estimator_")

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        inner = get_tags(self.estimator)
        tags.input_tags.sparse, tags.input_tags.pairwise = inner.input_tags.sparse, False
        tags.classifier_tags = inner.classifier_tags
        return tags


@dataclass(frozen=True, slots=True)
class _Data:
    """Rows, their classes and, where given, their costs."""

    X: Any
    y: NDArray
    costs: NDArray[np.float64] | None

    @property
    def priced(self) -> dict[str, Any]:
        """The costs as a keyword of `fit` and of scorers."""
        return {} if self.costs is None else {"costs": self.costs}

    def part(self, rows: NDArray[np.intp]) -> "_Data":
        """Return some rows."""
        costs = None if self.costs is None else self.costs[rows]
        return _Data(_safe_indexing(self.X, rows), self.y[rows], costs)


@dataclass(slots=True)
class _Budget:
    """What may be spent, of seconds or of rows given to fits, and what has been."""

    seconds: float
    rows: float
    clock: Callable[[], float]
    started: float
    counted: int = 0

    @classmethod
    def of(cls, budget: Any) -> "_Budget":
        clock = time.perf_counter
        if isinstance(budget, str):
            return cls(parse_seconds(budget), np.inf, clock, clock())
        return cls(np.inf, check_real("budget", budget, above=0.0), clock, clock())

    @property
    def seconds_left(self) -> float:
        return self.seconds - (self.clock() - self.started)

    @property
    def rows_left(self) -> float:
        return self.rows - self.counted

    def count(self, n_rows: int) -> None:
        """Count the rows given to a fit."""
        self.counted += n_rows

    def searched(self) -> bool:
        """Tell whether the search has had its part, so that the rest is for the last fit."""
        return self._spent_share() >= 1.0 - FINAL_SHARE

    def _spent_share(self) -> float:
        return max(
            1.0 - self.seconds_left / self.seconds if np.isfinite(self.seconds) else 0.0, self.counted / self.rows
        )

    def affords(self, n_fits: int, trials: list[Trial], n_rows: int) -> bool:
        """Tell whether so many more fits to so many rows leave enough for the last one."""
        seconds = float(np.mean([trial.seconds for trial in trials]))
        expected = n_fits * seconds * (n_rows / trials[0].n_rows) ** GROWTH
        share = max(expected / self.seconds, n_fits * n_rows / self.rows)
        return self._spent_share() + share <= 1.0 - FINAL_SHARE

    def rows_allowed(self, trials: list[Trial], best: Trial, n_rows: int) -> int:
        """Return how many rows the last fit may have, by how the time grew with the rows so far."""
        if np.isfinite(self.rows):
            return int(min(n_rows, max(0, self.rows_left)))
        seen = [(trial.n_rows, trial.seconds) for trial in trials if trial.params == best.params]
        growth = GROWTH
        if len(seen) > 1 and seen[-1][0] > 1.5 * seen[0][0]:
            measured = np.log(seen[-1][1] / seen[0][1]) / np.log(seen[-1][0] / seen[0][0])
            growth = float(np.clip(measured, 1.0, 3.0))
        allowed = best.n_rows * (max(self.seconds_left, 0.0) / best.seconds) ** (1.0 / growth)
        return int(min(n_rows, allowed))


def _averaged(old: Trial, new: Trial, number: int) -> Trial:
    """Return the mean of `number` divisions into folds and a further one."""
    score = (number * old.score + new.score) / (number + 1)
    return replace(old, score=score, error=(number * old.error + new.error) / (number + 1))


def _sizes(first: int, y: NDArray) -> list[int]:
    """Return the numbers of rows of the rounds: three times as many each, the last one all."""
    sizes = [min(max(first, _first_rows_of_classes(y)), len(y))]
    while sizes[-1] < len(y):
        sizes.append(_next(sizes[-1], y))
    return sizes


def _next(size: int, y: NDArray) -> int:
    return len(y) if 3 * size > 0.67 * len(y) else 3 * size


def _first_rows_of_classes(y: NDArray) -> int:
    return int(np.minimum(np.unique(y, return_counts=True)[1], LEAST_PER_CLASS).sum())


def _order(y: NDArray, rng: np.random.RandomState) -> NDArray[np.intp]:
    """Return an order of the rows whose beginnings have the classes in proportion, and some rows of each."""
    _, labels, counts = np.unique(y, return_inverse=True, return_counts=True)
    shuffled = rng.permutation(len(y))
    by_class = shuffled[np.argsort(labels[shuffled], kind="stable")]
    rank = np.arange(len(y)) - np.repeat(np.cumsum(counts) - counts, counts)
    sizes = np.repeat(counts, counts)
    place = np.where(rank < LEAST_PER_CLASS, -1.0, (rank + 0.5) / sizes)
    return by_class[np.argsort(place, kind="stable")]
