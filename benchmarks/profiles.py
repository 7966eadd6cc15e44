"""Performance profiles, and how times grow: what pictures of many measured times are made of."""

from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray


def ratios_to_best(seconds: Mapping[str, Sequence[float]]) -> dict[str, NDArray[np.float64]]:
    """Return the times of every method over those of the quickest one, problem by problem.

    A time that is not finite is a problem that the method has not solved. One that no method has solved says
    nothing of any of them, and is left out.

    >>> ratios_to_best({"a": [1.0, 4.0], "b": [2.0, np.inf]})
    {'a': array([1., 1.]), 'b': array([ 2., inf])}
    """
    times = np.array(list(seconds.values()), dtype=np.float64)
    times = np.where(np.isfinite(times), times, np.inf)
    best = times.min(axis=0)
    solved = np.isfinite(best)
    return dict(zip(seconds, times[:, solved] / best[solved], strict=True))


def shares_within(ratios: NDArray[np.float64], factors: Sequence[float]) -> NDArray[np.float64]:
    """Return the shares of problems that are solved within these factors of the best time.

    >>> shares_within(np.array([1.0, 3.0, np.inf, 1.5]), [1.0, 2.0, 10.0])
    array([0.25, 0.5 , 0.75])
    """
    return (np.asarray(ratios)[:, None] <= np.asarray(factors)).mean(axis=0)


def slope(sizes: Sequence[float], seconds: Sequence[float]) -> float:
    """Return the exponent of the power of the size that the times grow with, by least squares of the logarithms.

    Times that are not finite are left out; fewer than two tell nothing.

    >>> round(slope([100, 200, 400], [1.0, 4.0, 16.0]), 9)
    2.0
    """
    sizes, seconds = np.asarray(sizes, dtype=np.float64), np.asarray(seconds, dtype=np.float64)
    seen = np.isfinite(seconds)
    if len(np.unique(sizes[seen])) < 2:
        return float("nan")
    return float(np.polyfit(np.log(sizes[seen]), np.log(seconds[seen]), 1)[0])
