"""Largest of several hinges: the dual block of an example lies on a simplex, one slot of which is the slack."""

from dataclasses import dataclass

import numpy as np

from polymargin.problems.hinge.losses import Array
from polymargin.problems.hinge.simplices import onto_simplices, simplex_slopes
from polymargin.problems.hinge.tabled import TabledLosses


@dataclass(frozen=True, slots=True)
class LargestHinges(TabledLosses):
    """``sum_i weight_i max_m [offset + <directions[y_i, m], f_i>]_+``; the last slot is the slack."""

    def margins(self, F: Array) -> Array:
        """Return the arguments of the hinges, and zero."""
        slopes = self.table.slopes(self.labels, F)
        return np.column_stack([self.offset + slopes, np.zeros(len(F))])

    def value(self, F: Array) -> float:
        """Sum of the losses at the scores `F`."""
        return float(self.weights[:, 0] @ self.margins(F).max(axis=1))

    def coefficients(self, dual: Array) -> Array:
        """Return the coefficients R that a dual point stands for."""
        return -self.table.pull(self.labels, dual[:, :-1])

    def dual_value(self, dual: Array) -> float:
        """Linear part of the dual objective."""
        return self.offset * float(dual[:, :-1].sum())

    def violation(self, dual: Array) -> tuple[float, float]:
        """Largest violation of a simplex, and the largest of them."""
        off = float(np.abs(dual.sum(axis=1) - self.weights[:, 0]).max(initial=0.0))
        return max(off, float(-dual.min(initial=0.0))), float(self.weights.max(initial=0.0))

    def resting_dual(self) -> Array:
        """Return the point with all weight in the slack."""
        dual = np.zeros((len(self.labels), self.table.n_slots + 1))
        dual[:, -1] = self.weights[:, 0]
        return dual

    def proximal(self, margins: Array, centre: Array, width: float) -> Array:
        """Return the projection onto the simplices of the step from the centre along the margins."""
        return onto_simplices(centre + self.weights * margins / width, self.weights[:, 0])

    def proximal_slopes(self, margins: Array, centre: Array, width: float) -> Array:
        """Return the derivatives of the projection."""
        return simplex_slopes(self.proximal(margins, centre, width) > 0.0, self.weights[:, 0] / width)
