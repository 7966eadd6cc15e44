"""The proximal family as scikit-learn estimators."""

from sklearn.linear_model import RidgeClassifier
from sklearn.utils.estimator_checks import parametrize_with_checks

from polymargin import NewtonRefinement, ProximalSVC, ProximalSVCCV


def undone(estimator):
    """Two classes that are balanced in both steps weigh the same, whatever `class_weight` says."""
    if isinstance(estimator, ProximalSVC) and estimator.balance and estimator.refine_weights == "balanced":
        return {"check_class_weight_classifiers": "balancing undoes the weights of two classes"}
    return {}


@parametrize_with_checks(
    [
        ProximalSVC(),
        ProximalSVC(balance=False, refine=False),
        ProximalSVC(C=100.0, refine_weights="balanced"),
        ProximalSVC(kernel="rbf"),
        ProximalSVCCV(Cs=[1.0, 32.0]),
        NewtonRefinement(RidgeClassifier()),
    ],
    expected_failed_checks=undone,
)
def test_scikit_learn_contract(estimator, check):
    check(estimator)
