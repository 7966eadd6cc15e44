"""What a simulator knows: how to draw, the true class probabilities, and the Bayes error.

A simulator `make_...` describes a `Population`; `simulate` draws from it and packs a `Bunch`. Bayes errors are
integrals of one minus the highest class probability, computed by quadrature (never by sampling) and cached.
"""

from dataclasses import dataclass
from functools import cache
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray
from sklearn.utils import Bunch

from polymargin.checks import check_integer, check_real, check_seed

Rows = NDArray[np.float64]
Labels = NDArray[np.intp]


class Population(Protocol):
    """A joint distribution of rows and classes 0, ..., k-1; hashable, so that its Bayes error is computed once."""

    @property
    def n_classes(self) -> int:
        """Number of classes."""

    def __hash__(self) -> int: ...

    def draw(self, n_samples: Any, rng: np.random.RandomState) -> tuple[Rows, Labels]:
        """Draw rows and their classes."""

    def probabilities(self, X: Rows) -> Rows:
        """Return the true class probabilities (n, k) at the rows of X."""

    def bayes_error(self) -> float:
        """Return the error of the best rule, 1 - E[max_j p_j(X)]."""


@dataclass(frozen=True)
class FlippedLabels:
    """`population` with labels replaced, with probability `flip`, by one of the other classes at random."""

    population: Any
    flip: float

    @property
    def n_classes(self) -> int:
        """Number of classes."""
        return self.population.n_classes

    def draw(self, n_samples: Any, rng: np.random.RandomState) -> tuple[Rows, Labels]:
        """Draw rows and flipped labels."""
        X, labels = self.population.draw(n_samples, rng)
        return X, flip_labels(labels, self.flip, n_classes=self.n_classes, random_state=rng)

    def probabilities(self, X: Rows) -> Rows:
        """Return off + (1 - flip - off) p_j(x), off = flip/(k-1)."""
        off = self.flip / (self.n_classes - 1)
        return off + (1.0 - self.flip - off) * self.population.probabilities(X)

    def bayes_error(self) -> float:
        """Return the Bayes error of the flipped labels, an affine function of that of the clean ones."""
        off = self.flip / (self.n_classes - 1)
        return 1.0 - off - (1.0 - self.flip - off) * (1.0 - _bayes_error(self.population))


def simulate(population: Population, n_samples: Any, random_state: Any, description: str) -> Bunch:
    """Draw from the population and pack what the simulators return."""
    X, labels = population.draw(n_samples, check_seed("random_state", random_state))
    return Bunch(
        data=X,
        target=labels,
        probabilities=population.probabilities(X),
        bayes_error=_bayes_error(population),
        class_probabilities=population.probabilities,
        DESCR=description,
    )


@cache
def _bayes_error(population: Population) -> float:
    return population.bayes_error()


def flip_labels(y: Any, flip: float = 0.15, *, n_classes: int | None = None, random_state: Any = None) -> Labels:
    """Replace every label, with probability `flip`, by one of the other classes at random.

    This is the contamination of Examples 2 and 3 of Liu, Wu & He (2011): a label stays with probability
    1 - flip = .85 and becomes each of the k - 1 others with probability flip / (k - 1).

    Parameters
    ----------
    y : array-like of shape (n_samples,)
        Integer labels 0, ..., k-1.
    flip : float, default=0.15
        Probability of a wrong label, at least 0 and below (k-1)/k.
    n_classes : int or None, default=None
        The number k of classes; None: the largest label plus one.
    random_state : int, RandomState or None, default=None

    Returns
    -------
    ndarray of shape (n_samples,)

    Examples
    --------
    >>> from polymargin.datasets import flip_labels
    >>> flip_labels([0, 1, 2, 0, 1, 2, 0, 1], flip=0.3, random_state=1)
    array([0, 1, 0, 0, 2, 1, 1, 1])
    """
    labels = np.asarray(y)
    if labels.ndim != 1 or labels.dtype.kind not in "iu" or (len(labels) and labels.min() < 0):
        raise ValueError(f"y must hold integer labels 0, ..., k-1 in one dimension, got {y!r}.")
    k = int(labels.max(initial=0)) + 1 if n_classes is None else check_integer("n_classes", n_classes, at_least=2)
    if len(labels) and labels.max() >= k:
        raise ValueError(f"y must hold labels below n_classes={k}, got {labels.max()}.")
    check_flip(flip, k)
    rng = check_seed("random_state", random_state)
    wrong = rng.uniform(size=len(labels)) < flip
    shift = rng.randint(1, k, size=len(labels)) if k > 1 else 0
    return np.where(wrong, (labels + shift) % k, labels).astype(np.intp)


def check_flip(flip: Any, n_classes: int) -> float:
    """Return `flip` if the true class stays the likeliest one after flipping."""
    check_real("flip", flip, at_least=0.0)
    if flip >= (n_classes - 1) / n_classes:
        raise ValueError(
            f"flip must be below (k-1)/k = {(n_classes - 1) / n_classes:.4g} for {n_classes} classes, "
            f"so that labels still tell of the classes, got {flip!r}."
        )
    return float(flip)


def draw_labels(probabilities: Rows, rng: np.random.RandomState) -> Labels:
    """Draw one class a row from its probabilities."""
    cumulated = np.cumsum(probabilities, axis=1)
    uniform = rng.uniform(size=(len(probabilities), 1)) * cumulated[:, -1:]
    return np.argmax(uniform < cumulated, axis=1)


def softmax_rows(scores: Rows) -> Rows:
    """Return probabilities proportional to exp(scores), row by row."""
    powers = np.exp(scores - scores.max(axis=1, keepdims=True))
    return powers / powers.sum(axis=1, keepdims=True)


def legendre_rule(breaks: NDArray[np.float64], order: int) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Gauss-Legendre nodes and weights between the sorted `breaks` (..., q): arrays (..., (q-1) * order)."""
    nodes, weights = np.polynomial.legendre.leggauss(order)
    middles = 0.5 * (breaks[..., 1:] + breaks[..., :-1])[..., None]
    halves = 0.5 * (breaks[..., 1:] - breaks[..., :-1])[..., None]
    shape = (*breaks.shape[:-1], -1)
    return (middles + halves * nodes).reshape(shape), (halves * weights).reshape(shape)
