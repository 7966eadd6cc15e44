"""Active-set Newton: the last digits of a hinge machine whose free dual variables are few.

On the face of free variables and violators the dual is a linear system. Solve it, pin what leaves its bounds,
solve again, and go to the result by an exact line search: from a gap of 1e-4 a few rounds end in rounding error.
Boxes and simplices alike are lists of *moves*, each a direction in which the coefficients R of one example go.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.linalg
from numpy.typing import NDArray

from polymargin.problems.hinge import HingePoint, HingeProblem, Moves, PolyhedralLosses, polyhedral
from polymargin.solvers.contract import (
    Accepted,
    Observer,
    Progress,
    Record,
    Settings,
    Solution,
    Status,
)
from polymargin.solvers.effort import Operations
from polymargin.solvers.hinge.acceptance import accepts_one_per_example
from polymargin.solvers.hinge.class_blocks import ClassBlocks, is_classwise, operations
from polymargin.solvers.hinge.feasibility import feasible
from polymargin.solvers.hinge.intercept import central_intercept
from polymargin.threads import AbandonedError, cho_factor, heard, is_large


@dataclass(frozen=True, slots=True)
class FaceSettings:
    """Tuning of Newton's method on faces; none of it changes what is certified.

    Attributes
    ----------
    max_rounds : faces to visit at most.
    max_pins : systems solved at most for one face, bounds that are left pinned in between.
    max_walk : bounds to meet at most where a face is left step by step.
    whole_step : distance of a step's length from one that is rounding.
    max_free : faces with more moves than this are left alone, unless they are solved class by class.
    patience, settled : rounds in which the gap must halve, until it is so small: from a face too far away Newton
        steps lead nowhere.
    ridge : relative ridge that makes a flat face factorisable.
    refinements : solutions of a face's system, the later ones for what rounding and the ridge have left.
    face_cost : entries that are visited for a face, whatever its size.
    assembly_cost : entries visited per entry of a face's matrix, or of the blocks of its classes.
    class_calls : calls per class where a face is solved class by class.
    update_cost : operations of a product per entry of the scores and changed example; products this thin are slow.
    """

    max_rounds: int = 50
    max_pins: int = 8
    max_walk: int = 60
    whole_step: float = 1e-6
    max_free: int = 3000
    patience: int = 6
    settled: float = 1e-8
    ridge: float = 1e-9
    refinements: int = 3
    face_cost: float = 1e5
    assembly_cost: float = 2.4
    class_calls: int = 80
    update_cost: float = 5.0


DEFAULTS = FaceSettings()


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
        n_free, n_rows, tuning = len(moves.example), len(np.unique(moves.example)), self.tuning
        is_too_large = n_free > tuning.max_free and not is_classwise(self.losses, n_free, n_rows)
        if n_free == 0 or is_too_large or self.progress.out_of_time():
            return None
        self.progress.count_all(operations_of_face(self.losses, n_free, n_rows, tuning))
        self.progress.count("product", tuning.update_cost * self.H.size * n_rows)
        change = self.problem.coefficients(reference) - self.R
        face = (self.problem, moves, self.H, change, self.R.sum(axis=0), tuning)
        if not is_large(float(n_free) ** 2):
            return _solve_face(*face)
        try:
            return heard(_solve_face, *face, is_over=self.progress.out_of_time)
        except AbandonedError:
            return None

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


def operations_of_face(
    losses: PolyhedralLosses, n_free: int, n_rows: int, tuning: FaceSettings = DEFAULTS
) -> Operations:
    """Return the operations that it takes to minimise over a face of so many moves of so many examples."""
    if is_classwise(losses, n_free, n_rows):
        k = losses.n_classes
        blocks = n_free * n_rows + k * max(n_rows - n_free / k, 0.0) ** 2
        return {
            "entry": tuning.face_cost + tuning.assembly_cost * blocks,
            "factor": operations(n_free, n_rows, k),
            "call": tuning.class_calls * k,
        }
    return {"entry": tuning.face_cost + tuning.assembly_cost * n_free**2, "factor": n_free**3 / 3.0}


def _unbalanced(R: NDArray[np.float64]) -> bool:
    """Tell whether the class sums differ from zero by more than rounding."""
    return bool(np.abs(R.sum(axis=0)).max() > 1e-11 * np.abs(R).sum(axis=0).max())


def _solve_face(
    problem: HingeProblem,
    moves: Moves,
    H: NDArray[np.float64],
    reference_change: NDArray[np.float64],
    class_sums: NDArray[np.float64],
    tuning: FaceSettings,
) -> NDArray[np.float64] | None:
    """Minimise the dual over the steps of `moves` from the reference point, class sums put right.

    A face can be flat (repeated rows, kernels of low rank): a small ridge bounds the step along flat directions,
    and refinement takes its effect from the others. Adding the constraint's own square changes no solution.
    """
    losses, gram = problem.losses, problem.gram
    rows, place = np.unique(moves.example, return_inverse=True)
    moved = np.flatnonzero(reference_change.any(axis=1))
    scores = H[rows]
    if len(moved):
        scores = scores + gram.block(rows, moved) @ reference_change[moved]
    slope = np.einsum("mk,mk->m", moves.direction, scores[place]) - moves.gain
    K = gram.block(rows, rows).astype(np.float64, copy=False)
    kind = _ClasswiseHessian if is_classwise(losses, len(place), len(rows)) else _WholeHessian
    try:
        hessian = kind(K, place, moves, problem.fit_intercept, tuning.ridge)
    except scipy.linalg.LinAlgError:
        return None
    steps = np.zeros(len(slope))
    if not problem.fit_intercept:
        for _ in range(tuning.refinements):
            steps = steps + hessian.solve(-slope - hessian.dot(steps))
        return steps
    sums = moves.direction[:, : losses.n_classes - 1].T
    missing = -(class_sums + reference_change.sum(axis=0))[:-1]
    spread = hessian.solve(sums.T)
    schur = scipy.linalg.pinvh(sums @ spread, rtol=1e-12)
    for _ in range(tuning.refinements):
        residual = hessian.solve(-slope - hessian.dot(steps))
        multiplier = schur @ (missing - sums @ steps - sums @ residual)
        steps = steps + residual + spread @ multiplier
    return steps


class _WholeHessian:
    """The Hessian of a face, and its factor with a ridge and the constraint's square added."""

    def __init__(
        self, K: NDArray[np.float64], place: NDArray[np.intp], moves: Moves, fit_intercept: bool, ridge: float
    ):
        self.matrix = K[np.ix_(place, place)] * (moves.direction @ moves.direction.T)
        size = float(np.abs(self.matrix.diagonal()).max())
        if size <= 0.0:
            raise scipy.linalg.LinAlgError("no move has any curvature")
        system = self.matrix.copy()
        if fit_intercept:
            sums = moves.direction[:, :-1]
            system += (size / len(K)) * (sums @ sums.T)
        system[np.diag_indices_from(system)] += ridge * size
        self.factor = cho_factor(system)

    def dot(self, steps: NDArray[np.float64]) -> NDArray[np.float64]:
        """Apply it, without ridge and square."""
        return self.matrix @ steps

    def solve(self, right: NDArray[np.float64]) -> NDArray[np.float64]:
        """Solve with ridge and square."""
        return scipy.linalg.cho_solve(self.factor, right, check_finite=False)


class _ClasswiseHessian:
    """The same where hinges see single scores: ridge and square are added to the kernel matrix."""

    def __init__(
        self, K: NDArray[np.float64], place: NDArray[np.intp], moves: Moves, fit_intercept: bool, ridge: float
    ):
        self.K, self.place, self.slot, self.k = K, place, moves.slot, moves.direction.shape[1]
        size = float(np.abs(K.diagonal()).max())
        system = K + size / len(K) if fit_intercept else K.copy()
        system[np.diag_indices_from(system)] += ridge * size
        self.blocks = ClassBlocks(system, place, moves.slot, self.k)

    def dot(self, steps: NDArray[np.float64]) -> NDArray[np.float64]:
        """Apply it, without ridge and square."""
        spread = np.zeros((len(self.K), self.k))
        spread[self.place, self.slot] = steps
        scores = self.K @ spread
        return (scores - scores.mean(axis=1, keepdims=True))[self.place, self.slot]

    def solve(self, right: NDArray[np.float64]) -> NDArray[np.float64]:
        """Solve with ridge and square."""
        return self.blocks.solve(right)
