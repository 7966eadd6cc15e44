"""What the least-squares machines share: features at landmarks, moments of the classes, streams, scoring."""

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.validation import column_or_1d

from polymargin.blocks import total
from polymargin.checks import check_labels, check_seed
from polymargin.estimators._base import MarginClassifier, TrainingSet
from polymargin.estimators._partitions import PartitionedSet, rows_in_memory
from polymargin.estimators._scoring import Scoring
from polymargin.gram import KernelFeatures, distinct_rows
from polymargin.memory import check_memory
from polymargin.moments import ClassMoments
from polymargin.solvers.ridge.settings import DEFAULTS


class MomentClassifier(MarginClassifier):
    """Base of the machines that know their data by the moments of the classes alone.

    A family has the parameters `kernel`, `gamma`, `degree`, `coef0`, `landmarks` and `random_state`, and keeps the
    features of a fit as `_kernel_features`.
    """

    _kernel_features: KernelFeatures | None

    def _features(self, data: TrainingSet | PartitionedSet) -> KernelFeatures | None:
        """Return what maps rows to kernel values at the landmarks; None where rows are their own features."""
        kernel = data.resolve_kernel(self.kernel, self.gamma, self.degree, self.coef0)
        if self.landmarks is not None:
            rng = check_seed("random_state", self.random_state)
            centres = getattr(self, "landmark_method", "sample") == "kmeans"
            return KernelFeatures(kernel, data.draw_landmarks(self.landmarks, rng, centres=centres))
        if kernel.name == "linear":
            return None
        rows = rows_in_memory(data, "A kernel without landmarks").X
        n = rows.shape[0]
        check_memory(DEFAULTS.factor_copies * 8.0 * n**2, f"The kernel matrix of {n} rows", "give landmarks")
        distinct = distinct_rows(rows)
        return KernelFeatures(kernel, distinct if self._is_pairwise() else rows[distinct])

    def _announced_classes(self, classes: Any, *, first: bool) -> NDArray:
        """Return the classes of a stream of chunks, which its first chunk must announce."""
        if not first:
            if classes is not None and not set(column_or_1d(classes).tolist()) == set(self.classes_.tolist()):
                raise ValueError(
                    f"classes must be those of the first call, {self.classes_.tolist()}, got "
                    f"{column_or_1d(classes).tolist()}."
                )
            return self.classes_
        if classes is None:
            raise ValueError("classes must be given in the first call of partial_fit: all that will ever come.")
        given = column_or_1d(classes)
        check_labels("classes", given)
        distinct = np.unique(given)
        if len(distinct) < 2:
            raise ValueError(f"classes must hold at least two classes, got {distinct.tolist()}.")
        return distinct

    def _times(self, X: Any, V: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return the features of validated rows times `V`, block by block."""
        features = self._kernel_features
        return np.asarray(X @ V) if features is None else features.at_points().times(X, V)


def features_scoring(
    features: KernelFeatures | None, coef: NDArray[np.float64], intercept: NDArray[np.float64]
) -> Scoring:
    """Return the formula of scores with coefficients (t, m) of the features."""
    if features is None:
        return Scoring(coef.T, intercept)
    return Scoring(np.ascontiguousarray(coef.T), intercept, features.at_points())


def class_moments(data: TrainingSet | PartitionedSet, features: Callable[[Any], NDArray] | None) -> ClassMoments:
    """Return the moments of the rows, or of their features."""
    return total(data.blocks, _block_moments, features)


def _block_moments(data: TrainingSet, features: Callable[[Any], NDArray] | None) -> ClassMoments:
    weights = None if (data.weights == 1.0).all() else data.weights
    return ClassMoments.of(data.X, data.labels, weights, n_classes=data.n_classes, transform=features)
