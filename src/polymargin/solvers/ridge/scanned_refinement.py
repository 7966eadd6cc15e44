"""Newton refinement of more rows than one cares to keep the scores of: a sample, then about one pass.

Between the optimum of a sample and that of all rows few errors change their sign. One pass over the rows lists
those that may, within a reach of the sample's optimum, and sums up all others, which contribute one quadratic
function. The sum of both is convex and, within the reach, the objective itself: if its minimum is within the
reach, it is the minimum of the objective. If not, the next pass reaches further from there.
"""

from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from polymargin._native.margin_scan import add_listed, mark_listed, scan_margins
from polymargin.coding import one_vs_rest_signs
from polymargin.problems.proximal import ProximalRows
from polymargin.solvers.ridge.refinement import (
    Refinement,
    ScoredRows,
    Sums,
    refine,
    refine_rows,
    rows_within_margins,
)
from polymargin.solvers.ridge.settings import DEFAULTS, RidgeSettings
from polymargin.threads import over_ranges

PANEL = 12
"""Width of the panels of `_native.margin_scan`."""


class Lists(NamedTuple):
    """Lists of the rows, one list per problem, whose errors may have either sign.

    Attributes
    ----------
    places : (width, size) the rows.
    entries : (width, 3, size) their scores s, signs d and weights w.
    listed : (width,) how many there are.
    """

    places: NDArray[np.intp]
    entries: NDArray[np.float64]
    listed: NDArray[np.intp]

    @classmethod
    def empty(cls, width: int, size: int) -> "Lists":
        """Return lists with room for `size` rows each."""
        places, entries = np.empty((width, size), dtype=np.intp), np.empty((width, 3, size))
        return cls(places, entries, np.zeros(width, dtype=np.intp))


@dataclass(frozen=True, slots=True)
class Scan:
    """What a pass over the rows has found.

    Attributes
    ----------
    certain : (5, k) sums of ``w, w d, w s, w d s, w s^2`` over rows that stay within the margin of a problem.
    within : (n,) whether a row does so in any problem.
    lists : all rows that may be on either side.
    """

    certain: NDArray[np.float64]
    within: NDArray[np.bool_]
    lists: list[Lists]

    def sums_at(self, scale: NDArray[np.float64], offset: NDArray[np.float64]) -> Sums:
        """Return the sums (6, k) of `margin_sums`, exact within the reach of the scan."""
        total, signs, scores, signed_scores, squares = self.certain
        pull_scores = signed_scores - (scale * squares - offset * scores)
        pull = signs - (scale * scores - offset * total)
        errors = total - (scale * signed_scores - offset * signs)
        sums = np.vstack([errors - scale * pull_scores + offset * pull, pull_scores, pull, squares, scores, total])
        for _, entries, listed in self.lists:
            add_listed(entries, listed, scale, offset, sums)
        return sums

    def support(self, scale: NDArray[np.float64], offset: NDArray[np.float64]) -> NDArray[np.intp]:
        """Return the rows within the margin of some problem at a point within the reach."""
        within = self.within.copy()
        for places, entries, listed in self.lists:
            mark_listed(places, entries, listed, scale, offset, within.view(np.uint8))
        return np.flatnonzero(within)


def refine_in_memory(
    rows: ProximalRows,
    V: NDArray[np.float64],
    factors: NDArray[np.float64],
    squared_norms: NDArray[np.float64],
    offset: NDArray[np.float64],
    C: float,
    *,
    tuning: RidgeSettings = DEFAULTS,
) -> tuple[Refinement, NDArray[np.intp]]:
    """Minimise (12) along directions V (p, k), by scans or over all scores; return also the rows within a margin.

    The other arguments are those of `refine`; rows of class c weigh ``rows.weights * factors[c]`` (k,).
    """
    # where every pass would have to compute the features, the scores are worth their memory
    if len(rows.labels) >= tuning.scanned_rows and rows.transform is None:
        return refine_by_scans(rows, V, factors, squared_norms, offset, C, tuning=tuning)
    scored = scored_rows(rows, V)
    refinement = refine_rows(*scored, factors, squared_norms, offset, C, tuning=tuning)
    return refinement, rows_within_margins(scored.scores, scored.labels, refinement.scale, refinement.offset)


def scored_rows(rows: ProximalRows, V: NDArray[np.float64]) -> ScoredRows:
    """Return the rows by their scores along the directions V (p, k)."""
    return ScoredRows(rows.products(V), rows.labels, rows.weights)


def refine_by_scans(
    rows: ProximalRows,
    V: NDArray[np.float64],
    factors: NDArray[np.float64],
    squared_norms: NDArray[np.float64],
    offset: NDArray[np.float64],
    C: float,
    *,
    tuning: RidgeSettings = DEFAULTS,
) -> tuple[Refinement, NDArray[np.intp]]:
    """Do what `refine_in_memory` does, without keeping the scores."""
    found, middle, reach = _of_sample(rows, V, factors, squared_norms, offset, C, tuning)
    while True:
        before = found
        point = np.vstack([found.scale, found.offset, middle, reach])
        scan = scan_rows(rows, V, factors, point, tuning=tuning)
        found = refine(scan.sums_at, squared_norms, found.offset, C, scale=found.scale, tol=0.0, tuning=tuning)
        steeper = found.scale - before.scale
        # errors move with the scores at their middle, and by the change of the scale around it
        moved = np.abs(np.vstack([steeper, steeper * middle - (found.offset - before.offset)]))
        if (moved <= reach).all():
            return found, scan.support(found.scale, found.offset)
        reach = np.maximum(tuning.further * reach, 2.0 * moved)


def _of_sample(
    rows: ProximalRows,
    V: NDArray[np.float64],
    factors: NDArray[np.float64],
    squared_norms: NDArray[np.float64],
    offset: NDArray[np.float64],
    C: float,
    tuning: RidgeSettings,
) -> tuple[Refinement, NDArray[np.float64], NDArray[np.float64]]:
    """Minimise (12) over evenly spaced rows.

    Returns also the mean scores (k,) of those within the margin, and how far (2, k) the optimum of all rows may be
    from this one: in the scale, and in the level of the errors at the mean scores. Both are estimated as for a
    least-squares line through the rows within the margin, in which the errors of slope and level are independent.
    """
    few = rows.thinned(max(1, len(rows.labels) // tuning.thinned_rows))
    anywhere = np.vstack([np.zeros((4, len(offset))), np.full(len(offset), np.inf)])
    scan = scan_rows(few, V, factors, anywhere, tuning=tuning)
    found = refine(scan.sums_at, squared_norms, offset, C, tuning=tuning)
    squares, _, _, scores_squared, scores, total = scan.sums_at(found.scale, found.offset)
    tiny = np.finfo(np.float64).tiny
    middle = scores / np.maximum(total, tiny)
    members, members_squared = (np.bincount(few.labels, few.weights**power, len(factors)) for power in (1, 2))
    weight_of_a_row = (members_squared @ factors**2) / np.maximum(members @ factors, tiny)
    variance = weight_of_a_row * squares / np.maximum(total, tiny)
    ridge = np.where(squared_norms > 0, squared_norms, 1.0)
    spread = np.maximum(scores_squared - middle * scores, 0.0)
    reach = tuning.reach * np.sqrt(variance / np.vstack([spread + ridge / C, total + 1.0 / C]))
    return found, middle, np.minimum(reach, np.vstack([np.abs(found.scale), np.ones(len(offset))]))


def scan_rows(
    rows: ProximalRows,
    V: NDArray[np.float64],
    factors: NDArray[np.float64],
    point: NDArray[np.float64],
    *,
    tuning: RidgeSettings = DEFAULTS,
) -> Scan:
    """Pass over the rows once; `point` (5, k) is that of `scan_margins`."""
    k, n = V.shape[1], len(rows.labels)
    # problems are padded to whole panels by some that no row is within the margin of
    spare = -k % PANEL
    signs = np.pad(one_vs_rest_signs(np.arange(k), k), ((0, 0), (0, spare)), constant_values=1.0)
    point = np.pad(point, ((0, 0), (0, spare)))
    point[1, k:] = -2.0
    tables = signs, np.pad(factors, ((0, 0), (0, spare))), point
    panels = _panels(np.eye(k) if sparse.issparse(rows.X) else V)
    within = np.empty(n, dtype=np.uint8)

    def scan_range(part: slice) -> tuple[NDArray[np.float64], list[Lists]]:
        return _scan_range(rows.part(part), part.start, V, panels, tables, within[part], tuning)

    sums, lists = zip(*over_ranges(scan_range, n), strict=True)
    return Scan(sum(sums)[:, :k], within.view(np.bool_), [one for some in lists for one in some])


def _scan_range(
    rows: ProximalRows,
    start: int,
    V: NDArray[np.float64],
    panels: NDArray[np.float64],
    tables: tuple[NDArray[np.float64], ...],
    within: NDArray[np.uint8],
    tuning: RidgeSettings,
) -> tuple[NDArray[np.float64], list[Lists]]:
    """Return the sums (5, width) and lists of rows, numbered from `start`; fill in which are `within` a margin."""
    width = tables[0].shape[1]
    height = min(len(within), max(tuning.scan_height, tuning.scan_bytes // (V.itemsize * max(1, len(V)))))
    room = np.empty((tuning.scan_height, width)), np.empty((2, tuning.scan_height, 4), dtype=np.int64)
    sums, lists = np.zeros((5, width)), [Lists.empty(width, 2 * height)]
    for chunk, B in replace(rows, chunk_rows=height).features():
        # the scores of sparse rows are ready; it is left to multiply them by the identity
        dense = np.asarray(B @ V) if sparse.issparse(B) else np.ascontiguousarray(B)
        if lists[-1].listed.max() > height:
            lists.append(Lists.empty(width, 2 * height))
        own = rows.labels[chunk], rows.weights[chunk]
        scan_margins(dense, panels, *own, *tables, *room, sums, within[chunk], *lists[-1], start + chunk.start)
    return sums, lists


def _panels(V: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the columns of V in panels (-1, p, 12), with zero columns for what the last one lacks."""
    padded = np.pad(V, ((0, 0), (0, -V.shape[1] % PANEL)))
    return np.ascontiguousarray(padded.reshape(len(V), -1, PANEL).swapaxes(0, 1))
