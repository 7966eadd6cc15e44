"""Steepest cuts against all sets of few classes, and against the linear program of flows for many."""

import numpy as np
import pytest

from polymargin.coding import class_pairs
from polymargin.cuts import steepest_cuts
from polymargin.problems.penalties import FusionPenalty
from polymargin.problems.penalties.fusion import class_subsets, separated_pairs
from tests.oracles import polar_by_program


def graphs(seed, k, m, spread):
    """Values and weights of m graphs, some with ties and some with equal weights."""
    rng = np.random.default_rng(seed)
    G = np.where(rng.random(m) < 0.3, rng.integers(-2, 3, (k, m)), rng.normal(size=(k, m)))
    weights = np.exp(spread * rng.normal(size=(k * (k - 1) // 2, m)))
    weights[:, : m // 5] = 1.0
    return G, weights


@pytest.mark.parametrize("spread", [0.5, 3.0, 12.0])
@pytest.mark.parametrize("k", [2, 3, 5, 9])
def test_no_set_is_steeper(k, spread):
    G, weights = graphs(k, k, 200, spread)
    ratios, costs, members = steepest_cuts(G, weights)
    centred = G - G.mean(axis=0)
    cuts = separated_pairs(k) @ weights
    best = (np.abs(class_subsets(k) @ centred) / cuts).max(axis=0)
    np.testing.assert_allclose(ratios, best, rtol=1e-12, atol=1e-15)
    first, second = class_pairs(k).T
    separated = members[:, first] != members[:, second]
    np.testing.assert_allclose(costs, (separated * weights.T).sum(axis=1), rtol=1e-12)
    np.testing.assert_allclose(ratios, (members * centred.T).sum(axis=1) / costs, rtol=1e-12, atol=1e-15)


@pytest.mark.parametrize("spread", [0.5, 3.0])
@pytest.mark.parametrize("k", [16, 20, 26])
def test_polars_of_many_classes_are_those_of_the_linear_program(k, spread):
    G, weights = graphs(k, k, 5, spread)
    ratios, _, _ = steepest_cuts(G, weights)
    for j in range(5):
        polar = polar_by_program(FusionPenalty(weights[:, [j]]), G[:, j])
        assert ratios[j] == pytest.approx(polar, rel=1e-8)


def test_a_bound_serves_for_what_is_not_steeper():
    G, weights = graphs(0, 14, 100, 1.0)
    ratios, _, _ = steepest_cuts(G, weights)
    above = float(np.median(ratios))
    screened, costs, members = steepest_cuts(G, weights, above=above)
    steeper = ratios > above
    np.testing.assert_array_equal(screened[steeper], ratios[steeper])
    np.testing.assert_array_equal(screened[~steeper], above)
    assert not costs[~steeper].any()
    assert not members[~steeper].any()
    assert members[steeper].any(axis=1).all()


def test_equal_values_have_a_set_too():
    ratios, costs, members = steepest_cuts(np.full((5, 2), 0.3), np.ones((10, 2)))
    np.testing.assert_allclose(ratios, 0.0, atol=1e-15)
    assert (costs > 0).all()
    assert members.any(axis=1).all()
