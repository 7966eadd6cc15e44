"""What a command will take, said before it begins: by two small fits, and by the sizes of what is kept."""

import math
import time
import warnings
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone
from sklearn.model_selection import ParameterGrid
from sklearn.utils import _safe_indexing, check_random_state

from polymargin import BudgetSearch
from polymargin.cli.methods import AT_ONCE
from polymargin.selection.budget import KEPT
from polymargin.selection.spending import growth_of
from polymargin.selection.subsamples import Subsamples, least_rows, ordered
from polymargin.selection.trials import FOLDS, Trial

PILOTS = (200, 600)
"""Rows of the small fits."""

PILOT_SECONDS = 1.0
"""Seconds after which a small fit is given up; the estimate is then too low."""

OWN_SEARCH = 40
"""Fits that a method's own search comes to, roughly."""

COPIES = 4
"""Copies of the prepared columns, and of what a solver keeps for every row and class."""

WORTH_SAYING = 5.0
"""Seconds below which a person does not ask how long."""

LARGE = 1e9
"""Bytes above which a person wants to know."""


@dataclass(frozen=True, slots=True)
class Estimate:
    """Seconds, bytes, and whether the seconds are those of the budget.

    >>> str(Estimate(19.6, 3.1e8)), str(Estimate(300.0, 2.44e9, is_bound=True))
    ('about 20 s and 310 MB', 'at most 5 min and about 2.4 GB')
    """

    seconds: float
    memory: float
    is_bound: bool = False

    @property
    def is_worth_saying(self) -> bool:
        """Whether a person would wait, or wonder where the memory went."""
        return self.seconds >= WORTH_SAYING or self.memory >= LARGE

    def __str__(self) -> str:
        time = duration(self.seconds)
        return (
            f"at most {time} and about {size(self.memory)}"
            if self.is_bound
            else f"about {time} and {size(self.memory)}"
        )


def duration(seconds: float) -> str:
    """Return seconds in words.

    >>> duration(0.3), duration(44.6), duration(400.0), duration(7300.0)
    ('1 s', '45 s', '7 min', '2.0 h')
    """
    if seconds < 120.0:
        return f"{max(math.ceil(seconds - 0.5), 1)} s"
    return f"{seconds / 60.0:.0f} min" if seconds < 7200.0 else f"{seconds / 3600.0:.1f} h"


def size(memory: float) -> str:
    """Return bytes in words, two digits of them.

    >>> size(1.234e8), size(5.67e9)
    ('120 MB', '5.7 GB')
    """
    return f"{memory / 1e9:.1f} GB" if memory >= 1e9 else f"{float(f'{memory / 1e6:.2g}'):.0f} MB"


def estimate(classifier: Any, X: Any, y: NDArray, budget: float) -> Estimate:
    """Estimate the fit of a classifier, or of a search, to prepared rows within `budget` seconds."""
    machine = getattr(classifier, "estimator", classifier)
    pilot, growth = _pilots(machine, X, y)

    def of_fit(n_rows: int) -> float:
        return pilot.seconds * (n_rows / pilot.n_rows) ** growth

    expected = of_fit(len(y))
    if isinstance(classifier, BudgetSearch):
        expected += _of_rounds(classifier, y, of_fit) / AT_ONCE
    elif classifier is not machine:
        expected *= OWN_SEARCH
    return Estimate(min(expected, budget), memory_of(machine, X, y), is_bound=expected > budget)


def _of_rounds(search: BudgetSearch, y: NDArray, of_fit: Any) -> float:
    """Return the seconds of the rounds of a search, each with a third of the settings of the one before."""
    samples = Subsamples.of(y, search.first_rows, check_random_state(0))
    settings = len(ParameterGrid(search.param_grid))
    total = 0.0
    for rows in samples.sizes:
        total += settings * samples.fits(rows) * of_fit(rows if rows < len(y) else int((1 - 1 / FOLDS) * len(y)))
        settings = math.ceil(KEPT * settings)
    return total


def _pilots(machine: Any, X: Any, y: NDArray) -> tuple[Trial, float]:
    """Return the larger of two small fits, and the exponent by which their time grows with the rows."""
    order, trials = ordered(y, check_random_state(0)), []
    for n_rows in PILOTS:
        some = np.sort(order[: max(n_rows, least_rows(y))])
        small = clone(machine)
        own = small.get_params(deep=False)
        small.set_params(
            **({"time_limit": PILOT_SECONDS} if "time_limit" in own else {}),
            **({"landmarks": None} if "landmarks" in own else {}),
        )
        started = time.perf_counter()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            small.fit(_safe_indexing(X, some), y[some])
        trials.append(Trial({}, len(some), 0.0, 0.0, time.perf_counter() - started))
        if len(some) == len(y) or trials[-1].seconds >= PILOT_SECONDS:
            break
    # features and landmarks are handled in time proportional to the rows
    is_kernel = getattr(machine, "kernel", "linear") != "linear" and getattr(machine, "landmarks", None) is None
    return trials[-1], growth_of(trials) if is_kernel else 1.0


def memory_of(machine: Any, X: Any, y: NDArray) -> float:
    """Return the bytes that fitting a machine to rows needs, beside what Python and its libraries take."""
    n, p = X.shape
    entries = X.nnz if hasattr(X, "nnz") else n * p
    needed = 8.0 * COPIES * (entries + n * len(np.unique(y)))
    if getattr(machine, "kernel", "linear") == "linear":
        return needed
    landmarks = getattr(machine, "landmarks", None)
    if landmarks is not None:
        return needed + 8.0 * COPIES * n * landmarks
    return needed + min(8.0 * n * n, 1e6 * getattr(machine, "cache_size", math.inf))
