"""Small random classification problems for the tests."""

import numpy as np

from polymargin.problems.hinge import crammer_singer, lee_lin_wahba, weston_watkins
from polymargin.problems.penalties import FusionPenalty, LassoPenalty, SupnormPenalty


def blobs(rng, n, p, k, *, spread=1.0):
    """Gaussian classes around random centres; every class has at least one member."""
    labels = np.concatenate([np.arange(k), rng.integers(0, k, n - k)])
    centres = rng.normal(size=(k, p)) * spread
    return centres[labels] + rng.normal(size=(n, p)), labels


def random_costs(rng, k):
    """A cost matrix with entries of different sizes."""
    costs = rng.uniform(0.2, 3.0, size=(k, k))
    np.fill_diagonal(costs, 0.0)
    return costs


def random_penalty(rng, name, k, p, *, weighted):
    """A penalty of the sparse machines, its weights over some orders of magnitude."""
    rows = k * (k - 1) // 2 if name == "fusion" else k
    weights = 10.0 ** rng.uniform(-1, 2, size=(rows, p)) if weighted else np.ones((rows, p))
    if name == "fusion":
        return FusionPenalty(weights if weighted else None)
    return (LassoPenalty if name == "l1" else SupnormPenalty)(weights)


def random_hinges(rng, loss, labels, k):
    """Losses with random weights and, where the loss takes them, random costs."""
    weights = rng.uniform(0.5, 2.0, size=len(labels))
    if loss == "crammer":
        return crammer_singer(labels, weights, k)
    upper = weights[:, None] * random_costs(rng, k)[labels]
    return (lee_lin_wahba if loss == "lee" else weston_watkins)(labels, upper)
