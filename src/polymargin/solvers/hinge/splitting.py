"""Splitting for the machine of Lee, Lin & Wahba with a kernel, where working sets do not get far.

    min 1/2 tr(B'KB) - offset sum u,   B = u P,  P = I - 11'/k,   0 <= u <= upper,   1'B = 0.

The over-relaxed iteration of Douglas & Rachford (ADMM) on a state t takes the box and the rest in turns:

    z = clip(t, 0, upper),   v = 2z - t,   x = argmin {the rest + rho/2 |x - v|^2},   t += relaxation (x - z).

x costs one product with one matrix, the same for all classes: ``xP = rho (K + rho I)^-1 (vP + 1 mu')``, mu such
that the sums vanish, and the mean of a row of x is that of v plus offset/rho. At the fixed point the margins are
``rho (t - z)``. The matrix is in single precision, and only changes of v are multiplied by it: as they vanish, so
do the errors. What these have come to is put right in double precision at every certificate.
On a matrix the changes of late tell every few steps where the state is to go (`acceleration`).
Of features that are fewer than half the rows the matrix is not formed: ``(K + rho I)^-1`` is that of a matrix of
their number, and rho may change on the way.
Both halves are certified for what they are worth: z, its class sums made equal, as a dual point, and -xP as
coefficients of scores, of which no bounds are asked. At a large C the scores of z itself are much worse: an error
of a free variable costs C times what it does to margins.
After S. Boyd et al., Distributed optimization and statistical learning via the alternating direction method of
multipliers, 2011, section 5.2.
"""

from typing import Any

import numpy as np

from polymargin.gram import FeatureGram
from polymargin.problems.hinge import HingePoint, HingeProblem
from polymargin.solvers.contract import Accepted, Observer, Progress, Settings, Solution, Status
from polymargin.solvers.effort import RATES
from polymargin.solvers.hinge.acceptance import SINGLE_SCORES, accepts_single_scores, accepts_tall_features
from polymargin.solvers.hinge.splitting_parts import Parts
from polymargin.solvers.hinge.splitting_settings import (
    DEFAULTS,
    SplitSize,
    SplittingSettings,
    operations_to_split,
    size_of,
)

__all__ = ["DEFAULTS", "SplitSize", "Splitting", "SplittingSettings", "operations_to_split", "size_of"]


class Splitting:
    """Over-relaxed steps to a fixed point, for box losses that see single scores.

    They go by a matrix held in memory, or by features that are fewer than half the rows.
    """

    name = "splitting"

    def __init__(self, tuning: SplittingSettings = DEFAULTS):
        self.tuning = tuning

    def accepts(self, problem: Any) -> Accepted:
        """Return True if the solver can take `problem`, else the reason why not."""
        if isinstance(getattr(problem, "gram", None), FeatureGram):
            return self._accepts_features(problem)
        return accepts_single_scores(problem)

    def _accepts_features(self, problem: HingeProblem) -> Accepted:
        if not problem.losses.sees_single_scores:
            return SINGLE_SCORES
        return accepts_tall_features(problem, self.tuning.least_rows_per_feature, self.tuning.most_entries)

    def solve(
        self,
        problem: HingeProblem,
        settings: Settings,
        *,
        start: HingePoint | None = None,
        observer: Observer | None = None,
    ) -> Solution[HingePoint]:
        """Solve `problem` from the neighbourhood of `start`; stop where the rest would take too many steps."""
        tuning, resting = self.tuning, problem.losses.resting_dual()
        with Progress(settings, observer, method=self.name) as progress:
            begin = start or HingePoint(resting, np.zeros(problem.losses.n_classes))
            parts, steps = Parts(problem, begin, progress, tuning), tuning.most_steps
            for _ in progress:
                if not (parts.is_ready and parts.iterate.advance(steps, progress)):
                    break
                seen = parts.look()
                progress.record(seen.primal, seen.dual)
                parts.leap()
                if parts.best.within(settings.tol):
                    break
                iterate, to_go = parts.iterate, parts.to_go
                work = RATES.work(tuning.operations(iterate.size, to_go))
                is_too_much = settings.work is not None and progress.work + work > settings.work
                is_judged = iterate.steps - parts.looks.began >= tuning.judged_after
                if is_judged and (is_too_much or to_go > tuning.max_steps):
                    progress.status = Status.STALLED
                    break
                if not parts.go_on():
                    break
                steps = int(np.clip(tuning.look_ahead * parts.to_go, tuning.fewest_steps, tuning.most_steps))
            parts.conclude()
            return progress.finish(parts.point, parts.best)
