"""Shared structure: final classifiers Z = W M that mix a few base classifiers W by a relation matrix M.

Data enter through their moments alone: A is the rows with a last column of -1, targets are signs, and every
final classifier ("task") is a least-squares fit on the rows of its classes.
"""

from dataclasses import dataclass
from functools import cached_property
from typing import Literal, assert_never

import numpy as np
from numpy.typing import NDArray

from polymargin.coding import class_pairs, one_vs_rest_signs
from polymargin.problems.certificate import Certificate
from polymargin.relations import RelationSet

Formulation = Literal["original", "fast", "sum_to_zero"]

PROVED = 1e-6
"""Relative gap up to which the trace-norm bound counts as a proof of global optimality."""


@dataclass(frozen=True)
class TaskMoments:
    """What least squares needs to know of p tasks.

    Attributes
    ----------
    grams : (g, q, q) Gram matrices ``A_c'A_c`` of groups of rows.
    member : (g, p) 1 where the group takes part in the task, else 0.
    cross : (q, p) products ``A_l'y_l`` with the signs of every task.
    squares : sum over the tasks of ``y_l'y_l``.
    """

    grams: NDArray[np.float64]
    member: NDArray[np.float64]
    cross: NDArray[np.float64]
    squares: float

    @property
    def is_common(self) -> bool:
        """Whether all tasks see the same rows."""
        return len(self.grams) == 1

    def apply(self, Z: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return the columns ``A_l'A_l z_l``."""
        if self.is_common:
            return self.grams[0] @ Z
        product = np.zeros_like(Z)
        for gram, tasks in zip(self.grams, self._tasks_of_groups, strict=True):
            product[:, tasks] += gram @ Z[:, tasks]
        return product

    @cached_property
    def _tasks_of_groups(self) -> list[NDArray[np.intp]]:
        return [np.flatnonzero(member) for member in self.member]


def one_vs_rest_codes(n_classes: int) -> NDArray[np.float64]:
    """Signs (k, k) of the classes in the tasks "class against the rest"."""
    return one_vs_rest_signs(np.arange(n_classes), n_classes)


def one_vs_one_codes(n_classes: int) -> NDArray[np.float64]:
    """Signs (k, k(k-1)/2) of the classes in the tasks "class i against class j": 1, -1, and 0 for all others."""
    pairs = class_pairs(n_classes)
    codes = np.zeros((n_classes, len(pairs)))
    codes[pairs[:, 0], np.arange(len(pairs))] = 1.0
    codes[pairs[:, 1], np.arange(len(pairs))] = -1.0
    return codes


def class_tasks(
    grams: NDArray[np.float64],
    sums: NDArray[np.float64],
    totals: NDArray[np.float64],
    codes: NDArray[np.float64],
) -> TaskMoments:
    """Return the moments of the tasks that `codes` (k, p) describe by signs of classes, 0 for those left out.

    Parameters
    ----------
    grams : (k, q, q) ``A_c'A_c`` of the classes; where all take part in all tasks their sum (1, q, q) will do.
    sums : (k, q) ``A_c'1``.
    totals : (k,) weights of the classes.
    """
    member = np.abs(codes)
    squares = float((totals @ member).sum())
    if member.all():
        grams, member = grams.sum(axis=0)[None], np.ones((1, codes.shape[1]))
    return TaskMoments(grams, member, sums.T @ codes, squares)


@dataclass(frozen=True, slots=True)
class SharedPoint:
    """Base classifiers W (q, b), relations M (b, p), and a multiplier (b, b) of ``M psd`` where that is asked."""

    W: NDArray[np.float64]
    M: NDArray[np.float64]
    multiplier: NDArray[np.float64] | None = None


@dataclass(frozen=True, slots=True)
class SharedProblem:
    """``min C sum_l ||y_l - A_l W m_l||^2 + penalty(W) + relation_penalty ||M||^2`` over M in `relations`.

    (1) of Vural et al. with ``penalty(W) = ||W||^2`` ("original"), (7) with ``||sum of the columns of W||^2``
    ("sum_to_zero"). "fast" is their (8)-(9), whose steps belong to no common objective: there W is given and
    the problem is over M alone.
    """

    tasks: TaskMoments
    C: float
    relation_penalty: float
    relations: RelationSet
    formulation: Formulation = "original"

    @property
    def is_convex(self) -> bool:
        """Whether the problem is the trace-norm problem over Z = W M, of any rank."""
        full_rank = len(self.relations.lower) >= min(self.tasks.cross.shape)
        return self.formulation == "original" and self.relations.is_free and full_rank

    @property
    def penalty_at_zero(self) -> float:
        """nu_max: the least `relation_penalty` at which Z = 0 is optimal for the trace norm."""
        return (self.C * _largest_singular_value(self.tasks.cross)) ** 2

    def base_penalty(self, W: NDArray[np.float64]) -> float:
        """Return the penalty of the base classifiers."""
        match self.formulation:
            case "original":
                return float(np.vdot(W, W))
            case "sum_to_zero":
                return float(np.sum(W.sum(axis=1) ** 2))
            case "fast":
                return 0.0
            case unknown:
                assert_never(unknown)

    def certify(self, point: SharedPoint) -> Certificate:
        """Measure a point afresh.

        "global": `dual` is the dual value of the trace-norm problem, a lower bound of the problem whatever the
        constraints, as ``||W||^2 + nu ||M||^2 >= 2 sqrt(nu) ||W M||_*``. "stationary": no change of W alone nor
        of M alone ("fast", "sum_to_zero": of M alone) leads below `dual`.
        """
        Z = point.W @ point.M
        pull = self.C * (self.tasks.cross - self.tasks.apply(Z))
        return self.measure(point, pull, float(np.vdot(self.tasks.cross, Z)))

    def measure(self, point: SharedPoint, pull: NDArray[np.float64], fit: float) -> Certificate:
        """Return the certificate of a point from ``pull = C A'(Y - A W M)`` and ``fit = <A'Y, W M>``, by tasks.

        Only these two see the data, so that W and `pull` may be given in any orthogonal coordinates.
        """
        W, M = point.W, point.M
        loss = self.tasks.squares - fit - float(np.vdot(W @ M, pull)) / self.C
        primal = self.C * loss + self.base_penalty(W) + self.relation_penalty * float(np.vdot(M, M))
        infeasibility = self.relations.violation(M)
        if self.formulation == "original":
            lower = self._trace_norm_dual(pull, fit, loss)
            if self.is_convex or primal - lower <= PROVED * max(1.0, abs(primal)):
                return Certificate.of(primal, lower, infeasibility=infeasibility)
        decrease = self._block_decrease(point, pull)
        return Certificate.of(primal, primal - decrease, infeasibility=infeasibility, kind="stationary")

    def _trace_norm_dual(self, pull: NDArray[np.float64], fit: float, loss: float) -> float:
        """Dual value ``2 <U, Y> - ||U||^2 / C``, ``sigma_max(A'U) <= sqrt(nu)``, U a multiple of Y - AZ."""
        residual_on_targets = self.tasks.squares - fit
        largest = _largest_singular_value(pull)
        scale = max(residual_on_targets, 0.0) / loss if loss > 0 else 1.0
        if largest > 0:
            scale = min(scale, float(np.sqrt(self.relation_penalty)) / largest)
        return self.C * (2.0 * scale * residual_on_targets - scale**2 * loss)

    def _block_decrease(self, point: SharedPoint, pull: NDArray[np.float64]) -> float:
        """Bound what a change of W alone or of M alone can gain; `pull` is ``C A'(Y - A W M)`` by tasks.

        Both blocks are strongly convex with the weights of their penalties as moduli.
        """
        W, M, nu = point.W, point.M, self.relation_penalty
        slope = 2.0 * (nu * M - W.T @ pull)
        if self.relations.symmetric:
            slope = (slope + slope.T) / 2
        target = M - slope / (2.0 * nu)
        multiplier = point.multiplier
        if self.relations.psd and multiplier is None:
            values, vectors = np.linalg.eigh(target)
            multiplier = 2.0 * nu * (vectors * np.maximum(-values, 0.0)) @ vectors.T
        tilt = slope if multiplier is None else slope - multiplier
        step = self.relations.clip(M - tilt / (2.0 * nu)) - M
        gain = -float(np.vdot(tilt, step)) - nu * float(np.vdot(step, step))
        if multiplier is not None:
            gain += float(np.vdot(multiplier, M))
        if self.formulation == "original":
            base_slope = 2.0 * (W - pull @ M.T)
            gain = max(gain, float(np.vdot(base_slope, base_slope)) / 4.0)
        return gain


def _largest_singular_value(matrix: NDArray[np.float64]) -> float:
    """Return the spectral norm, through the smaller Gram matrix: the largest value keeps its accuracy there."""
    _, power = np.frexp(np.abs(matrix).max(initial=0.0))
    matrix = np.ldexp(matrix, -power)  # squares of the largest numbers allowed would overflow
    gram = matrix.T @ matrix if matrix.shape[1] <= matrix.shape[0] else matrix @ matrix.T
    return float(np.ldexp(np.sqrt(max(np.linalg.eigvalsh(gram)[-1], 0.0)), power))
