"""The alternation: monotone, stationary, and globally optimal where the problem is convex."""

import numpy as np
import pytest

from polymargin.problems.shared import SharedProblem
from polymargin.relations import RelationSet
from polymargin.solvers.contract import Settings, Status
from polymargin.solvers.shared.alternation import AlternationSolver, alternate_side_by_side, balance
from polymargin.solvers.shared.base_step import make_base_step
from tests.simulate_shared import written_out

BOX = RelationSet(-np.ones((4, 4)), np.ones((4, 4)))
SETS = {
    "free": RelationSet.free(4, 4),
    "low rank": RelationSet.free(2, 4),
    "box": BOX,
    "nonnegative": RelationSet(np.zeros((4, 4)), np.ones((4, 4))),
    "symmetric": RelationSet(BOX.lower, BOX.upper, symmetric=True),
    "psd": RelationSet(BOX.lower, BOX.upper, symmetric=True, psd=True),
}


@pytest.mark.parametrize("relations", SETS.values(), ids=SETS.keys())
@pytest.mark.parametrize(("C", "nu"), [(0.01, 1.0), (1.0, 0.1), (1.0, 50.0)])
def test_objective_never_rises_and_a_stationary_point_is_reached(relations, C, nu):
    moments, _ = written_out(np.random.default_rng(0), 60, 5, 4, "ovr")
    problem = SharedProblem(moments, C, nu, relations)
    rng = np.random.default_rng(1)
    start = rng.normal(size=relations.lower.shape) if relations.lower.shape[0] == 2 else None
    solution = AlternationSolver().solve(problem, Settings(1e-8, 20_000), start=start)
    primals = np.array([record.primal for record in solution.history])
    assert np.all(np.diff(primals) <= 1e-12 * primals[:-1])
    assert solution.status is Status.SOLVED
    assert primals[-1] == pytest.approx(solution.certificate.primal, rel=1e-12)


@pytest.mark.parametrize("scheme", ["ovr", "ovo"])
def test_early_stop_reports_that_the_point_is_not_stationary(scheme):
    moments, tasks = written_out(np.random.default_rng(2), 60, 5, 4, scheme)
    p = len(tasks)
    problem = SharedProblem(moments, 1.0, 50.0, RelationSet(-np.ones((p, p)), np.ones((p, p))))
    solution = AlternationSolver().solve(problem, Settings(1e-8, 5))
    assert (solution.n_iter, solution.status) == (5, Status.MAX_ITER)
    assert solution.certificate.kind == "stationary"
    assert solution.certificate.gap > 1e-6


def test_above_nu_max_the_solution_is_zero_and_just_below_it_is_not():
    moments, _ = written_out(np.random.default_rng(3), 40, 5, 4, "ovr")
    nu_max = SharedProblem(moments, 1.0, 1.0, SETS["free"]).penalty_at_zero
    above, below = (
        AlternationSolver().solve(SharedProblem(moments, 1.0, f * nu_max, SETS["free"]), Settings(1e-9))
        for f in (1.0001, 0.99)
    )
    assert not above.point.W.any()
    assert above.certificate.gap <= 1e-12
    assert np.linalg.norm(below.point.W @ below.point.M) > 1e-4
    assert below.certificate.gap <= 1e-9


def test_a_gap_below_rounding_ends_in_a_stall_and_not_at_the_limit():
    moments, _ = written_out(np.random.default_rng(3), 40, 5, 4, "ovr")
    solution = AlternationSolver().solve(
        SharedProblem(moments, 1e10, 1e-10, SETS["free"]), Settings(1e-30, 10_000)
    )
    assert solution.status is Status.STALLED
    assert solution.n_iter < 10_000


def test_a_shared_base_step_changes_nothing():
    moments, _ = written_out(np.random.default_rng(4), 40, 5, 4, "ovr")
    shared = make_base_step(moments)
    for C in (0.1, 1.0):
        problem = SharedProblem(moments, C, 2.0, BOX)
        ours, fresh = (AlternationSolver(step).solve(problem, Settings(1e-9, 5)).point for step in (shared, None))
        np.testing.assert_array_equal(ours.W, fresh.W)


@pytest.mark.parametrize("relations", [BOX, RelationSet(-np.ones((2, 4)), np.ones((2, 4)))], ids=["4", "2"])
def test_side_by_side_equals_one_by_one(relations):
    moments, _ = written_out(np.random.default_rng(7), 60, 5, 4, "ovr")
    base_step = make_base_step(moments)
    problems = [SharedProblem(moments, 2.0, nu, relations) for nu in (0.01, 1.0, 100.0)]
    starts = np.random.default_rng(8).uniform(-1.5, 1.5, size=(3, *relations.lower.shape))
    together = alternate_side_by_side(problems, base_step, starts, 4)
    for problem, start, ours in zip(problems, starts, together, strict=True):
        alone = AlternationSolver(base_step).solve(problem, Settings(1e-15, 4), start=start).point
        np.testing.assert_allclose(ours.W, alone.W, rtol=0, atol=1e-10)
        np.testing.assert_allclose(ours.M, alone.M, rtol=0, atol=1e-10)
    assert any(np.abs(point.M).max() == 1 for point in together)


def test_box_reaches_the_trace_norm_optimum_where_it_does_not_bind():
    moments, _ = written_out(np.random.default_rng(5), 60, 5, 4, "ovr")
    wide = RelationSet(-1e3 * np.ones((4, 4)), 1e3 * np.ones((4, 4)))
    boxed, free = (
        AlternationSolver().solve(SharedProblem(moments, 0.05, 2.0, relations), Settings(1e-12, 100_000))
        for relations in (wide, SETS["free"])
    )
    assert boxed.certificate.kind == "global"
    assert boxed.certificate.primal == pytest.approx(free.certificate.primal, rel=1e-9)


@pytest.mark.parametrize("shape", [(6, 4, 3), (6, 3, 5), (3, 5, 4)])
def test_balancing_keeps_the_product_and_balances_it(shape):
    q, b, p = shape
    rng = np.random.default_rng(6)
    W, M = rng.normal(size=(q, b)), rng.normal(size=(b, p))
    balanced_W, balanced_M = balance(W, M, 3.0)
    assert (balanced_W.shape, balanced_M.shape) == (W.shape, M.shape)
    np.testing.assert_allclose(balanced_W @ balanced_M, W @ M, atol=1e-12)
    np.testing.assert_allclose(balanced_W.T @ balanced_W, 3.0 * balanced_M @ balanced_M.T, atol=1e-12)
    trace_norm = np.linalg.svd(W @ M, compute_uv=False).sum()
    penalty = np.sum(balanced_W**2) + 3.0 * np.sum(balanced_M**2)
    assert penalty == pytest.approx(2 * np.sqrt(3.0) * trace_norm)
