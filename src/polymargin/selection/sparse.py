"""Choosing the penalty of a sparse machine: regularisation paths, the adaptive search and stability selection."""

from dataclasses import dataclass, replace
from typing import Any, Literal, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.validation import _num_samples, column_or_1d, validate_data

from polymargin.arguments import ClassWeight, PenaltyName, SparseLoss
from polymargin.checks import check_choice, check_flag, check_integer, check_positive_values, check_real
from polymargin.costs import resolve_row_costs
from polymargin.estimators import steps
from polymargin.estimators.parts import (
    Machine,
    TrainingSet,
    all_or_nothing,
    name_of,
    named_penalty,
    with_callbacks,
)
from polymargin.estimators.sparse import LOSSES, SparseClassifier, SparseSVC
from polymargin.problems.certificate import Certificate
from polymargin.problems.penalties import Penalty
from polymargin.problems.sparse import SparseProblem
from polymargin.selection.adaptive import ROUNDS, AdaptiveSearch, Candidate, Fold, grid_of, solve_path
from polymargin.selection.folds import folds_of
from polymargin.selection.results import copy_from, cv_results, keep_results
from polymargin.selection.spending import Budget
from polymargin.solvers.sparse.cutting_plane import largest_penalty_weight

INITIAL_CS = tuple(4.0**power for power in range(-7, 3))
"""C of the l2 fits that a search tries, for standardised variables."""


@dataclass(frozen=True, slots=True)
class SparsePath:
    """Solutions of a sparse machine over ascending C.

    Attributes
    ----------
    Cs : (m,) weights of the losses.
    coefs : (m, n_classes, n_features).
    intercepts : (m, n_classes).
    certificates : m certificates over all variables.
    largest_penalty_weight : the model is zero exactly up to ``C = 1 / largest_penalty_weight``.
    classes, feature_names : what rows and columns of the coefficients stand for.
    """

    Cs: NDArray[np.float64]
    coefs: NDArray[np.float64]
    intercepts: NDArray[np.float64]
    certificates: tuple[Certificate, ...]
    largest_penalty_weight: float
    classes: NDArray
    feature_names: NDArray

    @property
    def n_selected(self) -> NDArray[np.intp]:
        """Number of selected variables at every C."""
        return self.coefs.any(axis=1).sum(axis=1)


def sparse_path(
    X: Any,
    y: Any,
    *,
    sample_weight: Any = None,
    Cs: Any = None,
    n_Cs: int = 50,
    eps: float = 0.01,
    **parameters: Any,
) -> SparsePath:
    """Solve a sparse machine for a sequence of C, each from the solution before.

    Parameters
    ----------
    X, y, sample_weight : as for `SparseSVC.fit`
    Cs : array-like or None, default=None
        Values of C; None for `n_Cs` from the exact C at which the first variable enters to 1/`eps` times it.
    n_Cs : int, default=50
        Length of the path.
    eps : float, default=0.01
        Smallest penalty weight as a fraction of the largest.
    **parameters
        Parameters of `SparseSVC` other than C; adaptive weights are computed once, with `initial_C`.

    Returns
    -------
    SparsePath

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from polymargin import sparse_path
    >>> path = sparse_path(*load_iris(return_X_y=True), n_Cs=4)
    >>> path.n_selected
    array([0, 1, 1, 3])
    """
    n_Cs = check_integer("n_Cs", n_Cs, at_least=1)
    eps = check_real("eps", eps, above=0.0, at_most=1.0)
    model = SparseSVC(**parameters)
    settings, data, machine, penalty = steps.prepare(model, X, y, sample_weight)
    _check_selects(machine, penalty)
    weights = steps.penalty_weights(model, machine, penalty, settings)
    penalty = penalty if weights is None else penalty.weighted(weights)
    problem = SparseProblem(machine.X, machine.losses, penalty)
    largest = largest_penalty_weight(problem)
    grid = _ascending(Cs) if Cs is not None else grid_of(largest, np.geomspace(1.0, eps, n_Cs))
    solutions = solve_path(problem, grid, settings)
    names = getattr(model, "feature_names_in_", np.arange(machine.X.shape[1]))
    return SparsePath(
        grid,
        np.array([s.point.coef for s in solutions]),
        np.array([s.point.intercept for s in solutions]),
        tuple(s.certificate for s in solutions),
        largest,
        data.classes,
        names,
    )


class SparseSVCCV(SparseClassifier):
    """Sparse multicategory SVM with the penalty weight, and the rounds of adaptive weights, chosen by validation.

    The machine of `SparseSVC` on standardised variables. Candidates are

    - the plain path over C, with all weights tau equal to 1;
    - rounds of adaptive paths. The first takes its weights from a fit with the l2 penalty, the others from the
      round before, at the sparsest model within one standard error of its best; variables that this model does
      not use are dropped.

    Within a candidate the lowest validation cost wins, ties going to the sparser model; between candidates the
    later round. Initial fits, weights and standardisation are computed anew within each fold, and C is taken as a
    multiple of the C at which the first variable enters there.

    Parameters
    ----------
    penalty : {"fusion", "supnorm", "l1", "group", "elastic_net", "l2"} or Penalty, default="fusion"
        The penalty, as in `SparseSVC`; "l2" only chooses its C. A penalty that takes no weights has the plain path
        as its only candidate.
    adaptive : {"auto", "rounds"} or bool, default="auto"
        Candidates: False the plain path, True one round, "rounds" three rounds of which the last counts, "auto"
        the plain path and each of three rounds. With fewer examples than variables three rounds tend to hurt,
        which "auto" finds out.
    per_variable : bool, default=False
        Whether the adaptive weights of a variable are all the same (ASN-II of Guo).
    adaptive_power : float, default=1.0
        Power g of the adaptive weights ``1/|w|^g``.
    loss : {"weston", "lee", "crammer"}, default="weston"
        The loss.
    n_Cs : int, default=31
        Length of a path.
    eps : float, default=1e-4
        Smallest penalty weight of a path as a fraction of the largest; with adaptive weights good models lie far
        down the path.
    initial_Cs : array-like or None, default=None
        C of the l2 fits; None for the powers of four from 4^-7 to 16.
    cv : int, CV splitter or iterable, default=5
        The folds, as in scikit-learn; not used where `fit` is given a validation set.
    standardize : bool, default=True
        Whether to bring the variables to variance one (dense ones also to mean zero); `coef_` is on the scale of
        the data all the same.
    cost_matrix, priors, class_weight : as in `SparseSVC`
        Validation counts the same costs and weights.
    tol : float, default=1e-8
        Relative duality gap to reach, as in `SparseSVC`.
    max_iter : int, default=-1
        Limit of the rounds of cuts of one solution; -1 for none.
    budget : str, int, float or None, default=None
        What the search may take: seconds, given as "60s", "5m" or "1h", or a number of training rows given to all
        fits together. Every fold of every candidate gets an equal part of what is left, from the smallest C up;
        C that every fold has reached count, and no further candidate is begun when the budget is spent. None
        solves all paths to their end.
    n_jobs : int or None, default=None
        Folds solved side by side.
    verbose : bool, default=False
        Log how far the folds of every candidate are, to the logger "polymargin".

    Attributes
    ----------
    classes_, coef_, intercept_, selected_features_, fused_pairs_ : as in `SparseSVC`
    best_estimator_ : SparseSVC
        The chosen model. Its C, `weights_` and certificate are those of the standardised variables, its
        coefficients those of the data.
    best_params_ : dict
        Its C, and the "round" of its candidate: -1 the l2 fits, 0 the plain path, 1 to 3 a round.
    initial_C_ : float or None
        C of the initial fit, if there was one.
    weights_ : ndarray or None
        Weights tau of the chosen candidate for the standardised variables, scaled so that the smallest is 1 and
        infinite for dropped variables; None for ones.
    best_score_ : float
        Minus its validation cost: of scores more is better.
    best_index_ : int
        Its place in `cv_results_`.
    cv_results_ : dict of ndarrays, one entry per model tried
        "params", "param_C", "param_round", "mean_test_score" (minus the cost), "rank_test_score" (1 for the best;
        models that only give weights come last); "cost", "standard_error" and "n_selected".
    certificate_ : Certificate
        Certificate of the chosen model, over the standardised variables that its round was given.
    converged_, n_iter_, n_features_in_, feature_names_in_ : as in `SparseSVC`

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from polymargin import SparseSVCCV
    >>> X, y = load_iris(return_X_y=True)
    >>> model = SparseSVCCV(n_Cs=10).fit(X, y)
    >>> model.score(X, y) > 0.9, model.certificate_.gap < 1e-8
    (True, True)
    """

    def __init__(
        self,
        *,
        penalty: PenaltyName | Penalty = "fusion",
        adaptive: Literal["auto", "rounds"] | bool = "auto",
        per_variable: bool = False,
        adaptive_power: float = 1.0,
        loss: SparseLoss = "weston",
        n_Cs: int = 31,
        eps: float = 1e-4,
        initial_Cs: Any = None,
        cv: Any = 5,
        standardize: bool = True,
        cost_matrix: Any = None,
        priors: Any = None,
        class_weight: ClassWeight = None,
        tol: float = 1e-8,
        max_iter: int = -1,
        budget: str | float | None = None,
        n_jobs: int | None = None,
        verbose: bool = False,
    ) -> None:
        self.penalty = penalty
        self.adaptive = adaptive
        self.per_variable = per_variable
        self.adaptive_power = adaptive_power
        self.loss = loss
        self.n_Cs = n_Cs
        self.eps = eps
        self.initial_Cs = initial_Cs
        self.cv = cv
        self.standardize = standardize
        self.cost_matrix = cost_matrix
        self.priors = priors
        self.class_weight = class_weight
        self.tol = tol
        self.max_iter = max_iter
        self.budget = budget
        self.n_jobs = n_jobs
        self.verbose = verbose

    @with_callbacks
    @all_or_nothing
    def fit(
        self, X: Any, y: Any, sample_weight: Any = None, *, costs: Any = None, validation_set: Any = None
    ) -> Self:
        """Choose a model and fit it.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
        y : array-like of shape (n_samples,)
        sample_weight : array-like of shape (n_samples,) or None, default=None
            Weights; a weight of 2 equals the row given twice, in validation too.
        costs : array-like or DataFrame of shape (n_samples, n_classes) or None, default=None
            What predicting each class would cost each row, instead of `cost_matrix`; counted in validation, too.
        validation_set : tuple (X, y) or (X, y, costs) or None, default=None
            Examples to validate on, once, instead of the folds of `cv`; with their costs where `costs` are given.

        Returns
        -------
        self
        """
        budget = Budget.given(self.budget)
        settings = self._settings()
        self._check_parameters()
        data = self._training_set(X, y, sample_weight, costs=costs)
        folds = self._folds(data, y, _num_samples(X), validation_set)
        machine = folds[-1].machine
        penalty = machine.penalty(self.penalty)
        if not penalty.squares:
            _check_selects(machine, penalty)
        search = AdaptiveSearch(
            folds,
            penalty,
            self.adaptive_power,
            self.per_variable,
            _ascending(INITIAL_CS if self.initial_Cs is None else self.initial_Cs, "initial_Cs"),
            np.geomspace(1.0, self.eps, self.n_Cs),
            settings,
            budget,
            self.n_jobs,
            self.verbose,
        )
        tried, eligible = self._candidates(search)
        # the later of equally good candidates comes first
        best = min(reversed(eligible), key=lambda candidate: candidate.costs[candidate.best])
        winner = self._winner(data, _num_samples(X), folds[-1], best)
        keep_results(self, _table(tried, eligible, best), winner)
        copy_from(self, winner)
        self.coef_, self.weights_ = winner.coef_, winner.weights_
        initial = [candidate for candidate in tried if candidate.round < 0]
        self.initial_C_ = float(initial[0].runs[-1].Cs[initial[0].best]) if initial else None
        return self

    def _candidates(self, search: AdaptiveSearch) -> tuple[list[Candidate], list[Candidate]]:
        """Return all candidates that were tried, and those among which to choose."""
        penalty, machine = search.penalty, search.folds[-1].machine
        if penalty.squares:
            initial = search.initial()
            return [initial], [initial]
        adaptive = self.adaptive
        if adaptive == "auto" and not penalty.takes_weights:
            adaptive = False
        n_rounds = 0 if not adaptive else 1 if adaptive is True else ROUNDS
        if n_rounds:
            machine.check_weighted(penalty, adaptive)
        search.candidates_left = n_rounds + bool(n_rounds) + (adaptive in (False, "auto"))
        plain = [search.plain()] if adaptive in (False, "auto") else []
        if not n_rounds or (plain and search.budget.searched()):
            return plain, plain
        rounds = [search.initial()]
        for _ in range(n_rounds):
            if search.budget.searched() and (plain or len(rounds) > 1):
                break
            rounds.append(search.after(rounds[-1]))
        return plain + rounds, plain + (rounds[1:] if adaptive == "auto" else rounds[-1:])

    def _folds(self, data: TrainingSet, y: Any, n_samples: int, validation_set: Any) -> list[Fold]:
        """Return the folds and, last, all training rows."""
        if validation_set is not None:
            return [Fold.of(data, self._validation_rows(data, *validation_set), self.loss, self.standardize)]
        # rows of weight zero are in no training set; folds are drawn over all rows
        position = np.full(n_samples, -1)
        position[data.rows] = np.arange(len(data.rows))
        splits = folds_of("cv", self.cv, np.zeros((n_samples, 1)), column_or_1d(y))
        parts = [tuple(position[part][position[part] >= 0] for part in split) for split in splits]
        parts.append((np.arange(len(data.rows)), np.arange(0)))
        return [
            Fold.of(
                data.restricted(train, pairwise=False),
                data.restricted(left_out, pairwise=False),
                self.loss,
                self.standardize,
            )
            for train, left_out in parts
        ]

    def _validation_rows(self, data: TrainingSet, X: Any, y: Any, costs: Any = None) -> TrainingSet:
        X = validate_data(self, X, accept_sparse="csr", dtype=[np.float64, np.float32], reset=False)
        y = column_or_1d(y)
        unknown = np.setdiff1d(y, data.classes)
        if len(unknown) or len(y) != X.shape[0]:
            raise ValueError(
                f"validation_set must hold rows and as many labels among {data.classes.tolist()}, got "
                f"{X.shape[0]} rows and {len(y)} labels; not among them: {unknown.tolist()}."
            )
        if (costs is None) != (data.row_costs is None):
            raise ValueError(
                "validation_set must be (X, y, costs) where fit is given costs, and (X, y) where it is not, got "
                f"{'no' if costs is None else 'its own'} costs."
            )
        labels = np.searchsorted(data.classes, y)
        row_costs = None if costs is None else resolve_row_costs(costs, labels, data.classes)
        everyone = np.arange(len(y))
        return replace(data, X=X, labels=labels, weights=np.ones(len(y)), rows=everyone, row_costs=row_costs)

    def _check_parameters(self) -> None:
        named_penalty(self.penalty)
        check_choice("loss", self.loss, LOSSES)
        is_word = isinstance(self.adaptive, str) and self.adaptive in ("auto", "rounds")
        if not (is_word or isinstance(self.adaptive, (bool, np.bool_))):
            raise ValueError(f"adaptive must be 'auto', 'rounds', True or False, got {self.adaptive!r}.")
        check_flag("per_variable", self.per_variable)
        check_flag("standardize", self.standardize)
        check_real("adaptive_power", self.adaptive_power, above=0.0, at_most=5.0)
        check_integer("n_Cs", self.n_Cs, at_least=2)
        check_real("eps", self.eps, above=0.0, at_most=1.0)

    def _winner(self, data: TrainingSet, n_samples: int, whole: Fold, best: Candidate) -> SparseSVC:
        """Return the best model of a candidate as if it had been fitted by itself."""
        run, model = best.runs[-1], best.best
        solution, C = run.solutions[model], float(run.Cs[model])
        shared = ("penalty", "loss", "cost_matrix", "priors", "class_weight", "tol", "max_iter")
        winner = SparseSVC(C, **{name: getattr(self, name) for name in shared})
        winner.classes_ = data.classes
        winner.coef_, winner.intercept_ = whole.rescaled(run.coefs[model], solution.point.intercept)
        winner.dual_coef_ = C * whole.machine.spread(solution.point.dual, data.rows, n_samples).T
        winner.weights_ = run.weights
        winner.n_features_in_ = self.n_features_in_
        if hasattr(self, "feature_names_in_"):
            winner.feature_names_in_ = self.feature_names_in_
        steps.conclude(winner, solution, self.tol)
        return winner


def _table(tried: list[Candidate], eligible: list[Candidate], best: Candidate) -> dict[str, Any]:
    """Return the results: the chosen model, then those of eligible candidates by their cost, then the others."""
    Cs, rounds, costs, may_win, is_best = (
        np.concatenate(parts)
        for parts in zip(
            *(
                (
                    one.runs[-1].Cs,
                    np.full(len(one.costs), one.round),
                    one.costs,
                    np.full(len(one.costs), any(one is other for other in eligible)),
                    (np.arange(len(one.costs)) == one.best) & (one is best),
                )
                for one in tried
            ),
            strict=True,
        )
    )
    params = [{"C": float(C), "round": int(at)} for C, at in zip(Cs, rounds, strict=True)]
    columns = {
        "cost": costs,
        "standard_error": np.concatenate([one.errors for one in tried]),
        "n_selected": np.concatenate([one.runs[-1].coefs.any(axis=1).sum(axis=1) for one in tried]),
    }
    return cv_results(params, -costs, np.lexsort((-rounds, costs, ~may_win, ~is_best)), columns)


def _check_selects(machine: Machine, penalty: Penalty) -> None:
    """Refuse a penalty under which every variable is in the model at every C."""
    if penalty.at_zero(machine.n_classes, machine.X.shape[1]) is None:
        raise ValueError(
            "penalty must be a norm near zero for a path, so that variables enter one by one, got "
            f"{name_of(penalty)}."
        )


def _ascending(values: Any, name: str = "Cs") -> NDArray[np.float64]:
    return np.sort(check_positive_values(name, values))
