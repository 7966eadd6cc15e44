"""What a loss adds to the decomposition: violating examples, and steps on a working set."""

from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from polymargin.problems.hinge import HingeProblem


@dataclass(frozen=True, slots=True)
class Burst:
    """How long one stretch of native work lasts: until the violation has fallen by a factor, or so many steps.

    A curvature below zero by more than a part `negative_curvature` of the kernel's largest ends all.
    """

    reduction: float
    max_steps: int
    negative_curvature: float


class InnerLoop(Protocol):
    """What a loss adds to the frame.

    Attributes
    ----------
    takes_all : whether steps are so cheap that all examples are best taken at once where the matrix is at hand.
    """

    takes_all: bool

    def extremes(
        self, dual: NDArray[np.float64], H: NDArray[np.float64], intercept: NDArray[np.float64], count: int
    ) -> NDArray[np.intp]:
        """Return the examples of the most violating moves, `count` for each kind of move."""
        ...

    def improve(
        self,
        rows: NDArray[np.intp],
        K: NDArray[np.float64],
        dual: NDArray[np.float64],
        H: NDArray[np.float64],
        burst: Burst,
    ) -> tuple[NDArray[np.float64], float]:
        """Return a better dual of the examples `rows`, given their block of kernel matrix, dual and scores.

        Also the number of entries of tables over examples and classes that the steps went over.
        """
        ...


class IndefiniteKernelError(ValueError):
    """The kernel matrix has a direction of negative curvature, so that the problem has no solution."""


def check_curvature(lowest: float, K: NDArray[np.float64], rounding: float) -> None:
    """Raise if a curvature that an inner loop met is below zero by more than rounding explains."""
    if lowest < -rounding * float(np.abs(K.diagonal()).max()):
        raise IndefiniteKernelError(
            "The kernel matrix must be positive semi-definite, but a direction of curvature "
            f"{lowest:.3g} was found."
        )


def check_bound(problem: HingeProblem, dual: NDArray[np.float64], bound: float) -> None:
    """Raise if the lower bound of a dual point is above zero scores' objective: the kernel is indefinite then.

    Not where the rounding errors of the kernel values explain it, which only the certificate can tell of.
    """
    at_zero = problem.losses.value(np.zeros((problem.gram.n, problem.losses.n_classes)))
    entries = np.abs(problem.coefficients(dual)).sum(axis=0)
    largest = float(np.abs(problem.gram.diagonal()).max(initial=0.0))
    rounding = float(np.finfo(np.float64).eps) * largest * float(entries @ entries)
    if bound - at_zero > float(np.sqrt(np.finfo(np.float64).eps)) * at_zero + rounding:
        raise IndefiniteKernelError(
            f"The kernel matrix must be positive semi-definite, but a lower bound of {bound:.6g} was found for an "
            f"objective that is {at_zero:.6g} at zero scores."
        )
