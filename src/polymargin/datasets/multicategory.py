"""Simulators of Lee, Lin & Wahba (2004), section 5: classes on an interval, and Breiman's waveforms."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.integrate import quad
from scipy.special import log_ndtr
from sklearn.utils import Bunch

from polymargin.checks import check_integer
from polymargin.datasets._population import Labels, Rows, draw_labels, simulate, softmax_rows


@dataclass(frozen=True)
class IntervalPopulation:
    """Three classes on an interval: x is uniform, its class drawn from `curves(x)`."""

    low: float
    high: float
    curves: Callable[[NDArray[np.float64]], Rows]
    n_classes: int = 3

    def draw(self, n_samples: int, rng: np.random.RandomState) -> tuple[Rows, Labels]:
        """Draw x uniformly and its class from the curves."""
        X = rng.uniform(self.low, self.high, size=(n_samples, 1))
        return X, draw_labels(self.probabilities(X), rng)

    def probabilities(self, X: Rows) -> Rows:
        """Return the three curves at the rows of X."""
        return self.curves(np.asarray(X, dtype=np.float64)[:, 0])

    def bayes_error(self) -> float:
        """Integrate the highest curve adaptively, to an absolute error of 1e-10."""
        highest, _ = quad(
            lambda x: self.curves(np.array([x])).max(), self.low, self.high, epsabs=1e-10, epsrel=0, limit=500
        )
        return 1.0 - highest / (self.high - self.low)


def _competing_curves(x: NDArray[np.float64]) -> Rows:
    first, third = 0.97 * np.exp(-3.0 * x), np.exp(-2.5 * (x - 1.2) ** 2)
    return np.column_stack([first, 1.0 - first - third, third])


def _dominant_curves(x: NDArray[np.float64]) -> Rows:
    return np.column_stack([0.7 - 0.6 * x**4, 0.1 + 0.6 * x**4, np.full_like(x, 0.2)])


def _lowest_compete_curves(x: NDArray[np.float64]) -> Rows:
    return np.column_stack([0.45 - 0.4 * x**4, 0.3 + 0.4 * x**4, np.full_like(x, 0.25)])


def _highest_compete_curves(x: NDArray[np.float64]) -> Rows:
    return np.column_stack([0.45 - 0.3 * x**4, 0.35 + 0.3 * x**4, np.full_like(x, 0.2)])


_SCENARIOS = {1: _dominant_curves, 2: _lowest_compete_curves, 3: _highest_compete_curves}


def make_competing_interval(n_samples: int = 200, *, random_state: Any = None) -> Bunch:
    """Draw the three-class example on [0, 1] of Lee, Lin & Wahba (2004), section 5.

    x is uniform on [0, 1]; p_1(x) = .97 exp(-3x), p_3(x) = exp(-2.5 (x - 1.2)^2), p_2 = 1 - p_1 - p_3. Class 2
    leads in the middle without ever holding more than half, where one-versus-rest rules have nothing to learn.

    Parameters
    ----------
    n_samples : int, default=200
    random_state : int, RandomState or None, default=None

    Returns
    -------
    Bunch
        `data` (n_samples, 1), `target` (classes 0, 1, 2), `probabilities` (n_samples, 3), `bayes_error`,
        `class_probabilities` (a function of new rows), `DESCR`.

    Examples
    --------
    >>> from polymargin.datasets import make_competing_interval
    >>> sample = make_competing_interval(random_state=0)
    >>> sample.data.shape, round(sample.bayes_error, 4)
    ((200, 1), 0.394)
    """
    n_samples = check_integer("n_samples", n_samples, at_least=1)
    population = IntervalPopulation(0.0, 1.0, _competing_curves)
    return simulate(population, n_samples, random_state, "Lee, Lin & Wahba (2004), section 5, example on [0, 1].")


def make_interval_scenario(scenario: int = 1, n_samples: int = 200, *, random_state: Any = None) -> Bunch:
    """Draw one of the three scenarios on [-1, 1] of Lee, Lin & Wahba (2004), section 5 and Figure 3.

    x is uniform on [-1, 1], and the class probabilities are

    1. .7 - .6x^4, .1 + .6x^4, .2: one class holds more than half almost everywhere;
    2. .45 - .4x^4, .3 + .4x^4, .25: none does, and the two lowest classes compete;
    3. .45 - .3x^4, .35 + .3x^4, .2: none does, and the two highest classes compete.

    Parameters
    ----------
    scenario : {1, 2, 3}, default=1
    n_samples : int, default=200
    random_state : int, RandomState or None, default=None

    Returns
    -------
    Bunch
        As of :func:`make_competing_interval`.

    Examples
    --------
    >>> from polymargin.datasets import make_interval_scenario
    >>> [round(make_interval_scenario(s, random_state=0).bayes_error, 4) for s in (1, 2, 3)]
    [0.3764, 0.541, 0.5389]
    """
    if check_integer("scenario", scenario, at_least=1) not in _SCENARIOS:
        raise ValueError(f"scenario must be 1, 2 or 3, got {scenario!r}.")
    n_samples = check_integer("n_samples", n_samples, at_least=1)
    population = IntervalPopulation(-1.0, 1.0, _SCENARIOS[scenario])
    return simulate(
        population, n_samples, random_state, f"Lee, Lin & Wahba (2004), section 5, scenario {scenario}."
    )


def _triangle(peak: int) -> NDArray[np.float64]:
    """One of Breiman's base waves: height 6 at position `peak` of 1..21, falling by one per step."""
    return np.maximum(6.0 - np.abs(np.arange(1, 22) - peak), 0.0)


_WAVES = np.array([_triangle(11), _triangle(15), _triangle(7)])
# Class 1 mixes waves 1 and 2, class 2 waves 1 and 3, class 3 waves 2 and 3.
_ENDS = ((0, 1), (0, 2), (1, 2))


@dataclass(frozen=True)
class WaveformPopulation:
    """x = u h_a + (1 - u) h_b + N(0, I_21), u uniform; the pair (a, b) of base waves is the class."""

    n_classes: int = 3

    def draw(self, n_samples: int, rng: np.random.RandomState) -> tuple[Rows, Labels]:
        """Draw classes of equal probability, then their waves."""
        labels = rng.randint(0, 3, size=n_samples)
        mix = rng.uniform(size=(n_samples, 1))
        ends = _WAVES[np.array(_ENDS)[labels]]
        X = mix * ends[:, 0] + (1.0 - mix) * ends[:, 1] + rng.standard_normal((n_samples, 21))
        return X, labels

    def probabilities(self, X: Rows) -> Rows:
        """Return the exact posterior: the integral over u of a Gaussian density has a closed form."""
        X = np.asarray(X, dtype=np.float64)
        return softmax_rows(np.column_stack([_log_segment_density(X, *_WAVES[list(pair)]) for pair in _ENDS]))

    def bayes_error(self) -> float:
        """Integrate over the plane of the three waves (the posterior depends on nothing else), to about 1e-6."""
        axes = np.linalg.qr((_WAVES[1:] - _WAVES[0]).T)[0]
        corners = (_WAVES - _WAVES[0]) @ axes
        step = 0.04
        grids = [np.arange(corners[:, a].min() - 8.0, corners[:, a].max() + 8.0, step) for a in (0, 1)]
        highest = 0.0
        for first in grids[0]:
            points = np.column_stack([np.full_like(grids[1], first), grids[1]])
            logs = [_log_segment_density(points, corners[a], corners[b]) for a, b in _ENDS]
            highest += np.exp(np.max(logs, axis=0)).sum()
        return 1.0 - float(highest) * step**2 / 3.0 / (2.0 * np.pi)


def _log_segment_density(X: Rows, end: NDArray[np.float64], start: NDArray[np.float64]) -> NDArray[np.float64]:
    """Log of int_0^1 exp(-|x - start - u (end - start)|^2 / 2) du."""
    direction = end - start
    length = float(np.linalg.norm(direction))
    offset = X - start
    along = offset @ direction / length
    across = (offset**2).sum(axis=1) - along**2
    # Phi(length - along) - Phi(-along); the symmetric form keeps its digits where both lie far to the right.
    high, low = length - along, -along
    swap = low > 0
    high, low = np.where(swap, -low, high), np.where(swap, -high, low)
    log_high, log_low = log_ndtr(high), log_ndtr(low)
    return (
        -0.5 * across + log_high + np.log1p(-np.exp(log_low - log_high)) + 0.5 * np.log(2 * np.pi) - np.log(length)
    )


def make_waveform(n_samples: int = 300, *, random_state: Any = None) -> Bunch:
    """Draw Breiman's waveform data (21 variables, three classes), as used by Lee, Lin & Wahba (2004), Table 3.

    x = u h_a + (1 - u) h_b + e with u uniform on [0, 1], e standard normal and three triangular waves h of
    height 6 with peaks at 11, 15 and 7; classes 0, 1, 2 mix the waves (1, 2), (1, 3), (2, 3). The true
    probabilities are exact.

    Parameters
    ----------
    n_samples : int, default=300
    random_state : int, RandomState or None, default=None

    Returns
    -------
    Bunch
        As of :func:`make_competing_interval`.

    Examples
    --------
    >>> from polymargin.datasets import make_waveform
    >>> sample = make_waveform(random_state=0)
    >>> sample.data.shape, round(sample.bayes_error, 3)
    ((300, 21), 0.133)
    """
    n_samples = check_integer("n_samples", n_samples, at_least=1)
    return simulate(WaveformPopulation(), n_samples, random_state, "Breiman et al. (1984): waveforms.")
