"""Moments of classes: sums over rows, additive, in whatever form the rows come."""

import pickle

import numpy as np
import pytest
from scipy import sparse

from polymargin.gram import Kernel
from polymargin.moments import NARROW, ClassMoments
from tests.simulate import blobs

K = 4


@pytest.fixture
def rows():
    rng = np.random.default_rng(3)
    X, labels = blobs(rng, 300, 6, K)
    return X, labels, rng.uniform(0.1, 2.0, len(labels))


def by_definition(B, labels, weights):
    E = np.column_stack([B, -np.ones(len(B))])
    return np.array([E[labels == c].T @ (weights[labels == c, None] * E[labels == c]) for c in range(K)])


@pytest.mark.parametrize("form", [np.asarray, np.asfortranarray, sparse.csr_array, sparse.csr_matrix])
@pytest.mark.parametrize("weighted", [False, True])
def test_moments_are_weighted_gram_matrices_of_augmented_rows(rows, form, weighted, threads):
    X, labels, weights = rows
    expected = by_definition(X, labels, weights if weighted else np.ones(len(X)))
    moments = ClassMoments.of(form(X), labels, weights if weighted else None, n_classes=K)
    np.testing.assert_allclose(moments.grams, expected, rtol=1e-12, atol=1e-12)
    np.testing.assert_allclose(moments.totals, expected[:, -1, -1])
    np.testing.assert_allclose(moments.sums, -expected[:, -1], rtol=1e-12, atol=1e-12)
    np.testing.assert_allclose(moments.total, expected.sum(axis=0), rtol=1e-12, atol=1e-12)
    assert (moments.n_classes, moments.n_features) == (K, X.shape[1])


@pytest.mark.parametrize("form", [np.asarray, sparse.csr_array])
def test_single_precision_rows_are_added_up_in_double_precision(rows, form):
    X, labels, weights = rows
    single = X.astype(np.float32)
    expected = by_definition(single.astype(np.float64), labels, weights)
    moments = ClassMoments.of(form(single), labels, weights, n_classes=K)
    assert moments.grams.dtype == np.float64
    np.testing.assert_allclose(moments.grams, expected, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("form", [np.asarray, sparse.csr_array])
def test_features_may_be_computed_chunk_by_chunk(rows, form):
    X, labels, weights = rows
    kernel = Kernel("rbf", gamma=0.2)
    landmarks = X[:9]
    moments = ClassMoments.of(
        form(X), labels, weights, n_classes=K, transform=lambda part: kernel(part, landmarks), chunk_bytes=1
    )
    np.testing.assert_allclose(moments.grams, by_definition(kernel(X, landmarks), labels, weights), rtol=1e-12)


@pytest.mark.parametrize("n_features", [1, 10, 11, 50, NARROW, NARROW + 1, NARROW + 20])
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_rows_of_every_width_are_multiplied_out(n_features, dtype):
    rng = np.random.default_rng(n_features)
    X, labels = rng.normal(size=(700, n_features)).astype(dtype), rng.integers(0, K, 700)
    weights = rng.uniform(size=700)
    moments = ClassMoments.of(X, labels, weights, n_classes=K)
    np.testing.assert_allclose(
        moments.grams, by_definition(X.astype(float), labels, weights), rtol=1e-12, atol=1e-12
    )
    np.testing.assert_array_equal(moments.grams, moments.grams.swapaxes(1, 2))


def test_chunks_add_up_to_the_whole(rows):
    X, labels, weights = rows
    whole = ClassMoments.of(X, labels, weights, n_classes=K)
    small_chunks = ClassMoments.of(X, labels, weights, n_classes=K, chunk_bytes=1)
    first, second = (ClassMoments.of(X[s], labels[s], weights[s], n_classes=K) for s in np.s_[:111, 111:])
    for other in (small_chunks, first + second):
        np.testing.assert_allclose(other.grams, whole.grams, rtol=1e-12, atol=1e-12)
    np.testing.assert_allclose((whole - second).grams, first.grams, rtol=1e-10, atol=1e-10)


def test_integer_weights_are_repetitions(rows):
    X, labels, _ = rows
    times = np.random.default_rng(0).integers(0, 4, len(X))
    weighted = ClassMoments.of(X, labels, times.astype(float), n_classes=K)
    repeated = ClassMoments.of(np.repeat(X, times, axis=0), np.repeat(labels, times), n_classes=K)
    np.testing.assert_allclose(weighted.grams, repeated.grams, rtol=1e-12, atol=1e-12)


def test_classes_without_rows_have_zero_moments(rows):
    X, labels, _ = rows
    moments = ClassMoments.of(X[labels == 2], labels[labels == 2], n_classes=300)
    assert moments.totals[2] == (labels == 2).sum()
    assert not np.delete(moments.grams, 2, axis=0).any()
    for nothing in (X[:0], sparse.csr_array(X[:0])):
        assert not ClassMoments.of(nothing, labels[:0], n_classes=K).grams.any()


def test_moments_travel_between_processes(rows):
    X, labels, weights = rows
    moments = ClassMoments.of(X, labels, weights, n_classes=K)
    np.testing.assert_array_equal(pickle.loads(pickle.dumps(moments)).grams, moments.grams)
