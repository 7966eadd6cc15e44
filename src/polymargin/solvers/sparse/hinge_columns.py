"""The hinges of a machine as columns of the dual linear program of the sparse machines."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from polymargin.problems.hinge import PolyhedralLosses, hinges, simplices
from polymargin.problems.hinge.tables import Differences


@dataclass(frozen=True, slots=True)
class HingeColumns:
    """The columns of the master, one per hinge: its multiplier u_m, ``R = -sum_m u_m e_example direction'``."""

    example: NDArray[np.intp]
    slot: NDArray[np.intp]
    label: NDArray[np.intp]
    upper: NDArray[np.float64]
    directions: NDArray[np.float64]
    offset: float
    weight: NDArray[np.float64] | None
    shape: tuple[int, int]

    @classmethod
    def of(cls, of: PolyhedralLosses) -> "HingeColumns":
        """List the hinges of the losses, those of an example together."""
        if of.shape == "box":
            losses = hinges(of, "The cutting-plane method")
            example, slot = map(np.ascontiguousarray, np.nonzero(losses.upper))
            upper = losses.upper[example, slot]
            return cls(
                example, slot, losses.labels[example], upper, losses.table.directions, losses.offset, None,
                losses.upper.shape,
            )  # fmt: skip
        maxima = simplices(of, "The cutting-plane method")
        if not maxima.one_each:
            raise TypeError("The cutting-plane method needs one maximum for each example.")
        k = maxima.n_classes
        directions = Differences(k).directions
        example, slot = map(np.ascontiguousarray, np.nonzero(maxima.anchor[:, None] != np.arange(k)))
        return cls(
            example, slot, maxima.anchor[example], maxima.weight[example], directions, maxima.offset,
            maxima.weight, (maxima.n_examples, k),
        )  # fmt: skip

    def along(self, directions: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return what a unit of every multiplier adds to ``R_i . a``, for directions a (m, k): (m, columns)."""
        table = -np.einsum("ysk,mk->mys", self.directions, directions)
        return table[:, self.label, self.slot]

    def dual(self, u: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return multipliers as the dual point (n, k) of the losses, inside its bounds to the last bit."""
        dual = np.zeros(self.shape)
        dual[self.example, self.slot] = np.clip(u, 0.0, self.upper)
        if self.weight is not None:
            dual /= np.maximum(1.0, dual.sum(axis=1) / self.weight)[:, None]
            anchor = np.zeros(self.shape[0], dtype=np.intp)
            anchor[self.example] = self.label
            dual[np.arange(len(dual)), anchor] = self.weight - dual.sum(axis=1)
        return dual
