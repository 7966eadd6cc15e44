"""What a loss is to a solver: a convex function of the scores, known by its margins, its value and its dual.

A loss over n examples of k classes is a sum over blocks of a convex function phi of *margins* that are affine in
the scores F (n, k), and its dual point has a variable for every margin:

    sum of losses(F) = sum_b phi_b(m_b(F)),     m(F) = m(0) + A F,
    R(dual) = -A' dual,                         dual value = <m(0), dual> - sum_b phi_b*(dual_b).

So for every dual point of finite conjugate, by Fenchel and Young,

    value(F) >= dual_value(dual) - <R(dual), F>,

and a problem that adds ``1/2 ||W||^2`` has the duality gap that `problems.hinge.problem` certifies. `Losses` is
this object over given examples; `Loss` is what a user chooses, before there are any.
"""

from abc import ABC, abstractmethod
from typing import ClassVar, Literal, Self

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]

Shape = Literal["box", "simplex", "curved", "other"]


class Losses(ABC):
    """A convex loss of the scores of given examples.

    A contributed loss gives the methods marked abstract; `polymargin.extend.check_loss` verifies them. The other
    methods follow from these. What special methods need beyond the protocol is declared:

    Attributes
    ----------
    n_examples, n_classes : sizes of the scores.
    offset : the margin that the losses ask for, the unit of scores.
    shape : what the dual blocks are: boxes, simplices, simplices under a smooth curve, or anything else.
    sees_single_scores : whether hinge j of every example sees the score of class j and nothing else.
    sees_differences : whether the margins are differences to the score of the own class.
    is_compiled : whether the compiled loops know the losses.
    is_smooth : whether the losses have second derivatives, but for some points.
    zero_sum : whether score functions that sum to zero are what the loss is made for; if not, R is not centred.
    """

    n_examples: int
    n_classes: int
    offset: float
    shape: ClassVar[Shape] = "other"
    is_smooth: ClassVar[bool] = False
    zero_sum: ClassVar[bool] = True

    @property
    def sees_single_scores(self) -> bool:
        """Whether hinge j of every example sees the score of class j and nothing else."""
        return False

    @property
    def sees_differences(self) -> bool:
        """Whether the margins are differences to the score of the own class, one block to an example."""
        return False

    @property
    def is_compiled(self) -> bool:
        """Whether the compiled loops know the losses."""
        return False

    @property
    @abstractmethod
    def sizes(self) -> Array:
        """Natural sizes of the dual variables, (blocks, slots) or (blocks, 1), proportional to the weights."""

    @property
    @abstractmethod
    def total_weight(self) -> float:
        """Sum of the weights."""

    @abstractmethod
    def restricted(self, rows: NDArray[np.intp]) -> Self:
        """Return the losses of the examples `rows`."""

    @abstractmethod
    def scaled(self, factor: float) -> Self:
        """Return `factor` times the losses."""

    @abstractmethod
    def margins(self, F: Array) -> Array:
        """Return the margins (blocks, slots) at the scores `F` (n, k): an affine function."""

    @abstractmethod
    def value(self, F: Array) -> float:
        """Return the sum of the losses at the scores `F`."""

    @abstractmethod
    def coefficients(self, dual: Array) -> Array:
        """Return R (n, k), minus the adjoint of the linear part of `margins`; rows of zero sum if `zero_sum`."""

    @abstractmethod
    def dual_value(self, dual: Array) -> float:
        """Return what the losses add to the dual objective: ``<m(0), dual> - conjugate``."""

    @abstractmethod
    def violation(self, dual: Array) -> tuple[float, float]:
        """Return the largest violation of the conjugate's domain, and what it is relative to."""

    @abstractmethod
    def resting_dual(self) -> Array:
        """Return a dual point in the domain for which R = 0."""

    @abstractmethod
    def proximal(self, margins: Array, centre: Array, width: float) -> Array:
        """Return the dual point that maximises ``<dual, margins> - conjugate - width/2 |dual - centre|^2/sizes``.

        It lies in the domain whatever the margins. Slots of size zero get zero.
        """

    def proximal_slopes(self, margins: Array, centre: Array, width: float) -> Array:
        """Return the derivatives (blocks, slots, slots) of `proximal` by the margins; here by differences."""
        step = 1e-6 * max(width, 1e-6)
        slopes = np.empty((*margins.shape, margins.shape[1]))
        for slot in range(margins.shape[1]):
            moved = np.zeros(margins.shape[1])
            moved[slot] = step
            after = self.proximal(margins + moved, centre, width)
            before = self.proximal(margins - moved, centre, width)
            slopes[:, :, slot] = (after - before) / (2.0 * step)
        return 0.5 * (slopes + slopes.transpose(0, 2, 1))

    def dual_of(self, R: Array) -> Array:
        """Return the dual point of given coefficients, where it can be told from them."""
        raise TypeError(f"The dual point of {type(self).__name__} cannot be told from its coefficients.")

    def infeasibility(self, dual: Array) -> float:
        """Return the largest violation of the conjugate's domain, relative to its scale."""
        return relative(*self.violation(dual))


class Loss(ABC):
    """A loss as a user chooses it, before there are examples: ``MulticategorySVC(loss=MyLoss())``."""

    @abstractmethod
    def over(self, labels: NDArray[np.intp], costs: Array) -> Losses:
        """Return the loss over examples.

        Parameters
        ----------
        labels : (n,) class codes.
        costs : (n, k) what each class would cost each example, its weight and C included; zero for the own class.
        """

    def check_costs(self, labels: NDArray[np.intp], costs: Array) -> None:  # noqa: B027
        """Raise a ValueError for costs that the loss cannot use; by default any are welcome.

        Parameters
        ----------
        labels : (n,) class codes.
        costs : (n, k) what each class would cost each example; of a cost matrix, the k classes are the examples.
        """


def relative(violation: float, scale: float) -> float:
    """Return a violation relative to its scale."""
    return violation / max(scale, np.finfo(np.float64).tiny)
