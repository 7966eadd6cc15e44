"""Variable projection and extrapolated rounds: where the alternation would end, much sooner."""

from dataclasses import replace

import numpy as np
import pytest

from polymargin.problems.shared import SharedProblem
from polymargin.relations import RelationSet
from polymargin.solvers.contract import Settings, Status
from polymargin.solvers.shared.alternation import AlternationSolver
from polymargin.solvers.shared.base_step import make_base_step
from polymargin.solvers.shared.extrapolation import Anderson
from polymargin.solvers.shared.settings import SharedSettings
from polymargin.solvers.shared.spreading import Spreading
from polymargin.solvers.shared.variable_projection import VariableProjection, task_solver
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


class TestSpreading:
    """More base classifiers than directions: bounds that the solution without them keeps once it is spread."""

    @staticmethod
    def problem(largest, C=1.0, scheme="ovo"):
        moments, tasks = written_out(np.random.default_rng(3), 60, 3, 6, scheme)
        shape = (len(tasks), len(tasks))
        return SharedProblem(moments, C, 0.1, RelationSet(np.full(shape, -largest), np.full(shape, largest)))

    @pytest.mark.parametrize("largest", [0.5, 1.0, np.inf])
    def test_the_global_minimum_within_the_bounds(self, largest):
        problem = self.problem(largest)
        step = make_base_step(problem.tasks)
        ours = Spreading(step, AlternationSolver(step)).solve(problem, Settings(1e-8, 5_000))
        theirs = VariableProjection(step).solve(problem, Settings(1e-8, 5_000))
        assert ours.status is Status.SOLVED
        assert ours.certificate.kind == "global"
        assert ours.certificate.infeasibility == 0.0
        assert np.abs(ours.point.M).max() <= largest
        assert ours.certificate.primal <= theirs.certificate.primal * (1 + 1e-7)
        assert ours.certificate == problem.certify(ours.point)

    @pytest.mark.parametrize("largest", [1e-3, 0.0])
    def test_bounds_that_are_too_narrow_are_left_to_the_other_solver(self, largest):
        problem = self.problem(largest)
        step = make_base_step(problem.tasks)
        other = VariableProjection(step)
        ours = Spreading(step, other).solve(problem, Settings(1e-8, 5_000))
        assert np.abs(ours.point.M).max() <= largest
        assert ours.certificate.primal == other.solve(problem, Settings(1e-8, 5_000)).certificate.primal

    def test_it_is_taken_for_very_many_relations_alone(self):
        problem = self.problem(1.0)
        step = make_base_step(problem.tasks)
        assert isinstance(task_solver("auto", problem, step, to_the_end=True), VariableProjection)
        many = replace(problem, relations=RelationSet(-np.ones((400, 400)), np.ones((400, 400))))
        assert isinstance(task_solver("auto", many, step, to_the_end=True), Spreading)
        assert isinstance(task_solver("auto", many, step, to_the_end=False), AlternationSolver)


def test_rounds_of_steps_that_cannot_be_finished_end():
    problem = TestSpreading.problem(1.0)
    hasty = SharedSettings(dense_unknowns=0, cg_steps=1)
    found = AlternationSolver(tuning=hasty).solve(problem, Settings(1e-300, 5_000))
    assert found.status is Status.STALLED
    assert found.n_iter <= hasty.unfinished_steps + 1
