"""W-steps: the base classifiers that are optimal for a given relation matrix M, exactly.

A base step is made once for given data and serves every C, every penalty and every M.
"""

from typing import Protocol, assert_never

import numpy as np
import scipy.linalg
from numpy.typing import NDArray

from polymargin.problems.shared import Formulation, TaskMoments
from polymargin.solvers.linear_algebra import conjugate_gradients, solve_positive
from polymargin.solvers.shared.settings import DEFAULTS, SharedSettings
from polymargin.threads import eigh


class BaseStep(Protocol):
    """W-steps in coordinates of their own; `restore` brings W back to those of the data.

    `unfinished` counts the steps that ended at a limit, short of their tolerance.
    """

    unfinished: int

    def solve(
        self, M: NDArray[np.float64], C: float, formulation: Formulation, start: NDArray[np.float64] | None
    ) -> NDArray[np.float64]:
        """Return the optimal W for M; iterative steps begin at `start`."""
        ...

    def relation_terms(self, W: NDArray[np.float64]) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Return ``W'A'AW``, (b, b) or one per task (p, b, b), and ``W'A'Y`` (b, p)."""
        ...

    def residual(
        self, W: NDArray[np.float64], M: NDArray[np.float64], C: float
    ) -> tuple[NDArray[np.float64], float]:
        """Return ``C A'(Y - A W M)`` and ``<A'Y, W M>``, by tasks."""
        ...

    def independent(self, C: float) -> NDArray[np.float64]:
        """Return the ridge solutions (q, p) of the tasks, each on its own."""
        ...

    def restore(self, W: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return W in the coordinates of the data."""
        ...


def make_base_step(tasks: TaskMoments, tuning: SharedSettings = DEFAULTS) -> "BaseStep":
    """Choose the W-step: in the eigenbasis of A'A where all tasks see the same rows."""
    return CommonBaseStep(tasks) if tasks.is_common else GroupedBaseStep(tasks, tuning)


class CommonBaseStep:
    """All tasks see the same rows: one eigendecomposition ``A'A = V diag(s) V'``, then closed forms.

    The W-step of the original formulation and the terms of the M-step also take stacks of matrices.
    """

    unfinished = 0

    def __init__(self, tasks: TaskMoments):
        values, self.vectors = eigh(tasks.grams[0])
        self.values = np.maximum(values, 0.0)
        self.cross = self.vectors.T @ tasks.cross

    def solve(
        self, M: NDArray[np.float64], C: float, formulation: Formulation, start: NDArray[np.float64] | None = None
    ) -> NDArray[np.float64]:
        """Return the optimal W for M."""
        match formulation:
            case "original":
                # A'A W MM' + W/C = A'Y M' in the eigenbases of A'A and of MM'
                mixed, rotation = np.linalg.eigh(M @ M.swapaxes(-1, -2))
                right = self.cross @ (M.swapaxes(-1, -2) @ rotation)
                divisor = self.values[:, None] * np.maximum(mixed, 0.0)[..., None, :] + 1.0 / C
                return right / divisor @ rotation.swapaxes(-1, -2)
            case "fast":
                # (8)-(9): (A'A + I/C) W MM' = A'Y M', ridge classifiers unmixed
                return self.independent(C) @ np.linalg.pinv(M)
            case "sum_to_zero":
                return self._sum_to_zero(M, C)
            case unknown:
                assert_never(unknown)

    def _sum_to_zero(self, M: NDArray[np.float64], C: float) -> NDArray[np.float64]:
        """Solve ``A'A W MM' + W ee'/C = A'Y M'``.

        With ``MM' = LL'`` the penalty acts on ``W L`` along ``L^-1 e`` only.
        """
        L = np.linalg.cholesky(M @ M.T)
        direction = scipy.linalg.solve_triangular(L, np.ones(len(L)), lower=True)
        length = float(np.linalg.norm(direction))
        direction /= length
        B = scipy.linalg.solve_triangular(L, M @ self.cross.T, lower=True).T
        along = B @ direction
        cutoff = self.values[-1] * len(self.values) * np.finfo(np.float64).eps
        inverse = np.where(self.values > cutoff, 1.0 / np.maximum(self.values, cutoff), 0.0)
        penalised = along / (self.values + length**2 / C)
        WL = inverse[:, None] * (B - np.outer(along, direction)) + np.outer(penalised, direction)
        return scipy.linalg.solve_triangular(L, WL.T, lower=True, trans="T").T

    def relation_terms(self, W: NDArray[np.float64]) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Return ``W'A'AW`` and ``W'A'Y``."""
        turned = W.swapaxes(-1, -2)
        return (turned * self.values) @ W, turned @ self.cross

    def residual(
        self, W: NDArray[np.float64], M: NDArray[np.float64], C: float
    ) -> tuple[NDArray[np.float64], float]:
        """Return ``C A'(Y - A W M)`` and ``<A'Y, W M>``."""
        Z = W @ M
        return C * (self.cross - self.values[:, None] * Z), float(np.vdot(self.cross, Z))

    def independent(self, C: float) -> NDArray[np.float64]:
        """Return the ridge solutions of the tasks."""
        return self.cross / (self.values + 1.0 / C)[:, None]

    def restore(self, W: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return W in the coordinates of the data."""
        return self.vectors @ W


class GroupedBaseStep:
    """Tasks see different groups of rows: ``sum_c G_c W H_c + W/C = right``.

    ``H_c`` is the sum of ``m_l m_l'`` over the tasks l of group c. One dense system while that is small, else
    conjugate gradients preconditioned by the Sylvester equation of the sum of the G_c and the mean of the H_c.
    """

    def __init__(self, tasks: TaskMoments, tuning: SharedSettings = DEFAULTS):
        self.tasks = tasks
        self.tuning = tuning
        self.unfinished = 0
        values, self.vectors = eigh(tasks.grams.sum(axis=0))
        self.values = np.maximum(values, 0.0)

    def solve(
        self, M: NDArray[np.float64], C: float, formulation: Formulation, start: NDArray[np.float64] | None = None
    ) -> NDArray[np.float64]:
        """Return the optimal W for M."""
        if M.shape[0] == M.shape[1] and np.array_equal(M, np.eye(len(M))):
            return self.independent(C)
        grams, member = self.tasks.grams, self.tasks.member
        right = self.tasks.cross @ M.T
        q, b = right.shape
        if q * b <= self.tuning.dense_unknowns:
            mixes = np.einsum("bl,gl,al->gba", M, member, M)
            system = sum(np.kron(gram, mix) for gram, mix in zip(grams, mixes, strict=True)) + np.eye(q * b) / C
            return solve_positive(system, right.ravel()).reshape(q, b)

        def apply(W: NDArray[np.float64]) -> NDArray[np.float64]:
            return self.tasks.apply(W @ M) @ M.T + W / C

        mixed, rotation = eigh(M * member.mean(axis=0) @ M.T)
        divisor = self.values[:, None] * np.maximum(mixed, 0.0) + 1.0 / C

        def precondition(residual: NDArray[np.float64]) -> NDArray[np.float64]:
            return self.vectors @ ((self.vectors.T @ residual @ rotation) / divisor) @ rotation.T

        tolerance = self.tuning.cg_tolerance * float(np.linalg.norm(right))
        solution, steps = conjugate_gradients(
            apply,
            precondition,
            right,
            start=start,
            tolerance=tolerance,
            max_steps=self.tuning.cg_steps,
            idle_steps=self.tuning.cg_idle,
        )
        self.unfinished += steps == self.tuning.cg_steps
        return solution

    def relation_terms(self, W: NDArray[np.float64]) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Return ``W'A_l'A_l W`` of every task and ``W'A'Y``."""
        by_group = W.T @ (self.tasks.grams @ W)
        return np.tensordot(self.tasks.member.T, by_group, axes=1), W.T @ self.tasks.cross

    def residual(
        self, W: NDArray[np.float64], M: NDArray[np.float64], C: float
    ) -> tuple[NDArray[np.float64], float]:
        """Return ``C A_l'(y_l - A_l W m_l)`` and ``<A'Y, W M>``, by tasks."""
        Z = W @ M
        return C * (self.tasks.cross - self.tasks.apply(Z)), float(np.vdot(self.tasks.cross, Z))

    def independent(self, C: float) -> NDArray[np.float64]:
        """Return the ridge solutions of the tasks, each on its own rows."""
        ridge = np.eye(len(self.values)) / C
        columns = [
            solve_positive(np.tensordot(member, self.tasks.grams, axes=1) + ridge, right)
            for member, right in zip(self.tasks.member.T, self.tasks.cross.T, strict=True)
        ]
        return np.column_stack(columns)

    def restore(self, W: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return W, which is in the coordinates of the data already."""
        return W
