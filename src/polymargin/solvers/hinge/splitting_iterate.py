"""The state of a splitting: its steps, and what they are certified as."""

import numpy as np
import scipy.linalg
from numpy.typing import NDArray

from polymargin._native.splitting import reflect, relax
from polymargin.gram import FeatureGram, Gram, PartGram, as_dense
from polymargin.problems.certificate import Certificate
from polymargin.problems.hinge import HingePoint, HingeProblem, boxes
from polymargin.solvers.contract import Progress, Status
from polymargin.solvers.hinge.acceleration import Acceleration
from polymargin.solvers.hinge.faces import FaceSettings, minimised
from polymargin.solvers.hinge.feasibility import balanced
from polymargin.solvers.hinge.intercept import central_intercept
from polymargin.solvers.hinge.inverses import Columns, FeatureInverse, Inverse, Room
from polymargin.solvers.hinge.leaps import Standing
from polymargin.solvers.hinge.splitting_settings import ROUNDING, SplittingSettings, size_of

Array = NDArray[np.float64]

CHANGED_BY_LEAPS = (
    *("t", "margins", "guess", "intercept", "least", "R", "scores", "scores_on_all"),
    *("highest", "dual", "dual_scores", "dual_scores_on_all"),
)
"""Attributes of an iterate; their values are replaced, never changed in place."""


class SplittingIterate:
    """The state t (n, k), what the rest makes of v = 2z - t, and the matrix that takes them on.

    It is given, or that of a point: its variables, and what its margins ask for. Of a part of the examples scores
    are found on all of them, as the rows of the matrix that are read have them: `scores_on_all`,
    `dual_scores_on_all`.
    """

    def __init__(
        self,
        problem: HingeProblem,
        start: HingePoint,
        rho: float,
        tuning: SplittingSettings,
        t: Array | None = None,
        room: Room | None = None,
    ):
        self.problem, self.losses, self.tuning = problem, boxes(problem.losses, "Splitting"), tuning
        self.guess = self.intercept = start.intercept
        self.room = room
        self.upper = np.ascontiguousarray(self.losses.upper)
        self.size, self.unit = size_of(problem), unit_of(problem.gram)
        self.rho, self.steps, self.changes = rho, 0, 0
        self.dual, self.least, self.highest = start.dual, np.inf, -np.inf
        self.acceleration = Acceleration(tuning.acceleration)
        if t is None:
            scores = problem.gram.matmul(problem.model(start)) + start.intercept
            t = start.dual + self.losses.margins(scores) / rho
        self.t = np.ascontiguousarray(t)
        self.v, self.mean = np.zeros_like(self.t), np.zeros(len(self.t))

    def prepare(self, progress: Progress, begun: Inverse | None = None, *, roughly: bool = False) -> bool:
        """Invert ``K + rho I``; False if there is no time for it, or the kernel matrix is indefinite.

        The factor of the first examples may have `begun` it, with the same rho. The first solution is put right
        at once, unless it is wanted `roughly`.
        """
        progress.count_all(
            self.tuning.operations_to_factorise(self.size, 0 if begun is None else begun.whole_blocks)
        )
        try:
            self.inverse = self._inverse(begun)
            is_ready = self.inverse.prepare(progress)
        except scipy.linalg.LinAlgError:
            progress.status = Status.NUMERICAL_ERROR
            return False
        if is_ready:
            self._begin(roughly=roughly)
        return is_ready

    def _inverse(self, begun: Inverse | None) -> Inverse | FeatureInverse:
        """Return what multiplies by ``(K + rho I)^-1`` once it is prepared."""
        gram, tuning, n = self.problem.gram, self.tuning.inverse, self.size.n
        if isinstance(gram, FeatureGram):
            return FeatureInverse(gram.features, self.rho, tuning)
        known = 0 if begun is None else begun.whole_blocks
        room = self.room or Room(n, tuning)
        matrix = room.square(n) if begun is None else room.grown(begun.matrix, n)
        if isinstance(gram, PartGram):
            gram.whole.gather(gram.rows[known:], gram.rows, matrix[known:])
        else:
            matrix[known:] = as_dense(gram, "Splitting").matrix[known:]
        behind = np.arange(known, n)
        matrix[behind, behind] += np.float32(self.rho)
        return Inverse(matrix, tuning, begun)

    def _begin(self, *, roughly: bool = False) -> None:
        """Find what the rest makes of the state with this rho."""
        n, k = self.t.shape
        self.acceleration.forget()
        ones = np.ones((n if self.problem.fit_intercept else 0, 1))
        self.of_ones = np.ascontiguousarray(self.inverse.solved(ones)[:, 0]) if len(ones) else np.empty(0)
        self.columns = Columns(n, k - 1, np.float32)
        self.v[:] = 0.0
        reflect(self.t, self.upper, self.v, self.mean, self.columns.right, self.columns.panel)
        self.x = self._summing_to_zero(self.rho * self.inverse.solved(self.v))
        if not roughly:
            self._put_right(self.problem.gram.matmul(self.x))

    def improve_rho(self) -> bool:
        """Take the rho that the ratio on all rows tells; False where it stays, or a change would cost too much.

        Few rows are easier to tell apart than many: at a large C the rho found on a part of them is far too large.
        """
        inverse, tuning = self.inverse, self.tuning
        if not isinstance(inverse, FeatureInverse) or self.changes == tuning.max_pilots:
            return False
        rho = tuning.rho_of(self.ratio() / self.unit) * self.unit
        if max(rho / self.rho, self.rho / rho) <= tuning.changed:
            return False
        z = np.clip(self.t, 0.0, self.upper)
        self.t = np.ascontiguousarray(z + self.rho / rho * (self.t - z))
        self.rho = inverse.rho = rho
        self.changes += 1
        self._begin()
        return True

    def advance(self, steps: int, progress: Progress) -> bool:
        """Take steps, and on a matrix look ahead now and then; False if a limit was met.

        On features most directions of the dual are flat: on long stretches the steps are all alike, and what they
        change by tells nothing of where they lead.
        """
        shift, tuning, columns = self.losses.offset / self.rho, self.tuning, self.columns
        upper, v, x, mean = self.upper, self.v, self.x, self.mean
        operations, ahead = tuning.operations(self.size, 1.0), tuning.operations_to_look_ahead(self.size)
        before = self.t.copy()
        for step in range(1, steps + 1):
            if progress.out_of_time():
                return False
            progress.count_all(operations)
            reflect(self.t, upper, v, mean, columns.right, columns.panel)
            self.inverse.apply(columns)
            relax(self.t, x, upper, mean, columns.answer, self.of_ones, self.rho, shift, tuning.relaxation)
            if self.size.p is None and step % tuning.stride == 0:
                progress.count_all(ahead)
                self.t = self.acceleration.following(before, self.t, np.ones(()))
                before = self.t.copy()
        self.steps += steps
        return True

    def _put_right(self, product: Array) -> None:
        """Take from x, whose product with the matrix is given, what rounding has made of it."""
        missing = self.rho * (self.v - self.x) - product
        if self.problem.fit_intercept:  # constants are the intercept's
            missing -= missing.mean(axis=0)
        self.x += self._summing_to_zero(self.inverse.solved(missing))

    def _summing_to_zero(self, x: Array) -> Array:
        """Return what solves the system for the right-hand side with constants that make the class sums vanish."""
        if not self.problem.fit_intercept:
            return x
        return x - np.outer(self.of_ones, x.sum(axis=0) / self.of_ones.sum())

    def certified(self) -> tuple[HingePoint, Certificate]:
        """Return the best scores and the best dual point so far, and their certificate; x is put right."""
        dual, k = self._feasible(np.clip(self.t, 0.0, self.losses.upper)), self.size.k
        on_all, own = self._products(np.hstack([self.x, self.problem.coefficients(dual)]))
        self._note_scores(_centred(-self.x), _centred(-own[:, :k]), _centred(-on_all[:, :k]))
        self._put_right(own[:, :k])
        self._note_dual(dual, np.ascontiguousarray(own[:, k:]), np.ascontiguousarray(on_all[:, k:]))
        return self.best()

    def _products(self, V: Array) -> tuple[Array, Array]:
        """Return products of the matrix with the columns V: on all examples, and on those of the problem."""
        gram = self.problem.gram
        on_all = gram.matmul_on_all(V) if isinstance(gram, PartGram) else gram.matmul(V)
        return on_all, on_all[gram.rows] if isinstance(gram, PartGram) else on_all

    def best(self) -> tuple[HingePoint, Certificate]:
        """Return the best scores and the best dual point so far, and their certificate."""
        point = HingePoint(self.dual, self.intercept, primal=self.R)
        return point, self.problem.certify(point, self.dual_scores, self.scores)

    def active(self) -> NDArray[np.bool_]:
        """Tell which examples have variables above zero."""
        above: NDArray[np.bool_] = (self.t > 0.0) & (self.upper > 0.0)
        return np.logical_or.reduce(above, axis=1)

    def free(self) -> NDArray[np.bool_]:
        """Tell which variables are free."""
        return (self.t > 0.0) & (self.t < self.upper)

    def standing(self) -> Standing:
        """Return what a leap changes, to come back to it."""
        return {name: getattr(self, name) for name in CHANGED_BY_LEAPS}

    def return_to(self, standing: Standing) -> None:
        """Come back from leaps."""
        for name, value in standing.items():
            setattr(self, name, value)

    def leap(self, progress: Progress, faces: FaceSettings) -> bool:
        """Go to the state that the solution of the face tells; False where there is none, or no time for it."""
        reference, face, problem = np.clip(self.t, 0.0, self.upper), self.free(), self.problem
        self.acceleration.forget()
        R = problem.coefficients(reference)
        H, moves = problem.gram.matmul(R), self.losses.moves(reference, face)
        unchanged = np.zeros_like(R)
        steps = minimised(problem, moves, H, unchanged, R.sum(axis=0), tuning=faces, progress=progress)
        if steps is None or not np.isfinite(steps).all():
            return False
        dual = moves.applied(reference, steps)
        feasible, k = self._feasible(self.losses.clipped(dual)), self.size.k
        R = problem.coefficients(dual)
        on_all, own = self._products(np.hstack([R, problem.coefficients(feasible)]))
        self._note_scores(R, np.ascontiguousarray(own[:, :k]), on_all[:, :k])
        self._note_dual(feasible, np.ascontiguousarray(own[:, k:]), np.ascontiguousarray(on_all[:, k:]))
        progress.count_all(self.tuning.operations_to_look(self.size))
        self.t = np.ascontiguousarray(np.where(face, dual, dual + self.margins / self.rho))
        return True

    def _note_scores(self, R: Array, H: Array, on_all: Array) -> None:
        """Keep coefficients and their scores, without intercept, if they are the best."""
        intercept = self.guess
        if self.problem.fit_intercept:
            intercept = self.guess = central_intercept(self.losses, self.dual, H, guess=intercept)
        self.margins = self.losses.margins(H + intercept)
        length = best_length(self.problem, R, H, intercept)
        R, H, intercept = length * R, length * H, length * intercept
        primal = self.problem.objective(R, H, intercept)
        if not primal >= self.least:
            self.least, self.R, self.scores, self.intercept = primal, R, H, intercept
            self.scores_on_all = length * on_all

    def _feasible(self, dual: Array) -> Array:
        """Return the feasible point near `dual`."""
        spread = balanced(self.problem, dual) if self.problem.fit_intercept else None
        return dual if spread is None else spread

    def _note_dual(self, dual: Array, H: Array, on_all: Array) -> None:
        """Keep a feasible point and its scores, without intercept, if it is the best."""
        value = self.losses.dual_value(dual) - 0.5 * float(np.vdot(self.problem.coefficients(dual), H))
        if not value <= self.highest:
            self.highest, self.dual, self.dual_scores, self.dual_scores_on_all = value, dual, H, on_all

    def ratio(self) -> float:
        """Return the ratio of margins to variables."""
        margins = float(np.linalg.norm(self.margins[self.losses.sizes > 0]))
        return margins / max(float(np.linalg.norm(self.dual)), 1e-300)


def best_length(problem: HingeProblem, R: Array, H: Array, intercept: Array) -> float:
    """Return the multiple of coefficients, whose scores are H, and intercept that has the lowest objective.

    Where classes lie apart and C is large, margins that fall a little short cost more than a longer model does.
    The slope of the objective over the length grows, and jumps where a hinge of negative score has its corner.
    """
    losses, F, square = boxes(problem.losses, "The length of a model"), H + intercept, float(np.vdot(R, H))
    if not square > 0.0:
        return 1.0
    pull = losses.upper * F
    always = float(pull[F >= 0.0].sum())
    corner, pull = 1.0 / np.maximum(F[F < 0.0] / -losses.offset, ROUNDING), pull[F < 0.0]
    order = np.argsort(corner)
    corner, below = corner[order], always + np.cumsum(pull[order][::-1])[::-1]
    piece = int(np.searchsorted(corner * square + below, 0.0))
    rest = below[piece] if piece < len(below) else always
    return max(-rest / square, float(corner[piece - 1]) if piece else 0.0)


def unit_of(gram: Gram) -> float:
    """Return the scale of the kernel."""
    return float(np.abs(gram.diagonal()).mean()) or 1.0


def _centred(u: Array) -> Array:
    return u - u.mean(axis=1, keepdims=True)
