"""Left-out scores of a least squares machine: in closed form, and hardly dearer with many classes."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from polymargin.estimators import steps
from polymargin.estimators.multicategory import MulticategorySVC
from polymargin.gram import NystroemMap, draw_landmarks, resolve_kernel
from polymargin.selection.left_out import Array, LeftOut, used_rows
from polymargin.solvers.ridge.kernel import left_out_by_features, left_out_by_rows

C = 1.0
LANDMARKS = 1000
"""Distinct rows up to which the functions are any of the kernel's space; above, those of as many landmarks."""


def leave_out_by_least_squares(
    X: Any, y: NDArray, weights: Array | None, classes: NDArray, most_rows: int = LANDMARKS
) -> LeftOut:
    """Return the left-out scores of the rows of positive weight, one class against the rest with an rbf kernel."""
    rows, labels, counts, groups = used_rows(X, y, weights, classes)
    data, place = steps.training_set(MulticategorySVC(), X, y, weights).merged()
    kernel = resolve_kernel("rbf", "scale", 3, 0.0, data.X, data.weights)
    targets = np.where(data.labels[:, None] == np.arange(data.n_classes), 1.0, -1.0)
    if data.n_rows <= most_rows:
        scores = left_out_by_rows(np.asarray(kernel(data.X), dtype=np.float64), targets, data.weights, C)
    else:
        rng = np.random.RandomState(0)
        landmarks = draw_landmarks(most_rows, data.X, data.labels, rng, weights=data.weights)
        features = NystroemMap(kernel, landmarks).transform(data.X)
        scores = left_out_by_features(features, targets, data.weights, C)
    return LeftOut(rows, labels, counts, groups, scores[place])
