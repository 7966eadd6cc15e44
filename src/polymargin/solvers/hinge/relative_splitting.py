"""Splitting on features where losses see differences of scores: a maximum, or a sum of hinges, for every example.

    min 1/2 tr(R'KR) - offset sum_i R_i,y_i,   row i of R in a polytope of its own,   1'R = 0,   K = X X'.

The over-relaxed iteration of Douglas & Rachford (ADMM) on a state t (n, k), rows of zero sum, takes the polytopes
and the quadratic in turns, in a metric that has a weight rho_i for every row:

    z_i = the point of the polytope nearest to t_i + offset / rho_i e_y,      v = 2z - t,
    x = argmin {1/2 tr(x'Kx) + sum_i rho_i/2 |x_i - v_i|^2 : 1'x = 0},        t += relaxation (x - z).

x takes one inverse for all classes, two products with the features. At the fixed point the scores are
``rho_i (z_i - t_i)``, the intercepts among them. Steps of late tell where to look ahead (`acceleration`).
A row at a vertex of its polytope is to stay there, a free one is to move: the former have a larger rho. Were rho
infinite there and zero where rows are free, this would be Newton's method on the face; a moderate contrast keeps
the steps safe where vertices are not yet the right ones. Now and then the state tells rho and the vertices anew.
Both halves are certified for what they are worth: -z as a dual point, its class sums made right, and x as
coefficients of scores, either with its best length.
After S. Boyd et al., Distributed optimization and statistical learning via the alternating direction method of
multipliers, 2011, section 5.2; weights of constraints as in B. Stellato et al., OSQP, 2020, section 5.2.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from polymargin._native.relative_splitting import project, reflect, relax
from polymargin.gram import FeatureGram, as_features
from polymargin.problems.certificate import Certificate
from polymargin.problems.hinge import HingePoint, HingeProblem, polyhedral
from polymargin.solvers.contract import Accepted, Observer, Progress, Settings, Solution, Status, accepts_kinds
from polymargin.solvers.effort import Operations
from polymargin.solvers.hinge.acceleration import DEFAULTS as ACCELERATION
from polymargin.solvers.hinge.acceleration import Acceleration, AccelerationSettings
from polymargin.solvers.hinge.acceptance import accepts_one_per_example, accepts_tall_features
from polymargin.solvers.hinge.feasibility import balanced, feasible
from polymargin.solvers.hinge.inverses import DEFAULTS as INVERSES
from polymargin.solvers.hinge.inverses import Columns, InverseSettings
from polymargin.solvers.hinge.weighted_inverse import WeightedInverse

Array = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class RelativeSplittingSettings:
    """Tuning of the splitting; none of it changes what is certified.

    Attributes
    ----------
    relaxation : of the steps.
    penalty, ratios : rho of free rows is a multiple of the ratio of scores to coefficients; the least and the
        largest ratio believed, in units of the mean square of a row.
    first_rho, inertia : rho before anything is known, in the same units; the power of the last one in what follows
        it: at a large C the first ratios are far too small.
    contrasts, growth : how often rho is that of rows at a vertex, at first and at most, and what it grows by
        whenever rho is told: the first vertices are not the right ones.
    steps, stride : between two certificates, and between two looks ahead at where the steps lead.
    spacing : certificates between the first and the second time that rho is told anew; from time to time it is one
        more, so that in the end rho stays.
    inside : part of the size of a polytope that a row is at least away from its vertices to be free.
    lengths, first_change, longer : slopes of the objective over the length of a model that are looked at, at most;
        what the length is first changed by, and the factor by which that grows.
    first_ahead, most_ahead : models are looked at beyond the last one, as far as it has come since the one before
        it times the first number, and twice as far as long as that is better, up to the second number.
    worthless : relative gap from which on a start is left for zero.
    judged_after : part of the work allotted after which the pace tells whether it is enough: at a large C the
        first steps lead nowhere near.
    per_digit, rough : steps that a digit of the gap takes, about; gap that the first of them reach.
    least_rows_per_feature, most_entries : below which there are too many features; of features, which are held
        twice in single precision.
    step_entries, step_calls : operations of compiled loops that a step takes per class and example, and calls.
    look_steps, look_entries, look_calls : steps that the products in double precision of a certificate take as
        long as; entries visited per class and example; calls.
    square_cost, eigen_cost : of products, per feature and entry; of factorisations, as a multiple of the features
        cubed: for the eigenvectors.
    weigh_cost, weigh_products, inverse_cost : the same for every other metric, with products with the features.
    acceleration_cost : entries per class and example that are visited for a look ahead.
    inverse, acceleration : of the inverse, and of looks ahead.
    """

    relaxation: float = 1.9
    penalty: float = 0.35
    ratios: tuple[float, float] = (1e-6, 1e6)
    first_rho: float = 0.1
    inertia: float = 0.6
    contrasts: tuple[float, float] = (10.0, 30.0)
    growth: float = 1.3
    steps: int = 40
    stride: int = 10
    spacing: int = 1
    inside: float = 1e-9
    lengths: int = 12
    first_change: float = 1e-3
    longer: float = 4.0
    first_ahead: float = 1.0
    most_ahead: float = 8.0
    worthless: float = 0.99
    judged_after: float = 0.3
    per_digit: float = 120.0
    rough: float = 0.1
    least_rows_per_feature: int = 2
    most_entries: float = 1e8
    step_entries: float = 5.0
    step_calls: int = 25
    look_steps: float = 8.0
    look_entries: float = 6.0
    look_calls: int = 900
    square_cost: float = 1.5
    eigen_cost: float = 8.0
    weigh_cost: float = 0.25
    weigh_products: float = 6.0
    inverse_cost: float = 2.0
    acceleration_cost: float = 6.0
    inverse: InverseSettings = INVERSES
    acceleration: AccelerationSettings = ACCELERATION

    def operations(self, size: tuple[int, int, int], steps: float = 1.0) -> Operations:
        """Return the operations of so many steps on so many rows, features and classes."""
        n, p, k = size
        return {
            "product": steps * (2.0 * n + p) * p * k,
            "sweep": steps * self.step_entries * n * k,
            "entry": steps / self.stride * self.acceleration_cost * n * k,
            "call": steps * self.step_calls,
        }

    def operations_to_look(self, size: tuple[int, int, int]) -> Operations:
        """Return the operations of a certificate."""
        n, p, k = size
        return {
            "product": self.look_steps * 2.0 * n * p * k,
            "entry": self.look_entries * n * k,
            "call": self.look_calls,
        }

    def operations_to_prepare(self, size: tuple[int, int, int]) -> Operations:
        """Return the operations of what precedes the first step."""
        n, p, _ = size
        return {"product": self.square_cost * n * p**2, "factor": self.eigen_cost * float(p) ** 3}

    def operations_to_weigh(self, size: tuple[int, int, int]) -> Operations:
        """Return the operations of a change of the metric, what it does to the state included."""
        n, p, k = size
        products = self.weigh_cost * n * p**2 + self.weigh_products * n * p * k
        return {"product": products, "factor": self.inverse_cost * float(p) ** 3, "call": self.look_calls}

    def changes(self, looks: float) -> float:
        """Return how often the metric has changed after so many certificates."""
        return float(np.sqrt(2.0 * looks))

    def operations_to_solve(self, size: tuple[int, int, int], tol: float) -> list[Operations]:
        """Return the operations that a solution takes, about."""
        steps = -self.per_digit * float(np.log10(min(tol, self.rough)))
        looks = steps / self.steps
        parts = [(self.operations_to_look(size), looks), (self.operations_to_weigh(size), self.changes(looks))]
        several = [{kind: times * number for kind, number in part.items()} for part, times in parts]
        return [self.operations_to_prepare(size), self.operations(size, steps), *several]


DEFAULTS = RelativeSplittingSettings()


def size_of(problem: HingeProblem) -> tuple[int, int, int]:
    """Return the rows, features and classes of a problem on features."""
    return *as_features(problem.gram, "Splitting on features").features.shape, problem.losses.n_classes


class RelativeSplitting:
    """Over-relaxed steps to a fixed point, for losses of differences, on features fewer than half the rows."""

    name = "relative_splitting"

    def __init__(self, tuning: RelativeSplittingSettings = DEFAULTS):
        self.tuning = tuning

    def accepts(self, problem: Any) -> Accepted:
        """Return True if the solver can take `problem`, else the reason why not."""
        if (is_known := accepts_one_per_example(problem)) is not True:
            return is_known
        if not problem.losses.sees_differences:
            return "its hinges must see differences of scores, as those of loss='crammer' and 'weston' do."
        if (is_on_features := accepts_kinds(problem.gram, FeatureGram)) is not True:
            return is_on_features
        if problem.tilt is not None:
            return "it takes no linear term."
        return accepts_tall_features(problem, self.tuning.least_rows_per_feature, self.tuning.most_entries)

    def solve(
        self,
        problem: HingeProblem,
        settings: Settings,
        *,
        start: HingePoint | None = None,
        observer: Observer | None = None,
    ) -> Solution[HingePoint]:
        """Solve `problem` from the neighbourhood of `start`; stop where the pace promises nothing."""
        tuning, size = self.tuning, size_of(problem)
        with Progress(settings, observer, method=self.name) as progress:
            point = _beginning(problem, start)
            best = problem.certify(point)
            if start is not None and best.gap >= tuning.worthless:  # it is no nearer than zero, and far too large
                point = _beginning(problem, None)
                best = problem.certify(point)
            iterate = _Iterate(problem, point, tuning)
            is_ready = iterate.prepare(progress)
            following = spacing = tuning.spacing
            for look in progress:
                if not (is_ready and iterate.advance(tuning.steps, progress)):
                    break
                candidate, certificate = iterate.certified()
                progress.count_all(tuning.operations_to_look(size))
                progress.record(certificate.primal, certificate.dual)
                if certificate.gap < best.gap:
                    point, best = candidate, certificate
                if best.within(settings.tol):
                    break
                is_judged = settings.work is None or progress.work >= tuning.judged_after * settings.work
                if is_judged and progress.is_hopeless():
                    progress.status = Status.STALLED
                    break
                if look == following:
                    spacing += 1
                    following += spacing
                    is_ready = iterate.improve_metric(progress)
            return progress.finish(point, best)


def _beginning(problem: HingeProblem, start: HingePoint | None) -> HingePoint:
    """Return the start, which may be that of another problem, as a point of this one; zero if there is none."""
    if start is None:
        return HingePoint(problem.losses.resting_dual(), np.zeros(problem.losses.n_classes))
    return HingePoint(feasible(problem, start.dual), start.intercept)


class _Iterate:
    """The state t (n, k), what the quadratic makes of v = 2z - t, and the metric rho (n,)."""

    def __init__(self, problem: HingeProblem, start: HingePoint, tuning: RelativeSplittingSettings):
        self.problem, self.tuning = problem, tuning
        self.losses = polyhedral(problem.losses, "Splitting")
        tables = self.losses.compiled_tables()
        self.label, self.bound = tables.label, tables.bound
        self.unit = float(problem.gram.diagonal().mean()) or 1.0
        self.size = size_of(problem)
        self.features = as_features(problem.gram, "Splitting on features").features
        self.least, self.highest = np.inf, -np.inf
        self.before: tuple[Array, Array, Array] | None = None
        self.acceleration = Acceleration(tuning.acceleration)
        self.dual, self.R, self.intercept = start.dual, problem.coefficients(start.dual), start.intercept
        self.dual_scores = self.scores = problem.gram.matmul(self.R)
        self.z = np.ascontiguousarray(self.R.copy())
        self.F = self.scores + (start.intercept - start.intercept.mean())
        self.free_rho, self.contrast = tuning.first_rho * self.unit, tuning.contrasts[0]
        self.rho = self._rho()

    def prepare(self, progress: Progress) -> bool:
        """Invert ``K + diag(rho)``; False if there is no time for it."""
        progress.count_all(self.tuning.operations_to_prepare(self.size))
        self.inverse = WeightedInverse(self.features, self.tuning.inverse)
        return self.inverse.prepare(progress) and self._begin(progress)

    def _begin(self, progress: Progress) -> bool:
        """Find what the quadratic makes of the coefficients z and scores F in this metric."""
        progress.count_all(self.tuning.operations_to_weigh(self.size))
        n, k = self.z.shape
        self.inverse.weigh(self.rho)
        self.acceleration.forget()
        self.shift = self.losses.offset / self.rho
        self.t = np.ascontiguousarray(self.z - self.F / self.rho[:, None])
        ones = np.ones((n if self.problem.fit_intercept else 0, 1))
        self.of_ones = np.ascontiguousarray(self.inverse.solved(ones)[:, 0]) if len(ones) else np.empty(0)
        self.columns = Columns(n, k - 1, np.float32)
        self.v = np.zeros_like(self.t)
        reflect(self.t, self.label, self.bound, self.shift, self.v, self.columns.right, self.columns.panel)
        self.x = self._summing_to_zero(self.inverse.solved(self.rho[:, None] * self.v))
        self._put_right(self.problem.gram.matmul(self.x))
        return not progress.out_of_time()

    def improve_metric(self, progress: Progress) -> bool:
        """Take the rho that the state tells; False if there was no time for it."""
        self.rho = self._rho()
        return self._begin(progress)

    def _rho(self) -> Array:
        """Return rho: by the ratio of scores to coefficients and the last one, larger for rows at a vertex."""
        tuning, size = self.tuning, float(np.linalg.norm(self.z))
        scores = float(np.linalg.norm(self.F))
        if not (size > 0.0 and scores > 0.0):
            return np.full(len(self.z), self.free_rho)
        told = tuning.penalty * float(np.clip(scores / size / self.unit, *tuning.ratios)) * self.unit
        free = self.free_rho = told * (self.free_rho / told) ** tuning.inertia
        contrast, self.contrast = self.contrast, min(tuning.growth * self.contrast, tuning.contrasts[1])
        return np.where(self._is_free(), free, contrast * free)

    def _is_free(self) -> NDArray[np.bool_]:
        """Tell which rows are at no vertex of their polytope."""
        rows, least = np.arange(len(self.z)), self.tuning.inside * self.bound
        u = np.negative(self.z)
        if self.bound.shape[1] > 1:
            u[rows, self.label] = 0.0
            return np.logical_or.reduce((u > least) & (u < self.bound - least), axis=1)
        u[rows, self.label] += self.bound[:, 0]
        positive: NDArray[np.intp] = np.sum(u > least, axis=1, dtype=np.intp)
        return positive > 1

    def advance(self, steps: int, progress: Progress) -> bool:
        """Take steps, and look ahead now and then; False if a limit was met."""
        columns, operations = self.columns, self.tuning.operations(self.size)
        before, scale = self.t.copy(), np.sqrt(self.rho)[:, None]
        for step in range(1, steps + 1):
            if progress.out_of_time():
                return False
            progress.count_all(operations)
            reflect(self.t, self.label, self.bound, self.shift, self.v, columns.right, columns.panel)
            self.inverse.apply(columns)
            relax(
                self.t, self.x, self.v, columns.right, columns.panel, columns.answer, self.of_ones, self.rho,
                self.tuning.relaxation,
            )  # fmt: skip
            if step % self.tuning.stride == 0:
                self.t = self.acceleration.following(before, self.t, scale)
                before = self.t.copy()
        return True

    def _put_right(self, product: Array) -> None:
        """Take from x, whose product with the kernel matrix is given, what rounding has made of it."""
        missing = self.rho[:, None] * (self.v - self.x) - product
        self.offsets = missing.mean(axis=0) if self.problem.fit_intercept else np.zeros(missing.shape[1])
        self.x += self._summing_to_zero(self.inverse.solved(missing - self.offsets))

    def _summing_to_zero(self, x: Array) -> Array:
        """Return what solves the system for the right-hand side with constants that make the class sums vanish."""
        if not self.problem.fit_intercept:
            return x
        return x - np.outer(self.of_ones, x.sum(axis=0) / self.of_ones.sum())

    def certified(self) -> tuple[HingePoint, Certificate]:
        """Return the best scores and the best dual point so far, and their certificate; x is put right."""
        product, x = self.problem.gram.matmul(self.x), self.x.copy()
        self._put_right(product)
        self._note_scores(x, product, self.offsets)
        project(self.t, self.label, self.bound, self.shift, self.z)
        self.F = self.rho[:, None] * (self.z - self.t)
        self._note_dual(self.losses.within_bounds(self.losses.dual_of(self.z)))
        point = HingePoint(self.dual, self.intercept, primal=self.R)
        return point, self.problem.certify(point, self.dual_scores, self.scores)

    def _note_scores(self, R: Array, H: Array, intercept: Array) -> None:
        """Keep coefficients, of scores H without the intercept, with their best length if they are the best.

        They come near slowly, and from one side: further on the way from the last ones is often better.
        """
        length = best_length(self.problem, R, H, intercept, self.tuning)
        model = length * R, length * H, length * (intercept - intercept.mean())
        primal, ahead = self.problem.objective(*model), self.tuning.first_ahead
        before, self.before = self.before, model
        while before is not None and ahead <= self.tuning.most_ahead:
            further = [now + ahead * (now - then) for now, then in zip(self.before, before, strict=True)]
            found = self.problem.objective(*further)
            if not found < primal:
                break
            primal, model, ahead = found, (further[0], further[1], further[2]), 2.0 * ahead
        if not primal >= self.least:
            self.least, (self.R, self.scores, self.intercept) = primal, model

    def _note_dual(self, dual: Array) -> None:
        """Keep the feasible point near `dual`, with its best length, if it is the best."""
        near = balanced(self.problem, dual) if self.problem.fit_intercept else dual
        if near is None:
            return
        R = self.problem.coefficients(near)
        H = self.problem.gram.matmul(R)
        linear, square = self.losses.dual_value(near), float(np.vdot(R, H))
        length = min(1.0, linear / square) if square > 0.0 else 1.0
        value = length * linear - 0.5 * length**2 * square
        if not value <= self.highest:
            shorter = self.losses.dual_of(length * R) if length < 1.0 else near
            self.highest, self.dual, self.dual_scores = value, shorter, length * H


def best_length(
    problem: HingeProblem, R: Array, H: Array, intercept: Array, tuning: RelativeSplittingSettings = DEFAULTS
) -> float:
    """Return about the multiple of coefficients, whose scores are H, and intercept that has the lowest objective.

    Its slope over the length grows.
    """
    losses, F, square = problem.losses, H + intercept, float(np.vdot(R, H))
    if not square > 0.0:
        return 1.0
    labels, rows = polyhedral(losses, "The length of a model").block_labels, np.arange(len(F))
    apart = F - F[rows, labels][:, None]

    def slope(length: float) -> float:
        margins = losses.offset + length * apart
        margins[rows, labels] = 0.0
        if losses.shape == "box":
            return length * square + float(np.vdot(losses.sizes, np.where(margins > 0.0, apart, 0.0)))
        return length * square + float(losses.sizes[:, 0] @ apart[rows, margins.argmax(axis=1)])

    # near one, mostly: steps that grow lead to where the slope has another sign, and bisection between
    low, high, length, step = 0.0, np.inf, 1.0, tuning.first_change
    for _ in range(tuning.lengths):
        if slope(length) > 0.0:
            high = length
        else:
            low = length
        if low > 0.0 and high < np.inf:
            length = 0.5 * (low + high)
        else:
            length = low + step if high == np.inf else max(high - step, 0.5 * high)
            step *= tuning.longer
    return high if high < np.inf else 1.0
