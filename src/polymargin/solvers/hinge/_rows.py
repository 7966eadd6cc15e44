"""Rows as the interior point sees them: their features and the blocks of slots, in memory or in partitions.

What the reduced system needs of rows are sums over them. `Rows` gives those of the rows that it holds;
`RowsInPartitions` asks the `Rows` of every partition and adds up.
"""

import copy
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from polymargin.blocks import Blocks, added
from polymargin.coding import zero_sum_basis
from polymargin.problems.hinge import HingeProblem, features_of
from polymargin.solvers.hinge._blocks import GeneralBlocks, HingeBlocks, SimplexBlocks
from polymargin.solvers.hinge._slots import Array, Slots, row_sums, slots_of
from polymargin.solvers.hinge.settings import INTERIOR
from polymargin.threads import over_ranges


class Products(NamedTuple):
    """Mean and number of complementarity products."""

    mean: float
    number: int

    def __add__(self, other: "Products") -> "Products":  # type: ignore[override]
        number = self.number + other.number
        return Products((self.mean * self.number + other.mean * other.number) / number, number)


def is_by_class(n_atoms: int, k: int) -> bool:
    """Tell whether pairs of classes are so many that no table of their coordinates' products is kept."""
    return n_atoms > k and n_atoms * (k - 1) ** 2 > INTERIOR.outer_entries


class Rows:
    """Rows at hand: features with a column of ones, the products of these where kept, and blocks of slots.

    Directions Z (k-1, p) in the zero-sum basis go in, pulls of the same shape come out.
    """

    def __init__(
        self,
        features: Any,
        blocks: GeneralBlocks | HingeBlocks | SimplexBlocks,
        slots: Slots,
        basis: Array,
        products: Array | None = None,
    ):
        self.features, self.blocks, self.slots, self.products = features, blocks, slots, products
        self.basis, self.by_class = basis, is_by_class(*slots.atoms.shape)

    def objectives(self) -> tuple[float, float, Array]:
        """Return the losses, the complementarity, and the pull of the dual slots."""
        return *self.blocks.objectives(), self._pulled(self.blocks.pull())

    def linearise(self) -> tuple[Products, Array, Array]:
        """Return the products at the iterate, the weighted Grams, and the pull when products go to zero.

        Of many classes the Grams are summed up to the curvature in the classes' coordinates already.
        """
        mean = self.blocks.linearise()
        if self.by_class:
            grams = self.slots.curvature(self.blocks.theta, self.features)
        else:
            atom_weights, n_atoms = self.blocks.atom_weights, self.slots.atoms.shape[0]
            grams = weighted_grams(self.features, self.products, n_atoms, atom_weights)
        return Products(mean, self.blocks.alpha.size), grams, self._pulled(self.blocks.predict())

    def correct(self, aim: float) -> Array:
        """Return the pull when the products go to their share of `aim`."""
        return self._pulled(self.blocks.correct(aim))

    def refine(self) -> Array:
        """Return the pull of what rounding left of the blocks' sums."""
        return self._pulled(self.blocks.refine())

    def recentre(self, hoped: float) -> Array:
        """Return the pull of a centrality correction."""
        return self._pulled(self.blocks.recentre(hoped))

    def pull_of_direction(self) -> Array:
        """Return the pull of the direction's dual slots."""
        return self._pulled(self.blocks.pull_of_direction())

    def recover(self, Z: Array, onto: bool) -> float:
        """Recover what was eliminated, for a direction Z; return the longest step."""
        return self.blocks.recover(self.features @ (self.basis @ Z).T, onto=onto)

    def recover_with_pull(self, Z: Array, onto: bool) -> tuple[float, Array]:
        """Return the longest step along what is recovered, and the pull that it will have as the direction."""
        length = self.recover(Z, onto)
        ahead = copy.copy(self.blocks)
        ahead.accept()
        return length, self._pulled(ahead.pull_of_direction())

    def accept(self) -> None:
        """Make what was recovered the direction."""
        self.blocks.accept()

    def reached(self, length: float) -> Products:
        """Return the products after a step along the direction."""
        return Products(self.blocks.reached(length), self.blocks.alpha.size)

    def trusted(self, length: float) -> float:
        """Return how much of a step can be trusted."""
        return self.blocks.trusted(length)

    def advance(self, length: float) -> None:
        """Move along the direction."""
        self.blocks.advance(length)

    def _pulled(self, Q: Array) -> Array:
        return (self.features.T @ Q @ self.basis).T


@dataclass(frozen=True, slots=True)
class Part:
    """What stays fixed of the rows of a partition."""

    features: Any
    slots: Slots
    tilt: Array | None
    basis: Array

    @classmethod
    def of(cls, problem: HingeProblem) -> "Part":
        """Return the rows of a problem."""
        features = with_ones(features_of(problem), problem.fit_intercept)
        return cls(features, slots_of(problem.losses), problem.tilt, zero_sum_basis(problem.losses.n_classes))

    def summary(self) -> "PartSummary":
        """Return what is to be known of all rows before the first iterate."""
        pulled = np.zeros((self.basis.shape[1], self.features.shape[1]))
        if self.tilt is not None:
            pulled += (self.features.T @ (self.tilt @ self.basis)).T
        slots = self.slots
        return PartSummary(
            slots.atoms,
            float(slots.offsets.max()),
            float(slots.weight.sum()),
            len(slots.weight),
            len(slots.smooth[0]),
            pulled,
        )

    def first_rows(self, offset: float, dual: Array | None, mean_weight: float) -> Rows:
        """Return the rows at the first iterate; in NumPy, whose blocks never change an array in place."""
        slots = first_slots(self.slots, offset, dual)
        blocks = GeneralBlocks(self.slots, *slots, mean_weight)
        return Rows(self.features, blocks, self.slots, self.basis)


class PartSummary(NamedTuple):
    """Atoms and margin of the losses, the same everywhere; sums of their weights, numbers, and tilts' pulls."""

    atoms: sparse.csr_array
    offset: float
    weight: float
    n_losses: int
    n_smooth: int
    tilt: Array

    def __add__(self, other: "PartSummary") -> "PartSummary":  # type: ignore[override]
        return PartSummary(self.atoms, max(self.offset, other.offset), *map(added, self[2:], other[2:]))


class RowsInPartitions:
    """The rows of all partitions, of which each is `Rows` that are never changed but replaced.

    So they can be computed again. What has no result waits for the next call that has one.
    """

    def __init__(self, parts: Blocks, smooth: bool):
        self.parts = parts
        self.smooth = smooth
        self.waiting: tuple[tuple, ...] = ()

    @property
    def blocks(self) -> "RowsInPartitions":
        """The rows' own variables, which are with the rows."""
        return self

    def objectives(self) -> tuple[float, float, Array]:
        """Return the losses, the complementarity, and the pull of the dual slots."""
        return self._ask(added, "objectives")

    def linearise(self) -> tuple[Products, Array, Array]:
        """Return the products at the iterate, the weighted Grams, and the pull when products go to zero."""
        return self._change(_added_products, "linearise")

    def correct(self, aim: float) -> Array:
        """Return the pull when the products go to their share of `aim`."""
        return self._change(added, "correct", aim)

    def refine(self) -> Array:
        """Return the pull of what rounding left of the blocks' sums."""
        return self._change(added, "refine")

    def recentre(self, hoped: float) -> Array:
        """Return the pull of a centrality correction."""
        return self._change(added, "recentre", hoped)

    def pull_of_direction(self) -> Array:
        """Return the pull of the direction's dual slots, which came with it."""
        return self.pull

    def recover(self, Z: Array, onto: bool) -> float:
        """Recover what was eliminated, for a direction Z; return the longest step."""
        length, self.candidate_pull = self._change(_shorter, "recover_with_pull", Z, onto)
        return length

    def accept(self) -> None:
        """Make what was recovered the direction."""
        self.pull = self.candidate_pull
        self.waiting += (("accept",),)

    def reached(self, length: float) -> Products:
        """Return the products after a step along the direction."""
        return self._ask(Products.__add__, "reached", length)

    def trusted(self, length: float) -> float:
        """Return how much of a step can be trusted."""
        return self._ask(min, "trusted", length) if self.smooth else length

    def advance(self, length: float) -> None:
        """Move along the direction."""
        self.waiting += (("advance", length),)

    def dual(self) -> Blocks:
        """Return the dual points of the iterate, in partitions."""
        return self.parts.map(_dual_after, self.waiting, keep=True)

    def _ask(self, combine: Callable[[Any, Any], Any], *call: Any) -> Any:
        return self.parts.reduce(combine, _answer, (*self.waiting, call))

    def _change(self, combine: Callable[[Any, Any], Any], *call: Any) -> Any:
        changed = self.parts.map(_after, (*self.waiting, call), keep=True)
        answer = changed.reduce(combine, _second)
        self.parts, self.waiting = changed.map(_first), ()
        return answer


def _after(rows: Rows, calls: tuple[tuple, ...]) -> tuple[Rows, Any]:
    """Return copies of the rows after some calls, and what the last of them returned."""
    rows, answer = copy.copy(rows), None
    rows.blocks = copy.copy(rows.blocks)
    for method, *arguments in calls:
        answer = getattr(rows, method)(*arguments)
    return rows, answer


def _first(pair: tuple[Rows, Any]) -> Rows:
    return pair[0]


def _second(pair: tuple[Rows, Any]) -> Any:
    return pair[1]


def _answer(rows: Rows, calls: tuple[tuple, ...]) -> Any:
    return _after(rows, calls)[1]


def _dual_after(rows: Rows, calls: tuple[tuple, ...]) -> Array:
    blocks = _after(rows, calls)[0].blocks
    if not isinstance(blocks, GeneralBlocks):
        raise TypeError(f"Rows in partitions need general blocks, got {type(blocks).__name__}.")
    return feasible_dual(blocks.slots, blocks.alpha)


def _shorter(one: tuple[float, Array], other: tuple[float, Array]) -> tuple[float, Array]:
    return min(one[0], other[0]), one[1] + other[1]


def _added_products(
    one: tuple[Products, Array, Array], other: tuple[Products, Array, Array]
) -> tuple[Products, Array, Array]:
    return one[0] + other[0], one[1] + other[1], one[2] + other[2]


def with_ones(features: Any, fit_intercept: bool) -> Any:
    """Return the features in double precision, with a column of ones for an intercept."""
    n, p = features.shape
    if sparse.issparse(features):
        return sparse.csr_array(sparse.hstack([features, np.ones((n, 1))])) if fit_intercept else features
    if not fit_intercept:
        return np.ascontiguousarray(features, dtype=np.float64)
    widened = np.empty((n, p + 1))
    widened[:, :p], widened[:, p] = features, 1.0
    return widened


def first_slots(slots: Slots, offset: float, dual: Array | None) -> tuple[Array, Array, Array]:
    """Return dual slots in the middle of their blocks, or a dual point drawn there, slacks and epigraphs."""
    n_slots = slots.offsets.shape[1]
    centre = (slots.weight / n_slots)[:, None]
    alpha, part = np.empty(slots.offsets.shape), INTERIOR.start_centre
    alpha[:] = centre if dual is None else (1.0 - part) * slots.from_dual(dual) + part * centre
    epigraph = np.full(len(slots.weight), 2.0 * offset if offset > 0.0 else 1.0)
    return alpha, epigraph[:, None] - slots.offsets, epigraph


def feasible_dual(slots: Slots, alpha: Array) -> Array:
    """Return the dual point of the problem, its blocks made to sum to their weights."""
    return slots.to_dual(alpha * (slots.weight / row_sums(alpha))[:, None])


def weighted_grams(
    features: Any, products: Array | None, n_atoms: int, atom_weights: Callable[[int, int], Array]
) -> Array:
    """Return ``X' diag(w_t) X`` (atoms, p * p) for the weights w_t of every atom t: a sum over rows."""
    n, p = features.shape
    if products is not None:
        return (atom_weights(0, n).T @ products)[:, _places(p)]
    height = max(1, INTERIOR.chunk_entries // p)
    grams = np.zeros((n_atoms, p, p))
    for first in range(0, n, height):
        last = min(first + height, n)
        part = features[first:last].toarray() if sparse.issparse(features) else features[first:last]
        roots = np.sqrt(atom_weights(first, last))

        def add(atoms: slice, part: Array = part, roots: Array = roots) -> None:
            for gram, root in zip(grams[atoms], roots.T[atoms], strict=True):
                seen = np.flatnonzero(root)
                weighted = part * root[:, None] if len(seen) == len(root) else part[seen] * root[seen, None]
                gram += weighted.T @ weighted

        threads_pay_from = max(1, INTERIOR.products_of_a_thread // (part.size * p))
        over_ranges(add, n_atoms, threads_pay_from, idle_only=True)
    return grams.reshape(-1, p * p)


@cache
def _places(p: int) -> NDArray[np.intp]:
    """Return where the entries of a symmetric matrix are in its upper triangle, both by rows."""
    places = np.empty((p, p), dtype=np.intp)
    places[np.triu_indices(p)] = np.arange(p * (p + 1) // 2)
    return np.triu(places).ravel() + np.triu(places, 1).T.ravel()
