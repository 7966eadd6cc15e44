"""The time that a command was given, counted from its first moment: reading, judging and saving are part of it."""

import math
import time
from dataclasses import dataclass, field, replace

from polymargin.selection.seconds import parse_seconds


@dataclass(frozen=True, slots=True)
class Clock:
    """When a command began, and the seconds that it may take; none are counted where these are infinite.

    >>> Clock.of("90s").part(0.5) <= 45.0, Clock.of(None).part(0.5)
    (True, inf)
    """

    seconds: float = math.inf
    started: float = field(default_factory=lambda: time.perf_counter())

    @classmethod
    def of(cls, budget: str | None) -> "Clock":
        """Return a clock that begins now."""
        return cls(math.inf if budget is None else parse_seconds(budget))

    def within(self, budget: str | None) -> "Clock":
        """Return a clock that began with this one and has another budget."""
        return replace(self, seconds=Clock.of(budget).seconds)

    @property
    def left(self) -> float:
        """Seconds until the end."""
        return self.seconds - (time.perf_counter() - self.started)

    def part(self, share: float) -> float:
        """Return a share of what is left, or the shortest of times where nothing is."""
        return max(share * self.left, SHORTEST)


SHORTEST = 0.5
"""Seconds that a search gets where a budget is spent: what was asked for is tried at least once."""
