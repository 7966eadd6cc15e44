"""Left-out scores by a Newton step: its definition, the frozen active set, and exact for quadratic losses."""

import numpy as np
import pytest

from polymargin.estimators.multicategory import hinge_losses
from polymargin.gram import DenseGram, FeatureGram, Kernel
from polymargin.problems.hinge import HingeProblem
from polymargin.problems.hinge.catalogue import LOSSES
from polymargin.solvers.contract import Settings
from polymargin.solvers.hinge.general import SmoothModel
from polymargin.solvers.hinge.left_out import frozen_left_out_scores
from polymargin.solvers.hinge.left_out_by_curvature import curved_left_out_scores, smooth_dual
from polymargin.solvers.hinge.portfolio import Portfolio
from polymargin.solvers.hinge.settings import LeftOutSettings
from tests.simulate import blobs

NARROW = LeftOutSettings(width=1e-5)


def solved(loss, gram=None, *, C=1.0, n=40, k=3, fit_intercept=True, kept=None):
    X, y = blobs(np.random.default_rng(8), n, 3, k, spread=1.5)
    kept = np.arange(n) if kept is None else kept
    losses = hinge_losses(loss, y[kept], C * (1 - np.eye(k))[y[kept]])
    gram = FeatureGram(X[kept]) if gram == "linear" else DenseGram(Kernel("rbf", 0.2)(X[kept]))
    problem = HingeProblem(gram, losses, fit_intercept)
    return problem, Portfolio().solve(problem, Settings(tol=1e-11)).point, X


def scores_of(problem, point):
    return problem.gram.matmul(problem.model(point)) + point.intercept


@pytest.mark.parametrize("fit_intercept", [True, False])
@pytest.mark.parametrize("loss", ["lee", "weston", "crammer"])
def test_hinges_have_the_frozen_active_set(loss, fit_intercept):
    problem, point, _ = solved(loss, fit_intercept=fit_intercept)
    frozen = frozen_left_out_scores(problem, point, NARROW)
    assert np.abs(frozen - scores_of(problem, point)).max() > 0.1
    np.testing.assert_allclose(curved_left_out_scores(problem, point, NARROW), frozen, atol=1e-4)


@pytest.mark.parametrize("gram", ["rbf", "linear"])
@pytest.mark.parametrize("loss", LOSSES)
def test_the_step_without_a_row_by_its_definition(loss, gram):
    problem, point, _ = solved(loss, gram)
    tuning = LeftOutSettings(width=0.1)
    F, model = scores_of(problem, point), SmoothModel(problem, start=point)
    largest = float(np.max(problem.losses.sizes)) * float(problem.gram.diagonal().mean())
    B = model.curvature(F, 0.1 * min(largest, problem.losses.offset))
    pull = problem.coefficients(point.dual) @ model.basis
    found = curved_left_out_scores(problem, point, tuning)
    for row in (0, 7, 23):
        rest = B.copy()
        rest[row] = 0.0
        lifted = np.kron(np.eye(B.shape[1]), model.X[row])
        step = np.linalg.solve(model.matrix(rest), -lifted.T @ pull[row])
        np.testing.assert_allclose(found[row], F[row] + model.basis @ (lifted @ step), atol=1e-6)


@pytest.mark.parametrize("loss", ["lee_squared", "weston_squared"])
def test_quadratic_losses_are_left_out_exactly(loss):
    problem, point, X = solved(loss, C=0.01)
    found = curved_left_out_scores(problem, point, NARROW)
    assert (problem.losses.margins(scores_of(problem, point))[problem.losses.weights > 0] > 0).all()
    for row in (3, 19):
        rest = np.delete(np.arange(40), row)
        smaller, refit, _ = solved(loss, C=0.01, kept=rest)
        scores = Kernel("rbf", 0.2)(X[[row]], X[rest]) @ smaller.model(refit) + refit.intercept
        np.testing.assert_allclose(found[row], scores[0], atol=1e-6)


@pytest.mark.parametrize("loss", ["lee_squared", "weston_squared", "logistic"])
def test_scores_tell_the_dual_point_of_smooth_losses(loss):
    problem, point, _ = solved(loss)
    R = problem.coefficients(point.dual)
    again = smooth_dual(problem, R, point.intercept)
    np.testing.assert_allclose(problem.coefficients(again), R, atol=1e-5)
