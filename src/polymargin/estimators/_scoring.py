"""How a fitted machine scores rows: one formula for all families, and for whatever leaves Python with a model."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any
from weakref import WeakKeyDictionary

import numpy as np
from numpy.typing import NDArray
from sklearn.linear_model._base import LinearClassifierMixin
from sklearn.utils.extmath import safe_sparse_dot

from polymargin.gram import PointKernel


@dataclass(frozen=True, slots=True, eq=False)
class Scoring:
    """Scores ``phi(x) V + b``, where phi is the row itself, some of its columns, or the kernel at points.

    Attributes
    ----------
    weights : (m, t) the coefficients V.
    intercept : (t,) the constants b.
    kernel : the kernel at the points; None where rows are their own features.
    columns : the columns of the rows that matter; None for all.
    votes : (k, t) signs of the classes in the pairs that vote for them; None where each score is that of a class.
    """

    weights: NDArray[np.float64]
    intercept: NDArray[np.float64]
    kernel: PointKernel | None = None
    columns: NDArray[np.intp] | None = None
    votes: NDArray[np.float64] | None = None

    def __call__(self, X: Any) -> NDArray[np.float64]:
        """Return the scores (n, k) of validated rows."""
        if self.kernel is not None:
            scores = self.kernel.times(X, self.weights)
        else:
            rows = X if self.columns is None else X[:, self.columns]
            scores = safe_sparse_dot(rows, self.weights, dense_output=True)
        scores = scores + self.intercept
        return scores if self.votes is None else count_votes(scores, self.votes)


def constant(intercept: NDArray[np.float64]) -> Scoring:
    """Return the formula of a machine to which rows mean nothing."""
    return Scoring(np.zeros((0, len(intercept))), intercept, columns=np.zeros(0, dtype=np.intp))


def scoring_of(machine: Any) -> Scoring | None:
    """Return the formula of a fitted machine, or of a linear classifier of scikit-learn; None for all others."""
    if hasattr(machine, "_scoring"):
        return machine._scoring()
    if not isinstance(machine, LinearClassifierMixin):
        return None
    coef, intercept = np.atleast_2d(machine.coef_), np.atleast_1d(machine.intercept_)
    if len(coef) == 1:
        coef, intercept = np.vstack([-coef, coef]), np.concatenate([-intercept, intercept])
    return Scoring(coef.T, np.broadcast_to(intercept, len(coef)))


def count_votes(tasks: NDArray[np.float64], codes: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the votes (n, k) of the pairs of classes.

    Ties are broken by the sum of ``tanh(score)`` over the pairs of a class, scaled so that it never outweighs a
    vote.
    """
    votes = (tasks > 0) @ np.maximum(codes, 0.0).T + (tasks <= 0) @ np.maximum(-codes, 0.0).T
    return votes + np.tanh(tasks) @ codes.T / (2 * len(codes))


_PREPARED: WeakKeyDictionary[Any, tuple[tuple, Scoring]] = WeakKeyDictionary()


def prepared(machine: Any, parts: tuple, make: Callable[..., Scoring]) -> Scoring:
    """Return ``make(*parts)``, made once for as long as the machine holds these very objects.

    It is kept beside the machine and not in it: copies, pickles and files hold what was fitted and no more. Arrays
    that a user replaces are noticed, entries that are changed in place are not.
    """
    known = _PREPARED.get(machine)
    if known is not None and len(known[0]) == len(parts) and all(map(_is, known[0], parts)):
        return known[1]
    scoring = make(*parts)
    _PREPARED[machine] = parts, scoring
    return scoring


def _is(one: Any, other: Any) -> bool:
    return one is other
