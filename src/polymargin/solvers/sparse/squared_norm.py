"""Sparse machines whose penalty is a multiple of the squares: hinge machines with another C."""

from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np
import scipy.linalg
from numpy.typing import NDArray
from scipy import sparse
from sklearn.utils.extmath import safe_sparse_dot

from polymargin.gram import FeatureGram
from polymargin.problems.certificate import Certificate
from polymargin.problems.hinge import HingePoint, HingeProblem
from polymargin.problems.sparse import SparsePoint, SparseProblem
from polymargin.solvers.contract import (
    Accepted,
    Interrupted,
    Observer,
    Settings,
    Solution,
    Solver,
    Status,
    accepts_kinds,
    at_rest,
)
from polymargin.solvers.sparse.settings import DEFAULTS


@dataclass(frozen=True, slots=True)
class SquaredNorm:
    """Solves ``s sum w^2 + C losses`` as 2s times the hinge machine with C / 2s.

    Attributes
    ----------
    machine : solver of hinge machines.
    """

    name: ClassVar[str] = "squared_norm"
    machine: Solver

    def accepts(self, problem: Any) -> Accepted:
        """Return True if the penalty is a multiple of the sum of squares, else the reason why not."""
        stated = accepts_kinds(problem, SparseProblem)
        if stated is not True or problem.penalty.squares > 0.0:
            return stated
        return f"it takes multiples of the sum of squares, not {type(problem.penalty).__name__}."

    def solve(
        self,
        problem: SparseProblem,
        settings: Settings,
        *,
        start: SparsePoint | None = None,
        observer: Observer | None = None,
    ) -> Solution[SparsePoint]:
        """Solve the hinge machine; with p > n its rows are first rotated into n dimensions.

        Only inner products of rows matter to it. Offsets of variables, whose squares would drown them, are left to
        the intercept.
        """
        n, p = problem.X.shape
        factor = 2.0 * problem.penalty.squares
        C = problem.C / factor
        offset = _offsets(problem.X)
        X = problem.X - offset if offset.any() else problem.X
        rotated = X if sparse.issparse(X) or p <= n else scipy.linalg.qr(X.T, mode="r")[0][:n].T
        machine = HingeProblem(FeatureGram(rotated), problem.losses.scaled(C))
        begin = None if start is None else HingePoint(C * start.dual, start.intercept + start.coef @ offset)
        # the gap is relative to max(1, primal), and a multiple of the problem may multiply it
        tighter = replace(settings, tol=settings.tol / max(1.0, factor))
        found = at_rest(self.machine.solve, machine, tighter, start=begin, observer=observer)
        machine = HingeProblem(FeatureGram(X), machine.losses)
        inner = machine.certify(found.point)
        coef = safe_sparse_dot(machine.model(found.point).T, X, dense_output=True)
        certificate = Certificate.of(factor * inner.primal, factor * inner.dual, infeasibility=inner.infeasibility)
        point = SparsePoint(coef, found.point.intercept - coef @ offset, found.point.dual / C)
        solution = replace(
            found, point=point, certificate=certificate, history=(), trace=found.trace.scaled(factor)
        )
        if solution.status is Status.INTERRUPTED:
            raise Interrupted(solution)
        return solution


def _offsets(X: Any) -> NDArray[np.float64]:
    """Return the middles (p,) of variables that lie far from zero, 0 for others.

    Middles are the same in whatever order, and however often, rows are given.
    """
    if sparse.issparse(X):
        return np.zeros(X.shape[1])
    lowest, highest = X.min(axis=0), X.max(axis=0)
    middle = 0.5 * (lowest + highest)
    return np.where(np.abs(middle) > DEFAULTS.far_from_zero * (highest - lowest), middle, 0.0)
