"""The proximal family as scikit-learn estimators."""

from sklearn.linear_model import RidgeClassifier
from sklearn.utils.estimator_checks import parametrize_with_checks

from polymargin import NewtonRefinement, ProximalSVC, ProximalSVCCV


@parametrize_with_checks(
    [
        ProximalSVC(),
        ProximalSVC(balance=False, refine=False),
        ProximalSVC(C=100.0, refine_weights="balanced"),
        ProximalSVC(kernel="rbf"),
        ProximalSVCCV(Cs=[1.0, 32.0]),
        NewtonRefinement(RidgeClassifier()),
    ]
)
def test_scikit_learn_contract(estimator, check):
    check(estimator)
