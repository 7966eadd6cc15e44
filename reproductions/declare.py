"""What a table or a figure of a paper declares; its module holds one of these under the name REPRODUCTION."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.utils import Bunch

from polymargin.datasets import fetch_benchmark

Key = tuple[str, ...]


class UnavailableError(Exception):
    """Something that a reproduction needs is not here; the message says what."""


@dataclass(frozen=True)
class Context:
    """What one repetition is given: its own seed, whether to be quick, where real data are, and its number.

    The number lets a table make fewer repetitions of what takes long.
    """

    seed: int
    quick: bool = False
    data_home: str | None = None
    repetition: int = 0

    def seeds(self, n: int) -> list[int]:
        """Return n further seeds, for the parts of a repetition."""
        return np.random.SeedSequence(self.seed).generate_state(n).tolist()

    def fetch(self, name: str) -> Bunch:
        """Return a real data set, or say that it is not here."""
        try:
            return fetch_benchmark(name, self.data_home)
        except (FileNotFoundError, ConnectionError) as error:
            raise UnavailableError(str(error)) from error


@dataclass(frozen=True)
class Theirs:
    """A number of the paper, with its standard deviation over repetitions where it is printed.

    What depends on the machine or on chance alone (times, p-values) is shown and not judged.
    """

    value: float
    deviation: float | None = None
    judged: bool = True


@dataclass(frozen=True)
class Row:
    """A number of ours, over the repetitions, beside theirs."""

    key: Key
    ours: float
    error: float
    repetitions: int
    theirs: float | None
    their_error: float | None
    judged: bool

    @property
    def difference(self) -> float | None:
        """Ours minus theirs."""
        return None if self.theirs is None else self.ours - self.theirs

    def agrees(self, tolerance: float) -> bool:
        """Tell whether the difference is within the tolerance and two standard errors."""
        chance = 2.0 * np.hypot(np.nan_to_num(self.error), self.their_error or 0.0)
        return self.difference is not None and abs(self.difference) <= tolerance + chance + 1e-12


@dataclass(frozen=True)
class Table:
    """A table: a function that computes one repetition, and the paper's numbers.

    Attributes
    ----------
    title : what the table shows.
    parts : names of the parts of a key, such as ("method", "measure").
    paper : the paper's numbers by key.
    repetition : computes the numbers of one repetition by key, from its context alone.
    repetitions : how many a full run makes.
    paper_repetitions : how many the paper made, where it says so.
    medians : the measures (last parts of keys) whose median over the repetitions is reported, not the mean.
    tolerance : difference, in units of the table, up to which two numbers count as equal, beyond chance.
    digits : decimals to print.
    notes : what readers must know, such as where the paper leaves room.
    plot : draws the summarised rows, where the paper has a figure.
    judge : returns the verdict, where the paper makes claims and prints no numbers.
    """

    title: str
    parts: Key
    paper: Mapping[Key, Theirs]
    repetition: Callable[[Context], Mapping[Key, float]]
    repetitions: int
    paper_repetitions: int | None = None
    medians: Key = ()
    tolerance: float = 0.0
    digits: int = 2
    notes: str = ""
    plot: Callable[[Sequence[Row]], Any] | None = None
    judge: Callable[[Sequence[Row]], str] | None = None


@dataclass(frozen=True)
class Figure:
    """A figure: a function that draws it, what was seen when it was drawn in full, and what readers must know."""

    title: str
    draw: Callable[[Context], Any]
    verdict: str
    notes: str = ""
