"""Costs of rows: what is refused, what is said, and how they travel through pipelines and searches."""

import numpy as np
import pandas as pd
import pytest
from sklearn import config_context
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV, cross_validate
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from polymargin import (
    BudgetSearch,
    Decider,
    MarginSearch,
    MulticategorySVC,
    ProximalSVC,
    ProximalSVCCV,
    RobustSVC,
    SharedStructureSearch,
    SharedStructureSVC,
    SparseSVC,
    SparseSVCCV,
    TraceNormSVC,
    expected_cost,
    make_cost_scorer,
)

TAKING = [MulticategorySVC(), SparseSVC(), RobustSVC(), MarginSearch(Cs=[1.0], gammas=[1.0]), SparseSVCCV(n_Cs=3)]
MATRIX = np.array([[0.0, 1.0, 4.0], [2.0, 0.0, 1.0], [3.0, 0.5, 0.0]])


@pytest.fixture
def sample():
    rng = np.random.default_rng(0)
    y = np.repeat(["a", "b", "c"], 20)
    X = rng.normal(size=(60, 2)) + 1.2 * np.repeat(np.eye(3)[:, :2], 20, axis=0)
    costs = MATRIX[np.repeat([0, 1, 2], 20)] * rng.integers(1, 5, (60, 1))
    return X, y, costs


def spoilt(costs, row, column, value):
    costs = costs.copy()
    costs[row, column] = value
    return costs


@pytest.mark.parametrize("model", TAKING, ids=lambda model: type(model).__name__)
def test_bad_costs_are_refused_by_name_and_row(model, sample):
    X, y, costs = sample
    with pytest.raises(ValueError, match=r"costs must have shape \(60, 3\).*'a', 'b', 'c'.*got \(60, 2\)"):
        model.fit(X, y, costs=costs[:, :2])
    with pytest.raises(ValueError, match=r"got \(59, 3\)"):
        model.fit(X, y, costs=costs[:-1])
    with pytest.raises(ValueError, match=r"got \(60,\); one amount per row is a sample_weight"):
        model.fit(X, y, costs=costs[:, 1])
    with pytest.raises(ValueError, match=r"non-negative, got -1\.0 in row 7 for class b"):
        model.fit(X, y, costs=spoilt(costs, 7, 1, -1.0))
    with pytest.raises(ValueError, match="got nan in row 30 for class a"):
        model.fit(X, y, costs=spoilt(costs, 30, 0, np.nan))
    with pytest.raises(ValueError, match="zero for the own class of a row, got 2 in row 45 for class c"):
        model.fit(X, y, costs=spoilt(costs, 45, 2, 2.0))
    with pytest.raises(ValueError, match="at least one positive entry, got only zeros"):
        model.fit(X, y, costs=np.zeros((60, 3)))
    with pytest.raises(TypeError, match="costs must be an array of numbers"):
        model.fit(X, y, costs="ordinal")
    frame = pd.DataFrame(costs, columns=["a", "b", "d"])
    with pytest.raises(ValueError, match=r"columns of the DataFrame must be the classes .* got \['a', 'b', 'd'\]"):
        model.fit(X, y, costs=frame)


@pytest.mark.parametrize(
    "model", [MulticategorySVC(), SparseSVC(), RobustSVC()], ids=lambda model: type(model).__name__
)
def test_costs_of_classes_and_rows_exclude_each_other(model, sample):
    X, y, costs = sample
    with pytest.raises(ValueError, match="costs and cost_matrix are two ways"):
        model.set_params(cost_matrix="ordinal").fit(X, y, costs=costs)
    model.set_params(cost_matrix=None)
    if hasattr(model, "utility"):
        with pytest.raises(ValueError, match="costs and utility are two ways"):
            RobustSVC(utility="ordinal").fit(X, y, costs=costs)


def test_rows_without_costs_are_counted_and_teach_nothing(sample):
    X, y, costs = sample
    costs[[3, 8, 50]] = 0.0
    with pytest.warns(UserWarning, match="zero for every class in 3 rows, the first is row 3: nothing is learnt"):
        model = MulticategorySVC(kernel="linear", tol=1e-10).fit(X, y, costs=costs)
    kept = np.delete(np.arange(60), [3, 8, 50])
    without = MulticategorySVC(kernel="linear", tol=1e-10).fit(X[kept], y[kept], costs=costs[kept])
    np.testing.assert_allclose(model.decision_function(X), without.decision_function(X), atol=1e-9)


def test_rows_of_weight_zero_are_not_looked_at(sample):
    X, y, costs = sample
    weights = np.ones(60)
    weights[4] = 0.0
    model = MulticategorySVC().fit(X, y, weights, costs=spoilt(costs, 4, 2, -1.0))
    kept = np.delete(np.arange(60), 4)
    other = MulticategorySVC().fit(X[kept], y[kept], costs=costs[kept])
    np.testing.assert_array_equal(model.decision_function(X), other.decision_function(X))
    with pytest.raises(ValueError, match="in row 5 for class c"):
        MulticategorySVC().fit(X, y, weights, costs=spoilt(costs, 5, 2, -1.0))


def test_columns_of_a_frame_are_found_by_name(sample):
    X, y, costs = sample
    frame = pd.DataFrame(costs, columns=list("abc"))[["c", "a", "b"]]
    model, other = MulticategorySVC().fit(X, y, costs=frame), MulticategorySVC().fit(X, y, costs=costs)
    np.testing.assert_array_equal(model.decision_function(X), other.decision_function(X))
    assert expected_cost(y, y[::-1], costs=frame) == expected_cost(y, y[::-1], costs=costs)


@pytest.mark.parametrize("loss", ["crammer", "mmr", "adm", "atm", "ats", "one_vs_rest", "reinforced", "logistic"])
def test_losses_of_one_cost_refuse_several(loss, sample):
    X, y, costs = sample
    with pytest.raises(ValueError, match=f"equal costs in each row, as must costs of rows, with loss='{loss}'"):
        MulticategorySVC(loss=loss).fit(X, y, costs=costs)
    amounts = np.arange(1.0, 61.0)
    equal = amounts[:, None] * (1.0 - np.eye(3)[np.repeat([0, 1, 2], 20)])
    by_row = MulticategorySVC(loss=loss, kernel="linear", tol=1e-6).fit(X, y, costs=equal)
    weighted = MulticategorySVC(loss=loss, kernel="linear", tol=1e-6).fit(X, y, amounts)
    assert by_row.certificate_.primal == pytest.approx(weighted.certificate_.primal, rel=1e-5)


@pytest.mark.parametrize(
    "model",
    [ProximalSVC(), SharedStructureSVC(), TraceNormSVC(), ProximalSVCCV(), SharedStructureSearch()],
    ids=lambda model: type(model).__name__,
)
def test_machines_that_cannot_say_why(model, sample):
    X, y, costs = sample
    with pytest.raises(TypeError, match=f"{type(model).__name__} cannot use costs of rows: its .* Decider"):
        model.fit(X, y, costs=costs)


def test_pipelines_and_searches_carry_them(sample):
    X, y, costs = sample
    machine = MulticategorySVC(kernel="linear")
    plain = make_pipeline(StandardScaler(), machine).fit(X, y, multicategorysvc__costs=costs)
    grid = {"multicategorysvc__C": [0.01, 1.0]}
    with config_context(enable_metadata_routing=True):
        routed = make_pipeline(StandardScaler(), machine.set_fit_request(costs=True))
        scorer = make_cost_scorer().set_score_request(costs=True)
        search = GridSearchCV(routed, grid, scoring=scorer, cv=3).fit(X, y, costs=costs)
        folds = cross_validate(routed, X, y, scoring=scorer, cv=3, params={"costs": costs}, return_indices=True)
        np.testing.assert_array_equal(
            routed.fit(X, y, costs=costs).decision_function(X), plain.decision_function(X)
        )
        unaware = make_pipeline(StandardScaler(), MulticategorySVC(kernel="linear"))
        with pytest.raises(ValueError, match="costs"):
            GridSearchCV(unaware, grid).fit(X, y, costs=costs)
        with pytest.raises(ValueError, match="costs"):
            unaware.fit(X, y, costs=costs)
    train, test = (folds["indices"][name][1] for name in ("train", "test"))
    by_hand = make_pipeline(StandardScaler(), MulticategorySVC(kernel="linear"))
    by_hand.fit(X[train], y[train], multicategorysvc__costs=costs[train])
    cost = expected_cost(y[test], by_hand.predict(X[test]), costs=costs[test])
    assert folds["test_score"][1] == -cost
    assert search.best_score_ == max(search.cv_results_["mean_test_score"])


def test_own_searches_count_them(sample):
    X, y, costs = sample
    search = MarginSearch(MulticategorySVC(kernel="linear"), Cs=[0.1, 1.0], criterion=3).fit(X, y, costs=costs)
    by_class = MarginSearch(MulticategorySVC(kernel="linear", cost_matrix=MATRIX), Cs=[0.1, 1.0], criterion=3)
    by_row = MarginSearch(MulticategorySVC(kernel="linear"), Cs=[0.1, 1.0], criterion=3)
    rows = MATRIX[np.repeat([0, 1, 2], 20)]
    np.testing.assert_allclose(
        by_row.fit(X, y, costs=rows).cv_results_["criterion"], by_class.fit(X, y).cv_results_["criterion"]
    )
    assert not np.allclose(search.cv_results_["criterion"], by_row.cv_results_["criterion"])
    sparse = SparseSVCCV(n_Cs=4, adaptive=False, cv=3).fit(X, y, costs=rows)
    sparse_by_class = SparseSVCCV(n_Cs=4, adaptive=False, cv=3, cost_matrix=MATRIX).fit(X, y)
    np.testing.assert_allclose(sparse.cv_results_["cost"], sparse_by_class.cv_results_["cost"])
    halves = (X[::2], y[::2], rows[::2]), (X[1::2], y[1::2], rows[1::2])
    once = SparseSVCCV(n_Cs=4, adaptive=False).fit(*halves[0][:2], costs=rows[::2], validation_set=halves[1])
    assert once.best_score_ == pytest.approx(-expected_cost(y[1::2], once.predict(X[1::2]), MATRIX))
    with pytest.raises(ValueError, match=r"validation_set must be \(X, y, costs\)"):
        SparseSVCCV(n_Cs=4).fit(*halves[0][:2], costs=rows[::2], validation_set=halves[1][:2])
    budget = BudgetSearch(MulticategorySVC(kernel="linear"), {"C": [0.01, 1.0]}, budget=2_000, random_state=0)
    budget.fit(X, y, costs=costs)
    other = MulticategorySVC(kernel="linear", **budget.best_params_).fit(X, y, costs=costs)
    np.testing.assert_array_equal(budget.decision_function(X), other.decision_function(X))


def test_decider_takes_costs_of_wrong_classes(sample):
    X, y, _ = sample
    model = LogisticRegression().fit(X, y)
    P = model.predict_proba(X)
    amounts = np.random.default_rng(1).lognormal(size=(60, 3))
    matrices = np.where(np.eye(3, dtype=bool), 0.0, amounts[:, None, :])
    np.testing.assert_allclose(
        Decider(model).expected_costs(P, amounts), Decider(model).expected_costs(P, matrices), atol=1e-12
    )
    np.testing.assert_array_equal(Decider(model).predict(X, amounts), Decider(model).predict(X, matrices))
    with pytest.raises(ValueError, match="costs must have shape"):
        Decider(model).predict(X, amounts[:, :2])


def test_expected_cost_takes_one_of_the_two():
    with pytest.raises(ValueError, match="costs and cost_matrix are two ways"):
        expected_cost([0, 1], [1, 0], MATRIX[:2, :2], costs=[[0, 1], [1, 0]])
    with pytest.raises(RuntimeError, match="enable_metadata_routing"):
        make_cost_scorer().set_score_request(costs=True)
