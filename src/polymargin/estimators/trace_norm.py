"""TraceNormSVC: the convex machine behind shared structure (Amit et al. 2007)."""

from dataclasses import replace
from typing import Any, Literal, Self

import numpy as np
import scipy.linalg
from numpy.typing import NDArray
from sklearn.utils.metaestimators import available_if

from polymargin.arguments import ClassWeight, KernelLike, RandomState, Width
from polymargin.checks import check_choice
from polymargin.estimators._callbacks import with_callbacks
from polymargin.estimators._partitions import rows_in_memory
from polymargin.estimators._tasks import TaskClassifier
from polymargin.estimators._transaction import all_or_nothing, refuses_costs
from polymargin.problems.shared import SharedPoint, SharedProblem, TaskMoments
from polymargin.problems.smoothed_trace import SmoothedTraceProblem
from polymargin.relations import RelationSet
from polymargin.solvers.choice import chosen
from polymargin.solvers.contract import Observer, Settings, Solution, at_rest
from polymargin.solvers.shared.alternation import balance
from polymargin.solvers.shared.base_step import make_base_step
from polymargin.solvers.shared.proximal_gradient import ProximalGradient
from polymargin.solvers.shared.variable_projection import task_solver

LOSSES = ("squared", "smoothed_hinge")


class TraceNormSVC(TaskClassifier):
    """Large-margin classifiers of low rank, by the trace norm.

    Finds the final classifiers Z, one per column, that minimise ::

        C * sum_il loss(y_il (A_l Z)_il) + 2 sqrt(relation_penalty) * ||Z||_*

    with ``||Z||_*`` the sum of the singular values, ``y`` the signs of the classes in the tasks of the scheme,
    and A the rows with a last column of -1 (so the intercept is penalised). The penalty is the least
    ``||W||^2 + relation_penalty ||M||^2`` of all ``Z = W M``: with the squared loss this is
    `SharedStructureSVC` without constraints on M, and the balanced alternation of W and M solves it exactly.
    The problem is convex, and `certificate_` a proof.

    Parameters
    ----------
    C : float, default=1.0
        Weight of the summed losses against the penalty.
    relation_penalty : float, default=1.0
        The penalty; from nu_max on, ``(C sigma_max(A'Y))^2`` for the squared loss, Z is zero.
        `polymargin.trace_norm_path` follows it from there.
    loss : {"squared", "smoothed_hinge"}, default="squared"
        ``(1 - z)^2``, or Rennie & Srebro's smoothed hinge: ``1/2 - z`` below 0, ``(1 - z)^2 / 2`` up to 1, then 0.
    scheme : {"ovr", "ovo"}, default="ovr"
        Final classifiers: every class against the rest, or every pair of classes, which vote.
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
    max_iter : int, default=-1
        Limit of the iterations; -1 for none.
    solver : str or object, default="auto"
        "alternation" or "variable_projection" (``loss="squared"``), "proximal_gradient" (the smoothed hinge), or
        an object with the methods `solve` and `accepts` of a solver. "auto" alternates where it can.
    tol : float, default=1e-6
        Relative duality gap to reach: between 1e-8 and 1e-4, as the smoothed hinge is solved by first-order steps.
    random_state : int, RandomState instance or None, default=None
        Draws the landmarks.
    verbose : bool, default=False
        Log a line per iteration (every tenth with the smoothed hinge).

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
    base_coef_, base_intercept_, relation_ : ndarrays
        The balanced factors W and M of Z, as in `SharedStructureSVC`; rows of M are orthogonal.
    singular_values_ : ndarray
        Singular values of Z, largest first; most are zero under a strong penalty.
    coef_ : ndarray of shape (n_final, n_features)
        The final classifiers, one per row (linear kernel without landmarks).
    dual_coef_ : ndarray of shape (n_final, n_landmarks)
        The same for kernels.
    intercept_ : ndarray of shape (n_final,)
    landmarks_ : ndarray or CSR of shape (n_landmarks, n_features)
        Basis points of the kernel.
    moments_ : ClassMoments or None
        What is known of all rows seen; None for the smoothed hinge, or fewer rows than unknowns.
    history_ : ndarray
        Objective after every iteration (every tenth with the smoothed hinge).
    certificate_ : Certificate
        Primal and dual objective and their relative gap.
    converged_ : bool
        Whether the certificate is within `tol`.
    n_iter_ : int
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
    Y. Amit, M. Fink, N. Srebro & S. Ullman (2007). Uncovering shared structures in multiclass classification.
    ICML, 17-24.

    Examples
    --------
    >>> from sklearn.datasets import load_digits
    >>> from polymargin import TraceNormSVC
    >>> X, y = load_digits(return_X_y=True)
    >>> model = TraceNormSVC(C=0.1, relation_penalty=3000.0).fit(X / 16, y)
    >>> model.certificate_.kind, model.certificate_.gap < 1e-6
    ('global', True)
    >>> int((model.singular_values_ > 1e-6).sum()) < 10
    True
    """

    def __init__(
        self,
        C: float = 1.0,
        relation_penalty: float = 1.0,
        *,
        loss: Literal["squared", "smoothed_hinge"] = "squared",
        scheme: Literal["ovr", "ovo"] = "ovr",
        kernel: KernelLike = "linear",
        gamma: Width = "scale",
        degree: float = 3,
        coef0: float = 0.0,
        landmarks: Any = None,
        class_weight: ClassWeight = None,
        max_iter: int = -1,
        solver: Any = "auto",
        tol: float = 1e-6,
        random_state: RandomState = None,
        verbose: bool = False,
    ) -> None:
        self.C = C
        self.relation_penalty = relation_penalty
        self.loss = loss
        self.scheme = scheme
        self.kernel = kernel
        self.gamma = gamma
        self.degree = degree
        self.coef0 = coef0
        self.landmarks = landmarks
        self.class_weight = class_weight
        self.max_iter = max_iter
        self.solver = solver
        self.tol = tol
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
        check_choice("loss", self.loss, LOSSES)
        if self.loss == "smoothed_hinge":
            self._fit_hinge(X, y, sample_weight)
        else:
            self._fit_batch(X, y, sample_weight)
        return self

    def _can_stream(self) -> bool:
        if self.loss != "squared":
            raise AttributeError(f"partial_fit needs loss='squared', got loss={self.loss!r}: chunks are not kept.")
        return super()._can_stream()

    @available_if(_can_stream)
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

    @property
    def singular_values_(self) -> NDArray[np.float64]:
        """Singular values of Z: the rows of the balanced M are orthogonal, of squared length ``s / sqrt(nu)``."""
        lengths = np.einsum("ij,ij->i", self.relation_, self.relation_)
        return np.sort(lengths * np.sqrt(self.relation_penalty))[::-1]

    def _check_partitionable(self) -> None:
        if self.loss != "squared":
            raise ValueError(
                f"loss must be 'squared' for Dask collections, got {self.loss!r}, which passes over all rows in "
                "each of its hundreds of steps."
            )
        super()._check_partitionable()

    def _check_arguments(self) -> Settings:
        check_choice("loss", self.loss, LOSSES)
        return super()._check_arguments()

    def _solve_tasks(
        self, tasks: TaskMoments, classes: NDArray, settings: Settings, observer: Observer | None
    ) -> Solution[SharedPoint]:
        problem = self._problem(tasks)
        solver = task_solver(self.solver, problem, make_base_step(tasks), to_the_end=True)
        return solver.solve(problem, settings, observer=observer)

    def _problem(self, tasks: TaskMoments) -> SharedProblem:
        """State the squared loss as shared structure with any M."""
        n_final = tasks.cross.shape[1]
        free = RelationSet.free(n_final, n_final)
        return SharedProblem(tasks, float(self.C), float(self.relation_penalty), free)

    def _fit_hinge(self, X: Any, y: Any, sample_weight: Any) -> None:
        """Fit the smoothed hinge, which needs all rows at hand."""
        settings, given, features, observer = self._begin(X, y, sample_weight)
        data = rows_in_memory(given, "The smoothed hinge")
        A, rotation = self._augmented(data, features), None
        if A.shape[0] < A.shape[1]:
            rotation, triangle = scipy.linalg.qr(A.T, mode="economic")
            A = triangle.T
        signs = self._codes(data.n_classes)[data.labels]
        problem = SmoothedTraceProblem(A, signs, self._weights(data), float(self.C), float(self.relation_penalty))
        asked = chosen(self.solver, (ProximalGradient(),), problem)
        solver = ProximalGradient() if asked is None else asked[0]
        solution: Solution[Any] = at_rest(solver.solve, problem, settings, observer=observer)
        factors = balance(solution.point, np.eye(signs.shape[1]), problem.relation_penalty)
        self._finish(data, features, None, replace(solution, point=SharedPoint(*factors)), rotation)
