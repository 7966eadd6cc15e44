"""How fast a gap falls, and what is still to do: for methods whose number of steps nobody can foretell."""

from bisect import bisect_left
from math import expm1, inf, log
from sys import float_info

from polymargin.solvers.contract import Record

LARGEST = log(float_info.max)
"""Logarithm of the largest number."""


class Pace:
    """The work done and the smallest gaps until then; what is to do, by the second half of it.

    Gaps fall by a power of the work, or by a factor with every unit of it. Of fits followed to their ends
    the power told what was to do nearly without bias once a fifth was done, and far too much before; the factor
    told several times too little all the way. The less of the two is expected, the factor slowed down as much.

    Parameters
    ----------
    tol : the relative gap at the end.
    """

    def __init__(self, tol: float):
        self.tol = tol
        self._work: list[float] = []
        self._gaps: list[float] = []

    def note(self, record: Record) -> None:
        """Take in a record; a gap that rises is noise of the primal, mostly."""
        gap = record.primal - record.dual
        self._work.append(record.work)
        self._gaps.append(min(gap, self._gaps[-1]) if self._gaps else gap)
        self._scale = max(1.0, abs(record.dual))

    def to_go(self, slower: float) -> float:
        """Return the work to the tolerance, where a factor of late may take so many times as long from now on."""
        if not self._work:
            return inf
        work, gap = self._work[-1], self._gaps[-1]
        if gap <= self.tol * self._scale:
            return 0.0
        at = bisect_left(self._work, 0.5 * work)
        before, earlier = self._work[at], self._gaps[at]
        if not earlier > gap or not work > before > 0.0:
            return inf
        nats, fallen = log(gap / (self.tol * self._scale)), log(earlier / gap)
        by_factor = slower * nats * (work - before) / fallen
        by_power = work * expm1(min(nats * log(work / before) / fallen, LARGEST))
        return min(by_factor, by_power)
