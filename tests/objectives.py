"""The objective of every machine, written out in numpy from what a fitted model stores: nothing of ours is called.

`primal_of` takes coefficients, intercepts, relations or support vectors from the model, and rows and labels as
they were given. `dual_of` does the same for the dual objective where the model stores a dual point.
"""

import numpy as np
from scipy import sparse
from sklearn.metrics.pairwise import pairwise_kernels

from polymargin import MulticategorySVC, ProximalSVC, RobustSVC, SharedStructureSVC, SparseSVC, TraceNormSVC


def primal_of(model, X, y, weight=None):
    """Return the objective that the stored parameters have on these rows."""
    rows = X.toarray() if sparse.issparse(X) else np.asarray(X)
    labels = np.searchsorted(model.classes_, y)
    weight = np.ones(len(labels)) if weight is None else np.asarray(weight, dtype=np.float64)
    return OBJECTIVES[type(model)](model, rows.astype(np.float64), labels, weight)


def hinges(loss, F, labels, weight):
    """Return the summed losses of scores (n, k) for unit costs."""
    n, k = F.shape
    own = F[np.arange(n), labels][:, None]
    others = np.arange(k) != labels[:, None]
    rest = F[others].reshape(n, k - 1)
    match loss:
        case "lee":
            losses = np.maximum(rest + 1 / (k - 1), 0.0).sum(axis=1)
        case "weston":
            losses = np.maximum(rest - own + 2.0, 0.0).sum(axis=1)
        case "crammer":
            losses = np.maximum(rest - own + 2.0, 0.0).max(axis=1)
        case "mmr":
            losses = np.maximum(1.0 - own[:, 0], 0.0)
        case "adm":
            losses = np.maximum(1.0 + rest, 0.0).max(axis=1)
        case "atm":
            losses = np.maximum(np.hstack([1.0 - own, 1.0 + rest]), 0.0).max(axis=1)
        case "ats" | "one_vs_rest":
            losses = np.maximum(1.0 - own[:, 0], 0.0) + np.maximum(1.0 + rest, 0.0).sum(axis=1)
        case "reinforced":
            spread = np.maximum(rest + 1 / (k - 1), 0.0).sum(axis=1)
            losses = 0.5 * np.maximum(1.0 - own[:, 0], 0.0) + 0.5 * spread
        case "lee_squared":
            losses = (np.maximum(rest + 1 / (k - 1), 0.0) ** 2).sum(axis=1)
        case "weston_squared":
            losses = (np.maximum(rest - own + 2.0, 0.0) ** 2).sum(axis=1)
        case "logistic":
            losses = np.log(np.exp(F - F.max(axis=1, keepdims=True)).sum(axis=1)) + F.max(axis=1) - own[:, 0]
        case unknown:
            raise AssertionError(unknown)
    return float(weight @ losses)


def kernel_of(model, A, B):
    """Return the kernel between rows."""
    if model.kernel == "linear":
        return A @ B.T
    if not len(B):
        return np.zeros((len(A), 0))
    if model.kernel in ("rbf", "laplacian"):
        A, B = A - B[0], B - B[0]  # distances keep their digits
    given = {"gamma": model._gamma, "degree": model.degree, "coef0": model.coef0}
    return pairwise_kernels(A, B, metric=model.kernel, filter_params=True, **given)


def scores_and_norm(model, X):
    """Return scores of the rows and the squared norm of the stored functions."""
    if hasattr(model, "coef_"):
        W = model.coef_ if len(model.coef_) > 1 else np.vstack([-model.coef_, model.coef_])
        return X @ W.T + model.intercept_, float(np.vdot(W, W))
    stored = model.support_vectors_
    support = (stored.toarray() if sparse.issparse(stored) else stored).astype(np.float64)
    F = kernel_of(model, X, support) @ model.dual_coef_.T + model.intercept_
    return F, float(np.vdot(model.dual_coef_, model.dual_coef_ @ kernel_of(model, support, support)))


def multicategory(model, X, labels, weight):
    """``1/2 |f|^2 + C sum of losses``."""
    F, norm = scores_and_norm(model, X)
    return 0.5 * norm + model.C * hinges(model.loss, F, labels, weight)


def dual_of(model, X, y):
    """Return the dual objective of a kernel machine with one of the classical losses, and its largest violation.

    ``offset * sum(u) - 1/2 <R, K R>`` of multipliers u within [0, C], or whose rows sum to at most C; the columns
    of R sum to zero.
    """
    labels, k = np.searchsorted(model.classes_, y), len(model.classes_)
    R = np.zeros((len(labels), k))
    R[model.support_] = model.dual_coef_.T
    own = R[np.arange(len(R)), labels][:, None]
    u = own - R if model.loss == "lee" else -R
    u[np.arange(len(R)), labels] = 0.0
    summed = u.sum(axis=1) if model.loss == "crammer" else u
    violation = max(float(-u.min()), float(summed.max() - model.C), float(np.abs(R.sum(axis=0)).max()))
    offset = 1 / (k - 1) if model.loss == "lee" else 2.0
    return offset * float(u.sum()) - 0.5 * float(np.vdot(R, kernel_of(model, X, X) @ R)), violation / model.C


def robust(model, X, labels, weight):
    """``1/2 |f|^2 + C sum of truncated hinges`` of the margins over the best other class."""
    F, norm = scores_and_norm(model, X)
    own = F[np.arange(len(F)), labels]
    rest = np.where(np.arange(F.shape[1]) == labels[:, None], -np.inf, F).max(axis=1)
    losses = np.minimum(np.maximum(1.0 - (own - rest), 0.0), 1.0 - model.truncation_)
    return 0.5 * norm + model.C * float(weight @ losses)


def proximal(model, X, labels, weight):
    """``C/2 sum of weighted squared errors of the signs + 1/2 |z|^2``, every class against the rest."""
    k = len(model.classes_)
    totals = np.bincount(labels, weight, k)
    mine = labels[:, None] == np.arange(k)
    factors = np.where(mine, 1.0 / totals, 1.0 / (totals.sum() - totals)) if model.balance else 1.0
    errors = X @ model.coef_.T + model.intercept_ - np.where(mine, 1.0, -1.0)
    squares = float((weight[:, None] * factors * errors**2).sum())
    return 0.5 * model.C * squares + 0.5 * float((model.coef_**2).sum() + (model.intercept_**2).sum())


def signs_of(model, labels):
    """Return the signs (n, tasks) of the rows, 0 where they take no part."""
    k = len(model.classes_)
    if model.scheme == "ovr":
        return np.where(labels[:, None] == np.arange(k), 1.0, -1.0)
    pairs = [(a, b) for a in range(k) for b in range(a + 1, k)]
    return np.column_stack([np.select([labels == a, labels == b], [1.0, -1.0], 0.0) for a, b in pairs])


def shared(model, X, labels, weight):
    """``C sum of squares + |W|^2 + nu |M|^2``."""
    W = np.column_stack([model.base_coef_, model.base_intercept_])
    M, signs = model.relation_, signs_of(model, labels)
    F = np.column_stack([X, np.ones(len(X))]) @ W.T @ M
    squares = float((weight[:, None] * np.abs(signs) * (F - signs) ** 2).sum())
    return model.C * squares + float(np.vdot(W, W)) + model.relation_penalty * float(np.vdot(M, M))


def trace_norm(model, X, labels, weight):
    """``C sum of losses + 2 sqrt(nu) |Z|_*``."""
    Z = np.column_stack([model.coef_, model.intercept_])
    signs = signs_of(model, labels)
    F = np.column_stack([X, np.ones(len(X))]) @ Z.T
    short = np.maximum(1.0 - signs * F, 0.0)
    smoothed = np.where(short > 1.0, short - 0.5, 0.5 * short**2)
    losses = (F - signs) ** 2 if model.loss == "squared" else smoothed
    total = float((weight[:, None] * np.abs(signs) * losses).sum())
    return model.C * total + 2.0 * np.sqrt(model.relation_penalty) * float(np.linalg.svd(Z)[1].sum())


def sparse_machine(model, X, labels, weight):
    """``J(W) + C sum of losses``."""
    W = model.coef_
    k = len(W)
    match model.penalty:
        case "fusion":
            penalty = sum(np.abs(W[a] - W[b]).sum() for a in range(k) for b in range(a + 1, k))
        case "supnorm":
            penalty = np.abs(W).max(axis=0).sum()
        case "l1":
            penalty = np.abs(W).sum()
        case "l2":
            penalty = np.vdot(W, W)
    return float(penalty) + model.C * hinges(model.loss, X @ W.T + model.intercept_, labels, weight)


OBJECTIVES = {
    MulticategorySVC: multicategory,
    RobustSVC: robust,
    ProximalSVC: proximal,
    SharedStructureSVC: shared,
    TraceNormSVC: trace_norm,
    SparseSVC: sparse_machine,
}
