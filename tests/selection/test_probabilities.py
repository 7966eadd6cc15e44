"""Probabilities from left-out scores: near those of refits, in agreement with predict, and at no refit."""

import numpy as np
import pandas as pd
import pytest
from scipy import sparse
from sklearn import config_context
from sklearn.base import clone
from sklearn.datasets import load_iris, load_wine
from sklearn.ensemble import RandomForestClassifier
from sklearn.exceptions import UnsetMetadataPassedError
from sklearn.feature_selection import SelectKBest
from sklearn.linear_model import LogisticRegression, RidgeClassifier
from sklearn.metrics import log_loss
from sklearn.model_selection import GridSearchCV, LeaveOneOut
from sklearn.neighbors import NearestCentroid, RadiusNeighborsRegressor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from polymargin import (
    MarginSearch,
    MulticategorySVC,
    ProbabilityClassifier,
    ProximalSVC,
    SparseSVC,
    make_cost_scorer,
    persistence,
)
from polymargin.problems.hinge.catalogue import LOSSES
from polymargin.selection.left_out import can_leave_out, leave_out
from tests.simulate import blobs


@pytest.fixture(scope="module")
def data():
    X, labels = blobs(np.random.default_rng(0), 90, 4, 3)
    return X, np.array(["ash", "beech", "cedar"])[labels]


NEAR_REFITS = [
    MulticategorySVC(loss="lee", tol=1e-8),
    MulticategorySVC(loss="weston", tol=1e-8),
    MulticategorySVC(loss="crammer", tol=1e-8),
    MulticategorySVC(landmarks=20, random_state=0, tol=1e-8),
    ProximalSVC(),
    ProximalSVC(kernel="rbf", refine=False),
    ProximalSVC(kernel="rbf", balance=False),
]


SMOOTH = ("lee_squared", "weston_squared", "logistic")


def refused(self, *args, **kwargs):
    raise AssertionError("fitted once more")


@pytest.mark.parametrize("machine", NEAR_REFITS, ids=repr)
def test_one_fit_is_near_n_refits(machine, data):
    """The map itself is the same function of the scores, so its own smoothness is left out of the comparison."""
    X, y = data
    if machine.get_params().get("gamma") == "scale":
        machine = clone(machine).set_params(gamma=0.2)  # "scale" changes with the rows
    if machine.landmarks is not None:
        machine = clone(machine).set_params(landmarks=X[:20])
    once = ProbabilityClassifier(machine, method="vector").fit(X, y)
    refitted = ProbabilityClassifier(machine, method="vector", cv=LeaveOneOut()).fit(X, y)
    assert np.abs(once.predict_proba(X) - refitted.predict_proba(X)).mean() < 0.01


@pytest.mark.parametrize("machine", NEAR_REFITS, ids=repr)
def test_no_refit_is_made(machine, data, monkeypatch):
    X, y = data
    fitted = clone(machine).fit(X, y)
    monkeypatch.setattr(type(machine), "fit", refused)
    assert can_leave_out(fitted)
    assert leave_out(machine, fitted, X, y, None, None, fitted.classes_).scores.shape == (90, 3)


@pytest.mark.parametrize(
    "options", [{"gamma": 0.2}, {"landmarks": 20, "random_state": 0}], ids=["rbf", "landmarks"]
)
@pytest.mark.parametrize("loss", LOSSES)
def test_every_loss_is_fitted_once(loss, options, data, monkeypatch):
    X, y = data
    fits, fit = [], MulticategorySVC.fit
    monkeypatch.setattr(MulticategorySVC, "fit", lambda self, *args, **kwargs: fits.append(1) or fit(self, *args))
    model = ProbabilityClassifier(MulticategorySVC(loss=loss, **options)).fit(X[::2], y[::2])
    assert len(fits) == 1
    np.testing.assert_array_equal(model.predict(X), model.classes_[model.predict_proba(X).argmax(axis=1)])


@pytest.mark.parametrize("kernel", ["rbf", "linear"])
@pytest.mark.parametrize("loss", [loss for loss in LOSSES if loss not in ("lee", "weston", "crammer")])
def test_losses_of_any_kind_are_near_n_refits(loss, kernel, data):
    X, y = data[0][::2], data[1][::2]
    machine = MulticategorySVC(loss=loss, kernel=kernel, gamma=0.2, tol=1e-7)
    if kernel == "linear" and loss not in SMOOTH:
        assert machine.fit(X, y)._left_out_scores(X, y) is None
        return
    once = ProbabilityClassifier(machine, method="vector").fit(X, y)
    refitted = ProbabilityClassifier(machine, method="vector", cv=LeaveOneOut()).fit(X, y)
    by_row = [model.left_out_.scores[np.argsort(model.left_out_.rows)] for model in (once, refitted)]
    moved = np.abs(once.estimator_.decision_function(X) - by_row[1]).mean()
    assert np.abs(by_row[0] - by_row[1]).mean() < 0.5 * moved
    assert np.abs(once.predict_proba(X) - refitted.predict_proba(X)).mean() < 0.03


@pytest.mark.parametrize("kernel", ["rbf", "linear"])
@pytest.mark.parametrize("loss", ["lee", "weston", "logistic", "weston_squared"])
def test_what_a_fit_hands_on_is_what_it_would_state_again(kernel, loss, data):
    X, y = data
    machine = MulticategorySVC(loss=loss, kernel=kernel)
    model = ProbabilityClassifier(make_pipeline(StandardScaler(), machine)).fit(X, y)
    alone = make_pipeline(StandardScaler(), machine).fit(X, y)
    again = leave_out(alone, alone, X, y, None, None, alone.classes_)
    np.testing.assert_allclose(model.left_out_.scores, again.scores, atol=1e-3)
    assert {"_hands_on", "_solved_rows"}.isdisjoint(vars(model.estimator_[-1]))


def test_linear_machines_are_left_out_by_folds_unless_features_are_many(data):
    X, y = data
    few = ProbabilityClassifier(MulticategorySVC(kernel="linear"))
    folds = few.fit(X, y).left_out_.scores
    frozen = MulticategorySVC(kernel="linear").fit(X, y)
    assert frozen._left_out_scores(X, y) is None
    assert folds.shape == (90, 3)
    wide = np.hstack([X, np.random.default_rng(0).normal(size=(90, 100))])
    assert frozen.fit(wide, y)._left_out_scores(wide, y).shape == (90, 3)


def test_a_pipeline_and_a_search_need_no_refit_unless_a_step_uses_the_classes(data):
    X, y = data
    scaled = make_pipeline(StandardScaler(), MulticategorySVC())
    inside = ProbabilityClassifier(scaled).fit(X, y)
    outside = ProbabilityClassifier(MulticategorySVC()).fit(StandardScaler().fit_transform(X), y)
    np.testing.assert_array_equal(inside.left_out_.scores, outside.left_out_.scores)
    assert can_leave_out(MarginSearch(Cs=[1.0], gammas=[0.1]).fit(X, y))
    assert not can_leave_out(make_pipeline(SelectKBest(k=2), MulticategorySVC()).fit(X, y))
    chosen = ProbabilityClassifier(make_pipeline(SelectKBest(k=2), MulticategorySVC())).fit(X, y)
    assert chosen.predict_proba(X).shape == (90, 3)


@pytest.mark.parametrize("method", ["auto", "temperature", "vector", "matrix", "sigmoid", "isotonic"])
@pytest.mark.parametrize("machine", [MulticategorySVC(tol=1e-9), ProximalSVC(), LogisticRegression()], ids=repr)
def test_weights_are_repetition(machine, method, data):
    X, y = data
    times = np.random.default_rng(1).integers(0, 4, len(y))
    weighted = ProbabilityClassifier(machine, method=method).fit(X, y, sample_weight=times)
    repeated = ProbabilityClassifier(machine, method=method).fit(X.repeat(times, axis=0), y.repeat(times))
    assert weighted.method_ == repeated.method_
    np.testing.assert_allclose(weighted.predict_proba(X), repeated.predict_proba(X), atol=1e-4)


@pytest.mark.parametrize("method", ["auto", "temperature", "vector", "matrix", "sigmoid", "isotonic"])
def test_predict_is_the_most_probable_class_and_with_costs_the_cheapest(method, data):
    X, y = data
    model = ProbabilityClassifier(MulticategorySVC(), method=method).fit(X, y)
    P = model.predict_proba(X)
    np.testing.assert_array_equal(model.predict(X), model.classes_[P.argmax(axis=1)])
    np.testing.assert_allclose(np.exp(model.predict_log_proba(X)), P, atol=1e-12)
    costs = {("ash", "beech"): 20.0, ("cedar", "ash"): 7.0}
    matrix = np.array([[0.0, 20.0, 1.0], [1.0, 0.0, 1.0], [7.0, 1.0, 0.0]])
    cheapest = model.classes_[(P @ matrix).argmin(axis=1)]
    np.testing.assert_array_equal(model.predict(X, cost_matrix=costs), cheapest)
    frame = pd.DataFrame(matrix, index=model.classes_, columns=model.classes_)
    given = ProbabilityClassifier(MulticategorySVC(), method=method, cost_matrix=frame).fit(X, y)
    np.testing.assert_array_equal(given.predict(X), cheapest)
    np.testing.assert_array_equal(given.decision_function(X).argmax(axis=1), (P @ matrix).argmin(axis=1))


def test_costs_of_rows_are_passed_on(data):
    X, y = data
    classes, labels = np.unique(y, return_inverse=True)
    matrix = np.array([[0.0, 3.0, 1.0], [1.0, 0.0, 1.0], [2.0, 1.0, 0.0]])
    by_class = ProbabilityClassifier(MulticategorySVC(cost_matrix=matrix)).fit(X, y)
    by_row = ProbabilityClassifier(MulticategorySVC()).fit(X, y, costs=matrix[labels])
    np.testing.assert_allclose(by_row.predict_proba(X), by_class.predict_proba(X), atol=1e-9)
    frame = pd.DataFrame(matrix[labels], columns=classes)[classes[::-1]]
    named = ProbabilityClassifier(MulticategorySVC()).fit(X, y, costs=frame)
    np.testing.assert_array_equal(named.predict_proba(X), by_row.predict_proba(X))
    amounts = np.random.default_rng(0).lognormal(size=len(y))[:, None] * matrix[labels]
    near = ProbabilityClassifier(MulticategorySVC()).fit(X, y, costs=amounts)
    refitted = ProbabilityClassifier(MulticategorySVC(), cv=LeaveOneOut()).fit(X, y, costs=amounts)
    assert np.abs(near.predict_proba(X) - refitted.predict_proba(X)).mean() < 0.02
    assert np.abs(near.predict_proba(X) - by_row.predict_proba(X)).max() > 0.01


def test_equal_rows_of_other_costs_are_left_out_together(data):
    X, y = data
    labels = np.unique(y, return_inverse=True)[1]
    costs = 1.0 - np.eye(3)[labels]
    twice, labels_twice = np.vstack([X, X]), np.concatenate([y, y])
    model = ProbabilityClassifier(MulticategorySVC()).fit(twice, labels_twice, costs=np.vstack([costs, 2 * costs]))
    scores = model.left_out_.scores[np.argsort(model.left_out_.rows)]
    np.testing.assert_array_equal(scores[: len(y)], scores[len(y) :])


def test_costs_of_rows_with_weights_pipelines_and_searches(data):
    X, y = data
    labels = np.unique(y, return_inverse=True)[1]
    costs = np.random.default_rng(2).lognormal(size=(len(y), 3)) * (1.0 - np.eye(3)[labels])
    weights = np.r_[np.zeros(5), np.ones(len(y) - 5)]
    broken = costs.copy()
    broken[0] = np.nan  # a row of weight zero takes no part
    weighted = ProbabilityClassifier(MulticategorySVC()).fit(X, y, sample_weight=weights, costs=broken)
    without = ProbabilityClassifier(MulticategorySVC()).fit(X[5:], y[5:], costs=costs[5:])
    np.testing.assert_allclose(weighted.predict_proba(X), without.predict_proba(X), atol=1e-9)
    with config_context(enable_metadata_routing=True):
        scaled = make_pipeline(StandardScaler(), MulticategorySVC().set_fit_request(costs=True))
        inside = ProbabilityClassifier(scaled).fit(X, y, costs=costs)
        Z = StandardScaler().fit_transform(X)
        outside = ProbabilityClassifier(MulticategorySVC()).fit(Z, y, costs=costs)
        np.testing.assert_allclose(inside.predict_proba(X), outside.predict_proba(Z), atol=1e-12)
        model = ProbabilityClassifier(MulticategorySVC()).set_fit_request(costs=True)
        scorer = make_cost_scorer().set_score_request(costs=True)
        grid = {"estimator__C": [0.01, 1.0]}
        search = GridSearchCV(model, grid, scoring=scorer, cv=3).fit(X, y, costs=costs)
        assert search.best_score_ <= 0.0
        with pytest.raises(UnsetMetadataPassedError, match="costs"):
            GridSearchCV(ProbabilityClassifier(MulticategorySVC()), grid, cv=3).fit(X, y, costs=costs)


@pytest.mark.parametrize(
    ("machine", "change", "error", "message"),
    [
        (ProximalSVC(), {}, TypeError, "costs must be None with ProximalSVC"),
        (LogisticRegression(), {}, TypeError, "costs must be None with LogisticRegression"),
        (MulticategorySVC(), {7: np.nan}, ValueError, "in row 7"),
        (MulticategorySVC(), {3: -1.0}, ValueError, "in row 3"),
        (MulticategorySVC(), {4: 1.0}, ValueError, "zero for the own class of a row, got 1 in row 4"),
    ],
)
def test_bad_costs_of_rows(machine, change, error, message, data):
    X, y = data
    costs = 1.0 - np.eye(3)[np.unique(y, return_inverse=True)[1]]
    for row, value in change.items():
        costs[row] = value
    with pytest.raises(error, match=message):
        ProbabilityClassifier(machine).fit(X, y, costs=costs)


def test_a_temperature_never_changes_what_is_predicted():
    for X, y in (load_iris(return_X_y=True), load_wine(return_X_y=True)):
        machine = make_pipeline(StandardScaler(), MulticategorySVC(C=4.0)).fit(X, y)
        model = ProbabilityClassifier(machine, method="temperature").fit(X, y)
        np.testing.assert_array_equal(model.predict(X), machine.predict(X))


def test_labels_need_not_be_positions(data):
    """`CalibratedClassifierCV(method="temperature")` gives equal probabilities for labels such as these."""
    X, y = data
    labels = np.select([y == "ash", y == "beech"], [10, 20], 70)
    P = ProbabilityClassifier(MulticategorySVC(), method="temperature").fit(X, labels).predict_proba(X)
    others = ProbabilityClassifier(MulticategorySVC(), method="temperature").fit(X, y).predict_proba(X)
    np.testing.assert_array_equal(P, others)
    assert log_loss(labels, P) < 0.8 * np.log(3)


def test_forms_of_rows_mean_nothing(data):
    X, y = data
    P = ProbabilityClassifier(MulticategorySVC(tol=1e-9)).fit(X, y).predict_proba(X)
    frame = pd.DataFrame(X, columns=list("abcd"))
    model = ProbabilityClassifier(MulticategorySVC(tol=1e-9)).fit(frame, pd.Series(y))
    assert model.feature_names_in_.tolist() == list("abcd")
    np.testing.assert_allclose(model.predict_proba(frame), P, atol=1e-6)
    rows = sparse.csr_array(X)
    np.testing.assert_allclose(
        ProbabilityClassifier(MulticategorySVC(tol=1e-9)).fit(rows, y).predict_proba(rows), P, atol=1e-6
    )


@pytest.mark.parametrize("machine", [MulticategorySVC(kernel="precomputed"), ProximalSVC(kernel="precomputed")])
def test_precomputed_kernels_also_with_rows_of_no_weight(machine, data):
    X, y = data
    weight = np.ones(len(y))
    weight[::7] = 0.0
    kernel = X @ X.T
    model = ProbabilityClassifier(machine, method="vector").fit(kernel, y, sample_weight=weight)
    kept = np.flatnonzero(weight)
    few = ProbabilityClassifier(machine, method="vector").fit(kernel[np.ix_(kept, kept)], y[kept])
    np.testing.assert_allclose(model.predict_proba(kernel), few.predict_proba(kernel[:, kept]), atol=1e-4)


@pytest.mark.parametrize(
    "machine",
    [MulticategorySVC(loss="logistic"), SparseSVC(), RandomForestClassifier(10, random_state=0)],
    ids=repr,
)
def test_other_classifiers_are_refitted_on_folds(machine, data):
    X, y = data
    model = ProbabilityClassifier(machine).fit(X, y)
    assert log_loss(y, model.predict_proba(X)) < 0.8 * np.log(3)
    assert sorted(model.left_out_.rows) == list(range(90))


def test_a_class_without_weight_is_none_though_other_classifiers_score_it(data):
    X, y = data
    *seen, unseen = np.unique(y)
    weights = np.where(y == unseen, 0.0, 1.0)
    for machine in (RidgeClassifier(), LogisticRegression()):
        model = ProbabilityClassifier(machine, method="temperature").fit(X, y, sample_weight=weights)
        assert list(model.classes_) == seen
        np.testing.assert_allclose(model.predict_proba(X).sum(axis=1), 1.0)


def test_saving(data, tmp_path):
    X, y = data
    for method in ("matrix", "sigmoid", "isotonic"):
        model = ProbabilityClassifier(MulticategorySVC(), method=method, cost_matrix={("ash", "beech"): 3.0}).fit(
            X, y
        )
        persistence.save(model, tmp_path / "model.skops")
        again = persistence.load(tmp_path / "model.skops").model
        np.testing.assert_array_equal(again.predict_proba(X), model.predict_proba(X))
        np.testing.assert_array_equal(again.predict(X), model.predict(X))


def test_bad_input(data):
    X, y = data
    model = ProbabilityClassifier(MulticategorySVC())
    with pytest.raises(ValueError, match=r"method must be one of .*'matrix'.* got 'best'"):
        clone(model).set_params(method="best").fit(X, y)
    with pytest.raises(TypeError, match="decision_function or predict_proba, got RadiusNeighborsRegressor"):
        ProbabilityClassifier(RadiusNeighborsRegressor()).fit(X, y)
    lonely = np.where(np.arange(90) == 5, "oak", y)
    with pytest.raises(ValueError, match=r"two distinct rows of every class.* got 1 of class 'oak'"):
        clone(model).fit(X, lonely)
    twice = np.where(np.arange(90) < 2, "oak", y)
    with pytest.raises(ValueError, match="got 1 of class 'oak'"):
        clone(model).fit(np.vstack([X[[0, 0]], X[2:]]), twice)
    with pytest.raises(ValueError, match="got 1 of class 'oak'"):
        clone(model).fit(X, twice, sample_weight=np.where(np.arange(90) == 1, 0.0, 1.0))
    with pytest.raises(ValueError, match="at least one non-zero"):
        clone(model).fit(X, y, sample_weight=np.zeros(90))
    with pytest.raises(ValueError, match=r"cost_matrix must have shape \(3, 3\)"):
        clone(model).set_params(cost_matrix=np.ones((2, 2))).fit(X, y)
    fitted = clone(model).fit(X, y)
    with pytest.raises(ValueError, match=r"cost_matrix must have shape \(3, 3\)"):
        fitted.predict(X, cost_matrix=np.zeros((4, 4)))
    by_class = [(np.flatnonzero(y != "ash"), np.flatnonzero(y == "ash"))]
    with pytest.raises(ValueError, match="class ash is missing"):
        clone(model).set_params(cv=by_class).fit(X, y)


def test_nothing_is_half_fitted_after_an_error(data):
    X, y = data
    model = ProbabilityClassifier(MulticategorySVC())
    with pytest.raises(ValueError, match="class 'oak'"):
        model.fit(X, np.where(np.arange(90) == 5, "oak", y))
    assert not [name for name in vars(model) if name.endswith("_")]
    assert ProbabilityClassifier(NearestCentroid()).fit(X, y).predict_proba(X).shape == (90, 3)
