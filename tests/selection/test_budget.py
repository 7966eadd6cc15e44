"""Searches within a budget: few rows first, the best model so far at any time."""

import time
from typing import ClassVar

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.datasets import load_iris, make_classification
from sklearn.dummy import DummyClassifier
from sklearn.svm import SVC

from polymargin import BudgetSearch, MulticategorySVC
from polymargin.selection.budget import FEWEST
from polymargin.selection.seconds import parse_seconds
from polymargin.selection.spending import growth_of
from polymargin.selection.subsamples import LEAST_PER_CLASS, Subsamples
from polymargin.selection.trials import Trial

GRID = {"C": [1e-4, 1.0, 4.0], "gamma": [0.05, 50.0]}


@pytest.fixture(scope="module")
def rows():
    X, y = make_classification(3000, 5, n_informative=4, n_redundant=0, n_classes=3, random_state=0)
    return X, np.array(["a", "b", "c"])[y]


def test_rows_grow_and_settings_fall_away(rows):
    search = BudgetSearch(MulticategorySVC(tol=1e-2), GRID, budget=10**6, first_rows=200, random_state=0).fit(
        *rows
    )
    sizes = [trial.n_rows for trial in search.trials_]
    assert sizes == sorted(sizes)
    assert sizes.count(sizes[0]) == 6
    assert sizes.count(600) == 2
    assert search.complete_
    assert search.n_rows_ == 3000
    assert search.best_params_["gamma"] == 0.05
    assert search.best_params_["C"] >= 1.0
    assert search.score(*rows) > 0.8
    assert search.certificate_.gap < 1e-2
    assert search.best_estimator_.time_limit is None


def test_counted_work_is_kept_to_and_repeats(rows):
    fits = []

    class Counted(SVC):
        def fit(self, X, y):
            fits.append(X.shape[0])
            return super().fit(X, y)

    def run(budget):
        fits.clear()
        search = BudgetSearch(Counted(), GRID, budget=budget, first_rows=200, random_state=3).fit(*rows)
        return search, sum(fits)

    for budget in (4_000, 8_000, 30_000):
        search, counted = run(budget)
        assert counted <= budget
        again, _ = run(budget)
        assert [(t.params, t.score) for t in again.trials_] == [(t.params, t.score) for t in search.trials_]
        np.testing.assert_array_equal(again.predict(rows[0]), search.predict(rows[0]))
    assert search.n_rows_ == 3000
    small, _ = run(1)  # one setting is tried whatever happens
    assert len(small.trials_) == 1
    assert not small.complete_
    assert set(small.predict(rows[0])) <= {"a", "b", "c"}


class Hurried(DummyClassifier):
    """A classifier with a time limit, which it writes down."""

    seen: ClassVar[list] = []

    def __init__(self, time_limit=None, place=0):
        super().__init__()
        self.time_limit, self.place = time_limit, place

    def fit(self, X, y):
        self.seen.append(self.time_limit)
        return super().fit(X, y)


@pytest.mark.parametrize("own", [None, 1e-3])
def test_fits_are_given_what_is_left_of_the_time(rows, own):
    Hurried.seen.clear()
    search = BudgetSearch(Hurried(own), {"place": [1, 2]}, budget="10s", random_state=0).fit(*rows)
    *tried, last = Hurried.seen
    assert len(tried) >= 2
    if own is None:
        assert all(0.0 < limit <= 6.0 for limit in tried)  # the rest is kept for the last fit
        assert max(tried) < last <= 10.0
    else:
        assert set(Hurried.seen) == {own}
    assert search.best_estimator_.time_limit == own
    Hurried.seen.clear()
    BudgetSearch(Hurried(), {"place": [1, 2]}, budget=5_000, random_state=0).fit(*rows)
    assert set(Hurried.seen) == {None}


class Clock:
    """A clock that only fits move."""

    now = 0.0

    def __call__(self):
        return self.now


class Slow(DummyClassifier):
    """A classifier that takes `pace` seconds for a thousand rows; the time grows a little faster than the rows."""

    clock = Clock()

    def __init__(self, pace=1.0):
        super().__init__()
        self.pace = pace

    def fit(self, X, y):
        self.clock.now += self.pace * (len(y) / 1000.0) ** 1.2
        return super().fit(X, y)


@pytest.fixture
def clock(monkeypatch):
    monkeypatch.setattr(time, "perf_counter", Slow.clock)
    Slow.clock.now = 0.0
    return Slow.clock


def test_the_last_fits_use_the_time_that_is_left(clock):
    X, y = np.zeros((30_000, 1)), np.arange(30_000) % 2
    search = BudgetSearch(Slow(), {"pace": [1.0]}, budget="40s", random_state=0).fit(X, y)
    assert search.n_rows_ > 15_000  # a single fit, by what may be expected at worst, would have 4,300
    assert 35.0 < clock.now <= 40.0


def test_more_rows_tell_more_than_more_settings(clock):
    """All forty on few rows would take 17 of the 20 seconds, and leave none for any of them on more."""
    X, y = np.zeros((30_000, 1)), np.arange(30_000) % 2
    paces = [1.0 + 1e-6 * at for at in range(40)]
    search = BudgetSearch(Slow(), {"pace": paces}, budget="20s", random_state=0).fit(X, y)
    sizes = [trial.n_rows for trial in search.trials_]
    assert FEWEST < sizes.count(500) < 20
    assert sizes.count(1500) > 1
    assert search.n_rows_ > 4500
    assert clock.now <= 20.0


def test_of_equals_the_quickest_gets_the_most_rows(rows, clock):
    search = BudgetSearch(Slow(), {"pace": [10.0, 1.0]}, budget="30s", random_state=0).fit(*rows)
    assert search.best_params_ == {"pace": 1.0}
    assert search.n_rows_ == 3000
    assert search.complete_
    assert clock.now <= 30.0


class CutShort(SVC):
    """A classifier that comes to its end on few rows only, and of more may know but one class."""

    def __init__(self, C=1.0, is_rough=True):
        super().__init__(C=C)
        self.is_rough = is_rough

    def fit(self, X, y):
        self.converged_ = len(y) < 1000
        return super().fit(X, y)

    def predict(self, X):
        if self.converged_ or not self.is_rough:
            return super().predict(X)
        return np.full(len(X), self.classes_[0])


@pytest.mark.parametrize("is_rough", [True, False])
@pytest.mark.parametrize("budget", [4_000, 10**6])  # one round and a last fit; all rounds
def test_a_fit_that_time_cut_short_is_taken_where_it_is_as_good(rows, is_rough, budget):
    machine, grid = CutShort(is_rough=is_rough), {"C": [1.0, 4.0]}
    search = BudgetSearch(machine, grid, budget=budget, first_rows=400, random_state=0).fit(*rows)
    assert search.best_estimator_.converged_ == is_rough
    assert search.score(*rows) > 0.8


def test_an_interruption_leaves_the_best_model_so_far(rows):
    class Stop(BaseException):
        pass

    def stop_at_third(trial):
        seen.append(trial)
        if len(seen) == 4:
            raise Stop

    seen = []
    search = BudgetSearch(SVC(), GRID, budget="10m", random_state=0, observer=stop_at_third)
    with pytest.raises(Stop):
        search.fit(*rows)
    assert search.best_score_ == max(trial.score for trial in seen)
    assert search.best_estimator_.get_params()["C"] == search.best_params_["C"]
    assert len(search.predict(rows[0])) == 3000


def test_few_rows_are_divided_more_than_once():
    """Iris: one round on all rows, then the better half of the settings by other folds, averaged."""
    X, y = load_iris(return_X_y=True)
    search = BudgetSearch(SVC(), {"C": [0.001, 0.1, 1.0, 10.0]}, budget=100_000, random_state=0).fit(X, y)
    tried = [trial.params["C"] for trial in search.trials_]
    assert sorted(tried[:4]) == [0.001, 0.1, 1.0, 10.0]
    assert len(tried) == 4 + 3 * 2
    of_best = [trial.score for trial in search.trials_ if trial.params == search.best_params_]
    assert search.best_score_ == pytest.approx(np.mean(of_best))
    assert search.complete_


def test_costs_decide(rows):
    """A scorer that only cares for one class."""
    X, y = rows

    def recall_of_a(model, X, y):
        return float(np.mean(model.predict(X)[y == "a"] == "a"))

    search = BudgetSearch(SVC(), {"C": [1e-4, 1.0]}, budget=20_000, scoring=recall_of_a, random_state=0).fit(X, y)
    assert search.best_params_ == {"C": 1.0}
    assert search.best_score_ > 0.5


def test_every_class_takes_part_and_judges_from_the_start():
    y = np.repeat([0, 1, 2], [5000, 4990, 15])
    samples = Subsamples.of(y, 500, np.random.RandomState(0))
    assert sorted(samples.order) == list(range(len(y)))
    assert samples.sizes == [500, 1500, 4500, len(y)]
    for size in samples.sizes[:-1]:
        (examination,) = samples.examinations(size, seed=0)
        judges = np.concatenate(examination.judges)
        assert len(examination.train) == size
        assert not np.isin(judges, examination.train).any()
        assert np.bincount(y[examination.train])[2] == LEAST_PER_CLASS == 10
        shares = np.bincount(y[examination.train])[:2] / size
        np.testing.assert_allclose(shares, [0.5, 0.5], atol=0.02)
        assert all(2 in y[part] for part in examination.judges)
    folds = list(samples.examinations(len(y), seed=0))
    assert sorted(np.concatenate([fold.judges[0] for fold in folds])) == list(range(len(y)))


def test_few_fits_judge_settings_while_there_are_rows_beside():
    """One fit for each of the settings in every round but the last, and a standard error all the same."""
    X, y = make_classification(6000, 5, n_informative=4, n_redundant=0, n_classes=3, random_state=0)
    fits = []

    class Counted(SVC):
        def fit(self, X, y):
            fits.append(X.shape[0])
            return super().fit(X, y)

    search = BudgetSearch(Counted(), {"C": [0.01, 0.1, 1.0, 4.0]}, budget=20_000, random_state=0).fit(X, y)
    assert fits[:6] == [500] * 4 + [1500] * 2
    assert all(0.0 < trial.error < 0.05 for trial in search.trials_)


def test_the_growth_of_time_is_learnt_from_settings_that_were_tried_twice():
    def tried(C, n_rows, seconds):
        return Trial({"C": C}, n_rows, 0.5, 0.1, seconds)

    assert growth_of([tried(1.0, 500, 0.1), tried(2.0, 500, 0.3)]) == 2.0
    twice = [tried(1.0, 500, 0.1), tried(2.0, 500, 5.0), tried(1.0, 2000, 0.4)]
    assert growth_of(twice) == pytest.approx(1.0)
    assert growth_of([tried(1.0, 500, 0.1), tried(1.0, 1000, 100.0)]) == 3.0


def test_labels_in_and_out_and_clones():
    X, y = load_iris(return_X_y=True, as_frame=True)
    search = clone(BudgetSearch(MulticategorySVC(), {"C": [1.0]}, budget=2_000, random_state=0)).fit(X, y)
    assert search.feature_names_in_.tolist() == X.columns.tolist()
    assert search.decision_function(X).shape == (150, 3)
    assert search.best_trial_.error >= 0.0


@pytest.mark.parametrize("budget", ["soon", "0s", "-5s", "5 days", 0, -1, None])
def test_budgets_that_make_no_sense(budget):
    X, y = load_iris(return_X_y=True)
    with pytest.raises((ValueError, TypeError), match="budget must be"):
        BudgetSearch(SVC(), {"C": [1.0]}, budget=budget).fit(X, y)


def test_words_for_time():
    assert parse_seconds("2m") == parse_seconds("2 min") == 120.0
