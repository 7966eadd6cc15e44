"""BudgetSearch: settings of any classifier within a budget, on few rows first and on more while it lasts."""

import time
import warnings
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from contextvars import copy_context
from dataclasses import replace
from typing import Any, Self

import numpy as np
from joblib import effective_n_jobs
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, ClassifierMixin, MetaEstimatorMixin, clone
from sklearn.model_selection import ParameterGrid
from sklearn.utils import get_tags, indexable
from sklearn.utils.metaestimators import available_if
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import _check_y, check_is_fitted

from polymargin.arguments import RandomState
from polymargin.checks import check_integer, check_seed
from polymargin.costs import resolve_row_costs
from polymargin.estimators.parts import OUTCOME
from polymargin.selection.results import cv_results
from polymargin.selection.scoring import CostScorer
from polymargin.selection.spending import GROWN, Budget
from polymargin.selection.subsamples import MOST_JUDGES, Data, Examination, Subsamples
from polymargin.selection.trials import FOLDS, Tally, Trial, averaged, ranked, spread_of_folds
from polymargin.solvers.watch import Watch

KEPT = 1 / 3
"""Part of the settings that goes on to the next round, which has three times as many rows."""

REPEATS = 4
"""Divisions into folds by which the best settings are judged once all rows take part."""

FIRST_ROUND = 0.3
"""Part of a budget after which a round on few rows ends: more rows then tell more than more settings."""

FEWEST = 8
"""Settings that such a round tries whatever it takes."""

RACED = 0.2
"""Part of a budget beyond which a round is a race, in which settings that begin badly fall out."""


class BudgetSearch(MetaEstimatorMixin, ClassifierMixin, BaseEstimator):
    """Search for the settings of a classifier while a budget lasts.

    All settings are fitted to a few hundred rows and judged by a third of all, which take no part in that; the
    best third of the settings is fitted to three times as many, and so on while the budget lasts, at last by
    cross-validation on all rows. Then the best is fitted to all of them, or to as many as the rest of the budget
    is estimated to allow. Where these are not all, the quickest of the settings that are as good as the best
    within its standard error is taken. Where cross-validation would take a good part of the budget it is a race:
    after the first fold the worse half of the settings falls out. Scores of neighbours on the grid tell of each
    other, the more so the noisier they are: with few rows the best of many scores is often a lucky one. Whenever
    the budget ends, or the search is interrupted, `best_estimator_` is the best fitted model so far, with its own
    certificate.

    Parameters
    ----------
    estimator : classifier
        Where it has a `time_limit` (as Polymargin's have), fits are given what is left of the seconds.
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
    n_jobs : int or None, default=None
        Settings that are judged at once, each in a thread; None for one, -1 for as many as there are processors.
    observer : callable or None, default=None
        Called with every `Trial` as it goes on, after each of its folds.

    Attributes
    ----------
    best_estimator_ : classifier
    best_params_ : dict
    best_score_ : float
        The mean score over the folds of the last round, on `best_trial_.n_rows` rows.
    best_trial_ : Trial
    best_index_ : int
        Entry of the best in `cv_results_`.
    cv_results_ : dict
        One entry per setting as it was judged last: "params", "param_<name>", "mean_test_score",
        "rank_test_score" (1 for the best; those judged on fewer rows or folds come later), "n_rows", "folds" and
        "mean_fit_time".
    trials_ : list of Trial, in the order of time
    n_rows_ : int
        Rows that `best_estimator_` was fitted to.
    refit_time_ : float
        Seconds that the fit of `best_estimator_` to these rows took; 0 where it is of the search itself.
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
        estimator: Any,
        param_grid: Any,
        *,
        budget: str | float = "60s",
        scoring: Any = None,
        first_rows: int = 500,
        random_state: RandomState = None,
        n_jobs: int | None = None,
        observer: Callable[[Trial], None] | None = None,
    ) -> None:
        self.estimator = estimator
        self.param_grid = param_grid
        self.budget = budget
        self.scoring = scoring
        self.first_rows = first_rows
        self.random_state = random_state
        self.n_jobs = n_jobs
        self.observer = observer

    def fit(self, X: Any, y: Any, *, costs: Any = None) -> Self:
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
        budget = Budget.of(self.budget)
        budget.n_at_once = effective_n_jobs(self.n_jobs)
        first_rows = check_integer("first_rows", self.first_rows, at_least=10)
        X, y = indexable(X, y)
        y = _check_y(y)
        check_classification_targets(y)
        self.classes_ = np.unique(y)
        if costs is not None:
            costs = resolve_row_costs(costs, np.searchsorted(self.classes_, y), self.classes_)
        data = Data(X, y, costs)
        self.trials_: list[Trial] = []
        self.complete_ = False
        self.refit_time_ = 0.0
        grid = settings = list(ParameterGrid(self.param_grid))
        rng = check_seed("random_state", self.random_state)
        # In random order what an early end has seen is spread over the grid.
        settings = [settings[at] for at in rng.permutation(len(settings))]
        samples = Subsamples.of(y, first_rows, rng)
        seed = int(rng.randint(2**31 - 1))
        for size, following in zip(samples.sizes, [*samples.sizes[1:], None], strict=True):
            until = 1.0 if following is None else budget.spent_share + FIRST_ROUND
            examinations = samples.examinations(size, seed)
            judged, is_whole = self._round(settings, data, examinations, budget, race=True, until=until)
            judged = ranked(judged, grid)
            if not is_whole:
                break
            if following is None:
                judged = self._repeat(judged, grid, data, samples, seed, budget)
                break
            settings = [trial.params for trial in judged[: int(np.ceil(KEPT * len(judged)))]]
            fits = samples.fits(following)
            while len(settings) > 1 and not budget.affords(fits * len(settings), self.trials_, following):
                settings.pop()
            if len(settings) == 1:
                break
        best = judged[0] if is_whole else self.best_trial_
        self._last_fits(self._soonest_of_equals(best, judged, budget, len(y)), data, samples.order, budget)
        return self

    def _soonest_of_equals(self, best: Trial, judged: list[Trial], budget: Budget, n_rows: int) -> Trial:
        """Return the best trial or, where it could not have all rows, one that is as good and may have the most.

        As good is whoever is within the best's standard error: rows are worth more than such a difference.
        """
        if budget.rows_allowed(self.trials_, best, n_rows) >= n_rows:
            return best
        noise = spread_of_folds(judged) / np.sqrt(best.folds)
        equals = [one for one in judged if one.folds >= best.folds and one.score >= best.score - noise]
        return max([best, *equals], key=lambda one: budget.rows_allowed(self.trials_, one, n_rows))

    def _repeat(
        self,
        judged: list[Trial],
        grid: list[dict[str, Any]],
        data: Data,
        samples: Subsamples,
        seed: int,
        budget: Budget,
    ) -> list[Trial]:
        """Judge the best settings on all rows by other folds as well: with few rows one division is much luck.

        Return them, the best first.
        """
        n_rows = len(data.y)
        best, others = judged[: int(np.ceil(KEPT * len(judged)))], judged[int(np.ceil(KEPT * len(judged))) :]
        for number in range(1, REPEATS):
            if len(best) == 1 or not budget.affords(FOLDS * len(best), best, n_rows):
                break
            settings = [trial.params for trial in best]
            folds = samples.examinations(n_rows, seed + number)
            again, is_whole = self._round(settings, data, folds, budget, race=False)
            if not is_whole:
                break
            best = [averaged(old, new, number) for old, new in zip(best, again, strict=True)]
        in_order = ranked([*best, *others], grid)
        # Whoever was judged once only makes the others smoother, and does not win.
        tried = [trial for trial in in_order if any(trial is one for one in best)]
        self._adopt(self.best_estimator_, tried[0], self.n_rows_)
        return tried

    def _round(
        self,
        settings: list[dict[str, Any]],
        data: Data,
        examinations: Iterable[Examination],
        budget: Budget,
        *,
        race: bool,
        until: float = 1.0,
    ) -> tuple[list[Trial], bool]:
        """Judge settings by one examination after the other while the budget lasts; tell whether it did.

        In a `race` that is long, the better half goes on after the first fold and a third after the second. Once
        the part `until` of the budget is spent, no further settings are begun.
        """
        tallies = [Tally(params) for params in settings]
        running = tallies
        with warnings.catch_warnings():
            # A class may have fewer rows than there are folds, and a rough fit need not converge.
            warnings.simplefilter("ignore")
            for number, examination in enumerate(examinations, start=1):
                train, judges = data.part(examination.train), [data.part(rows) for rows in examination.judges]
                n_rows = len(train.y)
                for begin in range(0, len(running), budget.n_at_once):
                    seen = [tally.trial for tally in tallies if tally.scores]
                    if begin >= FEWEST and budget.spent_share >= until:
                        return seen, True
                    if self.trials_ and budget.searched():
                        return [trial for trial in seen if trial.folds >= number - 1 or number == 1], False
                    batch = running[begin : begin + budget.n_at_once]
                    judged = self._judged(batch, train, judges, budget)
                    for tally, (model, scores, seconds) in zip(batch, judged, strict=True):
                        budget.count(n_rows)
                        tally.add(n_rows, scores, seconds)
                        self._note(tally, model)
                trials = [tally.trial for tally in tallies]
                left = (FOLDS - trials[0].folds) * len(running)
                if race and number <= 2 and budget.share_of(left, trials, n_rows) > RACED:
                    share = 1 / 2 if number == 1 else KEPT
                    most = max(int(np.ceil(share * len(tallies))), 1)
                    running = sorted(running, key=lambda tally: -tally.trial.score)[:most]
        return [tally.trial for tally in tallies], True

    def _judged(
        self, batch: list[Tally], train: Data, judges: list[Data], budget: Budget
    ) -> list[tuple[Any, list[float], float]]:
        """Return model, scores and seconds of settings, several at once in threads."""

        def judge(params: dict[str, Any]) -> tuple[Any, list[float], float]:
            started = time.perf_counter()
            model = self._fitted(params, train, budget, is_last=False)
            seconds = time.perf_counter() - started
            return model, [float(self._score(model, part)) for part in judges], seconds

        if len(batch) == 1:
            return [judge(batch[0].params)]
        with Watch() as watch, ThreadPoolExecutor(len(batch)) as threads:
            try:
                tasks = [threads.submit(copy_context().run, judge, tally.params) for tally in batch]
                return [task.result() for task in tasks]
            except BaseException:
                watch.end()  # Ctrl-C comes to this thread alone
                raise

    def _note(self, tally: Tally, model: Any) -> None:
        """Take in what a fold says of a setting: in the list of trials, and as the best so far."""
        trial, is_first = tally.trial, not self.trials_
        if tally.place is None:
            tally.place = len(self.trials_)
            self.trials_.append(trial)
        else:
            self.trials_[tally.place] = trial
        # more rows stand above a better score, unless time ended their fit
        is_whole = is_first or getattr(model, "converged_", True) or trial.score >= self.best_trial_.score
        if is_first or (is_whole and _standing(trial) > _standing(self.best_trial_)):
            self._adopt(model, trial, trial.n_rows)
        if self.observer is not None:
            self.observer(trial)

    def _fitted(self, params: dict[str, Any], data: Data, budget: Budget, *, is_last: bool) -> Any:
        """Fit a setting; where the estimator knows a time limit, within what is left of the search or of all."""
        model = clone(self.estimator).set_params(**params)
        own = model.get_params(deep=False)
        if "time_limit" in own:
            model.set_params(time_limit=budget.limit(own["time_limit"], of_search=not is_last))
        model.fit(data.X, data.y, **data.priced)
        return model.set_params(time_limit=own["time_limit"]) if "time_limit" in own else model

    def _score(self, model: Any, data: Data) -> float:
        if self.scoring is None and data.costs is None:
            return model.score(data.X, data.y)
        scoring = CostScorer(None, self.classes_) if self.scoring is None else self.scoring
        return scoring(model, data.X, data.y, **data.priced)

    def _adopt(self, model: Any, trial: Trial, n_rows: int) -> None:
        self.best_estimator_, self.best_trial_, self.n_rows_ = model, trial, n_rows
        self.best_params_, self.best_score_ = trial.params, trial.score
        for name in ("n_features_in_", "feature_names_in_", *OUTCOME):
            if hasattr(model, name):
                setattr(self, name, getattr(model, name))

    @property
    def cv_results_(self) -> dict[str, Any]:
        """What was tried, in the form that all searches share."""
        last = [trial for at, trial in enumerate(self.trials_) if self._is_last(at)]
        trials = [self.best_trial_ if trial.params == self.best_params_ else trial for trial in last]
        order = sorted(
            range(len(trials)),
            key=lambda at: (trials[at] is not self.best_trial_, *(-part for part in _standing(trials[at]))),
        )
        columns = {
            "n_rows": np.array([trial.n_rows for trial in trials]),
            "folds": np.array([trial.folds for trial in trials]),
            "mean_fit_time": np.array([trial.seconds for trial in trials]),
        }
        scores = np.array([trial.score for trial in trials])
        return cv_results([trial.params for trial in trials], scores, order, columns)

    @property
    def best_index_(self) -> int:
        """Entry of the best setting in `cv_results_`."""
        return int(np.argmin(self.cv_results_["rank_test_score"]))

    def _is_last(self, at: int) -> bool:
        return all(later.params != self.trials_[at].params for later in self.trials_[at + 1 :])

    def _last_fits(self, trial: Trial, data: Data, order: NDArray[np.intp], budget: Budget) -> None:
        """Fit the best setting to all rows, or to more and more of them as the rest of the budget allows.

        How the time grows with the rows is known better after each fit.
        """
        n, seen, last = len(data.y), list(self.trials_), trial
        while True:
            size = budget.rows_allowed(seen, last, n)
            least = last.n_rows if last is trial else GROWN * last.n_rows
            if size < n and size <= least:
                return
            rows = np.arange(n) if size == n else np.sort(order[:size])
            if len(np.unique(data.y[rows])) < len(self.classes_):
                return
            started = time.perf_counter()
            model = self._fitted(trial.params, data.part(rows), budget, is_last=True)
            budget.count(len(rows))
            latest = data.part(order[:size][-MOST_JUDGES:])
            if getattr(model, "converged_", True) or (last is trial and self._is_as_good(model, latest)):
                self._adopt(model, trial, len(rows))
                self.refit_time_ = time.perf_counter() - started
                self.complete_ = size == n
            if size == n:
                return
            last = replace(trial, n_rows=len(rows), seconds=time.perf_counter() - started)
            seen.append(last)

    def _is_as_good(self, model: Any, part: Data) -> bool:
        """Whether a model that time cut short fits its own rows as well as the best so far, which knew fewer."""
        return self._score(model, part) >= self._score(self.best_estimator_, part)

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


def _standing(trial: Trial) -> tuple[int, int, float]:
    """Return what one trial is ahead of another by: rows first, then folds, then the score."""
    return trial.n_rows, trial.folds, trial.score
