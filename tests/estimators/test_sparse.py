import sys

import numpy as np
import pandas as pd
import pytest
from scipy import sparse
from sklearn.datasets import load_iris
from sklearn.feature_selection import SelectFromModel
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from polymargin import SparseSVC
from polymargin.coding import class_pairs
from polymargin.gram import FeatureGram
from polymargin.problems.hinge import HingeProblem, crammer_singer, lee_lin_wahba, weston_watkins
from polymargin.problems.penalties import FusionPenalty, LassoPenalty, SupnormPenalty
from polymargin.problems.sparse import SparsePoint, SparseProblem
from tests.oracles import hinge_optimum
from tests.simulate import random_costs

PENALTIES = ("fusion", "supnorm", "l1")
LOSSES = ("weston", "lee", "crammer")


@pytest.fixture
def data():
    """Variable 0 separates class 0 from the rest, variable 1 class 2; four are noise."""
    rng = np.random.default_rng(0)
    y = np.repeat([0, 1, 2, 3], [20, 15, 15, 10])
    X = rng.normal(size=(60, 6))
    X[:, 0] += 3.0 * (y == 0)
    X[:, 1] += 3.0 * (y == 2)
    return X, y


def restated(model, X, y, costs=None, weight=None):
    """State the problem of a fitted model anew, from its parameters."""
    k = len(model.classes_)
    weight = np.ones(len(y)) if weight is None else weight
    upper = weight[:, None] * (1.0 - np.eye(k) if costs is None else costs)[y]
    losses = {
        "weston": lambda: weston_watkins(y, upper),
        "lee": lambda: lee_lin_wahba(y, upper),
        "crammer": lambda: crammer_singer(y, weight, k),
    }[model.loss]()
    tau = model.weights_
    if model.penalty == "fusion":
        penalty = FusionPenalty(tau)
    else:
        ones = np.ones((k, X.shape[1]))
        penalty = {"l1": LassoPenalty, "supnorm": SupnormPenalty}[model.penalty](ones if tau is None else tau)
    return SparseProblem(X, losses, penalty, model.C)


@pytest.mark.parametrize("adaptive", [False, True, "per_variable"])
@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("penalty", PENALTIES)
def test_the_certificate_can_be_recomputed_from_what_is_stored(data, penalty, loss, adaptive):
    X, y = data
    X, y = np.vstack([X, X[:7]]), np.append(y, y[:7])
    rng = np.random.default_rng(1)
    costs = None if loss == "crammer" else random_costs(rng, 4)
    weight = rng.uniform(0.5, 2.0, size=len(y))
    model = SparseSVC(C=0.7, penalty=penalty, loss=loss, adaptive=adaptive, cost_matrix=costs)
    model.fit(X, y, sample_weight=weight)
    certificate = restated(model, X, y, costs, weight).certify(
        SparsePoint(model.coef_, model.intercept_, model.dual_coef_.T / model.C)
    )
    assert certificate.within(1e-8)
    assert certificate.primal == pytest.approx(model.certificate_.primal, rel=1e-12)
    assert certificate.dual == pytest.approx(model.certificate_.dual, rel=1e-12)


def test_zeros_and_ties_are_exact(data):
    X, y = data
    model = SparseSVC(C=0.05).fit(X, y)
    assert set(model.selected_features_) == {0, 1}
    assert np.all(model.coef_[:, 2:] == 0.0)
    assert model.coef_[1, 0] == model.coef_[2, 0] == model.coef_[3, 0] != model.coef_[0, 0]
    assert model.coef_[0, 1] == model.coef_[1, 1] == model.coef_[3, 1] != model.coef_[2, 1]
    pairs = class_pairs(4).tolist()
    fused = model.fused_pairs_
    assert fused.shape == (6, 6)
    for index, (a, b) in enumerate(pairs):
        np.testing.assert_array_equal(fused[index], model.coef_[a] == model.coef_[b])


def test_what_a_variable_separates_in_words_and_numbers(data):
    X, y = data
    names = np.array(["EWS", "BL", "RMS", "NB"])
    frame = pd.DataFrame(X, columns=[f"gene{j}" for j in range(6)])
    model = SparseSVC(C=0.05).fit(frame, names[y])
    table = model.separations()
    assert table.columns.tolist() == ["feature", "partition", "coef_BL", "coef_EWS", "coef_NB", "coef_RMS"]
    np.testing.assert_array_equal(
        table.filter(like="coef_"), model.coef_[:, [int(name[-1]) for name in table["feature"]]].T
    )
    assert table.set_index("feature")["partition"].to_dict() == {
        "gene0": "EWS > BL = NB = RMS",
        "gene1": "RMS > BL = EWS = NB",
    }
    difference = model.pairwise_coef("EWS", "RMS")
    np.testing.assert_array_equal(difference, model.coef_[1] - model.coef_[3])
    assert not model.pairwise_coef("BL", "NB").any()
    with pytest.raises(ValueError, match="'XYZ' is not among the classes"):
        model.pairwise_coef("XYZ", "BL")


def test_classes_may_be_called_like_the_columns_of_the_table(data):
    X, y = data
    model = SparseSVC(C=0.05).fit(X, np.array(["feature", "partition", "coef_feature", "c"])[y])
    table = model.separations()
    assert table.columns.is_unique
    assert set(table["feature"]) == {0, 1}
    np.testing.assert_array_equal(table["coef_feature"], model.coef_[2, table["feature"]])


def test_without_pandas_the_table_is_a_list_of_rows(data, monkeypatch):
    model = SparseSVC(C=0.05).fit(*data)
    expected = model.separations().to_dict("records")
    monkeypatch.setitem(sys.modules, "pandas", None)
    assert model.separations() == expected


def test_select_from_model_and_pipelines(data):
    X, y = data
    pipeline = make_pipeline(
        StandardScaler(), SelectFromModel(SparseSVC(C=0.05), threshold=1e-12), LogisticRegression()
    )
    pipeline.fit(X, y)
    np.testing.assert_array_equal(pipeline[1].get_support(indices=True), [0, 1])


@pytest.mark.parametrize("penalty", PENALTIES)
def test_two_classes_are_one_machine_for_every_penalty(penalty):
    """At k = 2 w_1 = -w_0: l1 is 2 |w|, sup-norm |w| and fusion 2 |w|, and every loss the same hinge."""
    X, y = load_iris(return_X_y=True)
    X, y = X[50:], y[50:]
    scale = {"fusion": 1.0, "l1": 1.0, "supnorm": 0.5}[penalty]
    reference = SparseSVC(C=1.0).fit(X, y)
    model = SparseSVC(C=scale, penalty=penalty, loss="crammer").fit(X, y)
    assert model.certificate_.primal / scale == pytest.approx(reference.certificate_.primal, rel=1e-8)


def test_sparse_input_is_the_same_fit(data):
    X, y = data
    X = np.where(np.abs(X) > 0.5, X, 0.0)
    dense = SparseSVC(adaptive=True).fit(X, y)
    as_sparse = SparseSVC(adaptive=True).fit(sparse.csr_array(X), y)
    assert as_sparse.certificate_.primal == pytest.approx(dense.certificate_.primal, rel=1e-6)
    np.testing.assert_array_equal(as_sparse.predict(sparse.csr_array(X)), dense.predict(X))


@pytest.mark.parametrize("shape", [(40, 6), (15, 30)])
@pytest.mark.parametrize("loss", LOSSES)
def test_l2_is_twice_the_hinge_machine_with_half_of_C(loss, shape):
    rng = np.random.default_rng(2)
    X = rng.normal(size=shape)
    y = np.arange(shape[0]) % 3
    model = SparseSVC(C=0.8, penalty="l2", loss=loss).fit(X, y)
    upper = 0.4 * (1.0 - np.eye(3))[y]
    losses = {
        "weston": lambda: weston_watkins(y, upper),
        "lee": lambda: lee_lin_wahba(y, upper),
        "crammer": lambda: crammer_singer(y, np.full(len(y), 0.4), 3),
    }[loss]()
    assert model.certificate_.primal == pytest.approx(
        2 * hinge_optimum(HingeProblem(FeatureGram(X), losses)), rel=1e-7
    )
    half_norm = np.sum(model.coef_**2) / 2
    scores = X @ model.coef_.T + model.intercept_
    assert 2 * (half_norm + losses.value(scores)) == pytest.approx(model.certificate_.primal, rel=1e-9)


def test_adaptive_weights_come_from_the_l2_fit_and_then_from_the_rounds(data):
    X, y = data
    initial = SparseSVC(C=2.0, penalty="l2", tol=1e-6).fit(X, y).coef_
    first = SparseSVC(adaptive=True, adaptive_power=2.0, initial_C=2.0).fit(X, y)
    pairs = class_pairs(4)
    differences = np.abs(initial[pairs[:, 0]] - initial[pairs[:, 1]])
    np.testing.assert_allclose(first.weights_, differences**-2.0, rtol=1e-3)
    second = SparseSVC(adaptive=True, adaptive_power=2.0, initial_C=2.0, adaptive_rounds=2).fit(X, y)
    differences = np.abs(first.coef_[pairs[:, 0]] - first.coef_[pairs[:, 1]])
    np.testing.assert_allclose(
        second.weights_, np.maximum(differences, 1e-6 * differences.max()) ** -2.0, rtol=1e-6
    )
    given = SparseSVC(adaptive=first.weights_).fit(X, y)
    np.testing.assert_array_equal(given.coef_, first.coef_)


def test_constant_variables_have_coefficient_zero(data):
    X, y = data
    X = np.hstack([X, np.full((60, 1), 1e3), np.zeros((60, 1))])
    for penalty in PENALTIES:
        assert not SparseSVC(C=10.0, penalty=penalty).fit(X, y).coef_[:, 6:].any()


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"C": 0.0}, "C must be"),
        ({"initial_C": -1.0}, "initial_C must be"),
        ({"penalty": "l0"}, "penalty must be one of 'fusion'"),
        ({"loss": "hinge"}, "loss must be one of 'weston'"),
        ({"adaptive": "yes"}, "adaptive must be True, False, 'per_variable' or an array"),
        ({"adaptive": None}, "adaptive must be True, False, 'per_variable' or an array"),
        ({"adaptive": np.ones((4, 6))}, r"must have shape \(6, 6\), got \(4, 6\)"),
        ({"adaptive": np.zeros((6, 6))}, "weights must be positive and finite, got 0.0"),
        ({"adaptive": np.full((6, 6), np.nan)}, "weights must be positive and finite, got nan"),
        ({"adaptive": True, "penalty": "l2"}, "adaptive must be False with penalty='l2'"),
        ({"adaptive_power": 0.0}, "adaptive_power must be"),
        ({"adaptive_rounds": 0}, "adaptive_rounds must be"),
        ({"loss": "crammer", "cost_matrix": {(0, 1): 2.0}}, "cost_matrix must have equal costs in each row"),
        ({"tol": 0.0}, "tol must be"),
    ],
)
def test_bad_parameters(data, parameters, message):
    with pytest.raises((ValueError, TypeError), match=message):
        SparseSVC(**parameters).fit(*data)


@pytest.mark.parametrize("k", [20, 26])
def test_adaptive_fusion_of_many_classes(k):
    """Classes come in two halves, which the first variable separates; nothing else tells them apart."""
    rng = np.random.default_rng(0)
    y = np.arange(4 * k) % k
    X = rng.normal(scale=0.1, size=(4 * k, 5))
    X[:, 0] += np.where(y < k // 2, -1.0, 1.0)
    model = SparseSVC(C=0.3, adaptive=True).fit(X, y)
    assert model.certificate_.within(model.tol)
    halves = model.coef_[:, 0]
    assert len(np.unique(halves[: k // 2])) == len(np.unique(halves[k // 2 :])) == 1
    assert halves[0] < halves[-1]
