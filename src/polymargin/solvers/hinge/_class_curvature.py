"""The curvature of rows in the classes' own coordinates, where classes are many.

Pairs of classes are many more than classes, so that a weighted Gram for each of them, ``sum_t w_t atom_t atom_t'``
spelled out, takes a table of rows by pairs. Here the same matrix (p, k, p, k) is formed without any: of maxima it
is a diagonal less the square of a table of rows by classes, of hinges a sum over those that there are.
"""

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from polymargin.solvers.hinge.settings import INTERIOR

Array = NDArray[np.float64]


def curvature_of_maxima(theta: Array, features: Array) -> Array:
    """Return ``sum_b (diag(theta_b) - theta_b theta_b' / sum theta_b) (x) x_b x_b'``, x_b the features of a block.

    Where one slot of a block has nearly all of theta, its part of the diagonal would cancel against the square:
    so classes are measured from that of the largest slot, a, as in ``sum_j theta_j (e_j - e_a) (e_j - e_a)'``.
    """
    blocks, (k, p) = np.arange(len(theta)), (theta.shape[1], features.shape[1])
    largest = theta.argmax(axis=1)
    others = theta.copy()
    others[blocks, largest] = 0.0
    rest = others.sum(axis=1)
    total = rest + theta[blocks, largest]
    moved = others.copy()
    moved[blocks, largest] = -rest
    moved /= np.sqrt(total)[:, None]
    square = (features[:, :, None] * moved[:, None, :]).reshape(len(theta), p * k)
    curvature = (-(square.T @ square)).reshape(p, k, p, k)
    products = (features[:, :, None] * features[:, None, :]).reshape(len(theta), p * p)
    order = np.argsort(largest, kind="stable")
    for rows in np.split(order, np.flatnonzero(np.diff(largest[order])) + 1):
        own = largest[rows[0]] if len(rows) else 0
        to_others = (products[rows].T @ others[rows]).reshape(p, p, k)
        curvature[:, own, :, :] -= to_others
        curvature[:, :, :, own] -= to_others.transpose(0, 2, 1)
    others[blocks, largest] = rest
    diagonal = np.arange(k)
    curvature[:, diagonal, :, diagonal] += (products.T @ others).reshape(p, p, k).transpose(2, 0, 1)
    return curvature


def curvature_of_hinges(weights: sparse.csr_array, features: Array, of_pairs: sparse.csr_array) -> Array:
    """Return the same from the weights (rows, atoms) of hinges, and `pairs_of_atoms`."""
    n, p = features.shape
    products = (features[:, :, None] * features[:, None, :]).reshape(n, p * p)
    k = int(np.sqrt(of_pairs.shape[0]))
    return (of_pairs @ (weights.T @ products)).reshape(k, k, p, p).transpose(2, 0, 3, 1)


def pairs_of_atoms(atoms: sparse.csr_array) -> sparse.csr_array:
    """Return the products (k k, atoms) of every atom with itself, which has few classes."""
    n_atoms, k = atoms.shape
    entry, starts, counts = atoms.indices, atoms.indptr, np.diff(atoms.indptr)
    atom = np.repeat(np.arange(n_atoms), counts)
    first = np.repeat(np.arange(len(atom)), counts[atom])  # every entry with all of its atom
    within = np.arange(len(first)) - np.repeat(np.cumsum(counts[atom]) - counts[atom], counts[atom])
    second = starts[atom[first]] + within
    value = atoms.data
    place = (entry[first] * k + entry[second], atom[first])
    return sparse.csr_array((value[first] * value[second], place), shape=(k * k, n_atoms))


def in_basis(curvature: Array, basis: Array) -> Array:
    """Return a curvature (p, k, p, k) in a basis (k, m) of the classes: (m p, m p), features innermost."""
    p, (k, m) = len(curvature), basis.shape
    right = (curvature.reshape(-1, k) @ basis).reshape(p, k, p * m)
    return np.matmul(basis.T, right).reshape(p, m, p, m).transpose(1, 0, 3, 2).reshape(m * p, m * p)


def chunks_of(features: Any, n_classes: int) -> Iterator[tuple[int, int, Array]]:
    """Yield rows from first to last and their features as an array, so many that a table of them stays small."""
    n, p = features.shape
    height = max(1, INTERIOR.chunk_entries // (p * max(p, n_classes)))
    for first in range(0, n, height):
        last = min(first + height, n)
        part = features[first:last]
        yield first, last, part.toarray() if sparse.issparse(part) else part
