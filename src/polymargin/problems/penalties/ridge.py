"""The sum of squares, which selects nothing."""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from polymargin.problems.penalties.penalty import Atoms, Penalty


@dataclass(frozen=True)
class RidgePenalty(Penalty):
    """l2: ``sum_kj w_kj^2``."""

    is_norm: ClassVar[bool] = False
    squares: ClassVar[float] = 1.0

    def value(self, coef: NDArray[np.float64]) -> float:
        """Return J(W)."""
        return float(np.vdot(coef, coef))

    def conjugates(self, G: NDArray[np.float64]) -> NDArray[np.float64]:
        """``|g - mean|^2 / 4``."""
        return np.sum((G - G.mean(axis=0)) ** 2, axis=0) / 4.0

    def best_atoms(self, G: NDArray[np.float64], variables: NDArray[np.intp]) -> Atoms:
        """Return half of the centred correlations."""
        directions = (G[:, variables] - G[:, variables].mean(axis=0)).T / 2.0
        return Atoms(variables, directions, np.sum(directions**2, axis=1))
