"""Sums of hinges: every dual variable has a box of its own."""

from dataclasses import dataclass, replace
from typing import ClassVar, Self

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csc_array
from scipy.sparse.csgraph import connected_components

from polymargin.problems.hinge.losses import Array, Losses, Shape
from polymargin.problems.hinge.polyhedral import (
    AT_BOUND,
    LEFT_INSIDE,
    CompiledTables,
    Moves,
    PolyhedralLosses,
)
from polymargin.problems.hinge.tables import Columns, Differences, SingleScores, Table


@dataclass(frozen=True, slots=True)
class BoxLosses(PolyhedralLosses):
    """``sum_ij upper_ij [offset + <directions[y_i, j], f_i>]_+`` with dual variables ``0 <= u <= upper``.

    Attributes
    ----------
    labels : (n,) class codes y.
    upper : (n, hinges) weights of the hinges; zero where there is none.
    table : what hinge j of an example of class y sees: `directions[y, j]`.
    offset : the margin.
    """

    labels: NDArray[np.intp]
    upper: Array
    table: Table
    offset: float

    shape: ClassVar[Shape] = "box"

    @property
    def n_examples(self) -> int:  # type: ignore[override]
        """Number of examples."""
        return self.upper.shape[0]

    @property
    def n_classes(self) -> int:  # type: ignore[override]
        """Number of classes."""
        return self.table.n_classes

    @property
    def block_labels(self) -> NDArray[np.intp]:
        """Class of every example."""
        return self.labels

    @property
    def sizes(self) -> Array:
        """Weights of the hinges."""
        return self.upper

    @property
    def total_weight(self) -> float:
        """Sum of the weights of all hinges."""
        return float(self.upper.sum())

    @property
    def is_compiled(self) -> bool:
        """Whether the compiled loops know the table."""
        return self.sees_single_scores or self.sees_differences

    @property
    def sees_single_scores(self) -> bool:
        """Whether hinge j sees the score of class j alone (Lee, Lin & Wahba)."""
        return isinstance(self.table, SingleScores)

    @property
    def sees_differences(self) -> bool:
        """Whether hinge j sees what the score of class j is above that of the own class (Weston & Watkins)."""
        return isinstance(self.table, Differences)

    def restricted(self, rows: NDArray[np.intp]) -> Self:
        """Return the losses of the examples `rows`."""
        return replace(self, labels=self.labels[rows], upper=self.upper[rows])

    def scaled(self, factor: float) -> Self:
        """Return `factor` times the losses."""
        return replace(self, upper=factor * self.upper)

    def slopes(self, F: Array) -> Array:
        """Linear part of the arguments of the hinges at the scores `F`."""
        return self.table.slopes(self.labels, F)

    def margins(self, F: Array) -> Array:
        """Arguments of the hinges at the scores `F`."""
        return self.offset + self.slopes(F)

    def value(self, F: Array) -> float:
        """Sum of the losses at the scores `F`."""
        return float(np.vdot(self.upper, np.maximum(self.margins(F), 0.0)))

    def coefficients(self, dual: Array) -> Array:
        """Return the coefficients R that a dual point stands for."""
        return -self.table.pull(self.labels, dual)

    def dual_of(self, R: Array) -> Array:
        """Return the dual point of given coefficients; the own class, which has no hinge, gets zero."""
        if not self.is_compiled:
            return Losses.dual_of(self, R)
        own = self.labels[:, None] == np.arange(self.n_classes)
        # R = mean of u - u where the hinges see single scores; else -u, and the own class makes up the row
        mean = R[own][:, None] if self.sees_single_scores else 0.0
        return np.where(own, 0.0, mean - R)

    def dual_value(self, dual: Array) -> float:
        """Linear part of the dual objective."""
        return self.offset * float(dual.sum())

    def violation(self, dual: Array) -> tuple[float, float]:
        """Largest violation of the box, and the largest bound, to which it is relative."""
        worst = max(float(-dual.min(initial=0.0)), float((dual - self.upper).max(initial=0.0)))
        return worst, float(self.upper.max(initial=0.0))

    def resting_dual(self) -> Array:
        """Return zero."""
        return np.zeros(self.upper.shape)

    def proximal(self, margins: Array, centre: Array, width: float) -> Array:
        """Return the step from the centre along the margins, clipped to the boxes."""
        return np.clip(centre + self.upper * margins / width, 0.0, self.upper)

    def proximal_slopes(self, margins: Array, centre: Array, width: float) -> Array:
        """Return the derivatives of `proximal`: zero where it clips."""
        dual = self.proximal(margins, centre, width)
        free = np.where((dual > 0.0) & (dual < self.upper), self.upper / width, 0.0)
        return free[:, :, None] * np.eye(free.shape[1])

    def gap_per_example(self, dual: Array, F: Array) -> Array:
        """Return every example's part in the gap."""
        margins = self.margins(F)
        slack = -np.einsum("ij,ij->i", dual, margins)
        return slack + np.einsum("ij,ij->i", self.upper, np.maximum(margins, 0.0))

    def within_bounds(self, dual: Array) -> Array:
        """Return the point clipped to its boxes."""
        return np.clip(dual, 0.0, self.upper)

    def clipped(self, dual: Array) -> Array:
        """Return the point clipped to its boxes."""
        return np.clip(dual, 0.0, self.upper)

    def snapped(self, dual: Array) -> Array:
        """Return the point with the entries that are on their bound to rounding put there."""
        dual = np.where(dual <= 1e-14 * self.upper, 0.0, dual)
        return np.where(dual >= (1.0 - 1e-14) * self.upper, self.upper, dual)

    def pinned(self, reference: Array, clipped: Array, outside: NDArray[np.bool_]) -> Array:
        """Return the reference with the entries `outside` on their bounds."""
        return np.where(outside, clipped, reference)

    def room(self, dual: Array, candidate: Array) -> Array:
        """Return how often the way to the candidate fits into the boxes."""
        difference = candidate - dual
        with np.errstate(divide="ignore", invalid="ignore"):
            room = np.where(difference < 0, -dual / difference, np.inf)
            return np.where(difference > 0, (self.upper - dual) / difference, room)

    def open_face(self, dual: Array, F: Array) -> NDArray[np.bool_]:
        """Return which variables are free or would leave their bound."""
        margins = self.margins(F)
        noise = 1e-12 * float(np.abs(margins).max())
        leaving = np.where(dual <= 0, margins > -noise, margins < noise)
        return (self.upper > 0) & (leaving | ((dual > 0) & (dual < self.upper)))

    def identified(self, dual: Array, F: Array) -> Array:
        """Return the point with variables on their bounds that are nearer there than their margin to zero."""
        margins = self.margins(F)
        share = dual / np.where(self.upper > 0, self.upper, 1.0)
        dual = np.where(share < -margins, 0.0, dual)
        return np.where(1.0 - share < margins, self.upper, dual)

    def moves(self, dual: Array, face: NDArray[np.bool_]) -> Moves:
        """Return the moves of a face, one for each variable."""
        example, slot = np.nonzero(face)
        direction = -self.table.rows(self.labels[example], slot)
        return Moves(example, slot, None, direction, np.full(len(example), self.offset))

    def free_entries(self, dual: Array, F: Array) -> NDArray[np.bool_]:
        """Return which variables are free, and thus have their hinges on the margin."""
        margins = self.margins(F) / self.offset
        inside = np.minimum(dual, self.upper - dual)
        return inside > np.maximum(AT_BOUND, np.abs(margins)) * self.upper

    def support(self, dual: Array, R: Array, F: Array) -> NDArray[np.intp]:
        """Return the examples that the scores depend on at the solution next to a point."""
        large = dual > LEFT_INSIDE * self.upper
        used = (R != 0) & (self.free_entries(dual, F) | large).any(axis=1, keepdims=True)
        return np.flatnonzero(used.any(axis=1))

    def free_directions(self, dual: Array, F: Array) -> tuple[NDArray[np.intp], Array]:
        """Return the directions of the free variables, and their examples."""
        example, hinge = np.nonzero(self.free_entries(dual, F))
        return example, self.table.rows(self.labels[example], hinge)

    def clearly_inside(self, dual: Array) -> bool:
        """Tell whether no variable is near its upper bound."""
        return bool((dual <= 0.99 * self.upper).all())

    def enlarged(self, dual: Array, factor: float) -> Array:
        """Return the multiple."""
        return factor * dual

    def present_pairs(self) -> NDArray[np.bool_]:
        """Tell which pairs (own class, hinge) have a positive weight."""
        n = len(self.labels)
        members = csc_array((np.ones(n), self.labels, np.arange(n + 1)), shape=(self.n_classes, n))
        return np.asarray(members @ self.upper > 0.0)

    def usable_pairs(self, present: NDArray[np.bool_]) -> NDArray[np.bool_]:
        """Tell which pairs (own class, hinge) can be other than zero at a balanced point.

        Weston-Watkins: u is a flow from class y to class j, and balance means circulation, so only arcs within a
        strongly connected component carry any. Lee-Lin-Wahba: all columns have the same sum, so one empty column
        empties all. Of other tables nothing is known beforehand.
        """
        if present.all():
            return present
        if self.sees_single_scores:
            return np.full(present.shape, bool(present.any(axis=0).all()))
        if not self.sees_differences:
            return present
        if (present | np.eye(self.n_classes, dtype=bool)).all():
            return np.ones_like(present)
        component = connected_components(present, connection="strong")[1]
        return component[:, None] == component[None, :]

    def forced_to_zero(self, usable: NDArray[np.bool_] | None = None) -> NDArray[np.bool_]:
        """Tell which entries are zero at every balanced point (because some costs are zero)."""
        if usable is None:
            usable = self.usable_pairs(self.present_pairs())
        is_without_weight = self.upper == 0
        return is_without_weight if usable.all() else ~usable[self.labels] | is_without_weight

    def cleared(self, dual: Array, usable: NDArray[np.bool_]) -> Array:
        """Return the point with the variables of unusable pairs at zero."""
        return np.where(self.forced_to_zero(usable), 0.0, dual)

    def centre(self, usable: NDArray[np.bool_]) -> Array:
        """Return the centre of the boxes."""
        return np.where(self.forced_to_zero(usable), 0.0, self.upper / 2)

    def movable_face(self, dual: Array) -> "BoxFace":
        """Return the entries strictly within their bounds."""
        free = (dual > 0) & (dual < self.upper)
        example, column = np.nonzero(free)
        bounds = self.upper[free]
        columns = self.table.columns(self.labels[example], column)
        inside = dual[free]
        entries = BoxEntries(columns, bounds, inside / bounds, (bounds - inside) / bounds)
        return BoxFace(free, entries, entries.gathered())

    def compiled_tables(self) -> CompiledTables:
        """Return the tables of the compiled loops, which know single scores and differences alone."""
        if not self.is_compiled:
            raise TypeError("The compiled loops are for hinges that see single scores or differences.")
        n = len(self.labels)
        return CompiledTables(
            np.arange(n, dtype=np.int32),
            self.labels.astype(np.int32),
            np.ascontiguousarray(self.upper),
            1.0 / self.n_classes if self.sees_single_scores else -1.0,
            simplex=False,
            centred=self.sees_single_scores,
        )

    def coefficient_bounds(self) -> tuple[Array, Array]:
        """Return the bounds of R; the own class needs none, for it makes up the row."""
        own = self.labels[:, None] == np.arange(self.n_classes)
        return np.where(own, -np.inf, -self.upper), np.where(own, np.inf, 0.0)


@dataclass(frozen=True, slots=True)
class BoxEntries:
    """Dual variables within their bounds, moved along the logarithm of the odds of `part` to `rest` of a bound."""

    columns: Columns
    bounds: Array
    part: Array
    rest: Array

    def gathered(self) -> "BoxEntries":
        """Return entries of the same sums, those of a direction made one that are where most are.

        A point that is drawn off its bounds has nearly all of them at two places, near the lower ones and near the
        upper ones, and those of a direction stay together wherever they move.
        """
        if not len(self.part):
            return self
        entries = self
        for at in (int(self.part.argmin()), int(self.rest.argmin())):
            part, rest = self.part[at], self.rest[at]
            there = (entries.part == part) & (entries.rest == rest)
            of_kinds = np.bincount(entries.columns.kind[there], entries.bounds[there])
            kinds, others = np.flatnonzero(of_kinds), ~there
            if len(kinds) < np.count_nonzero(there):
                entries = BoxEntries(
                    entries.columns.following(kinds, others),
                    np.concatenate([of_kinds[kinds], entries.bounds[others]]),
                    np.concatenate([np.full(len(kinds), part), entries.part[others]]),
                    np.concatenate([np.full(len(kinds), rest), entries.rest[others]]),
                )
        return entries

    def at(self, t: Array) -> tuple[Array, Array]:
        """Return the entries at t, and what parts of their bounds are left."""
        part = self.part * self.columns.growth(t)
        whole = part + self.rest
        return self.bounds * (part / whole), self.rest / whole


@dataclass(frozen=True, slots=True)
class BoxFace:
    """The entries strictly within their bounds; sums over them see those that move together as one."""

    free: NDArray[np.bool_]
    each: BoxEntries
    together: BoxEntries

    @property
    def n_free(self) -> int:
        """Number of entries that can move."""
        return len(self.each.bounds)

    def entries(self, t: Array) -> Array:
        """Return the free entries at t."""
        return self.each.at(t)[0]

    def sums(self, t: Array) -> tuple[Array, Array]:
        """Return the column sums of what the entries contribute to -R, and the Jacobian of these sums."""
        entries, rest = self.together.at(t)
        columns = self.together.columns
        return columns.sums(entries), columns.outer(entries * rest)


def boxes(losses: Losses, method: str) -> BoxLosses:
    """Return the losses if they are sums of hinges that see single scores; a `method` that needs it says so."""
    if not isinstance(losses, BoxLosses) or not losses.sees_single_scores:
        raise TypeError(f"{method} is for sums of hinges that see single scores, got {type(losses).__name__}.")
    return losses


def hinges(losses: Losses, method: str) -> BoxLosses:
    """Return the losses if they are sums of hinges; a `method` that needs it says so."""
    if not isinstance(losses, BoxLosses):
        raise TypeError(f"{method} is for sums of hinges, got {type(losses).__name__}.")
    return losses
