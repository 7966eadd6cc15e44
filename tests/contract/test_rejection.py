"""scikit-learn's checks of the reject option; with quantile=1 nothing is rejected, as the checks require."""

import pytest
from sklearn.linear_model import LogisticRegression
from sklearn.utils.estimator_checks import parametrize_with_checks

from polymargin import MulticategorySVC, RejectOptionClassifier


@parametrize_with_checks(
    [
        RejectOptionClassifier(LogisticRegression(), quantile=1.0),
        RejectOptionClassifier(MulticategorySVC(), quantile=1.0),
    ]
)
def test_scikit_learn_contract(estimator, check):
    check(estimator)


def test_constructor_stores_arguments_untouched():
    options = {
        "quantile": 0.3,
        "target_error": None,
        "coverage": 2,
        "rejection_cost": "x",
        "cv": 3,
        "reject_label": 0,
    }
    model = RejectOptionClassifier(LogisticRegression(), **options)
    assert {name: model.get_params()[name] for name in options} == options
    with pytest.raises(ValueError, match="At most one"):
        model.fit([[0.0], [1.0]], [0, 1])
