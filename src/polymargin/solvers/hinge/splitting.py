"""Splitting for the machine of Lee, Lin & Wahba with a kernel, where examples have many free variables.

    min 1/2 tr(B'KB) - offset sum u,   B = u P,  P = I - 11'/k,   0 <= u <= upper,   1'B = 0.

The over-relaxed iteration of Douglas & Rachford (ADMM) on a state t takes the box and the rest in turns:

    z = clip(t, 0, upper),   v = 2z - t,   x = argmin {the rest + rho/2 |x - v|^2},   t += relaxation (x - z).

x costs one product with one matrix, the same for all classes: ``xP = rho (K + rho I)^-1 (vP + 1 mu')``, mu such
that the sums vanish, and the mean of a row of x is that of v plus offset/rho. At the fixed point the margins are
``rho (t - z)``. The iterates z only have to be near a solution: for a certificate their class sums are put right
and all is computed in double precision, so that the steps can be taken in single precision.
After S. Boyd et al., Distributed optimization and statistical learning via the alternating direction method of
multipliers, 2011, section 5.2.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.linalg
from numpy.typing import NDArray

from polymargin.gram import as_dense, skinny_product
from polymargin.problems.certificate import Certificate
from polymargin.problems.hinge import HingePoint, HingeProblem, boxes
from polymargin.solvers.contract import Accepted, Observer, Progress, Settings, Solution, Status
from polymargin.solvers.effort import Operations
from polymargin.solvers.hinge.acceptance import accepts_single_scores
from polymargin.solvers.hinge.feasibility import balanced
from polymargin.solvers.hinge.intercept import central_intercept
from polymargin.threads import large_products


@dataclass(frozen=True, slots=True)
class SplittingSettings:
    """Tuning of the splitting; none of it changes what is certified.

    Attributes
    ----------
    relaxation : of the steps.
    penalty : rho, as a multiple of its scale: see `_penalty`.
    single_precision : relative gap down to which steps in single precision are good enough.
    fewest_steps, most_steps : between two certificates.
    max_steps : beyond which a solution is given up.
    steps, steps_per_digit : what a solution takes, about: steps, and more of them for every digit of the gap.
    at_once : size up to which a matrix is inverted without a pause.
    block_operations, block_widths : operations of one stretch of the inversion, a small part of a second, and the
        least and largest width of its block.
    rough : gap that the first steps reach.
    look_ahead : part of the steps expected to be left that is taken before the next certificate.
    least_ratio : of margins over variables to the kernel's scale.
    inversion_cost : operations of products that the inversion of a matrix takes, as a multiple of its size cubed.
    double_cost : factor by which all takes longer in double precision.
    step_calls, look_calls : calls of a step, and of a certificate.
    """

    relaxation: float = 1.9
    penalty: float = 0.7
    single_precision: float = 1e-4
    fewest_steps: int = 10
    most_steps: int = 30
    max_steps: int = 400
    steps: int = 25
    steps_per_digit: int = 25
    at_once: int = 2500
    block_operations: float = 2e10
    block_widths: tuple[int, int] = (64, 400)
    rough: float = 0.1
    look_ahead: float = 0.7
    least_ratio: float = 1e-6
    inversion_cost: float = 0.3
    double_cost: float = 2.0
    step_calls: int = 15
    look_calls: int = 600

    def operations(self, n: int, k: int, steps: float, *, double: bool) -> Operations:
        """Return the operations of so many steps; the inversion counts as none of them."""
        products = (self.double_cost if double else 1.0) * steps * float(n) ** 2 * k
        return {"product": products, "call": steps * self.step_calls}

    def operations_to_invert(self, n: int, *, double: bool) -> Operations:
        """Return the operations of the inversion."""
        return {"product": (self.double_cost if double else 1.0) * self.inversion_cost * float(n) ** 3}


DEFAULTS = SplittingSettings()


def operations_to_split(n: int, k: int, tol: float, tuning: SplittingSettings = DEFAULTS) -> list[Operations]:
    """Return the operations that a solution takes, about: inversion, steps and certificates."""
    steps = tuning.steps - tuning.steps_per_digit * float(np.log10(min(tol, tuning.rough)))
    double, looks = tol < tuning.single_precision, 1.0 + steps / tuning.most_steps
    return [
        tuning.operations_to_invert(n, double=double),
        tuning.operations(n, k, steps, double=double),
        {"call": looks * tuning.look_calls},
    ]


class Splitting:
    """Over-relaxed steps to a fixed point, for box losses that see single scores on a matrix held in memory."""

    name = "splitting"

    def __init__(self, tuning: SplittingSettings = DEFAULTS):
        self.tuning = tuning

    def accepts(self, problem: Any) -> Accepted:
        """Return True if the solver can take `problem`, else the reason why not."""
        return accepts_single_scores(problem)

    def solve(
        self,
        problem: HingeProblem,
        settings: Settings,
        *,
        start: HingePoint | None = None,
        observer: Observer | None = None,
    ) -> Solution[HingePoint]:
        """Solve `problem` from the neighbourhood of `start`; stop where the rest would take too many steps."""
        tuning = self.tuning
        with Progress(settings, observer, method=self.name) as progress:
            point = start or HingePoint(problem.losses.resting_dual(), np.zeros(problem.losses.n_classes))
            best = problem.certify(point)
            iterate = _SplittingIterate(problem, point, tuning, double=settings.tol < tuning.single_precision)
            if not iterate.prepare(progress):
                return progress.finish(point, best)
            steps, looks = tuning.most_steps, [(0, 1.0)]
            for _ in progress:
                if not iterate.advance(steps, progress):
                    break
                candidate, certificate = iterate.certified()
                progress.count("call", tuning.look_calls)
                progress.record(certificate.primal, certificate.dual)
                if certificate.gap < best.gap:
                    point, best = candidate, certificate
                if certificate.within(settings.tol):
                    break
                looks.append((looks[-1][0] + steps, max(certificate.gap, 1e-16)))
                to_go = _steps_to_go(looks, settings.tol)
                if len(looks) > 2 and looks[-1][0] + to_go > tuning.max_steps:
                    progress.status = Status.STALLED
                    break
                steps = int(np.clip(tuning.look_ahead * to_go, tuning.fewest_steps, tuning.most_steps))
            return progress.finish(point, best)


def _steps_to_go(looks: list[tuple[int, float]], tol: float) -> float:
    """Return how many steps are left to a gap of `tol` at the rate of the second half of the way."""
    (first, before), (last, gap) = looks[(len(looks) - 1) // 2], looks[-1]
    rate = np.log(before / gap) / (last - first)
    return float(np.log(gap / tol) / rate) if rate > 0.0 else np.inf


class _SplittingIterate:
    """The state t (k, n), and the matrix that takes it on."""

    def __init__(self, problem: HingeProblem, start: HingePoint, tuning: SplittingSettings, *, double: bool):
        self.problem, self.losses, self.tuning = problem, boxes(problem.losses, "Splitting"), tuning
        self.double, self.precision = double, np.float64 if double else np.float32
        self.intercept = start.intercept
        H = problem.gram.matmul(problem.coefficients(start.dual))
        margins = self.losses.margins(H + start.intercept)
        self.rho = tuning.penalty * _penalty(problem, start.dual, margins, tuning.least_ratio)
        self.upper = self._transposed(self.losses.upper)
        self.t = self._transposed(start.dual + margins / self.rho)

    def _transposed(self, values: NDArray[np.float64]) -> NDArray:
        return np.ascontiguousarray(values.T, dtype=self.precision)

    def prepare(self, progress: Progress) -> bool:
        """Invert ``K + rho I``; False if there is no time for it, or the kernel matrix is indefinite."""
        matrix: NDArray[Any] = as_dense(self.problem.gram, "Splitting").matrix.astype(self.precision)
        matrix[np.diag_indices_from(matrix)] += self.rho
        try:
            progress.count_all(self.tuning.operations_to_invert(len(matrix), double=self.double))
            with large_products(matrix.size):
                inverted = invert(matrix, progress, self.tuning)
        except scipy.linalg.LinAlgError:
            progress.status = Status.NUMERICAL_ERROR
            return False
        if not inverted:
            return False
        self.inverse = matrix
        self.of_ones = matrix.sum(axis=0)
        self.total = self.of_ones.sum()
        return True

    def advance(self, steps: int, progress: Progress) -> bool:
        """Take steps; False if a limit was met."""
        rho, relaxation = self.precision(self.rho), self.precision(self.tuning.relaxation)
        shift = self.precision(self.losses.offset / self.rho)
        k, n = self.t.shape
        for _ in range(steps):
            if progress.out_of_time():
                return False
            progress.count_all(self.tuning.operations(n, k, 1.0, double=self.double))
            z = np.clip(self.t, 0.0, self.upper)
            v = 2 * z - self.t
            mean = v.mean(axis=0)
            v -= mean
            x = np.ascontiguousarray(skinny_product(self.inverse, v.T).T)
            if self.problem.fit_intercept:
                x -= np.outer(v @ (self.of_ones / self.total), self.of_ones)
            x *= rho
            x += mean + shift
            x -= z
            self.t += relaxation * x
        return True

    def certified(self) -> tuple[HingePoint, Certificate]:
        """Return the feasible point near the iterate, and its certificate."""
        dual = np.clip(self.t.T.astype(np.float64), 0.0, self.losses.upper)
        if self.problem.fit_intercept:
            spread = balanced(self.problem, dual)
            dual = dual if spread is None else spread
        H = self.problem.gram.matmul(self.problem.coefficients(dual))
        if self.problem.fit_intercept:
            self.intercept = central_intercept(self.losses, dual, H, guess=self.intercept)
        point = HingePoint(dual, self.intercept)
        return point, self.problem.certify(point, H)


def _penalty(
    problem: HingeProblem, dual: NDArray[np.float64], margins: NDArray[np.float64], least: float
) -> float:
    """Return rho: its scale is between the kernel's, and that of margins over variables.

    The first is right for the quadratic and the second for the bounds; the geometric mean serves C from 1 to 100.
    """
    curvature = float(problem.gram.diagonal().mean())
    used = problem.losses.sizes > 0
    ratio = float(np.linalg.norm(margins[used])) / max(float(np.linalg.norm(dual)), 1e-300)
    return curvature * float(np.sqrt(np.clip(ratio / curvature, least, 1.0)))


def invert(matrix: NDArray, progress: Progress, tuning: SplittingSettings = DEFAULTS) -> bool:
    """Replace a positive definite matrix by its inverse, block by block; False if there is no time for it.

    The sweep operator: of the block p it makes ``-A_pp^-1``, of its columns ``A_ip A_pp^-1``, of the rest
    ``A_ij - A_ip A_pp^-1 A_pj``; when all blocks are swept, minus the inverse is left. Only the upper triangle is
    kept until then.
    """
    if len(matrix) <= tuning.at_once:
        _invert_at_once(matrix)
        return True
    blocks = _blocks(len(matrix), tuning.block_operations, tuning.block_widths)
    for p in blocks:
        if progress.out_of_time():
            return False
        corner = matrix[p, p].copy()
        columns = np.vstack([matrix[: p.start, p], corner, matrix[p, p.stop :].T])
        _invert_at_once(corner)
        solved = columns @ corner
        for i in blocks:
            matrix[i, i.start :] -= solved[i] @ columns[i.start :].T
        matrix[: p.start, p] = solved[: p.start]
        matrix[p, p.stop :] = solved[p.stop :].T
        matrix[p, p] = -corner
    np.negative(matrix, out=matrix)
    _mirror(matrix, blocks)
    return True


def _invert_at_once(matrix: NDArray) -> None:
    potrf, potri = scipy.linalg.get_lapack_funcs(("potrf", "potri"), (matrix,))
    # LAPACK's lower triangle is ours above the diagonal
    factor, failed = potrf(matrix.T, lower=1, overwrite_a=1)
    if failed:
        raise scipy.linalg.LinAlgError("the matrix is not positive definite")
    potri(factor, lower=1, overwrite_c=1)
    _mirror(matrix, _blocks(len(matrix), DEFAULTS.block_operations, DEFAULTS.block_widths))


def _mirror(matrix: NDArray, blocks: list[slice]) -> None:
    """Copy what is above the diagonal to below it."""
    for i in blocks:
        matrix[i, i] = np.triu(matrix[i, i]) + np.triu(matrix[i, i], 1).T
        matrix[i.stop :, i] = matrix[i, i.stop :].T


def _blocks(n: int, operations: float, widths: tuple[int, int]) -> list[slice]:
    width = int(np.clip(operations / n**2, *widths))
    return [slice(first, min(first + width, n)) for first in range(0, n, width)]
