"""The loop over methods, and what the policy names."""

from dataclasses import replace

import numpy as np
import pytest
from scipy import sparse

from polymargin import MulticategorySVC
from polymargin.gram import DenseGram, FeatureGram
from polymargin.problems.certificate import Certificate
from polymargin.problems.hinge import HingePoint, HingeProblem, crammer_singer, lee_lin_wahba, weston_watkins
from polymargin.solvers.contract import Progress, Settings, Status
from polymargin.solvers.effort import RATES
from polymargin.solvers.hinge.block_descent import BlockDescent
from polymargin.solvers.hinge.decomposition import Decomposition
from polymargin.solvers.hinge.feature_newton import FeatureNewton
from polymargin.solvers.hinge.interior_point import InteriorPoint
from polymargin.solvers.hinge.portfolio import Portfolio
from polymargin.solvers.policy import Policy, Stage
from tests.simulate import blobs

LOSSES = ("lee", "weston", "crammer")


def separable(n=560, p=120, k=8, seed=0):
    """Rows of classes that a hyperplane separates, in many correlated features."""
    rng = np.random.default_rng(seed)
    labels = np.arange(n) % k
    common = rng.normal(size=(n, 20)) @ rng.normal(size=(20, p)) / np.sqrt(20)
    return 0.6 * rng.normal(size=(k, p))[labels] + common + 0.5 * rng.normal(size=(n, p)), labels


def machine(loss, X, labels, C=1.0):
    k = labels.max() + 1
    upper = C * (labels[:, None] != np.arange(k)).astype(float)
    if loss == "crammer":
        losses = crammer_singer(labels, upper.max(axis=1), k)
    else:
        losses = (lee_lin_wahba if loss == "lee" else weston_watkins)(labels, upper)
    return HingeProblem(FeatureGram(X), losses)


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("C", [0.01, 1.0, 100.0])
def test_separable_classes_in_many_features(loss, C):
    X, labels = separable()
    model = MulticategorySVC(C=C, loss=loss, kernel="linear", tol=1e-3).fit(X, labels)
    assert model.converged_
    precomputed = MulticategorySVC(C=C, loss=loss, kernel="precomputed", tol=1e-3).fit(X @ X.T, labels)
    here, there = model.certificate_, precomputed.certificate_
    assert here.dual <= there.primal + 1e-9 * abs(there.primal)
    assert there.dual <= here.primal + 1e-9 * abs(here.primal)


@pytest.mark.parametrize("method", [BlockDescent, FeatureNewton, InteriorPoint, Decomposition])
def test_a_method_ends_with_its_work(method):
    problem = machine("weston", *separable(200, 10, 3), C=10.0)
    solution = method().solve(problem, Settings(1e-12, work=1e-9))
    assert solution.status in (Status.WORK_LIMIT, Status.STALLED)
    assert solution.n_iter <= 2


class Stuck:
    """A solver that never gets anywhere."""

    name = "stuck"

    def accepts(self, problem):
        return True

    def solve(self, problem, settings, *, start=None, observer=None):
        return BlockDescent().solve(problem, replace(settings, work=1e-12), start=start, observer=observer)


class StuckFirst(Policy):
    def stages(self, state, chosen=None):
        yield Stage(Stuck(), 1.0, 2.0)
        yield Stage(InteriorPoint(), 0.5)


def test_a_method_without_progress_is_left_and_the_trace_shows_it():
    problem = machine("weston", *separable(200, 10, 3))
    records = []
    solution = Portfolio(policy=StuckFirst()).solve(problem, Settings(1e-6), observer=records.append)
    assert solution.status is Status.SOLVED
    assert [(row.method, row.predicted) for row in solution.trace] == [
        ("block_descent", 1.0),
        ("interior_point", 0.5),
    ]
    assert all(row.work > 0.0 for row in solution.trace)
    assert solution.n_iter == sum(row.iterations for row in solution.trace)
    assert [record.iteration for record in records] == sorted(record.iteration for record in records)


class Offers:
    """A method that offers one point, whatever the problem."""

    name = "offers"

    def __init__(self, offer):
        self.offer = offer

    def accepts(self, problem):
        return True

    def solve(self, problem, settings, *, start=None, observer=None):
        with Progress(settings, observer, method=self.name) as progress:
            progress.status = Status.STALLED
            return progress.finish(*self.offer(problem))


@pytest.mark.parametrize("loss", ["weston", "crammer"])
def test_many_classes_are_left_to_block_descent(loss):
    """Exchanges between 100 classes look at 4,950 pairs, which is most of what the decomposition does."""
    rng = np.random.default_rng(0)
    labels = np.arange(199) % 100
    X = rng.normal(size=(199, 20)) + 2.0 * rng.normal(size=(100, 20))[labels]
    solution = Portfolio().solve(machine(loss, X, labels, C=100.0), Settings(1e-3))
    assert solution.status is Status.SOLVED
    assert [row.method for row in solution.trace] == ["block_descent"]


def infeasible(problem):
    """Offer variables at their bounds for one class alone: the dual bound of a problem without intercept."""
    dual = problem.losses.resting_dual()
    dual[problem.losses.block_labels == 0] += 1.0
    point = HingePoint(dual, np.zeros(problem.losses.n_classes))
    return point, problem.certify(point)


def contradicted(problem):
    """Offer a feasible point under a dual that no point has."""
    point = HingePoint(problem.losses.resting_dual(), np.zeros(problem.losses.n_classes))
    primal = problem.certify(point).primal
    return point, Certificate.of(primal, 2.0 * primal)


def not_finite(problem):
    """Offer a point without numbers."""
    point = HingePoint(np.full_like(problem.losses.resting_dual(), np.nan), np.zeros(problem.losses.n_classes))
    return point, Certificate.of(np.nan, np.nan)


class OfferFirst(Policy):
    offer = staticmethod(infeasible)

    def stages(self, state, chosen=None):
        yield Stage(Offers(self.offer))
        assert not state.is_within
        yield Stage(BlockDescent())
        yield Stage(Offers(self.offer))


@pytest.mark.parametrize("offer", [infeasible, contradicted, not_finite])
@pytest.mark.parametrize("loss", LOSSES)
def test_a_point_that_proves_nothing_is_neither_the_best_nor_a_start(loss, offer, monkeypatch):
    problem = machine(loss, *separable(90, 4, 3))
    assert not offer(problem)[1].is_proof
    expected = BlockDescent().solve(problem, Settings(1e-6))
    monkeypatch.setattr(OfferFirst, "offer", staticmethod(offer))
    solution = Portfolio(policy=OfferFirst()).solve(problem, Settings(1e-6))
    assert solution.status is Status.SOLVED
    assert solution.certificate.is_proof
    assert solution.certificate.dual <= expected.certificate.primal
    assert solution.certificate.primal == pytest.approx(expected.certificate.primal, rel=2e-6)


@pytest.mark.parametrize("offer", [infeasible, contradicted, not_finite])
def test_a_point_that_proves_nothing_is_never_a_solution(offer):
    problem = machine("weston", *separable(90, 4, 3))
    solution = Portfolio(Offers(offer)).solve(problem, Settings(1e-6))
    assert solution.status is not Status.SOLVED
    optimum = BlockDescent().solve(problem, Settings(1e-6)).certificate
    if offer is not not_finite:
        assert solution.certificate.is_proof
        assert solution.certificate.dual <= optimum.primal


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("scale", [1e-3, 1e-6])
@pytest.mark.parametrize("seed", range(4))
def test_block_descent_moves_the_intercept_where_rows_are_short(loss, scale, seed):
    """No score moves but by the intercept, for which a pull by the length of the rows is too weak."""
    X, labels = separable(40, 1, 3)
    problem = machine(loss, scale * X[labels.argsort()][:34], np.sort(labels)[:34])
    solution = BlockDescent(seed).solve(problem, Settings(1e-4))
    assert solution.status is Status.SOLVED
    assert solution.n_iter < 100


@pytest.mark.parametrize("loss", LOSSES)
def test_block_descent_is_compared_with_what_the_others_would_take(loss):
    problem = machine(loss, *separable())
    first, *others, last = Policy(descent_sweeps=1).routes(problem, 1e-3)
    assert first.method.name == last.method.name == "block_descent"
    assert last.budget is None
    best = min(stage.predicted for stage in others)
    assert first.method.rival <= best
    assert first.budget == pytest.approx(Policy().patience * first.method.rival)


@pytest.mark.parametrize("goes_on", [False, True])
def test_block_descent_is_left_for_what_takes_less_and_not_for_what_takes_more(goes_on):
    problem, settings = machine("lee", *separable(), C=100.0), Settings(1e-3)
    alone = BlockDescent().solve(problem, settings)
    work = alone.trace[0].work
    quick = BlockDescent(rival=0.1 * work, goes_on=goes_on).solve(problem, settings)
    slow = BlockDescent(rival=100.0 * work, goes_on=goes_on).solve(problem, settings)
    assert quick.status is Status.STALLED
    assert quick.trace[0].work < 0.5 * work
    assert slow.n_iter == alone.n_iter


def test_block_descent_beside_a_rival_has_a_trial():
    problem, settings = machine("lee", *separable(), C=100.0), Settings(1e-3)
    rival = 0.1 * BlockDescent().solve(problem, settings).trace[0].work
    at_once, later = (BlockDescent(rival=rival, trial=trial).solve(problem, settings) for trial in (0.0, 2.0))
    assert at_once.trace[0].work < later.trace[0].work


@pytest.mark.parametrize("loss", LOSSES)
def test_block_descent_comes_first_on_few_rows_only_where_it_takes_less(loss):
    few, many = machine(loss, *separable(60, 4, 3), C=100.0), machine(loss, *separable())
    dear, cheap = Policy(descent_sweeps=10_000), Policy(descent_sweeps=1)
    assert "block_descent" not in methods(few, dear, tol=1e-3)
    assert methods(few, cheap, tol=1e-3)[0] == "block_descent"
    assert "block_descent" not in methods(few, cheap, tol=Policy().fine)
    assert methods(many, dear)[0] == "block_descent"


@pytest.mark.parametrize("loss", ["weston", "crammer"])
def test_relative_splitting_is_left_where_an_interior_point_would_be_done(loss):
    """Two rows a class at a large C: it takes ten times as long as expected there, and had all the patience."""
    X, labels = separable(120, 5, 60)
    rows = Portfolio().solve(machine(loss, X, labels, C=100.0), Settings(1e-4)).trace
    assert rows[-1].method == InteriorPoint.name
    predicted = rows[-1].predicted
    for row in rows[:-1]:
        assert row.work <= 1.1 * Policy().patience * predicted


def test_small_problems_are_judged_by_what_their_calls_take():
    """Block descent has next to no operations here, but would need hundreds of epochs."""
    problem = machine("weston", *separable(60, 4, 3), C=100.0)
    alone = BlockDescent().solve(problem, Settings(1e-3))
    rows = Portfolio().solve(problem, Settings(1e-3)).trace
    assert sum(row.iterations for row in rows if row.method == BlockDescent.name) < 0.5 * alone.n_iter
    assert alone.trace[0].work > alone.n_iter * RATES.seconds("call", Policy().block_descent.epoch_calls)


def methods(problem, policy, tol=1e-6):
    return [row.method for row in Portfolio(policy=policy).solve(problem, Settings(tol)).trace]


def test_small_problems_and_kernels_go_to_the_matrix():
    X, labels = separable(200)
    problem = machine("lee", X, labels)
    kernel = replace(problem, gram=DenseGram(X @ X.T))
    on_matrix = {"decomposition", "active_set", "splitting", "kernel_interior"}
    assert methods(problem, Policy())[-1] in on_matrix
    assert set(methods(kernel, Policy(small_rows=0))) <= on_matrix
    assert not set(methods(problem, Policy(small_rows=0, gram_rows=0))) & on_matrix


@pytest.mark.parametrize("loss", LOSSES)
def test_methods_on_the_matrix_take_turns(loss):
    """Whatever the policy's thresholds are, the turns lead to the same solution, and all work is counted."""
    X, labels = separable(150, 4, 3)
    problem = replace(machine(loss, X, labels), gram=DenseGram(np.exp(-0.1 * ((X[:, None] - X) ** 2).sum(axis=2))))
    policies = {
        "patient": Policy(near=0.0, judged_after=10**6, polish_share=0.0, shortest_polish=(0.0, 0.0)),
        "newton": Policy(judged_after=10**6, faces_gain=0.0),
        "interior": Policy(near=0.0, judged_after=1, shortest_slice=1e-9, shortest_faces=1.0),
    }
    found = {name: Portfolio(policy=policy).solve(problem, Settings(1e-7)) for name, policy in policies.items()}
    assert [row.method for row in found["patient"].trace] == ["decomposition"]
    assert found["newton"].trace[1].method == "active_set"
    assert found["interior"].trace[1].method == "interior_point"
    for solution in found.values():
        assert solution.status is Status.SOLVED
        assert all(row.work > 0.0 for row in solution.trace)
        assert solution.n_iter == sum(row.iterations for row in solution.trace)
        assert solution.certificate.primal == pytest.approx(found["newton"].certificate.primal, rel=1e-6)


@pytest.mark.parametrize("solver", ["decomposition", "interior_point", "feature_newton", "block_descent"])
def test_every_method_by_name_finds_the_same(solver):
    X, labels = separable(120, 5, 3)
    auto = MulticategorySVC(kernel="linear", loss="weston", tol=1e-8).fit(X, labels)
    model = MulticategorySVC(kernel="linear", loss="weston", tol=1e-8, solver=solver).fit(X, labels)
    assert model.certificate_.primal == pytest.approx(auto.certificate_.primal, rel=1e-7)
    assert model.solver_ == solver


def test_a_solver_of_ones_own():
    X, labels = separable(120, 5, 3)
    model = MulticategorySVC(kernel="linear", loss="crammer", solver=BlockDescent(seed=3)).fit(X, labels)
    assert model.solver_ == "block_descent"


def test_what_cannot_be_solved_so_is_refused():
    X, labels = separable(60, 5, 3)
    with pytest.raises(
        ValueError, match=r"solver must be .*\['decomposition'.*\] for this problem, got 'simplex'"
    ):
        MulticategorySVC(solver="simplex").fit(X, labels)
    with pytest.raises(ValueError, match="'block_descent' cannot take this problem: it takes a FeatureGram"):
        MulticategorySVC(solver="block_descent").fit(X, labels)
    with pytest.raises(TypeError, match="methods solve and accepts, got 3"):
        MulticategorySVC(solver=3).fit(X, labels)


def test_certificates_of_many_classes_are_counted():
    """Splitting took four times as long as the interior point, and was tried first."""
    rng = np.random.default_rng(1)
    labels = np.concatenate([np.arange(100), rng.integers(0, 100, 99)])
    X = 0.7 * rng.normal(size=(100, 5))[labels] + rng.normal(size=(199, 5))
    model = MulticategorySVC(C=100.0, loss="lee", kernel="linear", tol=1e-3).fit(X, labels)
    assert model.converged_
    assert "splitting" not in {row.method for row in model.trace_}


@pytest.mark.parametrize("loss", LOSSES)
def test_what_features_have_solved_needs_no_matrix(loss, monkeypatch):
    """Steps beyond the tolerance are no reason to form one."""
    X, labels = blobs(np.random.default_rng(0), 300, 4, 3)
    monkeypatch.setattr(FeatureGram, "block", None)
    model = MulticategorySVC(C=0.03, loss=loss, kernel="linear", tol=1e-3).fit(X, labels)
    assert model.converged_
    assert "active_set" not in [row.method for row in model.trace_]


@pytest.mark.parametrize("density", [1e-3, 0.02, 0.3])
def test_pairs_of_entries_in_a_column_are_told_by_a_sample(density):
    rows = sparse.random_array((400, 900), density=density, rng=np.random.default_rng(0)).tocsr()
    rows = sparse.vstack([rows] * 8, format="csr")
    exact = np.square(np.bincount(rows.indices).astype(float)).sum()
    assert Policy()._meetings(rows.indices) == pytest.approx(exact, rel=0.1)
    assert Policy(drawn_entries=rows.nnz)._meetings(rows.indices) == exact
    assert Policy()._meetings(rows.indices[:0]) == 0.0
