"""The trace-norm machine with the smoothed hinge: convex, and in need of the rows themselves."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from polymargin.problems.certificate import Certificate


@dataclass(frozen=True, slots=True)
class SmoothedTraceProblem:
    """``min_Z C sum_il w_i h(y_il (A Z)_il) + 2 sqrt(relation_penalty) ||Z||_*``, over the signs ``y_il != 0``.

    ``h(z)`` is the smoothed hinge of Rennie & Srebro (2005): ``1/2 - z`` below 0, ``(1 - z)^2 / 2`` up to 1,
    then 0.

    Attributes
    ----------
    A : (n, q) rows with a last column of -1.
    signs : (n, p) 1, -1, or 0 for rows that take no part in a task.
    weights : (n,) weights of the rows.
    """

    A: NDArray[np.float64]
    signs: NDArray[np.float64]
    weights: NDArray[np.float64]
    C: float
    relation_penalty: float

    @property
    def radius(self) -> float:
        """Weight of the trace norm: largest spectral norm of a dual point's ``A'U``."""
        return 2.0 * float(np.sqrt(self.relation_penalty))

    def value(self, margins: NDArray[np.float64]) -> float:
        """Return the summed losses at the margins ``y * (A Z)``."""
        short = np.clip(1.0 - margins, 0.0, 1.0)
        losses = short * (1.0 - margins - short / 2)
        return self.C * float(self.weights @ (losses * np.abs(self.signs)).sum(axis=1))

    def slopes(self, margins: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return ``u = -h'(margin)``, in [0, 1]: the dual point that belongs to the margins."""
        return np.clip(1.0 - margins, 0.0, 1.0)

    def pull(self, u: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return ``A'U``, the negative gradient of the losses in Z at the dual point u."""
        return self.A.T @ (self.C * self.weights[:, None] * self.signs * u)

    def certify(self, Z: NDArray[np.float64]) -> Certificate:
        """Measure Z against the dual ``max C sum w (u - u^2/2)``, ``0 <= u <= 1``, ``||A'U|| <= radius``.

        The dual point is the one that belongs to the margins of Z, scaled into the feasible set.
        """
        margins = self.signs * (self.A @ Z)
        primal = self.value(margins) + self.radius * float(np.linalg.svd(Z, compute_uv=False).sum())
        u = self.slopes(margins)
        largest = float(np.linalg.norm(self.pull(u), 2))
        counted = self.C * self.weights[:, None] * np.abs(self.signs)
        linear, square = float(np.vdot(counted, u)), float(np.vdot(counted, u * u))
        scale = min(1.0, linear / square if square > 0 else 1.0)
        if largest > 0:
            scale = min(scale, self.radius / largest)
        return Certificate.of(primal, scale * linear - scale**2 * square / 2)
