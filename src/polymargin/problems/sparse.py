"""The sparse machines of Guo (2010): a hinge loss with a penalty that zeroes or fuses coefficients of a variable.

    min  J(W) + C * sum of losses(F),    F = X W' + 1 b',   columns of W (k, p) and b sum to zero.

What makes it scale is the dual,

    max  C * offset * sum(u)   over the dual sets of the losses,   columns of R(u) sum to zero,
         polar_j(G_j) <= 1 for every variable j,                   G = C R(u)'X (k, p),

where the polars of `problems.penalties` make of every variable a set of linear constraints, one per atom, of which
few matter. R(u) are the coefficients of `problems.hinge` that a dual point u stands for. Of a penalty that is no
norm the conjugates ``J_j*(G_j)`` are subtracted from the objective instead.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.extmath import safe_sparse_dot

from polymargin.problems.certificate import Certificate
from polymargin.problems.hinge import PolyhedralLosses
from polymargin.problems.penalties import Penalty


@dataclass(frozen=True, slots=True)
class SparsePoint:
    """Coefficients (k, p), intercepts (k,) and dual variables (n, k) of the losses, in units of C."""

    coef: NDArray[np.float64]
    intercept: NDArray[np.float64]
    dual: NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class SparseProblem:
    """One sparse machine on given data.

    Attributes
    ----------
    X : (n, p) rows, dense or sparse.
    losses : the tables of the hinge machine, without C.
    penalty : J.
    C : weight of the losses.
    """

    X: Any
    losses: PolyhedralLosses
    penalty: Penalty
    C: float = 1.0

    def correlations(self, dual: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return G = C R'X (k, p)."""
        R = self.C * self.losses.coefficients(dual)
        return safe_sparse_dot(R.T, self.X, dense_output=True)

    def correlation_scale(self, dual: NDArray[np.float64]) -> float:
        """Return the largest sum of the absolute terms of an entry of G, the unit of its rounding error."""
        R = self.C * np.abs(self.losses.coefficients(dual))
        return float(safe_sparse_dot(R.T, abs(self.X), dense_output=True).max())

    def scores(self, point: SparsePoint) -> NDArray[np.float64]:
        """Return F (n, k)."""
        active = np.flatnonzero(point.coef.any(axis=0))
        return safe_sparse_dot(self.X[:, active], point.coef[:, active].T, dense_output=True) + point.intercept

    def primal(self, point: SparsePoint) -> float:
        """Return the objective of W and b."""
        return self.penalty.value(point.coef) + self.C * self.losses.value(self.scores(point))

    def prices(self, G: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return the polars of all variables (p,) at G, or the conjugates of a penalty that is no norm."""
        return self.penalty.polars(G) if self.penalty.is_norm else self.penalty.conjugates(G)

    def dual(self, dual: NDArray[np.float64], prices: NDArray[np.float64]) -> float:
        """Return the dual objective, after scaling the dual point until every polar is at most 1.

        R, and with it every polar, is linear in the multipliers of the hinges (the slack of a simplex takes up
        what they leave), so the scaled multipliers are feasible for all variables, whatever a solver looked at.
        """
        linear = self.C * self.losses.dual_value(dual)
        if self.penalty.is_norm:
            return linear / max(1.0, float(prices.max()))
        return linear - float(prices.sum())

    def certify(self, point: SparsePoint) -> Certificate:
        """Measure a point against the full problem."""
        prices = self.prices(self.correlations(point.dual))
        R = self.losses.coefficients(point.dual)
        mass = max(float(np.abs(R).sum(axis=0).max()), np.finfo(np.float64).tiny)
        size = max(float(np.abs(point.coef).max()), np.finfo(np.float64).tiny)
        infeasibility = max(
            self.losses.infeasibility(point.dual),
            float(np.abs(R.sum(axis=0)).max()) / mass,
            float(np.abs(point.coef.sum(axis=0)).max()) / size,
        )
        return Certificate.of(self.primal(point), self.dual(point.dual, prices), infeasibility=infeasibility)
