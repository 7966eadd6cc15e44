import numpy as np
import pytest

from polymargin.coding import class_pairs, one_vs_rest_signs, simplex_codes, zero_sum_basis


@pytest.mark.parametrize("k", [2, 3, 7])
def test_simplex_codes_sum_to_zero_and_are_equally_far_apart(k):
    codes = simplex_codes(np.arange(k), k)
    np.testing.assert_allclose(codes.sum(axis=1), 0.0, atol=1e-15)
    inner = codes @ codes.T
    np.testing.assert_allclose(inner[~np.eye(k, dtype=bool)], -k / (k - 1) ** 2, atol=1e-14)


@pytest.mark.parametrize("k", [2, 3, 7])
def test_zero_sum_basis_is_orthonormal_and_complete(k):
    basis = zero_sum_basis(k)
    np.testing.assert_allclose(basis.T @ basis, np.eye(k - 1), atol=1e-14)
    np.testing.assert_allclose(basis @ basis.T, np.eye(k) - 1 / k, atol=1e-14)


def test_signs_and_pairs():
    assert one_vs_rest_signs(np.array([1]), 3).tolist() == [[-1.0, 1.0, -1.0]]
    assert len(class_pairs(6)) == 15
    assert (class_pairs(6)[:, 0] < class_pairs(6)[:, 1]).all()
