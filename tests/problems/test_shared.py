"""Moments of the tasks, objectives and certificates of shared structure."""

import numpy as np
import pytest

from polymargin.problems.shared import SharedPoint, SharedProblem
from polymargin.relations import RelationSet
from tests.simulate_shared import loss, written_out


@pytest.mark.parametrize("scheme", ["ovr", "ovo"])
@pytest.mark.parametrize("formulation", ["original", "fast", "sum_to_zero"])
def test_primal_is_the_objective_written_out_by_rows(scheme, formulation):
    rng = np.random.default_rng(0)
    moments, tasks = written_out(rng, 30, 4, 3, scheme)
    p = len(tasks)
    W, M = rng.normal(size=(5, p)), rng.uniform(-1, 1, size=(p, p))
    problem = SharedProblem(moments, 0.7, 2.0, RelationSet.free(p, p), formulation)
    penalty = {"original": np.sum(W**2), "fast": 0.0, "sum_to_zero": np.sum(W.sum(axis=1) ** 2)}[formulation]
    expected = 0.7 * loss(tasks, W @ M) + penalty + 2.0 * np.sum(M**2)
    assert problem.certify(SharedPoint(W, M)).primal == pytest.approx(expected, rel=1e-12)


@pytest.mark.parametrize("scheme", ["ovr", "ovo"])
def test_no_point_lies_below_the_global_dual(scheme):
    rng = np.random.default_rng(1)
    moments, tasks = written_out(rng, 30, 4, 3, scheme)
    p = len(tasks)
    problem = SharedProblem(moments, 0.1, 3.0, RelationSet.free(p, p))
    points = [
        SharedPoint(scale * rng.normal(size=(5, p)), rng.normal(size=(p, p))) for scale in (0.0, 0.01, 0.1, 1)
    ]
    certificates = [problem.certify(point) for point in points for _ in range(5)]
    assert {c.kind for c in certificates} == {"global"}
    assert max(c.dual for c in certificates) <= min(c.primal for c in certificates)


@pytest.mark.parametrize("psd", [False, True])
@pytest.mark.parametrize("bound", [0.5, np.inf])
def test_no_change_of_one_block_leads_below_the_stationary_dual(bound, psd):
    rng = np.random.default_rng(2)
    moments, _ = written_out(rng, 30, 4, 3, "ovr")
    limit = np.full((3, 3), bound)
    relations = RelationSet(-limit, limit, symmetric=psd, psd=psd)
    if relations.is_free:
        relations = RelationSet(np.zeros((3, 3)), limit)
    problem = SharedProblem(moments, 0.1, 3.0, relations)

    def member():
        M = rng.uniform(0, 0.5, size=(3, 3))
        return M @ M.T / 2 if psd else M

    W, M = 0.3 * rng.normal(size=(5, 3)), member()
    certificate = problem.certify(SharedPoint(W, M))
    assert certificate.kind == "stationary"
    for _ in range(200):
        other_M = problem.certify(SharedPoint(W, member())).primal
        other_W = problem.certify(SharedPoint(W + 0.1 * rng.normal(size=W.shape), M)).primal
        assert min(other_M, other_W) >= certificate.dual


def test_penalty_at_zero_is_where_zero_stops_being_optimal():
    moments, _ = written_out(np.random.default_rng(3), 30, 4, 3, "ovr")
    zero = SharedPoint(np.zeros((5, 3)), np.zeros((3, 3)))
    nu_max = SharedProblem(moments, 0.2, 1.0, RelationSet.free(3, 3)).penalty_at_zero
    at, below = (SharedProblem(moments, 0.2, f * nu_max, RelationSet.free(3, 3)).certify(zero) for f in (1.0, 0.9))
    assert at.gap <= 1e-14
    assert below.gap > 1e-3


def test_infeasible_relations_are_reported():
    moments, _ = written_out(np.random.default_rng(4), 30, 4, 3, "ovr")
    relations = RelationSet(-np.ones((3, 3)), np.ones((3, 3)), symmetric=True, psd=True)
    problem = SharedProblem(moments, 1.0, 1.0, relations)
    W = np.zeros((5, 3))
    assert problem.certify(SharedPoint(W, np.eye(3))).infeasibility == 0
    assert problem.certify(SharedPoint(W, 2 * np.eye(3))).infeasibility == 0.5
    assert problem.certify(SharedPoint(W, -np.eye(3))).infeasibility == 1
    assert problem.certify(SharedPoint(W, np.triu(np.ones((3, 3))))).infeasibility == 1
