"""The proximal machine: every class against the rest by weighted ridge regression on signs.

For class r, with rows ``E = [B, -1]``, signs d and ``z = (v, gamma)``, (9) of Fung & Mangasarian reads

    min_z  C/2 (E z - d)' N_r (E z - d) + 1/2 |z|^2,     so that  (I/C + E'N_r E) z = E'N_r d.

Its dual value at ``alpha = C N_r^(1/2) (d - E z)`` falls short of the primal one by half the squared gradient, so
that the normal equations certify themselves. They are stated twice: by the moments of the classes, and by rows.
"""

import functools
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from polymargin.blocks import Blocks, added
from polymargin.coding import one_vs_rest_signs
from polymargin.moments import ClassMoments
from polymargin.problems.certificate import Certificate
from polymargin.threads import over_ranges


@dataclass(frozen=True, slots=True)
class Sides:
    """Which classes are on which side of every problem, and what their rows weigh there.

    Attributes
    ----------
    factors : (k, m) factor on the weight of rows of each class in each of m problems.
    signs : (k, m) 1 or -1.
    """

    factors: NDArray[np.float64]
    signs: NDArray[np.float64]

    @classmethod
    def one_vs_rest(
        cls,
        totals: NDArray[np.float64],
        balance: bool,
        *,
        fewer_own: float | NDArray[np.float64] = 0.0,
        fewer_rest: float | NDArray[np.float64] = 0.0,
    ) -> "Sides":
        """Set each class, with summed weights `totals`, against the rest.

        Balancing (8) gives a class and the rest the same total weight; a side without rows gets none. The factors
        are those of a sample in which the class has `fewer_own` rows, (k,) or one for all, or the rest
        `fewer_rest`.
        """
        k = len(totals)
        factors = np.ones((k, k))
        if balance:
            rest = np.array([np.delete(totals, r).sum() for r in range(k)])
            factors[:] = _inverse(rest - fewer_rest)
            np.fill_diagonal(factors, _inverse(totals - fewer_own))
        return cls(factors, one_vs_rest_signs(np.arange(k), k))

    @property
    def shared(self) -> bool:
        """Whether all problems weigh the rows alike, so that one matrix serves them all."""
        return bool((self.factors == self.factors[:, :1]).all())


def _inverse(totals: NDArray[np.float64]) -> NDArray[np.float64]:
    return np.divide(1.0, totals, out=np.zeros_like(totals), where=totals > 0)


@dataclass(frozen=True, slots=True)
class NormalEquations:
    """The problems of all classes, stated by the moments of the classes.

    Attributes
    ----------
    moments : Gram matrices of the classes.
    sides : the sides of every problem.
    C : the paper's nu.
    """

    moments: ClassMoments
    sides: Sides
    C: float

    def hessians(self) -> Iterator[NDArray[np.float64]]:
        """Yield ``E'N_r E``, without the ridge: of every problem, or one that serves them all."""
        columns = self.sides.factors[:, :1] if self.sides.shared else self.sides.factors
        for factors in columns.T:
            yield np.tensordot(factors, self.moments.grams, axes=1)

    def targets(self) -> NDArray[np.float64]:
        """Return the right-hand sides ``E'N_r d`` (q, k)."""
        return self.moments.sums.T @ (self.sides.factors * self.sides.signs)

    def energies(self) -> NDArray[np.float64]:
        """Return ``d'N_r d`` (k,)."""
        return self.moments.totals @ self.sides.factors

    def certify(self, Z: NDArray[np.float64]) -> Certificate:
        """Measure the solutions Z (q, k) of all classes; the sum of their objectives is certified."""
        return self.judge(Z, self.images(Z[:, :, None])[:, :, 0])

    def images(self, Z: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return ``E'N_r E z`` for one or more solutions of every problem, Z and images (q, k, m)."""
        if self.sides.shared:
            return np.tensordot(next(self.hessians()), Z, axes=1)
        return np.stack([hessian @ Z[:, r] for r, hessian in enumerate(self.hessians())], axis=1)

    def judge(self, Z: NDArray[np.float64], images: NDArray[np.float64]) -> Certificate:
        """Certify the solutions Z by their images, which do not depend on C."""
        targets = self.targets()
        slopes = targets - images
        fit = float(self.energies().sum() - np.vdot(Z, targets))
        errors = fit - float(np.vdot(Z, slopes))
        primal = 0.5 * self.C * errors + 0.5 * float(np.vdot(Z, Z))
        dual = self.C * fit - 0.5 * self.C * errors - 0.5 * self.C**2 * float(np.vdot(slopes, slopes))
        scale = sum(np.linalg.norm(part, axis=0) for part in (targets, images, Z / self.C))
        residual = max(map(_ratio, np.linalg.norm(slopes - Z / self.C, axis=0), scale))
        return Certificate.of(primal, dual, infeasibility=residual)


@dataclass(frozen=True, slots=True)
class ProximalRows:
    """The same problems, stated by their rows: slower to touch, but nothing is lost by squaring.

    Attributes
    ----------
    X, labels, weights : the data, dense or CSR.
    sides, C : as for `NormalEquations`.
    transform : maps rows of `X` to their features B; None where they are the features.
    chunk_rows : how many rows are transformed at a time.
    """

    X: Any
    labels: NDArray[np.intp]
    weights: NDArray[np.float64]
    sides: Sides
    C: float
    transform: Callable[[Any], NDArray] | None = None
    chunk_rows: int = 4096

    @property
    def n_features(self) -> int:
        """Number of features B of a row."""
        return (self.X if self.transform is None else self.transform(self.X[:1])).shape[1]

    def features(self) -> Iterator[tuple[slice, Any]]:
        """Yield some rows at a time, with their features B."""
        for first in range(0, len(self.labels), self.chunk_rows):
            part = slice(first, first + self.chunk_rows)
            yield part, self._features_of(part)

    def chunks(self) -> Iterator[tuple[Any, NDArray[np.float64], NDArray[np.float64]]]:
        """Yield features B, signs (n, m) and weights N (n, m) of some rows at a time."""
        for part, B in self.features():
            labels = self.labels[part]
            yield B, self.sides.signs[labels], self.sides.factors[labels] * self.weights[part, None]

    def chunks_of_classes(self) -> Iterator[tuple[int, Any, NDArray[np.float64]]]:
        """Yield some rows of one class at a time: the class, their features B and their own weights (n,)."""
        for c in range(len(self.sides.signs)):
            members = np.flatnonzero(self.labels == c)
            for first in range(0, len(members), self.chunk_rows):
                part = members[first : first + self.chunk_rows]
                yield c, self._features_of(part), self.weights[part]

    def _features_of(self, part: Any) -> Any:
        B = self.X[part] if self.transform is None else self.transform(self.X[part])
        return B if sparse.issparse(B) else np.asarray(B, dtype=np.float64)

    def products(self, V: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return ``B V`` of all rows."""
        return self.reduce(lambda first, second: np.vstack([first, second]), ProximalRows._products, V)

    def _products(self, V: NDArray[np.float64]) -> NDArray[np.float64]:
        products = np.empty((len(self.labels), V.shape[1]))
        for part, B in self.features():
            products[part] = B @ V
        return products

    def part(self, rows: slice) -> "ProximalRows":
        """Return some of the rows."""
        if rows == slice(0, len(self.labels)):
            return self  # a slice of sparse rows would be a copy
        return replace(self, X=self.X[rows], labels=self.labels[rows], weights=self.weights[rows])

    def thinned(self, stride: int) -> "ProximalRows":
        """Return evenly spaced rows, which weigh as much as all."""
        X, labels = self.X[::stride], np.ascontiguousarray(self.labels[::stride])
        return replace(self, X=X, labels=labels, weights=stride * self.weights[::stride])

    def reduce(self, combine: Callable[[Any, Any], Any], function: Callable[..., Any], *arguments: Any) -> Any:
        """Return what `function` makes of the rows; of ranges of them, combined, where threads share the work."""
        parts = over_ranges(lambda rows: function(self.part(rows), *arguments), len(self.labels))
        return functools.reduce(combine, parts)

    def slopes(self, Z: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return ``E'N_r (d - E z_r)`` (q, k)."""
        return self.sums(Z)[0]

    def sums(self, Z: NDArray[np.float64]) -> tuple[NDArray[np.float64], NDArray[np.float64], float]:
        """Return the slopes, the targets ``E'N_r d`` and the summed weighted squared errors."""
        return self.reduce(added, ProximalRows._sums, Z)

    def _sums(self, Z: NDArray[np.float64]) -> tuple[NDArray[np.float64], NDArray[np.float64], float]:
        slopes, targets, squares = np.zeros_like(Z), np.zeros_like(Z), 0.0
        for B, signs, N in self.chunks():
            errors = signs - (B @ Z[:-1] - Z[-1])
            slopes += _augmented_sums(B, N * errors)
            targets += _augmented_sums(B, N * signs)
            squares += float(np.vdot(N * errors, errors))
        return slopes, targets, squares

    def certify(self, Z: NDArray[np.float64], multipliers: NDArray[np.float64] | None = None) -> Certificate:
        """Measure the solutions Z (q, k) of all classes; the sum of their objectives is certified.

        The dual value is that of `multipliers` (n, k) where given, else of those that belong to Z.
        """
        dual = None if multipliers is None else self._dual(Z, multipliers)
        return _judged(Z, self.C, self.sums(Z), dual)

    def _dual(self, Z: NDArray[np.float64], multipliers: NDArray[np.float64]) -> tuple[NDArray[np.float64], float]:
        """Return ``z - A'alpha`` and ``d'N^(1/2) alpha - |alpha|^2/(2C) - |A'alpha|^2/2``, with A = N^(1/2) E."""
        value, image, first = -float(np.vdot(multipliers, multipliers)) / (2.0 * self.C), np.zeros_like(Z), 0
        for B, signs, N in self.chunks():
            weighted = np.sqrt(N) * multipliers[first : first + len(signs)]
            value += float(np.vdot(weighted, signs))
            image += _augmented_sums(B, weighted)
            first += len(signs)
        return Z - image, value - 0.5 * float(np.vdot(image, image))


@dataclass(frozen=True, slots=True)
class PartitionedRows:
    """The same problems, stated by rows in blocks, of which only sums are taken.

    Attributes
    ----------
    blocks : of `ProximalRows`; their `sides` and `C` do not matter.
    sides, C : as for `NormalEquations`.
    """

    blocks: Blocks
    sides: Sides
    C: float

    def reduce(self, combine: Callable[[Any, Any], Any], function: Callable[..., Any], *arguments: Any) -> Any:
        """Return what `function` makes of the `ProximalRows` of every block, combined."""
        return self.blocks.reduce(combine, _of_block, self.sides, function, arguments)

    def slopes(self, Z: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return ``E'N_r (d - E z_r)`` (q, k)."""
        return self.reduce(added, ProximalRows.slopes, Z)

    def certify(self, Z: NDArray[np.float64]) -> Certificate:
        """Measure the solutions Z (q, k) of all classes; the sum of their objectives is certified."""
        return _judged(Z, self.C, self.reduce(added, ProximalRows.sums, Z))


RowProblem = ProximalRows | PartitionedRows


def in_memory(rows: RowProblem) -> ProximalRows:
    """Return rows that must be in memory, or raise if they are in partitions."""
    if not isinstance(rows, ProximalRows):
        raise TypeError(f"rows must be in memory here, got {type(rows).__name__}.")
    return rows


@dataclass(frozen=True, slots=True)
class WeightedSystem:
    """One problem, or more that share the weights, stated by few rows that have the squares and products of all.

    Attributes
    ----------
    A : (m, q) weighted rows.
    right : (m, r) right-hand sides of r problems.
    beyond : summed squares of the right-hand sides that no coefficients can reach.
    """

    A: NDArray[np.float64]
    right: NDArray[np.float64]
    beyond: float = 0.0

    def certify(self, Z: NDArray[np.float64], multipliers: NDArray[np.float64], C: float) -> Certificate:
        """Measure the solutions Z (q, r) and multipliers (m, r); the sum of their objectives is certified."""
        errors = self.right - self.A @ Z
        squares = float(np.vdot(errors, errors)) + self.beyond
        image = self.A.T @ multipliers
        norms = float(np.vdot(multipliers, multipliers)) / C + float(np.vdot(image, image)) - C * self.beyond
        dual = Z - image, float(np.vdot(self.right, multipliers)) - 0.5 * norms
        sums = self.A.T @ errors, self.A.T @ self.right, squares
        # both dual points are bounds: the multipliers, and those that belong to Z
        return min(_judged(Z, C, sums, dual), _judged(Z, C, sums), key=lambda certificate: abs(certificate.gap))


def _of_block(rows: ProximalRows, sides: Sides, function: Callable[..., Any], arguments: tuple) -> Any:
    return function(replace(rows, sides=sides), *arguments)


def _judged(
    Z: NDArray[np.float64],
    C: float,
    sums: tuple[NDArray[np.float64], NDArray[np.float64], float],
    dual: tuple[NDArray[np.float64], float] | None = None,
) -> Certificate:
    """Certify Z by the sums over its rows, with the dual point that belongs to Z or another (gradient, value)."""
    slopes, targets, squares = sums
    primal = 0.5 * C * squares + 0.5 * float(np.vdot(Z, Z))
    if dual is None:
        gradient = Z - C * slopes
        dual = gradient, primal - 0.5 * float(np.vdot(gradient, gradient))
    scale = sum(np.linalg.norm(part, axis=0) for part in (targets, targets - slopes, Z / C))
    residual = max(map(_ratio, np.linalg.norm(dual[0], axis=0) / C, scale))
    return Certificate.of(primal, dual[1], infeasibility=residual)


def _augmented_sums(B: Any, weights: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return ``E'weights`` (q, k) for ``E = [B, -1]``."""
    return np.vstack([B.T @ weights, -weights.sum(axis=0)])


def _ratio(part: Any, whole: Any) -> float:
    return float(part / whole) if whole > 0 else 0.0
