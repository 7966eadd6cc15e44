"""Small problems of shared structure, and the same problems written out row by row."""

import numpy as np

from polymargin.coding import class_pairs, one_vs_rest_signs
from polymargin.moments import ClassMoments
from polymargin.problems.shared import class_tasks, one_vs_one_codes, one_vs_rest_codes
from tests.simulate import blobs


def written_out(rng, n, p, k, scheme):
    """Return the moments of a random problem, and of every task its rows (with a last column of -1) and signs."""
    X, labels = blobs(rng, n, p, k)
    A = np.column_stack([X, -np.ones(n)])
    moments = ClassMoments.of(X, labels, n_classes=k)
    codes = one_vs_rest_codes(k) if scheme == "ovr" else one_vs_one_codes(k)
    tasks = class_tasks(moments.grams, moments.sums, moments.totals, codes)
    if scheme == "ovr":
        signs = one_vs_rest_signs(labels, k)
        return tasks, [(A, signs[:, c]) for c in range(k)]
    rows = [(labels == i) | (labels == j) for i, j in class_pairs(k)]
    signs = [np.where(labels[keep] == i, 1.0, -1.0) for keep, (i, _) in zip(rows, class_pairs(k), strict=True)]
    return tasks, [(A[keep], sign) for keep, sign in zip(rows, signs, strict=True)]


def loss(tasks, Z):
    """Sum of squares over the rows of all tasks."""
    return sum(np.sum((sign - A @ z) ** 2) for (A, sign), z in zip(tasks, Z.T, strict=True))
