"""Fewer points for the same function: kernel machines made smaller, with a bound on what that changes."""

import copy
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import scipy.linalg
from numpy.typing import NDArray
from sklearn.pipeline import Pipeline
from sklearn.utils.validation import check_is_fitted, validate_data

from polymargin.checks import LARGEST_KERNEL, check_real
from polymargin.estimators.parts import KernelClassifier, MarginClassifier, TaskClassifier, count_votes
from polymargin.gram import Kernel, KernelFeatures, PointKernel
from polymargin.selection.rejection import RejectOptionClassifier

BLOCK_ROWS = 1024
"""Rows of the kernel matrix formed at a time where the certificate is computed."""


@dataclass(frozen=True, slots=True)
class Compression:
    """A smaller model and what is proven about it.

    Attributes
    ----------
    model : the compressed copy of the model.
    n_points, n_points_before : points of the kernel that are evaluated for a row, now and before.
    distance : largest distance of a score function from what it was, in the norm of the kernel.
    bound : the certificate, ``sqrt(K(x, x)) * distance`` for the largest ``K(x, x)`` of the points of the model:
        no score of a row with at most this ``K(x, x)`` changes by more. For the kernels "rbf" and "laplacian" that
        is every row. Where pairs of classes vote (``scheme="ovo"``) the scores are those of the pairs.
    largest_change : largest change of such a score on the rows that were looked at.
    n_changed, n_rows : decisions that change on these rows, and how many they are.
    """

    model: Any
    n_points: int
    n_points_before: int
    distance: float
    bound: float
    largest_change: float
    n_changed: int
    n_rows: int


def compress(model: Any, *, max_loss: float, X: Any = None) -> Compression:
    """Replace the points of a kernel machine by fewer of them.

    The score functions ``f_c = sum_i a_ic K(., x_i) + b_c`` are projected, in the norm of the kernel's own space,
    on the span of some of the points. These are chosen one by one: the next is the one that takes most off the
    summed squared distances. The first set for which no score can change by more than `max_loss` is kept, as ::

        |f_c(x) - g_c(x)| <= sqrt(K(x, x)) ||f_c - g_c||

    Parameters
    ----------
    model : fitted kernel classifier of Polymargin
        Or a pipeline, a search or a `RejectOptionClassifier` around one; a search gives what it found.
    max_loss : float
        Largest change of a score that is allowed.
    X : array-like of shape (n_samples, n_features) or None, default=None
        Rows, as the model takes them, on which decisions before and after are compared; None for the training rows
        that the model holds, its points.

    Returns
    -------
    Compression
        The smaller model with its certificate.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from polymargin import MulticategorySVC, compress
    >>> X, y = load_iris(return_X_y=True)
    >>> small = compress(MulticategorySVC().fit(X, y), max_loss=0.01)
    >>> small.n_points < small.n_points_before, small.largest_change <= small.bound <= 0.01, small.n_changed
    (True, True, 0)
    """
    check_real("max_loss", max_loss, above=0.0)
    check_is_fitted(model)
    compressed = _copy_of(model)
    machine = _machine_in(compressed)
    scoring = machine._scoring()
    at = _points_of(machine)
    projection = _Projection.of(at, scoring.weights, float(max_loss))
    _replace(machine, at.kernel, at.points[projection.chosen], projection)
    rows = at.points if X is None else _rows_of_machine(compressed, X)
    before, after = (replace(formula, votes=None)(rows) for formula in (scoring, machine._scoring()))
    decisions = [_decisions(scores, scoring.votes) for scores in (before, after)]
    return Compression(
        compressed,
        len(projection.chosen),
        at.n_points,
        projection.distance,
        projection.bound,
        float(np.abs(before - after).max()),
        int((decisions[0] != decisions[1]).sum()),
        len(before),
    )


def _copy_of(model: Any) -> Any:
    """Return a copy of a model, of a search that of what it found."""
    while hasattr(model, "best_estimator_"):
        model = model.best_estimator_
    return copy.deepcopy(model)


def _machine_in(model: Any) -> Any:
    while True:
        if hasattr(model, "best_estimator_"):
            model = model.best_estimator_
        elif isinstance(model, Pipeline):
            model = model.steps[-1][1]
        elif isinstance(model, RejectOptionClassifier):
            model = model.estimator_
        else:
            break
    if not isinstance(model, MarginClassifier):
        raise TypeError(f"model must be a kernel classifier of polymargin, got {type(model).__name__}.")
    return model


def _points_of(machine: MarginClassifier) -> PointKernel:
    at = machine._scoring().kernel
    if at is None:
        raise ValueError(
            f"model must be a kernel machine with points, but this {type(machine).__name__} has coefficients of "
            "the variables themselves: there is nothing to compress."
        )
    if at.kernel.name == "precomputed":
        raise ValueError("model has kernel='precomputed': the kernel between its points is not known.")
    if at.kernel.name == "sigmoid":
        raise ValueError(
            "model has kernel='sigmoid', which is not positive definite: it has no norm to measure in."
        )
    return at


def _rows_of_machine(model: Any, X: Any) -> Any:
    """Return rows as the machine within a model takes them."""
    if isinstance(model, Pipeline):
        return _rows_of_machine(model.steps[-1][1], model[:-1].transform(X) if len(model) > 1 else X)
    if isinstance(model, RejectOptionClassifier):
        return _rows_of_machine(model.estimator_, X)
    if hasattr(model, "best_estimator_"):
        return _rows_of_machine(model.best_estimator_, X)
    return validate_data(model, X, accept_sparse="csr", dtype=[np.float64, np.float32], reset=False)


def _decisions(scores: NDArray[np.float64], votes: NDArray[np.float64] | None) -> NDArray[np.intp]:
    return (scores if votes is None else count_votes(scores, votes)).argmax(axis=1)


@dataclass(frozen=True, slots=True)
class _Projection:
    """Score functions projected on the span of chosen points.

    Attributes
    ----------
    chosen : (m,) positions of the points, in the order of their choice.
    triangle : (m, m) Cholesky factor of their kernel matrix.
    at : the kernel at all points.
    distance, bound : see `Compression`.
    """

    chosen: NDArray[np.intp]
    triangle: NDArray[np.float64]
    at: PointKernel
    distance: float
    bound: float

    @classmethod
    def of(cls, at: PointKernel, weights: NDArray[np.float64], max_loss: float) -> "_Projection":
        """Choose points, one by one, until no score can change by more than `max_loss`."""
        diagonal = at.kernel.diagonal(at.points)
        reach = float(np.sqrt(diagonal.max()))
        growing = _GrowingBasis(at, diagonal, at.times(at.points, weights))
        norms = np.einsum("ic,ic->c", weights, growing.residual)
        target = min(max_loss / reach, LARGEST_KERNEL) ** 2
        while True:
            # What is left of the norms comes from subtraction; the certificate is computed afresh.
            while growing.size < at.n_points and (growing.size == 0 or (norms - growing.gained).max() > target):
                if not growing.extend():
                    break
            chosen, triangle = growing.chosen(), growing.triangle()
            beta = scipy.linalg.cho_solve((triangle, True), at.times(at.points[chosen], weights))
            distance = _distance(at, weights, chosen, beta)
            if distance * reach <= max_loss:
                return cls(chosen, triangle, at, distance, distance * reach)
            if not growing.extend():
                everything = np.arange(at.n_points)
                return cls(everything, np.zeros((0, 0)), at, 0.0, 0.0)
            target = 0.5 * min(target, float((norms - growing.gained).max()))

    def apply(self, weights: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return the coefficients at the chosen points of functions with `weights` at all points."""
        if not len(self.triangle):  # every point is kept, or none, of functions that are zero
            return weights[self.chosen]
        values = self.at.times(self.at.points[self.chosen], weights)
        return scipy.linalg.cho_solve((self.triangle, True), values)


class _GrowingBasis:
    """An orthonormal basis of the span of the chosen points, known by its values at all points.

    Values of the functions' residuals come with it: choosing point p takes ``r(p)^2 / d(p)`` off the squared
    distance of every function, where d is the residual diagonal of the kernel matrix.
    """

    def __init__(self, at: PointKernel, diagonal: NDArray[np.float64], values: NDArray[np.float64]):
        self.at = at
        self.residual = values
        self.gained = np.zeros(values.shape[1])
        self.size = 0
        self._left = diagonal.copy()
        self._least = 1e-12 * diagonal
        self._basis = np.empty((len(diagonal), 64), order="F")
        self._order: list[int] = []

    def extend(self) -> bool:
        """Choose the next point; False where no other adds anything that rounding would leave."""
        usable = self._left > self._least
        gains = np.where(usable, np.square(self.residual).sum(axis=1), 0.0)
        np.divide(gains, self._left, out=gains, where=usable)
        pivot = int(gains.argmax())
        if not usable[pivot] or gains[pivot] <= 0.0:
            return False
        if self.size == self._basis.shape[1]:
            self._basis = np.hstack([self._basis, np.empty_like(self._basis)])
            self._basis = np.asfortranarray(self._basis)
        known = self._basis[:, : self.size]
        column = self.at(self.at.points[[pivot]])[0] - known @ known[pivot]
        column /= np.sqrt(self._left[pivot])
        step = self.residual[pivot] / np.sqrt(self._left[pivot])
        self._basis[:, self.size] = column
        self.residual = self.residual - np.outer(column, step)
        self.gained += step**2
        self._left -= column**2
        self._left[pivot] = 0.0
        self._order.append(pivot)
        self.size += 1
        return True

    def chosen(self) -> NDArray[np.intp]:
        """Return the chosen points."""
        return np.array(self._order, dtype=np.intp)

    def triangle(self) -> NDArray[np.float64]:
        """Return the Cholesky factor of the kernel matrix of the chosen points."""
        return np.tril(self._basis[self._order, : self.size])


def _distance(
    at: PointKernel, weights: NDArray[np.float64], chosen: NDArray[np.intp], beta: NDArray[np.float64]
) -> float:
    """Return the largest norm of a function's change, from its coefficients, with what rounding may hide added."""
    change = weights.copy()
    change[chosen] -= beta
    squares, rounding = np.zeros(change.shape[1]), np.zeros(change.shape[1])
    for first in range(0, at.n_points, BLOCK_ROWS):
        rows = slice(first, first + BLOCK_ROWS)
        block = at(at.points[rows])
        squares += np.einsum("ic,ic->c", change[rows], block @ change)
        rounding += np.einsum("ic,ic->c", np.abs(change[rows]), np.abs(block) @ np.abs(change))
    rounding *= np.finfo(np.float64).eps
    if (squares < -at.n_points * rounding).any():
        raise ValueError(
            f"model has a kernel that is not positive definite: a squared norm came out as {squares.min():.3g}."
        )
    return float(np.sqrt(np.maximum(squares, 0.0) + rounding).max())


def _replace(machine: Any, kernel: Kernel, points: Any, projection: _Projection) -> None:
    """Give a machine its new points."""
    if isinstance(machine, KernelClassifier):
        machine.dual_coef_ = projection.apply(machine.dual_coef_.T).T
        machine.__dict__.pop("support_vectors_", None)
        machine.landmarks_ = points
        return
    machine._kernel_features = KernelFeatures(kernel, points)
    machine.landmarks_ = points
    if isinstance(machine, TaskClassifier):
        machine.base_coef_ = projection.apply(machine.base_coef_.T).T
    else:
        machine.dual_coef_ = projection.apply(machine.dual_coef_.T).T
