"""A small version of Table 1 of Liu, Wu & He: mean test utilities of the weighted robust SVM on Example 2."""

import numpy as np
import pytest

from polymargin import RobustSVC
from polymargin.datasets import make_triangle


def utility_of(a, shape):
    """Utilities (16): a at (1, 2); at (1, 2) and (1, 3); or that transposed."""
    utility = np.eye(3)
    utility[0, 1] = a
    if shape > 1:
        utility[0, 2] = a
    return utility.T if shape == 3 else utility


def mean_utility(model, sample, utility):
    return utility[sample.target, model.predict(sample.data)].mean()


@pytest.mark.parametrize(("shape", "a", "printed"), [(2, 0.4, 74.57), (3, 0.6, 77.39)])
def test_robust_machine_reaches_the_printed_utility(shape, a, printed):
    utility = utility_of(a, shape)
    reached = []
    for repetition in range(5):
        train, tune, test = (
            make_triangle(n, flip=0.15, random_state=10 * repetition + part)
            for part, n in enumerate((400, 400, 40_000))
        )
        models = [RobustSVC(C=C, utility=utility).fit(train.data, train.target) for C in (0.01, 0.1, 1.0)]
        best = max(models, key=lambda model: mean_utility(model, tune, utility))
        reached.append(100 * mean_utility(best, test, utility))
    assert np.mean(reached) > printed - 1.0
