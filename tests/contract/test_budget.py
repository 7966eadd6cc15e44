"""BudgetSearch is a scikit-learn classifier whatever it searches."""

from sklearn.svm import SVC
from sklearn.utils.estimator_checks import parametrize_with_checks

from polymargin import BudgetSearch, MulticategorySVC


@parametrize_with_checks(
    [
        BudgetSearch(SVC(), {"C": [1.0]}, budget=10_000, random_state=0),
        BudgetSearch(MulticategorySVC(), {"C": [1.0]}, budget=10_000, random_state=0),
    ]
)
def test_scikit_learn(estimator, check):
    check(estimator)
