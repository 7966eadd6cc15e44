"""RobustSearch: its utilities against folds by hand, its winner, bad input; conversions of costs and utilities."""

import numpy as np
import pandas as pd
import pytest
from sklearn.model_selection import GridSearchCV, StratifiedKFold

from polymargin import (
    MulticategorySVC,
    RobustSearch,
    RobustSVC,
    costs_to_utility,
    expected_cost,
    expected_utility,
    make_utility_scorer,
    utility_to_costs,
)
from polymargin.datasets import make_triangle

UTILITY = np.array([[1.0, 0.4, 0.0], [0.0, 1.0, 0.2], [0.1, 0.0, 1.0]])


@pytest.fixture(scope="module")
def sample():
    found = make_triangle(120, flip=0.1, random_state=0)
    return found.data, found.target


def test_convex_machines_agree_with_a_grid_search(sample):
    """Without truncation there are no local optima: the utilities are those of scikit-learn's folds."""
    X, y = sample
    machine = RobustSVC(utility=UTILITY, truncation=-np.inf, tol=1e-6)
    folds = StratifiedKFold(4)
    ours = RobustSearch(machine, Cs=[1.0, 0.01, 0.1], cv=folds, search_tol=None).fit(X, y)
    theirs = GridSearchCV(machine, {"C": [0.01, 0.1, 1.0]}, scoring=make_utility_scorer(UTILITY), cv=folds).fit(
        X, y
    )
    np.testing.assert_array_equal(ours.cv_results_["param_C"], theirs.cv_results_["param_C"])
    np.testing.assert_allclose(
        ours.cv_results_["mean_test_score"], theirs.cv_results_["mean_test_score"], atol=1e-9
    )
    np.testing.assert_allclose(ours.cv_results_["std_test_score"], theirs.cv_results_["std_test_score"], atol=1e-9)
    assert ours.best_params_["C"] == theirs.best_params_["C"]


def test_the_winner_is_a_fit_of_its_own(sample):
    X, y = sample
    weights = np.random.default_rng(0).integers(1, 3, len(y)).astype(float)
    search = RobustSearch(
        RobustSVC(kernel="rbf", utility=UTILITY), Cs=[0.1, 1.0], gammas=[0.1, 1.0], truncations=["auto", 0.0], cv=3
    ).fit(X, y, weights)
    assert len(search.cv_results_["params"]) == 8
    assert search.best_score_ == search.cv_results_["mean_test_score"].max()
    alone = RobustSVC(kernel="rbf", utility=UTILITY, **search.best_params_).fit(X, y, weights)
    np.testing.assert_array_equal(search.decision_function(X), alone.decision_function(X))
    assert search.certificate_ == alone.certificate_


def test_costs_of_rows_are_judged_by(sample):
    X, y = sample
    costs = np.array([[0.0, 1.0, 4.0], [2.0, 0.0, 1.0], [3.0, 0.5, 0.0]])
    by_row = RobustSearch(Cs=[0.01, 0.1], cv=3).fit(X, y, costs=costs[y])
    by_class = RobustSearch(RobustSVC(cost_matrix=costs), Cs=[0.01, 0.1], cv=3).fit(X, y)
    np.testing.assert_allclose(by_row.cv_results_["mean_test_score"], by_class.cv_results_["mean_test_score"])


@pytest.mark.parametrize(
    ("parameters", "error", "message"),
    [
        ({"estimator": MulticategorySVC()}, TypeError, "estimator must be a RobustSVC"),
        ({"Cs": [1.0, -1.0]}, ValueError, "Cs must"),
        ({"gammas": [1.0]}, ValueError, "gammas must be None with kernel='linear'"),
        ({"truncations": "auto"}, TypeError, "truncations must be a sequence"),
        ({"truncations": []}, ValueError, "truncations must hold at least one"),
        ({"truncations": [0.5]}, ValueError, "truncation must be"),
        ({"search_tol": 0.0}, ValueError, "search_tol must be"),
        ({"estimator": RobustSVC(conversion="linear")}, ValueError, "conversion must be one of"),
    ],
)
def test_bad_arguments(parameters, error, message, sample):
    with pytest.raises(error, match=message):
        RobustSearch(**parameters).fit(*sample)


def test_conversions_undo_each_other():
    rng = np.random.default_rng(1)
    costs = rng.integers(0, 9, (4, 4)) * (1.0 - np.eye(4))
    for conversion in ("rows", "paper"):
        np.testing.assert_array_equal(utility_to_costs(costs_to_utility(costs, conversion=conversion)), costs)
    np.testing.assert_array_equal(costs_to_utility(costs, conversion="paper"), costs.max() - costs)
    assert (costs_to_utility(costs).min(axis=1) == 0).all()
    frame = pd.DataFrame(costs, index=list("dbca"), columns=list("dbca"))
    np.testing.assert_array_equal(
        costs_to_utility(frame), costs_to_utility(costs)[np.ix_([3, 1, 2, 0], [3, 1, 2, 0])]
    )
    true, predicted = rng.integers(0, 4, (2, 50))
    lost = expected_cost(true, predicted, costs, labels=range(4))
    own = expected_utility(true, true, costs_to_utility(costs), labels=range(4))
    assert expected_utility(true, predicted, costs_to_utility(costs), labels=range(4)) == pytest.approx(own - lost)


def test_conversions_refuse():
    with pytest.raises(
        ValueError, match="largest for the own class to be converted to costs, got 2 for predicting 1"
    ):
        utility_to_costs([[1.0, 2.0], [0.0, 1.0]])
    with pytest.raises(ValueError, match="classes must be given where cost_matrix is no matrix"):
        costs_to_utility("ordinal")
    with pytest.raises(ValueError, match="conversion must be one of"):
        costs_to_utility([[0, 1], [1, 0]], conversion="ours")


def test_the_conversion_of_the_paper_reaches_the_machine(sample):
    X, y = sample
    costs = np.array([[0.0, 1.0, 4.0], [2.0, 0.0, 1.0], [3.0, 0.5, 0.0]])
    model = RobustSVC(cost_matrix=costs, conversion="paper", C=0.1).fit(X, y)
    np.testing.assert_array_equal(model.utility_, costs_to_utility(costs, conversion="paper"))
    same = RobustSVC(utility=4.0 - costs, C=0.1).fit(X, y)
    np.testing.assert_array_equal(model.decision_function(X), same.decision_function(X))
    by_row = RobustSVC(conversion="paper", C=0.1).fit(X, y, costs=costs[y])
    np.testing.assert_allclose(by_row.decision_function(X), same.decision_function(X), atol=1e-9)
