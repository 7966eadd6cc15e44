import itertools
from dataclasses import replace

import numpy as np
import pytest
from scipy import sparse

from polymargin.problems.hinge import weston_watkins
from polymargin.problems.penalties import FusionPenalty
from polymargin.problems.sparse import SparsePoint, SparseProblem
from polymargin.solvers.contract import Settings, Status
from polymargin.solvers.sparse.cutting_plane import CuttingPlanes, largest_penalty_weight
from polymargin.solvers.sparse.settings import CuttingSettings

SETTINGS = Settings(tol=1e-9, max_iter=10_000)


@pytest.fixture
def problem():
    """Ten of 300 variables matter."""
    rng = np.random.default_rng(0)
    labels = np.arange(80) % 4
    X = rng.normal(size=(80, 300))
    X[:, :10] += rng.normal(size=(4, 10))[labels]
    upper = 1.0 * (labels[:, None] != np.arange(4))
    return SparseProblem(X, weston_watkins(labels, upper), FusionPenalty())


def test_a_path_continues_from_the_last_basis_and_equals_cold_starts(problem):
    Cs = 1 / (np.array([0.5, 0.2, 0.1, 0.05, 0.5]) * largest_penalty_weight(problem))
    path = CuttingPlanes(CuttingSettings(spare_cuts=5)).path(problem, Cs, SETTINGS)
    for C, warm in zip(Cs, path, strict=True):
        cold = CuttingPlanes().solve(replace(problem, C=C), SETTINGS)
        assert warm.certificate.within(1e-9)
        assert warm.certificate.primal == pytest.approx(cold.certificate.primal, rel=1e-9)


def test_sparse_rows_and_large_means_change_nothing(problem):
    at = replace(problem, C=0.1)
    dense = CuttingPlanes().solve(at, SETTINGS)
    as_sparse = CuttingPlanes().solve(replace(at, X=sparse.csr_array(at.X)), SETTINGS)
    shifted = CuttingPlanes().solve(replace(at, X=at.X + 1000.0), SETTINGS)
    for other in (as_sparse, shifted):
        assert other.certificate.primal == pytest.approx(dense.certificate.primal, rel=1e-9)
        np.testing.assert_allclose(other.point.coef, dense.point.coef, atol=1e-9)


def test_limits_keep_a_certified_point(problem):
    at = replace(problem, C=1.0)
    stopped = CuttingPlanes().solve(at, Settings(1e-9, max_iter=3))
    assert stopped.status is Status.MAX_ITER
    assert stopped.n_iter == 3
    optimum = CuttingPlanes().solve(at, SETTINGS).certificate.primal
    assert stopped.certificate.infeasibility <= 1e-9
    assert stopped.certificate.dual <= optimum <= stopped.certificate.primal
    in_no_time = CuttingPlanes().solve(at, Settings(1e-9, 100, time_limit=1e-9))
    assert in_no_time.status is Status.TIME_LIMIT
    assert in_no_time.certificate.dual <= optimum <= in_no_time.certificate.primal


def test_the_history_brackets_the_optimum(problem):
    seen = []
    solution = CuttingPlanes().solve(replace(problem, C=1.0), SETTINGS, observer=seen.append)
    assert len(seen) == solution.n_iter > 2
    assert all(a.primal >= b.primal and a.dual <= b.dual for a, b in itertools.pairwise(seen))


def test_any_point_is_certified_by_scaling(problem):
    at = replace(problem, C=1.0)
    optimum = CuttingPlanes().solve(at, SETTINGS).certificate.primal
    rng = np.random.default_rng(1)
    W = rng.normal(size=(4, 300))
    b = rng.normal(size=4)
    point = SparsePoint(W - W.mean(axis=0), b - b.mean(), 0.5 * at.losses.upper)
    certificate = at.certify(point)
    assert 0 < certificate.dual < optimum < certificate.primal
    assert certificate.infeasibility <= 1e-9
    beyond = at.certify(SparsePoint(W, b, 1.5 * at.losses.upper))
    assert beyond.infeasibility >= 0.5


@pytest.mark.parametrize("scale", [1e-3, 1e3])
def test_six_orders_of_magnitude_of_C_and_any_unit_of_the_variables(problem, scale):
    scaled = replace(problem, X=scale * problem.X)
    largest = largest_penalty_weight(scaled)
    Cs = 1 / (np.array([0.9, 1e-2, 1e-4, 1e-6]) * largest)
    for solution in CuttingPlanes().path(scaled, Cs, SETTINGS):
        assert solution.certificate.within(1e-8)


def test_the_solver_keeps_nothing_and_a_start_saves_rounds(problem):
    solver, at = CuttingPlanes(), replace(problem, C=1.0)
    first, again = solver.solve(at, SETTINGS), solver.solve(at, SETTINGS)
    assert again.n_iter == first.n_iter
    np.testing.assert_array_equal(again.point.coef, first.point.coef)
    warm = solver.solve(at, SETTINGS, start=first.point)
    assert warm.n_iter < first.n_iter
    assert warm.certificate.primal == pytest.approx(first.certificate.primal, rel=1e-9)


@pytest.mark.parametrize("patience", [0, 1])
def test_a_simplex_method_that_wanders_starts_again_in_another_way(problem, patience):
    expected = CuttingPlanes().solve(problem, SETTINGS)
    solution = CuttingPlanes(CuttingSettings(patience=patience)).solve(problem, SETTINGS)
    assert solution.certificate.within(1e-9)
    assert solution.certificate.primal == pytest.approx(expected.certificate.primal, rel=1e-9)
