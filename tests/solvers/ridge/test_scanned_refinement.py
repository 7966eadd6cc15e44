"""The refinement by scans is the refinement over all scores, whatever the reach, the rows and their features."""

from functools import partial

import numpy as np
import pytest
from scipy import sparse

import polymargin.solvers.ridge.scanned_refinement as scanned
from polymargin.problems.proximal import ProximalRows, Sides
from polymargin.solvers.ridge.refinement import margin_sums, refine, rows_within_margins
from polymargin.solvers.ridge.settings import RidgeSettings


@pytest.fixture(params=[2, 5, 13, 70])
def rows(request):
    rng = np.random.default_rng(request.param)
    n, p, k = 3001, 7, request.param
    labels = rng.integers(0, k, n)
    X = rng.normal(size=(n, p)) + rng.normal(size=(k, p))[labels]
    sides = Sides.one_vs_rest(np.bincount(labels).astype(float), True)
    return ProximalRows(X, labels, rng.uniform(0.1, 2.0, n), sides, 1.0), rng.normal(size=(p, k))


def over_all_scores(rows, V, factors, norms, offset, C):
    scores = rows.products(V)
    found = refine(partial(margin_sums, scores, rows.labels, rows.weights, factors), norms, offset, C, tol=0.0)
    return found, rows_within_margins(scores, rows.labels, found.scale, found.offset)


@pytest.mark.parametrize("reach", [1e-6, 3.0, 1000.0])
@pytest.mark.parametrize("form", [np.asarray, np.asfortranarray, np.float32, sparse.csr_array])
def test_scans_find_the_optimum_of_all_rows(rows, reach, form, threads):
    rows, V = rows
    tuning = RidgeSettings(thinned_rows=300, scan_bytes=1000 * 8 * V.shape[0], reach=reach)
    rows = ProximalRows(form(rows.X), rows.labels, rows.weights, rows.sides, 1.0)
    geometry = rows.sides.factors, np.einsum("ij,ij->j", V, V), np.zeros(V.shape[1])
    for C in (1e-2, 10.0):
        found, support = scanned.refine_by_scans(rows, V, *geometry, C, tuning=tuning)
        expected, within = over_all_scores(rows, V, *geometry, C)
        np.testing.assert_allclose(found.objective, expected.objective, rtol=1e-12)
        np.testing.assert_allclose(found.scale, expected.scale, rtol=1e-9, atol=1e-12)
        np.testing.assert_allclose(found.offset, expected.offset, rtol=1e-9, atol=1e-12)
        np.testing.assert_array_equal(support, within)
        assert (found.gap < 1e-12).all()


def test_a_scan_sums_up_what_margin_sums_does_anywhere_within_its_reach(rows, threads):
    rows, V = rows
    k = V.shape[1]
    rng = np.random.default_rng(0)
    centre, middle, reach = rng.normal(size=(2, k)), rng.normal(size=k), np.full((2, k), 0.3)
    scan = scanned.scan_rows(rows, V, rows.sides.factors, np.vstack([centre, middle, reach]))
    assert 0 < sum(lists.listed.sum() for lists in scan.lists) < 0.9 * k * len(rows.labels)
    scores = rows.products(V)
    for _ in range(5):
        steeper, shifted = rng.uniform(-0.3, 0.3, size=(2, k))
        scale, offset = centre[0] + steeper, centre[1] + steeper * middle + shifted
        expected = margin_sums(scores, rows.labels, rows.weights, rows.sides.factors, scale, offset)
        np.testing.assert_allclose(scan.sums_at(scale, offset), expected, rtol=1e-10, atol=1e-10)
        np.testing.assert_array_equal(
            scan.support(scale, offset), rows_within_margins(scores, rows.labels, scale, offset)
        )
