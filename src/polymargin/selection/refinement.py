"""Which points of a grid of widths and C are worth a fit: a coarse grid, then finer ones around the best point."""

from collections.abc import Iterable, Mapping
from itertools import product

import numpy as np
from numpy.typing import NDArray

Place = tuple[int, int]
"""Positions of a width and of a C."""

COARSE = (4.0, 16.0)
"""Factors between widths and between values of C over which a criterion changes smoothly."""


class Refinement:
    """Places on the grid to look at, round by round; each round depends on the values of those before.

    The first round is a coarse grid with the ends of the whole one. Each further one halves the steps and looks at
    the up to eight neighbours of the best place so far, until all those next to it on the whole grid are seen.

    Parameters
    ----------
    widths, Cs : (n,) and (m,) values, ascending.
    factors : between neighbours on the coarse grid, at most; factors of one for all places at once.
    """

    def __init__(
        self, widths: NDArray[np.float64], Cs: NDArray[np.float64], factors: tuple[float, float] = COARSE
    ):
        self.axes = (widths, Cs)
        self.coarse = tuple(_spaced(values, factor) for values, factor in zip(self.axes, factors, strict=True))
        self.steps = tuple(int(np.diff(places).max(initial=1)) for places in self.coarse)

    def first(self) -> list[Place]:
        """Return the places of the coarse grid."""
        widths, Cs = self.coarse
        return list(product(widths, Cs))

    def next(self, values: Mapping[Place, float]) -> list[Place]:
        """Return the places to look at when those before have these values; none at the end.

        Of equal values that at the smaller C is best, then that of the smaller width.
        """
        best = min(values, key=lambda place: (values[place], place[1], place[0]))
        while True:
            last = self.steps
            self.steps = tuple((step + 1) // 2 for step in last)
            unseen = [place for place in self._around(best) if place not in values]
            if unseen or last == self.steps:
                return unseen

    def _around(self, best: Place) -> Iterable[Place]:
        """Return the neighbours of a place, at the present steps."""
        moves = product(*((-step, 0, step) for step in self.steps))
        places = ((best[0] + across, best[1] + along) for across, along in moves)
        return ((w, c) for w, c in places if 0 <= w < len(self.axes[0]) and 0 <= c < len(self.axes[1]))


def _spaced(values: NDArray[np.float64], factor: float) -> list[int]:
    """Return positions of ascending values, each as far from the one before as the factor allows, with both ends.

    >>> _spaced(2.0 ** np.arange(6), 4.0)
    [0, 2, 4, 5]
    """
    places = [0]
    while places[-1] < len(values) - 1:
        farthest = int(np.searchsorted(values, factor * values[places[-1]] * (1 + 1e-9), side="right")) - 1
        places.append(max(farthest, places[-1] + 1))
    return places
