"""Newton's method for maps from scores to probabilities."""

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from polymargin._native.softmax import SoftmaxSums, factorise, solve
from polymargin.problems.softmax import LEAST_SLOPE, SoftmaxProblem
from polymargin.solvers.contract import Observer, Progress, Settings, Solution, Status

Array = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class SoftmaxSettings:
    """Tuning of the line search, and how long a Hessian will do.

    Attributes
    ----------
    kept : a Hessian is used again as long as a step takes what is left to this part of it.
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


class SoftmaxSystem:
    """The sums over rows of a problem, for all maps that it has as special cases: the first parameters alone."""

    def __init__(self, problem: SoftmaxProblem):
        by_class = (np.ascontiguousarray(values.T) for values in (problem.scores, problem.targets))
        self.sums = SoftmaxSums(*by_class, np.ascontiguousarray(problem.weights))
        self.ridge = problem.ridge

    def at(self, theta: Array) -> "_Point":
        """Evaluate the objective; derivatives are from now on those at this point."""
        ridged, gradient = self.ridge[: len(theta)] * theta, np.empty(len(theta))
        value = self.sums.objective(theta, gradient) + 0.5 * float(ridged @ theta)
        gradient += ridged
        return _Point(theta, value, gradient)

    def hessian(self, first: int, size: int) -> "_Hessian":
        """Return the Hessian for steps in the first `size` coordinates from `first` on."""
        H = np.empty((size, size))
        self.sums.curvature(0, self.sums.probabilities.shape[1], H)
        H.flat[:: size + 1] += self.ridge[:size]
        return _Hessian(H, first)

    def without(self, edges: NDArray[np.intp], here: "_Point", hessian: "_Hessian") -> Array:
        """Return the points (folds, d) to which steps lead where a fold is missing; folds end at `edges`."""
        steps = np.empty((len(edges), len(here.theta)))
        positive = self.sums.steps_without(edges, here.gradient, hessian.H, steps)
        for fold in np.flatnonzero(~positive):
            first, last = edges[fold - 1] if fold else 0, edges[fold]
            gradient, H = np.empty_like(here.gradient), np.empty_like(hessian.H)
            self.sums.pulled(first, last, gradient)
            self.sums.curvature(first, last, H)
            steps[fold] = _Hessian(hessian.H - H, 0).step(here.gradient - gradient)
        points = here.theta + steps
        points[:, 0] = np.maximum(points[:, 0], LEAST_SLOPE)
        return points

    def losses(self, points: Array, edges: NDArray[np.intp], labels: NDArray[np.intp]) -> Array:
        """Return ``-log p`` of the rows' own classes, every fold by its own point."""
        return self.sums.losses(points, edges, labels)


class _Point(NamedTuple):
    """Parameters (d,), the objective there, and its gradient (d,)."""

    theta: Array
    value: float
    gradient: Array

    @property
    def first_free(self) -> int:
        """1 where the slope stays at its bound, 0 elsewhere."""
        return 0 if self.theta[0] > LEAST_SLOPE or self.gradient[0] < 0.0 else 1


class Approach(NamedTuple):
    """A point near the solution, points (folds, d) near those without each fold, and a Hessian to go on with."""

    theta: Array
    without: Array
    hessian: "_Hessian"


class SoftmaxNewton:
    """Newton's method with halved steps; the slope stays at its bound while its gradient asks for less."""

    def solve(
        self,
        problem: SoftmaxProblem,
        settings: Settings,
        *,
        start: Array | None = None,
        observer: Observer | None = None,
        system: SoftmaxSystem | None = None,
        hessian: "_Hessian | None" = None,
    ) -> Solution[Array]:
        """Solve `problem`, from `start` where given, with its sums and a Hessian nearby where they are at hand."""
        system = system or SoftmaxSystem(problem)
        here = system.at(problem.start() if start is None else start)
        last = np.inf
        with Progress(settings, observer) as progress:
            for _ in progress:
                gap = problem.gap(here.theta, here.gradient)
                progress.record(here.value, here.value - gap)
                if gap <= settings.tol * max(1.0, abs(here.value)):
                    break
                first = here.first_free
                if hessian is None or hessian.first != first or gap > DEFAULTS.kept * last:
                    hessian = system.hessian(first, len(here.theta))
                last = gap
                there = _searched(system, here, hessian.step(here.gradient))
                if there is None:
                    progress.status = Status.STALLED
                    break
                here = there
        return progress.finish(here.theta, problem.certify(here.theta))


def approached(system: SoftmaxSystem, theta: Array, edges: NDArray[np.intp], within: float) -> Approach:
    """Return a point near the solution, and one near that without each fold; folds follow each other to `edges`.

    Newton steps are taken from `theta` until one promises to lower the objective by at most a part `within` of it.
    The Hessian is a sum over the rows: less that of a fold, the last one gives the fold a step of its own.
    """
    here = system.at(theta)
    hessian, last = system.hessian(here.first_free, len(theta)), np.inf
    is_fresh, is_small = True, False
    for _ in range(DEFAULTS.most):
        step = hessian.step(here.gradient)
        promised = -0.5 * float(here.gradient @ step)
        # a single second derivative costs less than the steps that it saves
        is_kept = len(theta) > 1 and hessian.first == here.first_free and promised <= DEFAULTS.kept * last
        if not (is_fresh or is_kept):
            hessian, is_fresh = system.hessian(here.first_free, len(theta)), True
            continue
        last, is_small = promised, promised <= within * max(1.0, abs(here.value))
        there = None if is_small else _searched(system, here, step)
        if there is None:
            break
        here, is_fresh = there, False
    if not is_small:
        here = system.at(here.theta)  # a search that failed has left the derivatives elsewhere
    if not is_fresh or not is_small:
        hessian = system.hessian(here.first_free, len(theta))
        step = hessian.step(here.gradient)
    points = system.without(edges, here, hessian)
    return Approach(_moved(here.theta, step, 1.0) if is_small else here.theta, points, hessian)


def _moved(theta: Array, step: Array, length: float) -> Array:
    trial = theta + length * step
    trial[0] = max(trial[0], LEAST_SLOPE)
    return trial


def _searched(system: SoftmaxSystem, here: _Point, step: Array) -> _Point | None:
    """Return the point of a step, halved until it is a decrease; None if none is."""
    length, rounding = 1.0, 1e-14 * max(1.0, abs(here.value))
    while length > DEFAULTS.shortest:
        there = system.at(_moved(here.theta, step, length))
        least = DEFAULTS.sufficient * float(here.gradient @ (there.theta - here.theta))
        if there.value <= here.value + rounding + least:
            return there
        length *= 0.5
    return None


class _Hessian:
    """A Hessian, positive definite but for rounding, factorised for steps in the coordinates from `first` on."""

    def __init__(self, H: Array, first: int):
        self.H, self.first = H, first
        self.factor = np.empty_like(H)
        self.is_positive = factorise(H, first, self.factor)

    def step(self, gradient: Array) -> Array:
        """Return the step to where the gradient would vanish."""
        step = -gradient
        step[: self.first] = 0.0
        if self.is_positive:
            solve(self.factor, self.first, step)
        else:
            step[self.first :] = self._where_told(step[self.first :])
        return step

    def _where_told(self, right: Array) -> Array:
        """Solve along what rounding leaves: weights apart by many orders leave no digits for the ridge."""
        values, vectors = np.linalg.eigh(self.H[self.first :, self.first :])
        told = values > max(values[-1] * len(values) * np.finfo(np.float64).eps, SMALLEST_CURVATURE)
        along = vectors[:, told]
        return along @ ((along.T @ right) / values[told])
