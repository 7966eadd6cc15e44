"""The group lasso over classes: a variable enters for all classes, or stays out."""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from polymargin.problems.penalties.penalty import Atoms, Penalty


@dataclass(frozen=True)
class GroupLassoPenalty(Penalty):
    """Group lasso over classes: ``sum_j tau_j (sum_k w_kj^2)^(1/2)``.

    The coefficients of a variable are zero for all classes or for none, and are shrunk together. Their polar is a
    second-order cone, which cuts along unit vectors describe.

    Parameters
    ----------
    weights : ndarray of shape (1, n_features) or None, default=None
        Positive tau; None for ones.

    References
    ----------
    M. Yuan & Y. Lin (2006). Model selection and estimation in regression with grouped variables. Journal of the
    Royal Statistical Society B 68(1), 49-67.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from polymargin import GroupLassoPenalty, SparseSVC
    >>> X, y = load_iris(return_X_y=True)
    >>> model = SparseSVC(C=0.05, penalty=GroupLassoPenalty()).fit(X, y)
    >>> model.selected_features_, model.converged_
    (array([2]), True)
    """

    takes_weights: ClassVar[bool] = True
    weights: NDArray[np.float64] | None = None

    def value(self, coef: NDArray[np.float64]) -> float:
        """Return J(W)."""
        return float(np.sum(self._taus(coef.shape[1]) * np.linalg.norm(coef, axis=0)))

    def polars(self, G: NDArray[np.float64], *, above: float = 1.0) -> NDArray[np.float64]:
        """``|g - mean| / tau``."""
        return np.linalg.norm(G - G.mean(axis=0), axis=0) / self._taus(G.shape[1])

    def best_atoms(self, G: NDArray[np.float64], variables: NDArray[np.intp]) -> Atoms:
        """Return the centred correlations at length one; where these are zero, any direction."""
        directions = (G[:, variables] - G[:, variables].mean(axis=0)).T
        directions[~directions.any(axis=1), :2] = 1.0, -1.0
        directions /= np.linalg.norm(directions, axis=1)[:, None]
        return Atoms(variables, directions, self._taus(G.shape[1])[variables])

    def restricted(self, variables: NDArray[np.intp]) -> "GroupLassoPenalty":
        """Return the penalty of some of the variables."""
        return self if self.weights is None else GroupLassoPenalty(self.weights[:, variables])

    def sizes(self, coef: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return the lengths (1, p) of the coefficients of the variables."""
        return np.linalg.norm(coef, axis=0)[None]

    def weighted(self, weights: NDArray[np.float64]) -> "GroupLassoPenalty":
        """Return the penalty with one weight per variable, (1, p)."""
        return GroupLassoPenalty(weights)

    def _taus(self, n_features: int) -> NDArray[np.float64]:
        return np.ones(n_features) if self.weights is None else self.weights[0]
