"""Left-out scores of least squares in a kernel's space: against refits, by rows and by features."""

import numpy as np
import pytest

from polymargin.gram import Kernel, NystroemMap
from polymargin.solvers.ridge.kernel import left_out_by_features, left_out_by_rows


def refitted(K, targets, weights, C):
    """Solve without every row in turn: C sum w (t - f)^2 + a'(K + 1)a for f = (K + 1) a."""
    scores = np.empty_like(targets)
    for i in range(len(K)):
        rest = np.delete(np.arange(len(K)), i)
        inner = K[np.ix_(rest, rest)] + 1.0
        a = np.linalg.solve(inner + np.diag(1.0 / (C * weights[rest])), targets[rest])
        scores[i] = (K[i, rest] + 1.0) @ a
    return scores


@pytest.mark.parametrize("C", [0.01, 1.0, 100.0])
def test_they_are_those_of_refits(C):
    rng = np.random.default_rng(0)
    X, targets, weights = rng.normal(size=(40, 3)), rng.normal(size=(40, 5)), rng.uniform(0.5, 3.0, 40)
    kernel = Kernel("rbf", 0.4)
    by_rows = left_out_by_rows(kernel(X), targets, weights, C)
    np.testing.assert_allclose(by_rows, refitted(kernel(X), targets, weights, C), rtol=1e-8, atol=1e-8)
    Z = NystroemMap(kernel, X[:12]).transform(X)
    by_features = left_out_by_features(Z, targets, weights, C)
    np.testing.assert_allclose(by_features, refitted(Z @ Z.T, targets, weights, C), rtol=1e-8, atol=1e-8)
