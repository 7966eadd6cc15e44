"""Leave-one-out scores of the proximal machine in closed form, for all C at once.

A ridge solution without row i follows from the one with it: with leverage ``h = N_i e_i'(E'NE + I/C)^-1 e_i`` the
score of the left-out row is ``(s_i - h d_i) / (1 - h)``. Balancing changes with the counts, so that rows of the
class and rows of the rest start from two different problems, each with the counts of the smaller sample. A row of
weight w stands for w equal rows of which one is left out.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import scipy.linalg
from numpy.typing import NDArray

from polymargin.blocks import added
from polymargin.moments import ClassMoments
from polymargin.problems.proximal import NormalEquations, ProximalRows, RowProblem, Sides, in_memory
from polymargin.solvers.linear_algebra import dense
from polymargin.solvers.ridge.path import SpectralRidge, decompose
from polymargin.solvers.ridge.settings import DEFAULTS
from polymargin.threads import eigh, svd

Chunk = tuple[slice, NDArray[np.float64]]
"""Some rows, and their left-out scores (n_Cs, n, k)."""


@dataclass(frozen=True, slots=True)
class LeftOutSides:
    """The sides of every problem for a row of the class itself, and for a row of the rest."""

    own: Sides
    rest: Sides

    @classmethod
    def of(
        cls,
        totals: NDArray[np.float64],
        balance: bool,
        own: float | NDArray[np.float64] = 1.0,
        rest: float | NDArray[np.float64] = 1.0,
    ) -> "LeftOutSides":
        """Let one row be left out on either side, of weight `own` in the class or `rest` in the rest."""
        return cls(
            Sides.one_vs_rest(totals, balance, fewer_own=own), Sides.one_vs_rest(totals, balance, fewer_rest=rest)
        )

    @classmethod
    def whole(cls, labels: NDArray[np.intp], weights: NDArray[np.float64], balance: bool) -> "LeftOutSides":
        """Let rows leave with all their weight, for the balancing that of the mean row of the side."""
        totals, counts = np.bincount(labels, weights).astype(np.float64), np.bincount(labels)
        rest = (totals.sum() - totals) / np.maximum(counts.sum() - counts, 1)
        return cls.of(totals, balance, totals / counts, rest)

    def different(self) -> list[Sides]:
        """Return the sides, or the one that serves both (without balancing)."""
        return [self.own] if np.array_equal(self.own.factors, self.rest.factors) else [self.own, self.rest]

    def rows_of(self, r: int, labels: NDArray[np.intp]) -> list[NDArray[np.intp]]:
        """Return the rows for which each of the different sides states problem r."""
        if len(self.different()) == 1:
            return [np.arange(len(labels))]
        return [np.flatnonzero(labels == r), np.flatnonzero(labels != r)]


LEAST_SLACK = 1e-10
"""One less a leverage below which rounding determines what is left of a score, where that is a difference."""


def left_out_scores(
    rows: ProximalRows,
    moments: ClassMoments | None,
    sides: LeftOutSides,
    Cs: NDArray[np.float64],
    *,
    whole: bool = False,
) -> Iterator[Chunk]:
    """Yield the leave-one-out scores, by the smaller of the two systems: without moments, that of the rows.

    A `whole` row leaves with all its weight, instead of one of the equal rows that it stands for.
    """
    if moments is None:
        if whole and len(Cs) == 1 and all(_are_comparable(side) for side in sides.different()):
            return iter([(slice(0, len(rows.labels)), _at_one_C(rows, sides, float(Cs[0]))[None])])
        return _through_rows(rows, sides, Cs, whole=whole)
    return _through_moments(rows, _spectra(rows, moments, sides, Cs), sides, Cs, whole=whole)


def left_out_sums(
    rows: RowProblem, moments: ClassMoments | None, sides: LeftOutSides, Cs: NDArray[np.float64]
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return the summed weights of the rows that are right when left out, and their summed squared errors."""
    if moments is None:
        return _judged(in_memory(rows), _through_rows(in_memory(rows), sides, Cs), sides, Cs)
    return rows.reduce(added, _judged_by_spectra, _spectra(rows, moments, sides, Cs), sides, Cs)


Spectra = list[list[SpectralRidge]]
"""Of every problem, for each of the different sides."""


def _spectra(rows: RowProblem, moments: ClassMoments, sides: LeftOutSides, Cs: NDArray[np.float64]) -> Spectra:
    return [
        decompose(NormalEquations(moments, side, rows.C), replace(rows, sides=side), Cs.max())
        for side in sides.different()
    ]


def _judged_by_spectra(
    rows: ProximalRows, spectra: Spectra, sides: LeftOutSides, Cs: NDArray[np.float64]
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    return _judged(rows, _through_moments(rows, spectra, sides, Cs), sides, Cs)


def _judged(
    rows: ProximalRows, chunks: Iterator[Chunk], sides: LeftOutSides, Cs: NDArray[np.float64]
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    right, squares = np.zeros(len(Cs)), np.zeros(len(Cs))
    for part, scores in chunks:
        weights, labels = rows.weights[part], rows.labels[part]
        right += (scores.argmax(axis=2) == labels) @ weights
        squares += ((scores - sides.own.signs[labels]) ** 2).mean(axis=2) @ weights
    return right, squares


def _through_moments(
    rows: ProximalRows, spectra: Spectra, sides: LeftOutSides, Cs: NDArray[np.float64], *, whole: bool = False
) -> Iterator[Chunk]:
    first = 0
    for B, signs, _ in rows.chunks():
        part = slice(first, first + len(signs))
        labels = rows.labels[part]
        scores = np.empty((len(Cs), *signs.shape))
        for r in range(signs.shape[1]):
            for of_side, side, at in zip(spectra, sides.different(), sides.rows_of(r, labels), strict=True):
                spectrum = of_side[r]
                axes = B[at] @ spectrum.vectors[:-1] - spectrum.vectors[-1]
                inverse = spectrum.inverse(Cs)
                leaving = side.factors[labels[at], r] * (rows.weights[part][at] if whole else 1.0)
                leverage = leaving[:, None] * (axes**2 @ inverse)
                fitted = axes @ (spectrum.target[:, None] * inverse)
                _check_determined(bool((1.0 - leverage >= LEAST_SLACK).all()))
                scores[:, at, r] = ((fitted - leverage * signs[at, r, None]) / (1.0 - leverage)).T
        yield part, scores
        first = part.stop


def _through_rows(
    rows: ProximalRows, sides: LeftOutSides, Cs: NDArray[np.float64], *, whole: bool = False
) -> Iterator[Chunk]:
    """Take ``1 - h`` from the diagonal of ``(C N^(1/2) E E' N^(1/2) + I)^-1``: exact also where h nears one."""
    ((B, signs, _),) = replace(rows, chunk_rows=len(rows.labels)).chunks()
    inner = dense(B @ B.T) + 1.0
    scores = np.empty((len(Cs), *signs.shape))
    shared: dict[bytes, tuple] = {}
    for r in range(signs.shape[1]):
        for side, at in zip(sides.different(), sides.rows_of(r, rows.labels), strict=True):
            roots = np.sqrt(side.factors[rows.labels, r] * rows.weights)
            key = roots.tobytes()
            if key not in shared:
                shared = {key: _principal_axes(B, inner, roots, Cs.max())}
            values, U = shared[key]
            inverse = 1.0 / (values[:, None] + 1.0 / Cs)
            multipliers = U @ ((U.T @ (roots * signs[:, r]))[:, None] * inverse)
            slack = U[at] ** 2 @ inverse / Cs
            w, root = np.ones((1, 1)) if whole else rows.weights[at, None], roots[at, None]
            with np.errstate(divide="ignore", invalid="ignore"):
                errors = multipliers[at] / (Cs * root) * (w / (w - 1.0 + slack))
            # the only row of its class has no weight once it is left out: its score needs no correction
            direct = inner[at] @ (roots[:, None] * multipliers)
            scores[:, at, r] = np.where(root > 0, signs[at, r, None] - errors, direct).T
    _check_determined(bool(np.isfinite(scores).all()))
    yield slice(0, len(signs)), scores


def _are_comparable(sides: Sides) -> bool:
    """Tell whether the factors of class and rest are near enough for one to be a correction of the other."""
    return float(sides.factors.max()) < DEFAULTS.factors_apart * float(sides.factors.min())


def _at_one_C(rows: ProximalRows, sides: LeftOutSides, C: float) -> NDArray[np.float64]:
    """Return the left-out scores (n, k) of whole rows for one C, in a fraction of the time of `_through_rows`.

    With G = ``u E E' u``, u the roots of the weights, problem r has the matrix ``G + s I + t P``, where P keeps
    the rows of class r and s and s + t are ``1/(C factor)`` of the rest and of the class. So G is decomposed once
    for all problems, and what distinguishes the class is a correction of low rank.
    """
    ((B, signs, _),) = replace(rows, chunk_rows=len(rows.labels)).chunks()
    roots = np.sqrt(rows.weights)
    largest = C * max(float(side.factors.max()) for side in sides.different())
    values, U = _principal_axes(B, dense(B @ B.T) + 1.0, roots, largest)
    scores = np.empty(signs.shape)
    for r in range(signs.shape[1]):
        own, rest = np.flatnonzero(rows.labels == r), np.flatnonzero(rows.labels != r)
        for side, leaving in ((sides.own, own), (sides.rest, rest)):
            of_class, of_rest = C * float(side.factors[r, r]), C * float(side.factors[r - 1, r])
            scaled = np.sqrt(values + 1.0 / of_rest)
            seen = (U.T @ (roots * signs[:, r])) / scaled
            inside, out = U[own] / scaled, U[leaving] / scaled
            extra = 1.0 / of_class - 1.0 / of_rest
            coupling = np.eye(len(own)) + extra * inside @ inside.T
            columns = out @ inside.T
            correction = extra * scipy.linalg.solve(coupling, columns.T, check_finite=False)
            answer = out @ seen - (inside @ seen) @ correction
            diagonal = np.einsum("ij,ij->i", out, out) - np.einsum("ij,ji->i", columns, correction)
            _check_determined(bool((diagonal > 0).all()))
            scores[leaving, r] = signs[leaving, r] - answer / (roots[leaving] * diagonal)
    return scores


def _check_determined(are_determined: bool) -> None:
    """Refuse rows without which rounding leaves no score."""
    if not are_determined:
        raise ValueError(
            "X holds a row that alone determines its own score (its leverage is 1 to rounding), so that no score "
            "is left when it leaves: scale X, lower C, or use folds."
        )


def _principal_axes(
    B: Any, inner: NDArray[np.float64], roots: NDArray[np.float64], largest_C: float
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Decompose ``N^(1/2) E E' N^(1/2) = U diag(values) U'``, by the rows where squaring them costs digits."""
    values, U = eigh(roots[:, None] * inner * roots)
    if values[-1] / (max(values[0], 0.0) + 1.0 / largest_C) > DEFAULTS.squaring_suffices:
        E = np.column_stack([dense(B), -np.ones(len(roots))])
        U, s, _ = svd(roots[:, None] * E)
        return s**2, U
    return np.maximum(values, 0.0), U
