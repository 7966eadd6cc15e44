"""Every search takes a budget: it ends early, exactly so where work is counted, with the best certified model."""

import time

import numpy as np
import pytest
from sklearn.base import clone

from polymargin import (
    MarginSearch,
    MulticategorySVC,
    ProximalSVC,
    ProximalSVCCV,
    RobustSearch,
    RobustSVC,
    SharedStructureSearch,
    SharedStructureSVC,
    SparseSVCCV,
)
from polymargin.selection.spending import Budget
from tests.simulate import blobs

N = 90
SEARCHES = {
    "margin": MarginSearch(Cs=[0.1, 1.0, 10.0], gammas=[0.1, 0.5, 2.0]),
    "margin, weston by folds": MarginSearch(
        MulticategorySVC(loss="weston"), Cs=[0.1, 1.0, 10.0], gammas=[0.1, 0.5], criterion=3
    ),
    "proximal": ProximalSVCCV(ProximalSVC(kernel="rbf", landmarks=20, random_state=0), Cs=[1.0, 8.0]),
    "shared": SharedStructureSearch(
        SharedStructureSVC(bounds=None), Cs=[0.01, 0.1, 1.0], penalty_fractions=[1e-6, 1e-3], cv=3
    ),
    "sparse": SparseSVCCV(n_Cs=6, cv=2, initial_Cs=[0.1, 1.0]),
    "sparse, one round": SparseSVCCV(n_Cs=6, cv=2, initial_Cs=[0.1, 1.0], adaptive=True),
    "robust": RobustSearch(RobustSVC(kernel="linear"), Cs=[0.01, 0.1, 1.0], truncations=["auto", -0.2], cv=2),
}


@pytest.fixture(scope="module")
def rows():
    return blobs(np.random.default_rng(0), N, 3, 3, spread=1.5)


def tried(search):
    return [tuple(params.items()) for params in search.cv_results_["params"]]


@pytest.mark.parametrize("name", SEARCHES)
def test_a_budget_that_lasts_changes_nothing(rows, name):
    plain, budgeted = (clone(SEARCHES[name]).set_params(budget=budget).fit(*rows) for budget in (None, 1e9))
    assert budgeted.best_params_ == plain.best_params_
    assert set(tried(budgeted)) == set(tried(plain))


@pytest.mark.parametrize("name", SEARCHES)
@pytest.mark.filterwarnings("ignore:.*gap:UserWarning")
def test_counted_work_ends_a_search_early_and_repeats(rows, name):
    whole = clone(SEARCHES[name]).fit(*rows)
    few, again = (clone(SEARCHES[name]).set_params(budget=3 * N).fit(*rows) for _ in range(2))
    assert 1 <= len(tried(few)) < len(tried(whole))
    assert set(tried(few)) <= set(tried(whole)) or name.startswith("sparse")  # weights of later rounds differ
    assert tried(few) == tried(again)
    np.testing.assert_array_equal(few.decision_function(rows[0]), again.decision_function(rows[0]))
    assert few.certificate_.gap <= 1e-2


@pytest.mark.parametrize("name", SEARCHES)
@pytest.mark.filterwarnings("ignore::UserWarning")
def test_no_time_at_all_still_gives_a_certified_model(rows, name):
    search = clone(SEARCHES[name]).set_params(budget="0.001s").fit(*rows)
    assert len(tried(search)) >= 1
    assert np.isfinite(search.certificate_.gap)
    assert search.best_estimator_.get_params().get("time_limit") is None
    assert set(search.predict(rows[0])) <= set(rows[1])


@pytest.mark.parametrize("name", SEARCHES)
@pytest.mark.parametrize("budget", ["soon", "0s", 0, -1.0, [60]])
def test_budgets_that_make_no_sense_are_refused_before_any_work(rows, name, budget):
    with pytest.raises((TypeError, ValueError), match="budget must be"):
        clone(SEARCHES[name]).set_params(budget=budget).fit(*rows)


def test_parts_run_at_once_share_counted_work_as_those_in_turn_do(rows):
    one, two = (clone(SEARCHES["margin"]).set_params(budget=6 * N, n_jobs=n).fit(*rows) for n in (None, 2))
    assert tried(one) == tried(two)


def test_time_that_a_part_leaves_is_for_those_after_it(monkeypatch):
    now = [100.0]
    monkeypatch.setattr(time, "perf_counter", lambda: now[0])
    shares = Budget.of("10s").shares(3)
    assert next(shares).seconds == pytest.approx(2.0)  # of the six that are not kept for the last fit
    now[0] += 1.0
    assert next(shares).seconds == pytest.approx(2.5)
    now[0] += 4.0
    assert next(shares).seconds == pytest.approx(1.0)
