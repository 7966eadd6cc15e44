"""The compiled blocks and systems of the interior point against their NumPy twins."""

import numpy as np
import pytest

from polymargin._native.dense_system import DenseSystem
from polymargin._native.hinge_blocks import HingeBlocks
from polymargin._native.simplex_blocks import MOST_CLASSES, SimplexBlocks
from polymargin.estimators.multicategory import hinge_losses
from polymargin.gram import FeatureGram
from polymargin.problems.hinge import HingeProblem, SimplexLosses
from polymargin.solvers.hinge import interior_point
from polymargin.solvers.hinge._blocks import GeneralBlocks, blocks_of
from polymargin.solvers.hinge._models import Model
from polymargin.solvers.hinge._newton_system import NewtonSystem
from polymargin.solvers.hinge._rows import Rows
from polymargin.solvers.hinge._slots import BoxSlots, SimplexSlots
from polymargin.solvers.hinge.settings import INTERIOR
from tests.simulate import blobs


def twins(seed, *, one_each):
    """The same interior point of random blocks, compiled and in NumPy."""
    rng = np.random.default_rng(seed)
    n, k = 12, int(rng.integers(2, 6))
    example = np.arange(n) if one_each else np.sort(rng.integers(0, n, 20))
    weight = rng.uniform(0.1, 3.0, len(example))
    slots = SimplexSlots(SimplexLosses(example, rng.integers(0, k, len(example)), weight, 1.0, n, k))
    state = (
        rng.dirichlet(np.ones(k), len(example)) * weight[:, None],
        rng.uniform(0.01, 2.0, (len(example), k)),
        rng.normal(size=len(example)),
    )
    compiled = blocks_of(slots, *(array.copy() for array in state))
    assert isinstance(compiled, SimplexBlocks)
    return compiled, GeneralBlocks(slots, *state), rng.normal(size=(n, k))


def hinge_twins(seed, loss):
    """The same interior point of random hinges, some of no weight, compiled and in NumPy."""
    rng = np.random.default_rng(seed)
    n, k = 12, int(rng.integers(2, 6))
    labels = rng.integers(0, k, n)
    costs = rng.uniform(0.1, 3.0, (n, k)) * (rng.random((n, k)) < 0.8)
    costs[np.arange(n), labels] = 0.0
    slots = BoxSlots(hinge_losses(loss, labels, costs))
    number = len(slots.weight)
    state = (
        rng.dirichlet(np.ones(2), number) * slots.weight[:, None],
        rng.uniform(0.01, 2.0, (number, 2)),
        rng.normal(size=number),
    )
    compiled = blocks_of(slots, *(array.copy() for array in state))
    assert isinstance(compiled, HingeBlocks)
    return compiled, GeneralBlocks(slots, *state), rng.normal(size=(n, k))


@pytest.mark.parametrize("one_each", [True, False])
@pytest.mark.parametrize("seed", range(10))
def test_every_part_of_an_iteration_agrees(seed, one_each):
    agree_in_every_part(*twins(seed, one_each=one_each))


@pytest.mark.parametrize("loss", ["lee", "weston"])
@pytest.mark.parametrize("seed", range(10))
def test_every_part_of_an_iteration_agrees_on_hinges(seed, loss):
    agree_in_every_part(*hinge_twins(seed, loss))


def test_a_direction_that_is_not_finite_is_an_error():
    _, plain, scores = hinge_twins(0, "lee")
    at_a_bound = blocks_of(plain.slots, plain.alpha, np.zeros_like(plain.slack), plain.epigraph)
    at_a_bound.linearise()
    at_a_bound.predict()
    with pytest.raises(FloatingPointError, match="not finite"):
        at_a_bound.recover(scores, onto=False)


def agree_in_every_part(compiled, plain, scores):
    """Go through an iteration with both."""

    def same(call):
        np.testing.assert_allclose(call(compiled), call(plain), rtol=1e-10, atol=1e-12)

    same(lambda blocks: blocks.objectives())
    same(lambda blocks: blocks.pull())
    same(lambda blocks: blocks.linearise())
    same(lambda blocks: blocks.atom_weights(2, 9))
    same(lambda blocks: blocks.predict())
    same(lambda blocks: blocks.recover(scores, onto=False))
    same(lambda blocks: blocks.accept() or blocks.reached(0.7))
    same(lambda blocks: blocks.correct(0.05))
    same(lambda blocks: blocks.recover(0.3 * scores, onto=False))
    same(lambda blocks: blocks.accept() or blocks.pull_of_direction())
    same(lambda blocks: blocks.refine())
    same(lambda blocks: blocks.recover(0.1 * scores, onto=True))
    same(lambda blocks: blocks.accept() or blocks.recentre(0.9))
    same(lambda blocks: blocks.recover(-0.2 * scores, onto=True))
    same(lambda blocks: blocks.accept() or blocks.trusted(0.5))
    same(lambda blocks: blocks.advance(0.01) or blocks.alpha)
    same(lambda blocks: blocks.slack)
    same(lambda blocks: blocks.epigraph)


@pytest.mark.parametrize("one_each", [True, False])
@pytest.mark.parametrize("product", [1e-6, 0.1, 30.0])
def test_centring_makes_all_products_their_share(product, one_each):
    compiled, plain, scores = twins(3, one_each=one_each)
    slots = plain.slots
    compiled.centre(scores, 1.0, product)
    shares = np.repeat(slots.weight[:, None] * product, scores.shape[1], axis=1)
    np.testing.assert_allclose(compiled.alpha * compiled.slack, shares, rtol=1e-10)
    np.testing.assert_allclose(compiled.alpha.sum(axis=1), slots.weight, rtol=1e-9)
    margins = slots.offsets + slots.lift(scores)
    np.testing.assert_allclose(compiled.epigraph[:, None] - compiled.slack, margins, atol=1e-10)


def test_very_many_classes_go_to_the_twin():
    k = MOST_CLASSES + 1
    losses = SimplexLosses(np.arange(2), np.arange(2), np.ones(2), 1.0, 2, k)
    state = np.ones((2, k)), np.ones((2, k)), np.ones(2)
    slots = SimplexSlots(losses)
    assert isinstance(blocks_of(slots, *state), GeneralBlocks)
    with pytest.raises(ValueError, match="at most 256 classes, got 257"):
        SimplexBlocks(slots.weight, slots.anchor, slots.starts, *state)


@pytest.mark.parametrize("seed", range(6))
def test_systems_agree_over_whole_iterations(seed):
    rng = np.random.default_rng(seed)
    k = int(rng.integers(2, 6))
    X, labels = blobs(rng, 40, int(rng.integers(1, 5)), k)
    example, anchor = np.nonzero(np.eye(k)[labels] + (rng.uniform(size=(40, k)) < 0.3))
    losses = SimplexLosses(example, anchor, rng.uniform(0.5, 2.0, len(example)), 1.0, 40, k)
    tilt = losses.coefficients(0.3 * rng.dirichlet(np.ones(k), len(example)) * losses.weight[:, None])
    problem = HingeProblem(FeatureGram(X), losses, bool(seed % 2), tilt)
    model = Model(problem, None).tilted(problem)
    compiled, other = (model.first_system(None) for _ in range(2))
    rows = Rows(model.features, other.blocks, model.slots, model.unknowns.basis, model.products)
    plain = NewtonSystem(model.unknowns, rows, other.Z)
    assert isinstance(compiled, DenseSystem)
    for _ in range(6):
        primal, dual = compiled.objectives()
        np.testing.assert_allclose((primal, dual), plain.objectives(), rtol=1e-7)
        if primal - dual < 1e-9 * max(1.0, primal):
            break  # from here on rounding decides
        lengths = [interior_point._predictor_corrector(system, INTERIOR) for system in (compiled, plain)]
        assert lengths[0] == pytest.approx(lengths[1], rel=1e-6)
        np.testing.assert_allclose(compiled.Z, plain.Z, rtol=1e-6, atol=1e-8)
