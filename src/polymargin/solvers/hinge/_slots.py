"""Hinges and maxima seen as one: blocks of slots, for the solvers that treat both kinds of losses alike.

Every loss is ``weight_b max_q margin_bq(f)`` over the few slots q of a block b: the two slots of a hinge
are its argument and zero, those of a maximum the classes. Its dual block ``alpha_b >= 0`` sums to `weight_b`, and
the coefficients of the problem are ``R = -tilt - gather(alpha)``.

The curvature that a positive diagonal `theta` in the slots puts on the scores of an example,
``sum_b A_b' (diag(theta_b) - theta_b theta_b'/sum theta_b) A_b``, is a combination ``sum_t w_t atom_t atom_t'``
of few fixed vectors with non-negative weights: one per class for Lee, Lin & Wahba, else one per pair of classes.
"""

from abc import ABC, abstractmethod
from functools import cached_property
from typing import Any, assert_never

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from polymargin.problems.hinge import BoxLosses, CurvedLosses, Losses, PairLosses, curved, hinges, simplices
from polymargin.problems.hinge.tables import pair_atoms
from polymargin.solvers.hinge._class_curvature import (
    chunks_of,
    curvature_of_hinges,
    curvature_of_maxima,
    pairs_of_atoms,
)

Array = NDArray[np.float64]


class Slots(ABC):
    """Blocks of slots; arrays over slots have shape (blocks, slots)."""

    weight: Array
    offsets: Array
    atoms: sparse.csr_array
    smooth: tuple[NDArray[np.intp], NDArray[np.intp]] = (np.empty(0, dtype=np.intp), np.empty(0, dtype=np.intp))
    """The slots of blocks with a smooth loss; see `CurvedSlots`."""

    @abstractmethod
    def lift(self, F: Array) -> Array:
        """Return the linear part of the slots' margins at the scores `F`."""

    @abstractmethod
    def gather(self, alpha: Array) -> Array:
        """Return the adjoint of `lift`, (n, k)."""

    @abstractmethod
    def atom_weights(self, theta: Array, rows: slice) -> Array:
        """Return the weights of the atoms, (rows, atoms), that `theta` gives the examples `rows`."""

    @abstractmethod
    def curvature(self, theta: Array, features: Any) -> Array:
        """Return the curvature (p, k, p, k) that `theta` gives features, in the classes' own coordinates."""

    @abstractmethod
    def from_dual(self, dual: Array) -> Array:
        """Return the slots of a dual point of the problem."""

    @abstractmethod
    def to_dual(self, alpha: Array) -> Array:
        """Return the dual point of the problem that the slots stand for."""

    def smooth_condition(self, alpha: Array, slack: Array, epigraph: Array) -> tuple[Array, Array]:
        """Return flexibility (inverse curvature) and residual of the smooth losses' conditions."""
        return np.empty(0), np.empty(0)

    def cost(self, slack: Array, epigraph: Array) -> float:
        """Return the losses at given values of the maxima."""
        return float(self.weight @ epigraph)

    def complementarity(self, alpha: Array, slack: Array, epigraph: Array) -> float:
        """Return what separates primal and dual objective once the linear conditions hold."""
        return float(np.vdot(alpha, slack))


def slots_of(losses: Losses) -> Slots:
    """Return the blocks of slots of some losses."""
    method = "The interior point"
    match losses.shape:
        case "box":
            return BoxSlots(hinges(losses, method))
        case "curved":
            return CurvedSlots(curved(losses, method))
        case "simplex":
            return SimplexSlots(simplices(losses, method))
        case "other":
            raise TypeError(f"{method} is for hinges and maxima, got {type(losses).__name__}.")
        case unknown:
            assert_never(unknown)


class BoxSlots(Slots):
    """Two slots a hinge of positive weight: its argument, and zero."""

    def __init__(self, losses: BoxLosses):
        self.losses = losses
        self.example, self.hinge = np.nonzero(losses.upper)
        self.weight = losses.upper[self.example, self.hinge]
        self.offsets = np.tile([losses.offset, 0.0], (len(self.weight), 1))
        self.starts = np.searchsorted(self.example, np.arange(losses.n_examples + 1))
        self.atoms, self.atom = losses.table.atoms(losses.labels[self.example], self.hinge)

    def lift(self, F: Array) -> Array:
        """Return the linear part of the slots' margins at the scores `F`."""
        inner = self.losses.slopes(F)[self.example, self.hinge]
        return np.column_stack([inner, np.zeros_like(inner)])

    def gather(self, alpha: Array) -> Array:
        """Return the adjoint of `lift`, (n, k)."""
        return -self.losses.coefficients(self.to_dual(alpha))

    def atom_weights(self, theta: Array, rows: slice) -> Array:
        """Return the weights of the atoms that `theta` gives the examples `rows`."""
        part = slice(self.starts[rows.start], self.starts[rows.stop])
        n_rows, n_atoms = rows.stop - rows.start, self.atoms.shape[0]
        cell = (self.example[part] - rows.start) * n_atoms + self.atom[part]
        weights = np.bincount(cell, _harmonic(theta[part]), minlength=n_rows * n_atoms)
        return weights.astype(np.float64, copy=False).reshape(n_rows, n_atoms)

    def curvature(self, theta: Array, features: Any) -> Array:
        """Return the curvature (p, k, p, k) that `theta` gives features, in the classes' own coordinates."""
        k, p = self.atoms.shape[1], features.shape[1]
        curvature, weights = np.zeros((p, k, p, k)), _harmonic(theta)
        for first, last, part in chunks_of(features, k):
            begin, end = self.starts[first], self.starts[last]
            table = (weights[begin:end], self.atom[begin:end], self.starts[first : last + 1] - begin)
            chunk = sparse.csr_array(table, shape=(last - first, self.atoms.shape[0]))
            curvature += curvature_of_hinges(chunk, part, self.of_pairs)
        return curvature

    @cached_property
    def of_pairs(self) -> sparse.csr_array:
        """The products (k k, atoms) of every atom with itself."""
        return pairs_of_atoms(self.atoms)

    def cost(self, slack: Array, epigraph: Array) -> float:
        """Return the hinges themselves, below their epigraph variables."""
        return float(self.weight @ (epigraph - slack.min(axis=1)))

    def complementarity(self, alpha: Array, slack: Array, epigraph: Array) -> float:
        """Return what separates primal and dual objective: about half of the products."""
        return float(np.vdot(alpha, slack) - self.weight @ slack.min(axis=1))

    def from_dual(self, dual: Array) -> Array:
        """Return the slots of a dual point of the problem."""
        used = dual[self.example, self.hinge]
        return np.column_stack([used, self.weight - used])

    def to_dual(self, alpha: Array) -> Array:
        """Return the dual point of the problem that the slots stand for."""
        dual = np.zeros_like(self.losses.upper)
        dual[self.example, self.hinge] = alpha[:, 0]
        return dual


class SimplexSlots(Slots):
    """One slot a class; blocks are sorted by example."""

    def __init__(self, losses: PairLosses):
        n, k = losses.n_examples, losses.n_classes
        self.one_each = losses.one_each
        self.order = np.arange(n) if self.one_each else np.argsort(losses.example, kind="stable")
        # views where nothing has to move
        order = slice(None) if self.one_each else self.order
        self.example, self.weight, self.anchor = losses.example[order], losses.weight[order], losses.anchor[order]
        self.offsets = np.full((len(self.anchor), k), losses.offset)
        self.offsets.put(np.arange(len(self.anchor)) * k + self.anchor, 0.0)
        self.starts = np.arange(n + 1) if self.one_each else np.searchsorted(self.example, np.arange(n + 1))
        self.atoms = pair_atoms(k)

    @cached_property
    def owner(self) -> sparse.csr_array:
        """What sums over the blocks of every example."""
        n_blocks = len(self.example)
        return sparse.csr_array(
            (np.ones(n_blocks), np.arange(n_blocks), self.starts), shape=(len(self.starts) - 1, n_blocks)
        )

    def lift(self, F: Array) -> Array:
        """Return the linear part of the slots' margins at the scores `F`."""
        scores = F if self.one_each else F[self.example]
        return scores - scores[np.arange(len(self.anchor)), self.anchor][:, None]

    def gather(self, alpha: Array) -> Array:
        """Return the adjoint of `lift`, (n, k)."""
        blocks = np.arange(len(self.anchor))
        moved = alpha.copy()
        moved[blocks, self.anchor] = 0.0
        moved[blocks, self.anchor] = -row_sums(moved)
        return moved if self.one_each else self.owner @ moved

    def atom_weights(self, theta: Array, rows: slice) -> Array:
        """Return the weights of the atoms that `theta` gives the examples `rows`."""
        first, last = self.starts[rows.start], self.starts[rows.stop]
        part = theta[first:last]
        scaled = part / row_sums(part)[:, None]
        weights = np.empty((len(part), self.atoms.shape[0]))
        at, k = 0, part.shape[1]
        for a in range(k - 1):
            np.multiply(scaled[:, a : a + 1], part[:, a + 1 :], out=weights[:, at : at + k - 1 - a])
            at += k - 1 - a
        return weights if self.one_each else self.owner[rows, first:last] @ weights

    def curvature(self, theta: Array, features: Any) -> Array:
        """Return the curvature (p, k, p, k) that `theta` gives features, in the classes' own coordinates."""
        k, p = theta.shape[1], features.shape[1]
        curvature = np.zeros((p, k, p, k))
        for first, last, part in chunks_of(features, k):
            begin, end = self.starts[first], self.starts[last]
            own = part if self.one_each else part[self.example[begin:end] - first]
            curvature += curvature_of_maxima(theta[begin:end], own)
        return curvature

    def from_dual(self, dual: Array) -> Array:
        """Return the slots of a dual point of the problem."""
        return dual[self.order]

    def to_dual(self, alpha: Array) -> Array:
        """Return the dual point of the problem that the slots stand for."""
        if self.one_each:
            return alpha
        dual = np.empty_like(alpha)
        dual[self.order] = alpha
        return dual


class CurvedSlots(SimplexSlots):
    """Maxima seen through a smooth loss l that goes on straight from its truncation.

    That is ``min_z pair_weight l(-z) + weight [epigraph - z]_+``: the anchor's slot has the margin z, which is no
    linear function of the scores but a variable with the condition ``pair_weight l'(-z) = weight - alpha``.
    """

    def __init__(self, losses: CurvedLosses):
        super().__init__(losses)
        self.curve = losses.curve
        self.pair_weight = losses.pair_weight[self.order]
        self.smooth = (np.arange(len(self.anchor)), self.anchor)

    def smooth_condition(self, alpha: Array, slack: Array, epigraph: Array) -> tuple[Array, Array]:
        """Return flexibility (inverse curvature) and residual of the smooth losses' conditions."""
        z = epigraph - slack[self.smooth]
        residual = self.weight - self.pair_weight * self.curve.slope(z) - alpha[self.smooth]
        return 1.0 / (self.pair_weight * self.curve.curvature(z)), residual

    def cost(self, slack: Array, epigraph: Array) -> float:
        """Return the losses at given values of the maxima."""
        straight = slack[self.smooth]
        return float(self.pair_weight @ self.curve.free_value(epigraph - straight) + self.weight @ straight)

    def complementarity(self, alpha: Array, slack: Array, epigraph: Array) -> float:
        """Return what separates primal and dual objective once the linear conditions hold."""
        others = alpha.copy()
        others[self.smooth] = 0.0
        total = row_sums(others)
        fraction = np.minimum(total / self.pair_weight, self.curve.steepest)
        conjugate = float(self.pair_weight @ self.curve.conjugate(fraction) - total @ epigraph)
        return float(np.vdot(others, slack)) + self.cost(slack, epigraph) + conjugate


def row_sums(array: Array) -> Array:
    """Return the sums over the slots of every block: as a product, much faster than `sum` on short rows."""
    return array @ np.ones(array.shape[1])


def _harmonic(theta: Array) -> Array:
    """Curvature of hinges: half the harmonic mean of the two slots."""
    return theta[:, 0] / (1.0 + theta[:, 0] / theta[:, 1])
