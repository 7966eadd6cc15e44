"""What a penalty of the sparse machines is: the protocol, and the atoms by which solvers know it."""

from dataclasses import dataclass
from enum import Enum
from typing import Any, ClassVar, Protocol

import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True, slots=True)
class Atoms:
    """Coefficients of single variables: `directions[m]` (k,) of `variables[m]`, whose penalty is `costs[m]`."""

    variables: NDArray[np.intp]
    directions: NDArray[np.float64]
    costs: NDArray[np.float64]

    def at(self, positions: Any) -> "Atoms":
        """Return the atoms at the given positions."""
        return Atoms(self.variables[positions], self.directions[positions], self.costs[positions])


class PriceRule(Enum):
    """How a compiled walk along C finds the best atom of a variable."""

    PAIRS = "the pair of classes of steepest difference"
    SIGNS = "signs about the weighted median"
    PREFIXES = "the classes of largest correlation"
    CUTS = "one of all sets of classes"


class Penalty(Protocol):
    """``J(W) = sum_j J_j(w_j)`` over the variables j, for coefficients w_j (k,) that sum to zero over the classes.

    Each J_j is convex, even, zero at zero and positive elsewhere. It is either a norm (`is_norm`), described by
    its polar, or grows faster than a norm and is described by its conjugate, which is finite for every g:

        polar_j(g) = max { g.w : 1'w = 0, J_j(w) <= 1 },    J_j*(g) = max { g.w - J_j(w) : 1'w = 0 }.

    Both are attained at an *atom* w, which `best_atoms` returns. Atoms are all that the general solver needs.

    A penalty of your own inherits from this class and defines `value`, `best_atoms` and, if it is a norm,
    `polars`, else `conjugates`. All other parts have defaults; they declare what special methods may use.
    `polymargin.extend.check_penalty` verifies all of it.
    """

    is_norm: ClassVar[bool] = True
    """Whether every J_j is a norm."""
    takes_weights: ClassVar[bool] = False
    """Whether `weighted` returns the penalty with other weights, as adaptive fits need."""
    squares: ClassVar[float] = 0.0
    """If positive, J is this multiple of the sum of squares, so that hinge machines solve the problem."""

    def value(self, coef: NDArray[np.float64]) -> float:
        """Return J(W) for W (k, p)."""
        ...

    def best_atoms(self, G: NDArray[np.float64], variables: NDArray[np.intp]) -> Atoms:
        """Return for each of `variables` the atom that attains its polar, or conjugate, at G (k, p)."""
        ...

    def polars(self, G: NDArray[np.float64], *, above: float = 1.0) -> NDArray[np.float64]:
        """Return the polar (p,) of every variable at G (k, p); of one not greater than `above` a bound may do."""
        raise TypeError(f"{type(self).__name__} must define `polars`, or set is_norm to False.")

    def conjugates(self, G: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return the conjugate (p,) of every variable at G (k, p), of a penalty that is no norm."""
        raise TypeError(f"{type(self).__name__} must define `conjugates`, or set is_norm to True.")

    def combine(self, atoms: Atoms, multipliers: NDArray[np.float64], n_features: int) -> NDArray[np.float64]:
        """Return W (k, p), the sum of the atoms times their multipliers, with exact zeros and ties."""
        return sum_of_atoms(atoms, multipliers, n_features)

    def restricted(self, variables: NDArray[np.intp]) -> "Penalty":
        """Return the penalty of some of the variables; itself where all variables are treated alike."""
        return self

    def at_zero(self, n_classes: int, n_features: int) -> "Penalty | None":
        """Return the norm that J is near zero, which says when a variable enters; None if it is no norm there."""
        return self if self.is_norm else None

    def price_rule(self, n_classes: int, n_features: int) -> tuple[PriceRule, NDArray[np.float64]] | None:
        """Return a compiled rule for the best atom and its table of weights; None where there is none."""
        return None

    def sizes(self, coef: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return what an adaptive penalty weighs, (m, p), at the coefficients (k, p) of an earlier fit."""
        return np.abs(coef)

    def weighted(self, weights: NDArray[np.float64]) -> "Penalty":
        """Return the penalty with positive weights, in the shape of `sizes`."""
        raise TypeError(f"{type(self).__name__} takes no weights.")


def sum_of_atoms(atoms: Atoms, multipliers: NDArray[np.float64], n_features: int) -> NDArray[np.float64]:
    """Add atoms one by one: classes that every atom of a variable treats alike get identical sums."""
    coef = np.zeros((n_features, atoms.directions.shape[1]))
    np.add.at(coef, atoms.variables, multipliers[:, None] * atoms.directions)
    return coef.T
