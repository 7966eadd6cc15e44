"""Smooth losses of maxima over the classes, straight from a truncation on: the convex steps of the robust SVM."""

from dataclasses import dataclass

import numpy as np
from scipy.special import expit, logit, xlogy

from polymargin.problems.hinge.losses import Array, Losses
from polymargin.problems.hinge.simplices import PairLosses, onto_simplices

BISECTIONS = 60


@dataclass(frozen=True, slots=True)
class Curve:
    """A smooth loss as ``phi(xi) = l(-xi)``, continued by its tangent from the truncation on."""

    loss: str
    truncation: float

    @property
    def steepest(self) -> float:
        """Largest slope."""
        if self.loss == "exponential":
            return float(np.exp(-self.truncation))
        return float(expit(-self.truncation))

    def value(self, xi: Array) -> Array:
        """Return phi."""
        inside = np.minimum(xi, -self.truncation)
        return self.free_value(inside) + self.steepest * (xi - inside)

    def free_value(self, z: Array) -> Array:
        """Return the loss without its continuation."""
        return np.exp(z) if self.loss == "exponential" else np.logaddexp(0.0, z)

    def slope(self, z: Array) -> Array:
        """Return the derivative of the loss without its continuation."""
        return np.exp(z) if self.loss == "exponential" else expit(z)

    def curvature(self, z: Array) -> Array:
        """Return the second derivative of the loss without its continuation."""
        slope = self.slope(z)
        return slope if self.loss == "exponential" else slope * expit(-z)

    def conjugate(self, t: Array) -> Array:
        """Return ``sup_xi t xi - phi(xi)`` for t in [0, steepest]."""
        return xlogy(t, t) - t if self.loss == "exponential" else xlogy(t, t) + xlogy(1.0 - t, 1.0 - t)

    def conjugate_slope(self, t: Array) -> Array:
        """Return the derivative of the conjugate."""
        return np.log(t) if self.loss == "exponential" else logit(t)


@dataclass(frozen=True, slots=True)
class CurvedLosses(PairLosses):
    """``sum_p pair_weight_p phi(max_{m != anchor_p} f_im - f_i,anchor_p)`` for a smooth curve phi.

    As phi has slopes up to `curve.steepest`, the dual block of a pair lies on a simplex, of the size
    ``weight_p = pair_weight_p curve.steepest``; the slot `anchor_p` holds what is left of the steepest slope.
    """

    curve: Curve

    shape = "curved"

    @property
    def pair_weight(self) -> Array:
        """Weights of the losses."""
        return self.weight / self.curve.steepest

    def value(self, F: Array) -> float:
        """Sum of the losses at the scores `F`."""
        others = self.margins(F)
        others.put(self.own, -np.inf)
        return float(self.pair_weight @ self.curve.value(others.max(axis=1)))

    def dual_value(self, dual: Array) -> float:
        """Return the part of the dual objective that depends on single blocks: minus the conjugates."""
        others = dual.copy()
        others.put(self.own, 0.0)
        fraction = np.minimum(others.sum(axis=1) / self.pair_weight, self.curve.steepest)
        return -float(self.pair_weight @ self.curve.conjugate(fraction))

    def proximal(self, margins: Array, centre: Array, width: float) -> Array:
        """Return the maximiser: of all but the slack for a given total, and of the total by bisection."""
        scale = width / self.weight
        target = centre + margins / scale[:, None]
        slack = target.take(self.own)
        others = target.copy()
        others.put(self.own, -np.inf)
        low, high = np.zeros(len(slack)), self.weight.copy()
        for _ in range(BISECTIONS):
            total = 0.5 * (low + high)
            threshold = _threshold(others, total)
            slope = scale * (threshold + self.weight - total - slack)
            rises = slope > self.curve.conjugate_slope(total / self.pair_weight)
            low, high = np.where(rises, total, low), np.where(rises, high, total)
        dual = onto_simplices(np.where(np.isneginf(others), -1e300, others), total)
        dual.put(self.own, self.weight - total)
        return dual


def _threshold(points: Array, total: Array) -> Array:
    """Return what has to be taken off the entries so that the positive parts sum to `total`."""
    descending = -np.sort(-points, axis=1)[:, :-1]  # the slack, minus infinity, comes last
    excess = (np.cumsum(descending, axis=1) - total[:, None]) / np.arange(1, descending.shape[1] + 1)
    last = np.maximum((descending > excess).sum(axis=1) - 1, 0)
    return excess[np.arange(len(points)), last]


def pairs(losses: Losses, method: str) -> PairLosses:
    """Return the losses if they are over pairs of examples and classes; a `method` that needs it says so."""
    if not isinstance(losses, PairLosses):
        raise TypeError(f"{method} is for losses over pairs of examples and classes, got {type(losses).__name__}.")
    return losses


def curved(losses: Losses, method: str) -> CurvedLosses:
    """Return the losses if they are smooth losses of maxima; a `method` that needs it says so."""
    if not isinstance(losses, CurvedLosses):
        raise TypeError(f"{method} is for smooth losses of maxima, got {type(losses).__name__}.")
    return losses
