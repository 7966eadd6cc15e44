"""Faces of a hinge machine's dual: on one, the dual is a linear system, whose work and solution are here.

Boxes and simplices alike are lists of *moves*, each a direction in which the coefficients R of one example go.
"""

from dataclasses import dataclass

import numpy as np
import scipy.linalg
from numpy.typing import NDArray

from polymargin.problems.hinge import HingeProblem, Moves, PolyhedralLosses, polyhedral
from polymargin.solvers.contract import Progress
from polymargin.solvers.effort import Operations
from polymargin.solvers.hinge.class_blocks import ClassBlocks, is_classwise, operations
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
    far, far_ridge : relative gap above which the ridge is the gap, and holds a step near its beginning; that ridge
        at most.
    in_single : whether systems are factorised in single precision; refinements are in double precision.
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
    far: float = 1e-4
    far_ridge: float = 1e-3
    in_single: bool = False
    refinements: int = 3
    face_cost: float = 1e5
    assembly_cost: float = 2.4
    class_calls: int = 80
    update_cost: float = 5.0

    @property
    def speed(self) -> float:
        """How many times faster than in double precision systems are factorised."""
        return 2.0 if self.in_single else 1.0

    @property
    def precision(self) -> type:
        """The type of numbers of factors."""
        return np.float32 if self.in_single else np.float64


DEFAULTS = FaceSettings()


def operations_of_face(
    losses: PolyhedralLosses, n_free: int, n_rows: int, tuning: FaceSettings = DEFAULTS
) -> Operations:
    """Return the operations that it takes to minimise over a face of so many moves of so many examples."""
    if is_classwise(losses, n_free, n_rows):
        k = losses.n_classes
        blocks = n_free * n_rows + k * max(n_rows - n_free / k, 0.0) ** 2
        return {
            "entry": tuning.face_cost + tuning.assembly_cost * blocks,
            "factor": operations(n_free, n_rows, k) / tuning.speed,
            "call": tuning.class_calls * k,
        }
    return {"entry": tuning.face_cost + tuning.assembly_cost * n_free**2, "factor": n_free**3 / 3.0 / tuning.speed}


def is_tractable(losses: PolyhedralLosses, n_free: int, n_rows: int, tuning: FaceSettings = DEFAULTS) -> bool:
    """Tell whether the system of a face of so many moves of so many examples is small enough to be solved."""
    return n_free > 0 and (n_free <= tuning.max_free or is_classwise(losses, n_free, n_rows))


def minimised(
    problem: HingeProblem,
    moves: Moves,
    H: NDArray[np.float64],
    reference_change: NDArray[np.float64],
    class_sums: NDArray[np.float64],
    *,
    tuning: FaceSettings,
    progress: Progress,
) -> NDArray[np.float64] | None:
    """Return the steps of `moves` that minimise the dual; None where there are none, too many, or no time is left.

    H are the scores of a point with these `class_sums`, from which the reference point differs by so much.
    """
    losses = polyhedral(problem.losses, "The solution of a face")
    n_free, n_rows = len(moves.example), len(np.unique(moves.example))
    if not is_tractable(losses, n_free, n_rows, tuning) or progress.out_of_time():
        return None
    progress.count_all(operations_of_face(losses, n_free, n_rows, tuning))
    face = (problem, moves, H, reference_change, class_sums, tuning)
    if not is_large(float(n_free) ** 2):
        return _solve_face(*face)
    try:
        return heard(_solve_face, *face, is_over=progress.out_of_time)
    except AbandonedError:
        return None


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
        hessian = kind(K, place, moves, problem.fit_intercept, tuning)
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
        self,
        K: NDArray[np.float64],
        place: NDArray[np.intp],
        moves: Moves,
        fit_intercept: bool,
        tuning: FaceSettings,
    ):
        self.matrix = K[np.ix_(place, place)] * (moves.direction @ moves.direction.T)
        size = float(np.abs(self.matrix.diagonal()).max())
        if size <= 0.0:
            raise scipy.linalg.LinAlgError("no move has any curvature")
        system = self.matrix.copy()
        if fit_intercept:
            sums = moves.direction[:, :-1]
            system += (size / len(K)) * (sums @ sums.T)
        system[np.diag_indices_from(system)] += tuning.ridge * size
        self.precision = tuning.precision
        self.factor = cho_factor(system.astype(self.precision, copy=False))

    def dot(self, steps: NDArray[np.float64]) -> NDArray[np.float64]:
        """Apply it, without ridge and square."""
        return self.matrix @ steps

    def solve(self, right: NDArray[np.float64]) -> NDArray[np.float64]:
        """Solve with ridge and square."""
        right = right.astype(self.precision, copy=False)
        return scipy.linalg.cho_solve(self.factor, right, check_finite=False).astype(np.float64, copy=False)


class _ClasswiseHessian:
    """The same where hinges see single scores: ridge and square are added to the kernel matrix."""

    def __init__(
        self,
        K: NDArray[np.float64],
        place: NDArray[np.intp],
        moves: Moves,
        fit_intercept: bool,
        tuning: FaceSettings,
    ):
        self.K, self.place, self.slot, self.k = K, place, moves.slot, moves.direction.shape[1]
        size = float(np.abs(K.diagonal()).max())
        system = K + size / len(K) if fit_intercept else K.copy()
        system[np.diag_indices_from(system)] += tuning.ridge * size
        self.precision = tuning.precision
        self.blocks = ClassBlocks(system.astype(self.precision, copy=False), place, moves.slot, self.k)

    def dot(self, steps: NDArray[np.float64]) -> NDArray[np.float64]:
        """Apply it, without ridge and square."""
        spread = np.zeros((len(self.K), self.k))
        spread[self.place, self.slot] = steps
        scores = self.K @ spread
        return (scores - scores.mean(axis=1, keepdims=True))[self.place, self.slot]

    def solve(self, right: NDArray[np.float64]) -> NDArray[np.float64]:
        """Solve with ridge and square."""
        return self.blocks.solve(right.astype(self.precision, copy=False)).astype(np.float64, copy=False)
