"""RobustSearch: C, the kernel width and the truncation of RobustSVC by the utility of left-out folds."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone
from sklearn.utils.validation import _num_samples, column_or_1d

from polymargin.checks import check_positive_values, check_real, check_seed
from polymargin.estimators import steps
from polymargin.estimators.parts import MarginClassifier, Scoring, TrainingSet, all_or_nothing
from polymargin.estimators.robust import RobustSVC, utility_of_rows
from polymargin.gram import (
    LARGEST_GAMMA,
    SMALLEST_GAMMA,
    Gram,
    Kernel,
    NystroemMap,
    draw_landmarks,
    resolve_kernel,
    restricted,
)
from polymargin.problems.robust import RobustPoint, RobustProblem
from polymargin.selection.folds import folds_of
from polymargin.selection.multicategory import DEFAULT_WIDTHS, scores_at
from polymargin.selection.progress import side_by_side
from polymargin.selection.results import copy_from, cv_results, keep_results
from polymargin.selection.spending import Budget, Share
from polymargin.solvers.contract import Settings, Solution
from polymargin.solvers.robust.dc import DCAlgorithm, convex_solver

LAST_DESCENT = 0.3
"""Descent of a step of the folds that is the last, as a share of their tolerance."""

DEFAULT_CS = tuple(2.0**power for power in range(-6, 7, 2))


class RobustSearch(MarginClassifier):
    """Search for C, the kernel width and the truncation of a robust SVM, by the utility of left-out folds.

    Within a fold the fits go from the smallest C to the largest, each a DC algorithm from the scores of the one
    before, to `search_tol`. The winner is fitted to all rows from all its starts, to its own `tol`.

    Rows are left out by folds alone, not one by one with the active set frozen as in `MarginSearch`: without a row
    the DC algorithm may end at another tangent, and the few free multipliers of linear machines pin all scores:
    a utility from one fit can differ from that of refits by more than one setting from another.

    Parameters
    ----------
    estimator : RobustSVC or None, default=None
        The machine; its `C` and, where searched, its `gamma` and `truncation` are replaced. None for
        ``RobustSVC()``.
    Cs : array-like of shape (n_Cs,) or None, default=None
        Values of C; None for every other power of two from 2^-6 to 2^6.
    gammas : array-like of shape (n_gammas,) or None, default=None
        Kernel widths; None for 2^-3 to 2^3 times "scale" where the kernel is rbf or laplacian, and for the
        estimator's own otherwise.
    truncations : sequence of "auto" and floats, or None, default=None
        Truncations; None for the estimator's own.
    cv : int, CV splitter or iterable, default=5
        The folds, as in scikit-learn.
    search_tol : float or None, default=1e-2
        Relative gap to which the folds are solved; their DC algorithms end with the first step of a relative
        descent below a part of it. None for the estimator's `tol`.
    budget : str, int, float or None, default=None
        What the search may take: seconds, given as "60s", "5m" or "1h", or a number of training rows given to all
        fits together. Every fold of every width gets an equal part, from the smallest C up; what all folds of a
        width have tried counts. None tries the whole grid.
    n_jobs : int or None, default=None
        Folds of a width searched side by side.
    verbose : bool, default=False
        Log how many folds are done.

    Attributes
    ----------
    best_estimator_ : RobustSVC
        The fitted winner; `intercept_`, `certificate_` and the rest of how it was found are its own.
    best_params_ : dict
        Its C, gamma and truncation.
    best_score_ : float
        Mean utility of its predictions over the folds.
    best_index_ : int
        Its place in `cv_results_`.
    cv_results_ : dict of ndarrays, one entry per grid point
        "params", "param_C", "param_gamma", "param_truncation", "mean_test_score" (the mean utility),
        "rank_test_score" (1 for the best; ties go to the smaller C, then to the smaller gamma, then to the
        truncation given first) and "std_test_score", over the folds.
    classes_ : ndarray of shape (n_classes,)
    n_features_in_ : int
    feature_names_in_ : ndarray of shape (`n_features_in_`,)

    Examples
    --------
    >>> from polymargin import RobustSearch, RobustSVC
    >>> from polymargin.datasets import make_triangle
    >>> sample = make_triangle(flip=0.15, random_state=0)
    >>> search = RobustSearch(RobustSVC(utility={(0, 1): 0.4}), Cs=[0.01, 0.1, 1.0])
    >>> search.fit(sample.data, sample.target).best_estimator_.certificate_.kind
    'stationary'
    """

    _why_in_memory = "its folds are drawn among rows in memory"

    def __init__(
        self,
        estimator=None,
        *,
        Cs=None,
        gammas=None,
        truncations=None,
        cv=5,
        search_tol=1e-2,
        budget=None,
        n_jobs=None,
        verbose=False,
    ):
        self.estimator = estimator
        self.Cs = Cs
        self.gammas = gammas
        self.truncations = truncations
        self.cv = cv
        self.search_tol = search_tol
        self.budget = budget
        self.n_jobs = n_jobs
        self.verbose = verbose

    @all_or_nothing
    def fit(self, X: Any, y: Any, sample_weight: Any = None, *, costs: Any = None) -> "RobustSearch":
        """Search the grid, and fit the winner to all rows.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
        y : array-like of shape (n_samples,)
        sample_weight : array-like of shape (n_samples,) or None, default=None
            Weights, in training and in judging.
        costs : array-like or DataFrame of shape (n_samples, n_classes) or None, default=None
            What predicting each class would cost each row, as in `RobustSVC.fit`; judged by, too.

        Returns
        -------
        self
        """
        budget = Budget.given(self.budget)
        machine = RobustSVC() if self.estimator is None else clone(self.estimator)
        if not isinstance(machine, RobustSVC):
            raise TypeError(f"estimator must be a RobustSVC, got {self.estimator!r}.")
        Cs = np.sort(check_positive_values("Cs", DEFAULT_CS if self.Cs is None else self.Cs))
        if self.search_tol is not None:
            check_real("search_tol", self.search_tol, above=0.0)
        choices = self._truncations(machine)
        settings = steps.check_arguments(machine)
        data = steps.training_set(machine, X, y, sample_weight, costs=costs)
        utility = utility_of_rows(
            data, None if costs is not None else steps.utilities(machine, data), machine.conversion
        )
        truncations = [steps.truncation(clone(machine).set_params(truncation=s), data.n_classes) for s in choices]
        if self.search_tol is not None:
            settings = replace(settings, tol=max(settings.tol, float(self.search_tol)))
        grid = _Grid(machine, data, utility, Cs, truncations, settings)
        folds = self._folds(data, y, _num_samples(X))
        kernels = self._kernels(machine, data)
        parts = [(kernel, *fold) for kernel in kernels for fold in folds]
        shares = budget.shares(len(parts), self.n_jobs)
        arguments = ((*part, share) for part, share in zip(parts, shares, strict=True))
        found = side_by_side(
            grid.judge, arguments, self.n_jobs, total=len(parts), label="folds", shown=bool(self.verbose)
        )
        weights = np.array([data.weights[test].sum() for _, test in folds])
        totals = np.array(list(found)).reshape(len(kernels), len(folds), len(Cs), len(truncations))
        results = _table(totals, weights, Cs, [kernel.gamma for kernel in kernels], choices)
        best = results["params"][int(np.argmin(results["rank_test_score"]))]
        winner = self._fitted(machine.set_params(**best), budget, X, y, sample_weight, costs)
        keep_results(self, results, winner)
        copy_from(self, winner)
        return self

    def _fitted(
        self, winner: RobustSVC, budget: Budget, X: Any, y: Any, sample_weight: Any, costs: Any
    ) -> RobustSVC:
        """Fit the winner to all rows within what is left."""
        own = winner.time_limit
        winner.time_limit = budget.limit(own)
        winner.fit(X, y, sample_weight, costs=costs)
        winner.time_limit = own
        return winner

    def _folds(self, data: TrainingSet, y: Any, n_samples: int) -> list[tuple[NDArray[np.intp], NDArray[np.intp]]]:
        """Draw the folds over all rows, and keep those of positive weight."""
        position = np.full(n_samples, -1)
        position[data.rows] = np.arange(len(data.rows))
        splits = folds_of("cv", self.cv, np.zeros((n_samples, 1)), column_or_1d(y))
        parts = ((position[train], position[test]) for train, test in splits)
        return [(train[train >= 0], test[test >= 0]) for train, test in parts]

    def _truncations(self, machine: RobustSVC) -> list[Any]:
        """Return the truncations to try, each checked as the estimator's own would be."""
        if self.truncations is None:
            return [machine.truncation]
        if isinstance(self.truncations, str) or not np.iterable(self.truncations):
            raise TypeError(f"truncations must be a sequence of 'auto' and numbers, got {self.truncations!r}.")
        choices = list(self.truncations)
        if not choices:
            raise ValueError("truncations must hold at least one, got none.")
        for truncation in choices:
            steps.check_arguments(clone(machine).set_params(truncation=truncation))
        return choices

    def _kernels(self, machine: RobustSVC, data: TrainingSet) -> list[Kernel]:
        """Resolve the widths to search, the smallest first."""
        if self.gammas is not None:
            if machine.kernel not in ("rbf", "laplacian", "poly", "sigmoid"):
                raise ValueError(f"gammas must be None with kernel={machine.kernel!r}, which has no width.")
            gammas: Any = np.sort(
                check_positive_values("gammas", self.gammas, at_least=SMALLEST_GAMMA, at_most=LARGEST_GAMMA)
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

    def _is_pairwise(self) -> bool:
        return self.estimator is not None and steps.is_pairwise(self.estimator)

    def _scoring(self) -> Scoring:
        return steps.scoring(self.best_estimator_)


@dataclass(frozen=True, slots=True)
class _Grid:
    """The search over C and truncations for any kernel width and fold; `utility` (n, k) is that of the rows."""

    machine: RobustSVC
    data: TrainingSet
    utility: NDArray[np.float64]
    Cs: NDArray[np.float64]
    truncations: list[float]
    settings: Settings

    def judge(
        self, kernel: Kernel, train: NDArray[np.intp], test: NDArray[np.intp], share: Share
    ) -> NDArray[np.float64]:
        """Return the summed utility of the left-out rows for every C and truncation that the share allows."""
        share = share.begun()
        gram = self._gram(kernel)
        of_train = restricted(gram, train)
        weighted = self.data.weights[test, None] * self.utility[test]
        totals = np.full((len(self.Cs), len(self.truncations)), np.nan)
        everywhere = np.zeros((gram.n, self.data.n_classes))
        for at, truncation in enumerate(self.truncations):
            part = share.part(len(self.truncations) - at)
            for number, (problem, solution) in enumerate(self._path(of_train, train, truncation, part)):
                everywhere[train] = problem.coefficients(solution.point)
                F = scores_at(gram, test, everywhere) + solution.point.step.intercept
                totals[number, at] = weighted[np.arange(len(test)), F.argmax(axis=1)].sum()
                if part.is_spent:
                    break
            share.count(part.counted)
        return totals

    def _gram(self, kernel: Kernel) -> Gram:
        machine, data = self.machine, self.data
        if machine.landmarks is None:
            return steps.gram(machine, kernel, data.X, None)
        rng = check_seed("random_state", machine.random_state)
        points = draw_landmarks(machine.landmarks, data.X, data.labels, rng, weights=data.weights)
        return steps.gram(machine, kernel, data.X, NystroemMap(kernel, points))

    def _path(
        self, gram: Gram, rows: NDArray[np.intp], truncation: float, share: Share
    ) -> Iterator[tuple[RobustProblem, Solution[RobustPoint]]]:
        """Solve for ascending C on the rows, each from the scores of the one before."""
        weighted = self.data.weights[rows, None] * self.utility[rows]
        solver = None
        scores: Any = None
        for C in map(float, self.Cs):
            problem = RobustProblem(gram, C * weighted, truncation, self.machine.fit_intercept, self.machine.loss)
            if solver is None:  # of the kernel alone
                solver = convex_solver(problem, self.machine.solver)
            algorithm = DCAlgorithm(
                solver, self.machine.max_dc_iter, least_descent=LAST_DESCENT * self.settings.tol
            )
            start = None if np.isneginf(truncation) else scores
            solution = algorithm.solve(problem, share.within(self.settings), start=start)
            share.count(len(rows))
            yield problem, solution
            scores = problem.reached(solution.point)[0]


def _table(
    totals: NDArray[np.float64],
    weights: NDArray[np.float64],
    Cs: NDArray[np.float64],
    gammas: list[float],
    truncations: list[Any],
) -> dict[str, Any]:
    """Return the results from summed utilities (widths, folds, Cs, truncations) and the folds' summed weights.

    Settings that not all folds have tried are NaN, and left out.
    """
    mean = totals.sum(axis=1) / weights.sum()
    spread = (totals / weights[:, None, None]).std(axis=1)
    places = list(map(tuple, np.argwhere(np.isfinite(mean))))
    params = [{"C": float(Cs[c]), "gamma": float(gammas[g]), "truncation": truncations[s]} for g, c, s in places]
    order = sorted(
        range(len(places)), key=lambda at: (-mean[places[at]], places[at][1], places[at][0], places[at][2])
    )
    scores = np.array([mean[place] for place in places])
    return cv_results(params, scores, order, {"std_test_score": np.array([spread[place] for place in places])})
