"""The rules of the verdicts: each answers yes, no or undecided from numbers alone, and each can answer no.

Two rules serve all three statements. `gain` asks whether a paired difference is above zero, as the paper says;
`same` asks whether a difference is small, by an interval that must lie within a band stated with the item. A wide
interval is never agreement: it leaves the question open, and so do fewer than five repetitions.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from enum import StrEnum

import numpy as np
from scipy.stats import rankdata, t

LEVEL = 0.05
"""Level of the one-sided tests; intervals are two-sided at 1 - 2 LEVEL, as equivalence tests have it."""

LEAST_REPETITIONS = 5
"""Fewer repetitions decide nothing: the paired test cannot reach its level with four."""

HALF = 0.5
"""Share of an effect, or of a spread, that counts as nothing: half of what the paper shows."""

MOST = 0.8
"""Share of the numbers, or pairs, of a table that must answer yes for the table to."""


class Answer(StrEnum):
    """What a rule says."""

    YES = "yes"
    PART = "in part"
    OPEN = "undecided"
    NO = "no"
    NONE = "nothing to judge"


@dataclass(frozen=True)
class Finding:
    """One answer with the numbers behind it.

    Attributes
    ----------
    what : what was compared.
    answer : the answer.
    effect, low, high : the effect and its interval at 1 - 2 LEVEL.
    margin : what the interval was held against: the band, or the least effect that counts.
    repetitions : how many there were.
    p : of the paired test, where one was made.
    """

    what: str
    answer: Answer
    effect: float
    low: float
    high: float
    margin: float
    repetitions: int
    p: float | None = None


def gain(what: str, effects: Sequence[float], least: float, *, exact: bool = False) -> Finding:
    """Tell whether paired differences are above zero.

    Yes if Wilcoxon's signed-rank test says so; no if the interval of the mean stays below `least`, the smallest
    effect that would bear the paper out; undecided otherwise. Where nothing is random (`exact`) the sign decides.
    """
    if least <= 0:
        raise ValueError(f"least must be positive, got {least}: without it no result could refute the claim.")
    values = np.asarray(effects, dtype=float)
    mean, low, high = interval(values, exact=exact)
    n = len(values)
    if exact:
        return Finding(what, Answer.YES if mean > 0 else Answer.NO, mean, low, high, least, n)
    p = signed_rank(values)
    if n >= LEAST_REPETITIONS and p < LEVEL:
        answer = Answer.YES
    elif n >= LEAST_REPETITIONS and high < least:
        answer = Answer.NO
    else:
        answer = Answer.OPEN
    return Finding(what, answer, mean, low, high, least, n, p)


def same(what: str, effects: Sequence[float], band: float, *, exact: bool = False) -> Finding:
    """Tell whether paired differences are within a band: the interval of their mean inside, outside or across."""
    values = np.asarray(effects, dtype=float)
    mean, low, high = interval(values, exact=exact)
    decidable = exact or len(values) >= LEAST_REPETITIONS
    return Finding(what, within(low, high, band, decidable), mean, low, high, band, len(values))


def within(low: float, high: float, band: float, decidable: bool = True) -> Answer:
    """Tell whether an interval lies in [-band, band], outside of it, or across its edge."""
    if not decidable:
        return Answer.OPEN
    rounding = 1e-9 * max(band, 1e-12)
    if -band - rounding <= low and high <= band + rounding:
        return Answer.YES
    if low > band + rounding or high < -band - rounding:
        return Answer.NO
    return Answer.OPEN


def interval(values: np.ndarray, *, exact: bool = False) -> tuple[float, float, float]:
    """Return the mean and its interval at 1 - 2 LEVEL, of no width where nothing is random."""
    mean = float(values.mean())
    if exact:
        return mean, mean, mean
    if len(values) < 2:
        return mean, -np.inf, np.inf
    half = quantile(len(values)) * float(values.std(ddof=1)) / np.sqrt(len(values))
    return mean, mean - half, mean + half


def quantile(repetitions: int) -> float:
    """Return the quantile of Student's distribution that an interval of a mean has."""
    return float(t.ppf(1.0 - LEVEL, repetitions - 1)) if repetitions > 1 else np.inf


def signed_rank(effects: np.ndarray) -> float:
    """Return the exact one-sided p-value of Wilcoxon's signed-rank test; effects of zero are left out."""
    nonzero = effects[effects != 0.0]
    # Twice the ranks are whole numbers, also where ties share one.
    ranks = np.rint(2.0 * rankdata(np.abs(nonzero))).astype(int)
    reached = int(ranks[nonzero > 0].sum())
    # The chance of every sum of ranks, when each sign is a toss of a coin.
    chances = np.zeros(int(ranks.sum()) + 1)
    chances[0] = 1.0
    for rank in ranks:
        moved = np.zeros_like(chances)
        moved[rank:] = chances[: len(chances) - rank]
        chances = 0.5 * (chances + moved)
    return float(chances[reached:].sum())


def share_of(answers: Iterable[Answer], needed: float = MOST) -> Answer:
    """Answer for many: yes if the needed share does, no if it no longer can, undecided otherwise."""
    listed = [answer for answer in answers if answer is not Answer.NONE]
    if not listed:
        return Answer.NONE
    slack = 1e-9
    if listed.count(Answer.YES) >= needed * len(listed) - slack:
        return Answer.YES
    if listed.count(Answer.NO) > (1.0 - needed) * len(listed) + slack:
        return Answer.NO
    return Answer.OPEN


def together(answers: Iterable[Answer]) -> Answer:
    """Answer for several claims: in part where some hold and others do not."""
    listed = [answer for answer in answers if answer is not Answer.NONE]
    if not listed:
        return Answer.NONE
    if Answer.NO in listed and (Answer.YES in listed or Answer.PART in listed):
        return Answer.PART
    if Answer.NO in listed:
        return Answer.NO
    return Answer.YES if all(answer is Answer.YES for answer in listed) else Answer.OPEN
