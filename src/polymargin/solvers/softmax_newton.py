"""Newton's method for maps from scores to probabilities."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.linalg.lapack import dposv

from polymargin.problems.softmax import LEAST_SLOPE, Evaluation, SoftmaxProblem, curvature, pulled_back
from polymargin.solvers.contract import Observer, Progress, Settings, Solution, Status

Array = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class SoftmaxSettings:
    """Tuning of the line search.

    Attributes
    ----------
    sufficient : part of the decrease that the gradient promises which a step must make.
    shortest : length below which a step makes no progress in floating-point arithmetic.
    """

    sufficient: float = 1e-4
    shortest: float = 1e-10


DEFAULTS = SoftmaxSettings()

SMALLEST_CURVATURE = 1e-200
"""Below, a step would be beyond all numbers."""


class SoftmaxNewton:
    """Newton's method with halved steps; the slope stays at its bound while its gradient asks for less."""

    def solve(
        self,
        problem: SoftmaxProblem,
        settings: Settings,
        *,
        start: Array | None = None,
        observer: Observer | None = None,
    ) -> Solution[Array]:
        """Solve `problem`, from `start` where given."""
        theta = problem.start() if start is None else start
        here = problem.at(theta)
        with Progress(settings, observer) as progress:
            for _ in progress:
                gap = problem.gap(theta, here.gradient)
                progress.record(here.value, here.value - gap)
                if gap <= settings.tol * max(1.0, abs(here.value)):
                    break
                step = _step(problem, theta, here)
                if step is None:
                    progress.status = Status.STALLED
                    break
                theta, here = step
        return progress.finish(theta, problem.certify(theta))


def _step(problem: SoftmaxProblem, theta: Array, here: Evaluation) -> tuple[Array, Evaluation] | None:
    """Return the point of a Newton step, halved until it is a decrease; None if none is."""
    first = 0 if theta[0] > LEAST_SLOPE or here.gradient[0] < 0.0 else 1
    H = problem.hessian(here.probabilities)[first:, first:]
    step = np.zeros_like(theta)
    step[first:] = -_solved(H, here.gradient[first:])
    length, rounding = 1.0, 1e-14 * max(1.0, abs(here.value))
    while length > DEFAULTS.shortest:
        trial = theta + length * step
        trial[0] = max(trial[0], LEAST_SLOPE)
        there = problem.at(trial)
        if there.value <= here.value + rounding + DEFAULTS.sufficient * float(here.gradient @ (trial - theta)):
            return trial, there
        length *= 0.5
    return None


def points_without(problem: SoftmaxProblem, theta: Array, folds: Sequence[slice]) -> list[Array]:
    """Return for every fold, some rows, the point without it: one Newton step from the solution `theta`.

    The Hessian is a sum over the rows, so that all folds together take one.
    """
    here = problem.at(theta)
    residual = problem.weights[:, None] * (here.probabilities - problem.targets)
    parts = [
        (
            curvature(problem.scores[out], here.probabilities[out], problem.weights[out], len(theta)),
            pulled_back(residual[out], problem.scores[out], len(theta)),
        )
        for out in folds
    ]
    whole = np.sum([H for H, _ in parts], axis=0) + np.diag(problem.ridge)
    points = [theta - _solved(whole - H, here.gradient - gradient) for H, gradient in parts]
    for point in points:
        point[0] = max(point[0], LEAST_SLOPE)
    return points


def _solved(H: Array, right: Array) -> Array:
    """Solve with a matrix that is positive definite but for rounding."""
    if not len(H):
        return right
    _, answer, info = dposv(H, right)
    if info == 0:
        return answer
    # weights apart by many orders leave no digits for the ridge: no step where rounding rules
    values, vectors = np.linalg.eigh(H)
    told = values > max(values[-1] * len(H) * np.finfo(np.float64).eps, SMALLEST_CURVATURE)
    along = vectors[:, told]
    return along @ ((along.T @ right) / values[told])
