"""The tables of the hinge machines against the formulas of the papers, written out."""

import numpy as np
import pytest

from polymargin.gram import DenseGram
from polymargin.problems.hinge import HingePoint, HingeProblem, crammer_singer, lee_lin_wahba, weston_watkins
from tests.simulate import blobs, random_costs

K_CLASSES = 4


@pytest.fixture
def machine():
    rng = np.random.default_rng(0)
    X, labels = blobs(rng, 20, 3, K_CLASSES)
    F = rng.normal(size=(20, K_CLASSES))
    return rng, X, labels, F - F.mean(axis=1, keepdims=True), random_costs(rng, K_CLASSES)[labels]


def test_values_are_those_of_the_papers(machine):
    _, _, labels, F, upper = machine
    lee = weston = crammer = 0.0
    for i, y in enumerate(labels):
        others = [j for j in range(K_CLASSES) if j != y]
        lee += sum(upper[i, j] * max(F[i, j] + 1 / (K_CLASSES - 1), 0.0) for j in others)
        weston += sum(upper[i, j] * max(F[i, j] - F[i, y] + 2.0, 0.0) for j in others)
        crammer += 0.7 * max(2.0 - min(F[i, y] - F[i, j] for j in others), 0.0)
    assert lee_lin_wahba(labels, upper).value(F) == pytest.approx(lee)
    assert weston_watkins(labels, upper).value(F) == pytest.approx(weston)
    assert crammer_singer(labels, np.full(20, 0.7), K_CLASSES).value(F) == pytest.approx(crammer)


def random_dual(rng, losses):
    if hasattr(losses, "upper"):
        return losses.upper * rng.uniform(size=losses.upper.shape)
    return losses.weight[:, None] * rng.dirichlet(np.ones(losses.n_classes), len(losses.weight))


def all_losses(labels, upper):
    yield lee_lin_wahba(labels, upper)
    yield weston_watkins(labels, upper)
    yield crammer_singer(labels, upper.max(axis=1), upper.shape[1])


def test_weak_duality_and_the_role_of_the_intercept(machine):
    rng, X, labels, _, upper = machine
    for losses in all_losses(labels, upper):
        problem = HingeProblem(DenseGram(X @ X.T), losses, fit_intercept=False)
        for _ in range(20):
            certificate = problem.certify(HingePoint(random_dual(rng, losses), np.zeros(K_CLASSES)))
            assert certificate.primal >= certificate.dual
            assert certificate.infeasibility <= 1e-15
        unbalanced = HingeProblem(DenseGram(X @ X.T), losses).certify(
            HingePoint(random_dual(rng, losses), np.zeros(K_CLASSES))
        )
        assert unbalanced.infeasibility > 1e-3
        assert not unbalanced.within(np.inf)


def test_coefficients_are_the_adjoint_of_the_margins_and_have_zero_sum(machine):
    rng, _, labels, F, upper = machine
    for losses in all_losses(labels, upper):
        dual = random_dual(rng, losses)
        R = losses.coefficients(dual)
        np.testing.assert_allclose(R.sum(axis=1), 0.0, atol=1e-13)
        at_zero = np.vdot(dual, losses.margins(np.zeros_like(F)))
        assert np.vdot(dual, losses.margins(F)) - at_zero == pytest.approx(-np.vdot(R, F))
        assert losses.dual_value(dual) == pytest.approx(at_zero)
        np.testing.assert_allclose(losses.dual_of(R), dual, atol=1e-12)


def test_violations_are_measured(machine):
    rng, _, labels, _, upper = machine
    for losses in all_losses(labels, upper):
        dual = random_dual(rng, losses)
        dual[3, (labels[3] + 1) % K_CLASSES] = -0.5
        assert losses.infeasibility(dual) > 0.1
