"""Feasible dual points from points that nearly are: within their bounds, class sums right to rounding.

An unpenalised intercept asks for ``1'R = 0``; only then is a duality gap a proof. The nearest feasible point in
relative entropy keeps every bound: with multipliers t (k,),

    boxes       u_ij  = upper_ij sigmoid(logit(u_ij / upper_ij) + <directions[y_i, j], t>),
    simplices   a_pm  proportional to a_pm exp(t_m),

and t minimises a smooth convex function of k - 1 unknowns (Newton). Entries at a bound stay there, so near the
optimum, where the free entries have zero gradient, the repair costs the dual objective only a second-order term.
"""

import numpy as np
from numpy.typing import NDArray
from scipy.linalg.lapack import dpotrf, dpotrs

from polymargin.blocks import Blocks, OneBlock, total
from polymargin.problems.hinge import BoxLosses, HingePoint, HingeProblem, boxes, polyhedral
from polymargin.problems.hinge.polyhedral import MovableFace, PolyhedralDomain, polyhedral_domain
from polymargin.solvers.hinge.settings import FEASIBILITY

_EXACT, _ROUNDING = 1e-13, 1e-11
"""Relative sums that are taken for zero: at once, and where Newton's method makes no more progress."""


def feasible(problem: HingeProblem, dual: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return a point near `dual` within its bounds and with the class sums right; the resting one if none is."""
    losses = polyhedral(problem.losses, "A feasible point")
    if not problem.fit_intercept:
        return losses.within_bounds(dual)
    if losses.sees_single_scores:
        return _filled(boxes(losses, "A feasible point"), dual)
    repaired = balanced(problem, losses.within_bounds(dual))
    return losses.resting_dual() if repaired is None else repaired


def on_face(problem: HingeProblem, point: HingePoint) -> HingePoint:
    """Return the point of the face next to a point inside: variables that are clearly at a bound are put there."""
    losses = polyhedral(problem.losses, "The face next to a point")
    F = problem.gram.matmul(problem.coefficients(point.dual)) + point.intercept
    dual = losses.identified(point.dual, F)
    if problem.fit_intercept:  # what is missing is spread over all that is free, not filled into a few
        spread = balanced(problem, dual)
        dual = dual if spread is None else spread
    return HingePoint(feasible(problem, dual), point.intercept)


def _filled(losses: BoxLosses, dual: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the point within its box and with equal class sums; as few variables as possible are changed."""
    upper = losses.upper
    dual = np.clip(dual, 0.0, upper)
    sums = dual.sum(axis=0)
    common = min(float(sums.mean()), float(upper.sum(axis=0).min()))
    for c, missing in enumerate(common - sums):
        room = upper[:, c] - dual[:, c] if missing > 0 else dual[:, c]
        free = (dual[:, c] > 0) & (dual[:, c] < upper[:, c])
        order = np.lexsort((-room, ~free))
        filled = np.minimum(np.cumsum(room[order]), abs(missing))
        dual[order, c] += np.sign(missing) * np.diff(filled, prepend=0.0)
    return dual


def balanced(problem: HingeProblem, dual: NDArray[np.float64]) -> NDArray[np.float64] | None:
    """Return a point near `dual` with zero column sums, or None if Newton found none."""
    repaired = balanced_blocks(OneBlock(problem), OneBlock(dual))
    return None if repaired is None else repaired.block  # type: ignore[attr-defined]


def balanced_blocks(problems: Blocks, dual: Blocks) -> Blocks | None:
    """Return blocks of a point near `dual` whose columns of R sum to zero over all, or None if Newton found none.

    Where the free entries cannot make up for the imbalance, all are drawn off their bounds a little first.
    """
    present = problems.reduce(np.logical_or, _present)
    dual = dual.map(_cleared, problems, present, keep=True)
    for blend in FEASIBILITY.blends:
        repaired = _on_face(problems, dual.map(_blended, problems, present, blend, keep=True) if blend else dual)
        if repaired is not None:
            return repaired
    return None


def _present(problem: HingeProblem) -> NDArray[np.bool_]:
    return _domain(problem).present_pairs()


def _cleared(dual: NDArray[np.float64], problem: HingeProblem, present: NDArray[np.bool_]) -> NDArray[np.float64]:
    losses = _domain(problem)
    return losses.cleared(dual, losses.usable_pairs(present))


def _blended(
    dual: NDArray[np.float64], problem: HingeProblem, present: NDArray[np.bool_], blend: float
) -> NDArray[np.float64]:
    """Draw the point off its bounds, towards the centre."""
    losses = _domain(problem)
    return dual + blend * (losses.centre(losses.usable_pairs(present)) - dual)


def _domain(problem: HingeProblem) -> PolyhedralDomain:
    return polyhedral_domain(problem.losses, "Balancing by entropy")


def _on_face(problems: Blocks, dual: Blocks) -> Blocks | None:
    """Balance `dual` by its free entries alone, if they can."""
    sums, sizes = total(problems, _column_sums, dual)
    scale = max(float(sizes.max()), np.finfo(np.float64).tiny)
    if np.abs(sums).max() <= _EXACT * scale:
        return dual
    faces = problems.map(_face, dual, keep=True)
    t = np.zeros(len(sums))
    start, jacobian, n_free = total(faces, _sums_at, t)
    if not n_free:
        return None
    residual = sums
    for _ in range(FEASIBILITY.newton_steps):
        step = _newton_step(jacobian, residual)
        length = min(1.0, FEASIBILITY.longest / max(np.abs(step).max(), 1e-300))
        while length > FEASIBILITY.shortest:
            now, jacobian, _ = total(faces, _sums_at, t + length * step)
            following = sums + start - now
            if np.abs(following).max() < np.abs(residual).max():
                break
            if np.abs(residual).max() <= _ROUNDING * scale:
                return dual.map(_moved, faces, t, keep=True)
            length /= 2
        else:
            return None
        t, residual = t + length * step, following
        if np.abs(residual).max() <= _EXACT * scale:
            return dual.map(_moved, faces, t, keep=True)
    return None


def _newton_step(jacobian: NDArray[np.float64], residual: NDArray[np.float64]) -> NDArray[np.float64]:
    """Solve Newton's system: by a Cholesky factor where classes are tied to each other, else the shortest one.

    The eigenvectors of that are most of what a certificate of many classes takes.
    """
    k = len(residual)
    # neither sums nor Jacobian know the constants, which would make it singular
    factor, failed = dpotrf(jacobian + jacobian.trace() / k**2, lower=1)
    diagonal = factor.diagonal()
    if failed or diagonal.min() <= np.sqrt(FEASIBILITY.rank) * diagonal.max():
        values, vectors = np.linalg.eigh(jacobian)
        kept = values > FEASIBILITY.rank * values[-1]
        return np.asarray(vectors[:, kept] @ (residual @ vectors[:, kept] / values[kept]))
    return np.asarray(dpotrs(factor, residual, lower=1)[0])


def _column_sums(
    problem: HingeProblem, dual: NDArray[np.float64]
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    R = problem.coefficients(dual)
    ones = np.ones(len(R))
    return ones @ R, ones @ np.abs(R)


def _face(problem: HingeProblem, dual: NDArray[np.float64]) -> MovableFace:
    return _domain(problem).movable_face(dual)


def _sums_at(face: MovableFace, t: NDArray[np.float64]) -> tuple[NDArray[np.float64], NDArray[np.float64], int]:
    return *face.sums(t), face.n_free


def _moved(dual: NDArray[np.float64], face: MovableFace, t: NDArray[np.float64]) -> NDArray[np.float64]:
    repaired = dual.copy()
    repaired[face.free] = face.entries(t)
    return repaired
