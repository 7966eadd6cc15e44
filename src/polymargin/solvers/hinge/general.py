"""The general method: any convex loss that keeps the protocol, linear or with a kernel, with a certificate.

It is the proximal point method of `feature_newton` without its special cases. Letting the dual point stray from a
centre only at a quadratic price makes the primal smooth,

    min over W, b   1/2 ||W||^2 + <tilt, F>
                    + max over a { <a, m(F)> - conjugate(a) - width/2 |a - centre|^2 / sizes },

whose maximiser ``losses.proximal`` is a dual point. Newton's method minimises it, a becomes the next centre and
the width shrinks. At every iterate, by Fenchel and Young,

    primal - dual = 1/2 ||W - X'R||^2 - <b, 1'R> + slack,     slack = value(F) + <R, F> - dual value(a) >= 0.

A kernel is taken through features whose inner products are the kernel matrix. The intercept asks for columns of R
that sum to zero: before a certificate is drawn up, Newton's method in the intercepts alone makes them do so.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.linalg
from numpy.typing import NDArray
from scipy import sparse

from polymargin.coding import zero_sum_basis
from polymargin.gram import FeatureGram, kernel_root
from polymargin.problems.certificate import Certificate
from polymargin.problems.hinge import HingePoint, HingeProblem
from polymargin.solvers.contract import Accepted, Observer, Progress, Settings, Solution, Status, accepts_kinds
from polymargin.threads import AbandonedError, cho_factor, heard, is_large

Array = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class GeneralSettings:
    """What was tuned, on simulated data alone.

    Attributes
    ----------
    first_width : in units of the margin: wide enough that every example is free at first.
    narrower : factor of the width from one centre to the next.
    narrowest : width, in units of the margin, at which only rounding can be left.
    inexact : part of the slack up to which the smooth problem need not be solved more exactly.
    damping : of an intercept without curvature, relative to the curvature of all.
    max_line, slope_left, least_share : evaluations of one line search, the part of the slope that it may leave,
        and the part of an interval that it takes off at least.
    gain : factor by which the gap must fall to count as progress.
    patience, patience_within : Newton steps without progress after which only rounding can be left, before the
        tolerance is reached and within it.
    max_widenings : times that the width is enlarged where the columns of R cannot be balanced.
    small : examples up to which a problem is taken on to `small_gap` whatever the tolerance, so that weights mean
        repetition.
    balanced, left_by_rounding : column sums of R, relative to the sum of the sizes, that are taken for zero, and
        those that may stay where no step makes them smaller.
    balancing_steps, shortest : limit of the steps that balance them, and the part of one that is given up.
    """

    first_width: float = 4.0
    narrower: float = 0.25
    narrowest: float = 1e-13
    inexact: float = 0.1
    damping: float = 1e-9
    max_line: int = 30
    slope_left: float = 0.3
    least_share: float = 0.1
    gain: float = 0.99
    patience: int = 40
    patience_within: int = 6
    max_widenings: int = 12
    balanced: float = 1e-13
    left_by_rounding: float = 1e-11
    balancing_steps: int = 50
    shortest: float = 1e-6
    small: int = 1000
    small_gap: float = 1e-11


DEFAULTS = GeneralSettings()


@dataclass(frozen=True, slots=True)
class GeneralNewton:
    """Proximal point method with Newton steps for every loss that keeps the protocol.

    Newton's matrix has (features + 1)(k - 1) rows, as many features as examples with a kernel: some thousands of
    rows are what it is made for.
    """

    tuning: GeneralSettings = DEFAULTS

    name = "general_newton"

    def accepts(self, problem: Any) -> Accepted:
        """Return True if the solver can take `problem`, else the reason why not."""
        if (is_hinge := accepts_kinds(problem, HingeProblem)) is not True:
            return is_hinge
        n = problem.losses.n_examples
        if len(problem.losses.resting_dual()) != n:
            return "its losses must have one block of dual variables per example."
        return True

    def solve(
        self,
        problem: HingeProblem,
        settings: Settings,
        *,
        start: HingePoint | None = None,
        observer: Observer | None = None,
    ) -> Solution[HingePoint]:
        """Solve `problem`; of a `start` dual point and intercepts are used."""
        with Progress(settings, observer, method=self.name) as progress:
            try:
                model = SmoothModel(problem, self.tuning, start, progress.out_of_time)
            except AbandonedError:
                point = start or HingePoint(problem.losses.resting_dual(), np.zeros(problem.losses.n_classes))
                return progress.finish(point, problem.certify(point))
            iterate = model.first(start)
            best, smallest, idle = model.certified(iterate), np.inf, 0
            takes_last_digits = problem.losses.n_examples <= self.tuning.small
            tol = min(settings.tol, self.tuning.small_gap) if takes_last_digits else settings.tol
            for _ in progress:
                progress.record(iterate.primal, iterate.primal - iterate.gap)
                idle = 0 if iterate.gap < self.tuning.gain * smallest else idle + 1
                smallest = min(smallest, iterate.gap)
                solved = iterate.inexact <= self.tuning.inexact * iterate.slack
                patience = self.tuning.patience if best[1].gap > settings.tol else self.tuning.patience_within
                stalled = idle >= patience or model.width < self.tuning.narrowest * problem.losses.offset
                # rounding may spoil what comes later, so that every better point is certified
                if stalled or (solved and iterate.relative_gap <= max(settings.tol, _gap(best))):
                    best = min(best, model.certified(iterate), key=_gap)
                    if best[1].within(tol):
                        break
                if stalled:
                    progress.status = Status.STALLED
                    break
                if solved:
                    # the gap of a narrower problem begins anew
                    iterate, smallest = model.narrow(iterate), np.inf
                try:
                    iterate = model.newton_step(iterate)
                except AbandonedError:
                    break
                except scipy.linalg.LinAlgError:
                    progress.status = Status.NUMERICAL_ERROR
                    break
            if not best[1].within(settings.tol):
                best = min(best, model.certified(iterate), key=_gap)
            return progress.finish(*best)


def _gap(candidate: tuple[HingePoint, Certificate]) -> float:
    return candidate[1].gap if candidate[1].infeasibility <= 1e-9 else np.inf


@dataclass(frozen=True, slots=True)
class _AnsweredPoint:
    """Coordinates of a primal point, its scores, the dual point that answers it, and what separates the two."""

    U: Array
    F: Array
    dual: Array
    gradient: Array
    primal: float
    slack: float
    inexact: float

    @property
    def gap(self) -> float:
        """Bound of the duality gap."""
        return self.slack + self.inexact

    @property
    def relative_gap(self) -> float:
        """The same relative to the objective."""
        return self.gap / max(1.0, abs(self.primal))


class SmoothModel:
    """The smooth problem for the current centre and width, in coordinates U (features, r) of ``F = X U B'``.

    B is a basis of the scores that sum to zero, or of all scores; X has a column of ones for the intercept.
    """

    def __init__(
        self,
        problem: HingeProblem,
        tuning: GeneralSettings = DEFAULTS,
        start: HingePoint | None = None,
        is_over: Callable[[], bool] = lambda: False,
    ):
        self.problem, self.losses, self.tuning, self.is_over = problem, problem.losses, tuning, is_over
        self.X: Any = _features(problem, is_over)
        self.n, self.p = self.X.shape
        if problem.fit_intercept:
            ones = np.ones((self.n, 1))
            self.X = sparse.hstack([self.X, ones], "csr") if sparse.issparse(self.X) else np.hstack([self.X, ones])
        k = self.losses.n_classes
        self.basis = zero_sum_basis(k) if self.losses.zero_sum else np.eye(k)
        at_zero = self.losses.margins(np.zeros((self.n, k)))
        units = [self.losses.margins(np.broadcast_to(unit, (self.n, k))) - at_zero for unit in self.basis.T]
        self.lift = np.stack(units, axis=2)
        self.centre = self.losses.resting_dual() if start is None else start.dual
        self.width = tuning.first_width * self.losses.offset

    def first(self, start: HingePoint | None) -> _AnsweredPoint:
        """Return the iterate at zero, or at `start`."""
        U = np.zeros((self.X.shape[1], self.basis.shape[1]))
        if start is not None:
            R = self.problem.coefficients(start.dual)
            U[: self.p] = self.X[:, : self.p].T @ (R @ self.basis)
            if self.problem.fit_intercept:
                U[-1] = start.intercept @ self.basis
        return self.iterate(U, self.scores(U))

    def scores(self, U: Array) -> Array:
        """Return F (n, k)."""
        return np.asarray(self.X @ U) @ self.basis.T

    def answer(self, F: Array, width: float | None = None) -> Array:
        """Return the dual point that answers the scores `F`."""
        return self.losses.proximal(self.losses.margins(F), self.centre, self.width if width is None else width)

    def iterate(self, U: Array, F: Array) -> _AnsweredPoint:
        """Measure a primal point and its answer."""
        dual = self.answer(F)
        R = self.losses.coefficients(dual)
        loss = self.losses.value(F)
        slack = loss + float(np.vdot(R, F)) - self.losses.dual_value(dual)
        if self.problem.tilt is not None:
            R = R - self.problem.tilt
            loss += float(np.vdot(self.problem.tilt, F))
        gradient = -np.asarray(self.X.T @ (R @ self.basis))
        gradient[: self.p] += U[: self.p]
        inexact = 0.5 * float(np.vdot(gradient[: self.p], gradient[: self.p]))
        if self.problem.fit_intercept:
            # no less than <b, 1'R>, and what balancing the columns may cost the dual
            inexact += (self.losses.offset + float(np.abs(U[-1]).max())) * float(np.abs(gradient[-1]).sum())
        primal = 0.5 * float(np.vdot(U[: self.p], U[: self.p])) + loss
        return _AnsweredPoint(U, F, dual, gradient, primal, max(slack, 0.0), inexact)

    def narrow(self, iterate: _AnsweredPoint) -> _AnsweredPoint:
        """Move the centre to the iterate's dual point, narrow the width and look at the same primal point."""
        self.centre = iterate.dual
        self.width *= self.tuning.narrower
        return self.iterate(iterate.U, iterate.F)

    def newton_step(self, iterate: _AnsweredPoint) -> _AnsweredPoint:
        """Go along Newton's direction to where the slope has lost most of its size."""
        if is_large(float(iterate.U.size) ** 2):
            direction = heard(self.direction, iterate, is_over=self.is_over)
        else:
            direction = self.direction(iterate)
        along = self.scores(direction)
        slope = float(np.vdot(iterate.gradient, direction))
        low, slope_low, high, slope_high = 0.0, slope, np.inf, 0.0
        length = 1.0
        for _ in range(self.tuning.max_line):
            there = self.iterate(iterate.U + length * direction, iterate.F + length * along)
            here = float(np.vdot(there.gradient, direction))
            if abs(here) <= self.tuning.slope_left * abs(slope):
                break
            if here > 0.0:
                high, slope_high = length, here
            else:
                low, slope_low = length, here
            if np.isinf(high):
                length *= 2.0
            else:
                share, least = slope_low / (slope_low - slope_high), self.tuning.least_share
                length = low + (high - low) * min(max(share, least), 1.0 - least)
        return there

    def curvature(self, F: Array, width: float) -> Array:
        """Return the curvature (n, r, r) that the answer gives every example's scores."""
        slopes = self.losses.proximal_slopes(self.losses.margins(F), self.centre, width)
        return np.einsum("imc,iml,ild->icd", self.lift, slopes, self.lift, optimize=True)

    def direction(self, iterate: _AnsweredPoint) -> Array:
        """Solve Newton's system ``(I + sum_i x_i x_i' kron B_i) direction = -gradient``."""
        factor = cho_factor(self.matrix(self.curvature(iterate.F, self.width)))
        step = scipy.linalg.cho_solve(factor, -iterate.gradient.T.ravel(), check_finite=False)
        if not np.isfinite(step).all():
            raise scipy.linalg.LinAlgError("Newton's matrix is singular")
        return step.reshape(iterate.U.shape[::-1]).T

    def matrix(self, B: Array) -> Array:
        """Return Newton's matrix ``I + sum_i x_i x_i' kron B_i``, of (r, features) by the same."""
        active = np.flatnonzero(B.any(axis=(1, 2)))
        X, B = self.X[active], B[active]
        size, r = self.X.shape[1], B.shape[1]
        matrix = np.zeros((r, size, r, size))
        for c in range(r):
            for d in range(c + 1):
                weighted = X.multiply(B[:, c, d][:, None]) if sparse.issparse(X) else X * B[:, c, d][:, None]
                product = X.T @ weighted
                matrix[c, :, d] = matrix[d, :, c] = product.toarray() if sparse.issparse(X) else product
        system = matrix.reshape(r * size, r * size)
        floor = np.ones((r, size))
        if self.problem.fit_intercept:  # without examples on the way there is no curvature of its own
            floor[:, -1] = self.tuning.damping * (1.0 + float(np.einsum("icc->", B)))
        system[np.diag_indices_from(system)] += floor.ravel()
        return system

    def certified(self, iterate: _AnsweredPoint) -> tuple[HingePoint, Certificate]:
        """Return the dual point with columns of R that sum to zero, the intercepts, and their certificate."""
        if not self.problem.fit_intercept:
            point = HingePoint(iterate.dual, np.zeros(self.losses.n_classes))
            return point, self.problem.certify(point)
        dual = self._balanced(iterate)
        point = HingePoint(self.losses.resting_dual() if dual is None else dual, self.basis @ iterate.U[-1])
        return point, self.problem.certify(point)

    def _balanced(self, iterate: _AnsweredPoint) -> Array | None:
        """Move the intercepts until the answer's columns of R sum to zero; widen where no example can move."""
        width = self.width
        for _ in range(self.tuning.max_widenings):
            dual = self._balanced_within(iterate.F, width)
            if dual is not None:
                return dual
            width /= self.tuning.narrower
        return None

    def _balanced_within(self, F: Array, width: float) -> Array | None:
        scale = float(np.broadcast_to(self.losses.sizes, self.centre.shape).sum())
        dual, sums = self._sums(F, width)
        for _ in range(self.tuning.balancing_steps):
            if float(np.abs(sums).max()) <= self.tuning.balanced * scale:
                return dual
            jacobian = self.curvature(F, width).sum(axis=0)
            step = np.linalg.lstsq(jacobian, sums, rcond=1e-12)[0]
            length = 1.0
            while length > self.tuning.shortest:
                after, following = self._sums(F + length * (self.basis @ step), width)
                if float(np.abs(following).max()) < float(np.abs(sums).max()):
                    break
                length /= 2
            else:
                # what rounding leaves may stay
                return dual if float(np.abs(sums).max()) <= self.tuning.left_by_rounding * scale else None
            F, dual, sums = F + length * (self.basis @ step), after, following
        return None

    def _sums(self, F: Array, width: float) -> tuple[Array, Array]:
        dual = self.answer(F, width)
        return dual, self.basis.T @ self.problem.coefficients(dual).sum(axis=0)


def _features(problem: HingeProblem, is_over: Callable[[], bool]) -> Any:
    """Return features, no more than examples, whose inner products are the gram."""
    gram = problem.gram
    if isinstance(gram, FeatureGram) and gram.features.shape[1] <= gram.n:
        features = gram.features
        return features if sparse.issparse(features) else np.asarray(features, dtype=np.float64)
    return kernel_root(gram, is_over)
