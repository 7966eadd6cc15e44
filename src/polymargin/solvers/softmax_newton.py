"""Newton's method for maps from scores to probabilities."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.linalg.lapack import dpotrf, dpotrs

from polymargin.problems.softmax import LEAST_SLOPE, Evaluation, SoftmaxProblem, curvature, pulled_back
from polymargin.solvers.contract import Observer, Progress, Settings, Solution, Status

Array = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class SoftmaxSettings:
    """Tuning of the line search, and how long a Hessian will do.

    Attributes
    ----------
    kept : a Hessian is used again as long as a step takes the gap to this part of it.
    sufficient : part of the decrease that the gradient promises which a step must make.
    most : Newton steps that a rough fit may take.
    shortest : length below which a step makes no progress in floating-point arithmetic.
    """

    kept: float = 0.1
    sufficient: float = 1e-4
    most: int = 200
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
        hessian, last = None, np.inf
        with Progress(settings, observer) as progress:
            for _ in progress:
                gap = problem.gap(theta, here.gradient)
                progress.record(here.value, here.value - gap)
                if gap <= settings.tol * max(1.0, abs(here.value)):
                    break
                first = _first_free(theta, here)
                if hessian is None or hessian.first != first or gap > DEFAULTS.kept * last:
                    hessian = _Hessian(problem.hessian(here.probabilities), first)
                last = gap
                step = _searched(problem, theta, here, hessian.step(here.gradient))
                if step is None:
                    progress.status = Status.STALLED
                    break
                theta, here = step
        return progress.finish(theta, problem.certify(theta))


def approached(
    problem: SoftmaxProblem, theta: Array, folds: Sequence[slice], within: float
) -> tuple[Array, list[Array]]:
    """Return a point near the solution, and for every fold, some of the rows, one near that without it.

    Newton steps are taken from `theta` until one promises to lower the objective by at most a part `within` of it.
    The Hessian is a sum over the rows: less that of a fold, the last one gives the fold a step of its own.
    """
    here = problem.at(theta)
    for left in reversed(range(DEFAULTS.most)):
        whole = problem.hessian(here.probabilities)
        step = _Hessian(whole, _first_free(theta, here)).step(here.gradient)
        small = -0.5 * float(here.gradient @ step) <= within * max(1.0, abs(here.value))
        found = None if small or not left else _searched(problem, theta, here, step)
        if found is None:
            break
        theta, here = found
    residual = problem.weights[:, None] * (here.probabilities - problem.targets)
    points = []
    for out in folds:
        S, P = problem.scores[out], here.probabilities[out]
        rest = _Hessian(whole - curvature(S, P, problem.weights[out], len(theta)), 0)
        points.append(_moved(theta, rest.step(here.gradient - pulled_back(residual[out], S, len(theta))), 1.0))
    return _moved(theta, step, 1.0) if small else theta, points


def _first_free(theta: Array, here: Evaluation) -> int:
    """Return 1 where the slope stays at its bound, 0 elsewhere."""
    return 0 if theta[0] > LEAST_SLOPE or here.gradient[0] < 0.0 else 1


def _moved(theta: Array, step: Array, length: float) -> Array:
    trial = theta + length * step
    trial[0] = max(trial[0], LEAST_SLOPE)
    return trial


def _searched(
    problem: SoftmaxProblem, theta: Array, here: Evaluation, step: Array
) -> tuple[Array, Evaluation] | None:
    """Return the point of a step, halved until it is a decrease; None if none is."""
    length, rounding = 1.0, 1e-14 * max(1.0, abs(here.value))
    while length > DEFAULTS.shortest:
        trial = _moved(theta, step, length)
        there = problem.at(trial)
        if there.value <= here.value + rounding + DEFAULTS.sufficient * float(here.gradient @ (trial - theta)):
            return trial, there
        length *= 0.5
    return None


class _Hessian:
    """A Hessian, positive definite but for rounding, factorised for steps in the coordinates from `first` on."""

    def __init__(self, H: Array, first: int):
        self.first = first
        self.free = H[first:, first:]
        self.factor, self.info = self.free, 0
        if len(self.free):
            self.factor, self.info = dpotrf(self.free)

    def step(self, gradient: Array) -> Array:
        """Return the step to where the gradient would vanish."""
        step, right = np.zeros_like(gradient), -gradient[self.first :]
        if len(right):
            step[self.first :] = dpotrs(self.factor, right)[0] if self.info == 0 else self._where_told(right)
        return step

    def _where_told(self, right: Array) -> Array:
        """Solve along what rounding leaves: weights apart by many orders leave no digits for the ridge."""
        values, vectors = np.linalg.eigh(self.free)
        told = values > max(values[-1] * len(values) * np.finfo(np.float64).eps, SMALLEST_CURVATURE)
        along = vectors[:, told]
        return along @ ((along.T @ right) / values[told])
