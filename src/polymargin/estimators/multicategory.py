"""MulticategorySVC: the multicategory SVM of Lee, Lin & Wahba (2004), and its rivals."""

from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from polymargin.arguments import ClassWeight, KernelLike, LossName, RandomState, Width
from polymargin.checks import check_flag, check_weight
from polymargin.estimators._base import TrainingSet
from polymargin.estimators._callbacks import with_callbacks
from polymargin.estimators._kernel import KernelClassifier, features_at_hand
from polymargin.estimators._partitions import PartitionedSet
from polymargin.estimators._transaction import all_or_nothing
from polymargin.gram import (
    SEMI_DEFINITE,
    FeatureGram,
    Kernel,
    NystroemMap,
    make_gram,
    products_at,
)
from polymargin.problems.certificate import FEASIBLE, Certificate
from polymargin.problems.hinge import (
    HingePoint,
    HingeProblem,
    Loss,
    Losses,
    PartitionedHinge,
    check_loss_argument,
    loss_of,
)
from polymargin.problems.hinge.catalogue import check_given
from polymargin.solvers.contract import Settings, Solution, at_rest
from polymargin.solvers.hinge.inner_loop import check_bound
from polymargin.solvers.hinge.interior_point import InteriorPoint
from polymargin.solvers.hinge.left_out_by_curvature import has_block_per_row, smooth_dual
from polymargin.solvers.hinge.left_out_refitted import left_out_scores
from polymargin.solvers.hinge.portfolio import Portfolio
from polymargin.solvers.policy import POLICY


@dataclass(frozen=True, slots=True)
class FitRecord:
    """What the leave-one-out criteria need to know of a fit beyond its public attributes.

    Attributes
    ----------
    labels : (n_support,) class codes of the support vectors.
    costs : (n_support, k) their weighted costs L_ij.
    n_rows : number of training rows of positive weight.
    coefficients : (n_support, k) their coefficients R at the dual point, of which the scores may have better ones
        in `dual_coef_`; landmarks fold them.
    """

    labels: NDArray[np.intp]
    costs: NDArray[np.float64]
    n_rows: int
    coefficients: NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class SolvedRows:
    """What a fit can hand on to those who ask for left-out scores right after it.

    Attributes
    ----------
    problem : that was solved, of the distinct rows.
    point : its solution.
    place : (n,) the distinct row that every training row of positive weight is.
    scores : of the distinct rows; None where the fit did not need them all.
    """

    problem: HingeProblem
    point: HingePoint
    place: NDArray[np.intp]
    scores: NDArray[np.float64] | None = None


class MulticategorySVC(KernelClassifier):
    r"""Multicategory support vector machine of Lee, Lin & Wahba, with its rivals.

    Finds score functions ``f_j = h_j + b_j``, one per class, that sum to zero and minimise ::

        C * sum_i w_i loss(f(x_i), y_i) + 1/2 sum_j ||h_j||^2

    where ``loss`` is one of

    - ``"lee"``: ``sum_{j != y} cost[y, j] [f_j + 1/(k-1)]_+``, (7) of Lee et al.: Fisher consistent, also with
      unequal costs;
    - ``"weston"``: ``sum_{j != y} cost[y, j] [f_j - f_y + 2]_+`` (Weston & Watkins);
    - ``"crammer"``: ``cost[y] [2 - min_{j != y} (f_y - f_j)]_+`` (Crammer & Singer);
    - ``"mmr"``, ``"adm"``, ``"atm"``, ``"ats"``: ``cost[y]`` times ``[1 - f_y]_+``, ``max_{j != y} [1 + f_j]_+``,
      the larger of these two, and ``[1 - f_y]_+ + sum_{j != y} [1 + f_j]_+`` (Doğan, Glasmachers & Igel);
    - ``"one_vs_rest"``: that of "ats" for scores that need not sum to zero: one binary machine per class;
    - ``"reinforced"``: half of ``cost[y] [1 - f_y]_+`` and half of "lee"; `ReinforcedLoss` takes other parts
      (Liu & Yuan);
    - ``"lee_squared"``, ``"weston_squared"``: with the squares of the hinges;
    - ``"logistic"``: ``cost[y] log sum_j exp(f_j - f_y)``;
    - an object of your own, a :class:`polymargin.extend.Loss`.

    The intercepts ``b`` are not penalised. In the notation of the paper ``C = 1/(n lambda)``.

    Parameters
    ----------
    C : float, default=1.0
        Weight of the summed losses against the penalty. With two classes "lee" equals scikit-learn's
        ``SVC(C=C/2)``; the rivals, whose hinge measures a difference of two scores, equal ``SVC(C=C)``.
    loss : str or Loss, default="lee"
        One of the losses named above, or an object. Those after "crammer" with a kernel, and all from "adm" on,
        are solved by a general method, which is made for up to a few thousand rows.
    kernel : {"linear", "rbf", "poly", "sigmoid", "laplacian", "precomputed"} or callable, default="rbf"
        The kernel. A callable is given two arrays of rows and returns their kernel matrix.
    gamma : {"scale", "auto"} or float, default="scale"
        Width of rbf, laplacian, poly and sigmoid: "scale" is ``1 / (n_features * X.var())``, "auto"
        ``1 / n_features``.
    degree : float, default=3
        Degree of the poly kernel.
    coef0 : float, default=0.0
        Constant of the poly and sigmoid kernels.
    landmarks : int, float, array-like of shape (m, n_features) or None, default=None
        Restrict the score functions to the span of the kernel at m landmarks: a count, a fraction of the rows
        (both drawn in proportion to the class sizes) or the points themselves. Time and memory are then linear
        in the number of rows.
    cost_matrix : array-like, DataFrame, dict, "ordinal" or None, default=None
        Cost of predicting class j for class i: (n_classes, n_classes) in the order of `classes_`, a DataFrame
        labelled by classes, ``{(true, predicted): cost}`` (others 1) or "ordinal" (``|i - j|``). Losses
        other than "lee" and "weston" and their squares can only use one cost per true class.
    priors : array-like, dict or None, default=None
        Proportions of the classes in the population, where the sample does not have them.
    class_weight : dict, "balanced" or None, default=None
        Factors of the weights of the classes.
    fit_intercept : bool, default=True
        Whether to fit the unpenalised intercepts.
    solver : str or object, default="auto"
        "auto": the methods that the policy names, one after the other until one reaches `tol`. Otherwise
        "decomposition" or "active_set", with ``loss="lee"`` also "splitting" or "kernel_interior" (kernels), or
        "interior_point", "feature_newton", "block_descent" or again "splitting" (the linear kernel, landmarks;
        with ``loss="crammer"`` and ``"weston"`` it is "relative_splitting"), "general_newton", or an object with
        the methods `solve` and `accepts` of a solver.
    tol : float, default=1e-4
        Relative duality gap to reach: enough for predictions, and on many rows much sooner than the 1e-8 of the
        machines whose last digits are cheap.
    max_iter : int, default=-1
        Limit of the solver's outer iterations; -1 for none.
    time_limit : float or None, default=None
        Limit of the whole fit in seconds, the kernel matrix included.
    cache_size : float, default=1000
        Megabytes for the kernel matrix; beyond, its rows are computed when they are needed.
    random_state : int, RandomState instance or None, default=None
        Draws the landmarks.
    verbose : bool, default=False
        Log a line per iteration, to the logger "polymargin".

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
    coef_ : ndarray of shape (n_classes, n_features)
        Coefficients, for the linear kernel without landmarks.
    dual_coef_ : ndarray of shape (n_classes, n_support) or (n_classes, n_landmarks)
        Coefficients of the kernel at the support vectors, or at the landmarks.
    bound_coef_ : ndarray of shape (n_classes, n_support)
        Coefficients of the dual point, whose objective is the certificate's lower bound. Splitting and block
        descent find scores better than its dual point's own; else `dual_coef_` are the same, unless there are
        landmarks.
    support_ : ndarray of shape (n_support,)
        Rows of the training data that are support vectors; None on Dask, as for `support_vectors_`. Equal rows of
        a class are one support vector, the first of them.
    support_vectors_ : ndarray or CSR of shape (n_support, n_features)
        The support vectors; empty for a precomputed kernel.
    landmarks_ : ndarray or CSR of shape (n_landmarks, n_features)
        The landmarks, where asked for.
    intercept_ : ndarray of shape (n_classes,)
        Intercepts; where the optimal ones are not unique, the centre of them.
    certificate_ : Certificate
        Primal and dual objective, their relative gap, and the infeasibility.
    converged_ : bool
        Whether the certificate is within `tol`.
    n_iter_ : int
        Outer iterations of the solver.
    solver_ : str
        Name of the method that found the solution.
    status_ : str
        Why it stopped: "solved", or the limit that it met.
    trace_ : Trace
        The methods that took part, one row each: iterations, objectives, gap, counted and predicted work.
    n_features_in_ : int
    feature_names_in_ : ndarray of shape (`n_features_in_`,)

    References
    ----------
    Y. Lee, Y. Lin & G. Wahba (2004). Multicategory support vector machines: theory and application to the
    classification of microarray data and satellite radiance data. JASA 99(465), 67-81.

    Ü. Doğan, T. Glasmachers & C. Igel (2016). A unified view on multi-class support vector classification. JMLR
    17(45), 1-32.

    Y. Liu & M. Yuan (2011). Reinforced multicategory support vector machines. J. Computational and Graphical
    Statistics 20(4), 901-919.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from polymargin import MulticategorySVC
    >>> X, y = load_iris(return_X_y=True)
    >>> model = MulticategorySVC(C=1.0, cost_matrix={(2, 1): 5.0}).fit(X, y)
    >>> model.certificate_.gap < 1e-4
    True
    >>> model.predict(X[[0, 60, 140]])
    array([0, 1, 2])
    """

    _fit_record: FitRecord

    _hands_on = False

    def __init__(
        self,
        C: float = 1.0,
        *,
        loss: LossName | Loss = "lee",
        kernel: KernelLike = "rbf",
        gamma: Width = "scale",
        degree: float = 3,
        coef0: float = 0.0,
        landmarks: Any = None,
        cost_matrix: Any = None,
        priors: Any = None,
        class_weight: ClassWeight = None,
        fit_intercept: bool = True,
        solver: Any = "auto",
        tol: float = 1e-4,
        max_iter: int = -1,
        time_limit: float | None = None,
        cache_size: float = 1000,
        random_state: RandomState = None,
        verbose: bool = False,
    ) -> None:
        self.C = C
        self.loss = loss
        self.kernel = kernel
        self.gamma = gamma
        self.degree = degree
        self.coef0 = coef0
        self.landmarks = landmarks
        self.cost_matrix = cost_matrix
        self.priors = priors
        self.class_weight = class_weight
        self.fit_intercept = fit_intercept
        self.solver = solver
        self.tol = tol
        self.max_iter = max_iter
        self.time_limit = time_limit
        self.cache_size = cache_size
        self.random_state = random_state
        self.verbose = verbose

    @with_callbacks
    @all_or_nothing
    def fit(self, X: Any, y: Any, sample_weight: Any = None, *, costs: Any = None) -> Self:
        """Fit the machine.

        Parameters
        ----------
        X : array-like, sparse matrix, Dask array or Dask DataFrame of shape (n_samples, n_features)
            Training rows; the kernel matrix (n_samples, n_samples) with ``kernel="precomputed"``.
        y : array-like, Dask array or Dask Series of shape (n_samples,)
            Class labels.
        sample_weight : array-like of shape (n_samples,) or None, default=None
            Weights; a weight of 2 equals the row given twice.
        costs : array-like, DataFrame or Dask array of shape (n_samples, n_classes) or None, default=None
            What predicting each class would cost each row, instead of `cost_matrix`: in the order of `classes_`,
            or a DataFrame whose columns are the classes. The own class costs nothing, and others may, too.

        Returns
        -------
        self
        """
        settings = self._check_arguments().started()
        data = self._data(X, y, sample_weight, costs=costs)
        check_costs_of_loss(self.loss, data)
        n_rows = data.n_rows
        place = None
        if not isinstance(data, PartitionedSet) and self._is_merged(data):
            data, place = data.merged(pairwise=self._is_pairwise())
        kernel, nystroem = self._kernel_of(data)
        if isinstance(data, PartitionedSet):
            return self._fit_partitions(data, kernel, nystroem, settings)
        data = data.restricted(np.flatnonzero(data.has_costs), pairwise=self._is_pairwise())
        weighted_costs = data.example_costs
        weighted_costs *= self.C
        check_given(self.loss, data.labels, weighted_costs)
        losses = hinge_losses(self.loss, data.labels, weighted_costs)
        gram = self._gram(kernel, data.X, nystroem, settings.until)
        problem = HingeProblem(gram, losses, self.fit_intercept)
        solver = "auto" if settings.is_over else self.solver  # none will begin, and there may be no whole matrix
        solution = at_rest(Portfolio(solver).solve, problem, settings, observer=self._observer())
        if nystroem is None and kernel.name not in SEMI_DEFINITE:
            check_bound(problem, solution.point.dual, solution.certificate.dual)
        self._store_solution(data, kernel, nystroem, problem, solution.point)
        self._fit_record = replace(self._fit_record, n_rows=n_rows)
        hands_on = self.__dict__.pop("_hands_on", False) and place is not None and gram.n == place.max() + 1
        stored, scores = self._as_stored(solution, problem, data.X, of_all=hands_on)
        self._conclude(stored, settings.tol)
        if hands_on and place is not None:
            self._solved_rows = SolvedRows(problem, solution.point, place, scores)
        return self

    @property
    def bound_coef_(self) -> NDArray[np.float64]:
        """Coefficients of the dual point at the support vectors."""
        if self.__dict__.get("support_") is None:
            raise AttributeError("bound_coef_ is there after a fit to rows in memory.")
        return self._fit_record.coefficients.T

    def _is_merged(self, data: TrainingSet) -> bool:
        """Tell whether equal rows are made one first, so that weights are repetition to the last bit.

        Not where that takes time or memory of its own: many rows of a linear machine or of one on landmarks, a
        large matrix given.
        """
        has_features = self.kernel == "linear" or self.landmarks is not None
        return data.n_rows <= POLICY.merged_rows or not (has_features or self._is_pairwise())

    def _as_stored(
        self, solution: Solution[HingePoint], problem: HingeProblem, X: Any, *, of_all: bool
    ) -> tuple[Solution[HingePoint], NDArray[np.float64] | None]:
        """Return the solution with the certificate of the scores that the model will give; all scores on demand.

        They differ from those that the solver saw by rounding alone, which a large C can make matter. Of many rows
        some are asked, and speak for the others. Weights of features are what the solver saw.
        """
        has_weights = hasattr(self, "coef_") and isinstance(problem.gram, FeatureGram)
        if self._is_pairwise() or (has_weights and not of_all):
            return solution, None
        n = problem.gram.n
        asked = np.arange(0, n, 1 + n * n // POLICY.checked_scores)
        known = np.arange(n) if of_all else asked
        seen = products_at(problem.gram, known, problem.model(solution.point)) + solution.point.intercept
        losses = problem.losses.restricted(asked)
        error = abs(losses.value(self._scores(X[asked])) - losses.value(seen[asked] if of_all else seen))
        error *= n / len(asked)
        certificate, scores = solution.certificate, seen if of_all else None
        if error <= FEASIBLE * max(1.0, abs(certificate.primal)):
            return solution, scores
        told = Certificate.of(
            certificate.primal + error, certificate.dual, infeasibility=certificate.infeasibility
        )
        return replace(solution, certificate=told), scores

    def _fit_partitions(
        self, data: PartitionedSet, kernel: Kernel, nystroem: NystroemMap | None, settings: Settings
    ) -> Self:
        """Fit to rows in partitions: by the interior point, which takes sums over them."""
        k = data.n_classes
        if hinge_losses(self.loss, np.arange(k), 1.0 - np.eye(k)).shape == "other":
            raise ValueError(
                f"loss={self.loss!r} is not available on Dask, whose solver takes hinges and maxima alone; use "
                "'lee', 'weston', 'crammer', 'mmr', 'ats' or 'reinforced', or bring the rows into memory."
            )
        width = self._width(data, nystroem)
        rows = data.restricted(np.any(data.costs, axis=1)).blocks.map(features_at_hand, nystroem)
        blocks = rows.map(_hinge_block, self.loss, self.C, self.fit_intercept, keep=True)
        problem = PartitionedHinge(blocks, width, data.n_classes, self.fit_intercept)
        solution = at_rest(InteriorPoint().solve, problem, settings, observer=self._observer())
        self._store_weights(data, kernel, nystroem, problem.weights(solution.point))
        self.intercept_ = solution.point.intercept
        self._conclude(solution, settings.tol)
        return self

    def _check_arguments(self) -> Settings:
        """Check every argument that needs no data."""
        settings = self._settings()
        check_weight("C", self.C)
        check_loss_argument(self.loss)
        check_flag("fit_intercept", self.fit_intercept)
        self._check_kernel()
        return settings

    def _prepare(self, X: Any, y: Any, sample_weight: Any, costs: Any = None) -> tuple[Settings, TrainingSet]:
        """Check every argument, then the data, in memory."""
        settings = self._check_arguments()
        data = self._training_set(X, y, sample_weight, costs=costs)
        check_costs_of_loss(self.loss, data)
        return settings, data

    def _store_solution(
        self,
        data: TrainingSet,
        kernel: Kernel,
        nystroem: NystroemMap | None,
        problem: HingeProblem,
        point: HingePoint,
    ) -> None:
        """Keep what scoring needs of a solution, and what the leave-one-out criteria need."""
        R = problem.model(point)
        bound = None if point.primal is None else problem.coefficients(point.dual)
        support = self._store(data, kernel, nystroem, R, None if nystroem else point.weights, bound)
        self.intercept_ = point.intercept
        of_dual = (R if bound is None else bound)[support]
        self._fit_record = FitRecord(data.labels[support], data.costs_of(support), len(data.rows), of_dual)

    def _support_problem(self) -> tuple[HingeProblem, HingePoint]:
        """Return the fitted problem and its solution, reduced to the support vectors: the others take no part."""
        if self._is_pairwise() or not hasattr(self, "support_vectors_"):
            raise ValueError(
                "The leave-one-out criteria need the kernel between support vectors, which a fit with "
                "kernel='precomputed', landmarks or Dask does not keep; MarginSearch has it at hand."
            )
        kernel = Kernel(self.kernel, self._gamma, self.degree, self.coef0)
        record = self._fit_record
        losses = hinge_losses(self.loss, record.labels, self.C * record.costs)
        if not losses.is_compiled:
            raise ValueError(
                f"The leave-one-out criteria need loss='lee', 'weston' or 'crammer', got {self.loss!r}."
            )
        problem = HingeProblem(
            make_gram(kernel, self.support_vectors_, self.cache_size), losses, self.fit_intercept
        )
        return problem, HingePoint(losses.dual_of(record.coefficients), self.intercept_, primal=self.dual_coef_.T)

    def _left_out_scores(
        self, X: Any, y: Any, sample_weight: Any = None, costs: Any = None
    ) -> NDArray[np.float64] | None:
        """Return the scores of the training rows of positive weight when each is left out.

        Of hinges the active set is frozen, of smooth losses a step of Newton's method is taken. Equal rows of a
        class leave together. None where the fit, on Dask, kept no coefficients of rows; for hinges of linear
        machines of fewer features than rows: their few free multipliers pin all scores, so that a frozen active
        set is far from a refit; and where the dual point is needed, but the fit has not handed it on.
        """
        solved: SolvedRows | None = self.__dict__.pop("_solved_rows", None)
        if self.support_ is None:
            return None
        record = self._fit_record
        losses = solved.problem.losses if solved else hinge_losses(self.loss, record.labels, record.costs)
        is_low = self.kernel == "linear" and self.landmarks is None and self.n_features_in_ < record.n_rows
        if is_low and not losses.is_smooth:
            return None
        if not (solved or losses.is_compiled or losses.is_smooth) or not has_block_per_row(losses):
            return None
        solved = solved or self._solved_again(X, y, sample_weight, costs)
        scores = left_out_scores(solved.problem, solved.point, self._settings(), scores=solved.scores)
        return scores[solved.place]

    def _equal_rows(self) -> NDArray[np.intp] | None:
        """Return which distinct row of a class each row of the last fit is, while that is handed on."""
        solved: SolvedRows | None = self.__dict__.get("_solved_rows")
        return None if solved is None else solved.place

    def _solved_again(self, X: Any, y: Any, sample_weight: Any, costs: Any) -> SolvedRows:
        """State the fitted problem of the distinct rows once more."""
        data = self._training_set(X, y, sample_weight, costs=costs, reset=False)
        rows, place = data.merged(pairwise=self._is_pairwise())

        def of_rows(coefficients: NDArray[np.float64]) -> NDArray[np.float64]:
            everyone, R = np.zeros((len(y), data.n_classes)), np.zeros((rows.n_rows, data.n_classes))
            everyone[self.support_] = coefficients
            np.add.at(R, place, everyone[data.rows])
            return R

        losses = hinge_losses(self.loss, rows.labels, self.C * rows.example_costs)
        kernel = Kernel(self.kernel, self._gamma, self.degree, self.coef0)
        nystroem = NystroemMap(kernel, self.landmarks_) if self.landmarks is not None else None
        problem = HingeProblem(self._gram(kernel, rows.X, nystroem), losses, self.fit_intercept)
        R = of_rows(self._fit_record.coefficients)
        dual = smooth_dual(problem, R, self.intercept_) if losses.is_smooth else losses.dual_of(R)
        is_compressed = not hasattr(self, "support_vectors_")  # its coefficients are of other points
        primal = None if is_compressed or nystroem is not None else of_rows(self.dual_coef_.T)
        return SolvedRows(problem, HingePoint(dual, self.intercept_, primal=primal), place)


def _hinge_block(
    rows: tuple[TrainingSet, FeatureGram], loss: str | Loss, C: float, fit_intercept: bool
) -> HingeProblem:
    """State the problem on the rows of a partition; those that cost nothing take no part."""
    data, gram = rows
    check_costs_of_loss(loss, data)
    costs = data.example_costs
    used = np.flatnonzero(costs.any(axis=1))
    return HingeProblem(
        FeatureGram(gram.features[used]), hinge_losses(loss, data.labels[used], C * costs[used]), fit_intercept
    )


def check_costs_of_loss(loss: str | Loss, data: TrainingSet | PartitionedSet) -> None:
    """Refuse costs of classes or of rows that the loss cannot use; rows in partitions are looked at there."""
    if isinstance(data, TrainingSet) and data.row_costs is not None:
        loss_of(loss).check_costs(data.labels, data.row_costs)
    else:
        loss_of(loss).check_costs(np.arange(data.n_classes), data.costs)


def hinge_losses(loss: str | Loss, labels: NDArray[np.intp], upper: NDArray[np.float64]) -> Losses:
    """Return the tables of a loss; `upper` (n, k) weighs its hinges."""
    return loss_of(loss).over(labels, upper)
