"""What losses with one block per example and margins from a table have in common."""

from dataclasses import dataclass, replace
from typing import Self

import numpy as np
from numpy.typing import NDArray

from polymargin.problems.hinge.losses import Array, Losses
from polymargin.problems.hinge.tables import Table


@dataclass(frozen=True, slots=True)
class TabledLosses(Losses):
    """Losses of the margins ``offset + <directions[y_i, m], f_i>``.

    Attributes
    ----------
    labels : (n,) class codes y.
    weights : (n, slots) or (n, 1), not negative.
    table : what slot m of an example of class y sees: `directions[y, m]`.
    offset : the margin.
    """

    labels: NDArray[np.intp]
    weights: Array
    table: Table
    offset: float

    @property
    def n_examples(self) -> int:  # type: ignore[override]
        """Number of examples."""
        return len(self.labels)

    @property
    def n_classes(self) -> int:  # type: ignore[override]
        """Number of classes."""
        return self.table.n_classes

    @property
    def sizes(self) -> Array:
        """The weights."""
        return self.weights

    @property
    def total_weight(self) -> float:
        """Sum of the weights."""
        return float(self.weights.sum())

    def restricted(self, rows: NDArray[np.intp]) -> Self:
        """Return the losses of the examples `rows`."""
        return replace(self, labels=self.labels[rows], weights=self.weights[rows])

    def scaled(self, factor: float) -> Self:
        """Return `factor` times the losses."""
        return replace(self, weights=factor * self.weights)

    def margins(self, F: Array) -> Array:
        """Return the margins at the scores `F`."""
        return self.offset + self.table.slopes(self.labels, F)

    def coefficients(self, dual: Array) -> Array:
        """Return the coefficients R that a dual point stands for."""
        return -self.table.pull(self.labels, dual)
