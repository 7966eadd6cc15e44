"""The sparse machines against the whole linear program in HiGHS."""

from dataclasses import replace

import numpy as np
import pytest

from polymargin.problems.hinge import weston_watkins
from polymargin.problems.penalties import FusionPenalty
from polymargin.problems.sparse import SparseProblem
from polymargin.solvers.contract import Settings, Status
from polymargin.solvers.sparse.cutting_plane import CuttingPlanes, largest_penalty_weight
from tests.oracles import sparse_optimum
from tests.simulate import blobs, random_hinges, random_penalty

SETTINGS = Settings(tol=1e-9, max_iter=10_000)
MACHINES = [(name, loss) for name in ("l1", "supnorm", "fusion") for loss in ("weston", "lee", "crammer")]


def random_problem(seed, name, loss):
    """K from 2 to 7, p below and above n, unbalanced classes, weighted or not."""
    rng = np.random.default_rng(seed)
    k = int(rng.integers(2, 8))
    n, p = int(rng.integers(k + 3, 36)), int(rng.integers(1, 50))
    X, labels = blobs(rng, n, p, k, spread=rng.choice([0.1, 0.5, 1.5]))
    labels = np.where(rng.random(n) < 0.2, 0, labels)
    labels[:k] = np.arange(k)
    penalty = random_penalty(rng, name, k, p, weighted=rng.random() < 0.6)
    return SparseProblem(X, random_hinges(rng, loss, labels, k), penalty, 10.0 ** rng.uniform(-2, 3))


@pytest.mark.parametrize("seed", range(23))
@pytest.mark.parametrize(("name", "loss"), MACHINES)
def test_objective_of_random_problems(name, loss, seed):
    problem = random_problem(1000 + seed, name, loss)
    solution = CuttingPlanes().solve(problem, SETTINGS)
    certificate = solution.certificate
    optimum = sparse_optimum(problem)
    assert solution.status is Status.SOLVED
    assert certificate.primal == pytest.approx(optimum, rel=1e-8, abs=1e-8)
    assert certificate.dual == pytest.approx(optimum, rel=1e-8, abs=1e-8)
    assert certificate.infeasibility <= 1e-9


@pytest.mark.parametrize("k", [13, 16, 20, 26])
@pytest.mark.parametrize("loss", ["weston", "lee", "crammer"])
def test_weighted_fusion_of_many_classes(loss, k):
    rng = np.random.default_rng(k)
    X, labels = blobs(rng, 2 * k, 3, k, spread=0.5)
    penalty = random_penalty(rng, "fusion", k, 3, weighted=True)
    problem = SparseProblem(X, random_hinges(rng, loss, labels, k), penalty, 10.0 ** rng.uniform(-1, 2))
    solution = CuttingPlanes().solve(problem, SETTINGS)
    assert solution.status is Status.SOLVED
    optimum = sparse_optimum(problem)
    assert solution.certificate.primal == pytest.approx(optimum, rel=1e-8, abs=1e-8)
    assert solution.certificate.dual == pytest.approx(optimum, rel=1e-8, abs=1e-8)


class Unlisted(FusionPenalty):
    """Pairwise fusion without a table of all sets, as many classes have it."""

    def price_rule(self, n_classes, n_features):
        return None


@pytest.mark.parametrize("loss", ["weston", "lee"])
def test_paths_of_weighted_fusion_need_no_table_of_all_sets(loss):
    """Few classes have such a table, and their walk along C; cuts alone lead to the same machines."""
    rng = np.random.default_rng(3)
    X, labels = blobs(rng, 40, 6, 6, spread=0.5)
    problem = SparseProblem(
        X, random_hinges(rng, loss, labels, 6), random_penalty(rng, "fusion", 6, 6, weighted=True)
    )
    Cs = np.geomspace(0.01, 10.0, 6)
    listed = [solution.certificate for solution in CuttingPlanes().path(problem, Cs, SETTINGS)]
    problem = replace(problem, penalty=Unlisted(problem.penalty.weights))
    cut = [solution.certificate for solution in CuttingPlanes().path(problem, Cs, SETTINGS)]
    np.testing.assert_allclose([c.primal for c in cut], [c.primal for c in listed], rtol=1e-8)
    np.testing.assert_allclose([c.dual for c in cut], [c.primal for c in listed], rtol=1e-8)


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize(("name", "loss"), MACHINES)
def test_largest_penalty_weight_is_where_the_first_variable_enters(name, loss, seed):
    problem = random_problem(2000 + seed, name, loss)
    largest = largest_penalty_weight(problem)
    Cs = (1 / (1.0001 * largest), 1 / (0.999 * largest))
    zero, entered = CuttingPlanes().path(problem, Cs, SETTINGS)
    assert not zero.point.coef.any()
    assert entered.point.coef.any()
    for solution in (zero, entered):
        assert solution.certificate.within(1e-9)


def test_largest_penalty_weight_of_balanced_classes_is_the_closed_form():
    rng = np.random.default_rng(0)
    k, n, p = 4, 40, 12
    labels = np.arange(n) % k
    losses = random_hinges(rng, "lee", labels, k)
    losses = replace(losses, upper=1.0 * (labels[:, None] != np.arange(k)))
    problem = SparseProblem(rng.normal(size=(n, p)), losses, random_penalty(rng, "fusion", k, p, weighted=False))
    # every multiplier at its bound is the only dual point that is optimal without variables
    everything = problem.penalty.polars(problem.correlations(losses.upper), above=0.0).max()
    assert largest_penalty_weight(problem) == pytest.approx(everything, rel=1e-12)


def test_degenerate_data():
    """Repeated and constant columns, repeated rows with different labels, a class with one member."""
    rng = np.random.default_rng(3)
    k = 3
    X = np.round(rng.normal(size=(20, 4)))
    X = np.hstack([X, X[:, :2], np.full((20, 1), 7.0), np.zeros((20, 1))])
    X[10:] = X[:10]
    labels = np.concatenate([rng.integers(0, 2, 19), [2]])
    labels[:2] = 0, 1
    for name, loss in MACHINES:
        problem = SparseProblem(
            X, random_hinges(rng, loss, labels, k), random_penalty(rng, name, k, 8, weighted=False), 5.0
        )
        solution = CuttingPlanes().solve(problem, SETTINGS)
        assert solution.certificate.within(1e-9)
        assert solution.certificate.primal == pytest.approx(sparse_optimum(problem), rel=1e-8, abs=1e-8)
        assert not solution.point.coef[:, 6:].any()


def test_constant_variables_never_enter():
    problem = random_problem(0, "fusion", "weston")
    constant = replace(problem, X=np.full((problem.X.shape[0], 2), 3.7), penalty=type(problem.penalty)())
    assert largest_penalty_weight(constant) == 0.0


def test_no_variable_enters_where_one_class_outweighs_the_others():
    rng = np.random.default_rng(4)
    X, labels = blobs(rng, 60, 3, 2, spread=0.3)
    upper = np.where(labels == 0, 1e3, 1e-4)[:, None] * (labels[:, None] != np.arange(2))
    problem = SparseProblem(X, weston_watkins(labels, upper), random_penalty(rng, "l1", 2, 3, weighted=False), 1e6)
    assert largest_penalty_weight(problem) == 0.0
    solution = CuttingPlanes().solve(problem, SETTINGS)
    assert not solution.point.coef.any()
    assert solution.certificate.primal == pytest.approx(sparse_optimum(problem), rel=1e-8)
