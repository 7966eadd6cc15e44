"""QR factorisations of the rows of every class, which lose no digits by squaring.

A problem of the proximal machine gives the rows of a class one weight and one sign, so that the
triangular factors of the classes, weighed and stacked, serve all problems.
"""

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from polymargin._native.triangles import add_to_triangle
from polymargin.problems.proximal import ProximalRows, RowProblem, Sides, WeightedSystem
from polymargin.solvers.linear_algebra import dense
from polymargin.solvers.ridge.settings import DEFAULTS

ClassQR = dict[int, NDArray[np.float64]]
"""The weighted augmented rows (m, q) of every class that has any: as they are if m < q, else a triangle, m = q."""


def qr_per_class(problem: RowProblem) -> ClassQR:
    """Factorise the rows of every class."""
    return problem.reduce(_merged, _of_rows)


def gram_matrices(class_qr: ClassQR, n_classes: int) -> NDArray[np.float64]:
    """Return the Gram matrices (k, q, q) of the rows from their triangular factors."""
    q = next(iter(class_qr.values())).shape[1]
    grams = np.zeros((n_classes, q, q))
    for c, rows in class_qr.items():
        grams[c] = rows.T @ rows
    return grams


def weighted_systems(class_qr: ClassQR, sides: Sides) -> Iterator[WeightedSystem]:
    """Yield the systems ``N_r^(1/2) [E, d]`` of every problem, or one of all where they share the weights."""
    if sides.shared:
        yield _weighted(class_qr, np.sqrt(sides.factors[:, 0]), sides.signs)
    else:
        for factors, signs in zip(sides.factors.T, sides.signs.T, strict=True):
            yield _weighted(class_qr, np.sqrt(factors), signs[:, None])


def _of_rows(rows: ProximalRows) -> ClassQR:
    class_qr: ClassQR = {}
    for c, B, weights in rows.chunks_of_classes():
        roots = np.sqrt(weights)[:, None]
        augmented = np.hstack([roots * dense(B), -roots])
        class_qr[c] = _stacked(class_qr.get(c, augmented[:0]), augmented)
    return class_qr


def _merged(first: ClassQR, second: ClassQR) -> ClassQR:
    both = first.keys() & second.keys()
    return first | second | {c: _stacked(first[c], second[c], slanted=_is_triangle(second[c])) for c in both}


def _is_triangle(rows: NDArray[np.float64]) -> bool:
    return rows.shape[0] == rows.shape[1]


def _weighted(class_qr: ClassQR, roots: NDArray[np.float64], signs: NDArray[np.float64]) -> WeightedSystem:
    """Stack the factors, each weighed by one of `roots` (k,), and their signs (k, m) to the right of them.

    The signs of a class, all s, are ``-s`` times the last column of its rows.
    """
    q = next(iter(class_qr.values())).shape[1]
    stack = np.empty((0, q + signs.shape[1]))
    for c, rows in class_qr.items():
        system = roots[c] * np.hstack([rows, -signs[c] * rows[:, -1:]])
        stack = _stacked(stack, system, slanted=_is_triangle(rows))
    missing = stack.shape[1] - len(stack)
    if len(stack) > q and missing:
        stack = _stacked(stack, np.zeros((missing, stack.shape[1])))
    return WeightedSystem(stack[:q, :q], stack[:q, q:], float((stack[q:, q:] ** 2).sum()))


def _stacked(
    triangle: NDArray[np.float64], rows: NDArray[np.float64], *, slanted: bool = False
) -> NDArray[np.float64]:
    """Add `rows` to those that stand for others: as they are while fewer than columns, else in a triangle.

    Rows are `slanted` if there is nothing below their diagonal, which saves two thirds of the work.
    """
    width = rows.shape[1]
    if len(triangle) + len(rows) < width:
        return np.vstack([triangle, rows])
    if len(triangle) < width:
        rows, triangle, slanted = np.vstack([triangle, rows]), np.zeros((width, width)), False
    stacked = np.array(triangle, order="F")
    add_to_triangle(stacked, np.array(rows, order="F"), len(rows) if slanted else 0, min(DEFAULTS.panel, width))
    return stacked
