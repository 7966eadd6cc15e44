"""What the machines of shared structure have in common: tasks, features, moments, streams and scores."""

from abc import abstractmethod
from dataclasses import replace
from typing import Any

import numpy as np
import scipy.linalg
from numpy.typing import NDArray
from scipy import sparse

from polymargin.checks import check_choice, check_weight
from polymargin.costs import resolve_class_weight
from polymargin.estimators._base import TrainingSet
from polymargin.estimators._moments import MomentClassifier, class_moments, features_scoring
from polymargin.estimators._partitions import PartitionedSet, rows_in_memory
from polymargin.estimators._scoring import Scoring, count_votes, prepared
from polymargin.gram import KernelFeatures, check_kernel_name
from polymargin.moments import ClassMoments
from polymargin.problems.shared import SharedPoint, TaskMoments, class_tasks, one_vs_one_codes, one_vs_rest_codes
from polymargin.solvers.contract import Observer, Settings, Solution, at_rest

SCHEMES = ("ovr", "ovo")


class TaskClassifier(MomentClassifier):
    """Base of the classifiers whose scores are ``A W M`` for the tasks of a scheme; `A` ends in a column of -1.

    A family adds `_solve_tasks`, which returns the solution with W in the coordinates of the tasks.
    """

    @abstractmethod
    def _solve_tasks(
        self, tasks: TaskMoments, classes: NDArray, settings: Settings, observer: Observer | None
    ) -> Solution[SharedPoint]:
        """Solve the family's problem on the tasks."""

    def _early_stopping(self) -> bool:
        """Tell whether the limit of iterations is part of the method."""
        return False

    def _check_arguments(self) -> Settings:
        """Check the arguments that the classifiers share."""
        check_kernel_name(self.kernel)
        check_weight("C", self.C)
        check_weight("relation_penalty", self.relation_penalty)
        check_choice("scheme", self.scheme, SCHEMES)
        if self.landmarks is not None and self._is_pairwise():
            raise ValueError(
                "landmarks must be None with kernel='precomputed': there are no rows to draw them from."
            )
        settings = self._settings()
        if settings.max_iter == 0:
            raise ValueError("max_iter must be at least 1, or -1 for no limit, got 0.")
        return settings

    def _can_stream(self) -> bool:
        """Tell whether rows may come in chunks; a kernel then needs landmarks, as chunks are not kept."""
        if self.landmarks is None and self.kernel != "linear":
            raise AttributeError(f"partial_fit with kernel={self.kernel!r} needs landmarks: chunks are not kept.")
        return True

    def _begin(
        self, X: Any, y: Any, sample_weight: Any
    ) -> tuple[Settings, TrainingSet | PartitionedSet, KernelFeatures | None, Observer | None]:
        """Check the arguments, then the data, and settle the features."""
        settings = self._check_arguments()
        data = self._data(X, y, sample_weight, weigh_classes=False)
        if self._is_pairwise() and sparse.issparse(data.X):
            data = replace(data, X=data.X.toarray())
        return settings, data, self._features(data), self._observer()

    def _fit_batch(self, X: Any, y: Any, sample_weight: Any) -> None:
        """Fit on all rows at once; fewer rows than unknowns are first rotated into as many coordinates."""
        settings, data, features, observer = self._begin(X, y, sample_weight)
        tasks, moments, rotation = self._summarise(data, features)
        solution = at_rest(self._solve_tasks, tasks, data.classes, settings, observer)
        self._finish(data, features, moments, solution, rotation)

    def _summarise(
        self, data: TrainingSet | PartitionedSet, features: KernelFeatures | None
    ) -> tuple[TaskMoments, ClassMoments | None, NDArray[np.float64] | None]:
        """Return the tasks, with the class moments or, for fewer rows than unknowns, the rotation behind them."""
        n_unknowns = 1 + (data.n_features if features is None else features.landmarks.shape[0])
        if data.n_rows < n_unknowns:
            rotation, tasks = self._rotated_tasks(data.gathered(), features)
            return tasks, None, rotation
        moments = class_moments(data, features)
        return self._tasks(moments, data.classes), moments, None

    def _fit_chunk(self, X: Any, y: Any, classes: Any, sample_weight: Any) -> None:
        """Add rows to the moments and fit anew."""
        settings = self._check_arguments()
        first = not hasattr(self, "classes_")
        seen: ClassMoments | None = None if first else self.moments_
        if not first and seen is None:
            raise ValueError(
                "partial_fit cannot go on from this fit: it had fewer rows than unknowns and kept no moments. "
                "Start a new model with partial_fit."
            )
        data = self._training_set(
            X,
            y,
            sample_weight,
            classes=self._announced_classes(classes, first=first),
            reset=first,
            weigh_classes=False,
        )
        features = self._features(data) if first else self._kernel_features
        moments = class_moments(data, features)
        if seen is not None:
            moments = seen + moments
        if not moments.totals.any():
            raise ValueError("sample_weight must be positive for at least one row, got only zeros.")
        solution = at_rest(self._solve_tasks, self._tasks(moments, data.classes), data.classes, settings, None)
        self._finish(data, features, moments, solution)

    def _codes(self, n_classes: int) -> NDArray[np.float64]:
        """Return the signs of the classes in the tasks of the scheme."""
        return one_vs_rest_codes(n_classes) if self.scheme == "ovr" else one_vs_one_codes(n_classes)

    def _tasks(self, moments: ClassMoments, classes: NDArray) -> TaskMoments:
        """Return the tasks from the moments of all rows seen, with the classes weighed."""
        factors = self._factors(classes, moments.totals)
        return class_tasks(
            moments.grams * factors[:, None, None],
            moments.sums * factors[:, None],
            moments.totals * factors,
            self._codes(len(classes)),
        )

    def _factors(self, classes: NDArray, totals: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return the factors of the classes; those not seen yet have nothing to weigh."""
        seen = totals > 0
        factors = np.ones(len(classes))
        factors[seen] = resolve_class_weight(self.class_weight, classes, np.where(seen, totals, 1.0))[seen]
        return factors

    def _weights(self, data: TrainingSet) -> NDArray[np.float64]:
        """Return the weights of the rows, classes weighed."""
        return data.weights * self._factors(data.classes, data.totals)[data.labels]

    @staticmethod
    def _augmented(data: TrainingSet, features: KernelFeatures | None) -> NDArray[np.float64]:
        """Return the rows A, dense, with their last column of -1."""
        B: Any = data.X if features is None else features(data.X)
        B = B.toarray() if sparse.issparse(B) else B
        return np.column_stack([B, -np.ones(len(B))]).astype(np.float64)

    def _rotated_tasks(
        self, data: TrainingSet, features: KernelFeatures | None
    ) -> tuple[NDArray[np.float64], TaskMoments]:
        """Return an orthonormal basis of the span of the rows of A, and the tasks in its coordinates.

        The base classifiers lie in that span, whatever the formulation.
        """
        rotation, triangle = scipy.linalg.qr(self._augmented(data, features).T, mode="economic")
        rows, weights, k = triangle.T, self._weights(data), data.n_classes
        membership = weights[:, None] * (data.labels[:, None] == np.arange(k))
        if self.scheme == "ovr":
            grams = (rows.T @ (rows * weights[:, None]))[None]
        else:
            grams = np.stack([rows.T @ (rows * weight[:, None]) for weight in membership.T])
        return rotation, class_tasks(grams, membership.T @ rows, membership.sum(axis=0), self._codes(k))

    def _finish(
        self,
        data: TrainingSet | PartitionedSet,
        features: KernelFeatures | None,
        moments: ClassMoments | None,
        solution: Solution[SharedPoint],
        rotation: NDArray[np.float64] | None = None,
    ) -> None:
        """Store the solution and what prediction needs."""
        self.classes_ = data.classes
        self.moments_ = moments
        if features is not None and self._is_pairwise():
            given = rows_in_memory(data, "A kernel matrix").rows
            features = KernelFeatures(features.kernel, given[features.landmarks])
        self._kernel_features = features
        self.__dict__.pop("landmarks_", None)
        if features is not None:
            self.landmarks_ = features.landmarks
        W = solution.point.W if rotation is None else rotation @ solution.point.W
        self.base_coef_ = W[:-1].T
        self.base_intercept_ = -W[-1]
        self.relation_ = solution.point.M
        self.history_ = np.array([record.primal for record in solution.history])
        self._conclude(solution, self.tol, early_stopping=self._early_stopping())

    @property
    def coef_(self) -> NDArray[np.float64]:
        """Coefficients ``(W M)'`` (n_tasks, n_features) of the final classifiers, for rows as features."""
        if self._kernel_features is not None:
            raise AttributeError("coef_ is there for kernel='linear' without landmarks only; see dual_coef_.")
        return self.relation_.T @ self.base_coef_

    @property
    def dual_coef_(self) -> NDArray[np.float64]:
        """Coefficients ``(W M)'`` (n_tasks, n_landmarks) of the kernel at the basis points."""
        if self._kernel_features is None:
            raise AttributeError("dual_coef_ is there for kernels only; see coef_.")
        return self.relation_.T @ self.base_coef_

    @property
    def intercept_(self) -> NDArray[np.float64]:
        """Intercepts (n_tasks,) of the final classifiers."""
        return self.base_intercept_ @ self.relation_

    def _scoring(self) -> Scoring:
        parts = (self._kernel_features, self.base_coef_, self.base_intercept_, self.relation_, self.scheme)
        return prepared(self, parts, self._make_scoring)

    def _make_scoring(
        self,
        features: KernelFeatures | None,
        base_coef: NDArray[np.float64],
        base_intercept: NDArray[np.float64],
        relation: NDArray[np.float64],
        scheme: str,
    ) -> Scoring:
        """Return the formula of the scores; two classes have one score and its negative."""
        codes = self._codes(len(self.classes_))
        if len(codes) == 2:
            margin = (codes[1] - codes[0]) / (2 * codes.shape[1])
            relation = relation @ np.column_stack([-margin, margin])
        scoring = features_scoring(features, relation.T @ base_coef, base_intercept @ relation)
        return scoring if len(codes) == 2 or codes.all() else replace(scoring, votes=codes)


def class_scores(tasks: NDArray[np.float64], codes: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the scores (n, k) of the classes from those of the tasks: their own, or those of pairs that vote."""
    if len(codes) == 2:
        margin = tasks @ (codes[1] - codes[0]) / (2 * codes.shape[1])
        return np.column_stack([-margin, margin])
    return tasks if codes.all() else count_votes(tasks, codes)
