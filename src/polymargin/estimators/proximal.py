"""ProximalSVC: the multicategory proximal support vector machine of Fung & Mangasarian."""

from collections.abc import Iterable
from dataclasses import replace
from typing import Any, Literal, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.validation import check_is_fitted

from polymargin.arguments import ClassWeight, KernelLike, RandomState, Width
from polymargin.checks import check_choice, check_finite_rows, check_flag, check_real, check_weight
from polymargin.estimators._base import TrainingSet
from polymargin.estimators._callbacks import with_callbacks
from polymargin.estimators._moments import MomentClassifier, class_moments, features_scoring
from polymargin.estimators._partitions import PartitionedSet, rows_in_memory
from polymargin.estimators._scoring import Scoring, prepared
from polymargin.estimators._statement import Statement, brought_together, state_problem
from polymargin.estimators._transaction import all_or_nothing, refuses_costs
from polymargin.gram import KernelFeatures, check_kernel_name
from polymargin.moments import ClassMoments
from polymargin.problems.proximal import NormalEquations, ProximalRows, RowProblem, Sides, in_memory
from polymargin.solvers.choice import chosen
from polymargin.solvers.contract import Settings, Solution, Solver
from polymargin.solvers.ridge.exact import DualRidgeSolver, NormalEquationsSolver
from polymargin.solvers.ridge.left_out import LeftOutSides, left_out_scores
from polymargin.solvers.ridge.refinement import (
    Refinement,
    margin_sums,
    refine,
    refine_blocks,
    refined_left_out,
)
from polymargin.solvers.ridge.scanned_refinement import refine_in_memory, scored_rows
from polymargin.solvers.ridge.settings import RidgeSettings


class ProximalSVC(MomentClassifier):
    """Multicategory proximal support vector machine of Fung & Mangasarian.

    Every class r is set against the rest, with signs ``d_i = 1`` in the class and -1 elsewhere, by ::

        min over (v, g)   C/2 sum_i w_i N_i (B_i v - g - d_i)^2 + 1/2 (|v|^2 + g^2)

    where ``B = X``, or ``K(X, landmarks)`` for a kernel, and N balances the class against the rest. This is one
    linear system a class, made of sums over the rows: chunks of rows can be added (`partial_fit`) and removed
    (`forget`) exactly. The Newton refinement then slides and scales each score to ``a B_i v - g`` by ::

        min over (a, g)   C/2 sum_i w_i (1 - d_i (a B_i v - g))_+^2 + 1/2 (a^2 |v|^2 + g^2)

    in which rows beyond their margin no longer count. The highest score wins. ``C`` is the paper's nu.

    Parameters
    ----------
    C : float, default=1.0
        Weight of the summed errors against the penalty.
    kernel : {"linear", "rbf", "poly", "sigmoid", "laplacian", "precomputed"} or callable, default="linear"
        The kernel; it need not be positive definite. A callable is given two arrays of rows and returns their
        kernel matrix.
    gamma : {"scale", "auto"} or float, default="scale"
        Width of rbf, laplacian, poly and sigmoid: "scale" is ``1 / (n_features * X.var())``, "auto"
        ``1 / n_features``.
    degree : float, default=3
        Degree of the poly kernel.
    coef0 : float, default=0.0
        Constant of the poly and sigmoid kernels.
    landmarks : int, float, array-like of shape (m, n_features) or None, default=None
        Points at which the kernel is placed (reduced kernels): a count, a fraction of the rows (the paper uses
        0.15; both in proportion to the class sizes) or the points themselves. None places one at every distinct
        row. `partial_fit` takes them from the first chunk.
    landmark_method : {"sample", "kmeans"}, default="sample"
        How counted landmarks are found: rows drawn at random, or centres of the classes found by k-means.
    balance : bool, default=True
        Whether a class and the rest of the classes weigh the same in the class's problem (B-MPSVM).
    refine : bool, default=True
        Whether to apply the Newton refinement (BR-MPSVM). It needs the rows once more, so that `partial_fit` and
        `forget` leave it to `refine_on`.
    refine_weights : {"uniform", "balanced"}, default="uniform"
        Weights of the rows in the refinement: their sample weights, as in the paper, or also the balancing.
    class_weight : dict, "balanced" or None, default=None
        Weights of the classes, which multiply the sample weights; "balanced" gives all classes the same total, and
        needs all rows at once: `partial_fit`, `forget` and `refine_on` refuse it. Balancing acts after them: where
        `balance` and ``refine_weights="balanced"`` make the two sides alike, weights of two classes are undone.
    solver : str or object, default="auto"
        "normal_equations", of the features, "dual_ridge", of the rows, or an object with the methods `solve` and
        `accepts` of a solver; "auto" takes the smaller system. `partial_fit` and `forget` have no rows.
    tol : float, default=1e-8
        Relative duality gap above which a fit warns; a direct solution reaches it at no further cost.
    random_state : int, RandomState instance or None, default=None
        Draws the landmarks.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
    coef_ : ndarray of shape (n_classes, n_features)
        Coefficients, for the linear kernel without landmarks.
    dual_coef_ : ndarray of shape (n_classes, n_landmarks)
        Coefficients of the kernel at the landmarks, otherwise.
    intercept_ : ndarray of shape (n_classes,)
    landmarks_ : ndarray or CSR of shape (n_landmarks, n_features)
        The landmarks; for a precomputed kernel, the positions of their columns.
    refinement_ : Refinement or None
        Scale and offset, Newton steps, objective and gap of every class, if refined.
    support_ : ndarray of shape (n_support,) or None
        Rows within the margin of some class after the refinement (17); None after a stream or on Dask.
    moments_ : ClassMoments or None
        All that was kept of the data. None where a large system of more unknowns than rows did not need them.
    certificate_ : Certificate
        Primal and dual objective of the problems before refinement, and the residual of the normal equations.
    converged_ : bool
        Whether the certificate is within `tol`.
    n_iter_ : int
        Zero: the systems are solved directly (`refinement_` counts Newton steps).
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
    G. M. Fung & O. L. Mangasarian (2005). Multicategory proximal support vector machine classifiers. Machine
    Learning 59, 77-97.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from polymargin import ProximalSVC
    >>> X, y = load_iris(return_X_y=True)
    >>> model = ProximalSVC(C=2.0).fit(X, y)
    >>> bool(model.score(X, y) > 0.95)
    True
    >>> stream = ProximalSVC(C=2.0, refine=False)
    >>> for rows in (slice(0, 80), slice(80, 150)):
    ...     stream = stream.partial_fit(X[rows], y[rows], classes=[0, 1, 2])
    >>> whole = ProximalSVC(C=2.0, refine=False).fit(X, y)
    >>> bool(abs(stream.coef_ - whole.coef_).max() < 1e-12)
    True
    """

    refinement_: Refinement | None
    support_: NDArray[np.intp] | None
    moments_: ClassMoments | None

    _tuning = RidgeSettings()

    def __init__(
        self,
        C: float = 1.0,
        *,
        kernel: KernelLike = "linear",
        gamma: Width = "scale",
        degree: float = 3,
        coef0: float = 0.0,
        landmarks: Any = None,
        landmark_method: Literal["sample", "kmeans"] = "sample",
        balance: bool = True,
        refine: bool = True,
        refine_weights: Literal["uniform", "balanced"] = "uniform",
        class_weight: ClassWeight = None,
        solver: Any = "auto",
        tol: float = 1e-8,
        random_state: RandomState = None,
    ) -> None:
        self.C = C
        self.kernel = kernel
        self.gamma = gamma
        self.degree = degree
        self.coef0 = coef0
        self.landmarks = landmarks
        self.landmark_method = landmark_method
        self.balance = balance
        self.refine = refine
        self.refine_weights = refine_weights
        self.class_weight = class_weight
        self.solver = solver
        self.tol = tol
        self.random_state = random_state

    @refuses_costs("its squared errors separate one class from the rest, whichever of these is predicted")
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
        settings = self._check_arguments()
        # NaN and infinity show in the moments of the rows, which spares a pass to look for them
        unweighted = sample_weight is None and self.class_weight is None
        show = self.kernel == "linear" and self.landmarks is None and unweighted
        data = self._data(X, y, sample_weight, check_finite=not show)
        self._observer()
        solution = self._fit_prepared(data, self._features(data), settings)
        self._conclude(solution, settings.tol)
        return self

    def _fit_prepared(
        self, data: TrainingSet | PartitionedSet, features: KernelFeatures | None, settings: Settings
    ) -> Solution[NDArray[np.float64]]:
        """Solve, refine and store; also for searches that have chosen the features."""
        data = brought_together(data, features)
        statement = self._state(data, features)
        moments, rows = statement.moments, statement.rows
        if isinstance(data, TrainingSet) and (moments is None or not moments.are_moderate()):
            check_finite_rows(data.X, self)
        method, problem = self._method(statement)
        solution = method.solve(problem, settings)
        self._adopt(data, features, moments, solution.point, rows)
        return solution

    def _method(self, statement: Statement) -> tuple[Solver, Any]:
        """Return the solver asked for and the form of the problem that it takes; by itself the smaller system."""
        moments, equations, rows, class_qr = statement
        by_features, by_rows = NormalEquationsSolver(rows, class_qr, self._tuning), DualRidgeSolver(self._tuning)
        forms: list[Any] = [rows]
        if moments is not None:
            forms.insert(0, NormalEquations(moments, rows.sides, rows.C) if equations is None else equations)
        asked = chosen(self.solver, (by_features, by_rows), *forms)
        if asked is not None:
            return asked
        return (by_rows, in_memory(rows)) if equations is None else (by_features, equations)

    def _state(self, data: TrainingSet | PartitionedSet, features: KernelFeatures | None) -> Statement:
        return state_problem(data, features, self.C, balance=self.balance, tuning=self._tuning)

    def _adopt(
        self,
        data: TrainingSet | PartitionedSet,
        features: KernelFeatures | None,
        moments: ClassMoments | None,
        Z: NDArray[np.float64],
        rows: RowProblem,
    ) -> None:
        """Store the solution Z (q, k) of the problem and refine it."""
        self._store(data.classes, features, moments, Z)
        if self.refine:
            geometry = self._geometry(data.totals if moments is None else moments.totals)
            if isinstance(rows, ProximalRows):
                refinement, within = refine_in_memory(rows, Z[:-1], *geometry, self.C, tuning=self._tuning)
                self._set_refined(refinement)
                self.support_ = rows_in_memory(data, "A refinement in memory").rows[within]
            else:
                blocks = rows.blocks.map(scored_rows, Z[:-1])
                self._set_refined(refine_blocks(blocks, data.n_rows, *geometry, self.C, tuning=self._tuning))
        if features is not None and self._is_pairwise():  # later rows have a column for rows of weight zero, too
            self.landmarks_ = rows_in_memory(data, "A kernel matrix").rows[features.landmarks]
            self._kernel_features = KernelFeatures(features.kernel, self.landmarks_)

    @all_or_nothing
    def partial_fit(self, X: Any, y: Any, classes: Any = None, sample_weight: Any = None) -> Self:
        """Add rows to what was seen; the unrefined solution is that of `fit` on everything seen.

        The refinement cannot be carried over, as it depends on which rows are within their margins: call
        `refine_on` after the last chunk.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
            More rows.
        y : array-like of shape (n_samples,)
            Their labels.
        classes : array-like of shape (n_classes,) or None, default=None
            All classes that will ever come; needed in the first call only. While no row of a class has come, its
            problem has one side only and its scores are near -1.
        sample_weight : array-like of shape (n_samples,) or None, default=None
            Weights; a weight of 2 equals the row given twice.

        Returns
        -------
        self
        """
        settings = self._check_arguments()
        if self._is_pairwise():
            raise ValueError("partial_fit needs rows, which kernel='precomputed' does not give; use fit.")
        self._check_streamable("partial_fit")
        first = not hasattr(self, "classes_")
        seen = None if first else self._kept_moments("partial_fit")
        data = self._training_set(
            X, y, sample_weight, classes=self._announced_classes(classes, first=first), reset=first
        )
        features = self._features(data) if first else self._kernel_features
        moments = class_moments(data, features)
        if seen is not None:
            moments = seen + moments
        if not moments.totals.any():
            raise ValueError("sample_weight must be positive for at least one row, got only zeros.")
        self._restate(data.classes, features, moments, settings)
        return self

    def _check_streamable(self, method: str) -> None:
        if isinstance(self.class_weight, str):
            raise ValueError(
                f"{method} sees some of the rows and cannot balance classes by all: class_weight must be a "
                f"dict or None, got {self.class_weight!r}."
            )

    @all_or_nothing
    def forget(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Remove rows that were seen; the unrefined solution is that of `fit` on the rest.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
            Rows that were given to `fit` or `partial_fit` before.
        y : array-like of shape (n_samples,)
            Their labels.
        sample_weight : array-like of shape (n_samples,) or None, default=None
            Their weights.

        Returns
        -------
        self
        """
        check_is_fitted(self)
        settings = self._check_arguments()
        self._check_streamable("forget")
        seen = self._kept_moments("forget")
        data = self._training_set(X, y, sample_weight, classes=self.classes_, reset=False)
        removed = class_moments(data, self._kernel_features)
        too_much = seen.exceeded_by(removed)
        if len(too_much):
            c = too_much[0]
            raise ValueError(
                f"forget was given more than was seen of class {self.classes_[c]}: a weight of "
                f"{removed.totals[c]:g} of {seen.totals[c]:g}, or rows that were never given."
            )
        moments = seen - removed
        if not moments.totals.any():
            raise ValueError("forget must leave at least one row, but was given all that was seen.")
        self._restate(self.classes_, self._kernel_features, moments, settings)
        return self

    @all_or_nothing
    def refine_on(self, chunks: Iterable[tuple]) -> Self:
        """Apply the Newton refinement after a stream of `partial_fit` or `forget`.

        A Newton step is a sum over all rows that were seen, so they have to come by once per step (some 5 to 10
        times), in chunks of any size; nothing is kept of them.

        Parameters
        ----------
        chunks : iterable of (X, y) or (X, y, sample_weight)
            All rows that the model knows of. It is iterated over anew in every step: a list, or an object whose
            ``__iter__`` reads the data again, but no generator.

        Returns
        -------
        self
        """
        check_is_fitted(self)
        self._check_arguments()
        self._check_streamable("refine_on")
        if iter(chunks) is chunks:
            raise TypeError(
                "chunks must be iterable again and again, as every Newton step passes over all rows, got an "
                f"iterator of type {type(chunks).__name__}."
            )
        factors, squared_norms, offset = self._geometry(self._kept_moments("refine_on").totals)

        def sums_at(scale: NDArray[np.float64], offset: NDArray[np.float64]) -> NDArray[np.float64]:
            sums = np.zeros((6, len(self.classes_)))
            for X, y, *weight in chunks:
                data = self._training_set(X, y, *weight, classes=self.classes_, reset=False)
                products = self._times(data.X, self._proximal[:-1])
                sums += margin_sums(products, data.labels, data.weights, factors, scale, offset)
            return sums

        self._set_refined(refine(sums_at, squared_norms, offset, self.C))
        return self

    def _left_out_scores(self, X: Any, y: Any, sample_weight: Any = None) -> NDArray[np.float64] | None:
        """Return the scores of the training rows of positive weight when each is left out; equal rows together.

        They are exact before the refinement, which then takes one Newton step without the row. None after a
        stream, whose rows are not known to be these.
        """
        if self.refine and self.refinement_ is None:
            return None
        data, place = self._training_set(X, y, sample_weight, reset=False).merged()
        if self._is_pairwise():  # a row of weight zero has a column, too
            data = replace(data, X=self._validated(X)[data.rows])
        features = self._kernel_features
        moments, problem, rows, _ = self._state(data, features)
        rows = in_memory(rows)
        sides = LeftOutSides.whole(data.labels, data.weights, self.balance)
        chunks = left_out_scores(
            rows, None if problem is None else moments, sides, np.array([float(self.C)]), whole=True
        )
        scores = np.vstack([part[0] for _, part in chunks])
        if self.refinement_ is not None:
            products = self._times(data.X, self._proximal[:-1])
            scores = refined_left_out(
                scores, products, data.labels, data.weights, *self._geometry(data.totals), self.refinement_, self.C
            )
        return scores[place]

    def _check_arguments(self) -> Settings:
        check_kernel_name(self.kernel)
        check_weight("C", self.C)
        check_flag("balance", self.balance)
        check_flag("refine", self.refine)
        check_choice("refine_weights", self.refine_weights, ("uniform", "balanced"))
        check_choice("landmark_method", self.landmark_method, ("sample", "kmeans"))
        if self.landmarks is not None and self._is_pairwise():
            raise ValueError(
                "landmarks must be None with kernel='precomputed': there are no rows to draw them from."
            )
        return Settings(tol=check_real("tol", self.tol, above=0.0))

    def _kept_moments(self, method: str) -> ClassMoments:
        if self.moments_ is None:
            raise ValueError(
                f"{method} cannot go on from this fit: it had fewer rows than unknowns, and too many of those to "
                "keep moments. Start a new model with partial_fit."
            )
        return self.moments_

    def _restate(
        self, classes: NDArray, features: KernelFeatures | None, moments: ClassMoments, settings: Settings
    ) -> None:
        """Solve for new moments and store the solution, unrefined."""
        sides = Sides.one_vs_rest(moments.totals, self.balance)
        problem, method = NormalEquations(moments, sides, self.C), NormalEquationsSolver()
        asked = chosen(self.solver, (method,), problem)
        solution = (method if asked is None else asked[0]).solve(problem, settings)
        self._store(classes, features, moments, solution.point)
        self._conclude(solution, settings.tol)

    def _store(
        self,
        classes: NDArray,
        features: KernelFeatures | None,
        moments: ClassMoments | None,
        Z: NDArray[np.float64],
    ) -> None:
        for stale in ("coef_", "dual_coef_", "landmarks_"):
            self.__dict__.pop(stale, None)
        self.classes_ = classes
        self.moments_ = moments
        self._kernel_features = features
        self._proximal = Z
        if features is not None:
            self.landmarks_ = features.landmarks
        self.refinement_ = None
        self.support_ = None
        self._set_coefficients(Z[:-1], Z[-1])

    def _set_coefficients(self, V: NDArray[np.float64], offset: NDArray[np.float64]) -> None:
        if self._kernel_features is None:
            self.coef_ = V.T
        else:
            self.dual_coef_ = V.T
        self.intercept_ = -offset

    def _geometry(self, totals: NDArray[np.float64]) -> tuple[NDArray, NDArray, NDArray]:
        """Return what the refinement starts from: factors of the rows, squared norms and offsets."""
        V, offset = self._proximal[:-1], self._proximal[-1]
        factors = Sides.one_vs_rest(totals, self.refine_weights == "balanced").factors
        return factors, np.einsum("ij,ij->j", V, V), offset

    def _set_refined(self, refinement: Refinement) -> None:
        self._set_coefficients(self._proximal[:-1] * refinement.scale, refinement.offset)
        self.refinement_ = refinement

    def _scoring(self) -> Scoring:
        coef = self.coef_ if self._kernel_features is None else self.dual_coef_
        return prepared(self, (self._kernel_features, coef, self.intercept_), features_scoring)
