"""ProximalSVC as a scikit-learn estimator."""

from sklearn.utils.estimator_checks import parametrize_with_checks

from polymargin import ProximalSVC


@parametrize_with_checks(
    [
        ProximalSVC(),
        ProximalSVC(balance=False, refine=False),
        ProximalSVC(C=100.0, refine_weights="balanced"),
        ProximalSVC(kernel="rbf"),
    ]
)
def test_scikit_learn_contract(estimator, check):
    check(estimator)
