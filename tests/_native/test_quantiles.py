"""Entries within windows against their definition."""

import numpy as np
import pytest

from polymargin._native.quantiles import entries_within


@pytest.mark.parametrize("order", ["C", "F"])
@pytest.mark.parametrize("seed", range(5))
def test_entries_are_those_of_the_window(seed, order):
    rng = np.random.default_rng(seed)
    values = np.asarray(rng.normal(size=(40, 5)).round(1), order=order)
    weights = np.asarray(rng.choice([0.0, 0.5, 2.0], size=(40, 5)), order=order)
    lowest, highest = np.sort(rng.normal(size=(2, 5)).round(1), axis=0)
    lowest[0], highest[1] = -np.inf, np.inf
    inside, weight, counts, before = entries_within(values, weights, lowest, highest)
    expected = [
        (values[:, c] >= lowest[c]) & (values[:, c] <= highest[c]) & (weights[:, c] > 0.0) for c in range(5)
    ]
    np.testing.assert_array_equal(counts, [used.sum() for used in expected])
    np.testing.assert_array_equal(inside, np.concatenate([values[used, c] for c, used in enumerate(expected)]))
    np.testing.assert_array_equal(weight, np.concatenate([weights[used, c] for c, used in enumerate(expected)]))
    below = [weights[values[:, c] < lowest[c], c].sum() for c in range(5)]
    np.testing.assert_allclose(before, below, rtol=1e-12)


def test_tables_without_rows_have_no_entries():
    empty = np.empty((0, 3))
    inside, weight, counts, before = entries_within(empty, empty, np.zeros(3), np.ones(3))
    assert len(inside) == len(weight) == 0
    assert counts.tolist() == before.tolist() == [0, 0, 0]
