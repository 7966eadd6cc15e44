"""Training rows and losses of the sparse classifiers: what a fit, a path and a search share."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from polymargin.checks import check_choice
from polymargin.estimators._base import TrainingSet
from polymargin.estimators.multicategory import check_costs_of_loss, hinge_losses
from polymargin.problems.hinge import PolyhedralLosses, polyhedral
from polymargin.problems.penalties import PENALTIES, Penalty, RidgePenalty, adaptive_weights
from polymargin.problems.penalties.contract import check_contract
from polymargin.problems.sparse import SparsePoint, SparseProblem
from polymargin.solvers.choice import chosen
from polymargin.solvers.contract import Observer, Settings, Solution, Solver
from polymargin.solvers.hinge.portfolio import Portfolio
from polymargin.solvers.sparse.cutting_plane import CuttingPlanes
from polymargin.solvers.sparse.squared_norm import SquaredNorm

METHODS: tuple[Solver, ...] = (SquaredNorm(Portfolio()), CuttingPlanes())
"""Solvers of the sparse machines, special ones first; the last accepts every problem."""


def named_penalty(penalty: Any) -> Any:
    """Return the penalty that a name stands for, an object as it is; raise for an unknown name."""
    if not isinstance(penalty, str):
        return penalty
    return PENALTIES[check_choice("penalty", penalty, tuple(PENALTIES))]


def name_of(penalty: Penalty) -> str:
    """Return a penalty's name for messages."""
    names = [repr(name) for name, known in PENALTIES.items() if known is penalty]
    return names[0] if names else type(penalty).__name__


def weights_from(
    coef: NDArray[np.float64], penalty: Penalty, *, power: float, per_variable: bool
) -> NDArray[np.float64]:
    """Return adaptive weights for a penalty from the coefficients (k, p) of an earlier fit."""
    return adaptive_weights(penalty.sizes(coef), power=power, per_variable=per_variable)


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
        check_costs_of_loss(loss, data)
        merged, group = data.merged()
        losses = polyhedral(hinge_losses(loss, merged.labels, merged.example_costs), "SparseSVC")
        return cls(merged.X.astype(np.float64, copy=False), losses, group, data.weights / merged.weights[group])

    @property
    def n_classes(self) -> int:
        """Number of classes."""
        return self.losses.n_classes

    def penalty(self, given: Any) -> Penalty:
        """Return the penalty of a name, or a user's own, which is refused if it breaks the contract."""
        if isinstance(given, str):
            return named_penalty(given)
        return check_contract(given, self.n_classes, self.X.shape[1])

    def problem(self, penalty: Penalty, C: float) -> SparseProblem:
        """State the problem with a penalty."""
        return SparseProblem(self.X, self.losses, penalty, float(C))

    @staticmethod
    def method(solver: Any, problem: SparseProblem) -> Solver:
        """Return the solver that a user asks for, for "auto" the first method that accepts the problem."""
        asked = chosen(solver, METHODS, problem)
        return next(method for method in METHODS if method.accepts(problem) is True) if asked is None else asked[0]

    def solve(
        self,
        penalty: Penalty,
        C: float,
        settings: Settings,
        *,
        solver: Any = "auto",
        observer: Observer | None = None,
    ) -> Solution[SparsePoint]:
        """Solve with a penalty."""
        problem = self.problem(penalty, C)
        return self.method(solver, problem).solve(problem, settings, observer=observer)

    def solve_l2(self, C: float, settings: Settings) -> Solution[SparsePoint]:
        """Solve with the penalty ``sum w^2``, for the sizes that adaptive weights come from."""
        return self.solve(RidgePenalty(), C, settings)

    def check_weighted(self, penalty: Penalty, adaptive: Any) -> None:
        """Refuse weights that the penalty cannot take."""
        if not penalty.takes_weights:
            raise ValueError(
                f"adaptive must be False with penalty={name_of(penalty)}, which has no weights, got {adaptive!r}."
            )

    def given_weights(self, penalty: Penalty, weights: Any) -> NDArray[np.float64]:
        """Check weights that a user gave."""
        k, p = self.n_classes, self.X.shape[1]
        shape = penalty.sizes(np.zeros((k, p))).shape
        try:
            tau = np.array(weights, dtype=np.float64)
        except (TypeError, ValueError, OverflowError):
            tau = np.array(np.nan)
        if tau.ndim == 0:
            raise TypeError(
                f"adaptive must be True, False, 'per_variable' or an array of weights, got {weights!r}."
            )
        if tau.shape != shape:
            raise ValueError(
                f"adaptive: weights for penalty={name_of(penalty)} with {k} classes and {p} variables must have "
                f"shape {shape}, got {tau.shape}."
            )
        usable = np.isfinite(tau) & (tau > 0)
        if not usable.all():
            raise ValueError(f"adaptive: weights must be positive and finite, got {tau[~usable][0]!s}.")
        return tau

    def spread(self, dual: NDArray[np.float64], rows: NDArray[np.intp], n_samples: int) -> NDArray[np.float64]:
        """Give every row of the user's data its part of the dual point; `rows` are those of positive weight."""
        spread = np.zeros((n_samples, self.n_classes))
        spread[rows] = self.share[:, None] * dual[self.group]
        return spread
