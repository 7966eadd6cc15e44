"""Probabilities from scores: one temperature, and offsets of the classes where training shifted the scores."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize
from scipy.special import logsumexp, softmax

COLDEST = 1e-4
"""Lowest inverse temperature, for scores of unit spread: scores that say nothing of the classes give even odds."""


@dataclass(frozen=True, slots=True)
class Calibration:
    """Probabilities ``softmax(scores / temperature + offsets)``; the offsets (k,) sum to zero."""

    temperature: float
    offsets: NDArray[np.float64]

    @classmethod
    def fit(
        cls, scores: NDArray[np.float64], labels: NDArray[np.intp], *, with_offsets: bool = False
    ) -> "Calibration":
        """Find the least log loss, with one observation more in all for every class.

        The targets of a row are ``(n + 1)/(n + k)`` for its class and ``1/(n + k)`` for the others, after Platt:
        without them the temperature would be zero where no row is misclassified. The loss is convex in the offsets
        and the inverse of the temperature.

        >>> scores = np.array([[2.0, 0.0], [2.0, 0.0], [0.0, 2.0], [0.0, 2.0]])
        >>> found = Calibration.fit(scores, np.array([0, 0, 1, 1]))
        >>> odds = found.probabilities(scores)[0]
        >>> (odds[0] / odds[1]).round(4), found.offsets
        (np.float64(5.0), array([0., 0.]))
        """
        n, k = scores.shape
        centred = scores - scores.mean(axis=1, keepdims=True)
        spread = float(np.sqrt(np.mean(centred**2))) or 1.0
        centred /= spread
        targets = np.full((n, k), 1.0 / (n + k))
        targets[np.arange(n), labels] = (n + 1.0) / (n + k)

        def loss(point: NDArray[np.float64]) -> tuple[float, NDArray[np.float64]]:
            logits = point[0] * centred + point[1:]
            excess = (softmax(logits, axis=1) - targets) / n
            value = np.mean(logsumexp(logits, axis=1)) - np.sum(targets * logits) / n
            slope = np.append(np.sum(excess * centred), excess.sum(axis=0))
            return float(value), slope

        free = (None, None) if with_offsets else (0.0, 0.0)
        options = {"maxiter": 1000, "ftol": 1e-15, "gtol": 1e-10}
        start = np.append(1.0, np.zeros(k))
        found = minimize(
            loss, start, jac=True, method="L-BFGS-B", bounds=[(COLDEST, None), *[free] * k], options=options
        ).x
        return cls(spread / float(found[0]), found[1:] - found[1:].mean())

    def probabilities(self, scores: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return the probabilities (n, k) of the classes."""
        return softmax(scores / self.temperature + self.offsets, axis=1)


def cross_fitted(
    scores: NDArray[np.float64], labels: NDArray[np.intp], *, with_offsets: bool = False
) -> NDArray[np.float64]:
    """Return probabilities (n, k) of which no row's come from a calibration that has seen the row.

    Rows of every class go to two halves in turn; each half is given what was found on the other one.
    """
    n = len(labels)
    half = np.empty(n, dtype=bool)
    half[np.argsort(labels, kind="stable")] = np.arange(n) % 2 == 0
    probabilities = np.empty(scores.shape)
    for part in (half, ~half):
        others = ~part if part.any() and not part.all() else np.ones(n, dtype=bool)
        found = Calibration.fit(scores[others], labels[others], with_offsets=with_offsets)
        probabilities[part] = found.probabilities(scores[part])
    return probabilities
