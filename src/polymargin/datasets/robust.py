"""Simulators of Liu, Wu & He (2011), section 5.1: three classes with outliers, linear and curved boundaries."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.utils import Bunch

from polymargin.checks import check_integer
from polymargin.datasets._population import (
    FlippedLabels,
    Labels,
    Rows,
    check_flip,
    draw_labels,
    legendre_rule,
    simulate,
    softmax_rows,
)
from polymargin.datasets.planar import PlanarClasses, round_gaussian

_HALF_ROOT = float(np.sqrt(3.0) / 2.0)
_TRIANGLE = PlanarClasses(
    tuple(round_gaussian(mean, 0.7) for mean in ((1.0, 0.0), (-0.5, _HALF_ROOT), (-0.5, -_HALF_ROOT))),
    (1 / 3, 1 / 3, 1 / 3),
)


@dataclass(frozen=True)
class CurvedPopulation:
    """x uniform on [-3, 3] x [-6, 6], class probabilities proportional to exp of three quadratics."""

    n_classes: int = 3

    def draw(self, n_samples: int, rng: np.random.RandomState) -> tuple[Rows, Labels]:
        """Draw points and their classes."""
        X = rng.uniform((-3.0, -6.0), (3.0, 6.0), size=(n_samples, 2))
        return X, draw_labels(self.probabilities(X), rng)

    def probabilities(self, X: Rows) -> Rows:
        """Return exp(f) normalised; the paper prints 2 x_2^2 for 2 x_1^2 in f_1, the mirror image of f_3."""
        first, second = np.asarray(X, dtype=np.float64).T
        saddle = 2.0 * first**2 - second**2 + 2.0
        scores = [-20.0 * first + saddle, -4.0 * first**2 + 2.0 * second**2 - 4.0, 20.0 * first + saddle]
        return softmax_rows(np.column_stack(scores))

    def bayes_error(self) -> float:
        """Integrate over the quarter x_1, x_2 >= 0 (the rest mirrors it), to about 1e-9.

        There f_3 >= f_1, and f_3 = f_2 on the curve 3 x_2^2 = 6 x_1^2 + 20 x_1 + 6, where the rule is split.
        """
        # The curve leaves through x_2 = 6 at this x_1; close to x_1 = 0 class 1 fades within 1/40.
        leaves = (-20.0 + np.sqrt(400.0 + 24.0 * 102.0)) / 12.0
        outer_breaks = np.concatenate([np.linspace(0.0, 1.0, 41), np.linspace(1.0, leaves, 21)[1:], [3.0]])
        first, outer_weights = legendre_rule(outer_breaks, 8)
        curve = np.minimum(np.sqrt((6.0 * first**2 + 20.0 * first + 6.0) / 3.0), 6.0)[:, None]
        # The probabilities change within about 1/10 of the curve: short panels around it.
        near = curve + np.array([-1.0, -0.5, -0.25, -0.1, 0.0, 0.1, 0.25, 0.5, 1.0])
        ends = np.broadcast_to([0.0, 6.0], (len(first), 2))
        second, weights = legendre_rule(np.sort(np.hstack([ends, np.clip(near, 0.0, 6.0)]), axis=1), 12)
        points = np.column_stack([np.repeat(first, second.shape[1]), second.ravel()])
        highest = self.probabilities(points).max(axis=1).reshape(second.shape)
        return 1.0 - float(outer_weights @ (weights * highest).sum(axis=1)) / 18.0


def make_triangle(n_samples: int = 400, *, flip: float = 0.0, random_state: Any = None) -> Bunch:
    """Draw Example 1 or, with ``flip=0.15``, Example 2 of Liu, Wu & He (2011).

    Three classes of equal probability, N(mu_y, .7^2 I) around the corners (1, 0), (-1/2, sqrt(3)/2),
    (-1/2, -sqrt(3)/2). With `flip` a label becomes each of the other two with probability flip/2.

    Parameters
    ----------
    n_samples : int, default=400
    flip : float, default=0.0
        Probability of a wrong label; the paper's Example 2 has 0.15.
    random_state : int, RandomState or None, default=None

    Returns
    -------
    Bunch
        As of :func:`make_competing_interval`; probabilities and Bayes error are those of the flipped labels.

    Examples
    --------
    >>> from polymargin.datasets import make_triangle
    >>> sample = make_triangle(flip=0.15, random_state=0)
    >>> sample.data.shape, round(sample.bayes_error, 3)
    ((400, 2), 0.289)
    """
    return _maybe_flipped(_TRIANGLE, n_samples, flip, random_state, "Liu, Wu & He (2011), Examples 1 and 2.")


def make_curved(n_samples: int = 200, *, flip: float = 0.15, random_state: Any = None) -> Bunch:
    """Draw Example 3 of Liu, Wu & He (2011), with curved Bayes boundaries.

    x is uniform on [-3, 3] x [-6, 6]; class j has probability proportional to exp(f_j), f_1 = -20x_1 + 2x_1^2 -
    x_2^2 + 2, f_2 = -4x_1^2 + 2x_2^2 - 4, f_3 = 20x_1 + 2x_1^2 - x_2^2 + 2; then labels are flipped. (The paper
    prints 2x_2^2 in f_1, a slip: f_3 is its mirror image.)

    Parameters
    ----------
    n_samples : int, default=200
    flip : float, default=0.15
        Probability of a wrong label.
    random_state : int, RandomState or None, default=None

    Returns
    -------
    Bunch
        As of :func:`make_competing_interval`; probabilities and Bayes error are those of the flipped labels.

    Examples
    --------
    >>> from polymargin.datasets import make_curved
    >>> sample = make_curved(random_state=0)
    >>> sample.data.shape, round(sample.bayes_error, 3)
    ((200, 2), 0.159)
    """
    return _maybe_flipped(CurvedPopulation(), n_samples, flip, random_state, "Liu, Wu & He (2011), Example 3.")


def _maybe_flipped(population: Any, n_samples: int, flip: float, random_state: Any, description: str) -> Bunch:
    n_samples = check_integer("n_samples", n_samples, at_least=1)
    flip = check_flip(flip, population.n_classes)
    return simulate(FlippedLabels(population, flip) if flip else population, n_samples, random_state, description)
