"""The balanced alternation against the trace-norm problem as a semi-definite program (CVXPY)."""

import cvxpy
import numpy as np
import pytest

from polymargin.problems.shared import SharedProblem
from polymargin.relations import RelationSet
from polymargin.solvers.contract import Settings
from polymargin.solvers.shared.alternation import AlternationSolver
from tests.simulate_shared import written_out


@pytest.mark.parametrize("scheme", ["ovr", "ovo"])
@pytest.mark.parametrize("fraction", [1e-4, 0.03, 0.3])
def test_unconstrained_alternation_reaches_the_trace_norm_optimum(scheme, fraction):
    rng = np.random.default_rng(0)
    moments, tasks = written_out(rng, 40, 4, 4, scheme)
    p, q = len(tasks), 5
    nu = fraction * SharedProblem(moments, 0.05, 1.0, RelationSet.free(p, p)).penalty_at_zero
    problem = SharedProblem(moments, 0.05, nu, RelationSet.free(p, p))
    solution = AlternationSolver().solve(problem, Settings(1e-11, 10_000))

    Z = cvxpy.Variable((q, p))
    residuals = [sign - A @ Z[:, task] for task, (A, sign) in enumerate(tasks)]
    objective = 0.05 * sum(map(cvxpy.sum_squares, residuals)) + 2 * np.sqrt(nu) * cvxpy.normNuc(Z)
    reference = cvxpy.Problem(cvxpy.Minimize(objective)).solve(
        solver="CLARABEL", tol_gap_abs=1e-10, tol_gap_rel=1e-10, tol_feas=1e-10
    )
    assert solution.certificate.kind == "global"
    assert solution.certificate.gap <= 1e-11
    assert solution.certificate.primal == pytest.approx(reference, rel=1e-8)
    assert solution.certificate.dual <= reference * (1 + 1e-9)
    np.testing.assert_allclose(solution.point.W @ solution.point.M, Z.value, rtol=0, atol=1e-4)
