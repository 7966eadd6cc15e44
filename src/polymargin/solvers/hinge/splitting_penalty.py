"""What a few steps of splitting on a part of the rows tell: its penalty, and how many rows it will not need."""

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from polymargin.gram import DenseGram, PartGram, as_dense
from polymargin.problems.hinge import HingePoint, HingeProblem, boxes
from polymargin.solvers.contract import Progress
from polymargin.solvers.hinge.splitting_iterate import SplittingIterate, unit_of
from polymargin.solvers.hinge.splitting_settings import DEFAULTS, ROUNDING, SplittingSettings


@dataclass(frozen=True, slots=True)
class Pilot:
    """What steps on a part of the rows have led to: rho, and a point of the rows that they were taken on.

    Attributes
    ----------
    rho : of the steps to come.
    own : the part of rho that is for what rows do not share with their neighbours.
    rows, point : the rows with a part, and their point.
    """

    rho: float
    own: float
    rows: NDArray[np.intp]
    point: HingePoint


def pilot_of(problem: HingeProblem, progress: Progress, tuning: SplittingSettings = DEFAULTS) -> Pilot:
    """Return rho by what a few steps on a part of the rows find, and what rows have that their neighbours lack.

    Bounds ask for the ratio of margins to variables, the quadratic for the kernel's scale: something between them
    serves both. With a rho that is far off a few steps do not find that ratio, so that it is found again.
    Where every row is its own the matrix is nearly a multiple of the identity, and rho no less than a part of it;
    rows of fewer features than rows have nothing of their own, though their nearest neighbours do not show it.
    """
    gram, order = problem.gram, _order(problem)
    rows = np.sort(order[: _levels(problem, tuning)[0]])
    part, unit, rho = part_of(problem, rows), unit_of(gram), tuning.pilot_penalty
    point = HingePoint(part.losses.resting_dual(), np.zeros(part.losses.n_classes))
    for _ in range(tuning.max_pilots):
        iterate = SplittingIterate(part, point, rho * unit, tuning)
        if not (iterate.prepare(progress) and iterate.advance(tuning.pilot_steps, progress)):
            break
        point, _ = iterate.certified()
        before, rho = rho, tuning.rho_of(iterate.ratio() / unit)
        if max(rho / before, before / rho) <= tuning.settled:
            break
    own = 0.0
    if isinstance(gram, DenseGram) and gram.rank >= problem.losses.n_examples:
        own = tuning.own_part * _own_part(gram, order[: tuning.own_rows], tuning.neighbours)
    return Pilot(unit * rho + own, own, rows, point)


def climbed(
    problem: HingeProblem, pilot: Pilot, progress: Progress, tuning: SplittingSettings = DEFAULTS
) -> Pilot:
    """Return a pilot of half of the rows or nearly, by way of ever larger parts.

    Each model tells which rows of the next part will have a part in its solution, for most others never will. The
    more rows, the easier they are told apart from their neighbours: rho grows.
    """
    gram, order = as_dense(problem.gram, "Splitting"), _order(problem)
    unit, growth = unit_of(gram), 1.0
    for size in _levels(problem, tuning)[1:]:
        level = np.sort(order[:size])
        losses, places = boxes(problem.losses, "Splitting").restricted(level), np.searchsorted(level, pilot.rows)
        R = np.zeros_like(problem.losses.resting_dual())
        R[pilot.rows] = pilot.point.primal
        scores = gram.rows_of_product(level, R) + pilot.point.intercept
        margins, dual = losses.margins(scores), losses.resting_dual()
        dual[places] = pilot.point.dual
        t = dual + margins / pilot.rho
        taken = ((t > 0.0) & (losses.sizes > 0.0)).any(axis=1)
        start = HingePoint(dual[taken], pilot.point.intercept)
        iterate = SplittingIterate(part_of(problem, level[taken]), start, pilot.rho, tuning, t[taken])
        if not (iterate.prepare(progress) and iterate.advance(tuning.pilot_steps, progress)):
            break
        point, _ = iterate.certified()
        margins[taken] = iterate.margins
        ratio = float(np.linalg.norm(margins[losses.sizes > 0])) / max(float(np.linalg.norm(point.dual)), 1e-300)
        rho = unit * tuning.rho_of(ratio / unit) + pilot.own
        growth = max(rho / pilot.rho, 1.0)
        pilot = Pilot(growth * pilot.rho, pilot.own, level[taken], point)
    return replace(pilot, rho=growth * pilot.rho)


def part_of(problem: HingeProblem, rows: NDArray[np.intp]) -> HingeProblem:
    """Return the problem of some examples; of a matrix nothing is copied."""
    whole = problem.gram
    gram = PartGram(whole, rows) if isinstance(whole, DenseGram) else DenseGram(whole.block(rows, rows))
    return HingeProblem(gram, problem.losses.restricted(rows), problem.fit_intercept)


def _levels(problem: HingeProblem, tuning: SplittingSettings) -> list[int]:
    """Return the sizes of the parts: of a matrix, from few rows to half of all, as larger ones cost more."""
    n = problem.losses.n_examples
    least, most = tuning.pilot_rows
    if not isinstance(problem.gram, DenseGram):
        return [min(n, int(np.clip(tuning.pilot_share * n, least, most)))]
    levels = [n / tuning.growth]
    while levels[0] > tuning.first_level:
        levels.insert(0, levels[0] / tuning.growth)
    return [min(n, max(least, int(size))) for size in levels]


def _order(problem: HingeProblem) -> NDArray[np.intp]:
    return np.random.default_rng(0).permutation(problem.losses.n_examples)


def _own_part(gram: DenseGram, rows: NDArray[np.intp], size: int) -> float:
    """Return how much of the kernel, in the median, rows do not share with their nearest neighbours."""
    K, place = gram.block(rows), np.arange(len(rows))
    diagonal = K[place, rows]
    K[place, rows] = -np.inf
    size = min(size, K.shape[1] - 1)
    near = np.argpartition(-K, size - 1, axis=1)[:, :size] if size else np.empty((len(rows), 0), dtype=np.intp)
    to_near = np.take_along_axis(K, near, axis=1)
    among = gram.matrix[near[:, :, None], near[:, None, :]] + ROUNDING * max(diagonal.max(), 1e-300) * np.eye(size)
    shared = np.einsum("ra,ra->r", to_near, np.linalg.solve(among, to_near[:, :, None])[:, :, 0])
    return float(np.clip(np.median(diagonal - shared), 0.0, diagonal.mean()))
