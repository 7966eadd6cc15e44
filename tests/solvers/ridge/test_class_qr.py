"""Triangles that stand for rows have their products, however the rows are spread over chunks and blocks."""

import numpy as np
import pytest
from scipy import sparse

from polymargin.problems.proximal import PartitionedRows, ProximalRows, Sides
from polymargin.solvers.ridge.class_qr import gram_matrices, qr_per_class, weighted_systems
from polymargin.solvers.ridge.path import decompose


class ListedBlocks:
    """Blocks in a list; of `Blocks` only what `qr_per_class` asks for."""

    def __init__(self, blocks):
        self.blocks = blocks

    def reduce(self, combine, function, *arguments):
        result, *others = (function(block, *arguments) for block in self.blocks)
        for other in others:
            result = combine(result, other)
        return result


def problem(rng, n, k, p, balance, *, chunk_rows, form=np.asarray):
    labels = np.sort(rng.integers(0, k, n))  # blocks have many rows of some classes and none of others
    labels[-1] = k - 1
    weights = rng.choice([0.5, 1.0, 3.0], n)
    sides = Sides.one_vs_rest(np.bincount(labels, weights, minlength=k), balance)
    return ProximalRows(form(rng.normal(size=(n, p))), labels, weights, sides, 1.0, chunk_rows=chunk_rows)


def in_blocks(rows, n_blocks):
    parts = np.array_split(np.arange(len(rows.labels)), n_blocks)
    blocks = [
        ProximalRows(
            rows.X[part], rows.labels[part], rows.weights[part], rows.sides, 1.0, chunk_rows=rows.chunk_rows
        )
        for part in parts
    ]
    return PartitionedRows(ListedBlocks(blocks), rows.sides, 1.0)


@pytest.mark.parametrize("form", [np.asarray, sparse.csr_array])
@pytest.mark.parametrize("balance", [True, False])
@pytest.mark.parametrize("n", [4, 11, 60, 301])
@pytest.mark.parametrize("chunk_rows", [1, 8, 1000])
def test_triangles_have_the_products_of_the_rows(n, chunk_rows, balance, form):
    for seed in range(6):
        rng = np.random.default_rng(seed)
        k, p = int(rng.integers(2, 5)), int(rng.integers(1, 12))
        rows = problem(rng, n, k, p, balance, chunk_rows=chunk_rows, form=form)
        dense = rows.X.toarray() if sparse.issparse(rows.X) else rows.X
        E = np.column_stack([dense, -np.ones(n)])
        signs, N = rows.sides.signs[rows.labels], rows.sides.factors[rows.labels] * rows.weights[:, None]
        for stated in (rows, in_blocks(rows, 1), in_blocks(rows, min(n, 3)), in_blocks(rows, min(n, 9))):
            class_qr = qr_per_class(stated)
            systems = list(weighted_systems(class_qr, rows.sides))
            assert len(systems) == (k if balance and k > 2 else 1)
            assert all(len(system.A) <= min(n, p + 1) for system in systems)
            grams = gram_matrices(class_qr, k)
            for c in range(k):
                own = rows.labels == c
                weighted = rows.weights[own, None] * E[own]
                np.testing.assert_allclose(grams[c], weighted.T @ E[own], rtol=1e-12, atol=1e-11)
            squares = [system.A.T @ system.A for system in systems] * (k // len(systems))
            targets = np.hstack([system.A.T @ system.right for system in systems])
            energies = sum((system.right**2).sum() + system.beyond for system in systems)
            assert energies == pytest.approx(N.sum(), rel=1e-12)
            for r in range(k):
                weighted = N[:, r, None] * E
                np.testing.assert_allclose(squares[r], weighted.T @ E, rtol=1e-12, atol=1e-13 * N[:, r].sum())
                np.testing.assert_allclose(targets[:, r], weighted.T @ signs[:, r], rtol=1e-11, atol=1e-12)


@pytest.mark.parametrize("balance", [True, False])
def test_paths_use_triangles_that_are_at_hand_instead_of_the_rows(balance):
    rows = problem(np.random.default_rng(0), 200, 3, 5, balance, chunk_rows=64)
    Cs = 2.0 ** np.arange(0, 40, 8)
    expected = [spectrum.coefficients(Cs) for spectrum in decompose(None, rows, Cs.max())]
    class_qr = qr_per_class(rows)
    beside_other_rows = problem(np.random.default_rng(1), 200, 3, 5, balance, chunk_rows=64)
    stated = ProximalRows(beside_other_rows.X, rows.labels, rows.weights, rows.sides, 1.0)
    found = [spectrum.coefficients(Cs) for spectrum in decompose(None, stated, Cs.max(), class_qr)]
    np.testing.assert_array_equal(found, expected)
