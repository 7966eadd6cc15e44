"""What the margins of hinges see of the scores: tables that are kept, and two that need not be spelled out.

A table says what slot m of an example of class y sees, ``<directions[y, m], f>``. It has as many numbers as there
are classes, to the third power, so that the two that the machines of many classes need are but their rule.
"""

from abc import ABC, abstractmethod
from dataclasses import dataclass, replace
from typing import Self

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from polymargin.coding import class_pairs
from polymargin.problems.hinge.losses import Array

LARGEST_EXPONENT = 350.0
"""Exponent beyond which the exponential function has no square in double precision."""

Atoms = tuple[sparse.csr_array, NDArray[np.intp]]
"""The different directions (atoms, k) up to their signs, and which of them every asked for one is."""


@dataclass(frozen=True, slots=True)
class Columns(ABC):
    """Directions of some dual variables, as sums over these see them.

    Attributes
    ----------
    kind : (m,) which of the different directions every variable has.
    """

    kind: NDArray[np.intp]

    def following(self, kinds: NDArray[np.intp], kept: NDArray[np.bool_]) -> Self:
        """Return variables of some kinds, then those of these that are `kept`."""
        return replace(self, kind=np.concatenate([kinds, self.kind[kept]]))

    @abstractmethod
    def growth(self, t: Array) -> Array:
        """Return the exponential function of the inner products of the directions with t (k,)."""

    @abstractmethod
    def sums(self, entries: Array) -> Array:
        """Return the sum (k,) of the directions times `entries`."""

    @abstractmethod
    def outer(self, entries: Array) -> Array:
        """Return the sum (k, k) of the directions' products with themselves times `entries`."""


class Table(ABC):
    """The linear part of margins, ``<directions[y, m], f>``.

    Attributes
    ----------
    directions : all of them, (k, slots, k).
    n_slots, n_classes : sizes.
    """

    directions: Array
    n_slots: int
    n_classes: int

    @abstractmethod
    def rows(self, labels: NDArray[np.intp], slots: NDArray[np.intp]) -> Array:
        """Return the directions (m, k) of some slots of examples of the classes `labels`."""

    @abstractmethod
    def slopes(self, labels: NDArray[np.intp], F: Array) -> Array:
        """Return the linear part of the margins of examples of the classes `labels` at the scores `F`."""

    @abstractmethod
    def pull(self, labels: NDArray[np.intp], dual: Array) -> Array:
        """Return the adjoint of `slopes`."""

    @abstractmethod
    def columns(self, labels: NDArray[np.intp], slots: NDArray[np.intp]) -> Columns:
        """Return the directions of some slots for sums over them."""

    @abstractmethod
    def atoms(self, labels: NDArray[np.intp], slots: NDArray[np.intp]) -> Atoms:
        """Return the different directions of the table, and which of them some slots have."""


@dataclass(frozen=True)
class KeptTable(Table):
    """Any table.

    Parameters
    ----------
    directions : (k, slots, k).
    """

    directions: Array

    @property
    def n_slots(self) -> int:  # type: ignore[override]
        """Number of slots of an example."""
        return self.directions.shape[1]

    @property
    def n_classes(self) -> int:  # type: ignore[override]
        """Number of classes."""
        return self.directions.shape[2]

    def rows(self, labels: NDArray[np.intp], slots: NDArray[np.intp]) -> Array:
        """Return the directions of some slots."""
        return self.directions[labels, slots]

    def slopes(self, labels: NDArray[np.intp], F: Array) -> Array:
        """Return the linear part of the margins."""
        slopes = np.empty((len(F), self.n_slots))
        for own, table in enumerate(self.directions):
            rows = np.flatnonzero(labels == own)
            slopes[rows] = F[rows] @ table.T
        return slopes

    def pull(self, labels: NDArray[np.intp], dual: Array) -> Array:
        """Return the adjoint of `slopes`."""
        pull = np.empty((len(dual), self.n_classes))
        for own, table in enumerate(self.directions):
            rows = np.flatnonzero(labels == own)
            pull[rows] = dual[rows] @ table
        return pull

    def columns(self, labels: NDArray[np.intp], slots: NDArray[np.intp]) -> Columns:
        """Return the directions of some slots, each once."""
        return _Grouped(labels * self.n_slots + slots, self.directions.reshape(-1, self.n_classes))

    def atoms(self, labels: NDArray[np.intp], slots: NDArray[np.intp]) -> Atoms:
        """Return the different directions, and those of some slots."""
        atoms, number = _unique_up_to_sign(self.directions.reshape(-1, self.n_classes))
        return sparse.csr_array(atoms), number[labels * self.n_slots + slots]


class SingleScores(Table):
    """What hinges see that see single scores of functions that sum to zero: the same for all classes."""

    def __init__(self, n_classes: int):
        self.n_slots = self.n_classes = n_classes
        self.of_all = np.eye(n_classes) - 1.0 / n_classes

    @property
    def directions(self) -> Array:  # type: ignore[override]
        """One table for all classes."""
        return np.broadcast_to(self.of_all, (self.n_classes, self.n_classes, self.n_classes))

    def rows(self, labels: NDArray[np.intp], slots: NDArray[np.intp]) -> Array:
        """Return the directions of some slots."""
        return self.of_all[slots]

    def slopes(self, labels: NDArray[np.intp], F: Array) -> Array:
        """Return the scores less their mean."""
        return F @ self.of_all.T

    def pull(self, labels: NDArray[np.intp], dual: Array) -> Array:
        """Return the adjoint of `slopes`."""
        return dual @ self.of_all

    def columns(self, labels: NDArray[np.intp], slots: NDArray[np.intp]) -> Columns:
        """Return the directions of some slots, each once."""
        return _Grouped(slots, self.of_all)

    def atoms(self, labels: NDArray[np.intp], slots: NDArray[np.intp]) -> Atoms:
        """Return one direction a class, and the slots."""
        atoms, number = _unique_up_to_sign(self.of_all)
        return sparse.csr_array(atoms), number[slots]


class Differences(Table):
    """What margins see that are differences to the score of the own class."""

    def __init__(self, n_classes: int):
        self.n_slots = self.n_classes = n_classes

    @property
    def directions(self) -> Array:  # type: ignore[override]
        """All directions."""
        identity = np.eye(self.n_classes)
        return identity[None, :, :] - identity[:, None, :]

    def rows(self, labels: NDArray[np.intp], slots: NDArray[np.intp]) -> Array:
        """Return the directions of some slots."""
        rows, at = np.zeros((len(slots), self.n_classes)), np.arange(len(slots))
        rows[at, slots] += 1.0
        rows[at, labels] -= 1.0
        return rows

    def slopes(self, labels: NDArray[np.intp], F: Array) -> Array:
        """Return the differences of the scores to that of the own class."""
        return F - F[np.arange(len(F)), labels][:, None]

    def pull(self, labels: NDArray[np.intp], dual: Array) -> Array:
        """Return the adjoint of `slopes`: the own class makes up the row."""
        pull, rows = dual.copy(), np.arange(len(dual))
        pull[rows, labels] = 0.0
        pull[rows, labels] = -(pull @ np.ones(self.n_classes))
        return pull

    def columns(self, labels: NDArray[np.intp], slots: NDArray[np.intp]) -> Columns:
        """Return the directions of some slots as arcs between classes."""
        return _Arcs(labels * self.n_classes + slots, self.n_classes)

    def atoms(self, labels: NDArray[np.intp], slots: NDArray[np.intp]) -> Atoms:
        """Return the pairs of classes, and those of some slots other than the own class's."""
        first, second = np.minimum(labels, slots), np.maximum(labels, slots)
        return pair_atoms(self.n_classes), first * (2 * self.n_classes - first - 1) // 2 + second - first - 1


@dataclass(frozen=True, slots=True)
class _Grouped(Columns):
    """Directions of which many are the same: column m has that of number `kind[m]`."""

    directions: Array

    def growth(self, t: Array) -> Array:
        return _exponential(self.directions @ t)[self.kind]

    def sums(self, entries: Array) -> Array:
        return np.bincount(self.kind, entries, minlength=len(self.directions)) @ self.directions

    def outer(self, entries: Array) -> Array:
        of_groups = np.bincount(self.kind, entries, minlength=len(self.directions))
        return self.directions.T @ (of_groups[:, None] * self.directions)


@dataclass(frozen=True, slots=True)
class _Arcs(Columns):
    """Differences of classes, for which sums are those over the arcs of a graph.

    Attributes
    ----------
    kind : the class that an arc comes from, times the number of classes, plus the one that it leads to.
    n_classes : their number.
    """

    n_classes: int

    def growth(self, t: Array) -> Array:
        return _exponential(t - t[:, None]).ravel()[self.kind]

    def sums(self, entries: Array) -> Array:
        flow, ones = self._flow(entries), np.ones(self.n_classes)
        return np.asarray(ones @ flow - flow @ ones, dtype=np.float64)

    def outer(self, entries: Array) -> Array:
        flow = self._flow(entries)
        flow = flow + flow.T
        return np.diag(flow @ np.ones(self.n_classes)) - flow

    def _flow(self, entries: Array) -> Array:
        k = self.n_classes
        return np.asarray(np.bincount(self.kind, entries, minlength=k * k), dtype=np.float64).reshape(k, k)


def _exponential(values: Array) -> Array:
    """Return the exponential function, as far as it has a square."""
    bounded = np.minimum(np.maximum(values, -LARGEST_EXPONENT), LARGEST_EXPONENT)
    return np.asarray(np.exp(bounded))


def signed_scores(n_classes: int) -> KeptTable:
    """Return the table of hinges that see minus the score of the own class and those of the others."""
    signs = np.ones((n_classes, n_classes)) - 2.0 * np.eye(n_classes)
    return KeptTable(signs[:, :, None] * SingleScores(n_classes).directions)


def pair_atoms(n_classes: int) -> sparse.csr_array:
    """Return the differences (pairs, k) of the pairs of classes, the first less the second."""
    pairs = class_pairs(n_classes)
    values = np.tile([1.0, -1.0], len(pairs))
    starts = np.arange(0, 2 * len(pairs) + 1, 2)
    return sparse.csr_array((values, pairs.ravel(), starts), shape=(len(pairs), n_classes))


def _unique_up_to_sign(directions: Array) -> tuple[Array, NDArray[np.intp]]:
    """Return the different vectors (atoms, k) of some directions (m, k), and the number that each of these has."""
    k = directions.shape[-1]
    leading = np.take_along_axis(directions, (directions != 0).argmax(axis=1)[:, None], axis=1)
    signed = np.where(leading < 0, -1.0, 1.0) * directions + 0.0  # 0.0 takes the sign off zeros
    # most rows of a large table are equal, and sorting compares equal ones to their ends: so they are hashed first
    number: dict[bytes, int] = {}
    numbers = [number.setdefault(row.tobytes(), len(number)) for row in signed]
    different = np.frombuffer(b"".join(number), dtype=signed.dtype).reshape(-1, k)
    atoms, order = np.unique(different, axis=0, return_inverse=True)
    return atoms, order.reshape(-1)[numbers]
