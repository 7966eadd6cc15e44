import numpy as np
import pytest

from polymargin.problems.penalties import FusionPenalty, adaptive_weights, pair_differences
from polymargin.problems.penalties.fusion import class_subsets
from tests.oracles import polar_by_program
from tests.simulate import random_penalty

NAMES = ("l1", "supnorm", "fusion")


def column(penalty, j):
    """The penalty of one variable alone."""
    return type(penalty)(None if penalty.weights is None else penalty.weights[:, [j]])


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("k", [2, 3, 4, 7])
def test_polars_equal_small_programs_and_are_attained_by_the_atoms(name, k, weighted):
    rng = np.random.default_rng(k)
    p = 5
    penalty = random_penalty(rng, name, k, p, weighted=weighted)
    G = rng.normal(size=(k, p))
    G[:, 0] = np.round(G[:, 0])
    G[:, 1] = 0.0
    G -= G.mean(axis=0)
    polars = penalty.polars(G, above=0.0)
    atoms = penalty.best_atoms(G, np.arange(p))
    for j in range(p):
        assert polars[j] == pytest.approx(polar_by_program(column(penalty, j), G[:, j]), abs=1e-9)
        centred = atoms.directions[j] - atoms.directions[j].mean()
        assert abs(centred @ G[:, j]) / atoms.costs[j] == pytest.approx(polars[j], abs=1e-12)
        assert column(penalty, j).value(centred[:, None]) == pytest.approx(atoms.costs[j])


@pytest.mark.parametrize("name", NAMES)
def test_value_is_the_sum_that_the_formula_says(name):
    rng = np.random.default_rng(0)
    k, p = 4, 3
    penalty = random_penalty(rng, name, k, p, weighted=True)
    W = rng.normal(size=(k, p))
    tau = penalty.weights
    if name == "fusion":
        pairs = [(a, b) for a in range(k) for b in range(a + 1, k)]
        expected = sum(tau[i, j] * abs(W[a, j] - W[b, j]) for i, (a, b) in enumerate(pairs) for j in range(p))
    else:
        over_classes = sum if name == "l1" else max
        expected = sum(over_classes(tau[c, j] * abs(W[c, j]) for c in range(k)) for j in range(p))
    assert penalty.value(W) == pytest.approx(expected)


def test_screened_polars_of_weighted_fusion_are_exact_above_the_threshold_and_bounds_below():
    rng = np.random.default_rng(1)
    penalty = random_penalty(rng, "fusion", 5, 200, weighted=True)
    G = rng.normal(size=(5, 200)) * 10.0 ** rng.uniform(-2, 2, 200)
    exact, screened = penalty.polars(G, above=0.0), penalty.polars(G)
    assert 0 < np.sum(exact > 1) < 200
    np.testing.assert_array_equal(screened[exact > 1], exact[exact > 1])
    assert np.all(screened[exact <= 1] <= 1.0)
    assert np.all(screened >= exact - 1e-12)


def test_unit_weights_of_fusion_are_the_weighted_case_with_ones():
    rng = np.random.default_rng(2)
    G = rng.normal(size=(6, 50))
    ones = FusionPenalty(np.ones((15, 50)))
    np.testing.assert_allclose(FusionPenalty().polars(G), ones.polars(G, above=0.0), rtol=1e-13)
    W = rng.normal(size=(6, 50))
    assert FusionPenalty().value(W) == pytest.approx(ones.value(W), rel=1e-14)


def test_combined_atoms_of_fusion_tie_exactly():
    penalty = FusionPenalty()
    directions = class_subsets(4)[[0, 2, 2]]
    atoms = penalty.best_atoms(np.zeros((4, 2)), np.array([0, 1, 1]))
    atoms = type(atoms)(np.array([1, 1, 1]), directions, np.ones(3))
    W = penalty.combine(atoms, np.array([0.1, 0.2, 0.3]), 2)
    assert not W[:, 0].any()
    assert W[2, 1] == W[3, 1] != W[1, 1]
    np.testing.assert_allclose(W.sum(axis=0), 0.0, atol=1e-16)


def test_adaptive_weights_floor_and_share():
    sizes = np.array([[2.0, 0.0], [1.0, 0.0]])
    np.testing.assert_allclose(adaptive_weights(sizes, power=2.0), [[0.25, 0.25e12], [1.0, 0.25e12]])
    np.testing.assert_allclose(adaptive_weights(sizes, per_variable=True), [[0.5, 5e5], [0.5, 5e5]])
    np.testing.assert_array_equal(adaptive_weights(np.zeros((2, 3))), np.ones((2, 3)))
    np.testing.assert_array_equal(pair_differences(np.array([[1.0], [3.0], [1.0]])), [[2.0], [0.0], [2.0]])
