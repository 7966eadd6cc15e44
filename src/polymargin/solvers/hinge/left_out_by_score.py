"""Left-out scores of a hinge machine, the active set frozen, every class's score taken by itself.

With the kernel as covariance, scores that the free multipliers do not pin are a Gaussian process: leaving row i
out moves its scores by their covariance C_i, given what the other rows pin, times what is lost. `left_out` solves
for C_i with all free multipliers at once. Here a class learns from a row its own score alone, known up to the
variance of what the row leaves open, and classes meet only in that the scores of a row sum to zero,

    C_i = V - V 1 1'V / 1'V 1,    V = diag(v_i1, ..., v_ik),

v_ij being the variance of the score of class j given what the other rows tell of it. Of a machine of single scores
less is used than known, so that changes are rather too large. There are k systems of the rows that tell of a class
instead of one of all free multipliers; two classes have the exact answer.
"""

import numpy as np
from numpy.typing import NDArray

from polymargin._native.variances import given_inverse, given_told, invert

Array = NDArray[np.floating]
Told = NDArray[np.bool_]


def score_changes(
    K: Array,
    place: NDArray[np.intp],
    direction: NDArray[np.float64],
    lost: NDArray[np.float64],
    *,
    single_scores: bool,
    fit_intercept: bool,
    ridge: float,
    pivot: float,
    untold: float,
    sweeps: int,
) -> NDArray[np.float64]:
    """Return the changes (n, k) of the rows' own scores when each leaves.

    Parameters
    ----------
    K : (n, n) kernel matrix of the support vectors; its precision is that of all work.
    place, direction : (m,) row and (m, k) direction of every free multiplier.
    lost : (n, k) minus the coefficients of the rows.
    single_scores : whether a free multiplier pins the score of a class, not a difference of two.
    fit_intercept : whether there are intercepts.
    ridge, pivot : what is added to the diagonal, and the least pivot at which enough digits are left.
    untold, sweeps : where multipliers pin differences, the variance of scores, as a part of the kernel's, before
        it is known and where it matters little; and how often what a row leaves open is told anew.
    """
    n, k = lost.shape
    if single_scores:
        given = _Given(K, _pinned_scores(place, direction, n), fit_intercept, ridge, pivot)
        variance = given.noiseless_variances()
    else:
        told = _pinned_differences(place, direction, n)
        given = _Given(K, told, fit_intercept, ridge, pivot)
        before = np.repeat(untold * np.maximum(K.diagonal()[:, None].astype(np.float64), ridge), k, axis=1)
        variance = before
        for asked in (*[told] * (sweeps - 1), told | (lost != 0.0)):
            found = given.variances(_left_open(told, variance), asked)
            variance = np.where(asked, found, before)
    moved = variance * lost
    return moved - variance * (moved.sum(axis=1) / variance.sum(axis=1))[:, None]


def _pinned_scores(place: NDArray[np.intp], direction: NDArray[np.float64], n_rows: int) -> Told:
    """Tell which scores the free multipliers pin; where they pin all but one, that is pinned by the sum."""
    told = np.zeros((n_rows, direction.shape[1]), dtype=bool)
    told[place, direction.argmax(axis=1)] = True
    told[told.sum(axis=1) == told.shape[1] - 1] = True
    return told


def _pinned_differences(place: NDArray[np.intp], direction: NDArray[np.float64], n_rows: int) -> Told:
    """Tell between which scores of a row the differences are pinned."""
    told = np.zeros((n_rows, direction.shape[1]), dtype=bool)
    for side in (direction.argmin(axis=1), direction.argmax(axis=1)):
        told[place, side] = True
    return told


def _left_open(told: Told, variance: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the variances with which rows tell scores of which they pin differences.

    Those of a row have one common shift open, of which the other scores know by their sum.
    """
    size = told.sum(axis=1)
    others = np.where(told, 0.0, variance).sum(axis=1)
    known = np.where(told, 1.0 / variance, 0.0).sum(axis=1)
    with np.errstate(divide="ignore"):
        shift = 1.0 / (known + np.where(size > 0, size**2 / others, 1.0))
    # what the score itself knows of the shift is no news to it
    return shift[:, None] * variance / (variance - np.where(told, shift[:, None], 0.0))


class _Given:
    """The rows that tell of every class, and the variances of all scores given these."""

    def __init__(self, K: Array, told: Told, fit_intercept: bool, ridge: float, pivot: float):
        self.K, self.told = K, told
        self.fit_intercept, self.ridge, self.pivot = fit_intercept, ridge, pivot

    def variances(self, noise: NDArray[np.float64], asked: Told) -> NDArray[np.float64]:
        """Return the variances (n, k) of the scores `asked` for, each without its own row; all that are told are.

        `noise` is what rows leave open of scores that they tell.
        """
        found = np.repeat(self.K.diagonal()[:, None].astype(np.float64), noise.shape[1], axis=1)
        told, asked = self.told.view(np.uint8), asked.view(np.uint8)
        _check(given_told(self.K, told, asked, noise + self.ridge, self.pivot, self.fit_intercept, found))
        return np.maximum(found, self.ridge)

    def noiseless_variances(self) -> NDArray[np.float64]:
        """Return the variances of all scores where rows leave nothing open of what they tell."""
        n, k = self.told.shape
        tell = self.told.sum(axis=0)
        rest = n - tell
        # one inverse and the few rows of every class that do not tell may be less work
        if n**3 + (rest**2 * n).sum() > (tell**2 * n).sum():
            return self.variances(np.zeros((n, k)), np.ones((n, k), dtype=bool))
        inverse, found = self.K.copy(), np.empty((n, k))
        inverse.flat[:: n + 1] += self.ridge
        _check(invert(inverse, self.pivot))
        sums = inverse @ self.told.astype(inverse.dtype)
        _check(given_inverse(inverse, self.told.view(np.uint8), sums, self.ridge, self.fit_intercept, found))
        return np.maximum(found, self.ridge)


def _check(is_positive: bool) -> None:
    if not is_positive:
        raise np.linalg.LinAlgError("The kernel matrix is singular to rounding.")
