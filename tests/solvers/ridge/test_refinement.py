"""The sums behind a Newton step, and the step itself on degenerate scores."""

import numpy as np
import pytest

from polymargin.solvers.ridge.refinement import margin_sums, refine, refine_rows, rows_within_margins


def by_definition(scores, labels, weights, factors, scale, offset):
    d = np.where(labels[:, None] == np.arange(scores.shape[1]), 1.0, -1.0)
    t = 1.0 - d * (scale * scores - offset)
    w = weights[:, None] * factors[labels] * (t > 0)
    terms = (t**2, d * scores * t, d * t, scores**2, scores, np.ones_like(t))
    return np.array([(w * term).sum(axis=0) for term in terms])


@pytest.mark.parametrize("n", [1, 5, 1024, 5000])
def test_compiled_sums_are_those_of_the_definition(n):
    rng = np.random.default_rng(n)
    k = 4
    scores, labels = rng.normal(size=(n, k)), rng.integers(0, k, n)
    weights, factors = rng.uniform(size=n), rng.uniform(size=(k, k))
    scale, offset = rng.normal(size=k), rng.normal(size=k)
    arguments = (scores, labels, weights, factors, scale, offset)
    np.testing.assert_allclose(margin_sums(*arguments), by_definition(*arguments), rtol=1e-12, atol=1e-12)
    halves = margin_sums(scores[: n // 2], labels[: n // 2], weights[: n // 2], factors, scale, offset)
    halves = halves + margin_sums(scores[n // 2 :], labels[n // 2 :], weights[n // 2 :], factors, scale, offset)
    np.testing.assert_allclose(halves, margin_sums(*arguments), rtol=1e-12, atol=1e-12)
    d = np.where(labels[:, None] == np.arange(k), 1.0, -1.0)
    expected = np.flatnonzero((d * (scale * scores - offset) < 1).any(axis=1))
    np.testing.assert_array_equal(rows_within_margins(scores, labels, scale, offset), expected)


@pytest.mark.parametrize("C", [1e-6, 1.0, 1e8])
@pytest.mark.parametrize("scores", [np.zeros((6, 2)), np.ones((6, 2)), np.outer([1, 2, 3, -1, -2, -3.0], [-1, 1])])
def test_degenerate_scores_are_refined_to_a_proven_optimum(scores, C):
    labels = np.array([1, 1, 1, 0, 0, 0])
    factors, weights = np.ones((2, 2)), np.ones(6)
    norms = np.array([0.0, 2.0])
    found = refine(
        lambda scale, offset: margin_sums(scores, labels, weights, factors, scale, offset), norms, np.zeros(2), C
    )
    assert (found.gap < 1e-9).all()
    assert (found.n_iter <= 30).all()


def test_thinning_out_many_rows_changes_the_way_but_not_the_optimum():
    rng = np.random.default_rng(0)
    n, k = 70_000, 3
    labels = rng.integers(0, k, n)
    scores = rng.normal(size=(n, k)) + (labels[:, None] == np.arange(k))
    weights, factors = rng.uniform(size=n), np.ones((k, k))
    norms, offset = np.ones(k), np.zeros(k)
    slow = refine(
        lambda scale, offset: margin_sums(scores, labels, weights, factors, scale, offset), norms, offset, 0.1
    )
    quick = refine_rows(scores, labels, weights, factors, norms, offset, 0.1)
    np.testing.assert_allclose(quick.objective, slow.objective, rtol=1e-12)
    assert (quick.n_iter < slow.n_iter).all()
