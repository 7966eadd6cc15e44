"""Dual points with exactly zero column sums."""

import numpy as np
import pytest
from scipy.special import expit, logit

from polymargin.gram import FeatureGram
from polymargin.problems.hinge import HingeProblem, crammer_singer, lee_lin_wahba, weston_watkins
from polymargin.solvers.hinge.feasibility import balanced
from tests.simulate import blobs, random_costs


def problems(rng, n=40, k=4):
    X, labels = blobs(rng, n, 3, k)
    upper = random_costs(rng, k)[labels]
    single = crammer_singer(labels, np.ones(n), k)
    for losses in (lee_lin_wahba(labels, upper), weston_watkins(labels, upper), single):
        yield HingeProblem(FeatureGram(X), losses)


@pytest.mark.parametrize("share_at_bounds", [0.0, 0.7, 1.0])
def test_any_point_is_balanced_within_its_bounds(share_at_bounds):
    rng = np.random.default_rng(0)
    for problem in problems(rng):
        losses = problem.losses
        at_bounds = rng.random(losses.n_examples) < share_at_bounds
        if hasattr(losses, "upper"):
            dual = losses.upper * rng.random(losses.upper.shape)
            dual[at_bounds] = (losses.upper * rng.integers(0, 2, losses.upper.shape))[at_bounds]
        else:
            dual = rng.dirichlet(np.ones(4), losses.n_examples)
            dual[at_bounds] = np.eye(4)[rng.integers(0, 4, at_bounds.sum())]
        repaired = balanced(problem, dual)
        assert losses.infeasibility(repaired) <= 1e-12
        assert np.abs(problem.coefficients(repaired).sum(axis=0)).max() <= 1e-10


def test_a_balanced_point_is_left_alone():
    for problem in problems(np.random.default_rng(1)):
        rest = problem.losses.resting_dual()
        np.testing.assert_array_equal(balanced(problem, rest), rest)


def test_a_small_imbalance_moves_the_free_entries_a_little():
    rng = np.random.default_rng(2)
    for problem in problems(rng):
        rest = problem.losses.resting_dual()
        inner = rest + 0.3 * (balanced(problem, _centre_of(problem.losses)) - rest)
        nudged = inner * (1 + 1e-6 * rng.random(inner.shape))
        repaired = balanced(problem, nudged)
        assert np.abs(repaired - inner).max() <= 1e-4


@pytest.mark.parametrize("blend", [0.0, 1e-9, 0.3])
@pytest.mark.parametrize("length", [1.0, 300.0])
def test_sums_over_entries_that_move_together_are_those_over_each(blend, length):
    """Entries move along their logits, one by one; sums take those of a direction that are at one place as one."""
    rng = np.random.default_rng(4)
    for problem in problems(rng):
        losses = problem.losses
        if not hasattr(losses, "upper"):
            continue
        dual = losses.upper * rng.choice([0.0, 0.25, 0.6, 1.0], losses.upper.shape, p=[0.4, 0.1, 0.1, 0.4])
        dual += blend * (losses.upper / 2 - dual)
        face, t = losses.movable_face(dual), length * rng.normal(size=losses.n_classes)
        example, slot = np.nonzero(face.free)
        directions, bounds = losses.table.rows(losses.labels[example], slot), losses.upper[face.free]
        assert len(bounds) == face.n_free
        fractions = expit(logit(dual[face.free] / bounds) + directions @ t)
        if length == 1.0:
            np.testing.assert_allclose(face.entries(t), bounds * fractions, rtol=1e-8)
        sums, jacobian = face.sums(t)
        np.testing.assert_allclose(sums, (bounds * fractions) @ directions, atol=1e-8 * bounds.sum())
        weights = bounds * fractions * (1.0 - fractions)
        np.testing.assert_allclose(jacobian, (directions.T * weights) @ directions, atol=1e-8 * bounds.sum())


def _centre_of(losses):
    return losses.upper / 2 if hasattr(losses, "upper") else np.full((losses.n_examples, 4), 0.25)


def test_zero_costs_force_zeros():
    labels = np.array([0, 1, 2, 0, 1, 2])
    costs = 1.0 - np.eye(3)
    costs[:, 2] = 0.0  # class 2 may be predicted for free
    upper = costs[labels]
    assert lee_lin_wahba(labels, upper).forced_to_zero().all()
    # flows between classes 0 and 1 may circulate, those out of class 2 may not
    expected = np.ones((3, 3), dtype=bool)
    expected[0, 1] = expected[1, 0] = False
    np.testing.assert_array_equal(weston_watkins(labels, upper).forced_to_zero()[:3], expected)
