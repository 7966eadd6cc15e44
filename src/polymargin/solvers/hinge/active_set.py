"""Active-set Newton: the last digits of a hinge machine whose free dual variables are few.

On the face of free variables and violators the dual is a linear system. Solve it, pin what leaves its bounds,
solve again, and go to the result by an exact line search: from a gap of 1e-4 a few rounds end in rounding error.
Farther off a ridge in proportion to the gap holds steps near their beginnings (D.-H. Li, M. Fukushima, L. Qi & N.
Yamashita, Regularized Newton methods for convex minimization problems with singular solutions, 2004).
Boxes and simplices alike are lists of *moves*, each a direction in which the coefficients R of one example go.
"""

from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from polymargin.problems.hinge import HingePoint, HingeProblem, Moves, polyhedral
from polymargin.solvers.contract import (
    Accepted,
    Observer,
    Progress,
    Record,
    Settings,
    Solution,
    Status,
)
from polymargin.solvers.hinge.acceptance import accepts_one_per_example
from polymargin.solvers.hinge.faces import DEFAULTS, FaceSettings, minimised
from polymargin.solvers.hinge.feasibility import feasible
from polymargin.solvers.hinge.intercept import central_intercept


class ActiveSet:
    """Improve a feasible point by Newton steps on faces; the dual objective never falls."""

    name = "active_set"

    def __init__(self, tuning: FaceSettings = DEFAULTS):
        self.tuning = tuning

    def accepts(self, problem: Any) -> Accepted:
        """Return True if the solver can take `problem`, else the reason why not."""
        return accepts_one_per_example(problem)

    def solve(
        self,
        problem: HingeProblem,
        settings: Settings,
        *,
        start: HingePoint | None = None,
        observer: Observer | None = None,
    ) -> Solution[HingePoint]:
        """Go from face to face to a gap of ``settings.tol``; from a point that is far away it stalls."""
        tuning, gaps = self.tuning, []
        with Progress(settings, observer, method=self.name) as progress:
            climber = _Climber(problem, start, tuning, progress)
            for _ in progress:
                record = climber.measure()
                gaps.append(record.gap)
                before = gaps[-1 - tuning.patience] if len(gaps) > tuning.patience else np.inf
                is_stuck = record.gap > max(0.5 * before, tuning.settled) or len(gaps) > tuning.max_rounds
                face = climber.losses.open_face(climber.dual, climber.H + climber.intercept)
                if record.gap <= settings.tol:
                    climber.jump(
                        face
                    )  # the gap is quadratic in the error of the scores: one more step takes the rest
                    climber.measure()
                    break
                if is_stuck or not (climber.jump(face) or climber.walk(face)):
                    if not progress.out_of_time():
                        progress.status = Status.STALLED
                    break
            return progress.finish(climber.best, problem.certify(climber.best))


class _Climber:
    """A dual point on its way up, with its coefficients R and scores H = K R."""

    def __init__(self, problem: HingeProblem, start: HingePoint | None, tuning: FaceSettings, progress: Progress):
        self.problem, self.tuning, self.progress = problem, tuning, progress
        self.losses = polyhedral(problem.losses, "Newton on faces")
        self.dual = feasible(problem, self.losses.resting_dual() if start is None else start.dual)
        self.intercept = np.zeros(self.losses.n_classes) if start is None else start.intercept
        self.R = problem.coefficients(self.dual)
        self.H = problem.gram.matmul(self.R)
        self.gap = np.inf
        self.best = HingePoint(self.dual, self.intercept)

    def measure(self) -> Record:
        """Compute intercept and gap, record them, and keep the point if it is the best."""
        problem, losses = self.problem, self.losses
        if problem.fit_intercept:
            self.intercept = central_intercept(losses, self.dual, self.H)
        F = self.H + self.intercept
        half_norm = 0.5 * float(np.vdot(self.R, self.H))
        primal = half_norm + losses.value(F)
        if problem.tilt is not None:
            primal += float(np.vdot(problem.tilt, F))
        record = self.progress.record(primal, losses.dual_value(self.dual) - half_norm)
        # far from the end the dual is the measure of progress, in the last digits the gap
        if record.gap < self.gap or self.gap > self.tuning.settled:
            self.gap, self.best = record.gap, HingePoint(self.dual, self.intercept)
        return record

    def jump(self, face: NDArray[np.bool_]) -> bool:
        """Minimise over the face, pinning all that leaves its bounds until nothing does; go there if it is up."""
        reference = self.dual
        for _ in range(self.tuning.max_pins):
            moves = self.losses.moves(reference, face)
            steps = self._newton(moves, reference)
            if steps is None:
                return False
            candidate = moves.applied(reference, steps)
            clipped = self.losses.clipped(candidate)
            outside = face & (clipped != candidate)
            if not outside.any():
                return self._advance(candidate)
            face = face & ~outside
            reference = self.losses.pinned(reference, clipped, outside)
        return False

    def walk(self, face: NDArray[np.bool_]) -> bool:
        """Take Newton steps from bound to bound, pinning one bound after the other; tell whether it went up."""
        climbed = False
        for _ in range(self.tuning.max_walk):
            moves = self.losses.moves(self.dual, face)
            steps = self._newton(moves, self.dual)
            if steps is None:
                return climbed
            candidate = moves.applied(self.dual, steps)
            blocked = face & (self.losses.room(self.dual, candidate) <= 0.0)
            if blocked.any():
                face = face & ~blocked
                continue
            before = self.dual
            if not self._advance(candidate):
                return climbed
            climbed = True
            arrived = face & (self.losses.room(self.dual, 2.0 * self.dual - before) <= 0.0)
            if not arrived.any():
                return True
            face = face & ~arrived
        return climbed

    def _newton(self, moves: Moves, reference: NDArray[np.float64]) -> NDArray[np.float64] | None:
        n_rows = len(np.unique(moves.example))
        self.progress.count("product", self.tuning.update_cost * self.H.size * n_rows)
        change = self.problem.coefficients(reference) - self.R
        return minimised(
            self.problem, moves, self.H, change, self.R.sum(axis=0), tuning=self._near(), progress=self.progress
        )

    def _near(self) -> FaceSettings:
        """Return how to solve a face: far from the end with a ridge that holds the step near its beginning.

        Most of a free step would leave its bounds there. Where rounding error is asked for, steps are free.
        """
        if self.gap <= self.tuning.far or self.progress.settings.tol <= self.tuning.settled:
            return self.tuning
        return replace(self.tuning, ridge=min(self.gap, self.tuning.far_ridge), refinements=1)

    def _advance(self, candidate: NDArray[np.float64]) -> bool:
        """Go towards the candidate as far as the dual rises and the bounds allow; tell whether it rose."""
        coefficients = self.problem.coefficients(candidate)
        change = coefficients - self.R
        rows = np.flatnonzero(change.any(axis=1))
        if not len(rows) or (self.problem.fit_intercept and _unbalanced(coefficients)):
            return False
        # taken with the intercept, the slope is a sum of small terms: no digits cancel
        slope = float(np.vdot(candidate - self.dual, self.losses.margins(self.H + self.intercept)))
        H_change = self.problem.gram.block(rows).T @ change[rows]
        curvature = float(np.vdot(change, H_change))
        if slope <= 0.0:
            return False
        peak = slope / curvature if curvature > 0.0 else np.inf
        if abs(peak - 1.0) < self.tuning.whole_step:
            peak = 1.0
        length = min(1.0, peak, float(self.losses.room(self.dual, candidate).min()))
        if length <= 0.0:
            return False
        self.dual = (
            candidate if length == 1.0 else self.losses.snapped(self.dual + length * (candidate - self.dual))
        )
        self.R = self.problem.coefficients(self.dual)
        self.H = self.H + length * H_change
        return True


def _unbalanced(R: NDArray[np.float64]) -> bool:
    """Tell whether the class sums differ from zero by more than rounding."""
    return bool(np.abs(R.sum(axis=0)).max() > 1e-11 * np.abs(R).sum(axis=0).max())
