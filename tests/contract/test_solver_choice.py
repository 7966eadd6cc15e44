"""Every estimator whose problem several algorithms can solve lets its user choose, and says what ran."""

import numpy as np
import pytest
from sklearn.base import clone

from polymargin import (
    MulticategorySVC,
    ProximalSVC,
    RobustSVC,
    SharedStructureSVC,
    SparseSVC,
    TraceNormSVC,
    persistence,
)
from polymargin.solvers.hinge.general import GeneralNewton
from polymargin.solvers.ridge.exact import DualRidgeSolver
from polymargin.solvers.robust.proximal_newton import ProximalNewton
from polymargin.solvers.shared.alternation import AlternationSolver
from polymargin.solvers.shared.proximal_gradient import ProximalGradient
from polymargin.solvers.sparse.cutting_plane import CuttingPlanes
from tests.simulate import blobs

CHOICES = {
    MulticategorySVC(kernel="linear"): ("decomposition", "interior_point", "feature_newton", "block_descent"),
    MulticategorySVC(loss="weston", kernel="linear"): ("relative_splitting", "feature_newton"),
    MulticategorySVC(): ("decomposition", "active_set", "general_newton"),
    SparseSVC(penalty="l2", tol=1e-6): ("squared_norm", "cutting_planes"),
    SparseSVC(): ("cutting_planes",),
    ProximalSVC(): ("normal_equations", "dual_ridge"),
    ProximalSVC(kernel="rbf", landmarks=9, random_state=0): ("normal_equations", "dual_ridge"),
    RobustSVC(truncation=-np.inf, kernel="rbf"): ("interior_point", "decomposition", "proximal_newton"),
    RobustSVC(truncation=-np.inf, kernel="linear"): ("interior_point", "decomposition", "proximal_newton"),
    RobustSVC(starts=("utility",), loss="logistic"): ("interior_point",),
    SharedStructureSVC(): ("alternation", "variable_projection"),
    SharedStructureSVC(formulation="fast"): ("alternation",),
    TraceNormSVC(): ("alternation", "variable_projection"),
    TraceNormSVC(loss="smoothed_hinge", tol=1e-4): ("proximal_gradient",),
}
"""Machines, the robust ones without truncation so that they have one optimum, and solvers that fit."""
REFUSED = [
    (SparseSVC(solver="squared_norm"), "'squared_norm' cannot take this problem: it takes multiples of the sum"),
    (
        RobustSVC(loss="logistic", solver="proximal_newton"),
        "'proximal_newton' cannot take this problem: its losses",
    ),
    (
        SharedStructureSVC(formulation="fast", solver="variable_projection"),
        "'variable_projection' cannot take this problem: formulation 'fast' has no objective",
    ),
    (
        TraceNormSVC(loss="smoothed_hinge", solver="alternation"),
        r"one of \['proximal_gradient'\] for this problem",
    ),
]


def machines(test):
    pairs = [(machine, name) for machine, names in CHOICES.items() for name in names]
    names = [f"{type(machine).__name__}-{name}-{at}" for at, (machine, name) in enumerate(pairs)]
    return pytest.mark.parametrize(("machine", "name"), pairs, ids=names)(test)


def everyone(test):
    return pytest.mark.parametrize("machine", CHOICES, ids=lambda machine: type(machine).__name__)(test)


@pytest.fixture(scope="module")
def data():
    X, labels = blobs(np.random.default_rng(3), 60, 4, 3)
    return X, np.array(["ash", "beech", "cedar"])[labels]


@machines
def test_a_solver_by_name_finds_the_same(machine, name, data):
    auto, named = clone(machine).fit(*data), clone(machine).set_params(solver=name).fit(*data)
    if name != "squared_norm":  # the methods of the hinge machine that it states are told instead
        assert name in [row.method for row in named.trace_]
    assert named.converged_ or machine.get_params().get("formulation") == "fast"
    primal = auto.certificate_.primal
    assert named.certificate_.primal == pytest.approx(primal, abs=2 * machine.tol * max(1.0, abs(primal)))


@everyone
def test_an_unknown_name_is_answered_by_those_that_fit(machine, data):
    with pytest.raises(ValueError, match=r"solver must be 'auto', a solver or one of \[.*\] for this") as refusal:
        clone(machine).set_params(solver="simplex").fit(*data)
    assert all(repr(name) in str(refusal.value) for name in CHOICES[machine])
    assert str(refusal.value).endswith("got 'simplex'.")


@everyone
@pytest.mark.parametrize("wrong", [3, None, object])
def test_what_is_no_solver_is_refused(machine, wrong, data):
    with pytest.raises(
        TypeError, match="solver must be 'auto', a name or an object with the methods solve and acc"
    ):
        clone(machine).set_params(solver=wrong).fit(*data)


@pytest.mark.parametrize(("machine", "why"), REFUSED, ids=lambda part: type(part).__name__)
def test_a_solver_says_why_it_does_not_take_the_problem(machine, why, data):
    with pytest.raises(ValueError, match=why):
        machine.fit(*data)


class Recorder:
    """A solver of somebody's own: another one, and the problems that it was given."""

    name = "recorder"

    def __init__(self, solver):
        self.solver, self.problems = solver, []

    def accepts(self, problem):
        return self.solver.accepts(problem)

    def solve(self, problem, settings, *, start=None, observer=None):
        self.problems.append(problem)
        return self.solver.solve(problem, settings, start=start, observer=observer)


OWN = [
    (MulticategorySVC(), GeneralNewton()),
    (SparseSVC(), CuttingPlanes()),
    (ProximalSVC(), DualRidgeSolver()),
    (RobustSVC(truncation=-np.inf), ProximalNewton()),
    (SharedStructureSVC(), AlternationSolver(extrapolated=True)),
    (TraceNormSVC(), AlternationSolver()),
    (TraceNormSVC(loss="smoothed_hinge", tol=1e-4), ProximalGradient()),
]


@pytest.mark.parametrize(("machine", "solver"), OWN, ids=lambda part: type(part).__name__)
def test_a_solver_of_ones_own(machine, solver, data):
    recorder = Recorder(solver)
    auto, own = clone(machine).fit(*data), clone(machine).set_params(solver=recorder).fit(*data)
    assert recorder.problems
    primal = auto.certificate_.primal
    assert own.certificate_.primal == pytest.approx(primal, abs=2 * machine.tol * max(1.0, abs(primal)))


@machines
def test_what_ran_is_kept_in_a_file(machine, name, data, tmp_path):
    pytest.importorskip("skops")
    model = clone(machine).set_params(solver=name).fit(*data)
    persistence.save(model, tmp_path / "model.skops")
    read = persistence.load(tmp_path / "model.skops").model
    assert (read.solver, read.solver_, read.status_) == (name, model.solver_, model.status_)
    assert read.trace_ == model.trace_


def test_streams_have_no_rows_to_solve_by(data):
    X, y = data
    classes = np.unique(y)
    named = ProximalSVC(solver="normal_equations", refine=False).partial_fit(X, y, classes=classes)
    assert named.solver_ == "normal_equations"
    with pytest.raises(ValueError, match=r"one of \['normal_equations'\] for this problem, got 'dual_ridge'"):
        ProximalSVC(solver="dual_ridge").partial_fit(X, y, classes=classes)
