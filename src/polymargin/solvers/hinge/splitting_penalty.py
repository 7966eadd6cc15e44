"""What a few steps of splitting on a part of the rows tell: its penalty, and how many rows it will not need."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from polymargin.gram import DenseGram
from polymargin.problems.hinge import HingePoint, HingeProblem
from polymargin.solvers.contract import Progress
from polymargin.solvers.hinge.splitting_iterate import SplittingIterate, unit_of
from polymargin.solvers.hinge.splitting_settings import DEFAULTS, ROUNDING, SplittingSettings


@dataclass(frozen=True, slots=True)
class Pilot:
    """What the pilot found: rho, and the part of its rows that have variables above zero."""

    rho: float
    share: float


def pilot_of(problem: HingeProblem, progress: Progress, tuning: SplittingSettings = DEFAULTS) -> Pilot:
    """Return rho by what a few steps on a part of the rows find, and what rows have that their neighbours lack.

    Bounds ask for the ratio of margins to variables, the quadratic for the kernel's scale: something between them
    serves both. With a rho that is far off a few steps do not find that ratio, so that it is found again.
    Where every row is its own the matrix is nearly a multiple of the identity, and rho no less than a part of it;
    rows of fewer features than rows have nothing of their own, though their nearest neighbours do not show it.
    """
    gram, n = problem.gram, problem.losses.n_examples
    size = min(n, int(np.clip(tuning.pilot_share * n, *tuning.pilot_rows)))
    order = np.random.default_rng(0).permutation(n)
    rows = np.sort(order[:size])
    losses = problem.losses.restricted(rows)
    part = HingeProblem(DenseGram(gram.block(rows, rows)), losses, problem.fit_intercept)
    unit, rho, share = unit_of(gram), tuning.pilot_penalty, 1.0
    point = HingePoint(losses.resting_dual(), np.zeros(losses.n_classes))
    for _ in range(tuning.max_pilots):
        iterate = SplittingIterate(part, point, rho * unit, tuning)
        if not (iterate.prepare(progress) and iterate.advance(tuning.pilot_steps, progress)):
            break
        point, _ = iterate.certified()
        before, rho = rho, tuning.rho_of(iterate.ratio() / unit)
        share = float(iterate.active().mean())
        if max(rho / before, before / rho) <= tuning.settled:
            break
    if isinstance(gram, DenseGram) and gram.rank >= n:
        rho += tuning.own_part * _own_part(gram, order[: tuning.own_rows], tuning.neighbours) / unit
    return Pilot(unit * rho, share)


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
