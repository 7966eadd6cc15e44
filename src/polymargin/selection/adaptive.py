"""The search behind SparseSVCCV: folds, plain and adaptive paths over them, and the choice between models."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from sklearn.preprocessing import StandardScaler
from sklearn.utils.extmath import safe_sparse_dot

from polymargin.estimators.parts import Machine, TrainingSet, weights_from
from polymargin.problems.penalties import Penalty
from polymargin.problems.sparse import SparsePoint, SparseProblem
from polymargin.selection.progress import side_by_side
from polymargin.selection.spending import Budget, Share
from polymargin.solvers.contract import Settings, Solution
from polymargin.solvers.sparse.cutting_plane import CuttingPlanes, largest_penalty_weight
from polymargin.solvers.sparse.settings import DEFAULTS

ROUNDS = 3
"""Adaptive rounds of "rounds" and "auto"."""
TIE_MARGIN = 1e-8
"""Relative distance from a tie that is beyond the tolerances of HiGHS."""


def solve_path(
    problem: SparseProblem, Cs: NDArray[np.float64], settings: Settings, share: Share | None = None
) -> list[Solution[SparsePoint]]:
    """Solve for ascending C, each from the basis of the one before, while the share of a budget lasts."""
    solutions = []
    for solution in CuttingPlanes().path(problem, Cs, settings if share is None else share.within(settings)):
        solutions.append(solution)
        if share is not None:
            share.count(problem.X.shape[0])
            if share.is_spent:
                break
    return solutions


def grid_of(largest: float, fractions: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return C for fractions of the largest penalty weight; where no variable ever enters any C will do.

    At that weight itself the zero model ties with others: a hair above it is the only one.
    """
    return 1.0 / (fractions * (largest if largest > 0.0 else 1.0) * (1.0 + TIE_MARGIN))


@dataclass(frozen=True, slots=True)
class Fold:
    """Standardised training rows, stated as a machine, and what is left out for validation.

    Attributes
    ----------
    machine : the losses over the training rows.
    centre, scale : (p,) what standardised the variables.
    X : validation rows, standardised likewise.
    costs : (n, k) costs of predicting the classes for them.
    weights : (n,) their weights.
    """

    machine: Machine
    centre: NDArray[np.float64]
    scale: NDArray[np.float64]
    X: Any
    costs: NDArray[np.float64]
    weights: NDArray[np.float64]

    @classmethod
    def of(cls, train: TrainingSet, left_out: TrainingSet, loss: str, standardize: bool) -> "Fold":
        """Standardise by the training rows alone; sparse rows keep their zeros."""
        scaler = StandardScaler(with_mean=standardize and not sparse.issparse(train.X), with_std=standardize)
        # rounding may give a constant column a negative variance; scikit-learn takes its root, then leaves it be
        with np.errstate(invalid="ignore"):
            X = scaler.fit_transform(train.X.astype(np.float64), sample_weight=train.weights)
        nothing, ones = np.zeros(X.shape[1]), np.ones(X.shape[1])
        return cls(
            Machine.of(replace(train, X=X), loss),
            scaler.mean_ if scaler.with_mean else nothing,
            scaler.scale_ if standardize else ones,
            scaler.transform(left_out.X.astype(np.float64)) if len(left_out.labels) else None,
            left_out.unweighted_costs,
            left_out.weights,
        )

    def rescaled(
        self, coef: NDArray[np.float64], intercept: NDArray[np.float64]
    ) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Return coefficients and intercepts for variables as they were given; zeros and ties stay exact."""
        coef = coef / self.scale
        return coef, intercept - coef @ self.centre

    def validation_costs(self, coefs: NDArray[np.float64], intercepts: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return the cost of every validation row (rows) under every model (columns)."""
        rows = np.arange(len(self.weights))
        costs = np.empty((len(rows), len(coefs)))
        for model, (coef, intercept) in enumerate(zip(coefs, intercepts, strict=True)):
            if len(rows):
                scores = safe_sparse_dot(self.X, coef.T, dense_output=True) + intercept
                costs[:, model] = self.costs[rows, scores.argmax(axis=1)]
        return costs


@dataclass(frozen=True, slots=True)
class Run:
    """The models of one candidate on one fold: C, solution, coefficients over all variables, validation costs."""

    Cs: NDArray[np.float64]
    solutions: list[Solution[SparsePoint]]
    coefs: NDArray[np.float64]
    weights: NDArray[np.float64] | None
    costs: NDArray[np.float64]

    def first(self, n: int) -> "Run":
        """Return the models of the smallest C alone."""
        return replace(
            self, Cs=self.Cs[:n], solutions=self.solutions[:n], coefs=self.coefs[:n], costs=self.costs[:, :n]
        )


def initial_run(fold: Fold, Cs: NDArray[np.float64], settings: Settings, share: Share) -> Run:
    """Fit the l2 penalty for every C, while the share of a budget lasts."""
    share = share.begun()
    solutions = []
    for C in Cs:
        solutions.append(fold.machine.solve_l2(float(C), share.within(settings)))
        share.count(fold.machine.X.shape[0])
        if share.is_spent:
            break
    coefs = np.array([solution.point.coef for solution in solutions])
    return _validated(fold, Cs[: len(solutions)], solutions, coefs, None)


def path_run(
    fold: Fold,
    penalty: Penalty,
    weights: NDArray[np.float64] | None,
    fractions: NDArray[np.float64],
    settings: Settings,
    share: Share,
) -> Run:
    """Solve a path over the variables with finite weights, while the share of a budget lasts."""
    machine, share = fold.machine, share.begun()
    kept = np.arange(machine.X.shape[1]) if weights is None else np.flatnonzero(np.isfinite(weights[0]))
    penalty = penalty.restricted(kept) if weights is None else penalty.weighted(weights[:, kept])
    problem = SparseProblem(machine.X[:, kept], machine.losses, penalty)
    Cs = grid_of(largest_penalty_weight(problem), fractions)
    solutions = solve_path(problem, Cs, settings, share)
    Cs = Cs[: len(solutions)]
    coefs = np.zeros((len(Cs), machine.n_classes, machine.X.shape[1]))
    coefs[:, :, kept] = [solution.point.coef for solution in solutions]
    return _validated(fold, Cs, solutions, coefs, weights)


def _validated(
    fold: Fold,
    Cs: NDArray[np.float64],
    solutions: list[Solution[SparsePoint]],
    coefs: NDArray[np.float64],
    weights: NDArray[np.float64] | None,
) -> Run:
    intercepts = np.array([solution.point.intercept for solution in solutions])
    return Run(Cs, solutions, coefs, weights, fold.validation_costs(coefs, intercepts))


@dataclass(frozen=True, slots=True)
class Candidate:
    """One way to penalise, solved on every fold; the last run is the one over all training rows.

    Attributes
    ----------
    round : -1 for the l2 fits, 0 for the plain path, 1, 2, ... for adaptive rounds.
    runs : one per fold.
    costs, errors : mean validation cost of every model, and its standard error.
    """

    round: int
    runs: list[Run]
    costs: NDArray[np.float64]
    errors: NDArray[np.float64]

    @classmethod
    def of(cls, round: int, runs: list[Run], folds: list[Fold]) -> "Candidate":
        """Pool the validation rows of all folds, for the C that all of them reached."""
        reached = min(len(run.Cs) for run in runs)
        runs = [run.first(reached) for run in runs]
        weights = np.concatenate([fold.weights for fold in folds])
        costs = np.vstack([run.costs for run in runs])
        mean = weights @ costs / weights.sum()
        variance = weights @ (costs - mean) ** 2 / weights.sum()
        return cls(round, runs, mean, np.sqrt(variance / weights.sum()))

    @property
    def best(self) -> int:
        """Model of lowest cost, the sparsest of these."""
        return int(np.argmax(self.costs <= self.costs.min() + 1e-12))

    @property
    def passed_on(self) -> int:
        """Sparsest model within one standard error of the best; of the l2 fits the best."""
        if self.round < 0:
            return self.best
        lowest = int(np.argmin(self.costs))
        return int(np.argmax(self.costs <= self.costs[lowest] + self.errors[lowest]))


@dataclass(slots=True)
class AdaptiveSearch:
    """Solves candidates one after the other, each over all folds.

    Attributes
    ----------
    folds : the folds; the last one holds all training rows.
    penalty, power, per_variable : what the adaptive weights are.
    initial_Cs, fractions : grids of the l2 fits and, as fractions of the largest penalty weight, of the paths.
    budget, candidates_left : what may be spent, and by how many candidates.
    """

    folds: list[Fold]
    penalty: Penalty
    power: float
    per_variable: bool
    initial_Cs: NDArray[np.float64]
    fractions: NDArray[np.float64]
    settings: Settings
    budget: Budget
    n_jobs: int | None = None
    verbose: bool = False
    candidates_left: int = 1

    def initial(self) -> Candidate:
        """Fit the l2 penalty, to less accuracy where it only gives weights."""
        settings = self.settings
        if not self.penalty.squares:
            settings = replace(settings, tol=max(settings.tol, DEFAULTS.initial_tol))
        return self._over_folds(-1, initial_run, [(self.initial_Cs, settings) for _ in self.folds])

    def plain(self) -> Candidate:
        """Solve the path with all weights 1."""
        return self._path(0, [None for _ in self.folds])

    def after(self, previous: Candidate) -> Candidate:
        """Solve the path with weights from the model that the previous candidate passes on."""
        weights = []
        for run in previous.runs:
            coef = run.coefs[previous.passed_on]
            tau = weights_from(coef, self.penalty, power=self.power, per_variable=self.per_variable)
            tau /= tau.min()  # C is relative to where the first variable enters: a common factor means nothing
            used = coef.any(axis=0)
            weights.append(np.where(used, tau, np.inf) if used.any() else tau)
        return self._path(max(previous.round, 0) + 1, weights)

    def _path(self, round: int, weights: list[Any]) -> Candidate:
        arguments = [(self.penalty, tau, self.fractions, self.settings) for tau in weights]
        return self._over_folds(round, path_run, arguments)

    def _over_folds(self, round: int, run: Callable[..., Run], arguments: list[tuple]) -> Candidate:
        label = {-1: "l2 fits", 0: "plain path"}.get(round, f"round {round}")
        shares = self.budget.shares(len(self.folds), self.n_jobs, of=1.0 / self.candidates_left)
        self.candidates_left = max(self.candidates_left - 1, 1)
        parts = ((fold, *some, share) for fold, some, share in zip(self.folds, arguments, shares, strict=True))
        runs = list(side_by_side(run, parts, self.n_jobs, total=len(self.folds), label=label, shown=self.verbose))
        self.budget.count(
            sum(len(one.Cs) * fold.machine.X.shape[0] for one, fold in zip(runs, self.folds, strict=True))
        )
        return Candidate.of(round, runs, self.folds)
