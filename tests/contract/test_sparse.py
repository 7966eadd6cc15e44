import numpy as np
import pytest
from sklearn.utils.estimator_checks import parametrize_with_checks

from polymargin import SparseSVC, SparseSVCCV
from tests.simulate import blobs


@parametrize_with_checks(
    [
        SparseSVC(),
        SparseSVC(penalty="supnorm", loss="lee"),
        SparseSVC(penalty="l1", loss="crammer", adaptive=True),
        SparseSVC(penalty="l2"),
        SparseSVCCV(adaptive=True, n_Cs=4, initial_Cs=[0.1], cv=2),
    ]
)
def test_scikit_learn(estimator, check):
    check(estimator)


@pytest.mark.parametrize("adaptive", [False, True])
@pytest.mark.parametrize("loss", ["weston", "lee", "crammer"])
def test_weights_equal_repetition_and_the_order_of_rows_means_nothing(loss, adaptive):
    rng = np.random.default_rng(0)
    X, y = blobs(rng, 30, 12, 3)
    weight = rng.integers(0, 4, 30)
    model = SparseSVC(loss=loss, adaptive=adaptive)
    weighted = model.fit(X, y, sample_weight=weight).coef_
    repeated = rng.permutation(np.repeat(np.arange(30), weight))
    np.testing.assert_array_equal(model.fit(X[repeated], y[repeated]).coef_, weighted)
