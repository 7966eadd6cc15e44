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
from polymargin.selection.budget import LEAST_PER_CLASS, _order, _sizes, parse_seconds

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
    assert sizes.count(480) == 2
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
    assert len(tried) >= 10
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


def test_of_equals_the_quickest_gets_the_most_rows(rows, clock):
    search = BudgetSearch(Slow(), {"pace": [10.0, 1.0]}, budget="30s", random_state=0).fit(*rows)
    assert search.best_params_ == {"pace": 1.0}
    assert search.n_rows_ == 3000
    assert search.complete_
    assert clock.now <= 30.0


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


def test_every_class_takes_part_from_the_start():
    y = np.repeat([0, 1, 2], [5000, 4990, 10])
    order = _order(y, np.random.RandomState(0))
    assert sorted(order) == list(range(10_000))
    first = y[order[: _sizes(500, y)[0]]]
    assert np.bincount(first).tolist()[2] == LEAST_PER_CLASS == 10
    shares = np.bincount(first)[:2] / len(first)
    np.testing.assert_allclose(shares, [0.49, 0.49], atol=0.02)


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
