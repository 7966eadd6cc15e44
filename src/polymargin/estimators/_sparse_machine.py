"""Training rows and losses of the sparse classifiers: what a fit, a path and a search share."""

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import scipy.linalg
from numpy.typing import NDArray
from scipy import sparse
from sklearn.utils.extmath import safe_sparse_dot

from polymargin.coding import class_pairs
from polymargin.estimators._base import TrainingSet
from polymargin.estimators.multicategory import check_costs_of_loss, hinge_losses, solver_for
from polymargin.gram import FeatureGram
from polymargin.problems.certificate import Certificate
from polymargin.problems.hinge import HingeProblem, PolyhedralLosses, polyhedral
from polymargin.problems.penalties import (
    MAX_CLASSES_OF_WEIGHTED_FUSION,
    FusionPenalty,
    LassoPenalty,
    Penalty,
    SupnormPenalty,
    adaptive_weights,
    pair_differences,
)
from polymargin.problems.sparse import SparsePoint, SparseProblem
from polymargin.solvers.contract import Observer, Settings, Solution

INITIAL_TOL = 1e-6
"""Gap to which initial fits, which only give weights, are solved."""


def weights_from(
    coef: NDArray[np.float64], penalty: str, *, power: float, per_variable: bool
) -> NDArray[np.float64]:
    """Return adaptive weights for a penalty from the coefficients (k, p) of an earlier fit."""
    sizes = pair_differences(coef) if penalty == "fusion" else np.abs(coef)
    return adaptive_weights(sizes, power=power, per_variable=per_variable)


@dataclass(frozen=True, slots=True)
class Machine:
    """Training rows, repeated ones merged, and a loss over them: what a fit, a path and a search share.

    Merging makes weights equal repetition to the last bit and the fit independent of the order of the rows, also
    where the linear program has many solutions.

    Attributes
    ----------
    X, losses : distinct rows and the loss over them, without C.
    group : (n,) the distinct row that every training row is.
    share : (n,) the part of its weight that a training row contributes.
    """

    X: Any
    losses: PolyhedralLosses
    group: NDArray[np.intp]
    share: NDArray[np.float64]

    @classmethod
    def of(cls, data: TrainingSet, loss: str) -> "Machine":
        """Merge the rows of a training set that are equal in all variables and the class."""
        check_costs_of_loss(loss, data.costs)
        merged, group = data.merged()
        losses = polyhedral(hinge_losses(loss, merged.labels, merged.example_costs), "SparseSVC")
        return cls(merged.X.astype(np.float64), losses, group, data.weights / merged.weights[group])

    @property
    def n_classes(self) -> int:
        """Number of classes."""
        return self.losses.n_classes

    def problem(self, penalty: str, weights: NDArray[np.float64] | None, C: float) -> SparseProblem:
        """State the problem with a penalty of the given weights."""
        shape = (self.n_classes, self.X.shape[1])
        stated: Penalty
        match penalty:
            case "fusion":
                stated = FusionPenalty(weights)
            case "supnorm":
                stated = SupnormPenalty(np.ones(shape) if weights is None else weights)
            case _:
                stated = LassoPenalty(np.ones(shape) if weights is None else weights)
        return SparseProblem(self.X, self.losses, stated, C)

    def check_weighted(self, penalty: str) -> None:
        """Refuse weights that the penalty's polar cannot take."""
        if penalty == "fusion" and self.n_classes > MAX_CLASSES_OF_WEIGHTED_FUSION:
            raise ValueError(
                f"penalty='fusion' with weights takes at most {MAX_CLASSES_OF_WEIGHTED_FUSION} classes, got "
                f"{self.n_classes}; use adaptive=False, or penalty='supnorm' or 'l1'."
            )

    def given_weights(self, penalty: str, weights: Any) -> NDArray[np.float64]:
        """Check weights that a user gave."""
        k, p = self.n_classes, self.X.shape[1]
        shape = (len(class_pairs(k)) if penalty == "fusion" else k, p)
        try:
            tau = np.array(weights, dtype=np.float64)
        except (TypeError, ValueError):
            tau = np.array(np.nan)
        if tau.ndim == 0:
            raise TypeError(
                f"adaptive must be True, False, 'per_variable' or an array of weights, got {weights!r}."
            )
        if tau.shape != shape:
            raise ValueError(
                f"adaptive: weights for penalty={penalty!r} with {k} classes and {p} variables must have shape "
                f"{shape}, got {tau.shape}."
            )
        usable = np.isfinite(tau) & (tau > 0)
        if not usable.all():
            raise ValueError(f"adaptive: weights must be positive and finite, got {tau[~usable][0]!s}.")
        return tau

    def solve_l2(self, C: float, settings: Settings, *, observer: Observer | None = None) -> Solution[SparsePoint]:
        """Solve with the penalty ``sum w^2``: twice the hinge machine with C/2.

        Only inner products of rows matter, so with p > n the rows are first rotated into n dimensions.
        """
        n, p = self.X.shape
        rotated = self.X
        if p > n and not sparse.issparse(self.X):
            rotated = scipy.linalg.qr(self.X.T, mode="r")[0][:n].T
        problem = HingeProblem(FeatureGram(rotated), self.losses.scaled(C / 2))
        # the gap is relative to max(1, primal), and doubling the problem may double it
        found = solver_for(problem).solve(problem, replace(settings, tol=settings.tol / 2), observer=observer)
        problem = HingeProblem(FeatureGram(self.X), problem.losses)
        half = problem.certify(found.point)
        coef = safe_sparse_dot(problem.coefficients(found.point.dual).T, self.X, dense_output=True)
        return Solution(
            SparsePoint(coef, found.point.intercept, found.point.dual / (C / 2)),
            found.status,
            Certificate.of(2 * half.primal, 2 * half.dual, infeasibility=half.infeasibility),
            found.n_iter,
            found.seconds,
            trace=found.trace.scaled(2.0),
        )

    def spread(self, dual: NDArray[np.float64], rows: NDArray[np.intp], n_samples: int) -> NDArray[np.float64]:
        """Give every row of the user's data its part of the dual point; `rows` are those of positive weight."""
        spread = np.zeros((n_samples, self.n_classes))
        spread[rows] = self.share[:, None] * dual[self.group]
        return spread
