"""Splitting for the machine of Lee, Lin & Wahba with a kernel, where working sets do not get far.

    min 1/2 tr(B'KB) - offset sum u,   B = u P,  P = I - 11'/k,   0 <= u <= upper,   1'B = 0.

The over-relaxed iteration of Douglas & Rachford (ADMM) on a state t takes the box and the rest in turns:

    z = clip(t, 0, upper),   v = 2z - t,   x = argmin {the rest + rho/2 |x - v|^2},   t += relaxation (x - z).

x costs one product with one matrix, the same for all classes: ``xP = rho (K + rho I)^-1 (vP + 1 mu')``, mu such
that the sums vanish, and the mean of a row of x is that of v plus offset/rho. At the fixed point the margins are
``rho (t - z)``. The matrix is in single precision, and only changes of v are multiplied by it: as they vanish, so
do the errors. What these have come to is put right in double precision at every certificate.
Of features that are fewer than half the rows the matrix is not formed: ``(K + rho I)^-1`` is that of a matrix of
their number, and rho may change on the way.
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

from polymargin._native.splitting import reflect, relax
from polymargin.gram import DenseGram, FeatureGram, Gram, as_dense, as_features
from polymargin.problems.certificate import Certificate
from polymargin.problems.hinge import HingePoint, HingeProblem, boxes
from polymargin.solvers.contract import Accepted, Observer, Progress, Settings, Solution, Status
from polymargin.solvers.effort import RATES, Operations
from polymargin.solvers.hinge.acceptance import SINGLE_SCORES, accepts_single_scores
from polymargin.solvers.hinge.faces import FaceSettings, minimised
from polymargin.solvers.hinge.feasibility import balanced
from polymargin.solvers.hinge.intercept import central_intercept
from polymargin.solvers.hinge.inverses import DEFAULTS as INVERSES
from polymargin.solvers.hinge.inverses import Columns, FeatureInverse, Inverse, InverseSettings
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
    inverted_from, slower : steps to come, times classes over rows, from which on the inverse pays; steps that one
        without it takes as long as.
    rough : gap that the first steps reach.
    look_ahead : part of the steps expected to be left that is taken before the next certificate.
    ratios : of margins over variables to the kernel's scale, the least and the largest believed.
    factor_cost, completion_cost : operations of products that the factorisation of a matrix takes, and its inverse
        after it, as multiples of its size cubed.
    look_steps : steps that the products in double precision of a certificate take as long as.
    look_entries, look_factors : of a certificate, entries visited per class and example, sorted ones above all,
        and operations of factorisations as a multiple of the classes cubed: of many classes both are most of it.
    step_calls, look_calls : calls of a step, and of a certificate.
    feature_steps, feature_steps_per_digit : the same as `steps` and `steps_per_digit` on features.
    least_rows_per_feature : below which the matrix takes no more than features.
    most_entries : of features, which are held twice in single precision.
    changed : factor by which the ratio on all rows must tell another rho than that in use to change it.
    step_entries, square_cost, eigen_cost : on features, operations of compiled loops that a step takes per class
        and example; of products, per feature and entry; of factorisations, as a multiple of their number cubed.
    inverse : of the inverse.
    leaps : of Newton's method on the faces that the state tells, on the matrix.
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
    inverted_from: float = 1.3
    slower: float = 1.15
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
    feature_steps: int = 0
    feature_steps_per_digit: int = 100
    least_rows_per_feature: int = 2
    most_entries: float = 1e8
    changed: float = 2.0
    step_entries: float = 5.0
    square_cost: float = 1.5
    eigen_cost: float = 12.0
    inverse: InverseSettings = INVERSES
    leaps: LeapSettings = LEAPS

    def operations(self, size: "SplitSize", steps: float) -> Operations:
        """Return the operations of so many steps; the factorisation counts as none of them."""
        loops = 0.0 if size.p is None else self.step_entries * size.n * size.k
        return {"product": steps * size.entries * size.k, "sweep": steps * loops, "call": steps * self.step_calls}

    def operations_of_steps(self, size: "SplitSize", steps: float) -> list[Operations]:
        """Return the operations of so many steps and of the certificates between them."""
        looks = steps / self.most_steps
        look = self.operations_to_look(size)
        return [self.operations(size, steps), {kind: looks * number for kind, number in look.items()}]

    def operations_to_look(self, size: "SplitSize") -> Operations:
        """Return the operations of a certificate, and of what precedes it."""
        return {
            "product": self.look_steps * size.entries * size.k,
            "entry": self.look_entries * size.n * size.k,
            "factor": self.look_factors * float(size.k) ** 3,
            "call": self.look_calls,
        }

    def operations_to_factorise(self, size: "SplitSize") -> Operations:
        """Return the operations of what precedes the first step."""
        if size.p is not None:
            products = self.square_cost * 0.5 * size.entries * size.p
            return {"product": products, "factor": self.eigen_cost * float(size.p) ** 3}
        whole = self.completion_cost if size.n <= self.inverse.at_once else 0.0
        return {"product": (self.factor_cost + whole) * float(size.n) ** 3}

    def operations_to_complete(self, size: "SplitSize") -> Operations:
        """Return the operations of the inverse of a factor."""
        return {"product": self.completion_cost * float(size.n) ** 3}


DEFAULTS = SplittingSettings()


@dataclass(frozen=True, slots=True)
class SplitSize:
    """Examples, classes, and features; None where the matrix is at hand."""

    n: int
    k: int
    p: int | None = None

    @property
    def entries(self) -> float:
        """Numbers that a product with the matrix reads."""
        return float(self.n) * (self.n if self.p is None else 2 * self.p)


def size_of(problem: HingeProblem) -> SplitSize:
    """Return the size of a problem as it is given: on features, or on the matrix."""
    gram, losses = problem.gram, problem.losses
    p = gram.features.shape[1] if isinstance(gram, FeatureGram) else None
    return SplitSize(losses.n_examples, losses.n_classes, p)


def operations_to_split(size: SplitSize, tol: float, tuning: SplittingSettings = DEFAULTS) -> list[Operations]:
    """Return the operations that a solution takes, about: factorisation, steps and certificates."""
    first, per_digit = tuning.steps, tuning.steps_per_digit
    if size.p is not None:
        first, per_digit = tuning.feature_steps, tuning.feature_steps_per_digit
    steps = first - per_digit * float(np.log10(min(tol, tuning.rough)))
    return [
        tuning.operations_to_factorise(size),
        tuning.operations_to_look(size),
        *tuning.operations_of_steps(size, steps),
    ]


ROUNDING = 1e-9
"""Relative ridge that makes neighbours that are one row invertible, and the size of scores that are none."""

CHANGED_BY_LEAPS = ("t", "margins", "guess", "intercept", "least", "R", "scores", "highest", "dual", "dual_scores")
"""Attributes of an iterate; their values are replaced, never changed in place."""


class Splitting:
    """Over-relaxed steps to a fixed point, for box losses that see single scores.

    They go by a matrix held in memory, or by features that are fewer than half the rows.
    """

    name = "splitting"

    def __init__(self, tuning: SplittingSettings = DEFAULTS):
        self.tuning = tuning

    def accepts(self, problem: Any) -> Accepted:
        """Return True if the solver can take `problem`, else the reason why not."""
        if isinstance(getattr(problem, "gram", None), FeatureGram):
            return self._accepts_features(problem)
        return accepts_single_scores(problem)

    def _accepts_features(self, problem: HingeProblem) -> Accepted:
        if not problem.losses.sees_single_scores:
            return SINGLE_SCORES
        (n, p), tuning = as_features(problem.gram, "Splitting").features.shape, self.tuning
        if n < tuning.least_rows_per_feature * p:
            return f"features must be fewer than half the rows, not {p} of {n} rows."
        if float(n) * p > tuning.most_entries:
            return f"features must have at most {tuning.most_entries:.0f} entries, not {n} x {p}."
        return True

    def solve(
        self,
        problem: HingeProblem,
        settings: Settings,
        *,
        start: HingePoint | None = None,
        observer: Observer | None = None,
    ) -> Solution[HingePoint]:
        """Solve `problem` from the neighbourhood of `start`; stop where the rest would take too many steps."""
        tuning, size = self.tuning, size_of(problem)
        with Progress(settings, observer, method=self.name) as progress:
            point = start or HingePoint(problem.losses.resting_dual(), np.zeros(size.k))
            best = problem.certify(point)
            iterate = _SplittingIterate(problem, point, penalty_of(problem, progress, tuning), tuning)
            is_ready = progress.status is not Status.NUMERICAL_ERROR and iterate.prepare(progress)
            steps, looks, leaps = tuning.most_steps, _Looks(best.gap), Leaps(tuning.leaps)
            for _ in progress:
                if not (is_ready and iterate.advance(steps, progress)):
                    break
                candidate, certificate = iterate.certified()
                progress.count_all(tuning.operations_to_look(size))
                progress.record(certificate.primal, certificate.dual)
                if certificate.gap < best.gap:
                    point, best = candidate, certificate
                if certificate.within(settings.tol):
                    break
                to_go = looks.steps_to_go(iterate.steps, certificate.gap, settings.tol)
                to_come = tuning.operations_of_steps(size, looks.steps_if_slower(settings.tol))
                if size.p is None and leaps.pay(iterate, best.gap, settings.tol, sum(map(RATES.work, to_come))):
                    candidate, certificate = leaps.take(iterate, best.gap, progress, settings.tol)
                    if certificate.gap < best.gap:
                        point, best = candidate, certificate
                    if best.within(settings.tol):
                        break
                work = RATES.work(tuning.operations(size, to_go))
                is_too_much = settings.work is not None and progress.work + work > settings.work
                is_judged = iterate.steps - looks.began >= tuning.judged_after
                if is_judged and (is_too_much or to_go > tuning.max_steps):
                    progress.status = Status.STALLED
                    break
                if not iterate.hasten(to_go, progress):
                    break
                if iterate.improve_rho():  # another pace
                    looks = _Looks(certificate.gap, iterate.steps)
                steps = int(np.clip(tuning.look_ahead * to_go, tuning.fewest_steps, tuning.most_steps))
            return progress.finish(point, best)


class _Looks:
    """What certificates tell of the pace."""

    def __init__(self, gap: float, began: int = 0) -> None:
        self.began, self.found = began, [(began, gap)]

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
        self.size, self.unit = size_of(problem), unit_of(problem.gram)
        self.rho, self.steps, self.changes = rho, 0, 0
        self.dual, self.R = start.dual, problem.model(start)
        self.dual_scores = self.scores = problem.gram.matmul(self.R)
        self.least, self.highest = np.inf, -np.inf
        self.margins = self.losses.margins(self.scores + start.intercept)
        self.t = np.ascontiguousarray(start.dual + self.margins / rho)
        self.v, self.mean = np.zeros_like(self.t), np.zeros(len(self.t))

    def prepare(self, progress: Progress) -> bool:
        """Invert ``K + rho I``; False if there is no time for it, or the kernel matrix is indefinite."""
        progress.count_all(self.tuning.operations_to_factorise(self.size))
        try:
            self.inverse = _inverse(self.problem.gram, self.rho, self.tuning.inverse)
            with large_products(self.size.entries):
                is_ready = self.inverse.prepare(progress)
        except scipy.linalg.LinAlgError:
            progress.status = Status.NUMERICAL_ERROR
            return False
        if is_ready:
            self._begin()
        return is_ready

    def _begin(self) -> None:
        """Find what the rest makes of the state with this rho."""
        n, k = self.t.shape
        ones = np.ones((n if self.problem.fit_intercept else 0, 1))
        self.of_ones = np.ascontiguousarray(self.inverse.solved(ones)[:, 0]) if len(ones) else np.empty(0)
        self.columns = Columns(n, k - 1, np.float32)
        self.v[:] = 0.0
        reflect(self.t, self.upper, self.v, self.mean, self.columns.right, self.columns.panel)
        self.x = self._summing_to_zero(self.rho * self.inverse.solved(self.v))
        self._put_right(self.problem.gram.matmul(self.x))

    def improve_rho(self) -> bool:
        """Take the rho that the ratio on all rows tells; False where it stays, or a change would cost too much.

        Few rows are easier to tell apart than many: at a large C the rho found on a part of them is far too large.
        """
        inverse, tuning = self.inverse, self.tuning
        if not isinstance(inverse, FeatureInverse) or self.changes == tuning.max_pilots:
            return False
        rho = rho_of(self.ratio() / self.unit, tuning) * self.unit
        if max(rho / self.rho, self.rho / rho) <= tuning.changed:
            return False
        z = np.clip(self.t, 0.0, self.upper)
        self.t = np.ascontiguousarray(z + self.rho / rho * (self.t - z))
        self.rho = inverse.rho = rho
        self.changes += 1
        self._begin()
        return True

    def hasten(self, steps: float, progress: Progress) -> bool:
        """Make the steps faster where so many are to come that it pays; False if there was no time for it."""
        n, k, inverse = self.size.n, self.size.k, self.inverse
        if not isinstance(inverse, Inverse) or inverse.is_complete or steps * k < self.tuning.inverted_from * n:
            return True
        progress.count_all(self.tuning.operations_to_complete(self.size))
        with large_products(self.size.entries):
            return inverse.complete(progress)

    def advance(self, steps: int, progress: Progress) -> bool:
        """Take steps; False if a limit was met."""
        shift, tuning, columns = self.losses.offset / self.rho, self.tuning, self.columns
        t, upper, v, x, mean = self.t, self.upper, self.v, self.x, self.mean
        operations = tuning.operations(self.size, 1.0 if self.inverse.is_complete else tuning.slower)
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
        self.x += self._summing_to_zero(self.inverse.solved(missing))

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
        progress.count_all(self.tuning.operations_to_look(self.size))
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
    gram, n = problem.gram, problem.losses.n_examples
    size = min(n, int(np.clip(tuning.pilot_share * n, *tuning.pilot_rows)))
    order = np.random.default_rng(0).permutation(n)
    rows = np.sort(order[:size])
    losses = problem.losses.restricted(rows)
    part = HingeProblem(DenseGram(gram.block(rows, rows)), losses, problem.fit_intercept)
    unit, rho = unit_of(gram), tuning.pilot_penalty
    point = HingePoint(losses.resting_dual(), np.zeros(losses.n_classes))
    for _ in range(tuning.max_pilots):
        iterate = _SplittingIterate(part, point, rho * unit, tuning)
        if not (iterate.prepare(progress) and iterate.advance(tuning.pilot_steps, progress)):
            break
        point, _ = iterate.certified()
        before, rho = rho, rho_of(iterate.ratio() / unit, tuning)
        if max(rho / before, before / rho) <= tuning.settled:
            break
    if isinstance(gram, DenseGram) and gram.rank >= n:
        rho += tuning.own_part * _own_part(gram, order[: tuning.own_rows], tuning.neighbours) / unit
    return unit * rho


def unit_of(gram: Gram) -> float:
    """Return the scale of the kernel."""
    return float(np.abs(gram.diagonal()).mean()) or 1.0


def rho_of(ratio: float, tuning: SplittingSettings) -> float:
    """Return the rho for a ratio of margins to variables, in units of the kernel's scale."""
    return tuning.penalty * float(np.clip(ratio, *tuning.ratios)) ** tuning.power


def _inverse(gram: Gram, rho: float, tuning: InverseSettings) -> Inverse | FeatureInverse:
    """Return what multiplies by ``(K + rho I)^-1`` once it is prepared."""
    if isinstance(gram, FeatureGram):
        return FeatureInverse(gram.features, rho, tuning)
    matrix: NDArray[Any] = as_dense(gram, "Splitting").matrix.astype(np.float32)
    matrix[np.diag_indices_from(matrix)] += rho
    return Inverse(matrix, tuning)


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


def _centred(u: Array) -> Array:
    return u - u.mean(axis=1, keepdims=True)
