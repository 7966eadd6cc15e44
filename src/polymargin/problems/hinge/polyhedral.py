"""Losses whose dual points form a polyhedron, boxes or simplices: what methods that walk on faces ask of them."""

from abc import abstractmethod
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from polymargin.problems.hinge.losses import Array, Losses

AT_BOUND = 1e-8
"""Distance from a bound, relative to the size of the box or simplex, up to which a variable surely is at it."""

LEFT_INSIDE = 1e-3
"""Part of its bound up to which a variable that is not free may be nothing but an interior point's distance."""


@dataclass(frozen=True, slots=True)
class Moves:
    """Directions of a face: step m adds `direction[m]` to row `example[m]` of R and `gain[m]` to the linear dual.

    It adds one to ``dual[example, slot]`` and, on a simplex, takes one from ``dual[example, base]``.
    """

    example: NDArray[np.intp]
    slot: NDArray[np.intp]
    base: NDArray[np.intp] | None
    direction: Array
    gain: Array

    def applied(self, dual: Array, steps: Array) -> Array:
        """Return the point after the steps."""
        after = dual.copy()
        after[self.example, self.slot] += steps
        if self.base is not None:
            np.subtract.at(after, (self.example, self.base), steps)
        return after


class MovableFace(Protocol):
    """The entries of a dual point that are off their bounds, moved by multipliers t (k,) of the column sums of R.

    Attributes
    ----------
    free : where they are in the dual point.
    n_free : how many there are.
    """

    @property
    def free(self) -> NDArray:
        """Where they are."""
        ...

    @property
    def n_free(self) -> int:
        """Number of entries, or blocks, that can move."""
        ...

    def entries(self, t: Array) -> Array:
        """Return the free entries at t."""
        ...

    def sums(self, t: Array) -> tuple[Array, Array]:
        """Return the column sums of what the entries contribute to -R, and the Jacobian of these sums."""
        ...


@dataclass(frozen=True, slots=True)
class CompiledTables:
    """The losses as the compiled loops take them.

    Attributes
    ----------
    example, label : (blocks,) example and class of every block.
    bound : (blocks, slots) or (blocks, 1) upper bounds, or sizes of the simplices.
    coupling : what the steps of a block's variables do to each other through R.
    simplex, centred : whether blocks are simplices; whether the hinges see single scores.
    """

    example: NDArray[np.int32]
    label: NDArray[np.int32]
    bound: Array
    coupling: float
    simplex: bool
    centred: bool


class PolyhedralDomain(Losses):
    """Losses whose dual points form a polyhedron, on which they can be balanced: columns of R that sum to zero."""

    @property
    @abstractmethod
    def block_labels(self) -> NDArray[np.intp]:
        """Class of every block."""

    @abstractmethod
    def present_pairs(self) -> NDArray[np.bool_]:
        """Tell which pairs (own class, slot) have variables at all."""

    @abstractmethod
    def usable_pairs(self, present: NDArray[np.bool_]) -> NDArray[np.bool_]:
        """Tell which pairs (own class, slot), of those `present`, can be other than zero where R is balanced."""

    @abstractmethod
    def cleared(self, dual: Array, usable: NDArray[np.bool_]) -> Array:
        """Return the point with the variables of unusable pairs at zero."""

    @abstractmethod
    def centre(self, usable: NDArray[np.bool_]) -> Array:
        """Return the centre of the polyhedron, variables of unusable pairs at zero."""

    @abstractmethod
    def movable_face(self, dual: Array) -> MovableFace:
        """Return the entries of a dual point that are off their bounds."""


class PolyhedralLosses(PolyhedralDomain):
    """Maxima of finitely many affine functions of the scores: the dual objective is linear on the polyhedron."""

    @abstractmethod
    def gap_per_example(self, dual: Array, F: Array) -> Array:
        """Return every block's Fenchel-Young gap, its part in the duality gap: none is negative."""

    @abstractmethod
    def within_bounds(self, dual: Array) -> Array:
        """Return the nearby dual point that satisfies its bounds and sums to rounding."""

    @abstractmethod
    def clipped(self, dual: Array) -> Array:
        """Return the variables clipped to their bounds, each on its own."""

    @abstractmethod
    def snapped(self, dual: Array) -> Array:
        """Return the point with the entries that are on their bound to rounding put there."""

    @abstractmethod
    def pinned(self, reference: Array, clipped: Array, outside: NDArray[np.bool_]) -> Array:
        """Return the reference with the entries `outside` on their bounds, and the sums that are fixed kept."""

    @abstractmethod
    def room(self, dual: Array, candidate: Array) -> Array:
        """Return how often the way to the candidate fits into the bounds, for every variable."""

    @abstractmethod
    def open_face(self, dual: Array, F: Array) -> NDArray[np.bool_]:
        """Return which dual variables are free or would leave their bound, if only to make room for others."""

    @abstractmethod
    def identified(self, dual: Array, F: Array) -> Array:
        """Return the point with variables on their bounds that are nearer there than their margin to zero."""

    @abstractmethod
    def moves(self, dual: Array, face: NDArray[np.bool_]) -> Moves:
        """Return the moves of a face."""

    @abstractmethod
    def support(self, dual: Array, R: Array, F: Array) -> NDArray[np.intp]:
        """Return the examples that the scores depend on at the solution next to a point."""

    @abstractmethod
    def free_directions(self, dual: Array, F: Array) -> tuple[NDArray[np.intp], Array]:
        """Return the directions along which a dual point can move both ways, (m, k), and their examples (m,).

        Moving multiplier a by t changes the coefficients of its example by ``-t direction[a]``. Of the distance
        from the bound and that from the margin, one is zero at a solution; near one, as an interior-point method
        leaves it, the smaller of the two, in units of the box and of the margin, tells which.
        """

    @abstractmethod
    def clearly_inside(self, dual: Array) -> bool:
        """Tell whether a dual point stays a solution when all bounds are enlarged."""

    @abstractmethod
    def enlarged(self, dual: Array, factor: float) -> Array:
        """Return the dual point of `factor` times the coefficients, for losses enlarged by as much or more."""

    @abstractmethod
    def compiled_tables(self) -> CompiledTables:
        """Return the tables of the compiled loops."""

    @abstractmethod
    def coefficient_bounds(self) -> tuple[Array, Array]:
        """Return the bounds (n, k) of R, infinite where there are none; for margins that are differences."""


def polyhedral(losses: Losses, method: str) -> PolyhedralLosses:
    """Return the losses if they are hinges or maxima; a `method` that needs it says so."""
    if not isinstance(losses, PolyhedralLosses):
        raise TypeError(f"{method} is for hinges and maxima, got {type(losses).__name__}.")
    return losses


def polyhedral_domain(losses: Losses, method: str) -> PolyhedralDomain:
    """Return the losses if their dual points form a polyhedron; a `method` that needs it says so."""
    if not isinstance(losses, PolyhedralDomain):
        raise TypeError(f"{method} needs dual points that form a polyhedron, got {type(losses).__name__}.")
    return losses
