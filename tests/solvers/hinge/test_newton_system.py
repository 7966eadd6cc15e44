"""The curvature of many classes, formed without the table of all products of coordinates."""

import numpy as np
import pytest

from polymargin.coding import class_pairs, zero_sum_basis
from polymargin.solvers.hinge._newton_system import _curvature


@pytest.mark.parametrize("k", [2, 3, 7])
@pytest.mark.parametrize("kind", ["pairs", "classes"])
def test_curvature_is_the_sum_over_atoms(k, kind):
    first, second = class_pairs(k).T
    atoms = np.eye(k) if kind == "classes" else np.eye(k)[first] - np.eye(k)[second]
    basis = zero_sum_basis(k)
    grams = np.random.default_rng(k).normal(size=(len(atoms), 9))
    coordinates = atoms @ basis
    expected = np.einsum("ta,tb,tq->abq", coordinates, coordinates, grams).reshape((k - 1) ** 2, 9)
    np.testing.assert_allclose(_curvature(atoms, grams, basis), expected, atol=1e-13)
