"""Alternating minimisation for shared structure: W-step, M-step, and balancing where M is free."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from polymargin.problems.shared import SharedPoint, SharedProblem
from polymargin.solvers.contract import Accepted, Observer, Progress, Settings, Solution, Status, accepts_kinds
from polymargin.solvers.shared.base_step import BaseStep, CommonBaseStep, make_base_step
from polymargin.solvers.shared.bounded import bounded_quadratic
from polymargin.solvers.shared.extrapolation import Anderson
from polymargin.solvers.shared.relation_step import relation_step
from polymargin.solvers.shared.settings import DEFAULTS, SharedSettings


class AlternationSolver:
    """Minimise over W and M in turn, ending with an M-step.

    Without constraints on M the factors are balanced after every M-step, ``W'W = nu MM'``: that never raises the
    objective, and takes the alternation from hundreds of rounds to some ten.

    Parameters
    ----------
    base_step : the W-steps of the problem's data; made anew where None. Problems that differ in C, the penalty
        or the relations may share one.
    extrapolated : whether rounds start from an extrapolation of those before, where that lowers the objective.
        Constraints are not in its way: the M-step at the end of a round keeps them.
    tuning : see `SharedSettings`.
    """

    name = "alternation"

    def __init__(
        self,
        base_step: BaseStep | None = None,
        *,
        extrapolated: bool = False,
        tuning: SharedSettings = DEFAULTS,
    ):
        self.base_step, self.extrapolated, self.tuning = base_step, extrapolated, tuning

    def accepts(self, problem: Any) -> Accepted:
        """Return True if the solver can take `problem`, else the reason why not."""
        return accepts_kinds(problem, SharedProblem)

    def solve(
        self,
        problem: SharedProblem,
        settings: Settings,
        *,
        start: NDArray[np.float64] | None = None,
        observer: Observer | None = None,
    ) -> Solution[SharedPoint]:
        """Alternate from the relation matrix `start` (the identity by default)."""
        base_step = make_base_step(problem.tasks, self.tuning) if self.base_step is None else self.base_step
        shape = problem.relations.lower.shape
        point = SharedPoint(np.zeros((len(problem.tasks.cross), shape[0])), np.zeros(shape))
        if problem.is_convex and problem.relation_penalty >= problem.penalty_at_zero:
            return Progress(settings, method=self.name).finish(point, problem.certify(point))
        M = problem.relations.clip(np.eye(*shape) if start is None else start)
        point = SharedPoint(point.W, M)
        extrapolate = Anderson(self.tuning.rounds_mixed if self.extrapolated else 0, self.tuning)
        unfinished = base_step.unfinished
        with Progress(settings, observer, method=self.name) as progress:
            for _ in progress:
                try:
                    reached = round_of_steps(
                        problem, base_step, M, point.W if progress.history else None, self.tuning
                    )
                    measured = problem.measure(reached, *base_step.residual(reached.W, reached.M, problem.C))
                    failed = extrapolate.has_mixed and measured.primal > progress.history[-1].primal
                except np.linalg.LinAlgError:
                    failed = True
                    if not extrapolate.has_mixed:
                        progress.status = Status.NUMERICAL_ERROR
                        break
                if failed:
                    M = point.M
                    extrapolate.forget()
                    continue
                if problem.formulation == "original" and is_rounding(
                    problem, progress, measured.primal, self.tuning
                ):
                    progress.status = Status.STALLED
                    break
                point = reached
                progress.record(measured.primal, measured.dual)
                if measured.gap <= settings.tol and problem.formulation == "original":
                    break
                exhausted = base_step.unfinished - unfinished >= self.tuning.unfinished_steps
                lost = proves_nothing(progress, self.tuning.lost_rounds)
                if exhausted or lost or has_stalled(progress, self.tuning.stalled_rounds):
                    progress.status = Status.STALLED
                    break
                M = extrapolate(M, point.M)
            point = SharedPoint(base_step.restore(point.W), point.M, point.multiplier)
            return progress.finish(point, problem.certify(point))


def round_of_steps(
    problem: SharedProblem,
    base_step: BaseStep,
    M: NDArray[np.float64],
    W: NDArray[np.float64] | None = None,
    tuning: SharedSettings = DEFAULTS,
) -> SharedPoint:
    """Return what a W-step from M and an M-step lead to, W in the coordinates of `base_step`.

    An iterative W-step begins at `W`.
    """
    W = base_step.solve(M, problem.C, problem.formulation, W)
    Q, R = base_step.relation_terms(W)
    M, multiplier = relation_step(Q, R, problem.relation_penalty / problem.C, problem.relations, tuning)
    if problem.relations.is_free and problem.formulation == "original":
        W, M = balance(W, M, problem.relation_penalty)
    return SharedPoint(W, M, multiplier)


def has_stalled(progress: Progress, rounds: int) -> bool:
    """Tell whether the last `rounds` have not lowered the objective by more than rounding."""
    if len(progress.history) <= rounds:
        return False
    before, now = progress.history[-1 - rounds].primal, progress.history[-1].primal
    return bool(before - now <= np.finfo(np.float64).eps * abs(now))


def proves_nothing(progress: Progress, rounds: int) -> bool:
    """Tell whether the gap is the objective itself or more, and the last `rounds` have not even halved it."""
    gaps = [record.gap for record in progress.history[-1 - rounds :]]
    return len(gaps) > rounds and gaps[-1] >= 1.0 and min(gaps) > 0.5 * gaps[0]


def is_rounding(problem: SharedProblem, progress: Progress, primal: float, tuning: SharedSettings) -> bool:
    """Tell whether a round has raised the objective, or brought a sum of squares below zero: no step can."""
    if not primal >= -tuning.largest_rise * problem.C * problem.tasks.squares:
        return True
    before = progress.history[-1].primal if progress.history else np.inf
    return bool(primal > before + tuning.largest_rise * abs(before))


def alternate_side_by_side(
    problems: Sequence[SharedProblem], base_step: CommonBaseStep, starts: NDArray[np.float64], n_rounds: int
) -> list[SharedPoint]:
    """Return what `n_rounds` of the alternation make of problems that differ in their penalty alone.

    For searches: as `AlternationSolver`, for the original formulation with bounds on M, but without certificates
    and with the problems stacked, so that a round of all costs little more than a round of one.
    """
    C, relations = problems[0].C, problems[0].relations
    kappas = np.array([problem.relation_penalty / C for problem in problems])[:, None, None]
    M: NDArray = relations.clip(starts)
    W = np.zeros((len(problems), base_step.cross.shape[0], M.shape[1]))
    for at_round in range(n_rounds):
        W = base_step.solve(M, C, "original")
        Q, R = base_step.relation_terms(W)
        Q = Q + kappas * np.eye(Q.shape[-1])
        try:
            previous, M = M, np.linalg.solve(Q, R)
        except np.linalg.LinAlgError:
            break  # rounding has made an M-step singular: the rounds before count
        outside: NDArray[np.bool_] = np.any((relations.lower > M) | (relations.upper < M), axis=(1, 2))
        for at in np.flatnonzero(outside):
            # the bounds that the neighbour has just met, or those of the last round
            guess = M[at - 1] if at and outside[at - 1] else previous[at] if at_round else None
            M[at] = bounded_quadratic(Q[at], R[at], relations.lower, relations.upper, guess)
    W = base_step.restore(W)
    return [SharedPoint(*point) for point in zip(W, M, strict=True)]


def balance(
    W: NDArray[np.float64], M: NDArray[np.float64], nu: float
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return the factors of ``W M`` of least ``||W||^2 + nu ||M||^2``, in the same shapes."""
    basis, triangle = np.linalg.qr(W)
    U, scales, Vt = np.linalg.svd(triangle @ M, full_matrices=False)
    n_base = W.shape[1]
    missing = n_base - len(scales)  # fewer directions than base classifiers: the rest is zero
    roots = np.sqrt(scales)
    W = np.pad((basis @ U) * (roots * nu**0.25), ((0, 0), (0, missing)))
    M = np.pad((roots * nu**-0.25)[:, None] * Vt, ((0, missing), (0, 0)))
    return W, M


def spectral_start(problem: SharedProblem, base_step: BaseStep) -> NDArray[np.float64]:
    """Return the balanced M of the leading directions of the independent tasks, shrunk into the unit box."""
    n_base = len(problem.relations.lower)
    _, scales, Vt = np.linalg.svd(base_step.independent(problem.C), full_matrices=False)
    M = np.zeros(problem.relations.lower.shape)
    rank = min(n_base, len(scales))
    M[:rank] = (problem.relation_penalty**-0.25 * np.sqrt(scales[:rank]))[:, None] * Vt[:rank]
    M /= max(1.0, float(np.abs(M).max()))
    return np.abs(M) if (problem.relations.lower >= 0).all() else M
