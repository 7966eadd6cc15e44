"""What the simulations of section 5 share: the grid of (lambda, sigma), fits over it, and exact error rates."""

from collections.abc import Iterator
from itertools import product
from typing import Any

import numpy as np
from sklearn.svm import SVC
from sklearn.utils import Bunch

from polymargin import MulticategorySVC
from polymargin.datasets import gckl, misrate
from reproductions.declare import Context

Point = tuple[int, int]

LOG_LAMBDAS, LOG_SIGMAS = range(-16, 2), range(-6, 3)
"""Powers of two of the grid; the paper gives none. Wide enough that choices do not crowd at its edge."""

PROTOCOL = (
    "The paper gives no grid. Ours is log2 lambda = -16, ..., 1 and log2 sigma = -6, ..., 2, so that the "
    "choices of one-versus-rest, whose class in the middle wants a large lambda, do not end at its edge. "
)


def grid(context: Context, log_lambdas: range = LOG_LAMBDAS, log_sigmas: range = LOG_SIGMAS) -> list[Point]:
    """Return the searched powers of two of (lambda, sigma)."""
    if context.quick:
        return list(product((-9, -5), (-4, -2)))
    return list(product(log_lambdas, log_sigmas))


def gamma_of(log_sigma: int) -> float:
    """Return gamma of exp(-gamma |s - t|^2) = exp(-|s - t|^2 / (2 sigma^2))."""
    return 0.5 * 4.0**-log_sigma


def machines(
    sample: Bunch, points: list[Point], loss: str = "lee", tol: float = 1e-3
) -> Iterator[tuple[Point, MulticategorySVC]]:
    """Fit the multicategory machine at every point."""
    for point in points:
        C = 2.0 ** -point[0] / len(sample.target)
        machine = MulticategorySVC(C, loss=loss, gamma=gamma_of(point[1]), tol=tol)
        yield point, machine.fit(sample.data, sample.target)


def fine_grid(low: float, high: float) -> np.ndarray:
    """Return 2000 midpoints of the interval, at which error rates are averaged."""
    edges = np.linspace(low, high, 2001)
    return 0.5 * (edges[1:] + edges[:-1])[:, None]


def tuned_by_gckl(sample: Bunch, points: list[Point], loss: str) -> MulticategorySVC:
    """Return the machine of least expected loss (GCKL, for "lee"), given the true probabilities of the sample."""
    return min(
        (machine for _, machine in machines(sample, points, loss)),
        key=lambda machine: _expected_loss(machine.decision_function(sample.data), sample.probabilities, loss),
    )


def _expected_loss(scores: np.ndarray, probabilities: np.ndarray, loss: str) -> float:
    if loss == "lee":
        return gckl(scores, probabilities)
    total = 0.0
    for true in range(scores.shape[1]):
        hinges = np.maximum(scores - scores[:, [true]] + 2.0, 0.0)
        hinges[:, true] = 0.0
        total += float(probabilities[:, true] @ hinges.sum(axis=1))
    return total / len(scores)


class OneVersusRest:
    """One binary machine a class, every one tuned by its own GCKL."""

    def __init__(self, sample: Bunch, points: list[Point]):
        self.machines = [self._tuned(sample, points, j) for j in range(sample.probabilities.shape[1])]

    def _tuned(self, sample: Bunch, points: list[Point], j: int) -> Any:
        signs = np.where(sample.target == j, 1, -1)
        p = sample.probabilities[:, j]

        def fitted(point: Point) -> SVC:
            # (1/n) sum [1 - y f]_+ + lambda |h|^2: half of 1/(n lambda) in SVC's parameterisation.
            C = 0.5 * 2.0 ** -point[0] / len(signs)
            return SVC(C=C, gamma=gamma_of(point[1])).fit(sample.data, signs)

        def expected(machine: SVC) -> float:
            f = machine.decision_function(sample.data)
            return float(np.mean(p * np.maximum(1 - f, 0) + (1 - p) * np.maximum(1 + f, 0)))

        return min(map(fitted, points), key=expected)

    def decision_function(self, X: np.ndarray) -> np.ndarray:
        """Return the scores of the classes."""
        return np.column_stack([machine.decision_function(X) for machine in self.machines])


def error_rate(machine: Any, sample: Bunch, low: float, high: float) -> float:
    """Return the exact error rate of a rule, on a fine grid of the interval."""
    X = fine_grid(low, high)
    return misrate(machine.decision_function(X), sample.class_probabilities(X))
