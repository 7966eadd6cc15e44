"""Classes in the plane, each a Gaussian or a ring: what the simulators of papers 2, 4 and 5 are made of."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import ive

from polymargin.checks import check_integer
from polymargin.datasets._population import Labels, Rows, softmax_rows

# Standardised quadrature grid: midpoints of 520 cells a side over +- 6.5 standard deviations.
_GRID = (np.arange(520) + 0.5) / 520 * 13.0 - 6.5
# Turned by half a radian, the grid is aligned with no boundary, and the errors at the boundaries average out.
_TURN = np.array([[np.cos(0.5), -np.sin(0.5)], [np.sin(0.5), np.cos(0.5)]])


@dataclass(frozen=True)
class Gaussian:
    """N(mean, spread spread')."""

    mean: tuple[float, float]
    spread: tuple[tuple[float, float], tuple[float, float]]

    def draw(self, n: int, rng: np.random.RandomState) -> Rows:
        """Draw points."""
        return rng.standard_normal((n, 2)) @ np.array(self.spread).T + self.mean

    def log_density(self, X: Rows) -> NDArray[np.float64]:
        """Return the logarithm of the density."""
        spread = np.array(self.spread)
        standard = np.linalg.solve(spread, (X - np.array(self.mean)).T)
        return -0.5 * (standard**2).sum(axis=0) - np.log(2 * np.pi * abs(np.linalg.det(spread)))

    def quadrature(self) -> tuple[Rows, NDArray[np.float64]]:
        """Points and weights for expectations under this density."""
        points = np.stack(np.meshgrid(_GRID, _GRID, indexing="ij"), axis=-1).reshape(-1, 2)
        weights = np.exp(-0.5 * (points**2).sum(axis=1))
        return points @ (np.array(self.spread) @ _TURN).T + self.mean, weights / weights.sum()


@dataclass(frozen=True)
class Ring:
    """A point uniform on the circle of the given radius around the origin, plus N(0, scale^2 I)."""

    radius: float
    scale: float

    def draw(self, n: int, rng: np.random.RandomState) -> Rows:
        """Draw points."""
        angle = rng.uniform(0.0, 2 * np.pi, size=n)
        circle = self.radius * np.column_stack([np.cos(angle), np.sin(angle)])
        return circle + self.scale * rng.standard_normal((n, 2))

    def log_density(self, X: Rows) -> NDArray[np.float64]:
        """Return the logarithm of the density: a Rice distribution of the distance from the origin."""
        distance = np.hypot(X[:, 0], X[:, 1])
        bessel = ive(0, distance * self.radius / self.scale**2)
        return (
            np.log(bessel) - 0.5 * ((distance - self.radius) / self.scale) ** 2 - np.log(2 * np.pi * self.scale**2)
        )

    def quadrature(self) -> tuple[Rows, NDArray[np.float64]]:
        """Points and weights for expectations under this density, on a polar grid."""
        distance = self.radius + self.scale * _GRID
        distance = distance[distance > 0]
        angle = (np.arange(360) + 0.5) / 360 * 2 * np.pi
        points = np.stack(
            [np.multiply.outer(distance, np.cos(angle)), np.multiply.outer(distance, np.sin(angle))], axis=-1
        ).reshape(-1, 2)
        weights = np.exp(self.log_density(points)) * np.repeat(distance, len(angle))
        return points, weights / weights.sum()


@dataclass(frozen=True)
class PlanarClasses:
    """Class j is drawn with probability `priors[j]` from `shapes[j]`."""

    shapes: tuple[Gaussian | Ring, ...]
    priors: tuple[float, ...]

    @property
    def n_classes(self) -> int:
        """Number of classes."""
        return len(self.shapes)

    def draw(self, n_samples: int | tuple[int, ...], rng: np.random.RandomState) -> tuple[Rows, Labels]:
        """Draw points; `n_samples` is their number, or that of each class."""
        if isinstance(n_samples, tuple):
            labels = np.repeat(np.arange(self.n_classes), n_samples)
        else:
            labels = rng.choice(self.n_classes, size=n_samples, p=self.priors)
        X = np.empty((len(labels), 2))
        for j, shape in enumerate(self.shapes):
            members = labels == j
            X[members] = shape.draw(int(members.sum()), rng)
        return X, labels

    def probabilities(self, X: Rows) -> Rows:
        """Return the classes' densities times their priors, normalised."""
        X = np.asarray(X, dtype=np.float64)
        logs = np.column_stack([shape.log_density(X) for shape in self.shapes])
        return softmax_rows(logs + np.log(self.priors))

    def bayes_error(self) -> float:
        """Average the highest probability over every class on a grid in that class's own scale, to about 1e-6."""
        highest = 0.0
        for prior, shape in zip(self.priors, self.shapes, strict=True):
            points, weights = shape.quadrature()
            highest += prior * float(weights @ self.probabilities(points).max(axis=1))
        return 1.0 - highest


def round_gaussian(mean: tuple[float, float], scale: float) -> Gaussian:
    """N(mean, scale^2 I)."""
    return Gaussian(mean, ((scale, 0.0), (0.0, scale)))


def check_class_sizes(n_samples: Any, n_classes: int) -> tuple[int, ...]:
    """Return the classes' sizes as a tuple of positive integers."""
    try:
        sizes = tuple(n_samples)
    except TypeError:
        raise TypeError(f"n_samples must hold the sizes of the {n_classes} classes, got {n_samples!r}.") from None
    if len(sizes) != n_classes:
        raise ValueError(f"n_samples must hold the sizes of the {n_classes} classes, got {len(sizes)} entries.")
    return tuple(check_integer("n_samples", size, at_least=1) for size in sizes)


def proportions(sizes: tuple[int, ...]) -> tuple[float, ...]:
    """Return the shares of the classes."""
    return tuple(size / sum(sizes) for size in sizes)
