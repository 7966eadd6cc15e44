"""Proximal point method with semismooth Newton steps: hinge machines on explicit features, fewer than examples.

Letting the dual point stray from a centre only at a quadratic price makes the primal smooth,

    min over W, b   1/2 ||W||^2 + <tilt, F>
                    + sum_p max over a_p { <a_p, g_p> - sum_j width (a_pj - centre_pj)^2 / (2 bound_pj) },

g the arguments of the hinges at ``F = X W + 1 b'``. The maximisers a are a dual point, W and b a primal one, and

    primal - dual = 1/2 ||W - X'R||^2 - <b, 1'R> + slack,   slack = sum of (loss - <a, g>).

The first two terms vanish as the smooth problem is solved, the slack as centre and width move on: once it
dominates, a becomes the centre and the width a quarter of what it was. Newton's matrix involves only the examples
with entries of a strictly between their bounds, fewer and fewer of them; conjugate gradients solve with it.

Reference: Li, X., Sun, D. & Toh, K.-C. (2018). A highly efficient semismooth Newton augmented Lagrangian method
for solving Lasso problems. SIAM J. Optimization 28(1). The splitting of the gap and the class-wise preconditioner
are ours.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from scipy.linalg import cho_factor, cho_solve

from polymargin._native.proximal import proximal_step
from polymargin._native.variances import invert
from polymargin.gram import FeatureGram, as_features, rows_times, transposed_times
from polymargin.problems.certificate import Certificate
from polymargin.problems.hinge import HingePoint, HingeProblem, polyhedral
from polymargin.solvers.contract import Accepted, Observer, Progress, Settings, Solution, Status, accepts_kinds
from polymargin.solvers.effort import Operations
from polymargin.solvers.hinge.acceptance import accepts_compiled
from polymargin.solvers.hinge.feasibility import balanced
from polymargin.solvers.linear_algebra import conjugate_gradients, dense

Array = NDArray[np.float64]
Single = NDArray[np.float32]


@dataclass(frozen=True, slots=True)
class FeatureNewtonSettings:
    """Tuning of the proximal Newton method; none of it changes what is certified.

    Attributes
    ----------
    first_width : in units of the margin: wide enough that every example is free at first.
    first_slack, first_narrower, narrowest : near a start the width is made narrower by a factor until the slack is
        no more than this part of what it was; and the part of the first width that is left in any case.
    narrower, hardly : least and largest factor of the width from one centre to the next; between them what makes
        the slack small enough, as it goes by the square of the width.
    enough : part of the tolerance at which the slack is small enough.
    inexact : part of the slack up to which the smooth problem need not be solved more exactly.
    exactness, tighter : the same once the gap is small enough, for then W is given up for the dual point's own
        weights X'R; and the factor by which it becomes smaller where that does not suffice.
    reach, damping : margins that the intercept may go in a step, about, where it has no curvature, and the least
        damping that sees to that, relative to all bounds over the width. A damping that stays took all but a fifth
        off every step near the solution.
    patience : Newton steps without progress after which only rounding can be left.
    line_steps, slope_left, least_share : evaluations of one line search, the part of the slope that it may leave
        where the smooth objective is no higher, and the part of an interval that it takes off at least.
    cg_error, cg_limit, cg_many : relative error of Newton's directions, limit of the steps of conjugate gradients,
        and steps from which on the preconditioner is made anew.
    sample_per_feature, sample : rows from which the preconditioner of a class is made, at most: so many per
        feature, and so many more. They are drawn by their parts in the squares of features: of rows drawn evenly
        a feature that few of them have is missing, and there were ten times as many steps.
    whole_features, pair_rows : features up to which the parts of all classes are made whole, and anew for every
        step, where hinges see single scores; rows at a time.
    answer_calls, image_calls : calls for one answer to scores, and for one image under Newton's matrix, with a
        step of conjugate gradients; two more for every class.
    judged_after : part of the work allotted after which the pace, from a gap of one, must be enough for the rest.
    """

    first_width: float = 4.0
    first_slack: float = 0.8
    first_narrower: float = 0.5
    narrowest: float = 1e-6
    narrower: float = 0.25
    hardly: float = 0.5
    enough: float = 0.6
    inexact: float = 0.3
    exactness: float = 0.1
    tighter: float = 0.03
    reach: float = 3.0
    damping: float = 1e-9
    patience: int = 60
    line_steps: int = 20
    slope_left: float = 0.3
    least_share: float = 0.1
    cg_error: float = 0.1
    cg_limit: int = 200
    cg_many: int = 8
    sample_per_feature: int = 10
    sample: int = 500
    whole_features: int = 24
    pair_rows: int = 1000
    answer_calls: int = 100
    image_calls: int = 30
    judged_after: float = 0.6

    def sampled_rows(self, n_features: int) -> int:
        """Return the rows from which a preconditioner is made, at most."""
        return self.sample_per_feature * n_features + self.sample


DEFAULTS = FeatureNewtonSettings()


def operations_of_answer(entries: int, tuning: FeatureNewtonSettings) -> Operations:
    """Return the operations of an answer to scores of so many entries."""
    return {"entry": 2.0 * entries, "call": tuning.answer_calls}


def operations_of_image(stored: float, n: int, p: int, k: int, tuning: FeatureNewtonSettings) -> Operations:
    """Return the operations of an image under Newton's matrix of n free rows, preconditioned."""
    # two products in single precision, which takes half the time, and two triangular solutions per class
    return {
        "product": stored * k,
        "entry": float(n * k),
        "stream": 2.0 * k * (p + 1) ** 2,
        "call": tuning.image_calls + 2 * k,
    }


def operations_of_preconditioner(n: int, p: int, k: int) -> Operations:
    """Return the operations of a preconditioner from n rows: a matrix of every class, and its inverse."""
    return {"product": k * float(n) * (p + 1) ** 2, "factor": k * float(p + 1) ** 3}


class FeatureNewton:
    """Proximal point method on the dual, semismooth Newton inside.

    Made for tall problems: a Newton step costs a few products with the features, and some twenty of them reach a
    gap of 1e-3 whatever C is, where coordinate descent needs hundreds of sweeps.
    """

    name = "feature_newton"

    def __init__(self, tuning: FeatureNewtonSettings = DEFAULTS):
        self.tuning = tuning

    def accepts(self, problem: Any) -> Accepted:
        """Return True if the solver can take `problem`, else the reason why not."""
        is_compiled = accepts_compiled(problem)
        return accepts_kinds(problem.gram, FeatureGram) if is_compiled is True else is_compiled

    def solve(
        self,
        problem: HingeProblem,
        settings: Settings,
        *,
        start: HingePoint | None = None,
        observer: Observer | None = None,
    ) -> Solution[HingePoint]:
        """Solve `problem`, whose Gram matrix must be a :class:`~polymargin.gram.FeatureGram`."""
        tuning = self.tuning
        with Progress(settings, observer, method=self.name) as progress:
            model = _Smoothed(problem, progress, start, tuning)
            iterate = best = model.first(start, settings.tol)
            newest, exactness = 0, tuning.exactness
            for iteration in progress:
                progress.record(iterate.primal, iterate.primal - iterate.gap)
                if iterate.relative_gap < best.relative_gap:
                    best, newest = iterate, iteration
                elif iteration - newest > tuning.patience or self._is_hopeless(progress, best.relative_gap):
                    progress.status = Status.STALLED
                    break
                if iterate.relative_gap > settings.tol:
                    aim = tuning.enough * settings.tol * max(1.0, abs(iterate.primal))
                    narrow = iterate.slack > aim and iterate.inexact <= tuning.inexact * iterate.slack
                elif narrow := iterate.inexact <= exactness * iterate.slack:
                    if model.gap_of_answer(iterate) <= settings.tol:
                        point, certificate = model.certified(iterate)
                        if certificate.within(settings.tol):
                            return progress.finish(point, certificate)
                    exactness *= tuning.tighter
                    narrow = exactness < 1e-12
                if narrow:
                    iterate, exactness = model.narrow(iterate, settings.tol), tuning.exactness
                iterate = model.newton_step(iterate)
            return progress.finish(*model.certified(best))

    def _is_hopeless(self, progress: Progress, gap: float) -> bool:
        """Tell whether the work allotted is too little at the pace since the gap was one.

        What it was before tells nothing, nor what it is where the centre has just moved.
        """
        limit = progress.settings.work
        if limit is None or progress.work < self.tuning.judged_after * limit:
            return False
        return limit * np.log(1.0 / min(gap, 1.0)) < progress.work * np.log(1.0 / progress.settings.tol)


@dataclass(frozen=True, slots=True)
class _SmoothedPoint:
    """A primal point, the dual point that answers it, and how far they are from each other."""

    W: Array
    b: Array
    F: Array
    alpha: Array
    free: NDArray[np.uint8]
    gradient: Array
    primal: float
    slack: float
    inexact: float
    smooth: float

    @property
    def gap(self) -> float:
        """Bound of the duality gap."""
        return self.slack + self.inexact

    @property
    def relative_gap(self) -> float:
        return self.gap / max(1.0, abs(self.primal))


@dataclass(frozen=True, slots=True)
class _Answer:
    """Outcome of the proximal step at some scores."""

    alpha: Array
    free: NDArray[np.uint8]
    R: Array
    loss: float
    slack: float
    smooth: float


class _Smoothed:
    """The smooth problem for the current centre and width."""

    def __init__(
        self,
        problem: HingeProblem,
        progress: Progress,
        start: HingePoint | None,
        tuning: FeatureNewtonSettings,
    ):
        self.tuning = tuning
        losses = self.losses = polyhedral(problem.losses, "Newton's method on features")
        self.problem, self.progress = problem, progress
        features = as_features(problem.gram, "Newton's method on features").features
        self.X: Any = features if sparse.issparse(features) else np.asarray(features, dtype=np.float64)
        # directions need few digits: in single precision, of numbers of at most one, lest they overflow
        self.largest_entry = _largest(self.X)
        self.single: Any = (self.X / self.largest_entry).astype(np.float32)
        self.k = losses.n_classes
        tables = losses.compiled_tables()
        self.simplex, self.absolute = tables.simplex, tables.centred
        self.example, self.label, self.bound = tables.example, tables.label, tables.bound
        self.width = tuning.first_width * losses.offset
        self.total_bound, self.largest_bound = float(self.bound.sum()), _largest(self.bound)
        self.centre = losses.resting_dual() if start is None else start.dual
        self.preconditioner: Callable[[Array], Array] | None = None

    @cached_property
    def shares(self) -> Array:
        """The parts that rows have in the squares of all features, summed, with the constant as one of them."""
        squares = self.X.multiply(self.X).tocsr() if sparse.issparse(self.X) else np.square(self.X)
        totals = np.asarray(squares.sum(axis=0), dtype=np.float64).ravel()
        shares = squares @ np.divide(1.0, totals, out=np.zeros_like(totals), where=totals > 0.0)
        return np.asarray(shares, dtype=np.float64).ravel() + 1.0 / max(self.X.shape[0], 1)

    def first(self, start: HingePoint | None, tol: float) -> _SmoothedPoint:
        """Return the iterate at zero, or at `start` with the width that takes off a part of its slack."""
        W, b = np.zeros((self.X.shape[1], self.k)), np.zeros(self.k)
        if start is not None:
            R = self.problem.coefficients(start.dual)
            W = transposed_times(self.X, R)
            b = start.intercept
        F = rows_times(self.X, W) + b
        answer = first = self.answer(F)
        if start is not None:
            norm, tuning = 0.5 * float(np.vdot(W, W)), self.tuning
            aim = max(tuning.first_slack * first.slack, tuning.enough * tol * (norm + first.loss))
            narrowest = tuning.narrowest * self.width
            while answer.slack > aim and self.width > narrowest:
                self.width *= tuning.first_narrower
                answer = self.answer(F)
        return self.iterate(W, b, F, answer)

    def narrow(self, iterate: _SmoothedPoint, tol: float) -> _SmoothedPoint:
        """Move the centre to the iterate's dual point, narrow the width and look at the same primal point."""
        aim = self.tuning.enough * tol * max(1.0, abs(iterate.primal))
        self.centre = iterate.alpha
        self.width *= min(
            max(self.tuning.narrower, float(np.sqrt(aim / max(iterate.slack, aim)))), self.tuning.hardly
        )
        return self.iterate(iterate.W, iterate.b, iterate.F, self.answer(iterate.F))

    def answer(self, F: Array) -> _Answer:
        """Return the dual point that answers the scores `F`."""
        self.progress.count_all(operations_of_answer(self.centre.size, self.tuning))
        alpha, free = np.empty_like(self.centre), np.empty(self.centre.shape, dtype=np.uint8)
        tilt = self.problem.tilt
        R = np.zeros_like(F) if tilt is None else -tilt
        loss, slack, price = proximal_step(
            F, self.example, self.label, self.bound, self.centre, self.losses.offset, self.absolute,
            self.width, alpha, free, R,
        )  # fmt: skip
        return _Answer(alpha, free, R, loss, slack, loss - slack - price)

    def iterate(self, W: Array, b: Array, F: Array, answer: _Answer) -> _SmoothedPoint:
        """Measure a primal point and its answer."""
        gradient = np.zeros((len(W) + 1, self.k))
        gradient[:-1] = W - transposed_times(self.X, answer.R)
        inexact = 0.5 * float(np.vdot(gradient, gradient))
        if self.problem.fit_intercept:
            gradient[-1] = -np.ones(len(answer.R)) @ answer.R
            # no less than <b, 1'R>, and what balancing the columns may cost the dual
            price = self.losses.offset + float(np.abs(b).max())
            inexact += price * float(np.abs(gradient[-1]).sum())
        rest = self.without_losses(0.5 * float(np.vdot(W, W)), F)
        primal, smooth = rest + answer.loss, rest + answer.smooth
        return _SmoothedPoint(W, b, F, answer.alpha, answer.free, gradient, primal, answer.slack, inexact, smooth)

    def without_losses(self, half_norm: float, F: Array) -> float:
        """Return the part of the objectives that the losses have no part in."""
        return half_norm if self.problem.tilt is None else half_norm + float(np.vdot(self.problem.tilt, F))

    def newton_step(self, iterate: _SmoothedPoint) -> _SmoothedPoint:
        """Go along Newton's direction to where the slope has lost most of its size (secants on the derivative)."""
        direction = self.direction(iterate)
        dF = rows_times(self.X, direction[:-1])
        dF += direction[-1]
        slope = float(np.vdot(iterate.gradient, direction))
        from_norm, curvature = (
            float(np.vdot(iterate.W, direction[:-1])),
            float(np.vdot(direction[:-1], direction[:-1])),
        )
        norm = 0.5 * float(np.vdot(iterate.W, iterate.W))
        low, slope_low, high, slope_high = 0.0, slope, 1.0, 0.0
        length = following = 1.0
        for _ in range(self.tuning.line_steps):
            length = following
            F = length * dF
            F += iterate.F
            answer = self.answer(F)
            here = from_norm + length * curvature - float(np.vdot(answer.R, dF))
            if here < 0.0 and (length == 1.0 or -here <= self.tuning.slope_left * abs(slope)):
                break
            half_norm = norm + length * (from_norm + 0.5 * length * curvature)
            # the slope may rise to little at once, and stay there
            is_lower = self.without_losses(half_norm, F) + answer.smooth <= iterate.smooth
            if is_lower and abs(here) <= self.tuning.slope_left * abs(slope):
                break
            if here > 0.0:
                high, slope_high = length, here
            else:
                low, slope_low = length, here
            share, least = slope_low / (slope_low - slope_high), self.tuning.least_share
            following = low + (high - low) * min(max(share, least), 1.0 - least)
        moved = length * direction
        return self.iterate(iterate.W + moved[:-1], iterate.b + moved[-1], F, answer)

    def direction(self, iterate: _SmoothedPoint) -> Array:
        """Solve Newton's system; the direction is (p + 1, k), its last row the intercept's."""
        curvature = _Curvature(self, iterate)
        if self.preconditioner is None or curvature.is_small:
            self.preconditioner = curvature.preconditioner()
        tolerance = self.tuning.cg_error * float(np.linalg.norm(iterate.gradient))
        direction, steps = conjugate_gradients(
            curvature.product,
            self.preconditioner,
            -iterate.gradient,
            start=np.zeros_like(iterate.gradient),
            tolerance=tolerance,
            max_steps=self.tuning.cg_limit,
            stop=self.progress.out_of_time,
        )
        if steps > self.tuning.cg_many:
            self.preconditioner = None
        return direction

    def gap_of_answer(self, iterate: _SmoothedPoint) -> float:
        """Return what the certificate's gap will be, about: that of the answer's own weights X'R, not balanced.

        Where W is not yet near enough to them, it tells for two products what a certificate would for many passes.
        """
        W = iterate.W - iterate.gradient[:-1]
        F = rows_times(self.X, W) + iterate.b
        primal = self.without_losses(0.5 * float(np.vdot(W, W)), F) + self.losses.value(F)
        return (primal - iterate.primal + iterate.gap) / max(1.0, abs(primal))

    def certified(self, iterate: _SmoothedPoint) -> tuple[HingePoint, Certificate]:
        """Balance the dual point and certify it with the intercepts."""
        dual = balanced(self.problem, iterate.alpha) if self.problem.fit_intercept else iterate.alpha
        if dual is None:
            dual = self.losses.resting_dual()
        point = HingePoint(dual, iterate.b - iterate.b.mean())
        return point, self.problem.certify(point)


class _Curvature:
    """Newton's matrix ``I + sum_p x_i x_i' kron B_p`` at an iterate; B_p (k, k) is zero unless block p is free."""

    def __init__(self, model: _Smoothed, iterate: _SmoothedPoint):
        free = iterate.free.astype(np.float32)
        n_free = free @ np.ones(free.shape[1], dtype=np.float32)  # NumPy sums short rows slowly
        blocks = np.flatnonzero(n_free > (1 if model.simplex else 0))
        self.model = model
        self.rows = model.example[blocks]
        self.X: Any = model.single[self.rows]
        self.stored = self.X.nnz if sparse.issparse(self.X) else self.X.size
        self.mask = free[blocks]
        self.weight = self.mask * (model.bound[blocks] / model.largest_bound).astype(np.float32)
        self.scale = model.largest_bound / model.width
        self.own = np.arange(len(blocks)), model.label[blocks]
        self.n_free, self.ones = n_free[blocks, None], np.ones(len(blocks), dtype=np.float32)
        self.fit_intercept = model.problem.fit_intercept
        # where nothing is free the intercept has no curvature: damping keeps its steps within some margins, and
        # vanishes with what they are to mend
        pull = float(np.abs(iterate.gradient[-1]).max())
        least, far = (
            model.tuning.damping * model.total_bound / model.width,
            model.tuning.reach * model.losses.offset,
        )
        self.floor = max(least, pull / far) if self.fit_intercept else 1.0

    def product(self, V: Array) -> Array:
        """Multiply by `V` (p + 1, k)."""
        p, k = self.X.shape[1], self.model.k
        operations = operations_of_image(self.stored, len(self.mask), p, k, self.model.tuning)
        self.model.progress.count_all(operations)
        scaled = V.copy()
        scaled[:-1] *= self.model.largest_entry
        length = _largest(scaled)
        single = (scaled / length).astype(np.float32)
        pull = self._through_losses(np.asarray(self.X @ single[:-1]) + single[-1])
        product = np.empty_like(V)
        product[:-1] = self.X.T @ pull
        product[-1] = self.ones @ pull if self.fit_intercept else 0.0
        product *= length * self.scale
        product[:-1] = self.model.largest_entry * product[:-1] + V[:-1]
        product[-1] += self.floor * V[-1]
        return product

    def _through_losses(self, F: Single) -> Single:
        if self.model.simplex:
            mean = np.einsum("ij,ij->i", self.mask, F)[:, None] / self.n_free
            return self.weight * (F - mean)
        if self.model.absolute:
            pull = self.weight * F
            pull -= pull @ np.full((pull.shape[1], 1), 1.0 / pull.shape[1], dtype=pull.dtype)
            return pull
        pull = self.weight * (F - F[self.own][:, None])
        pull[self.own] -= pull.sum(axis=1)
        return pull

    def _diagonals(self) -> Single:
        """Return the diagonals of the blocks B_p, but for their scale."""
        if self.model.simplex:
            return self.weight * (1.0 - 1.0 / self.n_free)
        total = self.weight.sum(axis=1)
        if self.model.absolute:
            k = self.model.k
            return self.weight * (1.0 - 2.0 / k) + total[:, None] / k**2
        diagonals = self.weight.copy()
        diagonals[self.own] = total
        return diagonals

    @property
    def is_small(self) -> bool:
        """Whether the matrix itself takes less than the images under it that a solution without it would take."""
        return self.model.absolute and self.X.shape[1] <= self.model.tuning.whole_features

    def preconditioner(self) -> Callable[[Array], Array]:
        """Return a solver with the matrix's class-by-class part: where hinges see single scores, all of it."""
        if self.is_small:
            return _tied(np.array([_inverse(matrix) for matrix in self._matrices()]))
        k = self.model.k
        diagonals = self.scale * (self.weight if self.model.absolute else self._diagonals()).astype(np.float64)
        inverses = np.array([_inverse(self._matrix(diagonals[:, j])) for j in range(k)])
        if self.model.absolute:
            return _tied(inverses)
        return lambda V: _centred(_by_class(inverses, V).T)

    def _matrices(self) -> Array:
        """Return the parts (k, p + 1, p + 1) of all classes: weighted sums of products of pairs of features.

        In single precision rounding would outweigh the ridge, and the matrices not be positive definite.
        """
        (n, p), k = self.X.shape, self.model.k
        first, second = np.triu_indices(p + 1)
        sums, height = np.zeros((len(first), k)), self.model.tuning.pair_rows
        for begin in range(0, n, height):
            rows = dense(self.X[begin : begin + height])
            features = np.ones((p + 1, len(rows)))
            features[:p] = rows.T
            pairs = np.concatenate([features[j:] * features[j] for j in range(p + 1)])
            sums += pairs @ self.weight[begin : begin + height].astype(np.float64)
        self.model.progress.count("product", float(n) * k * len(first))
        lengths = np.append(np.full(p, self.model.largest_entry), 1.0 if self.fit_intercept else 0.0)
        matrices = np.empty((k, p + 1, p + 1))
        matrices[:, first, second] = matrices[:, second, first] = self.scale * sums.T
        matrices *= lengths[:, None] * lengths
        matrices[:, np.arange(p + 1), np.arange(p + 1)] += np.append(np.ones(p), self.floor)
        return matrices

    def _matrix(self, diagonal: Array) -> Array:
        """Return one class's part, from a sample of its rows where they are many."""
        rows, most = np.flatnonzero(diagonal), self.model.tuning.sampled_rows(self.X.shape[1])
        weight = diagonal[rows]
        if len(rows) > most:
            # a row is drawn as it matters: one that alone has a feature always is
            matters = weight * self.model.shares[self.rows[rows]]
            drawn = np.minimum(1.0, most / matters.sum() * matters)
            taken = np.diff(np.floor(np.cumsum(drawn) + 0.5), prepend=0.0) > 0.0
            rows, weight = rows[taken], weight[taken] / drawn[taken]
        root = np.sqrt(weight)[:, None]
        constant = root if self.fit_intercept else np.zeros_like(root)
        scaled = np.hstack([dense(self.X[rows]) * (self.model.largest_entry * root), constant])
        matrix = scaled.T @ scaled
        self.model.progress.count_all(operations_of_preconditioner(len(rows), self.X.shape[1], 1))
        matrix.flat[:: len(matrix) + 1] += np.append(np.ones(len(matrix) - 1), self.floor)
        return matrix


def _tied(inverses: Array) -> Callable[[Array], Array]:
    """Return a solver with matrices of the classes, given their inverses, that are tied by a zero sum alone."""
    coupling = cho_factor(inverses.sum(axis=0), lower=True, check_finite=False)

    def solve(V: Array) -> Array:
        own = _by_class(inverses, V)
        common = cho_solve(coupling, own.sum(axis=0), check_finite=False)
        return _centred((own - inverses @ common).T)

    return solve


def _by_class(inverses: Array, V: Array) -> Array:
    """Return the product of every class's inverse with its column, a row each."""
    return np.asarray(np.matmul(inverses, V.T[:, :, None])[:, :, 0])


def _inverse(matrix: Array) -> Array:
    """Return the inverse of a positive definite matrix, in its place."""
    if not invert(matrix, 0.0):
        raise np.linalg.LinAlgError("A preconditioner of Newton's method is not positive definite.")
    return matrix


def _largest(table: Any) -> float:
    """Return the largest size of an entry; one where all are zero."""
    return (float(abs(table).max()) if min(table.shape) else 0.0) or 1.0


def _centred(V: Array) -> Array:
    return V - V.mean(axis=1, keepdims=True)
