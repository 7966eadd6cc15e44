"""Simulators of Guo (2010), section 3: a few variables separate some of the classes, a hundred are noise."""

from dataclasses import dataclass
from itertools import combinations
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils import Bunch

from polymargin.checks import check_integer
from polymargin.datasets._population import Labels, Rows, draw_labels, legendre_rule, simulate, softmax_rows

# Rows: classes; columns: the informative variables.
_COEFFICIENTS = {
    1: ((10.0, 5.0), (0.0, 5.0), (0.0, -5.0), (-10.0, -5.0)),
    2: ((4.0, -10.0, 6.0), (4.0, 0.0, 1.0), (-1.0, 0.0, 1.0), (-1.0, 0.0, -4.0), (-6.0, 10.0, -4.0)),
}
_NOISE_SCALE = 8.0


@dataclass(frozen=True)
class LinearLogitPopulation:
    """Informative variables uniform on [-1, 1], class probabilities proportional to exp(W x), noise variables."""

    coefficients: tuple[tuple[float, ...], ...]
    n_noise: int

    @property
    def n_classes(self) -> int:
        """Number of classes."""
        return len(self.coefficients)

    def draw(self, n_samples: int, rng: np.random.RandomState) -> tuple[Rows, Labels]:
        """Draw the variables and the classes."""
        informative = rng.uniform(-1.0, 1.0, size=(n_samples, len(self.coefficients[0])))
        noise = _NOISE_SCALE * rng.standard_normal((n_samples, self.n_noise))
        X = np.hstack([informative, noise])
        return X, draw_labels(self.probabilities(X), rng)

    def probabilities(self, X: Rows) -> Rows:
        """Return exp(W x) normalised."""
        W = np.array(self.coefficients)
        return softmax_rows(np.asarray(X, dtype=np.float64)[:, : W.shape[1]] @ W.T)

    def bayes_error(self) -> float:
        """Integrate over the cube to about 1e-7: exactly in the last variable, panel by panel in the others."""
        W = np.array(self.coefficients)
        nodes, weights = legendre_rule(np.linspace(-1.0, 1.0, 61), 4)
        outer = np.stack(np.meshgrid(*[nodes] * (W.shape[1] - 1), indexing="ij"), axis=-1).reshape(
            -1, W.shape[1] - 1
        )
        outer_weights = weights
        for _ in range(W.shape[1] - 2):
            outer_weights = np.multiply.outer(outer_weights, weights)
        total = sum(
            float(block_weights @ _integral_of_highest(block @ W[:, :-1].T, W[:, -1]))
            for block, block_weights in zip(
                np.array_split(outer, 40), np.array_split(outer_weights.ravel(), 40), strict=True
            )
        )
        return 1.0 - total / 2.0 ** W.shape[1]


def _integral_of_highest(offsets: Rows, slopes: NDArray[np.float64]) -> NDArray[np.float64]:
    """Integrate the highest of softmax(offset_k + slope_k t) over t in [-1, 1], one row of offsets at a time.

    The highest class changes only where two lines cross, so the rule is exact between the crossings.
    """
    breaks = [np.full(len(offsets), end) for end in (-1.0, 0.0, 1.0)]
    for a, b in combinations(range(len(slopes)), 2):
        if slopes[a] != slopes[b]:
            breaks.append(np.clip((offsets[:, b] - offsets[:, a]) / (slopes[a] - slopes[b]), -1.0, 1.0))
    nodes, weights = legendre_rule(np.sort(np.column_stack(breaks), axis=1), 6)
    scores = offsets[:, :, None] + slopes[:, None] * nodes[:, None, :]
    scores -= scores.max(axis=1, keepdims=True)
    return (weights / np.exp(scores).sum(axis=1)).sum(axis=1)


def make_class_specific(
    example: int = 1, n_samples: int = 200, *, n_noise: int = 100, random_state: Any = None
) -> Bunch:
    """Draw Example 1 or 2 of Guo (2010): variables that separate some pairs of classes and not others.

    The informative variables are uniform on [-1, 1], the others are N(0, 8^2) noise, and class k has probability
    proportional to exp(f_k(x)). Example 1 (four classes): f = 10x_1 + 5x_2, 5x_2, -5x_2, -10x_1 - 5x_2.
    Example 2 (five classes): f = 4x_1 - 10x_2 + 6x_3, 4x_1 + x_3, -x_1 + x_3, -x_1 - 4x_3,
    -6x_1 + 10x_2 - 4x_3.

    Parameters
    ----------
    example : {1, 2}, default=1
    n_samples : int, default=200
    n_noise : int, default=100
        Number of noise variables.
    random_state : int, RandomState or None, default=None

    Returns
    -------
    Bunch
        As of :func:`make_competing_interval`, and `coefficients` (n_classes, n_features), the true f.

    Examples
    --------
    >>> from polymargin.datasets import make_class_specific
    >>> sample = make_class_specific(2, random_state=0)
    >>> sample.data.shape, sample.coefficients.shape, round(sample.bayes_error, 3)
    ((200, 103), (5, 103), 0.138)
    """
    if check_integer("example", example, at_least=1) not in _COEFFICIENTS:
        raise ValueError(f"example must be 1 or 2, got {example!r}.")
    n_samples = check_integer("n_samples", n_samples, at_least=1)
    n_noise = check_integer("n_noise", n_noise, at_least=0)
    informative = np.array(_COEFFICIENTS[example])
    sample = simulate(
        LinearLogitPopulation(_COEFFICIENTS[example], n_noise),
        n_samples,
        random_state,
        f"Guo (2010), section 3, Example {example}.",
    )
    sample.coefficients = np.hstack([informative, np.zeros((len(informative), n_noise))])
    return sample
