"""RobustSVC: the utility-based robust SVM of Liu, Wu & He (2011)."""

import warnings
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import Any, Literal, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.validation import _num_samples

from polymargin.arguments import ClassWeight, KernelLike, RandomState, Width
from polymargin.checks import check_choice, check_flag, check_integer, check_real, check_seed, check_weight
from polymargin.costs import CONVERSIONS, resolve_utility, utility_of_costs
from polymargin.estimators._base import TrainingSet
from polymargin.estimators._callbacks import with_callbacks
from polymargin.estimators._kernel import KernelClassifier, features_at_hand
from polymargin.estimators._partitions import PartitionedSet
from polymargin.estimators._transaction import all_or_nothing
from polymargin.gram import FeatureGram
from polymargin.problems.robust import (
    LOSSES,
    PartitionedRobust,
    RobustLoss,
    RobustPoint,
    RobustProblem,
    consistent_truncation,
    margins,
)
from polymargin.solvers.choice import chosen
from polymargin.solvers.contract import Interrupted, Settings, Solution, Solver, Status
from polymargin.solvers.hinge.interior_point import InteriorSequence
from polymargin.solvers.robust.dc import DCAlgorithm, convex_solver
from polymargin.solvers.robust.settings import DEFAULTS

Start = Literal["utility", "identity", "local"]
STARTS: tuple[Start, ...] = ("utility", "identity", "local")


class RobustSVC(KernelClassifier):
    """Robust support vector machine with utilities of Liu, Wu & He.

    Finds score functions ``f_j = h_j + b_j``, one per class, that sum to zero and have small ::

        C * sum_i w_i sum_j U[y_i, j] T_s(f_j(x_i) - max_{m != j} f_m(x_i)) + 1/2 sum_j ||h_j||^2

    where ``U[y, j]`` is the utility of predicting class j for class y, and the truncated loss
    ``T_s(u) = min(l(u), l(s))`` stops growing at the margin s: an outlier costs no more than any other error. The
    objective is not convex: the DC algorithm finds a stationary point from each of two starts, and the better
    one is kept. In the notation of the paper ``C = 1/(n lambda)``.

    Other machines are settings of this one: ``truncation=0`` is psi-learning, ``truncation="auto"`` the robust
    SVM (RSVM), ``truncation=-inf`` the SVM (WSVM; convex), each weighted by `utility`. Without utilities the last
    is the machine of Crammer & Singer with margin 1: its scores at C are half of those of
    ``MulticategorySVC(C=2*C, loss="crammer")``, which has margin 2.

    Parameters
    ----------
    C : float, default=1.0
        Weight of the summed losses against the penalty.
    utility : array-like, DataFrame, dict, "ordinal" or None, default=None
        Utility of predicting class j for class i: (n_classes, n_classes) in the order of `classes_`, a DataFrame
        labelled by classes, ``{(true, predicted): utility}`` (others 1 for the true class, else 0), "ordinal"
        (``k - 1 - |i - j|`` less each row's minimum). None is the identity.
    cost_matrix : array-like, DataFrame, dict, "ordinal" or None, default=None
        Costs instead of utilities, converted as `conversion` says.
    conversion : {"rows", "paper"}, default="rows"
        How costs become utilities: "rows", the largest cost of each row less its costs; "paper", (9) of Liu, Wu &
        He, the largest of all costs less the costs. The Bayes rule is the same; the utilities of the paper draw
        the scores towards zero where rows have no worst class in common.
    truncation : "auto" or float, default="auto"
        The margin s, at most 0, from which the loss is constant. "auto" is the lowest s for which the machine is
        Fisher consistent (Theorem 3.1): ``-1/(k-1)`` for the hinge, ``log(1 - 1/k)`` for the exponential,
        ``-log(2^(k/(k-1)) - 1)`` for the logistic loss.
    loss : {"hinge", "exponential", "logistic"}, default="hinge"
        The loss l: ``[1 - u]_+``, ``exp(-u)`` or ``log(1 + exp(-u))``.
    kernel : {"linear", "rbf", "poly", "sigmoid", "laplacian", "precomputed"} or callable, default="linear"
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
        (both drawn in proportion to the class sizes) or the points themselves.
    priors : array-like, dict or None, default=None
        Proportions of the classes in the population, where the sample does not have them.
    class_weight : dict, "balanced" or None, default=None
        Factors of the weights of the classes.
    fit_intercept : bool, default=True
        Whether to fit the unpenalised intercepts.
    starts : sequence of {"utility", "identity", "local"}, default=("utility", "identity", "local")
        Where the DC algorithm starts: at the untruncated machine with the utilities given, as the paper has it,
        and at the one with the identity in their place. Where no class holds half of the expected utility the
        first is zero and stays there; the second escapes. "local" then searches around the best of them, as long
        as that lowers the objective: from multiples of its scores, and from its scores shifted from one class to
        another, for the classes that it confuses most; for up to 200 distinct rows in memory.
    n_init : int, default=1
        Starts in all, of which those beyond the first are random: the untruncated machine of randomly weighted
        rows. Rows in memory only.
    max_dc_iter : int, default=50
        Limit of the convex steps from a start.
    solver : str or object, default="auto"
        What solves the convex steps: "interior_point", on features or a root of the kernel matrix, with
        ``loss="hinge"`` also "decomposition" (utilities of right predictions alone) or "proximal_newton", or an
        object with the methods `solve` and `accepts` of a solver. "auto" takes the first where features, or the
        rank of the kernel, are few, and otherwise the second, or others of `MulticategorySVC`, where it can.
    tol : float, default=1e-6
        Relative gap that certifies a stationary point, between the 1e-8 and the 1e-4 of convex machines: a larger
        one could not tell whether the last two convex steps differ.
    max_iter : int, default=-1
        Limit of the iterations within a convex step; -1 for none.
    time_limit : float or None, default=None
        Limit of the whole fit in seconds, the kernel matrix included.
    cache_size : float, default=1000
        Megabytes for the kernel matrix; beyond, its rows are computed when they are needed.
    random_state : int, RandomState instance or None, default=None
        Draws the landmarks.
    verbose : bool, default=False
        Log a line per convex step, to the logger "polymargin".

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
    coef_ : ndarray of shape (n_classes, n_features)
        Coefficients, for the linear kernel without landmarks.
    dual_coef_ : ndarray of shape (n_classes, n_support) or (n_classes, n_landmarks)
        Coefficients of the kernel at the support vectors, or at the landmarks.
    support_ : ndarray of shape (n_support,)
        Rows of the training data that are support vectors.
    support_vectors_ : ndarray or CSR of shape (n_support, n_features)
        The support vectors; empty for a precomputed kernel.
    landmarks_ : ndarray or CSR of shape (n_landmarks, n_features)
        The landmarks, where asked for.
    intercept_ : ndarray of shape (n_classes,)
    utility_ : ndarray of shape (n_classes, n_classes)
        The utilities used; None where `fit` was given costs per row.
    truncation_ : float
        The margin s used.
    suspicion_ : ndarray of shape (n_samples,)
        Margin ``f_y - max_{m != y} f_m`` of every training row under its own label (NaN where its weight is zero):
        the lower, the more suspect the label.
    suspect_labels_ : ndarray
        Rows whose loss under their own label was truncated, ``suspicion_ < truncation_``: outliers, wrong labels.
        Both are None on Dask, where `decision_function` gives the margins of any rows.
    start_ : {"utility", "identity", "local", "random"}
        The start that led to the lowest objective.
    dc_history_ : dict of str to ndarray
        Objective after every convex step, for the best of each kind of start.
    certificate_ : Certificate
        Objective and gap of the last convex step; of kind "stationary", or "global" without truncation.
    converged_ : bool
        Whether the certificate is within `tol`.
    n_iter_ : int
        Convex steps from the start that was kept.
    solver_ : str
        Name of the method that solved the convex steps.
    status_ : str
        Why it stopped: "solved", or the limit that it met.
    trace_ : Trace
        The methods that took part, one row each: iterations, objectives, gap, counted and predicted work.
    n_features_in_ : int
    feature_names_in_ : ndarray of shape (`n_features_in_`,)

    References
    ----------
    Y. Liu, Y. Wu & Q. He (2011). Utility-based weighted multicategory robust support vector machines. Statistics
    and Its Interface 4, 465-475.

    Examples
    --------
    >>> from polymargin import RobustSVC
    >>> from polymargin.datasets import make_triangle
    >>> sample = make_triangle(flip=0.15, random_state=0)
    >>> model = RobustSVC(C=0.1, utility={(0, 1): 0.4}).fit(sample.data, sample.target)
    >>> model.certificate_.kind, model.certificate_.gap < 1e-6
    ('stationary', True)
    """

    suspicion_: Any
    suspect_labels_: Any

    def __init__(
        self,
        C: float = 1.0,
        *,
        utility: Any = None,
        cost_matrix: Any = None,
        conversion: Literal["rows", "paper"] = "rows",
        truncation: Literal["auto"] | float = "auto",
        loss: Literal["hinge", "exponential", "logistic"] = "hinge",
        kernel: KernelLike = "linear",
        gamma: Width = "scale",
        degree: float = 3,
        coef0: float = 0.0,
        landmarks: Any = None,
        priors: Any = None,
        class_weight: ClassWeight = None,
        fit_intercept: bool = True,
        starts: Sequence[Start] = STARTS,
        n_init: int = 1,
        max_dc_iter: int = 50,
        solver: Any = "auto",
        tol: float = 1e-6,
        max_iter: int = -1,
        time_limit: float | None = None,
        cache_size: float = 1000,
        random_state: RandomState = None,
        verbose: bool = False,
    ) -> None:
        self.C = C
        self.utility = utility
        self.cost_matrix = cost_matrix
        self.conversion = conversion
        self.truncation = truncation
        self.loss = loss
        self.kernel = kernel
        self.gamma = gamma
        self.degree = degree
        self.coef0 = coef0
        self.landmarks = landmarks
        self.priors = priors
        self.class_weight = class_weight
        self.fit_intercept = fit_intercept
        self.starts = starts
        self.n_init = n_init
        self.max_dc_iter = max_dc_iter
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
            What predicting each class would cost each row, instead of `utility` or `cost_matrix`, as in
            `MulticategorySVC.fit`. The utilities of a row are its largest cost less its costs.

        Returns
        -------
        self
        """
        settings = self._check_arguments().started()
        given = self._data(X, y, sample_weight, costs=costs)
        self.utility_ = None if costs is not None else self._utilities(given)
        self.truncation_ = self._truncation(given.n_classes)
        if isinstance(given, PartitionedSet):
            solution = self._fit_partitions(given, settings)
        else:
            solution = self._fit_rows(given, _num_samples(X), settings)
        self._conclude(solution, settings.tol)
        return self

    def _fit_rows(self, given: TrainingSet, n_samples: int, settings: Settings) -> Solution[RobustPoint]:
        """Fit to rows in memory, equal ones made one."""
        data, place = given.merged(pairwise=self._is_pairwise())
        kernel, nystroem = self._kernel_of(data)
        gram = self._gram(kernel, data.X, nystroem, settings.until)

        def state(
            truncation: float, utility: NDArray[np.float64] | None = self.utility_, emphasis: Any = 1.0
        ) -> RobustProblem:
            weight = self.C * (emphasis * data.weights)[:, None] * utility_of_rows(data, utility, self.conversion)
            return RobustProblem(gram, weight, truncation, self.fit_intercept, self.loss)

        problem = state(self.truncation_)
        solution = self._solve(
            state, convex_solver(problem, self.solver, until=settings.until), settings, data.labels
        )
        R = problem.coefficients(solution.point)
        self._store(data, kernel, nystroem, R)
        self.intercept_ = solution.point.step.intercept
        F = problem.evaluate(R, self.intercept_)[0]
        self._judge_labels(given, F[place], n_samples)
        self._warn_of_collapse(float(np.abs(F).max()))
        return solution

    def _fit_partitions(self, data: PartitionedSet, settings: Settings) -> Solution[RobustPoint]:
        """Fit to rows in partitions: by the interior point, which takes sums over them."""
        kernel, nystroem = self._kernel_of(data)
        width = self._width(data, nystroem)
        if self.utility_ is None and self.conversion == "paper":
            raise ValueError(
                "conversion must be 'rows' for costs of rows on Dask, got 'paper': no partition knows the largest "
                "of all costs."
            )
        used = data if self.utility_ is None else data.restricted(np.any(self.utility_, axis=1))
        rows = used.blocks.map(features_at_hand, nystroem, keep=True)

        def state(truncation: float, utility: NDArray[np.float64] | None = self.utility_) -> PartitionedRobust:
            blocks = rows.map(_robust_block, self.C, utility, truncation, self.fit_intercept, self.loss)
            return PartitionedRobust(blocks, width, data.n_classes, truncation, self.fit_intercept)

        problem = state(self.truncation_)
        asked = chosen(self.solver, (InteriorSequence(),), problem.convex_step())
        solution = self._solve(state, InteriorSequence() if asked is None else asked[0], settings)
        self._store_weights(data, kernel, nystroem, problem.weights(solution.point))
        self.intercept_ = solution.point.step.intercept
        self.suspicion_, self.suspect_labels_ = None, None
        self._warn_of_collapse(problem.reached(solution.point)[0].reduce(max, _largest_score))
        return solution

    def _check_arguments(self) -> Settings:
        """Check every argument that needs no data."""
        settings = self._settings()
        check_weight("C", self.C)
        check_choice("loss", self.loss, LOSSES)
        check_choice("conversion", self.conversion, CONVERSIONS)
        check_flag("fit_intercept", self.fit_intercept)
        check_integer("max_dc_iter", self.max_dc_iter, at_least=1)
        check_integer("n_init", self.n_init, at_least=1)
        self._check_kernel()
        if self.utility is not None and self.cost_matrix is not None:
            raise ValueError(
                "utility and cost_matrix are two ways to say the same: give one of them and leave the other None, "
                "got both."
            )
        if isinstance(self.truncation, str):
            check_choice("truncation", self.truncation, ("auto",))
        else:
            check_real("truncation", self.truncation, at_most=0.0, finite=False)
        if self.loss == "exponential" and self.truncation == -np.inf:
            raise ValueError(
                "truncation must be 'auto' or finite with loss='exponential', whose slope is unbounded."
            )
        if isinstance(self.starts, str) or not isinstance(self.starts, Sequence) or not self.starts:
            raise ValueError(
                f"starts must be a sequence of {' and '.join(map(repr, STARTS))}, got {self.starts!r}."
            )
        for start in self.starts:
            check_choice("starts", start, STARTS)
        return settings

    def _utilities(self, data: TrainingSet | PartitionedSet) -> NDArray[np.float64]:
        if self.cost_matrix is not None:
            return utility_of_costs(data.costs, self.conversion)
        utility = resolve_utility(self.utility, data.classes)
        not_best = np.flatnonzero(utility.max(axis=1) > utility.diagonal())
        if len(not_best):
            warnings.warn(
                f"utility rates another class above the true one for {data.classes[not_best].tolist()}: the fit "
                "will prefer to misclassify them.",
                UserWarning,
                stacklevel=3,
            )
        return utility

    def _truncation(self, n_classes: int) -> float:
        lowest = consistent_truncation(self.loss, n_classes)
        if self.truncation == "auto":
            return lowest
        if n_classes > 2 and np.isfinite(self.truncation) and self.truncation < lowest * (1 + 1e-12):
            warnings.warn(
                f"truncation={self.truncation:g} is outside [{lowest:.4g}, 0], where the truncated {self.loss} "
                f"loss with {n_classes} classes is Fisher consistent.",
                UserWarning,
                stacklevel=3,
            )
        return float(self.truncation)

    def _solve(
        self,
        state: Callable[..., RobustProblem | PartitionedRobust],
        convex: Solver,
        settings: Settings,
        labels: NDArray[np.intp] | None = None,
    ) -> Solution[RobustPoint]:
        """Run the DC algorithm from every start that can lead to a different solution; keep the best."""
        problem = state(self.truncation_)
        algorithm, observer = DCAlgorithm(convex, self.max_dc_iter), self._observer()
        solutions: dict[str, Solution[RobustPoint]] = {}
        status = None
        try:
            for name, scores in self._start_scores(state, convex, settings, labels, problem, solutions):
                found = algorithm.solve(problem, settings, start=scores, observer=observer)
                if name not in solutions or _objective(found) < _objective(solutions[name]):
                    solutions[name] = found
                if settings.is_over:
                    break
        except Interrupted as stop:
            if isinstance(stop.solution.point, RobustPoint):  # not the start of a start
                solutions.setdefault("utility", stop.solution)
            if not solutions:
                raise
            status = Status.INTERRUPTED
        self.start_ = min(solutions, key=lambda name: _objective(solutions[name]))
        self.dc_history_ = {
            name: np.array([record.primal for record in found.history]) for name, found in solutions.items()
        }
        best = solutions[self.start_]
        return best if status is None else replace(best, status=status)

    def _start_scores(
        self,
        state: Callable[..., RobustProblem | PartitionedRobust],
        convex: Solver,
        settings: Settings,
        labels: NDArray[np.intp] | None,
        problem: RobustProblem | PartitionedRobust,
        solutions: dict[str, Solution[RobustPoint]],
    ) -> Iterator[tuple[str, Any]]:
        """Yield names and scores of the starts; `solutions` are those that the starts so far have led to."""

        def untruncated(**changes: Any) -> Any:
            # without its truncation the exponential loss has no steepest slope
            plain = state(self.truncation_ if self.loss == "exponential" else -np.inf, **changes)
            rough = replace(settings, tol=max(settings.tol, DEFAULTS.start_tol))
            return plain.reached(RobustPoint(convex.solve(plain.convex_step(), rough).point, None))[0]

        names = dict.fromkeys(self.starts)
        if "utility" in names or np.isneginf(self.truncation_):
            yield "utility", None
        if np.isneginf(self.truncation_):
            return
        identity = np.eye(problem.n_classes)
        is_identity = self.utility_ is not None and np.array_equal(self.utility_, self.utility_.max() * identity)
        if not (solutions and is_identity) and ("identity" in names or not solutions):
            yield "identity", untruncated(utility=identity)
        if labels is None:
            return
        rng = check_seed("random_state", self.random_state)
        for _ in range(self.n_init - 1):
            yield "random", untruncated(emphasis=rng.exponential(size=len(labels)) ** 3)
        if "local" not in names or len(labels) > DEFAULTS.local_rows:
            return
        lowest = np.inf
        for _ in range(DEFAULTS.local_rounds):
            best = min(solutions.values(), key=_objective)
            if _objective(best) >= (1.0 - settings.tol) * lowest:
                return
            lowest = _objective(best)
            F: Any = problem.reached(best.point)[0]
            for scale in DEFAULTS.local_scales:
                yield "local", scale * F
            for raised, lowered in _confused_pairs(F, labels):
                yield "local", F + DEFAULTS.local_shift * (identity[raised] - identity[lowered])

    def _judge_labels(self, data: TrainingSet, F: NDArray[np.float64], n_samples: int) -> None:
        own = margins(F)[np.arange(len(F)), data.labels]
        self.suspicion_ = np.full(n_samples, np.nan)
        self.suspicion_[data.rows] = own
        self.suspect_labels_ = data.rows[own < self.truncation_]

    def _warn_of_collapse(self, largest_score: float) -> None:
        if largest_score < DEFAULTS.collapsed:
            warnings.warn(
                f"The scores of all training rows are within {largest_score:.1g} of zero and the predictions "
                "noise: no class holds half of the expected utility, or C is too small. Use both starts, "
                "truncation='auto', a larger C, or utilities nearer to the identity.",
                UserWarning,
                stacklevel=4,
            )


def _robust_block(
    rows: tuple[TrainingSet, FeatureGram],
    C: float,
    utility: NDArray[np.float64] | None,
    truncation: float,
    fit_intercept: bool,
    loss: RobustLoss,
) -> RobustProblem:
    """State the problem on the rows of a partition."""
    data, gram = rows
    weight = C * data.weights[:, None] * utility_of_rows(data, utility)
    return RobustProblem(gram, weight, truncation, fit_intercept, loss)


def utility_of_rows(
    data: TrainingSet, utility: NDArray[np.float64] | None, conversion: str = "rows"
) -> NDArray[np.float64]:
    """Return the utilities (n, k) of rows: those of their classes or, without any, of their own costs."""
    return utility_of_costs(data.unweighted_costs, conversion) if utility is None else utility[data.labels]


def _confused_pairs(F: NDArray[np.float64], labels: NDArray[np.intp]) -> list[tuple[int, int]]:
    """Return the pairs of classes, in either order, between which most of the distinct rows are misclassified."""
    k = F.shape[1]
    confusion = np.zeros((k, k))
    np.add.at(confusion, (labels, F.argmax(axis=1)), 1.0)
    first, second = np.triu_indices(k, 1)
    most = np.argsort(-(confusion + confusion.T)[first, second], kind="stable")[: DEFAULTS.local_pairs]
    pairs = [(int(first[at]), int(second[at])) for at in most]
    return pairs + [(second, first) for first, second in pairs]


def _objective(solution: Solution[RobustPoint]) -> float:
    """Return the objective of the last step; where a limit came before the first, that of the start."""
    return solution.history[-1].primal if solution.history else solution.certificate.primal


def _largest_score(F: NDArray[np.float64]) -> float:
    return float(np.abs(F).max())
