"""Left-out scores of a hinge machine from one fit: the active set frozen, one factorisation for all examples."""

from contextlib import suppress

import numpy as np
import scipy.linalg
from numpy.typing import NDArray
from scipy.sparse import csr_array

from polymargin.coding import zero_sum_basis
from polymargin.gram import FeatureGram
from polymargin.problems.hinge import HingePoint, HingeProblem, polyhedral
from polymargin.solvers.hinge import left_out_by_feature
from polymargin.solvers.hinge.class_blocks import is_classwise
from polymargin.solvers.hinge.left_out_by_class import score_changes
from polymargin.solvers.hinge.settings import LEFT_OUT, LeftOutSettings


def frozen_left_out_scores(
    problem: HingeProblem, point: HingePoint, tuning: LeftOutSettings = LEFT_OUT
) -> NDArray[np.float64]:
    """Scores (n, k) that every training row would get from a machine fitted without it.

    When row i leaves, its coefficients R_i go to zero; the multipliers of the others that lie at a bound are taken
    to stay there, and the free ones and the intercepts move so that the free ones' margins stay tight ::

        <d_a, delta f> = 0 for every free a of another row,      columns of R + delta R sum to zero.

    This is exact wherever no multiplier reaches or leaves a bound. Rows with R_i = 0 keep their scores.
    """
    R = problem.coefficients(point.dual)
    scores = problem.gram.matmul(R) + point.intercept
    losses = polyhedral(problem.losses, "Leaving out with a frozen active set")
    support = losses.support(point.dual, R, scores)
    if len(support) == 0:
        return scores
    example, direction = losses.free_directions(point.dual, scores)
    lost = -R[support]
    changes = _changes_by_feature(problem, support, example, direction, lost, tuning)
    if changes is None:
        changes = _changes_by_class(problem, support, example, direction, lost, tuning)
    if changes is None:
        changes = _changes_at_once(problem, support, example, direction, lost, tuning)
    scores[support] += changes
    return scores


def support_rows(problem: HingeProblem, point: HingePoint) -> NDArray[np.intp]:
    """Return the rows that the scores depend on at the solution next to a point."""
    R = problem.coefficients(point.dual)
    scores = problem.gram.matmul(R) + point.intercept
    return polyhedral(problem.losses, "Finding support vectors").support(point.dual, R, scores)


class _InverseSystem:
    """Inverse of the system of the free multipliers t and the intercepts, ``[[Q, -B], [B', 0]] (t, beta)``.

    Q_ab = <d_a, d_b> K(a, b) and B = directions in the zero-sum basis, the columns of R having to sum to zero.
    """

    def __init__(
        self, problem: HingeProblem, example: NDArray[np.intp], direction: NDArray[np.float64], ridge: float
    ):
        self.basis = _intercept_basis(problem)
        rows, place = np.unique(example, return_inverse=True)
        K = problem.gram.block(rows, rows).astype(np.float64)
        scale = max(
            float((K.diagonal()[place] * np.einsum("ak,ak->a", direction, direction)).max(initial=0.0)), 1.0
        )
        # Q may be singular where the system is not. As B't is given, Q + scale B B' has the same solution; B B'
        # being <d_a, d_b>, that is to add a constant to the kernel.
        if problem.fit_intercept:
            K += scale
        K.flat[:: len(K) + 1] += ridge * scale
        B = direction @ self.basis
        self.lift = scale * B
        self.inverse = _inverse(K[np.ix_(place, place)] * (direction @ direction.T))
        self.spread = self.inverse @ B
        # of low rank where all free multipliers are of few classes, whose rounding error must not be inverted
        self.schur = np.linalg.pinv(B.T @ self.spread, rcond=1e-12, hermitian=True)

    def solve(
        self, margins: NDArray[np.float64], sums: NDArray[np.float64]
    ) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Solve for t and beta, one column per right-hand side."""
        margins = margins + self.lift @ sums
        half = self.inverse @ margins
        shift = self.schur @ (sums - self.spread.T @ margins)
        return half + self.spread @ shift, shift

    def without_own(
        self,
        own: NDArray[np.intp],
        owner: NDArray[np.intp],
        step: NDArray[np.float64],
        shift: NDArray[np.float64],
    ) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Correct the solutions so that multiplier `own` does not move in column `owner`; its margin may."""
        counts = np.bincount(owner, minlength=step.shape[1])
        first, by_owner = np.cumsum(counts) - counts, np.argsort(owner, kind="stable")
        forces = np.zeros(len(own))
        for size in np.unique(counts[counts > 0]):
            columns = np.flatnonzero(counts == size)
            at = by_owner[first[columns, None] + np.arange(size)]
            pinned = own[at]
            spread = self.spread[pinned]
            blocks = self.inverse[pinned[:, :, None], pinned[:, None, :]] - spread @ self.schur @ spread.transpose(
                0, 2, 1
            )
            inverses = np.linalg.pinv(blocks, rcond=size * np.finfo(np.float64).eps, hermitian=True)
            forces[at] = -np.einsum("cab,cb->ca", inverses, step[pinned, columns[:, None]])
        by_column = csr_array((forces, (owner, own)), shape=step.shape[::-1])
        pull = self.schur @ (by_column @ self.spread).T
        return step + (by_column @ self.inverse).T - self.spread @ pull, shift - pull


def _changes_at_once(
    problem: HingeProblem,
    support: NDArray[np.intp],
    example: NDArray[np.intp],
    direction: NDArray[np.float64],
    lost: NDArray[np.float64],
    tuning: LeftOutSettings,
) -> NDArray[np.float64]:
    """Return what the scores of the support vectors change by, from the system of all free multipliers."""
    inverse = _InverseSystem(problem, example, direction, tuning.ridge)
    owner = np.searchsorted(support, example)
    change = problem.gram.diagonal()[support, None] * lost
    height = max(1, tuning.entries_at_a_time // max(1, len(example)))
    for first in range(0, len(support), height):
        rows = slice(first, first + height)
        K_free = problem.gram.block(support[rows], example)
        # Right-hand sides of many removals at once: what the removed coefficients do to every free margin.
        margins = K_free.T * (direction @ lost[rows].T)
        step, shift = inverse.solve(margins, (lost[rows] @ inverse.basis).T)
        own = np.flatnonzero((owner >= first) & (owner < first + height))
        step, shift = inverse.without_own(own, owner[own] - first, step, shift)
        change[rows] += (inverse.basis @ shift).T - (K_free * step.T) @ direction
    return change


def _changes_by_feature(
    problem: HingeProblem,
    support: NDArray[np.intp],
    example: NDArray[np.intp],
    direction: NDArray[np.float64],
    lost: NDArray[np.float64],
    tuning: LeftOutSettings,
) -> NDArray[np.float64] | None:
    """Return the same in the features' dimension; None where the free multipliers are fewer."""
    if not isinstance(problem.gram, FeatureGram):
        return None
    unknowns = problem.gram.features.shape[1] * (problem.losses.n_classes - 1)
    if problem.fit_intercept:
        unknowns += problem.losses.n_classes - 1
    if len(example) <= unknowns:
        return None
    features = problem.gram.features[support]
    norms = problem.gram.diagonal()[example] * np.einsum("ak,ak->a", direction, direction)
    return left_out_by_feature.score_changes(
        features,
        np.searchsorted(support, example),
        direction,
        lost,
        ridge=tuning.ridge * max(float(norms.max(initial=0.0)), 1.0),
        fit_intercept=problem.fit_intercept,
        tuning=tuning,
    )


def _changes_by_class(
    problem: HingeProblem,
    support: NDArray[np.intp],
    example: NDArray[np.intp],
    direction: NDArray[np.float64],
    lost: NDArray[np.float64],
    tuning: LeftOutSettings,
) -> NDArray[np.float64] | None:
    """Return what the scores of the support vectors change by, class by class; None where that does not pay."""
    # the other way holds the square of the free variables, which are more than the rows
    if not is_classwise(problem.losses, len(example), len(support), tuning.classwise):
        return None
    K = problem.gram.block(support, support).astype(np.float64)
    scale = max(float(K.diagonal().max()), 1.0)
    basis = _intercept_basis(problem)
    if problem.fit_intercept:
        K += scale
    K.flat[:: len(K) + 1] += tuning.ridge * scale
    # a kernel matrix that is singular to rounding can break down in the coupling, not in the matrix as a whole
    with suppress(np.linalg.LinAlgError):
        return score_changes(
            K, np.searchsorted(support, example), direction.argmax(axis=1), lost, basis, tuning.rows_at_a_time
        )
    return None


def _intercept_basis(problem: HingeProblem) -> NDArray[np.float64]:
    k = problem.losses.n_classes
    return zero_sum_basis(k) if problem.fit_intercept else np.zeros((k, 0))


def _inverse(Q: NDArray[np.float64]) -> NDArray[np.float64]:
    """Invert a positive definite matrix, at a third of the cost of solving for the identity."""
    factor, _ = scipy.linalg.cho_factor(Q, lower=True)
    triangle = np.tril(scipy.linalg.lapack.dpotri(factor, lower=1)[0]) if len(Q) else Q
    return triangle + np.tril(triangle, -1).T
