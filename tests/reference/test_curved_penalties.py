"""Group lasso and elastic net, solved by tangents, against CVXPY."""

import cvxpy as cp
import numpy as np
import pytest

from polymargin.problems.penalties import ElasticNetPenalty, GroupLassoPenalty, RidgePenalty
from polymargin.problems.sparse import SparseProblem
from polymargin.solvers.contract import Settings, Status
from polymargin.solvers.sparse.cutting_plane import CuttingPlanes, largest_penalty_weight
from tests.simulate import blobs, random_hinges

SETTINGS = Settings(tol=1e-8, max_iter=2000)
LOSSES = ("weston", "lee", "crammer")


def group(W, tau):
    return cp.sum(cp.multiply(tau[0], cp.norm(W, 2, axis=0)))


def elastic_net(W, tau):
    return 0.3 * cp.sum(cp.multiply(tau, cp.abs(W))) + 0.7 * cp.sum_squares(W)


PENALTIES = {
    "group": (GroupLassoPenalty, group, 1),
    "elastic net": (lambda weights=None: ElasticNetPenalty(0.3, weights), elastic_net, None),
    "l2": (lambda weights=None: RidgePenalty(), lambda W, tau: cp.sum_squares(W), None),
}


def optimum(problem, penalty, tau):
    """Optimal value of a sparse machine by Clarabel, from the formulas of loss and penalty."""
    losses, X = problem.losses, problem.X
    k = losses.n_classes
    W, b = cp.Variable((k, X.shape[1])), cp.Variable((1, k))
    F = X @ W.T + np.ones((len(X), 1)) @ b
    if hasattr(losses, "upper"):
        inside = [
            F @ losses.table.directions[y].T if losses.sees_single_scores else F - F[:, [y]] for y in range(k)
        ]
        value = sum(
            cp.sum(
                cp.multiply(
                    losses.upper[losses.labels == y], cp.pos(losses.offset + inside[y][losses.labels == y])
                )
            )
            for y in range(k)
            if (losses.labels == y).any()
        )
    else:
        rows = [
            weight * cp.max(losses.offset * (np.arange(k) != anchor) + F[i] - F[i, anchor])
            for i, anchor, weight in zip(losses.example, losses.anchor, losses.weight, strict=True)
        ]
        value = sum(rows)
    program = cp.Problem(
        cp.Minimize(penalty(W, tau) + problem.C * value), [cp.sum(W, axis=0) == 0, cp.sum(b) == 0]
    )
    tight = {"tol_gap_abs": 1e-9, "tol_gap_rel": 1e-9, "tol_feas": 1e-9}
    return program.solve(solver=cp.CLARABEL, **tight)


def random_problem(seed, name, loss):
    rng = np.random.default_rng(seed)
    k = int(rng.integers(2, 6))
    n, p = int(rng.integers(k + 3, 30)), int(rng.integers(1, 25))
    X, labels = blobs(rng, n, p, k, spread=rng.choice([0.1, 0.5, 1.5]))
    labels = np.where(rng.random(n) < 0.2, 0, labels)
    labels[:k] = np.arange(k)
    make, formula, rows = PENALTIES[name]
    tau = np.ones((rows or k, p))
    penalty = make()
    if penalty.takes_weights and seed % 2:
        tau = rng.uniform(0.3, 3.0, size=tau.shape)
        penalty = make(tau)
    problem = SparseProblem(X, random_hinges(rng, loss, labels, k), penalty, 10.0 ** rng.uniform(-2, 1))
    return problem, formula, tau


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("name", PENALTIES)
def test_objective_of_random_problems(name, loss, seed):
    problem, formula, tau = random_problem(seed, name, loss)
    solution = CuttingPlanes().solve(problem, SETTINGS)
    expected = optimum(problem, formula, tau)
    assert solution.status is Status.SOLVED
    assert solution.certificate.within(1e-8)
    assert solution.certificate.primal == pytest.approx(expected, rel=1e-6, abs=1e-6)
    assert solution.certificate.dual <= expected * (1 + 1e-6) + 1e-6


@pytest.mark.parametrize("name", ["group", "elastic net"])
def test_degenerate_data(name):
    """Repeated and constant columns, repeated rows with different labels, a class with one member."""
    rng = np.random.default_rng(3)
    X = np.round(rng.normal(size=(20, 4)))
    X = np.hstack([X, X[:, :2], np.full((20, 1), 7.0), np.zeros((20, 1))])
    X[10:] = X[:10]
    labels = np.concatenate([rng.integers(0, 2, 19), [2]])
    labels[:2] = 0, 1
    make, formula, rows = PENALTIES[name]
    for loss in LOSSES:
        problem = SparseProblem(X, random_hinges(rng, loss, labels, 3), make(), 5.0)
        solution = CuttingPlanes().solve(problem, SETTINGS)
        assert solution.certificate.within(1e-8)
        expected = optimum(problem, formula, np.ones((rows or 3, 8)))
        assert solution.certificate.primal == pytest.approx(expected, rel=1e-6)
        assert not solution.point.coef[:, 6:].any()


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("name", ["group", "elastic net"])
def test_largest_penalty_weight_is_where_the_first_variable_enters(name, seed):
    problem, _, _ = random_problem(100 + seed, name, "weston")
    largest = largest_penalty_weight(problem)
    zero, entered = CuttingPlanes().path(problem, (1 / (1.0001 * largest), 1 / (0.99 * largest)), SETTINGS)
    assert not zero.point.coef.any()
    assert entered.point.coef.any()
    for solution in (zero, entered):
        assert solution.certificate.within(1e-8)


def test_with_squares_every_variable_is_in_at_every_C():
    problem, _, _ = random_problem(0, "l2", "weston")
    assert largest_penalty_weight(problem) == np.inf
