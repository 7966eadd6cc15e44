"""Left-out scores of a hinge machine from one fit: the active set frozen, one factorisation for all examples."""

from contextlib import suppress
from dataclasses import dataclass

import numpy as np
import scipy.linalg
from numpy.typing import NDArray
from scipy.sparse import csr_array

from polymargin.coding import zero_sum_basis
from polymargin.gram import FeatureGram
from polymargin.problems.hinge import HingePoint, HingeProblem, polyhedral
from polymargin.solvers.hinge import left_out_by_feature, left_out_by_score
from polymargin.solvers.hinge.class_blocks import check_pivots, is_classwise
from polymargin.solvers.hinge.inner_loop import check_curvature
from polymargin.solvers.hinge.left_out_by_class import score_changes
from polymargin.solvers.hinge.settings import LEFT_OUT, LeftOutSettings


def frozen_left_out_scores(
    problem: HingeProblem,
    point: HingePoint,
    tuning: LeftOutSettings = LEFT_OUT,
    scores: NDArray[np.float64] | None = None,
) -> NDArray[np.float64]:
    """Scores (n, k) that every training row would get from a machine fitted without it.

    When row i leaves, its coefficients R_i go to zero; the multipliers of the others that lie at a bound are taken
    to stay there, and the free ones and the intercepts move so that the free ones' margins stay tight ::

        <d_a, delta f> = 0 for every free a of another row,      columns of R + delta R sum to zero.

    This is exact wherever no multiplier reaches or leaves a bound. Rows with R_i = 0 keep their scores. `scores`
    are those with all rows, where they are known.
    """
    R = problem.coefficients(point.dual)
    scores = problem.gram.matmul(problem.model(point)) + point.intercept if scores is None else scores.copy()
    losses = polyhedral(problem.losses, "Leaving out with a frozen active set")
    support = losses.support(point.dual, R, scores)
    if len(support) == 0:
        return scores
    example, direction = losses.free_directions(point.dual, scores)
    lost = -R[support]
    changes = _changes_by_feature(problem, support, example, direction, lost, tuning)
    if changes is None:
        changes = _changes_by_score(problem, support, example, direction, lost, tuning)
    if changes is None:
        changes = _changes_by_class(problem, support, example, direction, lost, tuning)
    if changes is None:
        changes = _changes_at_once(problem, support, example, direction, lost, tuning)
    scores[support] += changes
    return scores


def support_rows(problem: HingeProblem, point: HingePoint) -> NDArray[np.intp]:
    """Return the rows that the scores depend on at the solution next to a point."""
    R = problem.coefficients(point.dual)
    scores = problem.gram.matmul(problem.model(point)) + point.intercept
    return polyhedral(problem.losses, "Finding support vectors").support(point.dual, R, scores)


ROUNDING = 1e-12
"""Part of a row's coefficients below which what is left of them is rounding."""


@dataclass(frozen=True, slots=True)
class Precision:
    """In what numbers the system is solved.

    Attributes
    ----------
    dtype : single or double precision.
    ridge, rank, pivot : as in the settings.
    """

    dtype: type
    ridge: float
    rank: float
    pivot: float = 0.0


def _precisions(lost: NDArray[np.float64], tuning: LeftOutSettings) -> tuple[Precision, ...]:
    """Return what to try: single precision first, where its ridge moves no score by much."""
    double = Precision(np.float64, tuning.ridge, tuning.rank)
    largest = float(np.abs(lost).max(initial=0.0))
    if tuning.single_ridge * largest > tuning.single_error:
        return (double,)
    return Precision(np.float32, tuning.single_ridge, tuning.single_rank, tuning.single_pivot), double


class _InverseSystem:
    """Inverse of the system of the free multipliers t and the intercepts, ``[[Q, -B], [B', 0]] (t, beta)``.

    Q_ab = <d_a, d_b> K(a, b) and B = directions in the zero-sum basis, the columns of R having to sum to zero.
    """

    def __init__(
        self,
        problem: HingeProblem,
        example: NDArray[np.intp],
        direction: NDArray[np.float64],
        precision: Precision,
    ):
        self.basis = _intercept_basis(problem)
        rows, place = np.unique(example, return_inverse=True)
        K = problem.gram.block(rows, rows)
        scale = max(
            float((K.diagonal()[place] * np.einsum("ak,ak->a", direction, direction)).max(initial=0.0)), 1.0
        )
        # Q may be singular where the system is not. As B't is given, Q + scale B B' has the same solution; B B'
        # being <d_a, d_b>, that is to add a constant to the kernel.
        if problem.fit_intercept:
            K += scale
        K.flat[:: len(K) + 1] += precision.ridge * scale
        B = direction @ self.basis
        self.lift = scale * B
        rounded: NDArray = direction.astype(precision.dtype, copy=False)
        Q = rounded @ rounded.T
        of_rows: NDArray = K.astype(precision.dtype, copy=False)
        Q *= of_rows if len(rows) == len(place) else of_rows.take(place, axis=0).take(place, axis=1)
        self.inverse = _inverse(Q, precision.pivot * scale)
        self.spread = self.inverse @ B.astype(precision.dtype, copy=False)
        # of low rank where all free multipliers are of few classes, whose rounding error must not be inverted
        self.schur = np.linalg.pinv(B.T @ self.spread, rcond=precision.rank, hermitian=True)

    def answers(
        self, own: "_Own", K_free: NDArray, direction: NDArray[np.float64], lost: NDArray[np.float64]
    ) -> tuple[NDArray, NDArray[np.float64]]:
        """Return the moves of the free multipliers and of the intercepts when rows leave, a row each.

        A row's own free multipliers could make up by themselves for what they lose, and move nothing else: to be
        solved for is what is lost at bounds.
        """
        parts = own.parts(direction, lost)
        rest = lost.copy()
        np.subtract.at(rest, own.owner, parts[:, None] * direction[own.at])
        solved = np.flatnonzero(np.abs(rest).max(axis=1) > ROUNDING * np.abs(lost).max(axis=1))
        step = np.zeros(K_free.shape, dtype=self.inverse.dtype)
        shift = np.zeros((len(lost), self.basis.shape[1]))
        # what the removed coefficients do to every free margin
        margins = K_free[solved] * (rest[solved] @ direction.T).astype(self.inverse.dtype, copy=False)
        step[solved], shift[solved] = self._solve(margins, rest[solved] @ self.basis)
        step[own.owner, own.at] += parts
        return self._without_own(own, step, shift)

    def _solve(self, margins: NDArray, sums: NDArray[np.float64]) -> tuple[NDArray, NDArray[np.float64]]:
        """Solve for t and beta, one row per right-hand side."""
        margins = margins + (sums @ self.lift.T).astype(margins.dtype, copy=False)
        shift = (sums - margins @ self.spread) @ self.schur
        return margins @ self.inverse + shift.astype(margins.dtype, copy=False) @ self.spread.T, shift

    def _without_own(
        self, own: "_Own", step: NDArray, shift: NDArray[np.float64]
    ) -> tuple[NDArray, NDArray[np.float64]]:
        """Correct the solutions so that the rows' own multipliers do not move; their margins may."""
        forces = np.zeros(len(own.at), dtype=step.dtype)
        for rows, some in own.groups:
            pinned = own.at[some]
            spread = self.spread[pinned].astype(np.float64)
            blocks = self.inverse[pinned[:, :, None], pinned[:, None, :]] - spread @ self.schur @ spread.transpose(
                0, 2, 1
            )
            inverses = _inverses(blocks, some.shape[1] * np.finfo(step.dtype).eps)
            forces[some] = -np.einsum("cab,cb->ca", inverses, step[rows[:, None], pinned])
        by_row = csr_array((forces, (own.owner, own.at)), shape=step.shape)
        pull = (by_row @ self.spread) @ self.schur
        step += by_row @ self.inverse
        step -= pull.astype(step.dtype, copy=False) @ self.spread.T
        return step, shift - pull


class _Own:
    """Free multipliers of the rows that leave.

    Attributes
    ----------
    at : (m,) the multipliers.
    owner : (m,) their rows.
    groups : rows with as many multipliers, (c,), and the places of these in `at`, (c, size).
    """

    def __init__(self, at: NDArray[np.intp], owner: NDArray[np.intp]):
        self.at, self.owner = at, owner
        counts = np.bincount(owner)
        first, in_order = np.cumsum(counts) - counts, np.argsort(owner, kind="stable")
        self.groups = [
            (rows, in_order[first[rows, None] + np.arange(size)])
            for size in np.unique(counts[counts > 0])
            for rows in (np.flatnonzero(counts == size),)
        ]

    def parts(self, direction: NDArray[np.float64], lost: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return the steps of the multipliers that make up as much of what their rows lose as they can."""
        steps = np.zeros(len(self.at))
        for rows, some in self.groups:
            D = direction[self.at[some]]
            right = np.einsum("cak,ck->ca", D, lost[rows])
            steps[some] = np.linalg.solve(D @ D.transpose(0, 2, 1), right[:, :, None])[:, :, 0]
        return steps


def _changes_at_once(
    problem: HingeProblem,
    support: NDArray[np.intp],
    example: NDArray[np.intp],
    direction: NDArray[np.float64],
    lost: NDArray[np.float64],
    tuning: LeftOutSettings,
) -> NDArray[np.float64]:
    """Return what the scores of the support vectors change by, from the system of all free multipliers."""
    for precision in _precisions(lost, tuning):
        with suppress(np.linalg.LinAlgError):
            inverse = _InverseSystem(problem, example, direction, precision)
            break
    else:
        raise np.linalg.LinAlgError("The kernel matrix of the free multipliers is not positive definite.")
    owner = np.searchsorted(support, example)
    change = problem.gram.diagonal()[support, None] * lost
    height = max(1, tuning.entries_at_a_time // max(1, len(example)))
    for first in range(0, len(support), height):
        rows = slice(first, first + height)
        at = np.flatnonzero((owner >= first) & (owner < first + height))
        own = _Own(at, owner[at] - first)
        K_free = problem.gram.block(support[rows], example).astype(inverse.inverse.dtype, copy=False)
        step, shift = inverse.answers(own, K_free, direction, lost[rows])
        change[rows] += shift @ inverse.basis.T - (K_free * step) @ direction.astype(step.dtype)
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


def _changes_by_score(
    problem: HingeProblem,
    support: NDArray[np.intp],
    example: NDArray[np.intp],
    direction: NDArray[np.float64],
    lost: NDArray[np.float64],
    tuning: LeftOutSettings,
) -> NDArray[np.float64] | None:
    """Return about the same from every class by itself; None where few are free, or digits are lost."""
    losses = problem.losses
    if len(example) < tuning.by_score or not (losses.sees_single_scores or losses.sees_differences):
        return None
    K = problem.gram.block(support, support)
    scale = max(float(K.diagonal().max()), 1.0)
    place = np.searchsorted(support, example)
    for precision in _precisions(lost, tuning):
        with suppress(np.linalg.LinAlgError):
            return left_out_by_score.score_changes(
                K.astype(precision.dtype),
                place,
                direction,
                lost,
                single_scores=losses.sees_single_scores,
                fit_intercept=problem.fit_intercept,
                ridge=precision.ridge * scale,
                pivot=precision.pivot * scale,
                untold=tuning.untold,
                sweeps=tuning.sweeps,
            )
    return None


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
    K = problem.gram.block(support, support)
    scale = max(float(K.diagonal().max()), 1.0)
    basis = _intercept_basis(problem)
    if problem.fit_intercept:
        K += scale
    place, slot = np.searchsorted(support, example), direction.argmax(axis=1)
    for precision in _precisions(lost, tuning):
        rounded: NDArray = K.astype(precision.dtype)
        rounded.flat[:: len(K) + 1] += precision.ridge * scale
        # a kernel matrix that is singular to rounding can break down in the coupling, not in the matrix as a whole
        with suppress(np.linalg.LinAlgError):
            return score_changes(
                rounded,
                place,
                slot,
                lost,
                basis,
                rank=precision.rank,
                pivot=precision.pivot * scale,
                height=tuning.rows_at_a_time,
            )
    return None


def _intercept_basis(problem: HingeProblem) -> NDArray[np.float64]:
    k = problem.losses.n_classes
    return zero_sum_basis(k) if problem.fit_intercept else np.zeros((k, 0))


def _inverses(blocks: NDArray, tiny: float) -> NDArray:
    """Return the pseudoinverses of many small symmetric matrices; most are single numbers."""
    if blocks.shape[1] == 1:
        return np.divide(1.0, blocks, out=np.zeros_like(blocks), where=blocks != 0.0)
    return np.linalg.pinv(blocks, rcond=tiny, hermitian=True)


def _inverse(Q: NDArray, pivot: float) -> NDArray:
    """Invert a positive definite matrix, at a third of the cost of solving for the identity; refuse low pivots.

    Rounding errors may make it indefinite, which in double precision the smallest ridge mends; a kernel that is so
    is refused.
    """
    if not len(Q):
        return Q
    single = Q.dtype == np.float32
    try:
        # of the transpose, which LAPACK need not copy, the other triangle
        factor = scipy.linalg.cholesky(Q.T, lower=True, overwrite_a=single, check_finite=False)
    except np.linalg.LinAlgError:
        if single:
            raise
        lowest, rounding = float(np.linalg.eigvalsh(Q)[0]), float(np.sqrt(np.finfo(np.float64).eps))
        check_curvature(lowest, Q, rounding)
        return np.asarray(np.linalg.inv(Q + 2.0 * abs(lowest) * np.eye(len(Q))), dtype=np.float64)
    check_pivots(factor, pivot)
    (invert,) = scipy.linalg.get_lapack_funcs(("potri",), (Q,))
    inverse = invert(factor, lower=1, overwrite_c=1)[0]
    return inverse + np.tril(inverse, -1).T
