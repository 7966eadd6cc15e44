"""Rows of a search that starts small: their order, how many take part in which round, and which of them judge."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.model_selection import StratifiedKFold
from sklearn.utils import _safe_indexing

from polymargin.selection.trials import FOLDS

LEAST_PER_CLASS = 2 * FOLDS
"""Rows of every class that take part from the first round on, where there are as many."""

JUDGES = 1 / 3
"""Part of the rows that judges rounds in which few others are trained on."""

MOST_JUDGES = 3_000
"""Rows that are enough to tell settings apart."""


@dataclass(frozen=True, slots=True)
class Data:
    """Rows, their classes and, where given, their costs."""

    X: Any
    y: NDArray
    costs: NDArray[np.float64] | None

    @property
    def priced(self) -> dict[str, Any]:
        """The costs as a keyword of `fit` and of scorers."""
        return {} if self.costs is None else {"costs": self.costs}

    def part(self, rows: NDArray[np.intp]) -> "Data":
        """Return some rows."""
        costs = None if self.costs is None else self.costs[rows]
        return Data(_safe_indexing(self.X, rows), self.y[rows], costs)


@dataclass(frozen=True, slots=True)
class Examination:
    """Rows to train on, and the parts of others that each give a score."""

    train: NDArray[np.intp]
    judges: list[NDArray[np.intp]]


@dataclass(frozen=True, slots=True)
class Subsamples:
    """All rows in an order whose beginnings have the classes in proportion, and the sizes of the rounds.

    While some rows are trained on, a third of all judges, by one fit in as many parts as there are folds; once all
    take part, folds judge each other.

    Attributes
    ----------
    y : (n,) the classes.
    order : (n,) all rows.
    learners, judges : those of rounds in which some rows are trained on.
    sizes : numbers of rows of the rounds, three times as many each, the last one all.
    """

    y: NDArray
    order: NDArray[np.intp]
    learners: NDArray[np.intp]
    judges: NDArray[np.intp]
    sizes: list[int]

    @classmethod
    def of(cls, y: NDArray, first_rows: int, rng: np.random.RandomState) -> "Subsamples":
        """Draw the order of rows with classes y."""
        order = ordered(y, rng)
        judging = np.zeros(len(y), dtype=bool)
        for label in np.unique(y):
            # the last of every class: none of those that are to be in the first round, as long as there are others
            own = order[y[order] == label]
            judging[own[len(own) - int(np.ceil(JUDGES * len(own))) :]] = len(own) > 1
        learners, judges = order[~judging[order]], order[judging[order]]
        few = judges[ordered(y[judges], rng)[:MOST_JUDGES]]
        return cls(y, order, learners, few, _sizes(first_rows, y))

    def examinations(self, size: int, seed: int) -> Iterator[Examination]:
        """Yield what settings are judged by in a round of so many rows."""
        if size < len(self.y):
            by_class = self.judges[np.argsort(self.y[self.judges], kind="stable")]
            yield Examination(np.sort(self.learners[:size]), [by_class[at::FOLDS] for at in range(FOLDS)])
            return
        folds = StratifiedKFold(FOLDS, shuffle=True, random_state=seed)
        for train, test in folds.split(np.zeros(len(self.y)), self.y):
            yield Examination(train, [test])

    def fits(self, size: int) -> int:
        """Return how many fits a setting takes in a round of so many rows."""
        return 1 if size < len(self.y) else FOLDS


def least_rows(y: NDArray) -> int:
    """Return how many rows of the order it takes to have some of every class."""
    return int(np.minimum(np.unique(y, return_counts=True)[1], LEAST_PER_CLASS).sum())


def _sizes(first: int, y: NDArray) -> list[int]:
    sizes, size = [], max(first, least_rows(y))
    while size <= (1.0 - JUDGES) * len(y):
        sizes.append(size)
        size *= 3
    return [*sizes, len(y)]


def ordered(y: NDArray, rng: np.random.RandomState) -> NDArray[np.intp]:
    """Return an order of the rows whose beginnings have the classes in proportion, and some rows of each."""
    _, labels, counts = np.unique(y, return_inverse=True, return_counts=True)
    shuffled = rng.permutation(len(y))
    by_class = shuffled[np.argsort(labels[shuffled], kind="stable")]
    rank = np.arange(len(y)) - np.repeat(np.cumsum(counts) - counts, counts)
    sizes = np.repeat(counts, counts)
    place = np.where(rank < LEAST_PER_CLASS, -1.0, (rank + 0.5) / sizes)
    return by_class[np.argsort(place, kind="stable")]
