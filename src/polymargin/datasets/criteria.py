"""Criteria that only a simulation can compute, from the true class probabilities (Lee, Lin & Wahba, section 5)."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from polymargin.costs import resolve_cost_matrix


def gckl(scores: Any, probabilities: Any, cost_matrix: Any = None) -> float:
    """Compute the generalised comparative Kullback-Leibler distance: the expected hinge loss given the rows.

    GCKL = mean_i sum_j [f_j(x_i) + 1/(k-1)]_+ sum_l p_l(x_i) cost[l, j], with equal costs
    mean_i sum_j [f_j(x_i) + 1/(k-1)]_+ (1 - p_j(x_i)).

    Parameters
    ----------
    scores : array-like of shape (n_samples, n_classes)
        Decision vectors, which sum to zero.
    probabilities : array-like of shape (n_samples, n_classes)
        True class probabilities.
    cost_matrix : array-like of shape (n_classes, n_classes) or None, default=None

    Returns
    -------
    float

    Examples
    --------
    >>> from polymargin.datasets import gckl
    >>> gckl([[1.0, -0.5, -0.5]], [[0.6, 0.3, 0.1]])
    0.6...
    """
    scores, expected = _expected_costs(scores, probabilities, cost_matrix)
    return float((np.maximum(scores + 1.0 / (scores.shape[1] - 1), 0.0) * expected).sum(axis=1).mean())


def misrate(scores: Any, probabilities: Any, cost_matrix: Any = None) -> float:
    """Compute the expected misclassification rate (or cost) of the rule argmax f, given the rows.

    MISRATE = mean_i sum_l p_l(x_i) cost[l, argmax f(x_i)], with equal costs mean_i (1 - p_{argmax f}(x_i)).

    Parameters
    ----------
    scores : array-like of shape (n_samples, n_classes)
    probabilities : array-like of shape (n_samples, n_classes)
        True class probabilities.
    cost_matrix : array-like of shape (n_classes, n_classes) or None, default=None

    Returns
    -------
    float

    Examples
    --------
    >>> from polymargin.datasets import misrate
    >>> misrate([[1.0, -0.5, -0.5]], [[0.6, 0.3, 0.1]])
    0.4
    """
    scores, expected = _expected_costs(scores, probabilities, cost_matrix)
    return float(np.take_along_axis(expected, scores.argmax(axis=1)[:, None], axis=1).mean())


def _expected_costs(
    scores: Any, probabilities: Any, cost_matrix: Any
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    scores, probabilities = np.asarray(scores, dtype=np.float64), np.asarray(probabilities, dtype=np.float64)
    if scores.ndim != 2 or scores.shape[1] < 2 or scores.shape != probabilities.shape:
        raise ValueError(
            "scores and probabilities must have one shape (n_samples, n_classes) with at least two classes, got "
            f"{scores.shape} and {probabilities.shape}."
        )
    return scores, probabilities @ resolve_cost_matrix(cost_matrix, np.arange(scores.shape[1]))
