"""A dual point of a hinge problem with a kernel, and what follows from it."""

import numpy as np
from numpy.typing import NDArray

from polymargin.gram import DenseGram, FeatureGram, Gram, LazyGram, products_by_rows
from polymargin.problems.certificate import Certificate
from polymargin.problems.hinge import HingePoint, HingeProblem, polyhedral
from polymargin.solvers.contract import Progress
from polymargin.solvers.hinge.intercept import central_intercept
from polymargin.solvers.hinge.working_set import InnerLoop

LAZY_BYTES = 2**24
"""Size of the blocks in which a matrix that is not kept is computed: a small part of a second each."""


class KernelPoint:
    """A dual point, its coefficients R, scores H = K R and intercept; they are `fresh` unless updated since."""

    def __init__(self, problem: HingeProblem, progress: Progress, loop: InnerLoop, start: HingePoint | None):
        self.problem, self.progress, self.loop = problem, progress, loop
        self.losses = polyhedral(problem.losses, "Decomposition")
        self.gram = _materialised(problem.gram)
        self.dual = loop.start() if start is None else start.dual
        self.intercept = np.zeros(self.losses.n_classes)
        if not self.refresh(self.dual):
            self.refresh(loop.start())

    @property
    def whole_matrix(self) -> NDArray[np.float64] | None:
        """The whole matrix, if it is at hand in double precision."""
        return (
            self.gram.matrix if isinstance(self.gram, DenseGram) and self.gram.matrix.dtype == np.float64 else None
        )

    def refresh(self, dual: NDArray[np.float64]) -> bool:
        """Go to a dual point, class sums put right, all else computed anew; False if there is no time for it."""
        dual = self.loop.repair(dual)
        R = self.problem.coefficients(dual)
        scores = self._scores(R)
        if scores is None:
            return False
        # Fortran order: the scores of a class lie together, as the updates need them
        self.dual, self.R, self.H = dual, R, np.asfortranarray(scores)
        if self.problem.fit_intercept:
            self.intercept = central_intercept(self.losses, self.dual, self.H)
        self.fresh = True
        return True

    def _scores(self, R: NDArray[np.float64]) -> NDArray[np.float64] | None:
        """Return the matrix's product with `R`; None if a limit is met while its rows are computed."""
        if not isinstance(self.gram, LazyGram) or not R.any():
            return self.gram.matmul(R) if R.any() else np.zeros_like(R)
        scores = np.empty_like(R)
        for rows, part in products_by_rows(self.gram, R, LAZY_BYTES):
            if self.progress.out_of_time():
                return None
            scores[rows] = part
        return scores

    def objective(self) -> float:
        """Return the dual objective."""
        return self.losses.dual_value(self.dual) - 0.5 * float(np.vdot(self.R, self.H))

    def blame(self) -> NDArray[np.float64]:
        """Return every example's part in the gap, its Fenchel-Young gap: none is negative."""
        return self.losses.gap_per_example(self.dual, self.H + self.intercept)

    def certified(self, *, in_haste: bool = False) -> tuple[HingePoint, Certificate]:
        """Return the point and its certificate; `in_haste` by the scores kept where they would take long."""
        point = HingePoint(self.dual, self.intercept)
        if not isinstance(self.gram, LazyGram):
            return point, self.problem.certify(point)
        scores = None if in_haste else self._scores(self.problem.coefficients(self.dual))
        return point, self.problem.certify(point, self.H if scores is None else scores)


def _materialised(gram: Gram) -> Gram:
    """Return the matrix itself where features would be multiplied again and again."""
    if isinstance(gram, FeatureGram) and gram.n <= 5000:
        return DenseGram(gram.block(np.arange(gram.n)))
    return gram
