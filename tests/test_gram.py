from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from scipy import sparse
from sklearn.metrics.pairwise import pairwise_kernels
from sklearn.svm import SVC

from polymargin.gram import (
    DenseGram,
    FeatureGram,
    Kernel,
    LazyGram,
    NystroemMap,
    PartGram,
    PointKernel,
    RowHash,
    draw_landmarks,
    equal_rows,
    make_gram,
    products,
    ranked_rows,
    resolve_kernel,
    row_norms_squared,
    squares_of,
    wide_product,
)
from polymargin.gram.products import ProductSettings
from polymargin.threads import ThreadSettings, one_blas_thread, thread_settings

X = np.random.default_rng(0).normal(size=(30, 4))


@pytest.mark.parametrize("name", ["linear", "rbf", "poly", "sigmoid", "laplacian"])
def test_kernels_are_those_of_scikit_learn(name):
    kernel = Kernel(name, gamma=0.3, degree=2.0, coef0=0.5)
    used = {"linear": (), "rbf": ("gamma",), "laplacian": ("gamma",), "sigmoid": ("gamma", "coef0")}
    values = {"gamma": 0.3, "degree": 2.0, "coef0": 0.5}
    expected = pairwise_kernels(X, metric=name, **{key: values[key] for key in used.get(name, values)})
    np.testing.assert_allclose(kernel(X), expected)
    np.testing.assert_allclose(kernel.diagonal(X), np.diag(expected))


def test_scale_is_that_of_scikit_learn_and_counts_rows_by_weight():
    kernel = resolve_kernel("rbf", "scale", 3, 0.0, X, np.ones(30))
    assert kernel.gamma == pytest.approx(SVC().fit(X, np.arange(30) % 2)._gamma)
    weights = np.random.default_rng(1).integers(1, 4, 30)
    weighted = resolve_kernel("rbf", "scale", 3, 0.0, X, weights.astype(float))
    repeated = resolve_kernel("rbf", "scale", 3, 0.0, np.repeat(X, weights, axis=0), np.ones(weights.sum()))
    assert weighted.gamma == pytest.approx(repeated.gamma, rel=1e-12)
    in_rows = resolve_kernel("rbf", "scale", 3, 0.0, sparse.csr_array(X), weights.astype(float))
    assert in_rows.gamma == pytest.approx(weighted.gamma, rel=1e-12)


def providers():
    K = X @ X.T
    yield DenseGram(K)
    yield DenseGram(K.astype(np.float32))
    yield FeatureGram(X)
    yield FeatureGram(sparse.csr_array(X))
    yield LazyGram(Kernel("linear"), X)


@pytest.mark.parametrize("gram", list(providers()), ids=lambda gram: type(gram).__name__)
def test_providers_agree(gram):
    K, V = X @ X.T, np.random.default_rng(2).normal(size=(30, 3))
    rows, columns = np.array([3, 1]), np.array([0, 7, 8])
    np.testing.assert_allclose(gram.diagonal(), np.diag(K), rtol=1e-6)
    np.testing.assert_allclose(gram.block(rows), K[rows], rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(gram.block(rows, columns), K[np.ix_(rows, columns)], rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(gram.matmul(V), K @ V, rtol=1e-5, atol=1e-5)
    assert gram.block(rows).dtype == gram.matmul(V).dtype == np.float64


def test_memory_decides_the_provider():
    kernel = Kernel("rbf", 0.5)
    whole, single, by_rows = (make_gram(kernel, X, megabytes) for megabytes in (1.0, 5e-3, 1e-3))
    assert isinstance(whole, DenseGram)
    assert whole.matrix.dtype == np.float64
    assert isinstance(single, DenseGram)
    assert single.matrix.dtype == np.float32
    assert isinstance(by_rows, LazyGram)


def test_landmarks_are_drawn_from_every_class():
    labels = np.repeat([0, 1, 2], [20, 8, 2])
    rng = np.random.RandomState(0)
    for landmarks in (6, 0.2):
        drawn = draw_landmarks(landmarks, X, labels, rng)
        rows = [int(np.flatnonzero((row == X).all(axis=1))[0]) for row in drawn]
        assert len(set(rows)) == len(rows)
        assert np.bincount(labels[rows]).tolist() == [4, 2, 1]


def test_features_of_all_landmarks_give_back_the_kernel():
    kernel = Kernel("rbf", 0.2)
    features = NystroemMap(kernel, X).transform(X)
    np.testing.assert_allclose(features @ features.T, kernel(X), atol=1e-10)


@pytest.mark.parametrize("landmarks", [6, 0.3])
@pytest.mark.parametrize("seed", range(5))
def test_weights_repetition_and_order_draw_the_same_landmarks(landmarks, seed):
    rng = np.random.default_rng(seed)
    X, labels = rng.normal(size=(20, 2)), np.arange(20) % 3
    times = rng.integers(1, 4, 20)
    repeated = rng.permutation(np.repeat(np.arange(20), times))
    weighted = draw_landmarks(landmarks, X, labels, np.random.RandomState(0), weights=times.astype(float))
    drawn = draw_landmarks(landmarks, X[repeated], labels[repeated], np.random.RandomState(0))
    np.testing.assert_array_equal(drawn, weighted)


def test_dense_and_sparse_rows_have_the_same_random_numbers():
    X = np.random.default_rng(0).integers(-1, 2, (30, 4)).astype(np.float64)
    hashed = RowHash.drawn(np.random.RandomState(0), 4)
    np.testing.assert_array_equal(hashed(X), hashed(sparse.csr_array(X)))
    assert len(np.unique(hashed(X))) == len(np.unique(X, axis=0))


@pytest.mark.parametrize("shift", [0.0, 1e6, 1e12])
def test_gaussian_kernels_of_full_sparse_rows_far_from_zero_keep_their_digits(shift):
    rng = np.random.default_rng(0)
    X, Y = shift + np.round(rng.normal(size=(2, 12, 3)), 2)
    kernel = Kernel("rbf", 0.5)
    expected = np.exp(-0.5 * ((X[:, None] - Y) ** 2).sum(axis=2))
    found = kernel(sparse.csr_array(X), sparse.csr_array(Y))
    np.testing.assert_allclose(found, expected, rtol=1e-7)
    assert np.linalg.eigvalsh(kernel(sparse.csr_array(X)))[0] > -1e-12


@pytest.mark.parametrize("size", [1e4, 1e8, 1e25])
def test_gaussian_kernels_of_rows_far_apart_know_a_row_again(size):
    """Squares less products would be rounding there, much larger than one."""
    groups = np.random.default_rng(0).normal(size=(6, 5)) * size
    X = np.repeat(groups, 2, axis=0)
    X[1::2] *= 1.0 + 4.0 * np.finfo(np.float64).eps
    kernel = Kernel("rbf", 1.0)
    distances = ((X[:, None] - X) ** 2).sum(axis=2)
    for matrix in (kernel.matrix(X), kernel(X, X), PointKernel(kernel, X)(X)):
        np.testing.assert_allclose(matrix, np.exp(-distances), rtol=1e-6)


@pytest.mark.parametrize("shift", [0.0, 1e3])
def test_a_gaussian_kernel_of_the_rows_is_that_between_rows(shift):
    """Squares beside the rows, and taken off afterwards."""
    rows = shift + np.random.default_rng(3).normal(size=(150, 7)) * np.geomspace(0.1, 30.0, 7)
    for gamma in (1e-3, 0.1, 10.0):
        kernel = Kernel("rbf", gamma)
        np.testing.assert_allclose(kernel(rows), kernel(rows, rows.copy()), rtol=1e-9, atol=1e-300)


@pytest.mark.parametrize("form", [np.asarray, sparse.csr_array])
@pytest.mark.parametrize("seed", range(20))
def test_equal_rows_share_a_place_whatever_the_order_of_the_rows(form, seed):
    rng = np.random.default_rng(seed)
    n = int(rng.integers(2, 60))
    zero_sign = rng.choice([1.0, -1.0])
    X = zero_sign * rng.integers(-1, 2, size=(n, int(rng.integers(1, 4))))
    labels, costs = rng.integers(0, 3, n), rng.integers(0, 2, size=(n, 2)).astype(float)
    first, place = ranked_rows(labels, form(X), costs)
    whole = np.column_stack([labels, X, costs])
    assert np.array_equal(whole, whole[first][place])
    assert len(first) == len(np.unique(whole, axis=0))
    assert all(np.flatnonzero(place == at)[0] == row for at, row in enumerate(first))
    order = rng.permutation(n)
    again, _ = ranked_rows(labels[order], form(X[order]), costs[order])
    assert np.array_equal(whole[order][again], whole[first])


@pytest.mark.parametrize("share", [0.2, 1.0])
def test_sparse_rows_have_the_order_of_dense_ones(share):
    rng = np.random.default_rng(0)
    X, labels = np.where(rng.random((50, 4)) < share, rng.normal(size=(50, 4)), 0.0), np.arange(50) % 3
    for found, expected in zip(ranked_rows(labels, sparse.csr_array(X)), ranked_rows(labels, X), strict=True):
        np.testing.assert_array_equal(found, expected)


def test_other_tables_only_tell_equal_rows_apart():
    rng = np.random.default_rng(0)
    X, labels = rng.normal(size=(50, 4)), np.arange(50) % 3
    plain, with_costs = ranked_rows(labels, X), ranked_rows(labels, X, rng.normal(size=(50, 3)))
    for found, expected in zip(with_costs, plain, strict=True):
        np.testing.assert_array_equal(found, expected)


def test_columns_named_twice_are_added_up():
    twice = sparse.csr_array(([1.0, 2.0, 3.0], [1, 1, 1], [0, 2, 3]), shape=(2, 2))
    first, place = ranked_rows(np.zeros(2, dtype=np.intp), twice)
    assert place.tolist() == [0, 0]
    assert first.tolist() == [0]
    assert row_norms_squared(twice).tolist() == [9.0, 9.0]
    assert twice.nnz == 3


@pytest.mark.parametrize("form", [np.asarray, sparse.csr_array])
def test_rows_of_one_print_are_told_apart(form, monkeypatch):
    monkeypatch.setattr(equal_rows, "_prints", lambda labels, X: labels.astype(np.uint64))
    labels, X = np.array([0, 1, 0, 0, 0]), np.array([[2.0, 1.0], [2.0, 1.0], [2.0, 3.0], [0.0, 4.0], [2.0, 1.0]])
    first, place = ranked_rows(labels, form(X))
    assert sorted(first.tolist()) == [0, 1, 2, 3]
    assert place[0] == place[4]
    assert labels[first].tolist() == [0, 0, 0, 1]
    np.testing.assert_array_equal(X[first][place], X)
    again, _ = ranked_rows(labels[::-1], form(X[::-1]))
    np.testing.assert_array_equal(X[::-1][again], X[first])


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_a_part_is_what_a_copy_of_it_is(dtype):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(400, 3))
    whole = DenseGram(Kernel("rbf", gamma=0.5)(X).astype(dtype))
    rows = np.sort(rng.permutation(400)[:330])
    part, copy = PartGram(whole, rows), DenseGram(whole.matrix[np.ix_(rows, rows)])
    V, some, others = rng.normal(size=(330, 4)), np.array([3, 300, 7]), np.arange(0, 330, 50)
    tolerance = {"rtol": 1e-12, "atol": 1e-12}
    np.testing.assert_allclose(part.matmul(V), copy.matmul(V), **tolerance)
    np.testing.assert_array_equal(part.diagonal(), copy.diagonal())
    np.testing.assert_array_equal(part.block(some), copy.block(some))
    np.testing.assert_array_equal(part.block(some, others), copy.block(some, others))
    added, as_added = np.zeros((330, 4), order="F"), np.zeros((330, 4), order="F")
    part.add_product(some, V[:3], added)
    copy.add_product(some, V[:3], as_added)
    np.testing.assert_allclose(added, as_added, **tolerance)
    spread = np.zeros((400, 4))
    spread[rows] = V
    np.testing.assert_allclose(part.matmul_on_all(V), whole.matrix.astype(float) @ spread, **tolerance)


@pytest.mark.parametrize("n", [1, 130, 2100])
def test_rbf_matrices_are_the_same_in_threads(threads, n):
    X = np.random.default_rng(n).normal(size=(n, 3))
    matrix = Kernel("rbf", 0.3).matrix(X)
    np.testing.assert_allclose(matrix, pairwise_kernels(X, metric="rbf", gamma=0.3), rtol=1e-12)


SMALL_BLOCKS = ProductSettings(entries_of_a_thread=100, rows_of_a_block=9, least_entries=0)


@pytest.mark.parametrize("wide", [True, False])
def test_wide_products_are_those_of_blas(threads, wide, monkeypatch):
    monkeypatch.setattr(products, "has_wide", lambda: wide)
    matrix = np.random.default_rng(0).normal(size=(70, 50)).astype(np.float32)
    A, B = matrix[:60, :40], matrix[:40, 7:30]
    np.testing.assert_allclose(wide_product(A, B, SMALL_BLOCKS), A @ B, rtol=1e-5, atol=1e-5)
    np.testing.assert_allclose(
        wide_product(A, B, replace(SMALL_BLOCKS, max_columns=9)), A @ B, rtol=1e-5, atol=1e-5
    )
    assert wide_product(A, B.astype(np.float64), SMALL_BLOCKS).dtype == np.float64
    assert wide_product(A[:, :0], B[:0], SMALL_BLOCKS).shape == (60, 23)
    assert wide_product(A[:0], B, SMALL_BLOCKS).shape == (0, 23)
    together = wide_product(sparse.csr_array(A.astype(np.float64)), B, SMALL_BLOCKS)
    np.testing.assert_allclose(together, A @ B, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("p", [0, 1, 9, 31])
def test_squares_are_those_of_blas(threads, p):
    rows = np.random.default_rng(p).normal(size=(40, p))
    found = squares_of(rows, SMALL_BLOCKS)
    np.testing.assert_allclose(found, rows.T @ rows, rtol=1e-12, atol=1e-12)
    np.testing.assert_array_equal(found, found.T)
    np.testing.assert_allclose(squares_of(sparse.csr_array(rows)), rows.T @ rows, rtol=1e-12, atol=1e-12)


def test_large_products_are_the_same_to_the_last_bit_in_any_number_of_threads():
    A, B = (np.random.default_rng(n).normal(size=(n, 211)) for n in (1003, 307))

    def products(most):
        with thread_settings(ThreadSettings(most=most, running=Path("nobody tells"))):
            return wide_product(A, B.T, SMALL_BLOCKS), squares_of(A, SMALL_BLOCKS), Kernel("rbf", 0.1).matrix(A)

    with one_blas_thread():
        once = products(1)
        for most in (2, 3):
            for first, second in zip(once, products(most), strict=True):
                np.testing.assert_array_equal(first, second)
