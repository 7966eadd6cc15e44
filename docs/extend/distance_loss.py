"""A loss of one's own: the squared distance of the scores to the code of the class."""

from dataclasses import dataclass, replace

import numpy as np

from polymargin.extend import Loss, Losses


@dataclass(frozen=True)
class Distances(Losses):
    """``sum_i weight_i |f_i - code_i|^2`` over given examples; the margins are ``f_i - code_i``."""

    codes: np.ndarray
    weights: np.ndarray
    offset: float = 1.0

    @property
    def n_examples(self):
        return self.codes.shape[0]

    @property
    def n_classes(self):
        return self.codes.shape[1]

    @property
    def sizes(self):
        return self.weights

    @property
    def total_weight(self):
        return float(self.weights.sum())

    def restricted(self, rows):
        return replace(self, codes=self.codes[rows], weights=self.weights[rows])

    def scaled(self, factor):
        return replace(self, weights=factor * self.weights)

    def margins(self, F):
        return F - self.codes

    def value(self, F):
        return float((self.weights * self.margins(F) ** 2).sum())

    def coefficients(self, dual):
        return dual.mean(axis=1, keepdims=True) - dual  # minus the adjoint, on scores that sum to zero

    def dual_value(self, dual):
        return -float((dual * self.codes).sum()) - 0.25 * float((dual**2 / self.weights).sum())

    def violation(self, dual):
        return 0.0, 1.0  # every dual point is allowed

    def resting_dual(self):
        return np.zeros_like(self.codes)

    def proximal(self, margins, centre, width):
        return (self.weights * margins + width * centre) / (0.5 + width)


class DistanceLoss(Loss):
    """The loss before there are examples: codes are 1 for the own class, -1/(k-1) for the others."""

    def over(self, labels, costs):
        k = costs.shape[1]
        codes = (k * np.eye(k)[labels] - 1.0) / (k - 1)
        return Distances(codes, costs.max(axis=1, keepdims=True))
