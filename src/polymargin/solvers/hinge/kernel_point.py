"""A dual point of a hinge problem with a kernel, and the scores that follow from it."""

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from polymargin.gram import DenseGram, FeatureGram, Gram, LazyGram, products_by_rows
from polymargin.problems.certificate import Certificate
from polymargin.problems.hinge import HingePoint, HingeProblem, boxes, polyhedral
from polymargin.solvers.contract import Progress
from polymargin.solvers.hinge.feasibility import feasible
from polymargin.solvers.hinge.intercept import central_intercept
from polymargin.solvers.hinge.settings import BEGINNING

Array = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class ScoredPoint(HingePoint):
    """A point that a method leaves for the next one on the same problem: nothing is multiplied twice.

    Attributes
    ----------
    coefficients, scores : R (n, k), and the product of the matrix with it.
    gram, tilt : the matrix, and the linear term that is in the coefficients.
    exact : whether the scores were computed at once; else they were updated step by step.
    rows : the last working set; empty where there was none.
    block : of the rows that seemed to matter.
    """

    coefficients: Array
    scores: Array
    gram: Gram
    tilt: Array | None
    exact: bool
    rows: NDArray[np.intp]
    block: "Block | None" = None


@dataclass(slots=True)
class Block:
    """Rows of the matrix that many rounds work on, and the matrix among them: one for all points on the way.

    Attributes
    ----------
    rows, matrix : which, and their entries; none of both at first.
    """

    rows: NDArray[np.intp] = field(default_factory=lambda: np.empty(0, dtype=np.intp))
    matrix: Array = field(default_factory=lambda: np.empty((0, 0)))

    def drop(self) -> None:
        """Forget it, so that there are never two in memory."""
        self.rows, self.matrix = np.empty(0, dtype=np.intp), np.empty((0, 0))


def first_dual(problem: HingeProblem) -> Array:
    """Return the dual point to begin with: at rest, or at the upper bounds if the dual rises all the way to them.

    So it does at a small C, where most variables stay there. A sample of the examples tells.
    """
    losses, matrix = polyhedral(problem.losses, "A point to begin with"), whole_matrix(problem.gram)
    if not losses.sees_single_scores or matrix is None or problem.tilt is not None:
        return losses.resting_dual()
    n, upper = losses.n_examples, boxes(losses, "Upper bounds").upper
    rows = slice(None, None, -(-n // BEGINNING.sampled))
    R = problem.coefficients(upper)
    R = R[rows] - R.mean(axis=0) * problem.fit_intercept
    matrix = np.ascontiguousarray(matrix[rows, rows])
    own = float(np.vdot(R, R * matrix.diagonal()[:, None]))
    between = float(np.vdot(R, matrix @ R)) - own
    part = len(R) / n
    rises = part**2 * losses.dual_value(upper) >= between + part * own
    return feasible(problem, upper) if rises else losses.resting_dual()


class KernelPoint:
    """A dual point, its coefficients R, scores H = K R and intercept; they are `exact` unless updated since."""

    def __init__(self, problem: HingeProblem, progress: Progress, start: HingePoint | None, lazy_bytes: int):
        self.problem, self.progress, self.lazy_bytes = problem, progress, lazy_bytes
        self.losses = polyhedral(problem.losses, "Decomposition")
        self.gram = problem.gram
        self.intercept = np.zeros(self.losses.n_classes)
        self.rows = np.empty(0, dtype=np.intp)
        self.block = Block()
        if isinstance(start, ScoredPoint) and start.gram is problem.gram and start.tilt is problem.tilt:
            self._go_on_from(start)
        elif start is None or not self.refresh(start.dual):
            self.refresh(first_dual(problem) if start is None else self.losses.resting_dual())

    def _go_on_from(self, start: ScoredPoint) -> None:
        self.dual, self.R, self.H = start.dual.copy(), start.coefficients.copy(), start.scores.copy(order="F")
        self.intercept, self.exact, self.rows = start.intercept, start.exact, start.rows
        self.block = start.block or Block()

    def refresh(self, dual: Array) -> bool:
        """Go to a dual point, class sums put right, all else computed anew; False if there is no time for it."""
        dual = feasible(self.problem, dual)
        R = self.problem.coefficients(dual)
        scores = self._product(R)
        if scores is None:
            return False
        # Fortran order: the scores of a class lie together, as the updates need them
        self.dual, self.R, self.H = dual, R, np.asfortranarray(scores)
        if self.problem.fit_intercept:
            self.intercept = central_intercept(self.losses, self.dual, self.H)
        self.exact = True
        return True

    def _product(self, R: Array) -> Array | None:
        """Return the matrix's product with `R`; None if a limit is met while its rows are computed."""
        if not isinstance(self.gram, LazyGram) or not R.any():
            return self.gram.matmul(R) if R.any() else np.zeros_like(R)
        scores = np.empty_like(R)
        for rows, part in products_by_rows(self.gram, R, self.lazy_bytes):
            if self.progress.out_of_time():
                return None
            scores[rows] = part
        return scores

    def objective(self) -> float:
        """Return the dual objective."""
        return self.losses.dual_value(self.dual) - 0.5 * float(np.vdot(self.R, self.H))

    def gap_per_example(self) -> Array:
        """Return every example's part in the gap, its Fenchel-Young gap: none is negative."""
        return self.losses.gap_per_example(self.dual, self.H + self.intercept)

    def unfinished(self) -> tuple[ScoredPoint, Certificate]:
        """Return the point as it is for a method that goes on, measured by the scores kept."""
        tilt = self.problem.tilt
        point = ScoredPoint(
            self.dual, self.intercept, self.R, self.H, self.gram, tilt, self.exact, self.rows, self.block
        )
        return point, self.problem.certify(point, self.H)

    def certified(self, *, use_cached_scores: bool = False) -> tuple[ScoredPoint, Certificate]:
        """Return the point with its class sums right to rounding, and its certificate.

        Where rows of the matrix are computed when needed, going over all of them takes longer than a stop may:
        then `use_cached_scores`, which are right to single precision.
        """
        if not self.exact:
            self.dual = feasible(self.problem, self.dual)
            if self.problem.fit_intercept and not use_cached_scores:
                self.intercept = central_intercept(self.losses, self.dual, self.H)
            R = self.problem.coefficients(self.dual)
            scores = None if use_cached_scores else self._product(R)
            if scores is not None:
                self.R, self.H, self.exact = R, np.asfortranarray(scores), True
        return self.unfinished()


def held_in_memory(gram: Gram, most_rows: int) -> Gram:
    """Return the matrix itself where features would be multiplied again and again."""
    if isinstance(gram, FeatureGram) and gram.n <= most_rows:
        return DenseGram(gram.block(np.arange(gram.n)), rank=min(gram.features.shape))
    return gram


def whole_matrix(gram: Gram) -> Array | None:
    """Return the whole matrix, if it is at hand in double precision."""
    return gram.matrix if isinstance(gram, DenseGram) and gram.matrix.dtype == np.float64 else None
