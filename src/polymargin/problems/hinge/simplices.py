"""Maxima over the classes: the dual block of every pair of example and class lies on a simplex."""

from dataclasses import dataclass, field, replace
from typing import Self

import numpy as np
from numpy.typing import NDArray

from polymargin.problems.hinge.losses import Array, Losses
from polymargin.problems.hinge.polyhedral import (
    AT_BOUND,
    CompiledTables,
    Moves,
    PolyhedralDomain,
    PolyhedralLosses,
)

SHORT_ROW = 16
"""Entries up to which the maxima of rows are found column by column."""


@dataclass(frozen=True, slots=True)
class PairLosses(PolyhedralDomain):
    """Losses over pairs p of an example and a class, its anchor, that see ``f_im - f_i,anchor_p``.

    The dual block of a pair lies on ``weight_p`` times the unit simplex; its slot `anchor_p` is the slack.

    Attributes
    ----------
    example, anchor : (P,) example and class of every pair.
    weight : (P,) positive weights, the steepest slopes of the losses.
    offset : the margin.
    n_examples, n_classes : sizes of the scores.
    one_each : whether pair p is the only one of example p.
    own : (P,) where the anchors are in tables (P, k), counted row by row.
    """

    example: NDArray[np.intp]
    anchor: NDArray[np.intp]
    weight: Array
    offset: float
    n_examples: int
    n_classes: int
    one_each: bool = field(init=False)
    own: NDArray[np.intp] = field(init=False)

    def __post_init__(self) -> None:
        pairs = np.arange(len(self.example))
        one_each = len(pairs) == self.n_examples and bool((self.example == pairs).all())
        object.__setattr__(self, "one_each", one_each)
        object.__setattr__(self, "own", pairs * self.n_classes + self.anchor)

    @property
    def sees_differences(self) -> bool:
        """Whether every example has one pair."""
        return self.one_each

    @property
    def block_labels(self) -> NDArray[np.intp]:
        """Class of every pair."""
        return self.anchor

    @property
    def sizes(self) -> Array:
        """Sizes of the simplices."""
        return self.weight[:, None]

    @property
    def total_weight(self) -> float:
        """Sum of the weights of all pairs."""
        return float(self.weight.sum())

    def restricted(self, rows: NDArray[np.intp]) -> Self:
        """Return the losses of the examples `rows`, where every example has one pair, its own."""
        return replace(
            self,
            example=np.arange(len(rows)),
            anchor=self.anchor[rows],
            weight=self.weight[rows],
            n_examples=len(rows),
        )

    def scaled(self, factor: float) -> Self:
        """Return `factor` times the losses."""
        return replace(self, weight=factor * self.weight)

    def margins(self, F: Array) -> Array:
        """Return ``offset [m != anchor_p] + f_im - f_i,anchor_p`` for every pair and slot (P, k)."""
        scores = F if self.one_each else F[self.example]
        inner = scores + (self.offset - scores.take(self.own))[:, None]
        inner.put(self.own, 0.0)
        return inner

    def coefficients(self, dual: Array) -> Array:
        """Return the coefficients R that a dual point stands for."""
        # the anchor's coefficient is the sum of the others: `weight - dual` would lose their small digits
        moved = -dual
        moved.put(self.own, 0.0)
        moved.put(self.own, -(moved @ np.ones(self.n_classes)))
        if self.one_each:
            return moved
        cells = self.example[:, None] * self.n_classes + np.arange(self.n_classes)
        R = np.bincount(cells.ravel(), moved.ravel(), minlength=self.n_examples * self.n_classes)
        return R.astype(np.float64, copy=False).reshape(self.n_examples, self.n_classes)

    def dual_of(self, R: Array) -> Array:
        """Return the dual point of given coefficients, where every example has at most one pair."""
        dual = -R[self.example]
        dual.put(self.own, dual.take(self.own) + self.weight)
        return dual

    def violation(self, dual: Array) -> tuple[float, float]:
        """Largest violation of a simplex, relative to its size, and one."""
        below = 0.0
        if dual.min(initial=0.0) < 0.0:
            below = -float((dual / self.weight[:, None]).min())
        off = float(np.abs(dual @ np.ones(self.n_classes) / self.weight - 1.0).max(initial=0.0))
        return max(off, below), 1.0

    def resting_dual(self) -> Array:
        """Return the point with all weight in the slack."""
        dual = np.zeros((len(self.weight), self.n_classes))
        dual.put(self.own, self.weight)
        return dual

    def present_pairs(self) -> NDArray[np.bool_]:
        """Tell that all pairs of classes have variables."""
        return np.ones((self.n_classes, self.n_classes), dtype=bool)

    def usable_pairs(self, present: NDArray[np.bool_]) -> NDArray[np.bool_]:
        """Tell that all pairs can be used."""
        return present

    def cleared(self, dual: Array, usable: NDArray[np.bool_]) -> Array:
        """Return the point as it is."""
        return dual

    def centre(self, usable: NDArray[np.bool_]) -> Array:
        """Return the centre of the simplices."""
        return np.broadcast_to(self.weight[:, None] / self.n_classes, (len(self.weight), self.n_classes))

    def movable_face(self, dual: Array) -> "SimplexFace":
        """Return the blocks with more than one positive entry."""
        free = np.flatnonzero((dual > 0).astype(np.float64) @ np.ones(self.n_classes) > 1)
        return SimplexFace(free, self.weight[free], dual[free])


@dataclass(frozen=True, slots=True)
class SimplexLosses(PairLosses, PolyhedralLosses):
    """``sum_p weight_p (max_m (offset [m != anchor_p] + f_im) - f_i,anchor_p)``, i the example of pair p."""

    shape = "simplex"

    @property
    def is_compiled(self) -> bool:
        """Whether the compiled loops know the losses: they do."""
        return True

    def value(self, F: Array) -> float:
        """Sum of the losses at the scores `F`."""
        return float(self.weight @ row_maxima(self.margins(F)))

    def dual_value(self, dual: Array) -> float:
        """Linear part of the dual objective."""
        return self.offset * float(dual.sum() - dual.take(self.own).sum())

    def proximal(self, margins: Array, centre: Array, width: float) -> Array:
        """Return the projection onto the simplices of the step from the centre along the margins."""
        return onto_simplices(centre + self.weight[:, None] * margins / width, self.weight)

    def proximal_slopes(self, margins: Array, centre: Array, width: float) -> Array:
        """Return the derivatives of the projection."""
        return simplex_slopes(self.proximal(margins, centre, width) > 0.0, self.weight / width)

    def gap_per_example(self, dual: Array, F: Array) -> Array:
        """Return every pair's part in the gap."""
        margins = self.margins(F)
        return self.weight * margins.max(axis=1) - np.einsum("ij,ij->i", dual, margins)

    def within_bounds(self, dual: Array) -> Array:
        """Return the point without its negative entries, the sums right."""
        dual = np.maximum(dual, 0.0)
        dual *= self.weight[:, None] / dual.sum(axis=1, keepdims=True)
        return dual

    def clipped(self, dual: Array) -> Array:
        """Return the point without its negative entries."""
        return np.maximum(dual, 0.0)

    def snapped(self, dual: Array) -> Array:
        """Return the point with the entries that are zero to rounding put there."""
        return np.where(dual <= 1e-14 * self.weight[:, None], 0.0, dual)

    def pinned(self, reference: Array, clipped: Array, outside: NDArray[np.bool_]) -> Array:
        """Return the reference with the entries `outside` at zero; the largest slot keeps the sum."""
        pinned = np.where(outside, clipped, reference)
        rows = np.flatnonzero(outside.any(axis=1))
        largest = np.where(outside[rows], -1.0, pinned[rows]).argmax(axis=1)
        pinned[rows, largest] += self.weight[rows] - pinned[rows].sum(axis=1)
        return pinned

    def room(self, dual: Array, candidate: Array) -> Array:
        """Return how often the way to the candidate fits before a variable becomes negative."""
        difference = candidate - dual
        with np.errstate(divide="ignore", invalid="ignore"):
            return np.where(difference < 0, -dual / difference, np.inf)

    def open_face(self, dual: Array, F: Array) -> NDArray[np.bool_]:
        """Return which variables are positive or would become so, if only to make room for others."""
        margins = self.margins(F)
        noise = 1e-12 * float(np.abs(margins).max())
        worst = np.where(dual > 0, margins, np.inf).min(axis=1, keepdims=True)
        return (dual > 0) | (margins > worst - noise)

    def identified(self, dual: Array, F: Array) -> Array:
        """Return the point without those variables that are nearer to zero than their margin to the largest."""
        margins = self.margins(F)
        distance = margins.max(axis=1, keepdims=True) - margins
        kept = np.where(dual / self.weight[:, None] < distance, 0.0, dual)
        return kept * (self.weight / kept.sum(axis=1))[:, None]

    def moves(self, dual: Array, face: NDArray[np.bool_]) -> Moves:
        """Return the moves of a face: differences to the largest open slot."""
        base = np.where(face, dual, -1.0).argmax(axis=1)
        others = face.copy()
        others[np.arange(len(face)), base] = False
        example, slot = np.nonzero(others)
        base = base[example]
        unit = np.eye(self.n_classes)
        anchor = self.anchor[example]
        gain = self.offset * ((slot != anchor).astype(float) - (base != anchor))
        return Moves(example, slot, base, unit[base] - unit[slot], gain)

    def support(self, dual: Array, R: Array, F: Array) -> NDArray[np.intp]:
        """Return the examples with coefficients."""
        return np.flatnonzero(R.any(axis=1))

    def free_directions(self, dual: Array, F: Array) -> tuple[NDArray[np.intp], Array]:
        """Return the differences of the positive slots to the largest one, and their examples."""
        margins = self.margins(F) / self.offset
        below = margins.max(axis=1, keepdims=True) - margins
        positive = dual > np.maximum(AT_BOUND, below) * self.weight[:, None]
        largest = dual.argmax(axis=1)
        positive[np.arange(len(dual)), largest] = False
        pair, slot = np.nonzero(positive)
        identity = np.eye(self.n_classes)
        return self.example[pair], identity[slot] - identity[largest[pair]]

    def clearly_inside(self, dual: Array) -> bool:
        """Tell that this is not known: the slack of every simplex grows with it."""
        return False

    def enlarged(self, dual: Array, factor: float) -> Array:
        """Return the point of `factor` times the coefficients."""
        return self.dual_of(factor * self.coefficients(dual))

    def compiled_tables(self) -> CompiledTables:
        """Return the tables of the compiled loops."""
        return CompiledTables(
            self.example.astype(np.int32),
            self.anchor.astype(np.int32),
            np.ascontiguousarray(self.weight[:, None]),
            0.0,
            simplex=True,
            centred=False,
        )

    def coefficient_bounds(self) -> tuple[Array, Array]:
        """Return the bounds of R, which needs no lower ones."""
        own = self.anchor[:, None] == np.arange(self.n_classes)
        return np.full(own.shape, -np.inf), np.where(own, self.weight[:, None], 0.0)


@dataclass(frozen=True, slots=True)
class SimplexFace:
    """The blocks with more than one positive entry, moved along the logarithms of their entries."""

    free: NDArray[np.intp]
    weight: Array
    start: Array

    @property
    def n_free(self) -> int:
        """Number of blocks that can move."""
        return len(self.free)

    def entries(self, t: Array) -> Array:
        """Return the free blocks at t."""
        block = self.start * np.exp(t - t.max())
        block *= (self.weight / (block @ np.ones(block.shape[1])))[:, None]
        return block

    def sums(self, t: Array) -> tuple[Array, Array]:
        """Return the column sums of what the entries contribute to -R, and the Jacobian of these sums."""
        block = self.entries(t)
        sums = np.ones(len(block)) @ block
        return sums, np.diag(sums) - block.T @ (block / self.weight[:, None])


def simplices(losses: Losses, method: str) -> SimplexLosses:
    """Return the losses if they are maxima over the classes; a `method` that needs it says so."""
    if not isinstance(losses, SimplexLosses):
        raise TypeError(f"{method} is for maxima over the classes, got {type(losses).__name__}.")
    return losses


def onto_simplices(points: Array, sizes: Array) -> Array:
    """Return the nearest points with non-negative entries whose rows sum to `sizes`."""
    descending = -np.sort(-points, axis=1)
    excess = (np.cumsum(descending, axis=1) - sizes[:, None]) / np.arange(1, points.shape[1] + 1)
    last = np.maximum((descending > excess).sum(axis=1) - 1, 0)
    nearest = np.maximum(points - excess[np.arange(len(points)), last][:, None], 0.0)
    # of far points the sums would be right to their digits only
    return nearest * (sizes / np.maximum(nearest.sum(axis=1), np.finfo(np.float64).tiny))[:, None]


def simplex_slopes(free: NDArray[np.bool_], curvature: Array) -> Array:
    """Return the derivatives of a projection onto simplices times `curvature`; `free` are the positive entries."""
    mask = free.astype(np.float64)
    spread = mask[:, :, None] * mask[:, None, :] / mask.sum(axis=1)[:, None, None]
    return curvature[:, None, None] * (mask[:, :, None] * np.eye(mask.shape[1]) - spread)


def row_maxima(table: Array) -> Array:
    """Return the maximum of every row, column by column where rows are short: much faster then."""
    if table.shape[1] > SHORT_ROW:
        return table.max(axis=1)
    largest = table[:, 0].copy()
    for column in table.T[1:]:
        np.maximum(largest, column, out=largest)
    return largest


def two_largest(table: Array) -> tuple[Array, Array]:
    """Return the largest and the second largest number of every row."""
    if table.shape[1] > SHORT_ROW:
        ordered = np.partition(table, -2, axis=1)
        return ordered[:, -1], ordered[:, -2]
    top, next_to_top = table[:, 0].copy(), np.full(len(table), -np.inf)
    for column in table.T[1:]:
        np.maximum(next_to_top, np.minimum(top, column), out=next_to_top)
        np.maximum(top, column, out=top)
    return top, next_to_top


def leaders(table: Array) -> tuple[NDArray[np.intp], NDArray[np.intp], Array, Array]:
    """Return where every row is largest and second largest, the first of ties, and the two numbers."""
    if table.shape[1] > SHORT_ROW:
        rows = np.arange(len(table))
        best = table.argmax(axis=1)
        rest = table.copy()
        rest[rows, best] = -np.inf
        second = rest.argmax(axis=1)
        return best, second, table[rows, best], rest[rows, second]
    best, second = np.zeros((2, len(table)), dtype=np.intp)
    top, next_to_top = table[:, 0].copy(), np.full(len(table), -np.inf)
    for number, column in enumerate(table.T[1:], start=1):
        overtakes, comes_second = column > top, column > next_to_top
        second[comes_second] = number
        np.copyto(second, best, where=overtakes)
        best[overtakes] = number
        np.maximum(next_to_top, np.minimum(top, column), out=next_to_top)
        np.maximum(top, column, out=top)
    return best, second, top, next_to_top
