"""The scikit-learn contract for the machines of shared structure."""

import pytest
from sklearn.utils.estimator_checks import parametrize_with_checks

from polymargin import SharedStructureSVC, TraceNormSVC

pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")


@parametrize_with_checks(
    [
        SharedStructureSVC(),
        SharedStructureSVC(bounds=None),
        SharedStructureSVC(formulation="fast"),
        SharedStructureSVC(formulation="sum_to_zero"),
        SharedStructureSVC(constraint="symmetric"),
        SharedStructureSVC(constraint="psd"),
        SharedStructureSVC(constraint="nonnegative"),
        SharedStructureSVC(scheme="ovo"),
        SharedStructureSVC(scheme="ovo", bounds=None),
        SharedStructureSVC(kernel="rbf"),
        SharedStructureSVC(kernel="rbf", scheme="ovo"),
        TraceNormSVC(),
        TraceNormSVC(scheme="ovo"),
        TraceNormSVC(kernel="rbf"),
        TraceNormSVC(loss="smoothed_hinge"),
        TraceNormSVC(loss="smoothed_hinge", scheme="ovo"),
    ]
)
def test_scikit_learn_contract(estimator, check):
    check(estimator)
