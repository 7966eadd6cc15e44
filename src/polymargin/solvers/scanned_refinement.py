"""Newton refinement of more rows than one cares to keep the scores of: a sample, then about one pass.

Between the optimum of a sample and that of all rows few errors change their sign. One pass over the rows lists
those that may, within a reach of the sample's optimum, and sums up all others, which contribute one quadratic
function. The sum of both is convex and, within the reach, the objective itself: if its minimum is within the
reach, it is the minimum of the objective. If not, the next pass reaches further from there.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import partial

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from polymargin._native.margin_scan import add_listed, scan_margins
from polymargin.coding import one_vs_rest_signs
from polymargin.problems.proximal import ProximalRows
from polymargin.solvers.refinement import THINNED_ROWS, Refinement, Sums, margin_sums, refine

SCANNED_ROWS = 4 * THINNED_ROWS
"""Number of rows from which on a scan is worth its while."""

REACH_SCALE, REACH_OFFSET = 0.15, 0.05
"""How far the first scan reaches: in parts of the scale, and for the offset of the margin, which is one."""

FURTHER = 2.0

SCAN_HEIGHT = 256  # rows whose scores stay in the cache of the processor
SCAN_ROWS = 2**14
PANEL = 12


@dataclass(frozen=True, slots=True)
class Scan:
    """What a pass over the rows has found.

    Attributes
    ----------
    certain : (5, k) sums of ``w, w d, w s, w d s, w s^2`` over rows that stay within the margin of a problem.
    within : (n,) whether a row does so in any problem.
    rows, problems : (m,) entries that may be on either side.
    entries : (3, m) their scores s, signs d and weights w.
    """

    certain: NDArray[np.float64]
    within: NDArray[np.bool_]
    rows: NDArray[np.intp]
    problems: NDArray[np.intp]
    entries: NDArray[np.float64]

    def sums_at(self, scale: NDArray[np.float64], offset: NDArray[np.float64]) -> Sums:
        """Return the sums (6, k) of `margin_sums`, exact within the reach of the scan."""
        total, signs, scores, signed_scores, squares = self.certain
        pull_scores = signed_scores - (scale * squares - offset * scores)
        pull = signs - (scale * scores - offset * total)
        errors = total - (scale * signed_scores - offset * signs)
        sums = np.vstack([errors - scale * pull_scores + offset * pull, pull_scores, pull, squares, scores, total])
        add_listed(self.problems, self.entries, scale, offset, sums)
        return sums

    def support(self, scale: NDArray[np.float64], offset: NDArray[np.float64]) -> NDArray[np.intp]:
        """Return the rows within the margin of some problem at a point within the reach."""
        scores, signs, _ = self.entries
        errors = 1.0 - signs * (scale[self.problems] * scores - offset[self.problems])
        within = self.within.copy()
        within[self.rows[errors > 0.0]] = True
        return np.flatnonzero(within)


def refine_by_scans(
    rows: ProximalRows,
    V: NDArray[np.float64],
    factors: NDArray[np.float64],
    squared_norms: NDArray[np.float64],
    offset: NDArray[np.float64],
    C: float,
) -> tuple[Refinement, NDArray[np.intp]]:
    """Minimise (12) along directions V (p, k); return also the rows within a margin.

    The other arguments are those of `refine`; rows of class c weigh ``rows.weights * factors[c]`` (k,).
    """
    found, middle = _of_sample(rows, V, factors, squared_norms, offset, C)
    reach = np.vstack([REACH_SCALE * np.abs(found.scale), np.full(len(offset), REACH_OFFSET)])
    while True:
        before = found
        scan = scan_rows(rows, V, factors, np.vstack([found.scale, found.offset, middle, reach]))
        found = refine(scan.sums_at, squared_norms, found.offset, C, scale=found.scale, tol=0.0)
        steeper = found.scale - before.scale
        # errors move with the scores at their middle, and by the change of the scale around it
        moved = np.abs(np.vstack([steeper, steeper * middle - (found.offset - before.offset)]))
        if (moved <= reach).all():
            return found, scan.support(found.scale, found.offset)
        reach = np.maximum(FURTHER * reach, 2.0 * moved)


def _of_sample(
    rows: ProximalRows,
    V: NDArray[np.float64],
    factors: NDArray[np.float64],
    squared_norms: NDArray[np.float64],
    offset: NDArray[np.float64],
    C: float,
) -> tuple[Refinement, NDArray[np.float64]]:
    """Minimise (12) over evenly spaced rows; return also the mean scores of those within the margin."""
    stride = max(1, len(rows.labels) // THINNED_ROWS)
    few = replace(
        rows,
        X=rows.X[::stride],
        labels=np.ascontiguousarray(rows.labels[::stride]),
        weights=stride * rows.weights[::stride],
    )
    sums_at = partial(margin_sums, few.products(V), few.labels, few.weights, factors)
    found = refine(sums_at, squared_norms, offset, C)
    *_, scores, total = sums_at(found.scale, found.offset)
    return found, scores / np.maximum(total, np.finfo(np.float64).tiny)


def scan_rows(
    rows: ProximalRows,
    V: NDArray[np.float64],
    factors: NDArray[np.float64],
    point: NDArray[np.float64],
) -> Scan:
    """Pass over the rows once; `point` (5, k) is that of `scan_margins`."""
    k, n = V.shape[1], len(rows.labels)
    # problems are padded to whole panels by some that no row is within the margin of
    spare = -k % PANEL
    signs = np.pad(one_vs_rest_signs(np.arange(k), k), ((0, 0), (0, spare)), constant_values=1.0)
    point = np.pad(point, ((0, 0), (0, spare)))
    point[1, k:] = -2.0
    tables = signs, np.pad(factors, ((0, 0), (0, spare))), point
    room = np.empty((SCAN_HEIGHT, k + spare)), np.empty((2, SCAN_HEIGHT, 4), dtype=np.int64)
    sums, within = np.zeros((5, k + spare)), np.empty(n, dtype=np.uint8)
    places, entries = np.empty((2, SCAN_ROWS * k), dtype=np.intp), np.empty((3, SCAN_ROWS * k))
    listed = []
    for part, B, panels in _scored_parts(replace(rows, chunk_rows=SCAN_ROWS), V):
        labels, weights = rows.labels[part], rows.weights[part]
        m = scan_margins(B, panels, labels, weights, *tables, *room, sums, within[part], places, entries)
        listed.append((places[0, :m] + part.start, places[1, :m].copy(), entries[:, :m].copy()))
    where, problems, values = zip(*listed, strict=True)
    return Scan(
        sums[:, :k], within.view(np.bool_), np.concatenate(where), np.concatenate(problems), np.hstack(values)
    )


def _scored_parts(
    rows: ProximalRows, V: NDArray[np.float64]
) -> Iterator[tuple[slice, NDArray[np.float64], NDArray[np.float64]]]:
    """Yield some dense rows at a time, and the panels (p, 12) of directions to multiply them with.

    Sparse rows are multiplied here; what is left for their scores is the identity.
    """
    for part, B in rows.features():
        if sparse.issparse(B):
            yield part, np.asarray(B @ V), _panels(np.eye(V.shape[1]))
        else:
            yield part, np.ascontiguousarray(B), _panels(V)


def _panels(V: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the columns of V in panels (-1, p, 12), with zero columns for what the last one lacks."""
    padded = np.pad(V, ((0, 0), (0, -V.shape[1] % PANEL)))
    return np.ascontiguousarray(padded.reshape(len(V), -1, PANEL).swapaxes(0, 1))
