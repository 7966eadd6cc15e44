"""Decomposition for hinge machines with a kernel: exact steps on a few hundred examples at a time.

The outer frame, the same for every loss: choose the examples that the certificate blames most, improve them on
their own block of the kernel matrix (an `InnerLoop`), update all scores by one product, measure the gap.
"""

from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from polymargin._native.lee import LeeWorkingSet
from polymargin.gram import DenseGram, FeatureGram, Gram
from polymargin.problems.hinge import BoxLosses, HingePoint, HingeProblem, SimplexLosses
from polymargin.solvers.contract import Observer, Progress, Settings, Solution, Status
from polymargin.solvers.intercept import central_intercept

Losses = BoxLosses | SimplexLosses


@dataclass(frozen=True, slots=True)
class Burst:
    """How long one stretch of native work lasts: until the violation has fallen by a factor, or so many steps."""

    reduction: float
    max_steps: int


class InnerLoop(Protocol):
    """What a loss adds to the frame."""

    def start(self) -> NDArray[np.float64]:
        """Return a feasible dual point."""
        ...

    def repair(self, dual: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return the point with its bounds, and the class sums of R, right to rounding."""
        ...

    def extremes(self, dual: NDArray[np.float64], H: NDArray[np.float64], count: int) -> NDArray[np.intp]:
        """Return the examples of the most violating moves, `count` for each kind of move."""
        ...

    def improve(
        self,
        rows: NDArray[np.intp],
        K: NDArray[np.float64],
        dual: NDArray[np.float64],
        H: NDArray[np.float64],
        burst: Burst,
    ) -> NDArray[np.float64]:
        """Return a better dual of the examples `rows`, given their block of kernel matrix, dual and scores."""
        ...


class IndefiniteKernelError(ValueError):
    """The kernel matrix has a direction of negative curvature, so that the problem has no solution."""


class LeeLoop:
    """Pairs and tuples for (23) of Lee, Lin & Wahba."""

    def __init__(self, losses: BoxLosses, fit_intercept: bool):
        self.losses = losses
        self.fit_intercept = fit_intercept

    def start(self) -> NDArray[np.float64]:
        """Return zero."""
        return np.zeros_like(self.losses.upper)

    def repair(self, dual: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return the point within its box and with equal class sums, free variables taking the difference."""
        upper = self.losses.upper
        dual = np.clip(dual, 0.0, upper)
        if not self.fit_intercept:
            return dual
        sums = dual.sum(axis=0)
        for c, missing in enumerate(sums.mean() - sums):
            room = upper[:, c] - dual[:, c] if missing > 0 else dual[:, c]
            free = np.where((dual[:, c] > 0) & (dual[:, c] < upper[:, c]), room, 0.0)
            room = free if free.sum() > abs(missing) else room
            if room.sum() <= abs(missing):
                return dual * (sums.min() / np.where(sums > 0, sums, 1.0))
            dual[:, c] += missing * (room / room.sum())
        return dual

    def extremes(self, dual: NDArray[np.float64], H: NDArray[np.float64], count: int) -> NDArray[np.intp]:
        """Return by class the examples of lowest gradient that may grow and of highest that may shrink."""
        G = -self.losses.margins(H)
        growing = np.where(dual < self.losses.upper, G, np.inf)
        shrinking = np.where(dual > 0.0, -G, np.inf)
        count = min(count, len(G) - 1)
        return np.unique(np.argpartition(np.hstack([growing, shrinking]), count, axis=0)[:count])

    def improve(
        self,
        rows: NDArray[np.intp],
        K: NDArray[np.float64],
        dual: NDArray[np.float64],
        H: NDArray[np.float64],
        burst: Burst,
    ) -> NDArray[np.float64]:
        """Run the compiled loop."""
        losses = self.losses.restricted(rows)
        u = np.array(dual.T, order="C")
        gradient = np.ascontiguousarray(-losses.margins(H).T)
        upper = np.ascontiguousarray(losses.upper.T)
        loop = LeeWorkingSet(K, upper, u, gradient, self.fit_intercept)
        loop.improve(burst.reduction, burst.max_steps)
        check_curvature(loop.most_negative_curvature, K)
        return np.ascontiguousarray(u.T)


def check_curvature(lowest: float, K: NDArray[np.float64]) -> None:
    """Raise if a curvature that an inner loop met is below zero by more than rounding explains."""
    if lowest < -1e-6 * float(np.abs(K.diagonal()).max()):
        raise IndefiniteKernelError(
            "The kernel matrix must be positive semi-definite, but a direction of curvature "
            f"{lowest:.3g} was found."
        )


def inner_loop(losses: Losses, fit_intercept: bool) -> InnerLoop:
    """Choose the inner loop of a loss."""
    match losses:
        case BoxLosses() if losses.is_absolute:
            return LeeLoop(losses, fit_intercept)
        case _:
            raise NotImplementedError


@dataclass
class _State:
    """A dual point with its coefficients R, scores H = K R and intercept."""

    dual: NDArray[np.float64]
    R: NDArray[np.float64]
    H: NDArray[np.float64]
    intercept: NDArray[np.float64]


class Decomposition:
    """Solve a hinge problem by working sets of `working_set` examples."""

    def __init__(self, working_set: int = 512):
        self.working_set = working_set

    def solve(
        self,
        problem: HingeProblem,
        settings: Settings,
        *,
        start: HingePoint | None = None,
        observer: Observer | None = None,
    ) -> Solution[HingePoint]:
        """Solve `problem` to a relative gap of ``settings.tol``, from the dual of `start` where given."""
        losses, loop = problem.losses, inner_loop(problem.losses, problem.fit_intercept)
        gram = _materialised(problem.gram)
        with Progress(settings, observer) as progress:
            state = self._begin(problem, loop, gram, start)
            best, stalled = -np.inf, 0
            rows = np.empty(0, dtype=np.intp)
            for _ in progress:
                blame = self._blame(problem, state)
                gap = float(blame.sum())
                dual_value = losses.dual_linear(state.dual) - 0.5 * float(np.vdot(state.R, state.H))
                record = progress.record(dual_value + gap, dual_value)
                if record.gap <= settings.tol:
                    state = self._refresh(problem, loop, gram, state)
                    if problem.certify(HingePoint(state.dual, state.intercept)).within(settings.tol):
                        break
                rows = self._working_set(loop, losses, state, blame, rows)
                self._improve(problem, loop, gram, state, rows, progress)
                stalled = 0 if dual_value > best + 1e-14 * abs(best) else stalled + 1
                best = max(best, dual_value)
                if stalled > 20:
                    progress.status = Status.STALLED
                    break
            state = self._refresh(problem, loop, gram, state)
            point = HingePoint(state.dual, state.intercept)
            return progress.finish(point, problem.certify(point))

    def _begin(self, problem: HingeProblem, loop: InnerLoop, gram: Gram, start: HingePoint | None) -> _State:
        dual = loop.start() if start is None else start.dual
        zero = np.zeros(problem.losses.n_classes)
        empty = np.empty((0, 0))
        return self._refresh(problem, loop, gram, _State(dual, empty, empty, zero))

    def _refresh(self, problem: HingeProblem, loop: InnerLoop, gram: Gram, state: _State) -> _State:
        """Put the class sums right and compute R, H and the intercept anew."""
        dual = loop.repair(state.dual)
        R = problem.coefficients(dual)
        H = gram.matmul(R) if R.any() else np.zeros_like(R)
        intercept = central_intercept(problem.losses, dual, H) if problem.fit_intercept else state.intercept
        return _State(dual, R, H, intercept)

    def _blame(self, problem: HingeProblem, state: _State) -> NDArray[np.float64]:
        """Return every example's part in the gap, its Fenchel-Young gap: none is negative."""
        losses = problem.losses
        F = state.H + state.intercept
        margins = losses.margins(F)
        slack = -np.einsum("ij,ij->i", state.dual, margins)
        if isinstance(losses, BoxLosses):
            return slack + np.einsum("ij,ij->i", losses.upper, np.maximum(margins, 0.0))
        return slack + losses.weight * margins.max(axis=1)

    def _working_set(
        self,
        loop: InnerLoop,
        losses: Losses,
        state: _State,
        blame: NDArray[np.float64],
        previous: NDArray[np.intp],
    ) -> NDArray[np.intp]:
        """Return the extremes of every class, filled up with the examples of most blame."""
        size = min(self.working_set, losses.n_examples)
        if size == losses.n_examples:
            return np.arange(size)
        extremes = loop.extremes(state.dual, state.H, max(1, size // (8 * losses.n_classes)))
        fresh = np.argpartition(-blame, size // 2)[: size // 2]
        rows = np.union1d(extremes, fresh)
        old = np.setdiff1d(previous, rows)
        if len(rows) < size:
            old = old[np.argsort(-blame[old])][: size - len(rows)]
            rows = np.concatenate([rows, old])
        return rows

    def _improve(
        self,
        problem: HingeProblem,
        loop: InnerLoop,
        gram: Gram,
        state: _State,
        rows: NDArray[np.intp],
        progress: Progress,
    ) -> None:
        """Improve the examples `rows` on their own block of the kernel matrix, then update all scores."""
        local = problem.losses.restricted(rows)
        K = np.ascontiguousarray(gram.block(rows, rows))
        burst = Burst(reduction=0.1, max_steps=10 * len(rows))
        old = state.dual[rows]
        new = loop.improve(rows, K, old, state.H[rows], burst)
        change = local.coefficients(new) - local.coefficients(old)
        moved = np.flatnonzero(change.any(axis=1))
        state.dual[rows] = new
        state.R[rows] += change
        if len(moved):
            state.H += gram.block(rows[moved]).T @ change[moved]
        if problem.fit_intercept:
            state.intercept = central_intercept(problem.losses, state.dual, state.H)


def _materialised(gram: Gram) -> Gram:
    """Return the matrix itself where features would be multiplied again and again."""
    if isinstance(gram, FeatureGram) and gram.n <= 5000:
        return DenseGram(gram.block(np.arange(gram.n)))
    return gram
