"""RobustSVC keeps the contract of every estimator."""

import numpy as np
import pytest
from sklearn.utils.estimator_checks import parametrize_with_checks

from polymargin import RobustSVC
from polymargin.problems.robust import LOSSES
from tests.simulate import blobs


@parametrize_with_checks(
    [
        *(RobustSVC(loss=loss, kernel=kernel) for loss in LOSSES for kernel in ("linear", "rbf")),
        RobustSVC(kernel="rbf", cost_matrix="ordinal"),
    ]
)
def test_scikit_learn(estimator, check):
    check(estimator)


@pytest.mark.parametrize("kernel", ["linear", "rbf"])
def test_weights_equal_repetition_and_the_order_of_rows_means_nothing(kernel):
    rng = np.random.default_rng(0)
    X, y = blobs(rng, 40, 3, 3)
    weight = rng.integers(0, 4, 40)
    model = RobustSVC(kernel=kernel, utility={(0, 1): 0.3})
    weighted = model.fit(X, y, sample_weight=weight).decision_function(X)
    repeated = rng.permutation(np.repeat(np.arange(40), weight))
    np.testing.assert_allclose(model.fit(X[repeated], y[repeated]).decision_function(X), weighted, atol=1e-6)


def test_names_of_classes_and_rotations_mean_nothing():
    rng = np.random.default_rng(1)
    X, y = blobs(rng, 60, 3, 3)
    scores = RobustSVC(utility={(0, 1): 0.3}).fit(X, y).decision_function(X)
    names = np.array(["zebra", "cat", "dog"])
    model = RobustSVC(utility={("zebra", "cat"): 0.3}).fit(X, names[y])
    columns = np.searchsorted(model.classes_, names)
    np.testing.assert_allclose(model.decision_function(X)[:, columns], scores, atol=1e-4)
    turn = np.linalg.qr(rng.normal(size=(3, 3)))[0]
    turned = RobustSVC(utility={(0, 1): 0.3}).fit(X @ turn, y)
    np.testing.assert_allclose(turned.decision_function(X @ turn), scores, atol=1e-4)


def test_precomputed_and_landmarks_agree_with_the_kernel():
    X, y = blobs(np.random.default_rng(2), 60, 3, 3)
    plain = RobustSVC(kernel="rbf", gamma=0.5, tol=1e-9).fit(X, y)
    K = np.exp(-0.5 * ((X[:, None] - X[None]) ** 2).sum(axis=2))
    given = RobustSVC(kernel="precomputed", tol=1e-9).fit(K, y)
    np.testing.assert_allclose(given.decision_function(K), plain.decision_function(X), atol=1e-5)
    spanned = RobustSVC(kernel="rbf", gamma=0.5, landmarks=X, tol=1e-9).fit(X, y)
    np.testing.assert_allclose(spanned.decision_function(X), plain.decision_function(X), atol=1e-4)
