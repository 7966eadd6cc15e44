"""The interior point against an independent solver, on ordinary and degenerate problems."""

import numpy as np
import pytest
from scipy import sparse

from polymargin.gram import DenseGram, FeatureGram, kernel_root
from polymargin.gram.kernels import Kernel
from polymargin.problems.hinge import (
    HingePoint,
    HingeProblem,
    SimplexLosses,
    crammer_singer,
    lee_lin_wahba,
    weston_watkins,
)
from polymargin.solvers.contract import Settings, Status
from polymargin.solvers.hinge.interior_point import InteriorPoint
from tests.oracles import hinge_optimum
from tests.simulate import blobs, proteins, random_costs


def utility_losses(rng, labels, k, C):
    """Simplices of a random utility matrix with zeros, pairs in no order."""
    utility = rng.uniform(0, 1, (k, k)) * (rng.uniform(size=(k, k)) < 0.6) + np.eye(k)
    example, anchor = np.nonzero(utility[labels])
    shuffle = rng.permutation(len(example))
    example, anchor = example[shuffle], anchor[shuffle]
    return SimplexLosses(example, anchor, C * utility[labels[example], anchor], 1.0, len(labels), k)


def some_losses(kind, rng, labels, k, C):
    costs = C * random_costs(rng, k)[labels]
    match kind:
        case "lee":
            return lee_lin_wahba(labels, costs)
        case "weston":
            return weston_watkins(labels, costs)
        case "crammer":
            return crammer_singer(labels, C * rng.uniform(0.5, 2.0, len(labels)), k)
        case "utility":
            return utility_losses(rng, labels, k, C)


def subgradient_tilt(rng, losses):
    """Slopes as a DC step has them: part of the simplices' own slopes."""
    part = rng.dirichlet(np.full(losses.n_classes, 0.3), len(losses.weight)) * losses.weight[:, None] * 0.5
    return losses.coefficients(part)


def some_features(variant, rng, n, k):
    p = int(rng.integers(1, 6))
    X, labels = blobs(rng, n, p, k, spread=rng.choice([0.3, 1.0, 4.0]))
    match variant:
        case "collinear":
            X = np.hstack([X, X, 2 * X[:, :1]])
        case "contradictory":
            X, labels = np.vstack([X, X[: n // 2]]), np.concatenate([labels, (labels[: n // 2] + 1) % k])
        case "sparse":
            X = sparse.csr_array(np.where(rng.uniform(size=X.shape) < 0.5, X, 0.0)).astype(np.float32)
    return X, labels


@pytest.mark.parametrize("kind", ["lee", "weston", "crammer", "utility"])
@pytest.mark.parametrize("variant", ["plain", "collinear", "contradictory", "sparse"])
@pytest.mark.parametrize("seed", range(5))
def test_optimum_agrees_with_clarabel(kind, variant, seed):
    rng = np.random.default_rng([seed, len(kind), len(variant)])
    k = int(rng.integers(2, 6))
    X, labels = some_features(variant, rng, int(rng.integers(k + 3, 35)), k)
    losses = some_losses(kind, rng, labels, k, 10 ** rng.uniform(-3, 2))
    tilt = subgradient_tilt(rng, losses) if isinstance(losses, SimplexLosses) and seed % 2 else None
    problem = HingeProblem(FeatureGram(X), losses, fit_intercept=seed != 0, tilt=tilt)

    solution = InteriorPoint().solve(problem, Settings(tol=1e-9, max_iter=100))

    assert solution.status is Status.SOLVED
    assert solution.certificate.within(1e-9)
    optimum = hinge_optimum(problem)
    assert solution.certificate.primal == pytest.approx(optimum, rel=1e-7, abs=1e-7)
    assert problem.certify(solution.point) == solution.certificate


@pytest.mark.parametrize("C", [1e2, 1e4, 1e6])
def test_the_nearest_iterate_is_kept_where_rounding_ruins_the_next_ones(C):
    """Below 1e-6 the steps on a root of rank 170 go astray, and end far from where they were."""
    rng = np.random.default_rng(0)
    X, labels = proteins(rng)
    rows = np.unique(np.concatenate([np.arange(len(labels))[-20:], rng.permutation(len(labels))[:180]]))
    X, labels = X[rows], np.unique(labels[rows], return_inverse=True)[1]
    gram = DenseGram(Kernel("rbf", 1 / 8)(X))
    problem = HingeProblem(gram, lee_lin_wahba(labels, C * (labels[:, None] != np.arange(labels.max() + 1))))
    solution = InteriorPoint(kernel_root(gram)).solve(problem, Settings(1e-12, 500))
    records = solution.history
    assert max(record.gap for record in records[-20:]) > 1.0  # they did go astray
    assert solution.certificate.is_proof
    assert solution.certificate.gap < 0.05


def test_a_start_at_the_solution_helps():
    rng = np.random.default_rng(0)
    X, labels = blobs(rng, 300, 4, 3)
    problem = HingeProblem(FeatureGram(X), crammer_singer(labels, np.full(300, 10.0), 3))
    settings = Settings(tol=1e-8, max_iter=100)
    cold = InteriorPoint().solve(problem, settings)
    warm = InteriorPoint().solve(problem, settings, start=cold.point)
    assert warm.certificate.within(1e-8)
    assert warm.n_iter <= cold.n_iter


def test_stopped_early_the_point_is_feasible_and_certified():
    rng = np.random.default_rng(1)
    X, labels = blobs(rng, 100, 3, 4)
    problem = HingeProblem(FeatureGram(X), lee_lin_wahba(labels, random_costs(rng, 4)[labels]))
    records = []
    solution = InteriorPoint().solve(problem, Settings(tol=1e-12, max_iter=3), observer=records.append)
    assert solution.status is Status.MAX_ITER
    assert solution.certificate.infeasibility < 1e-12
    assert solution.certificate.dual <= hinge_optimum(problem) <= solution.certificate.primal
    assert [record.iteration for record in records] == [1, 2, 3]


def test_class_sums_are_zero_to_rounding():
    rng = np.random.default_rng(2)
    X, labels = blobs(rng, 200, 3, 5)
    problem = HingeProblem(FeatureGram(X), weston_watkins(labels, 3.0 * random_costs(rng, 5)[labels]))
    point = InteriorPoint().solve(problem, Settings(tol=1e-9, max_iter=100)).point
    assert isinstance(point, HingePoint)
    R = problem.coefficients(point.dual)
    assert np.abs(R.sum(axis=0)).max() < 1e-12 * np.abs(R).sum()
    assert point.intercept.sum() == pytest.approx(0.0, abs=1e-12)
