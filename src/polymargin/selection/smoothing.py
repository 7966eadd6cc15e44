"""Scores of a grid made smoother: neighbours tell of each other, the more so the noisier each is by itself.

With few rows the best of many noisy scores is often a lucky one. The scores are taken for a Gaussian process over
the grid, seen with noise: what is returned is its mean given all that was seen. Where the noise is small against
the differences, hardly anything changes.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

REACH = 1.5
"""Steps of the grid over which scores are alike."""

FEWEST = 5
"""Scores that tell how much of their differences is noise."""


def smoothed(
    settings: Sequence[dict[str, Any]],
    scores: NDArray,
    noise: NDArray,
    grid: Sequence[dict[str, Any]] | None = None,
) -> NDArray[np.float64]:
    """Return the scores (n,) of settings, smoothed over those that differ in numbers alone.

    Parameters
    ----------
    settings : params.
    scores : (n,) of them.
    noise : (n,) their standard errors.
    grid : all params of the grid that the settings are some of, which tell what a step is; None for the settings.

    Examples
    --------
    >>> settings = [{"C": C} for C in (1, 2, 4, 8, 16)]
    >>> scores = np.array([0.6, 0.7, 0.7, 0.71, 0.4])
    >>> bool(np.allclose(smoothed(settings, scores, np.full(5, 1e-6)), scores))
    True
    >>> int(smoothed(settings, scores, np.full(5, 0.1)).argmax())
    1
    """
    places, kinds = _places(settings, settings if grid is None else grid)
    result = np.array(scores, dtype=np.float64)
    for kind in np.unique(kinds):
        some = np.flatnonzero(kinds == kind)
        if len(some) >= FEWEST:
            result[some] = _mean_given(places[some], result[some], np.asarray(noise)[some])
    return result


def _mean_given(places: NDArray, scores: NDArray, noise: NDArray) -> NDArray[np.float64]:
    variance = scores.var() - np.mean(noise**2)
    middle = scores.mean()
    if variance <= 0.0:
        return np.full(len(scores), middle)  # the differences are no larger than the noise
    squares = ((places[:, None, :] - places[None, :, :]) ** 2).sum(axis=2)
    alike = variance * np.exp(-squares / (2.0 * REACH**2))
    seen = alike + np.diag(np.maximum(noise**2, 1e-12 * variance))
    return middle + alike @ np.linalg.solve(seen, scores - middle)


def _places(
    settings: Sequence[dict[str, Any]], grid: Sequence[dict[str, Any]]
) -> tuple[NDArray[np.float64], NDArray[np.intp]]:
    """Return where settings are on the grid, in steps, and a number for all that is no number."""
    numeric = sorted({name for one in grid for name, value in one.items() if _is_number(value)})
    places = np.zeros((len(settings), max(len(numeric), 1)))
    for j, name in enumerate(numeric):
        values = sorted({one[name] for one in grid if name in one})
        places[:, j] = [values.index(one[name]) if name in one else 0 for one in settings]
    # A setting without some parameter, as the width of a linear kernel, is of another kind.
    kinds = [
        (tuple(sorted(one)), tuple((name, repr(v)) for name, v in sorted(one.items()) if not _is_number(v)))
        for one in settings
    ]
    numbers = {kind: at for at, kind in enumerate(dict.fromkeys(kinds))}
    return places, np.array([numbers[kind] for kind in kinds], dtype=np.intp)


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float | np.number) and not isinstance(value, bool)
