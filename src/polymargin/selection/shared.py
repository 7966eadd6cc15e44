"""Search over the penalties of SharedStructureSVC, and the path of TraceNormSVC, from one decomposition."""

from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone

from polymargin.checks import LARGEST, SMALLEST, check_integer, check_positive_values, check_real
from polymargin.estimators import steps
from polymargin.estimators.parts import (
    MarginClassifier,
    Scoring,
    TrainingSet,
    all_or_nothing,
    class_moments,
    class_scores,
    refuses_costs,
)
from polymargin.estimators.shared import PAPER_ROUNDS, SharedStructureSVC
from polymargin.estimators.trace_norm import TraceNormSVC
from polymargin.moments import ClassMoments
from polymargin.problems.certificate import Certificate
from polymargin.problems.shared import SharedPoint, SharedProblem, TaskMoments
from polymargin.selection.folds import folds_of
from polymargin.selection.progress import side_by_side
from polymargin.selection.results import copy_from, cv_results, keep_results
from polymargin.selection.spending import Budget, Share, middle_first
from polymargin.solvers.contract import Settings
from polymargin.solvers.shared.alternation import AlternationSolver, alternate_side_by_side
from polymargin.solvers.shared.base_step import BaseStep, CommonBaseStep, make_base_step

DEFAULT_CS = tuple(10.0**power for power in range(-5, 6))
DEFAULT_FRACTIONS = tuple(10.0 ** (-9.0 + 0.8 * step) for step in range(11))
"""Fractions of nu_max, the penalty that makes every classifier of the trace-norm problem zero."""


class SharedStructureSearch(MarginClassifier):
    """Search for C and the relation penalty of a `SharedStructureSVC` by cross-validation.

    Every fold is decomposed once, which serves all pairs of penalties; with rows as features the moments of its
    training part are those of all rows less those of the fold. Penalties of the relations are searched as
    fractions of ``nu_max = (C sigma_max(A'Y))^2``, from which on the trace-norm problem has no classifiers but
    zero. Where the rounds are limited the folds take all of them, also where a fit would stop at `tol` before.
    Ties go to the smaller C, then to the larger penalty.

    Parameters
    ----------
    estimator : SharedStructureSVC or None, default=None
        The machine; its `C` and `relation_penalty` are replaced. None for ``SharedStructureSVC(max_iter=5)``:
        five rounds of all penalties together cost little more than those of one.
    Cs : array-like of shape (n_Cs,) or None, default=None
        Values of C; None for the paper's, 10^-5 to 10^5.
    penalty_fractions : array-like of shape (n_penalties,) or None, default=None
        Relation penalties as fractions of nu_max; None for 11 from 10^-9 to 10^-1.
    relation_penalties : array-like of shape (n_penalties,) or None, default=None
        Relation penalties themselves, in place of fractions.
    cv : int, CV splitter or iterable, default=5
        The folds, as in scikit-learn. The paper has one split, a tenth of the rows for validation.
    budget : str, int, float or None, default=None
        What the search may take: seconds, given as "60s", "5m" or "1h", or a number of training rows given to all
        fits together. Every fold gets an equal part, and tries the values of C in the middle first, each with
        all penalties; those that every fold has tried count. None tries the whole grid.
    n_jobs : int or None, default=None
        Folds searched side by side.
    verbose : bool, default=False
        Log how far it is, to the logger "polymargin".

    Attributes
    ----------
    best_estimator_ : SharedStructureSVC
        The winner, fitted on all rows; `certificate_` and the rest of how it was found are its own.
    best_params_ : dict
        Its C and relation_penalty.
    best_score_ : float
        Its weighted share of right predictions in the folds.
    best_index_ : int
        Its place in `cv_results_`.
    cv_results_ : dict of ndarrays, one entry per grid point
        "params", "param_C", "param_relation_penalty" (of all rows), "mean_test_score" (accuracy),
        "rank_test_score" (1 for the best), and "fraction" (of nu_max).
    classes_ : ndarray of shape (n_classes,)
    n_features_in_ : int
    feature_names_in_ : ndarray of shape (`n_features_in_`,)

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from polymargin import SharedStructureSearch, SharedStructureSVC
    >>> X, y = load_iris(return_X_y=True)
    >>> search = SharedStructureSearch(SharedStructureSVC(class_weight="balanced")).fit(X, y)
    >>> len(search.cv_results_["params"]), search.best_score_ > 0.8
    (121, True)
    """

    def __init__(
        self,
        estimator: Any = None,
        *,
        Cs: Any = None,
        penalty_fractions: Any = None,
        relation_penalties: Any = None,
        cv: Any = 5,
        budget: str | float | None = None,
        n_jobs: int | None = None,
        verbose: bool = False,
    ) -> None:
        self.estimator = estimator
        self.Cs = Cs
        self.penalty_fractions = penalty_fractions
        self.relation_penalties = relation_penalties
        self.cv = cv
        self.budget = budget
        self.n_jobs = n_jobs
        self.verbose = verbose

    @refuses_costs("its tasks separate one class from the rest, whichever of these is predicted")
    @all_or_nothing
    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Search the grid and fit the winner.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
        y : array-like of shape (n_samples,)
        sample_weight : array-like of shape (n_samples,) or None, default=None

        Returns
        -------
        self
        """
        budget = Budget.given(self.budget)
        machine = SharedStructureSVC(max_iter=PAPER_ROUNDS) if self.estimator is None else clone(self.estimator)
        if not isinstance(machine, SharedStructureSVC):
            raise TypeError(f"estimator must be a SharedStructureSVC, got {self.estimator!r}.")
        grid = self._grid()
        settings = steps.check_arguments(machine)
        data = steps.training_set(machine, X, y, sample_weight, weigh_classes=False)
        shared = None
        if machine.kernel == "linear" and machine.landmarks is None:
            shared = class_moments(data, None)
        search = _FoldSearch(machine, data, shared, grid, settings)
        folds = folds_of("cv", self.cv, data.X, data.labels)
        shares = budget.shares(len(folds), self.n_jobs)
        arguments = ((*fold, share) for fold, share in zip(folds, shares, strict=True))
        found = side_by_side(
            search, arguments, self.n_jobs, total=len(folds), label="folds", shown=bool(self.verbose)
        )
        hits = np.sum(list(found), axis=0)
        tried = np.isfinite(hits[:, 0])
        grid = replace(grid, Cs=grid.Cs[tried])
        accuracy = hits[tried].ravel() / sum(data.weights[test].sum() for _, test in folds)
        if shared is None:
            tasks = steps.summarise(machine, data, steps.features(machine, data))[0]
        else:
            tasks = steps.tasks(machine, shared, data.classes)
        results = _table(grid, accuracy, tasks)
        best = results["params"][int(np.argmin(results["rank_test_score"]))]
        if not SMALLEST <= best["relation_penalty"] <= LARGEST:
            raise ValueError(
                f"relation_penalties must be given for these rows: the best of the grid made for them is "
                f"{best['relation_penalty']:.3g}, allowed are {SMALLEST:g} to {LARGEST:g}; or scale X."
            )
        winner = clone(machine).set_params(**best).fit(X, y, sample_weight)
        keep_results(self, results, winner)
        copy_from(self, winner)
        return self

    def _grid(self) -> "_Grid":
        if self.relation_penalties is not None and self.penalty_fractions is not None:
            raise ValueError("penalty_fractions must be None where relation_penalties are given.")
        Cs = np.sort(check_positive_values("Cs", DEFAULT_CS if self.Cs is None else self.Cs))
        if self.relation_penalties is not None:
            return _Grid(
                Cs, np.sort(check_positive_values("relation_penalties", self.relation_penalties))[::-1], False
            )
        fractions = DEFAULT_FRACTIONS if self.penalty_fractions is None else self.penalty_fractions
        return _Grid(Cs, np.sort(check_positive_values("penalty_fractions", fractions))[::-1], True)

    def _is_pairwise(self) -> bool:
        return self.estimator is not None and steps.is_pairwise(self.estimator)

    def _scoring(self) -> Scoring:
        return steps.scoring(self.best_estimator_)


def _table(grid: "_Grid", accuracy: NDArray[np.float64], tasks: TaskMoments) -> dict[str, Any]:
    """Return the results, ties going to the smaller C, then to the larger penalty, as the grid goes."""
    points = np.array([(float(C), penalty) for C in grid.Cs for penalty in grid.penalties_at(C, tasks)])
    params = [{"C": float(C), "relation_penalty": float(penalty)} for C, penalty in points]
    largest = (points[:, 0] * np.linalg.norm(tasks.cross, 2)) ** 2
    beyond = np.full(len(points), np.inf)  # where the rows tell nothing, any penalty is above all that matter
    fractions = np.divide(points[:, 1], largest, out=beyond, where=largest > 0)
    return cv_results(params, accuracy, np.argsort(-accuracy, kind="stable"), {"fraction": fractions})


@dataclass(frozen=True, slots=True)
class _Grid:
    """Values of C, and penalties: fractions of nu_max or the values themselves, largest first."""

    Cs: NDArray[np.float64]
    penalties: NDArray[np.float64]
    relative: bool

    def penalties_at(self, C: float, tasks: TaskMoments) -> list[float]:
        """Return the relation penalties to try with C on given data."""
        unit = (C * float(np.linalg.norm(tasks.cross, 2))) ** 2 if self.relative else 1.0
        if unit < SMALLEST:
            raise ValueError(
                f"penalty_fractions cannot be used: they are parts of the largest penalty that matters, which is "
                f"{unit:.3g} for these rows; scale X, or give relation_penalties."
            )
        return [float(penalty * unit) for penalty in self.penalties]


@dataclass(frozen=True, slots=True)
class _FoldSearch:
    """Counts right predictions of one fold, for every point of the grid."""

    machine: SharedStructureSVC
    data: TrainingSet
    moments: ClassMoments | None
    grid: _Grid
    settings: Settings

    def __call__(self, train: NDArray[np.intp], test: NDArray[np.intp], share: Share) -> NDArray[np.float64]:
        """Return the weight of the rows of the fold that are predicted right, for every C (rows) and penalty.

        Where the share is spent, NaN for the values of C that are left.
        """
        machine, data, share = clone(self.machine), self.data, share.begun()
        pairwise = steps.is_pairwise(machine)
        rows = _subset(data, test, data.X[np.ix_(test, train)] if pairwise else data.X[test])
        features, rotation = None, None
        if self.moments is not None and len(train) > self.moments.n_features:
            tasks = steps.tasks(machine, self.moments - class_moments(rows, None), data.classes)
        else:
            inner = _subset(data, train, data.X[np.ix_(train, train)] if pairwise else data.X[train])
            features = steps.features(machine, inner)
            tasks, _, rotation = steps.summarise(machine, inner, features)
        A = steps.augmented(machine, rows, features)
        A = A if rotation is None else A @ rotation
        base_step, codes = make_base_step(tasks), steps.codes(machine, data.n_classes)
        stated = steps.problem(machine, tasks, data.classes)
        hits = np.full((len(self.grid.Cs), len(self.grid.penalties)), np.nan)
        for number, at in enumerate(middle_first(len(self.grid.Cs))):
            if number and share.is_spent:
                break
            C = self.grid.Cs[at]
            share.count(len(train) * len(self.grid.penalties))
            problems = [
                replace(stated, C=float(C), relation_penalty=penalty)
                for penalty in self.grid.penalties_at(C, tasks)
            ]
            for penalty, point in enumerate(self._points(machine, problems, base_step)):
                scores = class_scores((A @ point.W) @ point.M, codes)
                hits[at, penalty] = rows.weights @ (scores.argmax(axis=1) == rows.labels)
        return hits

    def _points(
        self, machine: SharedStructureSVC, problems: list[SharedProblem], base_step: BaseStep
    ) -> list[SharedPoint]:
        """Solve problems that differ in their penalty alone; side by side where the early-stopped box allows."""
        plain = machine.formulation == "original" and machine.n_init == 1 and not problems[0].relations.symmetric
        if plain and steps.stops_early(machine) and isinstance(base_step, CommonBaseStep):
            starts = np.stack([steps.starts(machine, problem, base_step)[0] for problem in problems])
            try:
                return alternate_side_by_side(problems, base_step, starts, self.settings.max_iter)
            except np.linalg.LinAlgError:
                raise FloatingPointError(
                    "X leaves no digits to the relations between classes, whose steps fail in floating-point "
                    "arithmetic: centre the features and scale them to about unit size."
                ) from None
        return [steps.solve(machine, problem, base_step, self.settings).point for problem in problems]


def _subset(data: TrainingSet, rows: NDArray[np.intp], X: Any) -> TrainingSet:
    return replace(data, X=X, labels=data.labels[rows], weights=data.weights[rows], rows=np.arange(len(rows)))


@dataclass(frozen=True, slots=True)
class TraceNormPath:
    """Solutions of the trace-norm machine from the penalty that makes them zero downwards.

    Attributes
    ----------
    relation_penalties : (m,) penalties, largest first.
    coefs : (m, n_final, n_features) final classifiers.
    intercepts : (m, n_final) their intercepts.
    singular_values : (m, n_final) singular values of the classifiers with their intercepts.
    certificates : one a penalty.
    """

    relation_penalties: NDArray[np.float64]
    coefs: NDArray[np.float64]
    intercepts: NDArray[np.float64]
    singular_values: NDArray[np.float64]
    certificates: tuple[Certificate, ...]


def trace_norm_path(
    estimator: TraceNormSVC,
    X: Any,
    y: Any,
    *,
    n_penalties: int = 30,
    ratio: float = 1e-8,
    sample_weight: Any = None,
) -> TraceNormPath:
    """Follow `TraceNormSVC` with the squared loss from nu_max down to `ratio` times nu_max.

    One decomposition serves the whole path. Fits start anew: a direction that is zero would stay zero.

    Parameters
    ----------
    estimator : TraceNormSVC
        The machine, with the squared loss; its `relation_penalty` is not used.
    X : array-like or sparse matrix of shape (n_samples, n_features)
        Training rows; with a kernel the coefficients of the path are those of its basis points.
    y : array-like of shape (n_samples,)
        Class labels.
    n_penalties : int, default=30
        Number of penalties, evenly spaced on the log scale.
    ratio : float, default=1e-8
        Smallest penalty over the largest.
    sample_weight : array-like of shape (n_samples,) or None, default=None
        Weights of the rows.

    Returns
    -------
    TraceNormPath

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from polymargin import TraceNormSVC, trace_norm_path
    >>> X, y = load_iris(return_X_y=True)
    >>> path = trace_norm_path(TraceNormSVC(), X, y, n_penalties=5)
    >>> (path.singular_values > 1e-6).sum(axis=1)[0], path.coefs.shape
    (np.int64(0), (5, 3, 4))
    """
    if not isinstance(estimator, TraceNormSVC) or estimator.loss != "squared":
        raise TypeError(f"estimator must be a TraceNormSVC with loss='squared', got {estimator!r}.")
    n_penalties = check_integer("n_penalties", n_penalties, at_least=2)
    ratio = check_real("ratio", ratio, above=0.0, at_most=1.0)
    machine = clone(estimator)
    settings, data, features, _ = steps.begin(machine, X, y, sample_weight)
    tasks, _, rotation = steps.summarise(machine, data, features)
    solver = AlternationSolver(make_base_step(tasks))
    nu_max = steps.problem(machine, tasks).penalty_at_zero
    penalties = nu_max * np.logspace(0, np.log10(ratio), n_penalties)
    classifiers, values, certificates = [], [], []
    for penalty in penalties:
        problem = steps.problem(machine.set_params(relation_penalty=float(penalty)), tasks)
        solution = solver.solve(problem, settings)
        W = solution.point.W if rotation is None else rotation @ solution.point.W
        Z = W @ solution.point.M
        classifiers.append(Z.T)
        values.append(np.linalg.svd(Z, compute_uv=False))
        certificates.append(solution.certificate)
    stacked = np.array(classifiers)
    return TraceNormPath(penalties, stacked[:, :, :-1], -stacked[:, :, -1], np.array(values), tuple(certificates))
