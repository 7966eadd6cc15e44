import numpy as np
import pandas as pd
import pytest
from scipy import sparse
from sklearn.model_selection import KFold
from sklearn.preprocessing import StandardScaler

from polymargin import SparseSVC, SparseSVCCV, sparse_path
from polymargin.coding import class_pairs
from polymargin.datasets import make_class_specific

QUICK = {"n_Cs": 8, "initial_Cs": [0.01, 0.1], "cv": 3}


@pytest.fixture(scope="module")
def sample():
    """Example 1 of Guo with ten noise variables, and a validation set."""
    train, validation = (make_class_specific(1, 120, n_noise=10, random_state=seed) for seed in (0, 1))
    return train.data, train.target, (validation.data, validation.target)


def test_a_path_holds_the_solutions_of_single_fits(sample):
    X, y, _ = sample
    path = sparse_path(X, y, n_Cs=6, eps=0.05, penalty="supnorm", adaptive=True)
    assert path.coefs.shape == (6, 4, 12)
    assert path.n_selected[0] == 0
    assert path.n_selected[-1] > 2
    assert np.all(np.diff(path.Cs) > 0)
    assert path.Cs[0] == pytest.approx(1 / path.largest_penalty_weight)
    for C, certificate in zip(path.Cs, path.certificates, strict=True):
        single = SparseSVC(C=C, penalty="supnorm", adaptive=True).fit(X, y)
        assert certificate.within(1e-8)
        assert certificate.primal == pytest.approx(single.certificate_.primal, rel=1e-7)


def test_a_path_takes_given_values_and_names(sample):
    X, y, _ = sample
    frame = pd.DataFrame(X, columns=[f"v{j}" for j in range(12)])
    path = sparse_path(frame, y, Cs=[1.0, 0.1])
    np.testing.assert_array_equal(path.Cs, [0.1, 1.0])
    assert path.feature_names.tolist() == frame.columns.tolist()
    for bad in ([], [0.0], [np.nan]):
        with pytest.raises(ValueError, match="Cs must"):
            sparse_path(X, y, Cs=bad)
    with pytest.raises(ValueError, match=r"penalty must be a norm near zero for a path, .* got 'l2'"):
        sparse_path(X, y, penalty="l2")


def test_rounds_find_the_variables_and_fuse_the_right_classes(sample):
    X, y, validation = sample
    model = SparseSVCCV(adaptive="rounds").fit(X, y, validation_set=validation)
    np.testing.assert_array_equal(model.selected_features_, [0, 1])
    fused = {tuple(pair) for pair in class_pairs(4)[model.fused_pairs_[:, 1]]}
    assert fused <= {(0, 1), (2, 3)}
    assert model.best_params_["round"] == 3
    assert model.certificate_.within(1e-8)
    assert np.isinf(model.weights_[:, 2:]).all()
    assert model.score(*validation) > 0.8


def test_auto_takes_the_candidate_of_lowest_cost_and_the_later_of_equals(sample):
    X, y, validation = sample
    model = SparseSVCCV(adaptive="auto", n_Cs=12).fit(X, y, validation_set=validation)
    results = pd.DataFrame(model.cv_results_)
    eligible = results[results["param_round"] >= 0]
    lowest = eligible.groupby("param_round")["cost"].min()
    assert -model.best_score_ == lowest.min() == pytest.approx(1 - model.score(*validation))
    assert model.best_params_["round"] == lowest.index[lowest == lowest.min()].max()
    chosen = eligible[
        (eligible["param_round"] == model.best_params_["round"]) & (eligible["cost"] == -model.best_score_)
    ]
    assert chosen["param_C"].min() == model.best_params_["C"]
    assert len(model.selected_features_) == chosen["n_selected"].iloc[0]


def test_without_weights_the_chosen_model_is_the_one_of_sparse_svc(sample):
    X, y, validation = sample
    model = SparseSVCCV(adaptive=False, penalty="l1", loss="lee").fit(X, y, validation_set=validation)
    scaler = StandardScaler().fit(X)
    single = SparseSVC(C=model.best_params_["C"], penalty="l1", loss="lee").fit(scaler.transform(X), y)
    assert single.certificate_.primal == pytest.approx(model.certificate_.primal, rel=1e-7)
    np.testing.assert_allclose(
        model.decision_function(X), X @ model.coef_.T + model.intercept_, rtol=1e-9, atol=1e-9
    )
    np.testing.assert_array_equal(model.coef_ == 0.0, single.coef_ == 0.0)
    assert model.best_params_["round"] == 0
    assert model.initial_C_ is None
    assert model.weights_ is None


def test_units_of_the_variables_do_not_matter(sample):
    X, y, _ = sample
    factors = 10.0 ** np.arange(-3, 9)
    model = SparseSVCCV(adaptive=True, **QUICK).fit(X, y)
    other = SparseSVCCV(adaptive=True, **QUICK).fit(X * factors + 1.0, y)
    np.testing.assert_array_equal(other.selected_features_, model.selected_features_)
    np.testing.assert_allclose(other.coef_ * factors, model.coef_, rtol=1e-5, atol=1e-8)


@pytest.mark.parametrize(
    "parameters", [{"penalty": "l2"}, {"penalty": "supnorm", "adaptive": True, "per_variable": True}]
)
def test_other_penalties_and_sparse_rows(sample, parameters):
    X, y, _ = sample
    X = np.where(np.abs(X) > 0.3, X, 0.0)
    model = SparseSVCCV(**parameters, **QUICK).fit(sparse.csr_array(X), y)
    assert model.certificate_.within(1e-6)
    assert model.score(sparse.csr_array(X), y) > 0.5
    if parameters["penalty"] == "l2":
        assert model.initial_C_ == model.best_params_["C"]
        assert len(model.selected_features_) == 12


def test_costs_and_weights_count_in_validation(sample):
    X, y, _ = sample
    weight = np.random.default_rng(0).integers(0, 3, len(y))
    costs = {(0, 1): 5.0}
    split = list(KFold(3).split(X))
    model = SparseSVCCV(adaptive=False, n_Cs=8, cv=split, cost_matrix=costs).fit(X, y, sample_weight=weight)
    repeated = np.repeat(np.arange(len(y)), weight)
    split = [tuple(np.flatnonzero(np.isin(repeated, part)) for part in parts) for parts in split]
    again = SparseSVCCV(adaptive=False, n_Cs=8, cv=split, cost_matrix=costs).fit(X[repeated], y[repeated])
    np.testing.assert_allclose(again.cv_results_["cost"], model.cv_results_["cost"], rtol=1e-12)
    np.testing.assert_allclose(again.coef_, model.coef_, atol=1e-9)


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"adaptive": "three"}, "adaptive must be 'auto', 'rounds', True or False"),
        ({"adaptive": 2}, "adaptive must be 'auto', 'rounds', True or False"),
        ({"penalty": "ridge"}, "penalty must be one of"),
        ({"loss": "hinge"}, "loss must be one of"),
        ({"n_Cs": 1}, "n_Cs must be"),
        ({"eps": 0.0}, "eps must be"),
        ({"initial_Cs": [-1.0]}, "initial_Cs must be"),
        ({"per_variable": "no"}, "per_variable must be True or False"),
    ],
)
def test_bad_parameters(sample, parameters, message):
    X, y, _ = sample
    with pytest.raises((ValueError, TypeError), match=message):
        SparseSVCCV(**parameters).fit(X, y)


def test_bad_validation_sets(sample):
    X, y, _ = sample
    with pytest.raises(ValueError, match=r"not among them: \[9\]"):
        SparseSVCCV().fit(X, y, validation_set=(X[:2], [0, 9]))
    with pytest.raises(ValueError, match="3 rows and 2 labels"):
        SparseSVCCV().fit(X, y, validation_set=(X[:3], y[:2]))
