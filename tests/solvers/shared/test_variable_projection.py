"""Variable projection and extrapolated rounds: where the alternation would end, much sooner."""

import numpy as np
import pytest

from polymargin.problems.shared import SharedProblem
from polymargin.relations import RelationSet
from polymargin.solvers.contract import Settings, Status
from polymargin.solvers.shared.alternation import AlternationSolver
from polymargin.solvers.shared.extrapolation import Anderson
from polymargin.solvers.shared.variable_projection import VariableProjection
from tests.simulate_shared import written_out

ONES = np.ones((4, 4))
SETS = {
    "box": RelationSet(-ONES, ONES),
    "nonnegative": RelationSet(0 * ONES, ONES),
    "symmetric": RelationSet(-ONES, ONES, symmetric=True),
    "psd": RelationSet(-ONES, ONES, symmetric=True, psd=True),
    "two bases": RelationSet(-np.ones((2, 4)), np.ones((2, 4))),
}
every_set = pytest.mark.parametrize("relations", SETS.values(), ids=SETS.keys())


@every_set
@pytest.mark.parametrize(("C", "nu"), [(0.01, 1.0), (1.0, 0.1), (1.0, 50.0)])
@pytest.mark.parametrize("seed", range(3))
def test_a_stationary_point_no_higher_than_what_many_rounds_reach(relations, C, nu, seed):
    moments, _ = written_out(np.random.default_rng(seed), 60, 5, 4, "ovr")
    problem = SharedProblem(moments, C, nu, relations)
    start = np.eye(4) if len(relations.lower) == 4 else np.random.default_rng(1).uniform(-1, 1, size=(2, 4))
    ours = VariableProjection().solve(problem, Settings(1e-8, 5_000), start=start)
    theirs = AlternationSolver().solve(problem, Settings(1e-8, 20_000), start=ours.point.M)
    assert ours.status is Status.SOLVED
    primals = np.array([record.primal for record in ours.history])
    assert np.all(np.diff(primals) <= 1e-13 * primals[0])
    assert theirs.certificate.primal == pytest.approx(ours.certificate.primal, rel=1e-7)
    assert ours.n_iter <= 1_000


@pytest.mark.parametrize("scheme", ["ovr", "ovo"])
def test_extrapolated_rounds_end_where_plain_ones_do_in_fewer(scheme):
    moments, tasks = written_out(np.random.default_rng(2), 60, 5, 4, scheme)
    p = len(tasks)
    problem = SharedProblem(moments, 1.0, 0.1, RelationSet(-np.ones((p, p)), np.ones((p, p))))
    plain, fast = (
        AlternationSolver(extrapolated=extrapolated).solve(problem, Settings(1e-8, 20_000))
        for extrapolated in (False, True)
    )
    assert plain.status is fast.status is Status.SOLVED
    assert fast.certificate.primal == pytest.approx(plain.certificate.primal, rel=1e-6)
    assert fast.n_iter < plain.n_iter / 3


def test_an_extrapolated_linear_map_finds_its_fixed_point_in_as_many_steps_as_it_has_dimensions():
    rng = np.random.default_rng(0)
    turn, shift = np.linalg.qr(rng.normal(size=(5, 5)))[0] * 0.95, rng.normal(size=5)
    extrapolate, place = Anderson(memory=6), np.zeros(5)
    for _ in range(7):
        place = extrapolate(place, turn @ place + shift)
    np.testing.assert_allclose(turn @ place + shift, place, atol=1e-9)


def test_only_the_problem_with_one_objective_is_taken():
    moments, _ = written_out(np.random.default_rng(0), 60, 5, 4, "ovr")
    problem = SharedProblem(moments, 1.0, 1.0, SETS["box"], "fast")
    assert "no objective of W and M together" in VariableProjection().accepts(problem)
