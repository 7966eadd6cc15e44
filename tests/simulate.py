"""Small random classification problems for the tests."""

import numpy as np


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
