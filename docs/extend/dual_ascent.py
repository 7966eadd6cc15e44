"""A solver of one's own: accelerated proximal ascent on the dual, for any loss, without an intercept."""

import numpy as np

from polymargin.extend import HingePoint, HingeProblem, Progress, accepts_kinds


class DualAscent:
    """Steps along the margins, brought back into the domain by the loss, with momentum where it helps."""

    name = "dual_ascent"

    def accepts(self, problem):
        if (is_hinge := accepts_kinds(problem, HingeProblem)) is not True:
            return is_hinge
        return "it fits no intercept." if problem.fit_intercept else True

    def solve(self, problem, settings, *, start=None, observer=None):
        losses = problem.losses
        dual = losses.resting_dual() if start is None else start.dual
        ahead, momentum, best = dual, 1.0, -np.inf
        width = steepest_width(problem)
        with Progress(settings, observer, method=self.name) as progress:
            certificate = problem.certify(point_at(problem, dual))
            for _ in progress:
                progress.record(certificate.primal, certificate.dual)
                if certificate.within(settings.tol):
                    break
                scores = problem.gram.matmul(problem.coefficients(ahead))
                following = losses.proximal(losses.margins(scores), ahead, width)
                larger = 0.5 * (1.0 + np.sqrt(1.0 + 4.0 * momentum**2))
                certificate = problem.certify(point_at(problem, following))
                if certificate.dual < best:
                    ahead, momentum = dual, 1.0
                    continue
                ahead = following + (momentum - 1.0) / larger * (following - dual)
                dual, momentum, best = following, larger, certificate.dual
            point = point_at(problem, dual)
            return progress.finish(point, problem.certify(point))


def point_at(problem, dual):
    """Return a dual point with intercepts of zero."""
    return HingePoint(dual, np.zeros(problem.losses.n_classes))


def steepest_width(problem):
    """Return a width at which no step overshoots: the largest curvature of the dual in units of the sizes."""
    losses, n, k = problem.losses, problem.losses.n_examples, problem.losses.n_classes
    at_zero = losses.margins(np.zeros((n, k)))
    lift = np.stack([losses.margins(np.tile(unit, (n, 1))) - at_zero for unit in np.eye(k)], axis=2)
    largest = np.linalg.eigvalsh(problem.gram.block(np.arange(n)))[-1]
    return float(losses.sizes.max()) * largest * np.linalg.norm(lift, 2, axis=(1, 2)).max() ** 2
