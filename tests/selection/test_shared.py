"""The search over both penalties, and the path of the trace norm."""

import numpy as np
import pytest
from sklearn.model_selection import StratifiedKFold

from polymargin import SharedStructureSearch, SharedStructureSVC, TraceNormSVC, trace_norm_path
from tests.simulate import blobs


@pytest.fixture
def data():
    return blobs(np.random.default_rng(0), 90, 4, 3, spread=1.2)


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"scheme": "ovo", "n_base": 2},
        {"kernel": "rbf", "gamma": 0.3},
        {"class_weight": "balanced", "constraint": "psd"},
        {"formulation": "fast"},
    ],
)
def test_scores_are_those_of_fitting_every_point_by_itself(data, options):
    X, y = data
    folds = list(StratifiedKFold(3).split(X, y))
    Cs, penalties = [0.1, 1.0], [0.01, 0.5]  # none so strong that scores are rounding noise
    weights = np.random.default_rng(1).uniform(0.5, 2, len(y))
    machine = SharedStructureSVC(**options)
    search = SharedStructureSearch(machine, Cs=Cs, relation_penalties=penalties, cv=folds).fit(X, y, weights)
    for C, penalty, accuracy in zip(
        *(search.cv_results_[name] for name in ("param_C", "param_relation_penalty", "mean_test_score")),
        strict=True,
    ):
        hits = 0.0
        for train, test in folds:
            model = SharedStructureSVC(C, penalty, **options).fit(X[train], y[train], weights[train])
            hits += weights[test] @ (model.predict(X[test]) == y[test])
        assert accuracy == pytest.approx(hits / weights.sum(), abs=1e-12)
    assert search.best_score_ == search.cv_results_["mean_test_score"].max()
    by_hand = SharedStructureSVC(**search.best_params_, **options).fit(X, y, weights)
    np.testing.assert_allclose(search.decision_function(X), by_hand.decision_function(X), atol=1e-10)


def test_penalties_are_fractions_of_nu_max(data):
    X, y = data
    search = SharedStructureSearch(Cs=[0.1, 1.0], penalty_fractions=[0.5, 1e-3], cv=2).fit(X, y)
    for C, penalty, fraction in zip(
        *(search.cv_results_[name] for name in ("param_C", "param_relation_penalty", "fraction")), strict=True
    ):
        machine = TraceNormSVC(C, penalty / fraction * 1.001).fit(X, y)
        assert not machine.coef_.any()
        assert TraceNormSVC(C, penalty / fraction * 0.98).fit(X, y).coef_.any()
    np.testing.assert_allclose(search.cv_results_["fraction"], [0.5, 1e-3, 0.5, 1e-3])


def test_precomputed_kernels_and_wide_rows(data):
    X, y = data
    K = X @ X.T
    from_kernel = SharedStructureSearch(SharedStructureSVC(kernel="precomputed"), Cs=[0.1], cv=3).fit(K, y)
    assert from_kernel.predict(K).shape == y.shape
    wide, labels = blobs(np.random.default_rng(2), 30, 40, 3)
    assert SharedStructureSearch(Cs=[0.1], cv=3).fit(wide, labels).score(wide, labels) > 0.9


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"estimator": TraceNormSVC()}, "estimator must be a SharedStructureSVC"),
        ({"Cs": [0.0]}, "every entry of Cs"),
        ({"penalty_fractions": []}, "penalty_fractions must hold at least one value"),
        ({"penalty_fractions": [0.1], "relation_penalties": [1.0]}, "penalty_fractions must be None"),
    ],
)
def test_bad_arguments_are_named(data, options, message):
    with pytest.raises((ValueError, TypeError), match=message):
        SharedStructureSearch(**options).fit(*data)


@pytest.mark.parametrize("scheme", ["ovr", "ovo"])
def test_path_equals_single_fits_and_starts_at_zero(data, scheme):
    X, y = data
    path = trace_norm_path(TraceNormSVC(0.3, scheme=scheme), X, y, n_penalties=6, ratio=1e-5)
    assert not path.coefs[0].any()
    assert all(certificate.within(1e-6) for certificate in path.certificates)
    assert np.all(np.diff(path.singular_values.sum(axis=1)) >= -1e-6)
    for at in (2, 5):
        single = TraceNormSVC(0.3, path.relation_penalties[at], scheme=scheme).fit(X, y)
        np.testing.assert_allclose(path.coefs[at], single.coef_, atol=1e-8)
        np.testing.assert_allclose(path.intercepts[at], single.intercept_, atol=1e-8)


def test_path_needs_the_squared_loss(data):
    with pytest.raises(TypeError, match="TraceNormSVC with loss='squared'"):
        trace_norm_path(TraceNormSVC(loss="smoothed_hinge"), *data)
