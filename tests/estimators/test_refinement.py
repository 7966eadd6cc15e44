"""NewtonRefinement of classifiers that are not ours, and of ours."""

import numpy as np
import pytest
from sklearn.datasets import load_iris
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import RidgeClassifier
from sklearn.multiclass import OneVsRestClassifier
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC, LinearSVC

from polymargin import NewtonRefinement, ProximalSVC
from tests.simulate import blobs


@pytest.mark.parametrize("n_classes", [2, 4])
@pytest.mark.parametrize("refine_weights", ["uniform", "balanced"])
def test_refining_the_proximal_machine_is_its_own_refinement(n_classes, refine_weights):
    rng = np.random.default_rng(0)
    X, y = blobs(rng, 150, 4, n_classes)
    w = rng.uniform(0.2, 2.0, len(X))
    own = ProximalSVC(8.0, refine_weights=refine_weights).fit(X, y, w)
    meta = NewtonRefinement(ProximalSVC(8.0, refine=False), C=8.0, refine_weights=refine_weights).fit(X, y, w)
    np.testing.assert_allclose(meta.decision_function(X), own.decision_function(X), rtol=1e-9, atol=1e-9)
    np.testing.assert_allclose(meta.refinement_.scale, own.refinement_.scale, rtol=1e-9)
    frozen = FrozenEstimator(ProximalSVC(8.0, refine=False).fit(X, y, w))
    again = NewtonRefinement(frozen, C=8.0, refine_weights=refine_weights).fit(X, y)
    assert again.estimator_.coef_ is frozen.coef_


@pytest.mark.parametrize(
    "estimator",
    [
        RidgeClassifier(),
        LinearSVC(),
        make_pipeline(StandardScaler(), RidgeClassifier()),
        OneVsRestClassifier(SVC()),
    ],
)
@pytest.mark.parametrize("n_classes", [2, 3])
def test_margin_errors_of_any_scorer_are_not_increased(estimator, n_classes):
    rng = np.random.default_rng(1)
    X, y = blobs(rng, 120, 3, n_classes)
    model = NewtonRefinement(estimator, C=4.0).fit(X, y)
    norms, intercepts = model._geometry()
    signs = np.where(y[:, None] == np.arange(n_classes), 1.0, -1.0)
    directions = model._directions(X)
    at = model.refinement_

    def objective(scale, offset):
        errors = np.maximum(0.0, 1.0 - signs * (scale * directions - offset))
        return 2.0 * (errors**2).sum(axis=0) + 0.5 * (scale**2 * norms + offset**2)

    best = objective(at.scale, at.offset)
    np.testing.assert_allclose(best, at.objective)
    assert (best <= objective(1.0, -intercepts) + 1e-9).all()
    for step in np.random.default_rng(2).normal(size=(200, 2, n_classes)) * 1e-3:
        assert (best <= objective(at.scale + step[0], at.offset + step[1]) + 1e-9).all()


def test_least_squares_scores_of_iris_gain_from_refinement():
    X, y = load_iris(return_X_y=True)
    plain = RidgeClassifier().fit(X, y).score(X, y)
    assert NewtonRefinement(RidgeClassifier(), C=10.0).fit(X, y).score(X, y) >= plain + 0.04


@pytest.mark.parametrize(
    ("estimator", "options", "message"),
    [
        (RidgeClassifier(), {"C": -1.0}, "C must be"),
        (RidgeClassifier(), {"refine_weights": "even"}, "refine_weights must be"),
        (SVC(decision_function_shape="ovo"), {}, "must score every class against the rest"),
    ],
)
def test_wrong_arguments_are_named(estimator, options, message):
    X, y = blobs(np.random.default_rng(0), 60, 2, 4)
    with pytest.raises(ValueError, match=message):
        NewtonRefinement(estimator, **options).fit(X, y)


def test_weights_need_a_classifier_that_takes_them():
    X, y = blobs(np.random.default_rng(0), 60, 2, 3)
    with pytest.raises(ValueError, match="does not take weights"):
        NewtonRefinement(KNeighborsClassifier()).fit(X, y, np.ones(60))
    assert not hasattr(NewtonRefinement(KNeighborsClassifier()), "decision_function")
