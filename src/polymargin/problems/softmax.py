"""Probabilities from scores: the softmax of a linear map of the scores, fitted by penalised maximum likelihood.

    p(x) = softmax(a s + b + M s),   s the scores (k,) of x, a >= LEAST_SLOPE

    min over (a, b, M)   sum_i w_i [log sum_j exp z_ij - <t_i, z_i>] + 1/2 sum_q ridge_q theta_q^2

with z = a s + b + M s. The three maps are prefixes of ``theta = (a, b, M)``: the slope alone, with an offset per
class, with a matrix. Every coordinate has a positive ridge, so the objective is strongly convex: at any point the
Fenchel dual at ``p = softmax(z)`` is lower by just ``1/2 sum_q gradient_q^2 / ridge_q``, the certified gap.
"""

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from polymargin.problems.certificate import Certificate

Array = NDArray[np.float64]

LEAST_SLOPE = 1e-3
"""Least slope, so that the order of the scores is kept."""


class Evaluation(NamedTuple):
    """Objective, its gradient (d,), and the probabilities (n, k) at a point."""

    value: float
    gradient: Array
    probabilities: Array


@dataclass(frozen=True, slots=True)
class SoftmaxProblem:
    """The problem of the maps of one size.

    Attributes
    ----------
    scores : (n, k), of unit spread; work is quickest with classes one after the other in memory.
    targets : (n, k) wanted probabilities of the classes.
    weights : (n,) weights of the rows.
    ridge : (d,) positive; d = 1, 1 + k or 1 + k + k^2 says which map.
    """

    scores: Array
    targets: Array
    weights: Array
    ridge: Array

    def start(self) -> Array:
        """Return the map with slope one and nothing else."""
        theta = np.zeros(len(self.ridge))
        theta[0] = 1.0
        return theta

    def at(self, theta: Array) -> Evaluation:
        """Evaluate the objective."""
        z = logits(theta, self.scores)
        P, log_sums = _softmax(z)
        losses = log_sums - np.einsum("ij,ij->i", self.targets, z)
        value = float(self.weights @ losses) + 0.5 * float(self.ridge @ theta**2)
        residual = self.weights[:, None] * (P - self.targets)
        return Evaluation(value, pulled_back(residual, self.scores, len(theta)) + self.ridge * theta, P)

    def gap(self, theta: Array, gradient: Array) -> float:
        """Return how much lower than at a point with this gradient the objective can be at most."""
        gradient = gradient.copy()
        if theta[0] <= LEAST_SLOPE:
            gradient[0] = min(gradient[0], 0.0)  # the bound answers a gradient that would lower the slope
        return 0.5 * float(gradient**2 @ (1.0 / self.ridge))

    def certify(self, theta: Array) -> Certificate:
        """Measure the objective and how much lower it can be at most."""
        value, gradient, _ = self.at(theta)
        bound = self.gap(theta, gradient)
        return Certificate.of(value, value - bound, infeasibility=max(0.0, LEAST_SLOPE - float(theta[0])))


def logits(theta: Array, scores: Array) -> Array:
    """Return ``a s + b + M s`` for scores (n, k)."""
    k = scores.shape[1]
    z = theta[0] * scores
    if len(theta) > 1:
        z += theta[1 : 1 + k]
    if len(theta) > 1 + k:
        z += scores @ theta[1 + k :].reshape(k, k).T
    return z


def probabilities(theta: Array, scores: Array) -> Array:
    """Return the probabilities (n, k) of the classes."""
    return _softmax(logits(theta, scores))[0]


def pulled_back(residual: Array, scores: Array, size: int) -> Array:
    """Return the gradient in theta of ``<residual, z(theta)>``: the adjoint of `logits`."""
    parts = [np.array([np.einsum("ij,ij->", scores, residual)])]
    if size > 1:
        parts.append(residual.sum(axis=0))
    if size > 1 + scores.shape[1]:
        parts.append((residual.T @ scores).ravel())
    return np.concatenate(parts)


def _softmax(z: Array) -> tuple[Array, Array]:
    """Return the softmax of every row, and the logarithm of its sum of exponentials."""
    top = z.max(axis=1, keepdims=True)
    P = np.exp(z - top)
    sums = P.sum(axis=1, keepdims=True)
    P /= sums
    return P, (np.log(sums) + top)[:, 0]
