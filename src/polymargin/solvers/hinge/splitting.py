"""Splitting for the machine of Lee, Lin & Wahba with a kernel, where working sets do not get far.

    min 1/2 tr(B'KB) - offset sum u,   B = u P,  P = I - 11'/k,   0 <= u <= upper,   1'B = 0.

The over-relaxed iteration of Douglas & Rachford (ADMM) on a state t takes the box and the rest in turns:

    z = clip(t, 0, upper),   v = 2z - t,   x = argmin {the rest + rho/2 |x - v|^2},   t += relaxation (x - z).

x costs one product with one matrix, the same for all classes: ``xP = rho (K + rho I)^-1 (vP + 1 mu')``, mu such
that the sums vanish, and the mean of a row of x is that of v plus offset/rho. At the fixed point the margins are
``rho (t - z)``. The matrix is in single precision, and only changes of v are multiplied by it: as they vanish, so
do the errors. What these have come to is put right in double precision at every certificate.
Both halves are certified for what they are worth: z, its class sums made equal, as a dual point, and -xP as
coefficients of scores, of which no bounds are asked. At a large C the scores of z itself are much worse: an error
of a free variable costs C times what it does to margins.
After S. Boyd et al., Distributed optimization and statistical learning via the alternating direction method of
multipliers, 2011, section 5.2.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.linalg
from numpy.typing import NDArray

from polymargin._native.skinny import available, pack, register_width
from polymargin._native.splitting import reflect, relax, sweep
from polymargin.gram import DenseGram, as_dense, multiply_packed
from polymargin.problems.certificate import Certificate
from polymargin.problems.hinge import HingePoint, HingeProblem, boxes
from polymargin.solvers.contract import Accepted, Observer, Progress, Settings, Solution, Status
from polymargin.solvers.effort import RATES, Operations
from polymargin.solvers.hinge.acceptance import accepts_single_scores
from polymargin.solvers.hinge.faces import FaceSettings, minimised
from polymargin.solvers.hinge.feasibility import balanced
from polymargin.solvers.hinge.intercept import central_intercept
from polymargin.solvers.hinge.leaps import DEFAULTS as LEAPS
from polymargin.solvers.hinge.leaps import Leaps, LeapSettings, Standing
from polymargin.threads import large_products

Array = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class SplittingSettings:
    """Tuning of the splitting; none of it changes what is certified.

    Attributes
    ----------
    relaxation : of the steps.
    penalty, power : rho is a multiple of this power of margins over variables, in units of the kernel's diagonal,
    own_part : plus a multiple of what rows do not share with their neighbours.
    pilot_rows, pilot_share, pilot_steps, pilot_penalty : that ratio is the one after a few steps on a part of the
        rows, at least and at most so many, with this rho,
    settled, max_pilots : and again with the one found while that differs by more than a factor, so often at most.
    own_rows, neighbours : rows that are asked what their nearest neighbours leave to be their own, and how many.
    fewest_steps, most_steps : between two certificates.
    judged_after, max_steps : steps after which the pace is believed, and beyond which a solution is given up.
    steps, steps_per_digit : what a solution takes, about: steps, and more of them for every digit of the gap.
    at_once : size up to which a matrix is inverted at once, without a pause; larger ones are factorised first.
    inverted_from, slower : steps to come, times classes over rows, from which on the inverse pays; steps that one
        without it takes as long as.
    block_operations, block_widths : operations of one stretch of the factorisation, a small part of a second, and
        the least and largest width of its block.
    rough : gap that the first steps reach.
    look_ahead : part of the steps expected to be left that is taken before the next certificate.
    ratios : of margins over variables to the kernel's scale, the least and the largest believed.
    factor_cost, completion_cost : operations of products that the factorisation of a matrix takes, and its inverse
        after it, as multiples of its size cubed.
    look_steps : steps that the products in double precision of a certificate take as long as.
    look_entries, look_factors : of a certificate, entries visited per class and example, sorted ones above all,
        and operations of factorisations as a multiple of the classes cubed: of many classes both are most of it.
    step_calls, look_calls : calls of a step, and of a certificate.
    leaps : of Newton's method on the faces that the state tells.
    """

    relaxation: float = 1.9
    penalty: float = 0.8
    power: float = 0.8
    own_part: float = 0.3
    pilot_rows: tuple[int, int] = (300, 1000)
    pilot_share: float = 0.25
    pilot_steps: int = 20
    pilot_penalty: float = 0.1
    settled: float = 1.5
    max_pilots: int = 6
    own_rows: int = 64
    neighbours: int = 30
    fewest_steps: int = 15
    most_steps: int = 30
    judged_after: int = 150
    max_steps: int = 4000
    steps: int = 25
    steps_per_digit: int = 25
    at_once: int = 2500
    inverted_from: float = 1.3
    slower: float = 1.15
    block_operations: float = 2e10
    block_widths: tuple[int, int] = (64, 400)
    rough: float = 0.1
    look_ahead: float = 0.9
    ratios: tuple[float, float] = (1e-6, 1e6)
    factor_cost: float = 0.14
    completion_cost: float = 0.2
    look_steps: float = 3.0
    look_entries: float = 20.0
    look_factors: float = 60.0
    step_calls: int = 5
    look_calls: int = 600
    leaps: LeapSettings = LEAPS

    def operations(self, n: int, k: int, steps: float) -> Operations:
        """Return the operations of so many steps; the factorisation counts as none of them."""
        return {"product": steps * float(n) ** 2 * k, "call": steps * self.step_calls}

    def operations_of_steps(self, n: int, k: int, steps: float) -> list[Operations]:
        """Return the operations of so many steps and of the certificates between them."""
        looks = steps / self.most_steps
        look = self.operations_to_look(n, k)
        return [self.operations(n, k, steps), {kind: looks * number for kind, number in look.items()}]

    def operations_to_look(self, n: int, k: int) -> Operations:
        """Return the operations of a certificate, and of what precedes it."""
        return {
            "product": self.look_steps * float(n) ** 2 * k,
            "entry": self.look_entries * n * k,
            "factor": self.look_factors * float(k) ** 3,
            "call": self.look_calls,
        }

    def operations_to_factorise(self, n: int) -> Operations:
        """Return the operations of what precedes the first step."""
        whole = self.completion_cost if n <= self.at_once else 0.0
        return {"product": (self.factor_cost + whole) * float(n) ** 3}

    def operations_to_complete(self, n: int) -> Operations:
        """Return the operations of the inverse of a factor."""
        return {"product": self.completion_cost * float(n) ** 3}


DEFAULTS = SplittingSettings()


def operations_to_split(n: int, k: int, tol: float, tuning: SplittingSettings = DEFAULTS) -> list[Operations]:
    """Return the operations that a solution takes, about: factorisation, steps and certificates."""
    steps = tuning.steps - tuning.steps_per_digit * float(np.log10(min(tol, tuning.rough)))
    first = tuning.operations_to_factorise(n), tuning.operations_to_look(n, k)
    return [*first, *tuning.operations_of_steps(n, k, steps)]


ROUNDING = 1e-9
"""Relative ridge that makes neighbours that are one row invertible, and the size of scores that are none."""

CHANGED_BY_LEAPS = ("t", "margins", "guess", "intercept", "least", "R", "scores", "highest", "dual", "dual_scores")
"""Attributes of an iterate; their values are replaced, never changed in place."""


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
        tuning, n, k = self.tuning, problem.losses.n_examples, problem.losses.n_classes
        with Progress(settings, observer, method=self.name) as progress:
            point = start or HingePoint(problem.losses.resting_dual(), np.zeros(k))
            best = problem.certify(point)
            iterate = _SplittingIterate(problem, point, penalty_of(problem, progress, tuning), tuning)
            is_ready = progress.status is not Status.NUMERICAL_ERROR and iterate.prepare(progress)
            steps, looks, leaps = tuning.most_steps, _Looks(best.gap), Leaps(tuning.leaps)
            for _ in progress:
                if not (is_ready and iterate.advance(steps, progress)):
                    break
                candidate, certificate = iterate.certified()
                progress.count_all(tuning.operations_to_look(n, k))
                progress.record(certificate.primal, certificate.dual)
                if certificate.gap < best.gap:
                    point, best = candidate, certificate
                if certificate.within(settings.tol):
                    break
                to_go = looks.steps_to_go(iterate.steps, certificate.gap, settings.tol)
                to_come = tuning.operations_of_steps(n, k, looks.steps_if_slower(settings.tol))
                if leaps.pay(iterate, best.gap, settings.tol, sum(map(RATES.work, to_come))):
                    candidate, certificate = leaps.take(iterate, best.gap, progress, settings.tol)
                    if certificate.gap < best.gap:
                        point, best = candidate, certificate
                    if best.within(settings.tol):
                        break
                work = RATES.work(tuning.operations(n, k, to_go))
                is_too_much = settings.work is not None and progress.work + work > settings.work
                if iterate.steps >= tuning.judged_after and (is_too_much or to_go > tuning.max_steps):
                    progress.status = Status.STALLED
                    break
                if not iterate.hasten(to_go, progress):
                    break
                steps = int(np.clip(tuning.look_ahead * to_go, tuning.fewest_steps, tuning.most_steps))
            return progress.finish(point, best)


class _Looks:
    """What certificates tell of the pace."""

    def __init__(self, gap: float) -> None:
        self.found = [(0, gap)]

    def steps_to_go(self, steps: int, gap: float, tol: float) -> float:
        """Return how many steps are left at the rate of the second half of the way."""
        gap = max(gap, 1e-16)
        self.found.append((steps, gap))
        first, before = self.found[(len(self.found) - 1) // 2]
        rate = np.log(before / gap) / (steps - first)
        return float(np.log(gap / tol) / rate) if rate > 0.0 else np.inf

    def steps_if_slower(self, tol: float) -> float:
        """Return how many steps are left where the rate falls, as it does until the free variables are found.

        Between a constant rate and a power of the steps, the geometric mean; none while nothing is known.
        """
        (first, before), (steps, gap) = self.found[(len(self.found) - 1) // 2], self.found[-1]
        if not 0 < first < steps:
            return 0.0
        if not before > gap:
            return np.inf
        decrease, ahead = np.log(before / gap), max(np.log(gap / tol), 0.0)
        constant = (steps - first) * ahead / decrease
        power = steps * np.expm1(min(ahead * np.log(steps / first) / decrease, -np.log(ROUNDING)))
        return float(np.sqrt(constant * power))


class _SplittingIterate:
    """The state t (n, k), what the rest makes of v = 2z - t, and the matrix that takes them on."""

    def __init__(self, problem: HingeProblem, start: HingePoint, rho: float, tuning: SplittingSettings):
        self.problem, self.losses, self.tuning = problem, boxes(problem.losses, "Splitting"), tuning
        self.guess = self.intercept = start.intercept
        self.upper = np.ascontiguousarray(self.losses.upper)
        self.rho, self.steps = rho, 0
        self.dual, self.R = start.dual, problem.model(start)
        self.dual_scores = self.scores = problem.gram.matmul(self.R)
        self.least, self.highest = np.inf, -np.inf
        self.margins = self.losses.margins(self.scores + start.intercept)
        self.t = np.ascontiguousarray(start.dual + self.margins / rho)
        self.v, self.mean = np.zeros_like(self.t), np.zeros(len(self.t))

    def prepare(self, progress: Progress) -> bool:
        """Invert ``K + rho I``; False if there is no time for it, or the kernel matrix is indefinite."""
        matrix: NDArray[Any] = as_dense(self.problem.gram, "Splitting").matrix.astype(np.float32)
        matrix[np.diag_indices_from(matrix)] += self.rho
        n, k = self.t.shape
        try:
            progress.count_all(self.tuning.operations_to_factorise(n))
            self.inverse = Inverse(matrix, self.tuning)
            with large_products(matrix.size):
                is_ready = self.inverse.prepare(progress)
        except scipy.linalg.LinAlgError:
            progress.status = Status.NUMERICAL_ERROR
            return False
        if not is_ready:
            return False
        ones = np.ones((n if self.problem.fit_intercept else 0, 1))
        self.of_ones = np.ascontiguousarray(self._solved(ones)[:, 0]) if len(ones) else np.empty(0)
        self.columns = Columns(n, k - 1, matrix.dtype)
        reflect(self.t, self.upper, self.v, self.mean, self.columns.right, self.columns.panel)
        self.x = self._summing_to_zero(self.rho * self._solved(self.v))
        self._put_right(self.problem.gram.matmul(self.x))
        return True

    def hasten(self, steps: float, progress: Progress) -> bool:
        """Make the steps faster where so many are to come that it pays; False if there was no time for it."""
        n, k = self.t.shape
        if self.inverse.is_complete or steps * k < self.tuning.inverted_from * n:
            return True
        progress.count_all(self.tuning.operations_to_complete(n))
        with large_products(float(n) ** 2):
            return self.inverse.complete(progress)

    def advance(self, steps: int, progress: Progress) -> bool:
        """Take steps; False if a limit was met."""
        shift, tuning, columns = self.losses.offset / self.rho, self.tuning, self.columns
        t, upper, v, x, mean = self.t, self.upper, self.v, self.x, self.mean
        n, k = t.shape
        operations = tuning.operations(n, k, 1.0 if self.inverse.is_complete else tuning.slower)
        for _ in range(steps):
            if progress.out_of_time():
                return False
            progress.count_all(operations)
            reflect(t, upper, v, mean, columns.right, columns.panel)
            self.inverse.apply(columns)
            relax(t, x, upper, mean, columns.answer, self.of_ones, self.rho, shift, tuning.relaxation)
        self.steps += steps
        return True

    def _put_right(self, product: Array) -> None:
        """Take from x, whose product with the matrix is given, what rounding has made of it."""
        missing = self.rho * (self.v - self.x) - product
        if self.problem.fit_intercept:  # constants are the intercept's
            missing -= missing.mean(axis=0)
        self.x += self._summing_to_zero(self._solved(missing))

    def _solved(self, right: Array) -> Array:
        """Return ``(K + rho I)^-1`` times columns, to single precision."""
        return (self.inverse @ right).astype(np.float64)

    def _summing_to_zero(self, x: Array) -> Array:
        """Return what solves the system for the right-hand side with constants that make the class sums vanish."""
        if not self.problem.fit_intercept:
            return x
        return x - np.outer(self.of_ones, x.sum(axis=0) / self.of_ones.sum())

    def certified(self) -> tuple[HingePoint, Certificate]:
        """Return the best scores and the best dual point so far, and their certificate; x is put right."""
        product = self.problem.gram.matmul(self.x)
        self._note_scores(_centred(-self.x), _centred(-product))
        self._put_right(product)
        self._note_dual(np.clip(self.t, 0.0, self.losses.upper))
        return self.best()

    def best(self) -> tuple[HingePoint, Certificate]:
        """Return the best scores and the best dual point so far, and their certificate."""
        point = HingePoint(self.dual, self.intercept, primal=self.R)
        return point, self.problem.certify(point, self.dual_scores, self.scores)

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
        R = problem.coefficients(reference)
        H, moves = problem.gram.matmul(R), self.losses.moves(reference, face)
        unchanged = np.zeros_like(R)
        steps = minimised(problem, moves, H, unchanged, R.sum(axis=0), tuning=faces, progress=progress)
        if steps is None or not np.isfinite(steps).all():
            return False
        dual = moves.applied(reference, steps)
        R = problem.coefficients(dual)
        self._note_scores(R, problem.gram.matmul(R))
        self._note_dual(self.losses.clipped(dual))
        progress.count_all(self.tuning.operations_to_look(*self.t.shape))
        self.t = np.ascontiguousarray(np.where(face, dual, dual + self.margins / self.rho))
        return True

    def _note_scores(self, R: Array, H: Array) -> None:
        """Keep coefficients and their scores if they are the best."""
        intercept = self.guess
        if self.problem.fit_intercept:
            intercept = self.guess = central_intercept(self.losses, self.dual, H, guess=self.guess)
        self.margins = self.losses.margins(H + intercept)
        length = best_length(self.problem, R, H, intercept)
        R, H, intercept = length * R, length * H, length * intercept
        primal = self.problem.objective(R, H, intercept)
        if not primal >= self.least:
            self.least, self.R, self.scores, self.intercept = primal, R, H, intercept

    def _note_dual(self, dual: Array) -> None:
        """Keep the feasible point near `dual` if it is the best."""
        if self.problem.fit_intercept:
            spread = balanced(self.problem, dual)
            dual = dual if spread is None else spread
        R = self.problem.coefficients(dual)
        H = self.problem.gram.matmul(R)
        value = self.losses.dual_value(dual) - 0.5 * float(np.vdot(R, H))
        if not value <= self.highest:
            self.highest, self.dual, self.dual_scores = value, dual, H

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


def penalty_of(problem: HingeProblem, progress: Progress, tuning: SplittingSettings = DEFAULTS) -> float:
    """Return rho: by what a few steps on a part of the rows find, and what rows have that their neighbours lack.

    Bounds ask for the ratio of margins to variables, the quadratic for the kernel's scale: something between them
    serves both. With a rho that is far off a few steps do not find that ratio, so that it is found again.
    Where every row is its own the matrix is nearly a multiple of the identity, and rho no less than a part of it;
    rows of fewer features than rows have nothing of their own, though their nearest neighbours do not show it.
    """
    gram, n = as_dense(problem.gram, "Splitting"), problem.losses.n_examples
    size = min(n, int(np.clip(tuning.pilot_share * n, *tuning.pilot_rows)))
    order = np.random.default_rng(0).permutation(n)
    rows = np.sort(order[:size])
    losses = problem.losses.restricted(rows)
    part = HingeProblem(DenseGram(gram.block(rows, rows)), losses, problem.fit_intercept)
    unit, rho = float(np.abs(gram.diagonal()).mean()) or 1.0, tuning.pilot_penalty
    point = HingePoint(losses.resting_dual(), np.zeros(losses.n_classes))
    for _ in range(tuning.max_pilots):
        iterate = _SplittingIterate(part, point, rho * unit, tuning)
        if not (iterate.prepare(progress) and iterate.advance(tuning.pilot_steps, progress)):
            break
        point, _ = iterate.certified()
        before, rho = rho, tuning.penalty * float(np.clip(iterate.ratio() / unit, *tuning.ratios)) ** tuning.power
        if max(rho / before, before / rho) <= tuning.settled:
            break
    own = _own_part(gram, order[: tuning.own_rows], tuning.neighbours) / unit if gram.rank >= n else 0.0
    return unit * (rho + tuning.own_part * own)


def _own_part(gram: DenseGram, rows: NDArray[np.intp], size: int) -> float:
    """Return how much of the kernel, in the median, rows do not share with their nearest neighbours."""
    K, place = gram.block(rows), np.arange(len(rows))
    diagonal = K[place, rows]
    K[place, rows] = -np.inf
    size = min(size, K.shape[1] - 1)
    near = np.argpartition(-K, size - 1, axis=1)[:, :size] if size else np.empty((len(rows), 0), dtype=np.intp)
    to_near = np.take_along_axis(K, near, axis=1)
    among = gram.matrix[near[:, :, None], near[:, None, :]] + ROUNDING * max(diagonal.max(), 1e-300) * np.eye(size)
    shared = np.einsum("ra,ra->r", to_near, np.linalg.solve(among, to_near[:, :, None])[:, :, 0])
    return float(np.clip(np.median(diagonal - shared), 0.0, diagonal.mean()))


class Columns:
    """Right-hand sides (n, k), laid out as compiled products take them, and room for the answers.

    Attributes
    ----------
    panel : columns that lie together.
    right : the panels, one after the other.
    answer : (n, k) and columns beyond them that fill a register.
    """

    def __init__(self, n: int, k: int, dtype: Any):
        lanes = register_width(np.dtype(dtype).itemsize) if available() else 1
        width = lanes * -(-k // lanes)
        self.panel = 2 * lanes if available() else max(width, 1)
        self.right, self.answer = np.zeros(n * width, dtype=dtype), np.zeros((n, width), dtype=dtype)

    def take(self, V: NDArray) -> None:
        """Copy V (n, k) to the right-hand sides."""
        V = V.astype(self.right.dtype, copy=False)
        if available():
            pack(V, self.right)
        else:
            self.right.reshape(self.answer.shape)[:] = V


class Inverse:
    """A positive definite matrix, which is used up, by whose inverse columns are multiplied.

    A small matrix is inverted at once. Of a large one there is the Cholesky factor first, with pauses: below the
    diagonal, its transpose above, the blocks on the diagonal inverted. It is had for a third of the work, and
    takes longer to apply; `complete` makes the inverse of it.
    """

    def __init__(self, matrix: NDArray, tuning: SplittingSettings = DEFAULTS):
        self.matrix = matrix
        self.blocks = _blocks(len(matrix), tuning.block_operations, tuning.block_widths)
        self.is_small = self.is_complete = len(matrix) <= tuning.at_once

    def prepare(self, progress: Progress) -> bool:
        """Invert or factorise the matrix; False if there is no time for it."""
        if self.is_small:
            _invert(self.matrix)
            return True
        matrix, blocks = self.matrix, self.blocks
        for at, p in enumerate(blocks):
            if progress.out_of_time():
                return False
            matrix[p, p] = _inverse_factor(matrix[p, p])
            matrix[p.stop :, p] = matrix[p.stop :, p] @ matrix[p, p].T
            matrix[p, p.stop :] = matrix[p.stop :, p].T
            for i in blocks[at + 1 :]:
                matrix[i, p.stop : i.stop] -= matrix[i, p] @ matrix[p, p.stop : i.stop]
        self.transposed = np.zeros((len(matrix), blocks[0].stop), dtype=matrix.dtype)
        for p in blocks:
            self.transposed[p, : p.stop - p.start] = matrix[p, p].T
        return True

    def complete(self, progress: Progress) -> bool:
        """Make the inverse of the factor: its own inverse X, then ``X'X``; False if there is no time for it."""
        matrix, blocks = self.matrix, self.blocks
        for at, p in enumerate(blocks):
            if progress.out_of_time():
                return False
            row = [matrix[p, j.start : p.start] @ matrix[j.start : p.start, j] for j in blocks[:at]]
            if row:
                matrix[p, : p.start] = -matrix[p, p] @ np.hstack(row)
        for p in blocks:
            if progress.out_of_time():
                return False
            matrix[p, : p.stop] = matrix[p.start :, p].T @ matrix[p.start :, : p.stop]
        for p in blocks:
            matrix[p, p] = np.tril(matrix[p, p]) + np.tril(matrix[p, p], -1).T
            matrix[p, p.stop :] = matrix[p.stop :, p].T
        self.is_complete = True
        return True

    def __matmul__(self, V: NDArray) -> NDArray:
        n, k = V.shape
        columns = Columns(n, k, self.matrix.dtype)
        columns.take(V)
        self.apply(columns)
        return columns.answer[:, :k]

    def apply(self, columns: Columns) -> None:
        """Answer right-hand sides, which may be spent."""
        if not available():
            columns.answer[:] = self._by_blas(columns.right.reshape(columns.answer.shape))
        elif self.is_complete:
            multiply_packed(self.matrix, columns.right, columns.answer)
        else:
            sweep(self.matrix, self.transposed, columns.right, columns.answer)

    def _by_blas(self, V: NDArray) -> NDArray:
        if self.is_complete:
            return self.matrix @ V
        matrix, X = self.matrix, V.copy()
        for p in self.blocks:
            X[p] = matrix[p, p] @ (X[p] - matrix[p, : p.start] @ X[: p.start])
        for p in reversed(self.blocks):
            X[p] = matrix[p, p].T @ (X[p] - matrix[p, p.stop :] @ X[p.stop :])
        return X


def _inverse_factor(matrix: NDArray) -> NDArray:
    """Return the inverse of the Cholesky factor of a matrix of which the lower triangle is given."""
    potrf, trtri = scipy.linalg.get_lapack_funcs(("potrf", "trtri"), (matrix,))
    factor, failed = potrf(matrix, lower=1, clean=1)
    if failed:
        raise scipy.linalg.LinAlgError("the matrix is not positive definite")
    return np.tril(trtri(factor, lower=1)[0])


def _invert(matrix: NDArray) -> None:
    potrf, potri = scipy.linalg.get_lapack_funcs(("potrf", "potri"), (matrix,))
    # LAPACK's lower triangle is ours above the diagonal
    factor, failed = potrf(matrix.T, lower=1, overwrite_a=1)
    if failed:
        raise scipy.linalg.LinAlgError("the matrix is not positive definite")
    potri(factor, lower=1, overwrite_c=1)
    for i in _blocks(len(matrix), DEFAULTS.block_operations, DEFAULTS.block_widths):
        matrix[i, i] = np.triu(matrix[i, i]) + np.triu(matrix[i, i], 1).T
        matrix[i.stop :, i] = matrix[i, i.stop :].T


def _blocks(n: int, operations: float, widths: tuple[int, int]) -> list[slice]:
    width = int(np.clip(operations / n**2, *widths))
    return [slice(first, min(first + width, n)) for first in range(0, n, width)]


def _centred(u: Array) -> Array:
    return u - u.mean(axis=1, keepdims=True)
