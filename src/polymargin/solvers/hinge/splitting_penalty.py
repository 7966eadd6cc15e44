"""What a few steps of splitting on a part of the rows tell: its penalty, and how many rows it will not need."""

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from polymargin.gram import DenseGram, PartGram
from polymargin.problems.hinge import HingePoint, HingeProblem, boxes
from polymargin.solvers.contract import Progress
from polymargin.solvers.hinge.inverses import Room
from polymargin.solvers.hinge.splitting_iterate import SplittingIterate, unit_of
from polymargin.solvers.hinge.splitting_settings import DEFAULTS, ROUNDING, SplittingSettings


@dataclass(frozen=True, slots=True)
class Seen:
    """The best point of some rows, and its scores on all rows, without intercept.

    Attributes
    ----------
    rows, point : the rows with a part, and their point.
    scores, dual_scores : of its coefficients, and of its dual point.
    """

    rows: NDArray[np.intp]
    point: HingePoint
    scores: NDArray[np.float64]
    dual_scores: NDArray[np.float64]

    @classmethod
    def of(cls, rows: NDArray[np.intp], iterate: SplittingIterate) -> "Seen":
        """Return what the last certificate of `iterate`, steps on these rows, has seen."""
        return cls(rows, iterate.best()[0], iterate.scores_on_all, iterate.dual_scores_on_all)


@dataclass(frozen=True, slots=True)
class Pilot:
    """What steps on a part of the rows have led to.

    Attributes
    ----------
    rho : of the steps to come.
    own : the part of rho that is for what rows do not share with their neighbours.
    seen : what the part's point was certified by; None where there was no time for it.
    kept : part of the rows that steps were taken on that have variables above zero behind them.
    """

    rho: float
    own: float
    seen: Seen | None
    kept: float = 1.0


def pilot_of(
    problem: HingeProblem, progress: Progress, tuning: SplittingSettings = DEFAULTS, room: Room | None = None
) -> Pilot:
    """Return rho by what a few steps on a part of the rows find, and what rows have that their neighbours lack.

    Bounds ask for the ratio of margins to variables, the quadratic for the kernel's scale: something between them
    serves both. With a rho that is far off a few steps do not find that ratio, so that it is found again.
    Where every row is its own the matrix is nearly a multiple of the identity, and rho no less than a part of it;
    rows of fewer features than rows have nothing of their own, though their nearest neighbours do not show it.
    """
    gram, order = problem.gram, _order(problem)
    rows = np.sort(order[: _levels(problem, tuning)[0]])
    part, unit, rho, seen = part_of(problem, rows), unit_of(gram), tuning.pilot_penalty, None
    point = HingePoint(part.losses.resting_dual(), np.zeros(part.losses.n_classes))
    for _ in range(tuning.max_pilots):
        iterate = SplittingIterate(part, point, rho * unit, tuning, room=room)
        if not _stepped(iterate, progress, tuning):
            break
        seen = Seen.of(rows, iterate)
        point, before, rho = seen.point, rho, tuning.rho_of(iterate.ratio() / unit)
        if max(rho / before, before / rho) <= tuning.settled:
            break
    own = 0.0
    if isinstance(gram, DenseGram) and gram.rank >= problem.losses.n_examples:
        own = tuning.own_part * _own_part(gram, order[: tuning.own_rows], tuning.neighbours)
    return Pilot(unit * rho + own, own, seen)


def climbed(
    problem: HingeProblem,
    pilot: Pilot,
    progress: Progress,
    tuning: SplittingSettings = DEFAULTS,
    room: Room | None = None,
) -> Pilot:
    """Return a pilot of a third of the rows or nearly, by way of ever larger parts.

    Each model tells which rows of the next part will have a part in its solution, for most others never will. The
    more rows, the easier they are told apart from their neighbours: rho grows.
    """
    all_losses, order = boxes(problem.losses, "Splitting"), _order(problem)
    unit, growth, seen = unit_of(problem.gram), 1.0, pilot.seen
    for size in _levels(problem, tuning)[1:]:
        if seen is None:
            break
        level = np.sort(order[:size])
        losses, dual = all_losses.restricted(level), all_losses.resting_dual()[level]
        margins = losses.margins(seen.scores[level] + seen.point.intercept)
        dual[np.searchsorted(level, seen.rows)] = seen.point.dual
        t = dual + margins / pilot.rho
        taken = ((t > 0.0) & (losses.sizes > 0.0)).any(axis=1)
        start = HingePoint(dual[taken], seen.point.intercept)
        iterate = SplittingIterate(part_of(problem, level[taken]), start, pilot.rho, tuning, t[taken], room)
        if not _stepped(iterate, progress, tuning):
            break
        seen, margins[taken] = Seen.of(level[taken], iterate), iterate.margins
        size_of_dual = max(float(np.linalg.norm(seen.point.dual)), 1e-300)
        ratio = float(np.linalg.norm(margins[losses.sizes > 0])) / size_of_dual
        rho = unit * tuning.rho_of(ratio / unit) + pilot.own
        growth = max(rho / pilot.rho, 1.0)
        pilot = Pilot(growth * pilot.rho, pilot.own, seen, float(iterate.active().mean()))
    return replace(pilot, rho=growth * pilot.rho)


def _stepped(iterate: SplittingIterate, progress: Progress, tuning: SplittingSettings) -> bool:
    """Take a pilot's steps, and certify them; False if there was no time for it."""
    is_done = iterate.prepare(progress, roughly=True) and iterate.advance(tuning.pilot_steps, progress)
    if is_done:
        iterate.certified()
    return is_done


def part_of(problem: HingeProblem, rows: NDArray[np.intp]) -> HingeProblem:
    """Return the problem of some examples; of a matrix nothing is copied."""
    whole = problem.gram
    gram = PartGram(whole, rows) if isinstance(whole, DenseGram) else DenseGram(whole.block(rows, rows))
    return HingeProblem(gram, problem.losses.restricted(rows), problem.fit_intercept)


def _levels(problem: HingeProblem, tuning: SplittingSettings) -> list[int]:
    """Return the sizes of the parts: of a matrix, from few rows to a third of all, as larger ones cost more."""
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
