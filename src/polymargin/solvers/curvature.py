"""What to say of a kernel matrix that is not positive semi-definite."""

import numpy as np
from numpy.typing import NDArray


class IndefiniteKernelError(ValueError):
    """The kernel matrix has a direction of negative curvature, so that the problem has no solution."""


def check_curvature(lowest: float, K: NDArray[np.float64]) -> None:
    """Raise if a curvature that an inner loop met is below zero by more than rounding explains."""
    if lowest < -1e-6 * float(np.abs(K.diagonal()).max()):
        raise IndefiniteKernelError(
            "The kernel matrix must be positive semi-definite, but a direction of curvature "
            f"{lowest:.3g} was found."
        )
