"""Newton's method on the faces that splitting tells: what a leap is, when leaps are taken, and where they fail."""

from dataclasses import replace

import numpy as np
import pytest

from polymargin.gram import DenseGram, Kernel
from polymargin.problems.hinge import HingePoint, HingeProblem, lee_lin_wahba
from polymargin.solvers.contract import Progress, Settings, Status
from polymargin.solvers.hinge import faces, leaps
from polymargin.solvers.hinge.decomposition import Decomposition
from polymargin.solvers.hinge.leaps import Leaps, LeapSettings
from polymargin.solvers.hinge.splitting import DEFAULTS as SPLITTING
from polymargin.solvers.hinge.splitting import Splitting
from polymargin.solvers.hinge.splitting_iterate import SplittingIterate
from polymargin.solvers.hinge.splitting_parts import Looks
from tests.oracles import hinge_optimum
from tests.simulate import blobs

EAGER = replace(SPLITTING, leaps=LeapSettings(share=1e9, finest=0.0))
NEVER = replace(SPLITTING, leaps=LeapSettings(share=0.0))
PLAIN = 10**9
"""The stride of steps that never look ahead."""


def problem_of(seed, n=120, k=4, C=100.0, *, fit_intercept=True, kind="plain"):
    rng = np.random.default_rng(seed)
    X, y = blobs(rng, n, 4, k, spread=1.0)
    if kind == "repeated":
        X[n // 2 :] = X[: n - n // 2]
    upper = C * (y[:, None] != np.arange(k)).astype(float)
    if kind == "without weight":
        upper[y == 1] = 0.0
    if kind == "weights far apart":
        upper *= np.where(np.arange(n) % 2, 1e-6, 1.0)[:, None]
    K = X @ X.T if kind == "low rank" else Kernel("rbf", gamma=0.1)(X)
    return HingeProblem(DenseGram(K), lee_lin_wahba(y, upper), fit_intercept)


def iterate_of(problem, steps, tuning=EAGER, rho=0.05):
    n, k = problem.losses.upper.shape
    iterate = SplittingIterate(problem, HingePoint(np.zeros((n, k)), np.zeros(k)), rho, tuning)
    progress = Progress(Settings())
    assert iterate.prepare(progress)
    assert iterate.advance(steps, progress)
    iterate.certified()
    return iterate


@pytest.mark.parametrize("fit_intercept", [True, False])
@pytest.mark.parametrize("in_single", [True, False])
@pytest.mark.parametrize("k", [3, 8])
def test_a_leap_goes_to_the_solution_of_the_face(fit_intercept, in_single, k):
    """The scores of the free variables are on their margins, up to an intercept where there is one."""
    problem = problem_of(0, 60, k, fit_intercept=fit_intercept)
    iterate = iterate_of(problem, 200)
    before, face, upper = iterate.t.copy(), iterate.free(), iterate.upper
    assert 0 < face.sum() < face.size
    tuning = replace(faces.DEFAULTS, ridge=1e-6 if in_single else 1e-10, refinements=30, in_single=in_single)
    assert iterate.leap(Progress(Settings()), tuning)
    # variables off the face are at the bounds that the state before tells
    u = np.where(face, iterate.t, np.clip(before, 0.0, upper))
    margins = problem.losses.margins(problem.gram.matmul(problem.coefficients(u)))
    if fit_intercept:
        np.testing.assert_allclose(u.sum(axis=0), u.sum(axis=0).mean(), rtol=1e-6)
        margins = margins - np.array(
            [margins[face[:, j], j].mean() if face[:, j].any() else 0.0 for j in range(k)]
        )
    np.testing.assert_allclose(margins[face], 0.0, atol=2e-4)


@pytest.mark.parametrize("fit_intercept", [True, False])
@pytest.mark.parametrize("kind", ["plain", "repeated", "low rank", "without weight", "weights far apart"])
@pytest.mark.parametrize("tol", [1e-3, 1e-6])
def test_with_leaps_the_solution_is_the_same_and_certified(fit_intercept, kind, tol):
    problem = problem_of(1, fit_intercept=fit_intercept, kind=kind)
    solution = Splitting(EAGER).solve(problem, Settings(tol))
    fresh = problem.certify(solution.point)
    assert fresh.is_proof
    assert fresh.gap == pytest.approx(solution.certificate.gap, abs=1e-9)
    optimum = hinge_optimum(problem)
    assert fresh.dual <= optimum * (1 + 1e-6) + 1e-6
    assert fresh.primal >= optimum * (1 - 1e-6) - 1e-6
    without = Splitting(NEVER).solve(problem, Settings(tol))
    assert solution.status is Status.SOLVED or without.status is not Status.SOLVED


def test_leaps_save_steps():
    """So they do of plain steps, as those that look ahead leave little to save on problems this small."""
    found = {"few": 0, "many": 0}
    for seed in (1, 2, 3, 6):
        for looks, tuning in zip(found, (EAGER, NEVER), strict=True):
            plain = replace(tuning, stride=PLAIN)
            solution = Splitting(plain).solve(problem_of(seed, 300), Settings(1e-4))
            assert solution.status is Status.SOLVED
            found[looks] += solution.n_iter
    assert found["few"] < 0.7 * found["many"]  # of one problem rounding decides


class Standing:
    """A state whose leaps decide anew about as many variables each time, and gain nothing."""

    def __init__(self, problem):
        self.losses, self.t, self.problem, self.leapt = problem.losses, np.full((8, 3), 0.5), problem, 0
        self.point = HingePoint(np.zeros((8, 3)), np.zeros(3))

    def free(self):
        return (self.t > 0.0) & (self.t < 1.0)

    def leap(self, progress, faces):
        self.leapt += 1
        self.t = np.where(np.arange(3) == self.leapt % 3, 2.0, 0.5) * np.ones((8, 1))
        return True

    def standing(self):
        return {"t": self.t}

    def return_to(self, standing):
        self.t = standing["t"]

    def best(self):
        return self.point, self.problem.certify(self.point)


def test_leaps_that_lead_nowhere_are_given_up_and_wait():
    state = Standing(problem_of(0, 8, 3, 1.0))
    before, tried, gap = state.t, Leaps(leaps.DEFAULTS), state.best()[1].gap
    assert tried.pay(state, gap, 1e-3, np.inf)
    assert tried.take(state, gap, Progress(Settings()), 1e-3)[1].gap == gap
    assert state.leapt == 2
    assert state.t is before
    assert not tried.pay(state, 0.9 * gap, 1e-3, np.inf)
    assert tried.pay(state, leaps.DEFAULTS.wait * gap, 1e-3, np.inf)


def test_faces_too_large_or_empty_and_fine_tolerances_are_left_to_steps():
    state, few = Standing(problem_of(0, 8, 3, 1.0)), replace(faces.DEFAULTS, max_free=5)
    # of two classes per row, at most one of them is free: no face for classes by themselves
    state.t = np.where(np.arange(3) == 0, 0.5, 2.0) * np.ones((8, 1))
    assert Leaps(leaps.DEFAULTS).pay(state, 1.0, 1e-3, np.inf)
    assert not Leaps(replace(leaps.DEFAULTS, faces=few)).pay(state, 1.0, 1e-3, np.inf)
    assert not Leaps(leaps.DEFAULTS).pay(state, 1.0, 1e-6, np.inf)
    state.t = np.zeros((8, 3))
    assert not Leaps(leaps.DEFAULTS).pay(state, 1.0, 1e-3, np.inf)


@pytest.mark.parametrize("limit", [{"work": 1e-9}, {"time_limit": 0.0}])
def test_there_is_no_leap_when_it_is_over(limit):
    problem = problem_of(3)
    iterate = iterate_of(problem, 30)
    before, progress = iterate.t.copy(), Progress(Settings(**limit))
    progress.count("call", 1e9)
    assert not iterate.leap(progress, faces.DEFAULTS)
    np.testing.assert_array_equal(iterate.t, before)


def test_leaps_start_from_a_point_of_the_decomposition():
    problem = problem_of(4, 200)
    start = Decomposition().solve(problem, Settings(0.3)).point
    solution = Splitting(EAGER).solve(problem, Settings(1e-5), start=start)
    assert solution.status is Status.SOLVED
    assert problem.certify(solution.point).gap <= 1e-5


def test_the_steps_that_are_left_lie_between_two_laws():
    """A gap of 1/steps: a constant rate expects too few, the power just what it takes."""
    looks, fewest = Looks(1.0), 30
    assert looks.steps_if_slower(1e-3, fewest) == 0.0
    for steps in (30, 60, 120):
        constant = looks.steps_to_go(steps, 1.0 / steps, 1e-3)
    assert constant < looks.steps_if_slower(1e-3, fewest) < 1000 - 120
    assert looks.steps_if_slower(1.0, fewest) == 0.0
    looks.steps_to_go(150, 1.0, 1e-3)
    assert looks.steps_if_slower(1e-3, fewest) == np.inf


def test_a_gap_that_stands_still_for_few_steps_says_nothing_of_those_left():
    looks = Looks(1.0)
    for steps, gap in ((40, 1e-2), (50, 1e-2)):
        looks.steps_to_go(steps, gap, 1e-6)
    assert looks.steps_if_slower(1e-6, 10) == np.inf
    assert looks.steps_if_slower(1e-6, 40) == 0.0
