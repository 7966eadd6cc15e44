"""What the kernel machines share: the Gram matrix they train on, what they keep of a fit, and scoring."""

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import issparse

from polymargin.checks import check_real, check_seed
from polymargin.estimators._base import MarginClassifier, TrainingSet
from polymargin.estimators._partitions import PartitionedSet
from polymargin.estimators._scoring import Scoring, constant, prepared
from polymargin.gram import (
    FeatureGram,
    Gram,
    Kernel,
    NystroemMap,
    PointKernel,
    check_kernel_name,
    make_gram,
    transposed_times,
)
from polymargin.solvers.policy import POLICY


class KernelClassifier(MarginClassifier):
    """Base of the machines whose scores are ``f = K(., x) R + b``.

    A family has the parameters `kernel`, `gamma`, `degree`, `coef0`, `landmarks`, `cache_size` and `random_state`;
    its fit calls `_check_kernel`, `_kernel_of`, `_gram` and `_store`, and sets `intercept_`.
    """

    support_: Any

    def _check_kernel(self) -> None:
        """Check the arguments that need no data."""
        check_kernel_name(self.kernel)
        check_real("cache_size", self.cache_size, above=0.0)
        if self.landmarks is not None and self._is_pairwise():
            raise ValueError(
                "landmarks must be None with kernel='precomputed': there are no rows to draw them from."
            )

    def _kernel_of(self, data: TrainingSet | PartitionedSet) -> tuple[Kernel, NystroemMap | None]:
        """Resolve the kernel on the training set, and draw the landmarks where asked for."""
        kernel = data.resolve_kernel(self.kernel, self.gamma, self.degree, self.coef0)
        if self.landmarks is None:
            return kernel, None
        rng = check_seed("random_state", self.random_state)
        return kernel, NystroemMap(kernel, data.draw_landmarks(self.landmarks, rng))

    def _width(self, data: PartitionedSet, nystroem: NystroemMap | None) -> int:
        """Return the number of features of rows in partitions, if the unknowns are not too many."""
        width = data.n_features if nystroem is None else nystroem.root.shape[1]
        unknowns = (width + 1) * (data.n_classes - 1)
        if unknowns > POLICY.partitioned_unknowns:
            raise ValueError(
                f"X has too many features for {type(self).__name__} on Dask: its {width} features and "
                f"{data.n_classes} classes make {unknowns} unknowns, whose dense Newton matrix one machine must "
                f"hold, more than {POLICY.partitioned_unknowns}. Use fewer features or landmarks, or ProximalSVC."
            )
        return width

    def _gram(self, kernel: Kernel, X: Any, nystroem: NystroemMap | None, until: float = math.inf) -> Gram:
        """Return the Gram matrix in the form that suits it; whoever has a time limit says when it is over."""
        if nystroem is not None:
            return FeatureGram(nystroem.transform(X))
        n, p = X.shape
        fits = 8.0 * n * n <= 1e6 * self.cache_size
        gram_is_better = p > n and fits and not (issparse(X) and n > POLICY.sparse_rows)
        if kernel.name == "linear" and not gram_is_better:
            return FeatureGram(X)
        return make_gram(kernel, X, self.cache_size, until)

    def _store_weights(
        self, data: PartitionedSet, kernel: Kernel, nystroem: NystroemMap | None, W: NDArray[np.float64]
    ) -> None:
        """Keep what scoring needs of the weights `W` (features, k); support vectors stay unknown."""
        for stale in ("coef_", "landmarks_", "support_vectors_", "dual_coef_"):
            self.__dict__.pop(stale, None)
        self.classes_ = data.classes
        self._gamma = kernel.gamma
        self.support_ = None
        if nystroem is None:
            self.coef_ = W.T
        else:
            self.landmarks_ = nystroem.landmarks
            self.dual_coef_ = (nystroem.root @ W).T

    def _store(
        self,
        data: TrainingSet,
        kernel: Kernel,
        nystroem: NystroemMap | None,
        R: NDArray[np.float64],
        weights: NDArray[np.float64] | None = None,
        bound: NDArray[np.float64] | None = None,
    ) -> NDArray[np.intp]:
        """Keep what scoring needs of the coefficients `R`; return which training rows are support vectors.

        The `weights` are those of features that R stands for, where they are at hand; `bound` are the coefficients
        of the dual point where they are others, whose rows are support vectors as well.
        """
        for stale in ("coef_", "landmarks_", "support_vectors_"):
            self.__dict__.pop(stale, None)
        self.classes_ = data.classes
        self._gamma = kernel.gamma
        sizes = np.abs(R) if bound is None else np.abs(R) + np.abs(bound)
        support = np.flatnonzero(sizes @ np.ones(R.shape[1]))
        is_whole = len(support) == data.n_rows
        self.support_ = data.rows[support]
        self.dual_coef_ = (R if is_whole else R[support]).T
        if nystroem is not None:
            self.landmarks_ = nystroem.landmarks
            self.dual_coef_ = (nystroem.root @ (nystroem.transform(data.X).T @ R)).T
        elif self._is_pairwise():
            self.support_vectors_ = np.empty((0, 0))
        else:
            self.support_vectors_ = data.X if is_whole and data.is_own else data.X[support]
            if kernel.name == "linear":
                self.coef_ = (transposed_times(data.X, R) if weights is None else weights).T
        return support

    def _scoring(self) -> Scoring:
        if hasattr(self, "coef_"):
            return Scoring(self.coef_.T, self.intercept_)
        if not self.dual_coef_.shape[1]:
            return constant(self.intercept_)
        if self._is_pairwise():
            points = self.support_
        else:
            points = self.landmarks_ if hasattr(self, "landmarks_") else self.support_vectors_
        parts = (self.kernel, self._gamma, self.degree, self.coef0, points, self.dual_coef_, self.intercept_)
        return prepared(self, parts, _kernel_scoring)


def _kernel_scoring(
    name: Any,
    gamma: float,
    degree: float,
    coef0: float,
    points: Any,
    dual_coef: NDArray[np.float64],
    intercept: NDArray[np.float64],
) -> Scoring:
    kernel = PointKernel(Kernel(name, gamma, degree, coef0), points)
    return Scoring(np.ascontiguousarray(dual_coef.T), intercept, kernel)


def features_at_hand(data: TrainingSet, nystroem: NystroemMap | None) -> tuple[TrainingSet, FeatureGram]:
    """Return the rows of a partition with their features."""
    return data, FeatureGram(data.X if nystroem is None else nystroem.transform(data.X))
