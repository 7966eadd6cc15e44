"""Accelerated proximal gradient with restarts, for a smooth loss and the trace norm."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from polymargin.problems.smoothed_trace import SmoothedTraceProblem
from polymargin.solvers.contract import Accepted, Observer, Progress, Settings, Solution, Status, accepts_kinds
from polymargin.solvers.shared.alternation import has_stalled
from polymargin.solvers.shared.settings import DEFAULTS, SharedSettings
from polymargin.threads import heard


class ProximalGradient:
    """FISTA (Beck & Teboulle 2009) with gradient restarts (O'Donoghue & Candes 2015)."""

    name = "proximal_gradient"

    def __init__(self, tuning: SharedSettings = DEFAULTS):
        self.tuning = tuning

    def accepts(self, problem: Any) -> Accepted:
        """Return True if the solver can take `problem`, else the reason why not."""
        return accepts_kinds(problem, SmoothedTraceProblem)

    def solve(
        self,
        problem: SmoothedTraceProblem,
        settings: Settings,
        *,
        start: NDArray[np.float64] | None = None,
        observer: Observer | None = None,
    ) -> Solution[NDArray[np.float64]]:
        """Solve from `start` (zero by default)."""
        scaled = problem.A * np.sqrt(problem.weights)[:, None]
        largest = heard(np.linalg.norm, scaled.T @ scaled, 2, is_over=lambda: False)
        step = 1.0 / (problem.C * float(largest))  # h'' is at most 1
        Z = np.zeros((problem.A.shape[1], problem.signs.shape[1])) if start is None else start.copy()
        ahead, momentum = Z, 1.0
        with Progress(settings, observer, method=self.name) as progress:
            for iteration in progress:
                margins = problem.signs * (problem.A @ ahead)
                moved = shrink(ahead + step * problem.pull(problem.slopes(margins)), step * problem.radius)
                if np.vdot(ahead - moved, moved - Z) > 0:
                    momentum = 1.0
                following = (1.0 + np.sqrt(1.0 + 4.0 * momentum**2)) / 2
                ahead = moved + (momentum - 1.0) / following * (moved - Z)
                Z, momentum = moved, following
                if iteration % self.tuning.check_every == 0:
                    certificate = problem.certify(Z)
                    progress.record(certificate.primal, certificate.dual)
                    if certificate.gap <= settings.tol:
                        break
                    if has_stalled(progress, self.tuning.stalled_rounds) or is_crawling(progress, self.tuning):
                        progress.status = Status.STALLED
                        break
            return progress.finish(Z, problem.certify(Z))


def is_crawling(progress: Progress, tuning: SharedSettings) -> bool:
    """Tell whether the second half of many iterations has not even halved the gap, which it should quarter."""
    gaps = [record.gap for record in progress.history[len(progress.history) // 2 :]]
    return progress.iteration >= tuning.patient_iterations and min(gaps) > 0.5 * gaps[0]


def shrink(Z: NDArray[np.float64], threshold: float) -> NDArray[np.float64]:
    """Return Z with its singular values lowered by `threshold`, those below it dropped."""
    U, scales, Vt = np.linalg.svd(Z, full_matrices=False)
    return (U * np.maximum(scales - threshold, 0.0)) @ Vt
