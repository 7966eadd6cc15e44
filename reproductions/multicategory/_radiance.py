"""A simulated stand-in for the cloud profiles of section 6.2, which are not public."""

from typing import Any

import numpy as np
from sklearn.utils import Bunch

from polymargin import MarginSearch, MulticategorySVC
from reproductions.declare import Context

CLASSES = ("clear", "liquid", "ice")
SHARES = np.array([81, 202, 461]) / 744
"""The paper's shares of clear scenes, liquid and ice clouds."""


def make_radiance_like(n_samples: int, seed: int) -> Bunch:
    """Draw two features after the paper's Figure 5: a reflectance and the logarithm of a ratio of two others.

    Liquid clouds stand apart; ice clouds reach from bright ones down to thin ones, which lie on clear sky.
    """
    rng = np.random.default_rng(seed)
    y = rng.choice(3, size=n_samples, p=SHARES)
    reflectance = np.choose(
        y,
        [
            rng.normal(0.08, 0.03, n_samples),
            0.15 + 0.7 * rng.beta(2, 2, n_samples),
            0.05 + 0.8 * rng.beta(1, 2, n_samples),
        ],
    )
    ratio = np.choose(
        y,
        [
            rng.normal(0.15, 0.1, n_samples),
            rng.normal(0.05, 0.08, n_samples),
            0.15 + 0.5 * reflectance + rng.normal(0, 0.1, n_samples),
        ],
    )
    return Bunch(data=np.column_stack([reflectance, ratio]), target=y)


def machine(sample: Bunch, cost: float, context: Context) -> Any:
    """Return the MSVM with the given cost of taking clouds for clear sky, tuned by five folds as in the paper."""
    Cs, widths = ((1.0, 10.0), (5.0,)) if context.quick else (4.0 ** np.arange(-2, 4), 4.0 ** np.arange(0, 4))
    costs = {(1, 0): cost, (2, 0): cost}
    search = MarginSearch(
        MulticategorySVC(cost_matrix=costs, tol=1e-3), Cs=Cs, gammas=widths, criterion=5, search_tol=None
    )
    return search.fit(sample.data, sample.target)
