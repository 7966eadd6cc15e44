"""Which points of a grid of widths and C are worth a fit: a coarse grid, then finer ones around the best point."""

from collections.abc import Iterable, Mapping
from itertools import product

import numpy as np
from numpy.typing import NDArray

Place = tuple[int, int]
"""Positions of a width and of a C."""

COARSE = (8.0, 16.0)
"""Factors between widths and between values of C over which a criterion changes smoothly."""


class Refinement:
    """Places on the grid to look at, round by round; each round depends on the values of those before.

    The first round is a coarse grid in the middle of the whole one, whose ends are half a step away: they are
    seldom best, and the largest C takes longest. Each further round halves the steps and looks at the up to eight
    neighbours of the best place so far, until all those next to it on the whole grid are seen.

    Parameters
    ----------
    widths, Cs : (n,) and (m,) values, ascending.
    factors : between neighbours on the coarse grid, about; factors of one for all places at once.
    """

    def __init__(
        self, widths: NDArray[np.float64], Cs: NDArray[np.float64], factors: tuple[float, float] = COARSE
    ):
        self.shape = (len(widths), len(Cs))
        self.coarse = tuple(_spread(*axis) for axis in zip((widths, Cs), factors, strict=True))
        self.steps = tuple(
            int(np.diff(places).max()) if len(places) > 1 else max(m - 1, 1)
            for m, places in zip(self.shape, self.coarse, strict=True)
        )

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
        return ((w, c) for w, c in places if 0 <= w < self.shape[0] and 0 <= c < self.shape[1])


def _spread(values: NDArray[np.float64], factor: float) -> list[int]:
    """Return positions of ascending values about a factor apart, and half of that from both ends.

    >>> _spread(2.0 ** np.arange(9), 4.0)
    [1, 3, 5, 7]
    """
    m = len(values)
    if m < 2 or factor <= 1.0:
        return list(range(m))
    reach = np.log(values[-1] / values[0])
    pieces = int(np.clip(np.ceil(reach / np.log(factor) - 1e-9), 1, m))
    middles = np.log(values[0]) + (np.arange(pieces) + 0.5) / pieces * reach
    return sorted(set(np.abs(np.log(values)[:, None] - middles).argmin(axis=0).tolist()))
