"""Dual points whose coefficients have exactly zero column sums, from points that nearly do.

An unpenalised intercept asks for ``1'R = 0``; only then is a duality gap a proof. The nearest feasible point in
relative entropy keeps every bound: with multipliers t (k,),

    boxes       u_ij  = upper_ij sigmoid(logit(u_ij / upper_ij) + <directions[y_i, j], t>),
    simplices   a_pm  proportional to a_pm exp(t_m),

and t minimises a smooth convex function of k - 1 unknowns (Newton). Entries at a bound stay there, so near the
optimum, where the free entries have zero gradient, the repair costs the dual objective only a second-order term.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.sparse.csgraph import connected_components
from scipy.special import expit, logit

from polymargin.blocks import Blocks, OneBlock, total
from polymargin.problems.hinge import BoxLosses, HingeProblem, SimplexLosses
from polymargin.solvers.hinge._slots import row_sums

_BLENDS = (0.0, 1e-9, 1e-6, 1e-4, 1e-2, 0.1, 0.5)
_EXACT, _ROUNDING = 1e-13, 1e-11
"""Relative sums that are taken for zero: at once, and where Newton's method makes no more progress."""


def balanced(problem: HingeProblem, dual: NDArray[np.float64]) -> NDArray[np.float64] | None:
    """Return a point near `dual` with zero column sums, or None if Newton found none."""
    repaired = balanced_blocks(OneBlock(problem), OneBlock(dual))
    return None if repaired is None else repaired.block  # type: ignore[attr-defined]


def balanced_blocks(problems: Blocks, dual: Blocks) -> Blocks | None:
    """Return blocks of a point near `dual` whose columns of R sum to zero over all, or None if Newton found none.

    Where the free entries cannot make up for the imbalance, all are drawn off their bounds a little first.
    """
    usable = usable_pairs(*problems.reduce(_either, _present))
    dual = dual.map(_cleared, problems, usable, keep=True)
    for blend in _BLENDS:
        repaired = _on_face(problems, dual.map(_blended, problems, usable, blend, keep=True) if blend else dual)
        if repaired is not None:
            return repaired
    return None


def resting_dual(losses: BoxLosses | SimplexLosses) -> NDArray[np.float64]:
    """Return the dual point of no losses at all, for which R = 0 but for a tilt."""
    if isinstance(losses, BoxLosses):
        return np.zeros(losses.upper.shape)
    dual = np.zeros((len(losses.weight), losses.n_classes))
    dual[np.arange(len(dual)), losses.anchor] = losses.weight
    return dual


def forced_to_zero(losses: BoxLosses, usable: NDArray[np.bool_] | None = None) -> NDArray[np.bool_]:
    """Tell which entries are zero at every balanced point (because some costs are zero)."""
    if usable is None:
        usable = usable_pairs(_present_pairs(losses), losses.is_absolute)
    return ~usable[losses.labels] | (losses.upper == 0)


def usable_pairs(present: NDArray[np.bool_], is_absolute: bool) -> NDArray[np.bool_]:
    """Tell which pairs (own class, class) of those `present` can be other than zero at a balanced point.

    Weston-Watkins: u is a flow from class y to class j, and balance means circulation, so only arcs within a
    strongly connected component carry any. Lee-Lin-Wahba: all columns have the same sum, so one empty column
    empties all.
    """
    if present.all():
        return present
    if is_absolute:
        return np.full(present.shape, bool(present.any(axis=0).all()))
    component = connected_components(present, connection="strong")[1]
    return component[:, None] == component[None, :]


def _present_pairs(losses: BoxLosses) -> NDArray[np.bool_]:
    present = np.zeros((losses.n_classes, losses.n_classes), dtype=bool)
    np.logical_or.at(present, losses.labels, losses.upper > 0)
    return present


def _present(problem: HingeProblem) -> tuple[NDArray[np.bool_], bool]:
    """Return the pairs of classes with hinges, and whether these see single scores; simplices have all pairs."""
    if isinstance(problem.losses, BoxLosses):
        return _present_pairs(problem.losses), problem.losses.is_absolute
    return np.ones((problem.losses.n_classes, problem.losses.n_classes), dtype=bool), False


def _either(
    first: tuple[NDArray[np.bool_], bool], second: tuple[NDArray[np.bool_], bool]
) -> tuple[NDArray[np.bool_], bool]:
    return first[0] | second[0], first[1]


def _cleared(dual: NDArray[np.float64], problem: HingeProblem, usable: NDArray[np.bool_]) -> NDArray[np.float64]:
    losses = problem.losses
    return np.where(forced_to_zero(losses, usable), 0.0, dual) if isinstance(losses, BoxLosses) else dual


def _blended(
    dual: NDArray[np.float64], problem: HingeProblem, usable: NDArray[np.bool_], blend: float
) -> NDArray[np.float64]:
    """Draw the point off its bounds, towards the centre."""
    losses = problem.losses
    if isinstance(losses, BoxLosses):
        centre = np.where(forced_to_zero(losses, usable), 0.0, losses.upper / 2)
    else:
        centre = np.broadcast_to(losses.weight[:, None] / losses.n_classes, dual.shape)
    return dual + blend * (centre - dual)


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
    for _ in range(50):
        step = np.linalg.lstsq(jacobian, residual, rcond=1e-12)[0]
        length = min(1.0, 10.0 / max(np.abs(step).max(), 1e-300))
        while length > 1e-6:
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


def _column_sums(
    problem: HingeProblem, dual: NDArray[np.float64]
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    R = problem.coefficients(dual)
    ones = np.ones(len(R))
    return ones @ R, ones @ np.abs(R)


def _face(problem: HingeProblem, dual: NDArray[np.float64]) -> "_BoxFace | _SimplexFace":
    losses = problem.losses
    return _BoxFace.of(losses, dual) if isinstance(losses, BoxLosses) else _SimplexFace.of(losses, dual)


def _sums_at(
    face: "_BoxFace | _SimplexFace", t: NDArray[np.float64]
) -> tuple[NDArray[np.float64], NDArray[np.float64], int]:
    return *face.sums(t), face.n_free


def _moved(
    dual: NDArray[np.float64], face: "_BoxFace | _SimplexFace", t: NDArray[np.float64]
) -> NDArray[np.float64]:
    repaired = dual.copy()
    repaired[face.free] = face.entries(t)
    return repaired


@dataclass(frozen=True, slots=True)
class _BoxFace:
    """The entries strictly within their bounds, as a function of the multipliers t."""

    free: NDArray[np.bool_]
    group: NDArray[np.intp]
    directions: NDArray[np.float64]
    bounds: NDArray[np.float64]
    position: NDArray[np.float64]

    @classmethod
    def of(cls, losses: BoxLosses, dual: NDArray[np.float64]) -> "_BoxFace":
        upper, k = losses.upper, losses.n_classes
        free = (dual > 0) & (dual < upper)
        example, column = np.nonzero(free)
        group = losses.labels[example] * k + column
        bounds = upper[free]
        return cls(free, group, losses.directions.reshape(k * k, k), bounds, logit(dual[free] / bounds))

    @property
    def n_free(self) -> int:
        """Number of entries that can move."""
        return len(self.bounds)

    def _fractions(self, t: NDArray[np.float64]) -> NDArray[np.float64]:
        return expit(self.position + (self.directions @ t)[self.group])

    def entries(self, t: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return the free entries at t."""
        return self.bounds * self._fractions(t)

    def sums(self, t: NDArray[np.float64]) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Return the column sums of what the entries contribute to -R, and the Jacobian of these sums."""
        fraction, directions = self._fractions(t), self.directions
        entries = self.bounds * fraction
        slopes = np.bincount(self.group, entries * (1 - fraction), minlength=len(directions))
        sums = np.bincount(self.group, entries, minlength=len(directions)) @ directions
        return sums, directions.T @ (slopes[:, None] * directions)


@dataclass(frozen=True, slots=True)
class _SimplexFace:
    """The blocks with more than one positive entry, as a function of the multipliers t."""

    free: NDArray[np.intp]
    weight: NDArray[np.float64]
    start: NDArray[np.float64]

    @classmethod
    def of(cls, losses: SimplexLosses, dual: NDArray[np.float64]) -> "_SimplexFace":
        free = np.flatnonzero(row_sums((dual > 0).astype(np.float64)) > 1)
        return cls(free, losses.weight[free], dual[free])

    @property
    def n_free(self) -> int:
        """Number of blocks that can move."""
        return len(self.free)

    def entries(self, t: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return the free blocks at t."""
        block = self.start * np.exp(t - t.max())
        block *= (self.weight / row_sums(block))[:, None]
        return block

    def sums(self, t: NDArray[np.float64]) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Return the column sums of what the entries contribute to -R, and the Jacobian of these sums."""
        block = self.entries(t)
        sums = np.ones(len(block)) @ block
        return sums, np.diag(sums) - block.T @ (block / self.weight[:, None])
