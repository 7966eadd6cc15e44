"""Small random classification problems for the tests."""

import numpy as np

from polymargin.problems.hinge import crammer_singer, lee_lin_wahba, weston_watkins
from polymargin.problems.penalties import FusionPenalty, LassoPenalty, SupnormPenalty


def blobs(rng, n, p, k, *, spread=1.0):
    """Gaussian classes around random centres; every class has at least one member."""
    labels = np.concatenate([np.arange(k), rng.integers(0, k, n - k)])
    centres = rng.normal(size=(k, p)) * spread
    return centres[labels] + rng.normal(size=(n, p)), labels


def proteins(rng):
    """Rows in the shape of the yeast proteins: ten classes from 463 rows to 5, eight variables with two digits.

    Two of the variables hardly vary, so that a Gaussian kernel of unit width has few large eigenvalues.
    """
    labels = np.repeat(np.arange(10), [463, 429, 244, 163, 51, 44, 35, 30, 20, 5])
    centres = rng.normal(
        [0.5, 0.5, 0.5, 0.26, 0.5, 0.0, 0.5, 0.28], [0.1, 0.1, 0.06, 0.06, 0.0, 0.0, 0.02, 0.03], (10, 8)
    )
    rows = centres[labels] + [0.1, 0.1, 0.07, 0.12, 0.0, 0.0, 0.06, 0.1] * rng.normal(size=(len(labels), 8))
    return np.clip(rows, 0.0, 1.0).round(2), labels


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
