"""SharedStructureSVC: base classifiers shared through learnt class relations (Vural et al. 2009)."""

from typing import Any, Literal, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.metaestimators import available_if

from polymargin.arguments import ClassWeight, KernelLike, RandomState, Width
from polymargin.checks import check_choice, check_integer, check_seed
from polymargin.estimators._callbacks import with_callbacks
from polymargin.estimators._tasks import TaskClassifier
from polymargin.estimators._transaction import all_or_nothing, refuses_costs
from polymargin.problems.shared import Formulation, SharedPoint, SharedProblem, TaskMoments
from polymargin.relations import resolve_relations
from polymargin.solvers.contract import Observer, Settings, Solution
from polymargin.solvers.shared.alternation import spectral_start
from polymargin.solvers.shared.base_step import BaseStep, make_base_step
from polymargin.solvers.shared.settings import DEFAULTS
from polymargin.solvers.shared.variable_projection import task_solver

FORMULATIONS = ("original", "fast", "sum_to_zero")
PAPER_ROUNDS = 5
"""Rounds of the paper, where there is no optimum to run to."""


class SharedStructureSVC(TaskClassifier):
    """Large-margin classifiers that share base classifiers through a learnt matrix of class relations.

    Finds base classifiers W and a relation matrix M, whose product holds the final classifiers, that minimise ::

        C * sum_l ||y_l - A_l W m_l||^2 + ||W||^2 + relation_penalty * ||M||^2

    over M within `bounds`, by turns in W and in M, each exactly; (1) and (4) of Vural et al. Final classifier l
    separates a class from the rest or two classes, ``y_l`` are its signs and ``A_l`` its rows, with a last
    column of -1 (so the intercept is penalised). `C` is the paper's mu, `relation_penalty` its nu.

    Without constraints on M (``bounds=None``) this *is* the trace-norm problem of `TraceNormSVC`, and is solved
    globally. With them it is not convex, and a stationary point is found: W is eliminated, and L-BFGS-B minimises
    over M. A number of rounds (`max_iter`; five in the paper) is early stopping, which `converged_` and
    `certificate_` tell.

    Parameters
    ----------
    C : float, default=1.0
        Weight of the summed squares against the penalties.
    relation_penalty : float, default=1.0
        Weight of ``||M||^2``.
    formulation : {"original", "fast", "sum_to_zero"}, default="original"
        "original": the problem above. "fast": the paper's (7)-(9), which fits one-vs-rest ridge classifiers and
        mixes them by an M-step. "sum_to_zero": (7) as it is written, which penalises the sum of the base
        classifiers in place of each, an ill-posed problem. The latter two are for ``scheme="ovr"``.
    scheme : {"ovr", "ovo"}, default="ovr"
        Final classifiers: every class against the rest, or every pair of classes, which vote.
    n_base : int or None, default=None
        Number b of base classifiers, at most the number of final ones (the default).
    bounds : tuple (lower, upper) or None, default=(-1, 1)
        Bounds of the entries of M: numbers, or arrays of the shape of M.
    constraint : {"symmetric", "psd", "nonnegative"} or None, default=None
        What else M has to be.
    fixed_relations : array-like of shape (n_base, n_final), dict or None, default=None
        Entries of M that are known: an array with NaN for the free ones, or ``{(class, class): value}``, the
        first class that of the base, the second that of the final classifier.
    kernel : {"linear", "rbf", "poly", "sigmoid", "laplacian", "precomputed"} or callable, default="linear"
        With a kernel the features of a row are its kernel values at the distinct training rows, or at the
        landmarks.
    gamma : {"scale", "auto"} or float, default="scale"
        Width of rbf, laplacian, poly and sigmoid: "scale" is ``1 / (n_features * X.var())``, "auto"
        ``1 / n_features``.
    degree : float, default=3
        Degree of the poly kernel.
    coef0 : float, default=0.0
        Constant of the poly and sigmoid kernels.
    landmarks : int, float, array-like of shape (m, n_features) or None, default=None
        Basis points of the kernel: a count, a fraction of the rows (both drawn in proportion to the class
        sizes) or the points themselves.
    class_weight : dict, "balanced" or None, default=None
        Factors of the weights of the classes.
    max_iter : int or None, default=None
        Rounds of one W-step and one M-step, in turns; the paper has five. Stopping after as many rounds as asked
        for is no failure and raises no warning. -1 goes on until `tol`, by faster steps, as fits without
        constraints on M always do. None is -1, but five rounds for "fast" and "sum_to_zero", which have no optimum
        to run to.
    solver : str or object, default="auto"
        "alternation", "variable_projection" (the original formulation), or an object with the methods `solve` and
        `accepts` of a solver. "auto" alternates where the rounds are counted or M is free.
    tol : float, default=1e-8
        Relative gap of the certificate at which to stop; the last digits are cheap.
    n_init : int, default=1
        Starts, of which the best is kept. The first is the identity, or where ``n_base`` is less than the
        number of final classifiers the leading directions of the independent ones; further ones are random
        matrices of zeros and ones.
    random_state : int, RandomState instance or None, default=None
        Draws landmarks and random starts.
    verbose : bool, default=False
        Log a line per round, to the logger "polymargin".

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
    base_coef_ : ndarray of shape (n_base, n_features)
        The base classifiers W, one per row, without their intercepts; of the kernel at the basis points.
    base_intercept_ : ndarray of shape (n_base,)
    relation_ : ndarray of shape (n_base, n_final)
        The matrix M: column l mixes the base classifiers into final classifier l.
    coef_ : ndarray of shape (n_final, n_features)
        The final classifiers ``W M``, one per row (linear kernel without landmarks).
    dual_coef_ : ndarray of shape (n_final, n_landmarks)
        The same for kernels.
    intercept_ : ndarray of shape (n_final,)
    landmarks_ : ndarray or CSR of shape (n_landmarks, n_features)
        Basis points of the kernel.
    moments_ : ClassMoments or None
        What is known of all rows seen; None if there were fewer rows than unknowns.
    history_ : ndarray of shape (`n_iter_`,)
        Objective after every round, or step over M; for "original" it never rises.
    certificate_ : Certificate
        "global" where the trace-norm bound proves it, else "stationary": no change of W alone or of M alone
        leads below `dual` ("fast" and "sum_to_zero": of M alone, their last step).
    converged_ : bool
        Whether the certificate is within `tol`.
    n_iter_ : int
        Rounds, and steps over M.
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
    V. Vural, G. Fung, R. Rosales & J. G. Dy (2009). Multi-class classifiers and their underlying shared
    structure. IJCAI, 1267-1272.

    Examples
    --------
    >>> from sklearn.datasets import load_digits
    >>> from polymargin import SharedStructureSVC
    >>> X, y = load_digits(return_X_y=True)
    >>> model = SharedStructureSVC(C=0.1, class_weight="balanced").fit(X / 16, y)
    >>> model.relation_.shape, bool(abs(model.relation_).max() <= 1)
    ((10, 10), True)
    >>> model.certificate_.kind, model.converged_
    ('stationary', True)
    """

    def __init__(
        self,
        C: float = 1.0,
        relation_penalty: float = 1.0,
        *,
        formulation: Formulation = "original",
        scheme: Literal["ovr", "ovo"] = "ovr",
        n_base: int | None = None,
        bounds: tuple[float, float] | None = (-1, 1),
        constraint: Literal["symmetric", "psd", "nonnegative"] | None = None,
        fixed_relations: Any = None,
        kernel: KernelLike = "linear",
        gamma: Width = "scale",
        degree: float = 3,
        coef0: float = 0.0,
        landmarks: Any = None,
        class_weight: ClassWeight = None,
        max_iter: int | None = None,
        solver: Any = "auto",
        tol: float = 1e-8,
        n_init: int = 1,
        random_state: RandomState = None,
        verbose: bool = False,
    ) -> None:
        self.C = C
        self.relation_penalty = relation_penalty
        self.formulation = formulation
        self.scheme = scheme
        self.n_base = n_base
        self.bounds = bounds
        self.constraint = constraint
        self.fixed_relations = fixed_relations
        self.kernel = kernel
        self.gamma = gamma
        self.degree = degree
        self.coef0 = coef0
        self.landmarks = landmarks
        self.class_weight = class_weight
        self.max_iter = max_iter
        self.solver = solver
        self.tol = tol
        self.n_init = n_init
        self.random_state = random_state
        self.verbose = verbose

    @refuses_costs("its tasks separate one class from the rest, whichever of these is predicted")
    @with_callbacks
    @all_or_nothing
    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Fit the machine.

        Parameters
        ----------
        X : array-like, sparse matrix, Dask array or Dask DataFrame of shape (n_samples, n_features)
            Training rows; the kernel matrix (n_samples, n_samples) with ``kernel="precomputed"``.
        y : array-like, Dask array or Dask Series of shape (n_samples,)
            Class labels.
        sample_weight : array-like of shape (n_samples,) or None, default=None
            Weights; a weight of 2 equals the row given twice.

        Returns
        -------
        self
        """
        self._fit_batch(X, y, sample_weight)
        return self

    @available_if(TaskClassifier._can_stream)
    @all_or_nothing
    def partial_fit(self, X: Any, y: Any, classes: Any = None, sample_weight: Any = None) -> Self:
        """Add rows to what was seen; the fit is that of `fit` on everything seen.

        Basis points of a kernel, and ``gamma="scale"``, are settled by the first chunk.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
            More rows.
        y : array-like of shape (n_samples,)
            Their labels.
        classes : array-like of shape (n_classes,) or None, default=None
            All classes that will ever come; needed in the first call only.
        sample_weight : array-like of shape (n_samples,) or None, default=None
            Weights; a weight of 2 equals the row given twice.

        Returns
        -------
        self
        """
        self._fit_chunk(X, y, classes, sample_weight)
        return self

    def _iteration_limit(self) -> Any:
        if self.max_iter is None:
            return -1 if self.formulation == "original" else PAPER_ROUNDS
        return self.max_iter

    def _check_arguments(self) -> Settings:
        check_choice("formulation", self.formulation, FORMULATIONS)
        settings = super()._check_arguments()
        check_integer("n_init", self.n_init, at_least=1)
        if self.formulation != "original":
            if self.scheme == "ovo":
                raise ValueError(f"formulation={self.formulation!r} needs scheme='ovr', got scheme='ovo'.")
            if self.max_iter == -1:
                raise ValueError(
                    f"max_iter must be at least 1 with formulation={self.formulation!r}, which has no optimum to "
                    "run to, got -1."
                )
        return settings

    def _early_stopping(self) -> bool:
        return self._iteration_limit() != -1 and not self._is_unconstrained()

    def _is_unconstrained(self) -> bool:
        free = self.bounds is None and self.constraint is None and self.fixed_relations is None
        return self.formulation == "original" and free

    def _problem(self, tasks: TaskMoments, classes: NDArray) -> SharedProblem:
        n_final = tasks.cross.shape[1]
        n_base = n_final if self.n_base is None else check_integer("n_base", self.n_base, at_least=1)
        if n_base > n_final:
            raise ValueError(
                f"n_base must be at most the number of final classifiers, {n_final} for scheme={self.scheme!r} "
                f"and {len(classes)} classes, got {n_base}."
            )
        relations = resolve_relations(
            self.bounds, self.constraint, self.fixed_relations, (n_base, n_final), classes, self.scheme
        )
        return SharedProblem(tasks, float(self.C), float(self.relation_penalty), relations, self.formulation)

    def _solve_tasks(
        self, tasks: TaskMoments, classes: NDArray, settings: Settings, observer: Observer | None
    ) -> Solution[SharedPoint]:
        return self._solve(self._problem(tasks, classes), make_base_step(tasks), settings, observer)

    def _solve(
        self, problem: SharedProblem, base_step: BaseStep, settings: Settings, observer: Observer | None = None
    ) -> Solution[SharedPoint]:
        """Solve from every start and keep the best."""
        early = self._early_stopping()
        solver = task_solver(self.solver, problem, base_step, to_the_end=not early)
        settings = settings if early else Settings(settings.tol, DEFAULTS.longest)
        solutions = (
            solver.solve(problem, settings, start=start, observer=observer)
            for start in self._starts(problem, base_step)
        )
        return min(solutions, key=lambda solution: solution.certificate.primal)

    def _starts(self, problem: SharedProblem, base_step: BaseStep) -> list[NDArray[np.float64]]:
        shape = problem.relations.lower.shape
        starts = [np.eye(shape[0]) if shape[0] == shape[1] else spectral_start(problem, base_step)]
        if not problem.is_convex:
            rng = check_seed("random_state", self.random_state)
            starts += [random_start(rng, shape) for _ in range(self.n_init - 1)]
        return starts


def random_start(rng: np.random.RandomState, shape: tuple[int, int]) -> NDArray[np.float64]:
    """Return a random matrix of zeros and ones without zero rows, the paper's start for fewer base classifiers."""
    start = rng.randint(0, 2, size=shape).astype(np.float64)
    start[np.arange(shape[0]), rng.randint(0, shape[1], size=shape[0])] = 1.0
    return start
