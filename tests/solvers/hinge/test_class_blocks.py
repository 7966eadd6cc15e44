"""The Hessian of a face, factorised class by class, against the matrix as a whole."""

import numpy as np
import pytest

from polymargin.problems.hinge import lee_lin_wahba, weston_watkins
from polymargin.solvers.hinge.class_blocks import ClassBlocks, is_classwise


@pytest.fixture
def face():
    """Free variables of 12 rows and four classes, the last without any; none is of its row's own class."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(12, 20))
    free = rng.random((12, 4)) < 0.7
    free[np.arange(12), np.arange(12) % 4] = False
    free[:, 3] = False
    place, slot = np.nonzero(free)
    return X @ X.T, place, slot


def test_solves_with_the_whole_matrix(face):
    K, place, slot = face
    Q = K[np.ix_(place, place)] * ((slot[:, None] == slot) - 1 / 4)
    V = np.random.default_rng(1).normal(size=(len(place), 3))
    blocks = ClassBlocks(K, place, slot, 4)
    np.testing.assert_allclose(blocks.solve(V), np.linalg.solve(Q, V), rtol=1e-9)
    np.testing.assert_allclose(blocks.solve(V[:, 0]), np.linalg.solve(Q, V[:, 0]), rtol=1e-9)


def test_parts_are_as_defined(face):
    K, place, slot = face
    blocks = ClassBlocks(K, place, slot, 4)
    S = np.zeros_like(K)
    for j in range(4):
        rows, others = place[slot == j], np.setdiff1d(np.arange(12), place[slot == j])
        inverse = np.linalg.inv(K[np.ix_(rows, rows)])
        X = inverse @ K[np.ix_(rows, others)]
        S[np.ix_(others, others)] += K[np.ix_(others, others)] - K[np.ix_(others, rows)] @ X
        np.testing.assert_allclose(blocks.weights(j), X, rtol=1e-9)
        np.testing.assert_allclose(blocks.inverse_diagonal(j), inverse.diagonal(), rtol=1e-9)
    root = blocks.coupling_root()
    np.testing.assert_allclose(root.T @ root, np.linalg.inv(S), rtol=1e-9)


def test_is_for_single_scores_and_many_free_variables():
    y = np.arange(3)
    upper = (1 - np.eye(3))[y]
    assert is_classwise(lee_lin_wahba(y, upper), 200, 100)
    assert not is_classwise(lee_lin_wahba(y, upper), 100, 100)
    assert not is_classwise(weston_watkins(y, upper), 200, 100)
    assert not is_classwise(lee_lin_wahba(y, upper), 10**5, 10**4)
