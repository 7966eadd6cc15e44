"""Budgets: what may be spent, of seconds or of rows given to fits, and what has been."""

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, Protocol

import numpy as np
from joblib import effective_n_jobs

from polymargin.checks import check_real
from polymargin.selection.seconds import parse_seconds
from polymargin.solvers.contract import Settings

GROWTH = 2.0
"""Exponent by which the time of a fit grows with the rows at worst, for a last fit where nothing was seen."""

LIKELY_GROWTH = 1.5
"""The same as it mostly is, for rounds of a search, which may be broken off."""

GROWN = 1.5
"""How many times as many rows make a difference to the time of a fit."""

FINAL_SHARE = 0.4
"""Part of a budget that is kept for the last fit."""

SHORTEST = 0.1
"""Seconds that a last fit gets where a budget is spent."""


class Seen(Protocol):
    """A setting that was tried: what a budget wants to know of it."""

    @property
    def params(self) -> dict[str, Any]:
        """The setting."""
        ...

    @property
    def n_rows(self) -> int:
        """Training rows of each of its fits."""
        ...

    @property
    def seconds(self) -> float:
        """Seconds that one fit took on average."""
        ...


@dataclass(slots=True)
class Budget:
    """What may be spent, and what has been."""

    seconds: float
    rows: float
    clock: Callable[[], float]
    started: float
    counted: int = 0
    n_at_once: int = 1

    @classmethod
    def of(cls, budget: Any) -> "Budget":
        """Return the budget that was given: text is a time, a number counts rows."""
        clock = time.perf_counter
        if isinstance(budget, str):
            return cls(parse_seconds(budget), np.inf, clock, clock())
        return cls(np.inf, check_real("budget", budget, above=0.0), clock, clock())

    @classmethod
    def given(cls, budget: Any) -> "Budget":
        """Return the same, or a budget without end for None."""
        return cls(np.inf, np.inf, time.perf_counter, time.perf_counter()) if budget is None else cls.of(budget)

    @property
    def seconds_left(self) -> float:
        """Seconds until the end; infinite where work is counted."""
        return self.seconds - (self.clock() - self.started)

    @property
    def rows_left(self) -> float:
        """Rows that may still be given to fits; infinite where time is."""
        return self.rows - self.counted

    def count(self, n_rows: int) -> None:
        """Count the rows given to a fit."""
        self.counted += n_rows

    def searched(self) -> bool:
        """Tell whether the search has had its part, so that the rest is for the last fit."""
        return self.spent_share >= 1.0 - FINAL_SHARE

    @property
    def seconds_of_search(self) -> float:
        """Seconds until the search has had its part."""
        return self.seconds_left - (FINAL_SHARE * self.seconds if np.isfinite(self.seconds) else 0.0)

    def shares(self, n_parts: int, n_jobs: int | None = None, *, of: float = 1.0) -> Iterator["Share"]:
        """Yield what each part of a search may spend of all that is left to the search, or `of` a part of it.

        Time that a part has left is for those after it; counted rows are divided beforehand, so that a search can
        be repeated exactly, whatever runs at once.
        """
        at_once = min(effective_n_jobs(n_jobs), n_parts)
        rows = max((1.0 - FINAL_SHARE) * self.rows - self.counted, 0.0) * of / n_parts
        ends = self.clock() + max(self.seconds_of_search, 0.0) * of
        for left in range(n_parts, 0, -1):
            yield Share(max(ends - self.clock(), 0.0) * min(at_once, left) / left, rows)

    def limit(self, own: float | None, *, of_search: bool = False) -> float | None:
        """Return the time limit of a fit whose own is given: what is left, of the search or of all."""
        left = max(self.seconds_of_search if of_search else self.seconds_left, SHORTEST)
        return own if own is not None and own <= left else (left if np.isfinite(left) else own)

    def last(self, settings: Settings) -> Settings:
        """Return settings with which the last fit ends with the budget, or a moment later."""
        return _ending(settings, max(self.seconds_left, SHORTEST))

    @property
    def spent_share(self) -> float:
        """Part of the budget that has been spent."""
        return max(
            1.0 - self.seconds_left / self.seconds if np.isfinite(self.seconds) else 0.0, self.counted / self.rows
        )

    def affords(self, n_fits: int, trials: Sequence[Seen], n_rows: int) -> bool:
        """Tell whether so many more fits to so many rows leave enough for the last one."""
        return self.spent_share + self.share_of(n_fits, trials, n_rows) <= 1.0 - FINAL_SHARE

    def share_of(self, n_fits: int, trials: Sequence[Seen], n_rows: int) -> float:
        """Return the part of the whole budget that so many fits to so many rows will take, by `trials`."""
        last = [trial for trial in trials if trial.n_rows == trials[-1].n_rows]
        seconds = float(np.mean([trial.seconds for trial in last]))
        expected = (
            n_fits * seconds * (n_rows / last[0].n_rows) ** growth_of(trials, LIKELY_GROWTH) / self.n_at_once
        )
        return max(expected / self.seconds, n_fits * n_rows / self.rows)

    def rows_allowed(self, trials: Sequence[Seen], best: Seen, n_rows: int) -> int:
        """Return how many rows the last fit may have, by how the time grew with the rows so far."""
        if np.isfinite(self.rows):
            return int(min(n_rows, max(0, self.rows_left)))
        growth = growth_of([trial for trial in trials if trial.params == best.params])
        allowed = best.n_rows * (max(self.seconds_left, 0.0) / best.seconds) ** (1.0 / growth)
        return int(min(n_rows, allowed))


def growth_of(trials: Sequence[Seen], unseen: float = GROWTH) -> float:
    """Return the exponent by which the time of a fit grows with its rows, by settings that were tried twice.

    Of each setting the trials with the fewest and the most rows count; `unseen` where there are no two.
    """
    ends: dict[str, list[Seen]] = {}
    for trial in sorted(trials, key=lambda trial: trial.n_rows):
        ends.setdefault(repr(trial.params), []).append(trial)
    grown = [(of[0], of[-1]) for of in ends.values() if of[-1].n_rows > GROWN * of[0].n_rows]
    if not grown:
        return unseen
    seconds = sum(last.seconds for _, last in grown) / max(sum(first.seconds for first, _ in grown), 1e-9)
    rows = sum(last.n_rows for _, last in grown) / sum(first.n_rows for first, _ in grown)
    return float(np.clip(np.log(seconds) / np.log(rows), 1.0, 3.0))


@dataclass(slots=True)
class Share:
    """What one part of a search may spend; its time begins with the part, perhaps in another process."""

    seconds: float
    rows: float
    counted: int = 0
    ends: float = np.inf

    def begun(self) -> "Share":
        """Return the share with its clock started."""
        return replace(self, ends=time.perf_counter() + self.seconds)

    def count(self, n_rows: int) -> None:
        """Count the rows given to a fit."""
        self.counted += n_rows

    def part(self, n_left: int) -> "Share":
        """Return the part of the first of `n_left` equal pieces of what is left, which begins now."""
        now = time.perf_counter()
        return Share(
            self.seconds, (self.rows - self.counted) / n_left, 0, now + max(self.ends - now, 0.0) / n_left
        )

    @property
    def is_spent(self) -> bool:
        """Whether nothing more is to begin."""
        return self.counted >= self.rows or time.perf_counter() >= self.ends

    def within(self, settings: Settings) -> Settings:
        """Return settings that end a fit with the share."""
        return replace(settings, until=min(settings.until, self.ends))


def middle_first(n: int) -> list[int]:
    """Return the positions of a grid from its middle outwards, for searches that may end early.

    >>> middle_first(5)
    [2, 1, 3, 0, 4]
    """
    return sorted(range(n), key=lambda at: abs(2 * at - (n - 1)))


def _ending(settings: Settings, seconds: float) -> Settings:
    """Return settings that end so many seconds from now."""
    return replace(settings, until=min(settings.until, time.perf_counter() + seconds))
