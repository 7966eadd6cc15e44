"""The interior point where features are many: what it measures, what it leaves out, and who it follows."""

from dataclasses import replace
from math import inf

import numpy as np
import pytest
from scipy import sparse

from polymargin.gram import FeatureGram
from polymargin.problems.hinge import HingePoint, HingeProblem, lee_lin_wahba
from polymargin.solvers.contract import Progress, Settings, Status
from polymargin.solvers.hinge._models import Model
from polymargin.solvers.hinge.interior_point import InteriorPoint
from polymargin.solvers.hinge.settings import INTERIOR
from polymargin.solvers.hinge.splitting import Splitting
from polymargin.solvers.hinge.state import State
from polymargin.solvers.policy import Policy
from tests.simulate import blobs

K = 4


def problem_of(n, p, C=100.0, features=lambda X: X):
    X, labels = blobs(np.random.default_rng(0), n, p, K)
    upper = C * (1.0 - np.eye(K))[labels]
    return HingeProblem(FeatureGram(features(X)), lee_lin_wahba(labels, upper))


@pytest.mark.parametrize(("n", "p"), [(40, 3), (20, 30)], ids=["compiled", "numpy"])
def test_objectives_are_those_of_the_hinges(n, p):
    """At zero the hinges are known; epigraph variables begin far above them."""
    problem = problem_of(n, p)
    primal, _ = Model(problem, None).first_system(None).objectives()
    at_zero = HingePoint(problem.losses.resting_dual(), np.zeros(K))
    assert primal == pytest.approx(problem.certify(at_zero).primal)


@pytest.mark.parametrize("store", [np.asarray, sparse.csr_matrix, sparse.csr_array, sparse.csc_array])
def test_features_that_are_zero_cost_nothing(store):
    p = INTERIOR.many_features

    def widened(X):
        wide = np.zeros((len(X), 2 * p))
        wide[:, ::2] = X
        return store(wide)

    narrow, wide = problem_of(300, p, 1.0), problem_of(300, p, 1.0, widened)
    assert Model(wide, None).features.shape == Model(narrow, None).features.shape
    found = InteriorPoint().solve(wide, Settings(tol=1e-6))
    assert found.status is Status.SOLVED
    expected = InteriorPoint().solve(narrow, Settings(tol=1e-6))
    assert found.certificate.primal == pytest.approx(expected.certificate.primal, rel=3e-6)


def test_corrections_save_matrices_of_many_features():
    problem = problem_of(400, 2 * INTERIOR.many_features)
    few = InteriorPoint(tuning=replace(INTERIOR, many_corrections=INTERIOR.corrections, far_hoped=INTERIOR.hoped))
    iterations = [solver.solve(problem, Settings(tol=1e-3)).n_iter for solver in (InteriorPoint(), few)]
    assert iterations[0] < iterations[1]


def test_where_splitting_gave_up_a_rival_on_features_follows():
    policy, problem = Policy(), problem_of(1000, 20)
    progress = Progress(Settings(tol=1e-3))
    state = State(problem, progress, None, policy.stagnation(), policy.gram_rows, policy.pace_rounds)
    state.work_after[Splitting.name] = 0.0
    assert next(policy._stages_on_matrix(state, rival=1e3), None) is None
    assert next(policy._stages_on_matrix(state, rival=inf), None) is not None
