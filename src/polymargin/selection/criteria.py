"""Criteria for C and the kernel from one fit of MulticategorySVC: leave-one-out costs and losses, and GACV."""

import warnings

import numpy as np
import scipy.linalg
from numpy.typing import NDArray
from sklearn.utils.validation import check_is_fitted

from polymargin.coding import simplex_codes
from polymargin.estimators import steps
from polymargin.estimators.multicategory import MulticategorySVC
from polymargin.gram import FeatureGram
from polymargin.problems.hinge import HingePoint, HingeProblem, boxes
from polymargin.selection.calibration import fit_map
from polymargin.solvers.hinge.left_out import frozen_left_out_scores

GACV_EPSILON = 1e-5
"""Tolerance of the steps in (28) of Lee et al.: scores within it of -1/(k-1) count as on the margin."""

SHARPNESS = 3.0
"""How many times steeper than probabilities the steps of the smoothed cost are."""


def loo(estimator: MulticategorySVC) -> float:
    """Approximate leave-one-out loss of a fitted machine, without a refit.

    The mean over training rows of the loss at the scores that the row would get from a machine fitted without it,
    those scores taken with the active set frozen (exact where no multiplier reaches or leaves a bound). Rows that
    are no support vectors lie beyond every margin, and take no part. Where several dual points are solutions, as
    with repeated rows, the value depends on which was found; `MarginSearch` lets equal rows leave together.

    Parameters
    ----------
    estimator : fitted MulticategorySVC, of any loss

    Returns
    -------
    float

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from polymargin import MulticategorySVC
    >>> X, y = load_iris(return_X_y=True)
    >>> smooth, rough = (loo(MulticategorySVC(C=C).fit(X, y)) for C in (1e-3, 1.0))
    >>> rough < smooth
    True
    """
    check_is_fitted(estimator)
    problem, point = steps.support_problem(estimator)
    return left_out_loss(
        problem, frozen_left_out_scores(problem, point), estimator.C, steps.fitted_rows(estimator)
    )


def gacv(estimator: MulticategorySVC) -> float:
    """Generalised approximate cross-validation, (28) of Lee, Lin & Wahba, of a fitted machine.

    A proxy of the leave-one-out loss that the paper proposes. It agrees with it under strong smoothing only; see
    `loo` for a closer one. Weights and priors enter as costs. Where the kernel matrix is singular, as the linear
    kernel's is, GACV depends on which dual solution was found; a warning says so.

    Parameters
    ----------
    estimator : fitted MulticategorySVC with ``loss="lee"``

    Returns
    -------
    float
    """
    check_is_fitted(estimator)
    if estimator.loss != "lee":
        raise ValueError(f"gacv is defined for loss='lee' alone, got an estimator with loss={estimator.loss!r}.")
    problem, point = steps.support_problem(estimator)
    if is_singular(problem):
        warn_of_singular_kernel()
    return gacv_value(problem, point, estimator.C, steps.fitted_rows(estimator))


def left_out_loss(problem: HingeProblem, scores: NDArray[np.float64], C: float, n_rows: int) -> float:
    """Mean loss over the rows at given (left-out) scores, with the weight C taken out again."""
    return problem.losses.value(scores) / (float(C) * n_rows)


def smoothed_cost(
    scores: NDArray[np.float64],
    labels: NDArray[np.intp],
    weights: NDArray[np.float64],
    costs: NDArray[np.float64],
) -> float:
    """Mean cost of decisions at given (left-out) scores, their steps smoothed.

    Counted errors jump by whole rows, and the best of many such counts is often a lucky one. Here a row that is
    nearly decided otherwise counts in part: by the softmax of its scores times a slope, the one that makes
    probabilities of the left-out scores as good as can be, times `SHARPNESS`. So scores of all machines are
    smoothed alike, whatever their scale, which a loss at a fixed margin is not. `costs` (n, k) are weighted.
    """
    smooth = fit_map("temperature", scores, labels, weights)
    shares = smooth.probabilities(SHARPNESS * scores)
    return float(np.vdot(shares, costs) / weights.sum())


def gacv_value(
    problem: HingeProblem, point: HingePoint, C: float, n_rows: int, scores: NDArray[np.float64] | None = None
) -> float:
    """(28) of Lee et al.: the mean loss, plus for every row (k-1) K_ii sum_j L_ij step_ij c_ij (y_ij - mu_ij).

    `scores` (n, k) are those of the fit, where they are known.
    """
    losses = boxes(problem.losses, "GACV")
    k = losses.n_classes
    L = losses.upper / C
    c = problem.coefficients(point.dual)
    f = problem.gram.matmul(problem.model(point)) + point.intercept if scores is None else scores
    f = np.where(losses.free_entries(point.dual, f), -1.0 / (k - 1), f)  # which the steps could miss by rounding
    y = simplex_codes(losses.labels, k)
    truncated = f < -(1 + GACV_EPSILON) / (k - 1)
    T = truncated.sum(axis=1, keepdims=True)
    others = T / (np.maximum(k - T, 1) * (k - 1.0))  # of no entry where all are truncated
    mu = np.where(truncated, -1.0 / (k - 1), others)
    step = f > -(1 + GACV_EPSILON) / (k - 1)
    correction = (k - 1) * problem.gram.diagonal() * (L * step * c * (y - mu)).sum(axis=1)
    return (float(np.vdot(L, np.maximum(f - y, 0.0))) + float(correction.sum())) / n_rows


def is_singular(problem: HingeProblem) -> bool:
    """Tell whether the kernel matrix is singular to rounding."""
    if problem.gram.n == 0:
        return False
    if isinstance(problem.gram, FeatureGram) and problem.gram.features.shape[1] < problem.gram.n:
        return True
    K = problem.gram.block(np.arange(problem.gram.n))
    values = scipy.linalg.eigvalsh(K)
    return bool(values[0] <= len(K) * np.finfo(np.float64).eps * values[-1])


def warn_of_singular_kernel() -> None:
    """Say that GACV is not a function of the fit."""
    warnings.warn(
        "The kernel matrix of the support vectors is singular: GACV depends on which of several dual solutions "
        "was found. Leave-one-out by refits, criterion 'loo_exact', does not.",
        stacklevel=3,
    )
