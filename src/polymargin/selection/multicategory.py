"""MarginSearch: C and the kernel width of MulticategorySVC from one fit per grid point."""

import time
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any, Literal, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone

from polymargin.checks import check_choice, check_positive_values, check_real, check_seed
from polymargin.estimators import steps
from polymargin.estimators.multicategory import MulticategorySVC, hinge_losses
from polymargin.estimators.parts import MarginClassifier, Scoring, TrainingSet, all_or_nothing
from polymargin.gram import (
    LARGEST_GAMMA,
    SMALLEST_GAMMA,
    FeatureGram,
    Gram,
    Kernel,
    NystroemMap,
    draw_landmarks,
    resolve_kernel,
    restricted,
)
from polymargin.problems.hinge import HingePoint, HingeProblem, Losses, polyhedral
from polymargin.selection.calibration import JUDGING_FOLDS, least_log_loss
from polymargin.selection.criteria import (
    gacv_value,
    is_singular,
    left_out_loss,
    smoothed_cost,
    warn_of_singular_kernel,
)
from polymargin.selection.folds import check_folds, folds_of
from polymargin.selection.left_out import check_two_rows, deal, smallest_class
from polymargin.selection.progress import side_by_side
from polymargin.selection.refinement import Place, Refinement
from polymargin.selection.results import copy_from, cv_results, keep_results
from polymargin.selection.spending import Budget, Share
from polymargin.solvers.contract import Settings, Solution, Status
from polymargin.solvers.hinge.kernel_interior import InsidePoint
from polymargin.solvers.hinge.left_out import frozen_left_out_scores, support_rows
from polymargin.solvers.hinge.left_out_refitted import refitted_left_out_scores
from polymargin.solvers.hinge.portfolio import Portfolio
from polymargin.solvers.trace import Trace, TraceRow

CRITERIA = ("cost", "loo", "log_loss", "gacv", "loo_exact")
LEFT_OUT_TOL, FOLDS_TOL = 1e-4, 1e-3
"""Gaps of grid points. At 1e-3 it is not settled which multipliers are at their bounds, which criteria of left-out
rows depend on."""
SMALL_GRID = 30
"""Points of a grid that is fitted whole unless asked otherwise."""
DEFAULT_CS = tuple(2.0**power for power in range(-6, 9, 2))
DEFAULT_WIDTHS = tuple(2.0**power for power in range(-3, 4))
"""Multiples of the width gamma="scale" that are searched where no gammas are given."""


class MarginSearch(MarginClassifier):
    """Search for C and the kernel width of a multicategory SVM, one fit per grid point.

    For every width the kernel matrix is computed once, and the fits go from the smallest C to the largest, each
    from the solution of the one before. Every fit yields what its rows would score and cost if they were left out,
    at little cost; the point where the criterion is least wins, ties going to the smaller C, then to the smaller
    gamma. Its fit is kept, so there is no refit.

    Rows that are left out leave with all their weight, and equal rows of one class leave together: otherwise the
    copy that stays would vouch for the one left out. A weight thus means repetition for the choice as well; not
    so with the folds of a cross-validation, which are drawn among rows.

    Grid points are solved to `search_tol` only, the winner then to the estimator's `tol`. Solutions
    that stay optimal at larger C, because no multiplier is at its bound, are reused.

    Parameters
    ----------
    estimator : MulticategorySVC or None, default=None
        The machine; its `C` and, where searched, its `gamma` are replaced. None for ``MulticategorySVC()``.
    Cs : array-like of shape (n_Cs,) or None, default=None
        Values of C; None for every other power of two from 2^-6 to 2^8.
    gammas : array-like of shape (n_gammas,) or None, default=None
        Kernel widths; None for 2^-3 to 2^3 times "scale" where the kernel is rbf or laplacian, and for the
        estimator's own otherwise.
    criterion : {"cost", "loo", "log_loss", "gacv", "loo_exact"}, int, CV splitter or iterable, default="cost"
        "cost": misclassification cost (without costs the error rate) of left-out rows, a row that is nearly
        decided otherwise counting in part. "loo": leave-one-out loss, `polymargin.loo`. "log_loss": the log loss
        of the probabilities that `ProbabilityClassifier` makes of left-out scores, the best choice for
        probabilities and for decisions by them, as under costs. These three take the scores of left-out rows with
        the active set frozen. "gacv": (28) of Lee et al., `polymargin.gacv`. "loo_exact": the leave-one-out loss
        by as many refits as there are support vectors. Otherwise the misclassification cost over the folds of a
        cross-validation, given as in scikit-learn.
    exhaustive : bool or "auto", default="auto"
        Whether every point of the grid is fitted; "auto": on grids of up to 30 points, with a single C or with a
        single width. Otherwise, where neither folds nor a budget are given, a coarse grid is fitted first, whose
        neighbours are about a factor of 16 in C and of 8 in gamma apart, half of that from the ends, and then the
        neighbours of the best point at half these steps, and so on until no neighbour on the grid is better.
    search_tol : float, "auto" or None, default="auto"
        Relative duality gap to which grid points are solved. "auto": 1e-3 for folds; 1e-4 for the other criteria,
        which depend on the multipliers at their bounds; None for the estimator's `tol`.
    budget : str, int, float or None, default=None
        What the search may take: seconds, given as "60s", "5m" or "1h", or a number of training rows given to all
        fits together. Every width gets an equal part, from the smallest C up; the best grid point that was
        reached is then solved within the rest. None searches the whole grid.
    n_jobs : int or None, default=None
        Widths searched side by side.
    verbose : bool, default=False
        Log how far it is, to the logger "polymargin".

    Attributes
    ----------
    best_estimator_ : MulticategorySVC
        The fitted winner; `intercept_`, `certificate_` and the rest of how it was found are its own.
    best_params_ : dict
        Its C and gamma.
    best_score_ : float
        Minus the criterion there: of scores more is better.
    best_index_ : int
        Its place in `cv_results_`.
    cv_results_ : dict of ndarrays, one entry per grid point that was fitted
        "params", "param_C", "param_gamma", "mean_test_score" (minus the criterion), "rank_test_score" (1 for the
        best); "criterion", "error" (left-out error rate, or cost over the folds), "cost", "loo", "log_loss"
        (where it is the criterion), "gacv" (for "lee"), "n_support", "gap" and "seconds".
    classes_ : ndarray of shape (n_classes,)
    n_features_in_ : int
    feature_names_in_ : ndarray of shape (`n_features_in_`,)

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from polymargin import MarginSearch
    >>> X, y = load_iris(return_X_y=True)
    >>> search = MarginSearch(Cs=[0.1, 1.0, 10.0], gammas=[0.1, 1.0]).fit(X, y)
    >>> len(search.cv_results_["params"]), search.score(X, y) > 0.95
    (6, True)
    """

    def __init__(
        self,
        estimator: Any = None,
        *,
        Cs: Any = None,
        gammas: Any = None,
        criterion: Any = "cost",
        exhaustive: bool | Literal["auto"] = "auto",
        search_tol: float | Literal["auto"] | None = "auto",
        budget: str | float | None = None,
        n_jobs: int | None = None,
        verbose: bool = False,
    ) -> None:
        self.estimator = estimator
        self.Cs = Cs
        self.gammas = gammas
        self.criterion = criterion
        self.exhaustive = exhaustive
        self.search_tol = search_tol
        self.budget = budget
        self.n_jobs = n_jobs
        self.verbose = verbose

    @all_or_nothing
    def fit(self, X: Any, y: Any, sample_weight: Any = None, *, costs: Any = None) -> Self:
        """Search the grid.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
        y : array-like of shape (n_samples,)
        sample_weight : array-like of shape (n_samples,) or None, default=None
        costs : array-like or DataFrame of shape (n_samples, n_classes) or None, default=None
            What predicting each class would cost each row, as in `MulticategorySVC.fit`; counted by the criterion
            too.

        Returns
        -------
        self
        """
        budget = Budget.given(self.budget)
        machine = MulticategorySVC() if self.estimator is None else clone(self.estimator)
        if not isinstance(machine, MulticategorySVC):
            raise TypeError(f"estimator must be a MulticategorySVC, got {self.estimator!r}.")
        if machine.loss not in ("lee", "weston", "crammer"):
            raise ValueError(
                "MarginSearch needs loss='lee', 'weston' or 'crammer', for which one fit tells the left-out "
                f"scores, got loss={machine.loss!r}; sklearn.model_selection.GridSearchCV takes any loss."
            )
        if isinstance(self.criterion, str):
            check_choice("criterion", self.criterion, CRITERIA)
            if self.criterion == "gacv" and machine.loss != "lee":
                raise ValueError(f"criterion='gacv' is defined for loss='lee' alone, got loss={machine.loss!r}.")
        else:
            check_folds("criterion", self.criterion)
        is_auto = isinstance(self.exhaustive, str) and self.exhaustive == "auto"
        if not (is_auto or isinstance(self.exhaustive, (bool, np.bool_))):
            raise ValueError(f"exhaustive must be True, False or 'auto', got {self.exhaustive!r}.")
        Cs = np.unique(check_positive_values("Cs", DEFAULT_CS if self.Cs is None else self.Cs))
        search_tol = self.search_tol
        if isinstance(search_tol, str) and search_tol == "auto":
            search_tol = LEFT_OUT_TOL if isinstance(self.criterion, str) else FOLDS_TOL
        if search_tol is not None:
            check_real("search_tol", search_tol, above=0.0)
        settings, data = steps.prepare(machine, X, y, sample_weight, costs)
        if isinstance(self.criterion, str):
            data, _ = data.merged(pairwise=steps.is_pairwise(machine))
        coarse = settings
        if search_tol is not None:
            coarse = replace(settings, tol=max(settings.tol, float(search_tol)))
        if self.criterion == "log_loss":
            check_two_rows(np.arange(data.n_rows), data.labels, data.classes)
        grid = _Grid(machine, data, self.criterion, Cs, coarse)
        kernels = self._kernels(machine, data)
        widths = self._searched(grid, kernels, budget)
        results = _table([entry for at in sorted(widths) for _, entry in sorted(widths[at].entries.items())])
        if self.criterion == "gacv" and any(width.singular for width in widths.values()):
            warn_of_singular_kernel()
        best = min(widths, key=lambda at: (widths[at].rank, kernels[at].gamma))
        winner = self._winner(machine, data, kernels[best], widths[best], budget.last(settings))
        keep_results(self, results, winner)
        copy_from(self, winner)
        return self

    def _kernels(self, machine: MulticategorySVC, data: TrainingSet) -> list[Kernel]:
        """Resolve the widths to search."""
        has_width = machine.kernel in ("rbf", "laplacian", "poly", "sigmoid")
        if self.gammas is not None:
            if not has_width:
                raise ValueError(f"gammas must be None with kernel={machine.kernel!r}, which has no width.")
            gammas: Any = check_positive_values(
                "gammas", self.gammas, at_least=SMALLEST_GAMMA, at_most=LARGEST_GAMMA
            )
        elif machine.kernel in ("rbf", "laplacian"):
            scale = resolve_kernel(machine.kernel, "scale", 3, 0.0, data.X, data.weights).gamma
            gammas = scale * np.array(DEFAULT_WIDTHS)
        else:
            gammas = [machine.gamma]
        return [
            resolve_kernel(machine.kernel, gamma, machine.degree, machine.coef0, data.X, data.weights)
            for gamma in gammas
        ]

    def _searched(self, grid: "_Grid", kernels: list[Kernel], budget: Budget) -> dict[int, "_Width"]:
        """Search the grid round by round; return what came out for every width that was looked at."""
        order = sorted(range(len(kernels)), key=lambda at: kernels[at].gamma)
        gammas = np.array([kernels[at].gamma for at in order])
        exhaustive = self.exhaustive
        if exhaustive == "auto":
            exhaustive = min(len(gammas), len(grid.Cs)) == 1 or len(gammas) * len(grid.Cs) <= SMALL_GRID
        # a budget is divided beforehand, and folds are too noisy to be told from few of them
        at_once = exhaustive or self.budget is not None or not isinstance(self.criterion, str)
        refinement = Refinement(gammas, grid.Cs, *([(1.0, 1.0)] if at_once else []))
        widths: dict[int, _Width] = {}
        places = refinement.first()
        while places:
            wanted: dict[int, list[float]] = {}
            for width, C in places:
                wanted.setdefault(order[width], []).append(float(grid.Cs[C]))
            some = sorted(wanted)
            arguments = (
                (kernels[at], wanted[at], share, widths.get(at))
                for at, share in zip(some, budget.shares(len(some), self.n_jobs), strict=True)
            )
            found = side_by_side(
                grid.search_width,
                arguments,
                self.n_jobs,
                total=len(some),
                label="kernel widths",
                shown=bool(self.verbose),
            )
            widths |= dict(zip(some, found, strict=True))
            places = [] if at_once else refinement.next(_values(widths, order, grid.Cs))
        return widths

    def _winner(
        self, machine: MulticategorySVC, data: TrainingSet, kernel: Kernel, width: "_Width", settings: Settings
    ) -> MulticategorySVC:
        """Solve for the winner to the tolerance of a fit, and store it as if it had been fitted by itself."""
        winner = machine.set_params(C=width.entry["C"], gamma=kernel.gamma)
        losses = hinge_losses(winner.loss, data.labels, winner.C * data.example_costs)
        problem = HingeProblem(steps.gram(winner, kernel, data.X, width.nystroem), losses, winner.fit_intercept)
        solution = Portfolio(winner.solver).solve(problem, settings, start=width.point)
        steps.store(winner, data, kernel, width.nystroem, problem, solution.point)
        steps.conclude(winner, solution, settings.tol)
        return winner

    def _is_pairwise(self) -> bool:
        return self.estimator is not None and steps.is_pairwise(self.estimator)

    def _scoring(self) -> Scoring:
        return steps.scoring(self.best_estimator_)


def _values(widths: dict[int, "_Width"], order: list[int], Cs: NDArray[np.float64]) -> dict[Place, float]:
    """Return the criterion at every place that was looked at, the widths in their `order`."""
    return {
        (place, int(np.searchsorted(Cs, C))): entry["criterion"]
        for place, at in enumerate(order)
        if at in widths
        for C, entry in widths[at].entries.items()
    }


def _table(entries: list[dict[str, float]]) -> dict[str, Any]:
    """Return the results; the least criterion is best, ties going to the smaller C, then to the smaller gamma."""
    columns = {name: np.array([entry[name] for entry in entries]) for name in entries[0]}
    params = [{"C": entry["C"], "gamma": entry["gamma"]} for entry in entries]
    order = np.lexsort((columns.pop("gamma"), columns.pop("C"), columns["criterion"]))
    return cv_results(params, -columns["criterion"], order, columns)


@dataclass(frozen=True, slots=True)
class _Width:
    """What came out for one kernel width: a result and a solution for every C that was looked at."""

    entries: dict[float, dict[str, float]]
    solutions: dict[float, Solution[HingePoint]]
    nystroem: NystroemMap | None
    singular: bool

    @property
    def entry(self) -> dict[str, float]:
        """The best result."""
        return min(self.entries.values(), key=lambda entry: (entry["criterion"], entry["C"]))

    @property
    def point(self) -> HingePoint:
        """The point of the best result."""
        return self.solutions[self.entry["C"]].point

    @property
    def rank(self) -> tuple[float, float]:
        """What the best width has least of."""
        return self.entry["criterion"], self.entry["C"]


@dataclass(frozen=True, slots=True)
class _Grid:
    """The grid search over C for any kernel width."""

    machine: MulticategorySVC
    data: TrainingSet
    criterion: Any
    Cs: NDArray[np.float64]
    settings: Settings

    def search_width(self, kernel: Kernel, Cs: list[float], share: Share, before: _Width | None) -> _Width:
        """Fit some values of C, from the smallest up, on one kernel matrix, while its share of the budget lasts.

        `before` is what came out for other values.
        """
        data, share = self.data, share.begun()
        nystroem = self._landmarks(kernel) if before is None else before.nystroem
        gram = steps.gram(self.machine, kernel, data.X, nystroem)
        fold_costs = None if isinstance(self.criterion, str) else self._cross_validate(gram, share)
        entries = {} if before is None else dict(before.entries)
        solutions = {} if before is None else dict(before.solutions)
        Cs = Cs if fold_costs is None else Cs[: len(fold_costs)]
        everyone = np.arange(len(data.labels))
        for at, (C, problem, solution) in enumerate(self._path(gram, everyone, Cs, share, solutions)):
            started = time.perf_counter()
            smaller = _next_below(C, solutions)
            if smaller is not None and solution.point is solutions[smaller].point:
                entry = entries[smaller] | {"C": C}
            else:
                entry = self._measure(C, problem, solution.point)
            entry["gamma"] = kernel.gamma
            entry["gap"] = solution.certificate.gap
            if fold_costs is not None:
                entry["criterion"] = entry["error"] = fold_costs[at]
            entry["seconds"] = solution.seconds + time.perf_counter() - started
            entries[C], solutions[C] = entry, solution
            if fold_costs is None and share.is_spent:
                break
        singular = before.singular if before is not None else self.criterion == "gacv" and is_singular(problem)
        return _Width(entries, solutions, nystroem, singular)

    def _landmarks(self, kernel: Kernel) -> NystroemMap | None:
        """Draw the landmarks of a width."""
        machine, data = self.machine, self.data
        if machine.landmarks is None:
            return None
        rng = check_seed("random_state", machine.random_state)
        drawn = draw_landmarks(machine.landmarks, data.X, data.labels, rng, weights=data.weights)
        return NystroemMap(kernel, drawn)

    def _path(
        self,
        gram: Gram,
        rows: NDArray[np.intp],
        Cs: Iterable[float],
        share: Share,
        known: Mapping[float, Solution[HingePoint]],
    ) -> Iterator[tuple[float, HingeProblem, Solution[HingePoint]]]:
        """Solve for every C on the training rows `rows`, whose kernel is `gram`, each fit from that below it.

        A point that is still within the tolerance at the next C is kept as it is. Once no multiplier is at its
        bound the solution is one for every larger C, so that it is worth solving for the largest at once.
        """
        costs, labels = self.data.example_costs[rows], self.data.labels[rows]
        solved = dict(known)
        for C in map(float, Cs):
            losses = hinge_losses(self.machine.loss, labels, C * costs)
            problem = HingeProblem(gram, losses, self.machine.fit_intercept)
            smaller = _next_below(C, solved)
            solution = None if smaller is None else _kept(problem, solved[smaller].point, self.settings)
            if solution is None:
                start = None if smaller is None else _enlarged(problem, solved[smaller], C / smaller)
                solution = self._solved(problem, C, start, share.within(self.settings))
                share.count(len(rows))
            solved[C] = solution
            yield C, problem, solution

    def _solved(
        self, problem: HingeProblem, C: float, start: HingePoint | None, settings: Settings
    ) -> Solution[HingePoint]:
        """Solve for one C, and for all larger ones at once if no multiplier is at its bound."""
        solver = Portfolio()
        solution = solver.solve(problem, settings, start=start)
        if not _is_inside(problem.losses, solution.point):
            return solution
        tight = replace(settings, tol=settings.tol * C / float(self.Cs[-1]))
        tighter = solver.solve(problem, tight, start=solution.point)
        return replace(tighter, seconds=solution.seconds + tighter.seconds)

    def _measure(self, C: float, problem: HingeProblem, point: HingePoint) -> dict[str, float]:
        """Compute every criterion that one fit yields."""
        data, n = self.data, len(self.data.labels)
        R = problem.coefficients(point.dual)
        fitted = problem.gram.matmul(problem.model(point)) + point.intercept
        scores = frozen_left_out_scores(problem, point, scores=fitted)
        entry = {"C": C, "loo": left_out_loss(problem, scores, C, n)}
        entry["cost"] = smoothed_cost(scores, data.labels, data.weights, data.example_costs)
        if self.machine.loss == "lee":
            entry["gacv"] = gacv_value(problem, point, C, n, fitted)
        if self.criterion == "log_loss":
            entry["log_loss"] = self._log_loss(scores)
        if self.criterion == "loo_exact":
            used = np.flatnonzero(R.any(axis=1))
            scores[used] = refitted_left_out_scores(problem, point, used, self.settings)
            entry["loo_exact"] = left_out_loss(problem, scores, C, n)
        entry["criterion"] = entry[self.criterion] if isinstance(self.criterion, str) else np.nan
        wrong = scores.argmax(axis=1) != data.labels
        entry["error"] = float(data.weights @ wrong / data.weights.sum())
        entry["n_support"] = float(len(support_rows(problem, point)))
        return entry

    def _log_loss(self, scores: NDArray[np.float64]) -> float:
        """Return the log loss of the probabilities that left-out scores allow, over folds of the rows."""
        everyone, labels = np.arange(len(scores)), self.data.labels
        folds = deal(everyone, labels, min(JUDGING_FOLDS, smallest_class(everyone, labels)))
        return least_log_loss(scores, labels, self.data.weights, folds)

    def _cross_validate(self, gram: Gram, share: Share) -> NDArray[np.float64]:
        """Return the mean cost of the left-out folds for every C, or for the smallest that all folds reached."""
        data = self.data
        folds = folds_of("criterion", self.criterion, data.X, data.labels)
        costs = np.zeros(len(self.Cs))
        for number, (train, test) in enumerate(folds):
            part = share.part(len(folds) - number)
            everywhere = np.zeros((gram.n, data.n_classes))
            path = self._path(restricted(gram, train), train, self.Cs[: len(costs)], part, {})
            for at, (_, problem, solution) in enumerate(path):
                everywhere[train] = problem.model(solution.point)
                scores = scores_at(gram, test, everywhere) + solution.point.intercept
                costs[at] += data.example_costs[test, scores.argmax(axis=1)].sum()
                if part.is_spent:
                    costs = costs[: at + 1]
                    break
            share.count(part.counted)
        return costs / sum(data.weights[test].sum() for _, test in folds)


def _next_below(C: float, solved: Mapping[float, object]) -> float | None:
    """Return the largest C of those solved that is smaller."""
    return max((other for other in solved if other < C), default=None)


def scores_at(gram: Gram, rows: NDArray[np.intp], R: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return some rows of the kernel's product with the coefficients R (n, k)."""
    if isinstance(gram, FeatureGram):
        return np.asarray(gram.features[rows] @ (gram.features.T @ R), dtype=np.float64)
    used = np.flatnonzero(R.any(axis=1))
    return gram.block(rows, used) @ R[used]


def _kept(problem: HingeProblem, point: HingePoint, settings: Settings) -> Solution[HingePoint] | None:
    """Return the solution at a smaller C, if it is one at this C too."""
    started = time.perf_counter()
    certificate = problem.certify(point)
    if not certificate.within(settings.tol):
        return None
    trace = Trace((TraceRow("reused", 0, certificate.primal, certificate.dual),))
    return Solution(point, Status.SOLVED, certificate, 0, time.perf_counter() - started, trace=trace)


def _enlarged(problem: HingeProblem, solution: Solution[HingePoint], growth: float) -> HingePoint:
    """Return the best multiple, up to `growth`, of a solution at a C that was smaller by that factor.

    Along multiples s of the coefficients the dual is ``s linear - s^2/2 ||W||^2``. Multipliers at their bounds ask
    for all of the growth; where none is, the best multiple is one.
    """
    losses, dual = polyhedral(problem.losses, "A start from a smaller C"), solution.point.dual
    if isinstance(solution.point, InsidePoint):
        return solution.point
    linear = losses.dual_value(dual)
    squared_norm = 2.0 * (linear - solution.certificate.dual)
    factor = growth if squared_norm <= 0.0 else min(growth, max(1.0, linear / squared_norm))
    return HingePoint(losses.enlarged(dual, factor), solution.point.intercept)


def _is_inside(losses: Losses, point: HingePoint) -> bool:
    """Tell whether a solution is clearly within its bounds."""
    return polyhedral(losses, "A path of C").clearly_inside(point.dual)
