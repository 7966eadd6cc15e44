"""What a table or a figure of a paper declares; its module holds one of these under the name REPRODUCTION."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from sklearn.utils import Bunch

from polymargin.datasets import fetch_benchmark
from reproductions.rules import HALF

Key = tuple[str, ...]
Values = Mapping[Key, float]


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
class Band:
    """How far a number may be from the paper's and still count as equal, fixed before any run: width, and why."""

    width: float
    why: str

    @classmethod
    def of_effect(cls, effect: float, why: str) -> "Band":
        """Return half of an effect that the paper claims."""
        return cls(HALF * abs(effect), f"half of {why}")

    @classmethod
    def of_spread(cls, deviation: float, why: str) -> "Band":
        """Return half of the paper's own standard deviation."""
        return cls(HALF * deviation, f"half of {why}")


@dataclass(frozen=True)
class Comparison:
    """One paired effect: computed from the numbers of a repetition, and what it is held against.

    Attributes
    ----------
    label : what is compared.
    effect : its value in one repetition.
    margin : for a gain the least effect that would bear the paper out, for sameness the band.
    """

    label: str
    effect: Callable[[Values], float]
    margin: float


def difference(label: str, larger: Key, smaller: Key, margin: float) -> Comparison:
    """Compare two numbers of a repetition: the first is to be the larger one."""
    return Comparison(label, lambda values: values[larger] - values[smaller], margin)


@dataclass(frozen=True)
class Claim:
    """What the paper says that an item shows.

    Attributes
    ----------
    says : the statement, in one sentence.
    comparisons : the effects that must be above zero or, with `same`, within their margins.
    same : whether the paper says that things are alike.
    needed : share of the comparisons that must hold, one for all.
    of_paper : whether the paper says so; otherwise we do, to explain it.
    """

    says: str
    comparisons: Sequence[Comparison]
    same: bool = False
    needed: float = 1.0
    of_paper: bool = True


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


@dataclass(frozen=True)
class Reproduction:
    """A table or a figure: what computes one repetition of its numbers, the paper's numbers and what it claims.

    Attributes
    ----------
    title : what the item shows.
    parts : names of the parts of a key, such as ("method", "measure").
    repetition : computes the numbers of one repetition by key, from its context alone.
    repetitions : how many a full run makes.
    paper : the paper's numbers by key.
    paper_repetitions : how many the paper made, where it says so.
    claims : what the paper says that the item shows.
    band : returns how far a number of that key may be from the paper's.
    method_part : which part of a key names the method; order is judged between methods that agree in all others.
    exact : whether nothing is random, so that one repetition is all there is.
    medians : the measures (last parts of keys) whose median over the repetitions is reported, not the mean.
    timed : the measures that differ from run to run, such as seconds.
    digits : decimals to print.
    protocol : what we did where the paper leaves room: grids, ties, scaling.
    notes : what else readers must know.
    plot : draws the summarised rows, where the paper has a figure of numbers.
    draw : draws the item from one fit, where the paper has a picture.
    """

    title: str
    parts: Key
    repetition: Callable[[Context], Values]
    repetitions: int
    paper: Mapping[Key, Theirs] = field(default_factory=dict)
    paper_repetitions: int | None = None
    claims: Sequence[Claim] = ()
    band: Callable[[Key], Band] | None = None
    method_part: int | None = None
    exact: bool = False
    medians: Key = ()
    timed: Key = ()
    digits: int = 2
    protocol: str = ""
    notes: str = ""
    plot: Callable[[Sequence[Row]], Any] | None = None
    draw: Callable[[Context], Any] | None = None
