"""The stored fits: data simulated here, machines of every kind, sizes either side of every threshold."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import sparse

from polymargin import (
    MulticategorySVC,
    ProximalSVC,
    RobustSVC,
    SharedStructureSVC,
    SparseSVC,
    TraceNormSVC,
)

LOSSES = ("lee", "weston", "crammer")


@dataclass(frozen=True, slots=True)
class Case:
    """One fit: an estimator, the data that it is given, and how far its numbers are determined.

    Attributes
    ----------
    tol : relative gap of the objective that the fit is asked for; scores are determined to about its square root.
    """

    estimator: Any
    data: Callable[[], tuple[Any, Any, Any]]
    tol: float


def overlapping(n, p, k, seed=0):
    """Gaussian classes that overlap, of unequal sizes and weights of rows."""
    rng = np.random.default_rng([seed, n, p, k])
    labels = np.concatenate([np.arange(k), np.minimum(rng.geometric(0.45, n - k) - 1, k - 1)])
    X = rng.normal(size=(k, p))[labels] * 1.2 + rng.normal(size=(n, p))
    return X, labels, rng.uniform(0.5, 2.0, size=n)


def plain(n, p, k, seed=0):
    """The same without weights."""
    X, labels, _ = overlapping(n, p, k, seed)
    return X, labels, None


def sparse_rows(n, p, k):
    """Rows with few entries."""
    X, labels, weights = overlapping(n, p, k)
    X[np.random.default_rng(p).random(X.shape) < 0.7] = 0.0
    return sparse.csr_array(X), labels, weights


def precomputed(n, p, k):
    """Inner products instead of rows."""
    X, labels, weights = overlapping(n, p, k)
    return X @ X.T, labels, weights


def duplicates():
    """Rows of which most are repeated, some with another label."""
    X, labels, _ = overlapping(20, 2, 3)
    again = np.random.default_rng(1).integers(0, 20, 60)
    return np.vstack([X, X[again], X[:6]]), np.concatenate([labels, labels[again], (labels[:6] + 1) % 3]), None


def constant_columns():
    """Columns that do not vary."""
    X, labels, weights = overlapping(60, 4, 3)
    X[:, 1], X[:, 3] = 0.0, 7.0
    return X, labels, weights


def tiny_classes():
    """Classes of one row beside large ones."""
    X, labels, weights = overlapping(80, 3, 2)
    labels[0], labels[1], labels[2] = 2, 3, 1
    return X, labels, weights


def separable():
    """Classes far apart: no loss at the optimum of a large C."""
    X, labels, weights = overlapping(60, 3, 3)
    X[np.arange(60), labels] += 20.0
    return X, labels, weights


def zero_weights():
    """Rows of weight zero."""
    X, labels, weights = overlapping(60, 3, 3)
    weights[::4] = 0.0
    return X, labels, weights


def hinge_cases():
    """The hinge machines."""
    for loss in LOSSES:

        def svc(C=1.0, tol=1e-8, loss=loss, **arguments):
            return MulticategorySVC(C, loss=loss, tol=tol, **arguments)

        def add(name, estimator, data, loss=loss):
            return f"{loss} {name}", Case(estimator, data, estimator.tol)

        for kernel in ("linear", "rbf", "poly", "laplacian"):
            yield add(f"{kernel} small", svc(kernel=kernel), lambda: overlapping(90, 4, 4))
        yield add("rbf large C", svc(1e3), lambda: overlapping(120, 3, 3))
        yield add("rbf small C", svc(1e-4), lambda: overlapping(120, 3, 3))
        yield add("no intercept", svc(fit_intercept=False), lambda: overlapping(100, 3, 3))
        yield add("linear no intercept", svc(kernel="linear", fit_intercept=False), lambda: overlapping(600, 3, 3))
        yield add("precomputed", svc(kernel="precomputed"), lambda: precomputed(80, 5, 3))
        yield add("landmarks", svc(landmarks=20, random_state=0), lambda: overlapping(300, 3, 4))
        yield add("landmarks many rows", svc(landmarks=20, random_state=0), lambda: overlapping(900, 3, 4))
        yield add("rows on demand", svc(cache_size=0.1, tol=1e-6), lambda: overlapping(240, 3, 3))
        yield add("linear 500 rows", svc(kernel="linear"), lambda: overlapping(500, 5, 3))
        yield add("linear 501 rows", svc(kernel="linear"), lambda: overlapping(501, 5, 3))
        yield add("linear Newton", svc(0.1, kernel="linear", tol=1e-4), lambda: overlapping(2100, 95, 5))
        yield add("linear wide", svc(kernel="linear"), lambda: overlapping(60, 200, 3))
        yield add("linear wide descent", svc(0.1, kernel="linear", tol=1e-4), lambda: sparse_rows(1100, 1600, 3))
        yield add("linear sparse", svc(kernel="linear", tol=1e-5), lambda: sparse_rows(700, 40, 3))
        yield add("rbf 1000 rows", svc(tol=1e-5), lambda: plain(1000, 3, 3))
        yield add("rbf 1100 rows", svc(tol=1e-5), lambda: plain(1100, 3, 3))
        yield add("rbf many free", svc(20.0, tol=1e-4), lambda: plain(700, 2, 6))
        yield add("two classes", svc(), lambda: overlapping(80, 3, 2))
        yield add("ten classes", svc(), lambda: overlapping(200, 4, 10))
        yield add("duplicates", svc(), duplicates)
        yield add("constant columns", svc(), constant_columns)
        yield add("tiny classes", svc(), tiny_classes)
        yield add("separable", svc(100.0), separable)
        yield add("zero weights", svc(), zero_weights)
        if loss != "crammer":
            costs = np.array([[0.0, 1.0, 4.0], [0.5, 0.0, 2.0], [1.0, 0.3, 0.0]])
            free = np.array([[0.0, 1.0, 0.0], [2.0, 0.0, 1.0], [0.0, 0.0, 0.0]])
            yield add("costs", svc(cost_matrix=costs), lambda: overlapping(90, 3, 3))
            yield add("costs linear", svc(cost_matrix=costs, kernel="linear"), lambda: overlapping(600, 3, 3))
            yield add("zero-cost rows", svc(cost_matrix=free), lambda: overlapping(90, 3, 3))


def other_cases():
    """The other estimators."""
    for kernel in ("linear", "rbf"):
        yield f"proximal {kernel}", Case(ProximalSVC(kernel=kernel), lambda: overlapping(150, 4, 4), 1e-10)
    for name, data in (
        ("wide", lambda: overlapping(40, 90, 3)),
        ("sparse", lambda: sparse_rows(200, 20, 3)),
        ("duplicates", duplicates),
        ("constant columns", constant_columns),
    ):
        yield f"proximal {name}", Case(ProximalSVC(), data, 1e-10)
    landmarks = ProximalSVC(kernel="rbf", landmarks=15, random_state=0)
    yield "proximal landmarks", Case(landmarks, lambda: overlapping(300, 4, 3), 1e-10)

    for penalty in ("fusion", "supnorm", "l1"):
        for loss in LOSSES:
            sparse_svc = SparseSVC(1.0, penalty=penalty, loss=loss)
            yield f"sparse {penalty} {loss}", Case(sparse_svc, lambda: overlapping(60, 8, 3), 1e-8)
        adaptive = SparseSVC(1.0, penalty=penalty, adaptive=True)
        yield f"sparse {penalty} adaptive", Case(adaptive, lambda: overlapping(60, 8, 3), 1e-8)
    yield "sparse duplicates", Case(SparseSVC(), duplicates, 1e-8)
    yield "sparse wide", Case(SparseSVC(0.5), lambda: overlapping(40, 120, 3), 1e-8)

    for formulation in ("original", "fast", "sum_to_zero"):
        shared = SharedStructureSVC(formulation=formulation, max_iter=5)
        yield f"shared {formulation}", Case(shared, lambda: overlapping(120, 4, 4), 1e-8)
    for constraint in ("symmetric", "psd", "nonnegative"):
        shared = SharedStructureSVC(constraint=constraint, max_iter=5)
        yield f"shared {constraint}", Case(shared, lambda: overlapping(120, 4, 4), 1e-8)
    for loss in ("squared", "smoothed_hinge"):
        trace = TraceNormSVC(loss=loss, tol=1e-8)
        yield f"trace norm {loss}", Case(trace, lambda: overlapping(120, 4, 4), 1e-8)

    for loss in ("hinge", "exponential", "logistic"):
        for kernel in ("linear", "rbf"):
            robust = RobustSVC(loss=loss, kernel=kernel, starts=("utility", "identity"), random_state=0)
            yield f"robust {loss} {kernel}", Case(robust, lambda: overlapping(90, 3, 3), 1e-6)
    convex = RobustSVC(truncation=float("-inf"))
    yield "robust without truncation", Case(convex, lambda: overlapping(90, 3, 3), 1e-6)
    yield "robust duplicates", Case(RobustSVC(starts=("utility", "identity"), random_state=0), duplicates, 1e-6)


CASES: dict[str, Case] = {name: case for group in (hinge_cases(), other_cases()) for name, case in group}
