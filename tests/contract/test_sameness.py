"""The same names mean the same things, over all estimators and all searches."""

import inspect
import re

import numpy as np
import pytest
from sklearn.datasets import load_iris

from polymargin import (
    BudgetSearch,
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
)

ESTIMATORS = [MulticategorySVC, ProximalSVC, SparseSVC, SharedStructureSVC, TraceNormSVC, RobustSVC]
KERNEL_MACHINES = [
    MulticategorySVC(kernel="rbf"),
    MulticategorySVC(kernel="rbf", landmarks=9, random_state=0),
    RobustSVC(kernel="rbf"),
    ProximalSVC(kernel="rbf", landmarks=9, random_state=0),
    SharedStructureSVC(kernel="rbf", landmarks=9, random_state=0),
    TraceNormSVC(kernel="rbf", landmarks=9, random_state=0),
]
SEARCHES = [
    BudgetSearch(MulticategorySVC(), {"C": [0.01, 0.1, 1.0]}, budget=10_000, first_rows=20, random_state=0),
    BudgetSearch(ProximalSVC(), {"C": [0.01, 1.0], "kernel": ["rbf"]}, budget=300, random_state=0),
    MarginSearch(Cs=[0.1, 1.0], gammas=[0.1, 1.0]),
    MarginSearch(MulticategorySVC(kernel="linear"), Cs=[0.1, 1.0], criterion=3),
    ProximalSVCCV(Cs=[1.0, 8.0]),
    ProximalSVCCV(ProximalSVC(kernel="rbf", landmarks=9, random_state=0), Cs=[1.0, 8.0], gammas=[0.1, 1.0]),
    ProximalSVCCV(Cs=[1.0, 8.0], criterion=3),
    SharedStructureSearch(Cs=[0.1, 1.0], penalty_fractions=[1e-3, 1e-1], cv=3),
    SparseSVCCV(n_Cs=4, cv=2, adaptive=False),
    SparseSVCCV(n_Cs=4, cv=2, adaptive="auto", penalty="l1"),
    SparseSVCCV(cv=2, penalty="l2"),
]


@pytest.fixture(scope="module")
def data():
    X, y = load_iris(return_X_y=True)
    rows = np.r_[0:20, 50:70, 100:120]
    return X[rows], np.array(["setosa", "versicolor", "virginica"])[y[rows]]


@pytest.fixture(scope="module", params=SEARCHES, ids=lambda search: type(search).__name__)
def search(request, data):
    return request.param.fit(*data)


def test_every_search_tells_what_it_tried_in_one_form(search):
    results, m = search.cv_results_, len(search.cv_results_["params"])
    names = set(search.best_params_)
    assert {"params", "mean_test_score", "rank_test_score"} | {f"param_{name}" for name in names} <= set(results)
    assert "C" in names
    for name, column in results.items():
        assert len(column) == m, name
    for at, params in enumerate(results["params"]):
        assert set(params) == names
        assert all(results[f"param_{name}"][at] == value for name, value in params.items())
    assert sorted(results["rank_test_score"]) == list(range(1, m + 1))
    assert not hasattr(search, "results_")


def test_every_search_tells_what_it_chose_in_one_form(search, data):
    X, y = data
    results, best = search.cv_results_, search.best_index_
    assert results["rank_test_score"][best] == 1
    assert search.best_params_ == results["params"][best]
    assert search.best_score_ == results["mean_test_score"][best]
    assert search.best_estimator_.get_params()["C"] == search.best_params_["C"]
    np.testing.assert_array_equal(search.predict(X), search.best_estimator_.predict(X))
    np.testing.assert_array_equal(search.decision_function(X), search.best_estimator_.decision_function(X))
    for name in ("certificate_", "converged_", "n_iter_", "solver_", "status_", "trace_", "n_features_in_"):
        assert getattr(search, name) == getattr(search.best_estimator_, name), name
    np.testing.assert_array_equal(search.classes_, np.unique(y))


def test_a_score_is_the_better_the_greater_it_is(search):
    results = search.cv_results_
    losses = [name for name in ("criterion", "cost") if name in results]
    if losses:  # a search with a criterion may know other costs beside it
        np.testing.assert_array_equal(results["mean_test_score"], -results[losses[0]])
    if "n_rows" in results:  # else all were judged on as many
        judged_alike = results["n_rows"] == results["n_rows"][search.best_index_]
        assert results["rank_test_score"][judged_alike].max() == judged_alike.sum()
    elif "param_round" not in results:  # else some models only give weights
        assert search.best_score_ == results["mean_test_score"].max()


@pytest.mark.parametrize("machine", KERNEL_MACHINES, ids=lambda machine: type(machine).__name__)
def test_dual_coef_has_one_row_per_class_and_one_column_per_row_or_landmark(machine, data):
    machine.fit(*data)
    columns = 9 if machine.landmarks is not None else len(machine.support_)
    assert machine.dual_coef_.shape == (3, columns)


def test_dual_coef_of_sparse_machines_too(data):
    X, y = data
    assert SparseSVC(C=0.1).fit(X, y).dual_coef_.shape == (3, len(X))
    assert SparseSVCCV(n_Cs=4, cv=2).fit(X, y).best_estimator_.dual_coef_.shape == (3, len(X))


@pytest.mark.parametrize("estimator", [*ESTIMATORS, SparseSVCCV])
def test_tol_is_a_relative_gap_with_the_default_that_the_docstring_gives_a_reason_for(estimator):
    default = inspect.signature(estimator).parameters["tol"].default
    text = re.search(r"    tol : float, default=(\S+)\n((?:        .*\n)+)", estimator.__doc__)
    assert float(text[1]) == default
    assert "gap" in text[2]
    assert default == 1e-4 or re.search("[;:,] (?!and)", text[2])
