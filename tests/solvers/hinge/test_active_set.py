"""Newton steps on faces: from a rough point to rounding error, for boxes and for simplices."""

import numpy as np
import pytest

from polymargin.gram import DenseGram, FeatureGram
from polymargin.problems.hinge import HingePoint, HingeProblem, crammer_singer, lee_lin_wahba, weston_watkins
from polymargin.solvers.contract import Settings, Status
from polymargin.solvers.hinge.active_set import ActiveSet, FaceSettings
from polymargin.solvers.hinge.interior_point import InteriorPoint
from tests.simulate import blobs


def machine(loss, y):
    if loss == "crammer":
        return crammer_singer(y, np.ones(len(y)), 3)
    return (lee_lin_wahba if loss == "lee" else weston_watkins)(y, (1.0 - np.eye(3))[y])


@pytest.mark.parametrize("fit_intercept", [True, False])
@pytest.mark.parametrize("loss", ["lee", "weston", "crammer"])
@pytest.mark.parametrize("repeated", [False, True])
def test_takes_a_rough_point_to_rounding_error(loss, fit_intercept, repeated):
    X, y = blobs(np.random.default_rng(3), 40, 2, 3)
    if repeated:  # the kernel matrix of the face is singular
        X, y = np.vstack([X, X]), np.concatenate([y, (y + 1) % 3])
    losses = machine(loss, y)
    rough = InteriorPoint().solve(HingeProblem(FeatureGram(X), losses, fit_intercept), Settings(tol=1e-4))
    problem = HingeProblem(DenseGram(X @ X.T), losses, fit_intercept)
    before = problem.certify(rough.point)
    after = problem.certify(ActiveSet().solve(problem, Settings(tol=1e-13), start=rough.point).point)
    assert before.gap > 1e-7
    assert abs(after.gap) < 1e-10
    assert after.infeasibility < 1e-11
    assert after.dual >= before.dual


def test_a_face_too_large_is_left_alone():
    X, y = blobs(np.random.default_rng(0), 30, 2, 3)
    problem = HingeProblem(DenseGram(X @ X.T), machine("weston", y), False)
    start = HingePoint(np.zeros((30, 3)), np.zeros(3))
    solution = ActiveSet(FaceSettings(max_free=5)).solve(problem, Settings(tol=1e-9), start=start)
    assert solution.status is Status.STALLED
    np.testing.assert_array_equal(solution.point.dual, start.dual)


def test_identification_puts_clear_cases_on_their_bounds():
    _, y = blobs(np.random.default_rng(0), 30, 2, 3)
    losses = machine("lee", y)
    F = np.zeros((30, 3))  # all margins 1/2: every variable belongs to its upper bound
    dual = 0.9 * losses.upper
    np.testing.assert_array_equal(losses.identified(dual, F), losses.upper)
    far = losses.identified(0.1 * losses.upper, F - 3.0 * (np.eye(3)[np.zeros(30, int)] - 1 / 3))
    assert (far[:, 0] == 0).all()
