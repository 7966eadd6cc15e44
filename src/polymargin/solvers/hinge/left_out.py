"""Left-out scores of a hinge machine from one fit: the active set frozen, one factorisation for all examples."""

from contextlib import suppress
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from polymargin._native.variances import invert, make_up, pin, weigh
from polymargin.coding import zero_sum_basis
from polymargin.gram import FeatureGram
from polymargin.problems.hinge import HingePoint, HingeProblem, polyhedral
from polymargin.solvers.hinge import left_out_by_feature, left_out_by_score
from polymargin.solvers.hinge.class_blocks import is_classwise
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
    removals = _Removals(problem, support, example, direction, -R[support], tuning)
    for changes_of in (_changes_by_feature, _changes_by_score, _changes_by_class, _changes_at_once):
        changes = changes_of(removals)
        if changes is not None:
            scores[support] += changes
            return scores
    raise np.linalg.LinAlgError("The kernel matrix of the free multipliers is not positive definite.")


def support_rows(problem: HingeProblem, point: HingePoint) -> NDArray[np.intp]:
    """Return the rows that the scores depend on at the solution next to a point."""
    R = problem.coefficients(point.dual)
    scores = problem.gram.matmul(problem.model(point)) + point.intercept
    return polyhedral(problem.losses, "Finding support vectors").support(point.dual, R, scores)


@dataclass(frozen=True, slots=True)
class _Removals:
    """What leaves, one support vector at a time, and what may move then.

    Attributes
    ----------
    support : (n,) the support vectors.
    example, direction : (m,) row and (m, k) direction of every free multiplier, sorted by rows.
    lost : (n, k) minus the coefficients of the support vectors.
    """

    problem: HingeProblem
    support: NDArray[np.intp]
    example: NDArray[np.intp]
    direction: NDArray[np.float64]
    lost: NDArray[np.float64]
    tuning: LeftOutSettings

    @property
    def owner(self) -> NDArray[np.intp]:
        """Places among the support vectors of the free multipliers' rows."""
        return np.searchsorted(self.support, self.example)

    def precisions(self) -> tuple["Precision", ...]:
        """Return in what numbers to try: single precision first, where its ridge moves no score by much."""
        tuning = self.tuning
        double = Precision(np.float64, tuning.ridge, tuning.rank)
        if tuning.single_ridge * float(np.abs(self.lost).max(initial=0.0)) > tuning.single_error:
            return (double,)
        return Precision(np.float32, tuning.single_ridge, tuning.single_rank, tuning.single_pivot), double


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
        norms = K.diagonal()[place] * np.einsum("ak,ak->a", direction, direction)
        scale = max(float(norms.max(initial=0.0)), 1.0)
        # Q may be singular where the system is not. As B't is given, Q + scale B B' has the same solution; B B'
        # being <d_a, d_b>, that is to add a constant to the kernel.
        if problem.fit_intercept:
            K += scale
        K.flat[:: len(K) + 1] += precision.ridge * scale
        B = direction @ self.basis
        self.lift = scale * B
        rounded: NDArray = direction.astype(precision.dtype, copy=False)
        self.inverse = _inverse(rounded, K, place, precision.pivot * scale)
        self.spread = self.inverse @ B.astype(precision.dtype, copy=False)
        # of low rank where all free multipliers are of few classes, whose rounding error must not be inverted
        self.schur = _pseudoinverse(B.T @ self.spread, precision.rank)

    def answers(
        self, edges: NDArray[np.intp], K_free: NDArray, direction: NDArray[np.float64], lost: NDArray[np.float64]
    ) -> tuple[NDArray, NDArray[np.float64]]:
        """Return the moves of the free multipliers and of the intercepts when rows leave, a row each.

        The own free multipliers of a row, those between its two `edges`, could make up by themselves for what they
        lose, and move nothing else: to be solved for is what is lost at bounds.
        """
        rest, parts = lost.copy(), np.zeros(len(direction))
        make_up(direction, edges, rest, parts)
        solved = np.flatnonzero(np.abs(rest).max(axis=1) > ROUNDING * np.abs(lost).max(axis=1))
        step = np.zeros(K_free.shape, dtype=self.inverse.dtype)
        shift = np.zeros((len(lost), self.basis.shape[1]))
        # what the removed coefficients do to every free margin
        margins = (rest[solved] @ direction.T).astype(self.inverse.dtype, copy=False)
        margins *= K_free.take(solved, axis=0)
        step[solved], shift[solved] = self._solve(margins, rest[solved] @ self.basis)
        own = np.arange(edges[0], edges[-1])
        step[np.repeat(np.arange(len(lost)), np.diff(edges)), own] += parts[own]
        return self._without_own(edges, step, shift)

    def _solve(self, margins: NDArray, sums: NDArray[np.float64]) -> tuple[NDArray, NDArray[np.float64]]:
        """Solve for t and beta, one row per right-hand side."""
        margins = margins + (sums @ self.lift.T).astype(margins.dtype, copy=False)
        shift = (sums - margins @ self.spread) @ self.schur
        return margins @ self.inverse + shift.astype(margins.dtype, copy=False) @ self.spread.T, shift

    def _without_own(
        self, edges: NDArray[np.intp], step: NDArray, shift: NDArray[np.float64]
    ) -> tuple[NDArray, NDArray[np.float64]]:
        """Correct the solutions so that the rows' own multipliers do not move; their margins may."""
        spread = self.spread.astype(np.float64, copy=False)
        pulled, pull = spread @ self.schur, np.zeros_like(shift)
        for row in pin(self.inverse, spread, pulled, edges, step, pull):
            own = slice(edges[row], edges[row + 1])
            answer = self.inverse[own, own] - pulled[own] @ spread[own].T
            forces = -_pseudoinverse(answer, len(answer) * np.finfo(step.dtype).eps) @ step[row, own]
            step[row] += forces @ self.inverse[own]
            pull[row] = forces @ pulled[own]
        step -= pull.astype(step.dtype, copy=False) @ self.spread.T
        return step, shift - pull


def _changes_at_once(removals: _Removals) -> NDArray[np.float64] | None:
    """Return what the scores of the support vectors change by, from the system of all free multipliers.

    None where that is not positive definite.
    """
    problem, support, direction = removals.problem, removals.support, removals.direction
    for precision in removals.precisions():
        with suppress(np.linalg.LinAlgError):
            inverse = _InverseSystem(problem, removals.example, direction, precision)
            break
    else:
        return None
    lost = removals.lost
    edges = np.searchsorted(removals.example, np.append(support, problem.gram.n))
    change = problem.gram.diagonal()[support, None] * lost
    rounded: NDArray = direction.astype(precision.dtype)
    height = max(1, removals.tuning.entries_at_a_time // max(1, len(direction)))
    for first in range(0, len(support), height):
        rows = slice(first, first + height)
        K_free: NDArray = problem.gram.block(support[rows], removals.example).astype(precision.dtype, copy=False)
        step, shift = inverse.answers(edges[first : first + height + 1], K_free, direction, lost[rows])
        change[rows] += shift @ inverse.basis.T - (K_free * step) @ rounded
    return change


def _changes_by_feature(removals: _Removals) -> NDArray[np.float64] | None:
    """Return the same in the features' dimension; None where the free multipliers are fewer."""
    problem, support, direction = removals.problem, removals.support, removals.direction
    if not isinstance(problem.gram, FeatureGram):
        return None
    unknowns = problem.gram.features.shape[1] * (problem.losses.n_classes - 1)
    if problem.fit_intercept:
        unknowns += problem.losses.n_classes - 1
    if len(removals.example) <= unknowns:
        return None
    features = problem.gram.features[support]
    norms = problem.gram.diagonal()[removals.example] * np.einsum("ak,ak->a", direction, direction)
    return left_out_by_feature.score_changes(
        features,
        removals.owner,
        direction,
        removals.lost,
        ridge=removals.tuning.ridge * max(float(norms.max(initial=0.0)), 1.0),
        fit_intercept=problem.fit_intercept,
        tuning=removals.tuning,
    )


def _changes_by_score(removals: _Removals) -> NDArray[np.float64] | None:
    """Return about the same from every class by itself; None where few are free, or digits are lost."""
    problem, support, tuning = removals.problem, removals.support, removals.tuning
    losses = problem.losses
    if len(removals.example) < tuning.by_score or not (losses.sees_single_scores or losses.sees_differences):
        return None
    K = problem.gram.block(support, support)
    scale = max(float(K.diagonal().max()), 1.0)
    for precision in removals.precisions():
        with suppress(np.linalg.LinAlgError):
            return left_out_by_score.score_changes(
                K.astype(precision.dtype, copy=False),
                removals.owner,
                removals.direction,
                removals.lost,
                single_scores=losses.sees_single_scores,
                fit_intercept=problem.fit_intercept,
                ridge=precision.ridge * scale,
                pivot=min(precision.pivot, tuning.variance_pivot) * scale,
                untold=tuning.untold,
                sweeps=tuning.sweeps,
            )
    return None


def _changes_by_class(removals: _Removals) -> NDArray[np.float64] | None:
    """Return what the scores of the support vectors change by, class by class; None where that does not pay."""
    problem, support = removals.problem, removals.support
    # the other way holds the square of the free variables, which are more than the rows
    if not is_classwise(problem.losses, len(removals.example), len(support), removals.tuning.classwise):
        return None
    K = problem.gram.block(support, support)
    scale = max(float(K.diagonal().max()), 1.0)
    basis = _intercept_basis(problem)
    if problem.fit_intercept:
        K += scale
    place, slot = removals.owner, removals.direction.argmax(axis=1)
    for precision in removals.precisions():
        rounded: NDArray = K.astype(precision.dtype)
        rounded.flat[:: len(K) + 1] += precision.ridge * scale
        # a kernel matrix that is singular to rounding can break down in the coupling, not in the matrix as a whole
        with suppress(np.linalg.LinAlgError):
            return score_changes(
                rounded,
                place,
                slot,
                removals.lost,
                basis,
                rank=precision.rank,
                pivot=precision.pivot * scale,
                height=removals.tuning.rows_at_a_time,
            )
    return None


def _intercept_basis(problem: HingeProblem) -> NDArray[np.float64]:
    k = problem.losses.n_classes
    return zero_sum_basis(k) if problem.fit_intercept else np.zeros((k, 0))


def _pseudoinverse(matrix: NDArray, rank: float) -> NDArray[np.float64]:
    """Return the pseudoinverse of a symmetric matrix; eigenvalues up to a part `rank` of the largest are zero."""
    values, vectors = np.linalg.eigh(matrix.astype(np.float64, copy=False))
    sizes = np.abs(values)
    told = sizes > rank * sizes.max(initial=0.0)
    return (vectors[:, told] / values[told]) @ vectors[:, told].T


def _inverse(direction: NDArray, K: NDArray[np.float64], place: NDArray[np.intp], pivot: float) -> NDArray:
    """Invert the matrix of ``<d_a, d_b> K(a, b)``; refuse low pivots.

    Rounding errors may make it indefinite, which in double precision the smallest ridge mends; a kernel that is so
    is refused.
    """
    Q = direction @ direction.T
    weigh(Q, K, place)
    if invert(Q, pivot):
        return Q
    if direction.dtype == np.float32:
        raise np.linalg.LinAlgError("The matrix is singular to rounding.")
    Q = direction @ direction.T * K[np.ix_(place, place)]
    lowest, rounding = float(np.linalg.eigvalsh(Q)[0]), float(np.sqrt(np.finfo(np.float64).eps))
    check_curvature(lowest, Q, rounding)
    return np.asarray(np.linalg.inv(Q + 2.0 * abs(lowest) * np.eye(len(Q))), dtype=np.float64)
