"""Products of a matrix with a few columns against BLAS, whatever the shape, the precision and the threads."""

from dataclasses import replace

import numpy as np
import pytest

from polymargin._native import skinny
from polymargin.gram import skinny_product
from polymargin.gram.products import ProductSettings, symmetric_product, transposed_product

WIDTHS = [1, 2, 3, 4, 5, 7, 8, 9, 12, 15, 16, 17, 24, 26, 33, 40, 41]


EVERY_SIZE = ProductSettings(least_entries=0)
"""The compiled loop has small matrices as well."""


def _error(matrix, V, tuning=EVERY_SIZE):
    exact = matrix.astype(np.longdouble) @ V.astype(np.longdouble)
    bound = np.abs(matrix).astype(np.longdouble) @ np.abs(V).astype(np.longdouble)
    product = skinny_product(matrix, V, tuning)
    assert product.shape == exact.shape
    assert product.dtype == matrix.dtype
    return float((np.abs(product - exact) / bound).max())


needs_avx2 = pytest.mark.skipif(not skinny.available(), reason="the processor has no AVX2")


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("k", WIDTHS)
@pytest.mark.parametrize(("m", "n"), [(1, 1), (5, 3), (6, 6), (7, 2047), (13, 2049), (2, 4100)])
@needs_avx2
def test_is_right_to_rounding(dtype, k, m, n):
    rng = np.random.default_rng(n + k)
    matrix, V = rng.normal(size=(m, n)).astype(dtype), rng.normal(size=(n, k)).astype(dtype)
    assert _error(matrix, V) <= n * np.finfo(dtype).eps
    assert _error(matrix, np.ascontiguousarray(V.T).T) <= n * np.finfo(dtype).eps


@pytest.mark.parametrize("narrow", [False, True])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("k", WIDTHS)
@needs_avx2
def test_registers_of_either_width_are_right_to_rounding(dtype, k, narrow):
    rng = np.random.default_rng(k)
    matrix, V = rng.normal(size=(31, 2100)).astype(dtype), rng.normal(size=(2100, k)).astype(dtype)
    lanes = skinny.register_width(matrix.itemsize)
    width = lanes * -(-k // lanes)
    panels, out = np.zeros(2100 * width, dtype=dtype), np.ones((31, width), dtype=dtype)
    skinny.pack(V, panels)
    skinny.multiply(matrix, panels, out, narrow=narrow)
    bound = np.abs(matrix).astype(np.float64) @ np.abs(V).astype(np.float64)
    exact = matrix.astype(np.longdouble) @ V.astype(np.longdouble)
    assert float((np.abs(out[:, :k] - 1 - exact) / bound).max()) <= 2100 * np.finfo(dtype).eps
    np.testing.assert_array_equal(out[:, k:], 1.0)


@pytest.mark.parametrize("narrow", [False, True])
@pytest.mark.parametrize("n_rows", [0, 1, 5, 6, 7, 40])
@pytest.mark.parametrize("width", [4, 8, 12, 16, 20, 24, 28, 36])
@needs_avx2
def test_transposed_rows_are_right_to_rounding(width, n_rows, narrow):
    """Some rows, in any order and more than once, of a matrix whose rows lie apart; what was there is added to."""
    rng = np.random.default_rng(width + n_rows)
    matrix, rows = rng.normal(size=(31, 2100))[:, 20:], rng.integers(0, 31, n_rows)
    V, out = np.zeros((-(-n_rows // 6) * 6, width)), np.ones((2080, width))
    V[:n_rows] = rng.normal(size=(n_rows, width))
    skinny.multiply_transposed(matrix, rows, V, out, narrow)
    exact = matrix[rows].T.astype(np.longdouble) @ V[:n_rows].astype(np.longdouble)
    bound = np.abs(matrix[rows]).T @ np.abs(V[:n_rows]) + 1.0
    assert float((np.abs(out - 1 - exact) / bound).max()) <= (n_rows + 1) * np.finfo(float).eps


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("k", WIDTHS)
def test_transposed_products_against_blas(k, dtype):
    rng = np.random.default_rng(k)
    matrix, rows, V = (
        rng.normal(size=(300, 310)).astype(dtype),
        rng.permutation(300)[:170],
        rng.normal(size=(170, k)),
    )
    product = transposed_product(matrix, rows, V, EVERY_SIZE)
    np.testing.assert_allclose(product, matrix[rows].T.astype(float) @ V, rtol=1e-12, atol=1e-11)
    np.testing.assert_array_equal(transposed_product(matrix, rows[::2], V[::2]).shape, (310, k))


def test_symmetric_products_read_few_rows_alone():
    rng = np.random.default_rng(0)
    matrix, V = rng.normal(size=(90, 90)), np.zeros((90, 3))
    matrix += matrix.T
    V[rng.permutation(90)[:30]] = 1.0
    np.testing.assert_allclose(symmetric_product(matrix, V, EVERY_SIZE), matrix @ V, atol=1e-12)
    assert symmetric_product(matrix, np.ones((90, 3)), EVERY_SIZE) is None


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@needs_avx2
def test_threads_change_no_bit(threads, dtype):
    rng = np.random.default_rng(0)
    matrix, V = rng.normal(size=(101, 300)).astype(dtype), rng.normal(size=(300, 10)).astype(dtype)
    alone = skinny_product(matrix, V, EVERY_SIZE)
    in_threads = skinny_product(matrix, V, replace(EVERY_SIZE, entries_of_a_thread=1))
    np.testing.assert_array_equal(in_threads, alone)
    rows, V = np.arange(0, 101, 2), rng.normal(size=(51, 10))
    alone, in_threads = (
        transposed_product(matrix, rows, V, replace(EVERY_SIZE, entries_of_a_thread=entries))
        for entries in (2**25, 1)
    )
    np.testing.assert_array_equal(in_threads, alone)


@needs_avx2
def test_every_entry_is_used_once():
    """Integers have no rounding: a product of ones counts the columns, and of unit vectors picks them."""
    matrix = np.arange(77 * 90, dtype=np.float64).reshape(77, 90)
    np.testing.assert_array_equal(
        skinny_product(matrix, np.eye(90)[:, [0, 89, 45]], EVERY_SIZE), matrix[:, [0, 89, 45]]
    )
    np.testing.assert_array_equal(
        skinny_product(np.ones((77, 90)), np.ones((90, 9)), EVERY_SIZE), np.full((77, 9), 90.0)
    )


def test_other_layouts_and_no_rows():
    rng = np.random.default_rng(1)
    matrix, V = np.asfortranarray(rng.normal(size=(600, 500))), rng.normal(size=(500, 4))
    np.testing.assert_allclose(skinny_product(matrix, V), matrix @ V, rtol=1e-12, atol=1e-12)
    assert skinny_product(np.empty((0, 5)), V[:5]).shape == (0, 4)
