"""A followed vertex, checked afresh in NumPy: it is the solution at its new place."""

from dataclasses import replace

import numpy as np
import pytest

from polymargin._native.homotopy import MAX_CLASSES
from polymargin.problems.hinge import weston_watkins
from polymargin.problems.penalties import FusionPenalty
from polymargin.problems.sparse import SparseProblem
from polymargin.solvers.contract import Settings
from polymargin.solvers.sparse.cutting_plane import CuttingPlanes, Sweep, largest_penalty_weight
from polymargin.solvers.sparse.homotopy import Homotopy
from polymargin.solvers.sparse.settings import CuttingSettings
from tests.simulate import blobs, random_hinges, random_penalty

SETTINGS = Settings(tol=1e-9, max_iter=10_000)
MACHINES = [
    (name, loss, weighted)
    for name in ("l1", "supnorm", "fusion")
    for loss in ("weston", "lee")
    for weighted in (False, True)
]


def random_problem(seed, name, loss, weighted):
    rng = np.random.default_rng(seed)
    k = int(rng.integers(2, 6))
    n, p = int(rng.integers(20, 40)), int(rng.integers(3, 40))
    X, labels = blobs(rng, n, p, k)
    penalty = random_penalty(rng, name, k, p, weighted=weighted)
    return SparseProblem(X - X.mean(axis=0), random_hinges(rng, loss, labels, k), penalty)


def solved(problem, C):
    """Return the master of a solved problem."""
    sweep = Sweep(problem)
    assert sweep.solve(C, SETTINGS).certificate.within(1e-9)
    return sweep.master


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize(("name", "loss", "weighted"), MACHINES)
def test_the_vertex_is_optimal_where_it_was_followed_to(name, loss, weighted, seed):
    problem = random_problem(seed, name, loss, weighted)
    largest = largest_penalty_weight(problem)
    master = solved(problem, 1 / (0.7 * largest))
    hinges, X, weight = master.hinges, problem.X, 0.3 * largest
    vertex = Homotopy(hinges, X, problem.penalty).follow(master.vertex(), 0.7 * largest, weight)
    k, basic, atoms = hinges.shape[1], vertex.basic, vertex.atoms
    assert len(basic) == len(atoms.variables) + k - 1
    sees = hinges.along(np.eye(k)).T
    columns = X[hinges.example][:, atoms.variables].T
    rows = np.vstack([sees[:, :-1].T, (atoms.directions @ sees.T) * columns])
    reach = np.append(np.zeros(k - 1), weight * vertex.signs * atoms.costs)
    # multipliers of the hinges: within their bounds, no polar above the penalty weight
    values = np.where(vertex.at_upper, hinges.upper, 0.0)
    values[basic] = 0.0
    values[basic] = np.linalg.solve(rows[:, basic], reach - rows @ values)
    assert np.all(values >= -1e-8)
    assert np.all(values <= hinges.upper + 1e-8)
    G = problem.correlations(hinges.dual(values))
    assert problem.penalty.polars(G, above=weight).max() <= weight * (1 + 1e-8)
    # coefficients of the atoms and margins of the hinges: on the right side, but for the broken ties
    multipliers = np.linalg.solve(rows[:, basic].T, np.full(len(basic), hinges.offset))
    apart = 1e3 * CuttingSettings().perturbation * max(1.0, np.abs(multipliers).max())
    assert np.all(vertex.signs * multipliers[k - 1 :] >= -apart)
    margins = hinges.offset - multipliers @ rows
    assert np.all(margins[vertex.at_upper] >= -apart)
    resting = ~vertex.at_upper
    resting[basic] = False
    assert np.all(margins[resting] <= apart)


@pytest.mark.parametrize(("name", "loss", "weighted"), MACHINES)
def test_a_path_equals_cold_starts(name, loss, weighted):
    problem = random_problem(7, name, loss, weighted)
    Cs = 1 / (np.array([0.8, 0.5, 0.3, 0.1, 1e-2, 1e-3, 1e-4]) * largest_penalty_weight(problem))
    path = CuttingPlanes(CuttingSettings(most_watched=10)).path(problem, Cs, SETTINGS)
    for C, warm in zip(Cs, path, strict=True):
        cold = CuttingPlanes().solve(replace(problem, C=C), SETTINGS)
        assert warm.certificate.within(1e-9)
        assert warm.certificate.primal == pytest.approx(cold.certificate.primal, rel=1e-8)


def test_a_walk_that_is_stopped_is_repaired_by_the_master():
    problem = random_problem(1, "fusion", "weston", False)
    largest = largest_penalty_weight(problem)
    at = replace(problem, C=1 / (0.2 * largest))
    optimum = CuttingPlanes().solve(at, SETTINGS).certificate.primal
    solver = CuttingPlanes(CuttingSettings(refresh_every=2, max_exchanges=4))
    *_, solution = solver.path(problem, [1 / (0.7 * largest), 1 / (0.2 * largest)], SETTINGS)
    assert solution.certificate.within(1e-9)
    assert solution.certificate.primal == pytest.approx(optimum, rel=1e-8)


def test_more_classes_than_can_be_followed():
    rng = np.random.default_rng(0)
    k = MAX_CLASSES + 2
    labels = np.arange(2 * k) % k
    X = 3.0 * rng.normal(size=(k, 4))[labels] + rng.normal(size=(2 * k, 4))
    upper = 1.0 * (labels[:, None] != np.arange(k))
    problem = SparseProblem(X - X.mean(axis=0), weston_watkins(labels, upper), FusionPenalty())
    for solution in CuttingPlanes().path(problem, (0.06, 0.07), SETTINGS):
        assert solution.certificate.within(1e-9)
        assert solution.point.coef.any()
