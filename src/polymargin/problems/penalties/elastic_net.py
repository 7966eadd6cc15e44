"""The elastic net: l1 and squares together."""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from polymargin.checks import check_real
from polymargin.problems.penalties.lasso import LassoPenalty
from polymargin.problems.penalties.penalty import Atoms, Penalty


@dataclass(frozen=True)
class ElasticNetPenalty(Penalty):
    """Elastic net: ``sum_kj l1_ratio tau_kj |w_kj| + (1 - l1_ratio) w_kj^2``, between "l1" and "l2".

    Coefficients become exactly zero as with l1; of variables that are alike the squares keep all instead of one.

    Parameters
    ----------
    l1_ratio : float, default=0.5
        The part of l1, between 0 and 1, both excluded: use "l2" or "l1" there.
    weights : ndarray of shape (n_classes, n_features) or None, default=None
        Positive tau; None for ones.

    References
    ----------
    H. Zou & T. Hastie (2005). Regularization and variable selection via the elastic net. Journal of the Royal
    Statistical Society B 67(2), 301-320.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from polymargin import ElasticNetPenalty, SparseSVC
    >>> X, y = load_iris(return_X_y=True)
    >>> model = SparseSVC(C=0.01, penalty=ElasticNetPenalty(l1_ratio=0.8)).fit(X, y)
    >>> model.selected_features_, model.converged_
    (array([2]), True)
    """

    is_norm: ClassVar[bool] = False
    takes_weights: ClassVar[bool] = True
    l1_ratio: float = 0.5
    weights: NDArray[np.float64] | None = None

    def __post_init__(self) -> None:
        check_real("l1_ratio", self.l1_ratio, above=0.0)
        if self.l1_ratio >= 1.0:
            raise ValueError(f"l1_ratio must be below 1 (use penalty='l1' for 1), got {self.l1_ratio!r}.")

    def value(self, coef: NDArray[np.float64]) -> float:
        """Return J(W)."""
        return float(
            np.sum(self._thresholds(coef.shape) * np.abs(coef)) + (1.0 - self.l1_ratio) * np.vdot(coef, coef)
        )

    def conjugates(self, G: NDArray[np.float64]) -> NDArray[np.float64]:
        """``min_mu sum_k max(|g_k - mu| - l1_ratio tau_k, 0)^2 / (4 (1 - l1_ratio))``: any mu gives a bound."""
        thresholds = self._thresholds(G.shape)
        left = _shrunk(G - _balancing_shifts(G, thresholds), thresholds)
        return np.sum(left**2, axis=0) / (4.0 * (1.0 - self.l1_ratio))

    def best_atoms(self, G: NDArray[np.float64], variables: NDArray[np.intp]) -> Atoms:
        """Return what soft thresholding leaves of the shifted correlations; classes below it have exactly 0."""
        G, some = G[:, variables], self.restricted(variables)
        thresholds = some._thresholds(G.shape)
        W = _shrunk(G - _balancing_shifts(G, thresholds), thresholds) / (2.0 * (1.0 - self.l1_ratio))
        # the largest coefficient takes up what rounding has left of the sum
        largest = np.abs(W).argmax(axis=0)
        W[largest, np.arange(W.shape[1])] -= W.sum(axis=0)
        costs = np.sum(thresholds * np.abs(W) + (1.0 - self.l1_ratio) * W**2, axis=0)
        return Atoms(variables, np.ascontiguousarray(W.T), costs)

    def restricted(self, variables: NDArray[np.intp]) -> "ElasticNetPenalty":
        """Return the penalty of some of the variables."""
        return self if self.weights is None else self.weighted(self.weights[:, variables])

    def at_zero(self, n_classes: int, n_features: int) -> LassoPenalty:
        """Return the l1 part."""
        return LassoPenalty(self._thresholds((n_classes, n_features)))

    def weighted(self, weights: NDArray[np.float64]) -> "ElasticNetPenalty":
        """Return the penalty with weights (k, p) of the l1 part."""
        return ElasticNetPenalty(self.l1_ratio, weights)

    def _thresholds(self, shape: tuple[int, ...]) -> NDArray[np.float64]:
        return np.full(shape, self.l1_ratio) if self.weights is None else self.l1_ratio * self.weights


def _shrunk(G: NDArray[np.float64], thresholds: NDArray[np.float64]) -> NDArray[np.float64]:
    """Soft thresholding."""
    return np.sign(G) * np.maximum(np.abs(G) - thresholds, 0.0)


def _balancing_shifts(G: NDArray[np.float64], thresholds: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the mu (p,) at which the thresholded ``g - mu`` sum to zero over the classes.

    The sum falls with mu, linearly between its kinks ``g_k ± threshold_k``: the root lies between two of them.
    """
    kinks = np.sort(np.vstack([G - thresholds, G + thresholds]), axis=0)
    sums = np.stack([_shrunk(G - mu, thresholds).sum(axis=0) for mu in kinks])
    after = np.argmax(sums <= 0.0, axis=0)  # the last sum is never positive
    before = np.maximum(after - 1, 0)
    columns = np.arange(G.shape[1])
    high, low = sums[before, columns], sums[after, columns]
    falls = high - low
    part = np.divide(high, falls, out=np.zeros_like(high), where=falls > 0.0)
    return kinks[before, columns] + part * (kinks[after, columns] - kinks[before, columns])
