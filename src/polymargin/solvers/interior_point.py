"""Structured primal-dual interior point for the hinge machines on few features.

The losses are blocks of slots (see `_slots`): with margins ``m(F)``, epigraph variables xi and slacks
``s = xi - m(F) >= 0``, the conditions of optimality are

    [W; 0] = X'R(alpha) in the zero-sum basis,   sum of alpha over a block = weight,   alpha s = 0.

Eliminating alpha, s and xi leaves a system in the few unknowns Z of ``F = X Z B'`` (B the zero-sum basis, X with a
column of ones for the intercept), whose matrix ``I + sum_t (B'a_t)(B'a_t)' kron X' diag(w_t) X`` is a sum over the
atoms a_t of the losses, assembled by weighted products of the features with themselves. The blocks' sums and the
definition of s hold from the start; the first condition holds in the limit, and to rounding in the point returned.

Reference: Mehrotra, S. (1992). On the implementation of a primal-dual interior point method. SIAM J. Optimization.
"""

from collections.abc import Callable
from copy import copy
from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from scipy.linalg.lapack import dpotrf, dpotrs

from polymargin._native.simplex_blocks import DenseSystem
from polymargin.coding import zero_sum_basis
from polymargin.gram import FeatureGram
from polymargin.problems.certificate import Certificate
from polymargin.problems.hinge import HingePoint, HingeProblem
from polymargin.solvers._blocks import GeneralBlocks, SimplexBlocks, blocks_of
from polymargin.solvers._slots import Array, row_sums, slots_of
from polymargin.solvers.balance import balanced
from polymargin.solvers.contract import Observer, Progress, Settings, Solution, Status

Solve = Callable[[Array], Array]

CHUNK_ENTRIES = 2**18
"""Entries of the features that are weighted at a time: about the size of a core's cache."""

PRODUCT_FEATURES, PRODUCT_ENTRIES = 32, 2**22
"""Features up to which, and entries, it pays to keep their products: they make all weighted Grams one product."""

INTERCEPT_DAMPING = 1e-13
"""Weight of the squared step of the intercept, which else runs away where the optimal ones are unbounded."""

CORRECTIONS = 2
"""Centrality corrections (Gondzio, 1996) tried in an iteration whose step is short."""

REFINEMENTS = 5
"""Most times that a direction is solved for again to remove rounding."""

PATIENCE = 20
"""Iterations near the solution without progress after which rounding is taken to allow no more."""

MOST_SHORT_STEPS = 30
"""Short steps in a row after which the iterate is taken to be stuck; curved losses take some on their way."""


class InteriorPoint:
    """Predictor-corrector interior point; O(n p^2) an iteration for every atom of the losses.

    `features` stand for the problem's gram where that is no `FeatureGram`: rows whose inner products are the gram
    to rounding (a pivoted Cholesky factor). The certificate is the problem's own all the same.
    """

    def __init__(self, features: Any = None):
        self.features = features
        self._model: _Model | None = None

    def solve(
        self,
        problem: HingeProblem,
        settings: Settings,
        *,
        start: HingePoint | None = None,
        observer: Observer | None = None,
    ) -> Solution[HingePoint]:
        """Solve `problem`; of a `start` the dual point is used, drawn into the interior."""
        # what does not depend on the tilt is kept from one step of the DC algorithm to the next
        if self._model is None or not self._model.fits(problem):
            self._model = _Model(problem, self.features)
        model = self._model.tilted(problem)
        system = _first_system(model, start)
        best: tuple[HingePoint, Certificate] | None = None
        idle = short = 0
        with Progress(settings, observer) as progress:
            for _ in progress:
                record = progress.record(*system.objectives())
                if record.gap <= settings.tolerance(record.primal):
                    previous = np.inf if best is None else best[1].gap
                    best = model.better(best, system)
                    if best[1].within(settings.tolerance(best[1].primal)):
                        break
                    idle = 0 if best[1].gap < 0.9 * previous else idle + 1
                if idle == PATIENCE or short == MOST_SHORT_STEPS:
                    progress.status = Status.STALLED
                    break
                try:
                    short = short + 1 if _predictor_corrector(system) < 0.05 else 0
                except np.linalg.LinAlgError:
                    progress.status = Status.NUMERICAL_ERROR
                    break
        if best is None or not best[1].within(settings.tolerance(best[1].primal)):
            best = model.better(best, system)
        return progress.finish(*best)


class _Model:
    """What stays fixed over the iterations: features with a column of ones, slots, basis."""

    def __init__(self, problem: HingeProblem, features: Any):
        if features is None:
            if not isinstance(problem.gram, FeatureGram):
                raise TypeError("The interior point needs features: a FeatureGram, or a factor of the gram.")
            features = problem.gram.features
        self.problem = problem
        self.slots = slots_of(problem.losses)
        self.basis = zero_sum_basis(problem.losses.n_classes)
        self.features = _with_ones(features) if problem.fit_intercept else features
        if not sparse.issparse(self.features):
            self.features = np.ascontiguousarray(self.features, dtype=np.float64)
        self.penalty = np.ones(self.features.shape[1])
        if problem.fit_intercept:
            self.penalty[-1] = 0.0
        self.damping = np.tile(np.maximum(self.penalty, INTERCEPT_DAMPING), self.basis.shape[1])
        self.products = _products(self.features)
        coordinates = self.slots.atoms @ self.basis
        self.outer = np.einsum("tr,ts->rst", coordinates, coordinates, order="C")
        self.tilt = np.zeros((self.basis.shape[1], self.features.shape[1]))

    def fits(self, problem: HingeProblem) -> bool:
        """Tell whether a problem differs from the model's by its tilt alone."""
        same = problem.gram is self.problem.gram and problem.losses is self.problem.losses
        return same and problem.fit_intercept == self.problem.fit_intercept

    def tilted(self, problem: HingeProblem) -> "_Model":
        """Return the model of a problem that fits."""
        model = copy(self)
        model.problem = problem
        if problem.tilt is not None:
            model.tilt = np.ascontiguousarray(self.pull(problem.tilt @ self.basis))
        return model

    def scores(self, Z: Array) -> Array:
        """Return the scores in the zero-sum basis (n, k-1)."""
        return self.features @ Z.T

    def pull(self, Q: Array) -> Array:
        """Return ``Q'X``: a sum over rows."""
        return (self.features.T @ Q).T

    def normal_matrix(self, blocks: GeneralBlocks | SimplexBlocks) -> Array:
        """Return the matrix of the reduced system; unknowns are ordered by basis vector, then feature."""
        m, p = self.basis.shape[1], self.features.shape[1]
        grams = weighted_grams(self.features, self.products, len(self.slots.atoms), blocks.atom_weights)
        matrix = (
            (self.outer.reshape(m * m, -1) @ grams).reshape(m, m, p, p).transpose(0, 2, 1, 3).reshape(m * p, m * p)
        )
        matrix.flat[:: m * p + 1] += self.damping
        return matrix

    def better(
        self, best: tuple[HingePoint, Certificate] | None, system: "_NewtonSystem | DenseSystem"
    ) -> tuple[HingePoint, Certificate]:
        """Certify the system's iterate, and return it if its gap is the smaller one."""
        point = self.point(system)
        certificate = self.problem.certify(point)
        return (point, certificate) if best is None or certificate.gap < best[1].gap else best

    def point(self, system: "_NewtonSystem | DenseSystem") -> HingePoint:
        """Return the iterate as a dual point that is feasible to rounding, with its intercepts."""
        alpha = system.blocks.alpha
        dual = self.slots.to_dual(alpha * (self.slots.weight / row_sums(alpha))[:, None])
        intercept = np.zeros(len(self.basis))
        if self.problem.fit_intercept:
            intercept = self.basis @ system.Z[:, -1]
            repaired = balanced(self.problem, dual)
            dual = dual if repaired is None else repaired
        return HingePoint(dual, intercept)


def _products(features: Any) -> Array | None:
    """Return the products (n, p(p+1)/2) of the features with each other, where they are few enough to keep."""
    n, p = features.shape
    if sparse.issparse(features) or p > PRODUCT_FEATURES or n * p * (p + 1) // 2 > PRODUCT_ENTRIES:
        return None
    first, second = np.triu_indices(p)
    return np.ascontiguousarray(features[:, first] * features[:, second])


def weighted_grams(
    features: Any, products: Array | None, n_atoms: int, atom_weights: Callable[[int, int], Array]
) -> Array:
    """Return ``X' diag(w_t) X`` (atoms, p * p) for the weights w_t of every atom t: a sum over rows."""
    n, p = features.shape
    if products is not None:
        return (atom_weights(0, n).T @ products)[:, _places(p)]
    height = max(1, CHUNK_ENTRIES // p)
    grams = np.zeros((n_atoms, p, p))
    for first in range(0, n, height):
        last = min(first + height, n)
        part = features[first:last].toarray() if sparse.issparse(features) else features[first:last]
        roots = np.sqrt(atom_weights(first, last))
        for gram, root in zip(grams, roots.T, strict=True):
            seen = np.flatnonzero(root)
            weighted = part * root[:, None] if len(seen) == len(root) else part[seen] * root[seen, None]
            gram += weighted.T @ weighted
    return grams.reshape(-1, p * p)


@cache
def _places(p: int) -> NDArray[np.intp]:
    """Return where the entries of a symmetric matrix are in its upper triangle, both by rows."""
    places = np.empty((p, p), dtype=np.intp)
    places[np.triu_indices(p)] = np.arange(p * (p + 1) // 2)
    return np.triu(places).ravel() + np.triu(places, 1).T.ravel()


def _with_ones(features: Any) -> Any:
    ones = np.ones((features.shape[0], 1))
    if sparse.issparse(features):
        return sparse.csr_array(sparse.hstack([features, ones]))
    return np.hstack([features, ones])


def _first_system(model: _Model, start: HingePoint | None) -> "_NewtonSystem | DenseSystem":
    slots = model.slots
    n_slots = slots.offsets.shape[1]
    alpha = np.repeat(slots.weight[:, None] / n_slots, n_slots, axis=1)
    if start is not None:
        alpha = 0.7 * slots.from_dual(start.dual) + 0.3 * alpha
    offset = float(slots.offsets.max())
    epigraph = np.full(len(slots.weight), 2.0 * offset if offset > 0.0 else 1.0)
    slack = epigraph[:, None] - slots.offsets
    blocks = blocks_of(slots, model.basis, alpha, slack, epigraph)
    Z = np.zeros_like(model.tilt)
    if isinstance(blocks, SimplexBlocks) and model.products is not None:
        return DenseSystem(
            blocks, model.features, model.products, model.outer, model.penalty, model.tilt, Z, INTERCEPT_DAMPING
        )
    return _NewtonSystem(model, blocks, Z)


def _predictor_corrector(system: "_NewtonSystem | DenseSystem") -> float:
    """Move the iterate by one step of Mehrotra's method with Gondzio's corrections; return its length."""
    mu = system.linearise()
    length = min(1.0, system.predict())
    # a block's part in the products is that of its weight: so weights are repetition on the central path too
    aim = mu * (system.reached(length) / mu) ** 3
    length = system.correct(aim, REFINEMENTS)
    for _ in range(CORRECTIONS):
        if length > 0.9:
            break
        corrected = system.recentre(min(1.0, length + 0.1), length + 0.01)
        if corrected is None:
            break
        length = corrected
    length = system.blocks.trusted(min(1.0, 0.995 * length))
    system.advance(length)
    return length


class _NewtonSystem:
    """Iterate, and the conditions of optimality linearised there, for any features and losses.

    Unknowns Z (k-1, p) are ordered by basis vector, then feature. `DenseSystem` is the same compiled.
    """

    def __init__(self, model: _Model, blocks: GeneralBlocks | SimplexBlocks, Z: Array):
        self.model, self.blocks, self.Z = model, blocks, Z

    def objectives(self) -> tuple[float, float]:
        """Return primal and dual objective, the latter less what the linear conditions miss."""
        model = self.model
        losses, complementarity = self.blocks.objectives()
        gradient = model.penalty * self.Z
        self.residual = gradient + model.tilt + model.pull(self.blocks.pull())
        primal = losses + float(np.vdot(self.Z, 0.5 * gradient + model.tilt))
        return primal, primal - complementarity - 0.5 * float(np.vdot(self.residual, self.residual))

    def linearise(self) -> float:
        """Factor the reduced matrix where `objectives` were taken; return the mean of the products."""
        mu = self.blocks.linearise()
        self.solve = _factorise(self.model.normal_matrix(self.blocks))
        return mu

    def predict(self) -> float:
        """Find the direction to vanishing products, and return how far it can be gone."""
        return self._direction(self.blocks.predict())

    def correct(self, aim: float, refinements: int) -> float:
        """Find the direction to products of their share of `aim`, and return how far it can be gone.

        Rounding in Z reaches alpha multiplied by the largest theta; what it leaves of the linear conditions is
        therefore measured in alpha itself and solved for again.
        """
        model, blocks = self.model, self.blocks
        length = self._direction(blocks.correct(aim))
        error, enough = np.inf, 1e-8 * float(np.abs(self.residual).max())
        for _ in range(refinements):
            left = self.residual + model.penalty * self.direction + model.pull(blocks.pull_of_direction())
            previous, error = error, float(np.abs(left).max())
            if error <= enough or error > 0.5 * previous:
                break
            Z = self.solve(-left - model.pull(blocks.refine()))
            length = blocks.recover(model.scores(Z), onto=True)
            blocks.accept()
            self.direction += Z
        return length

    def recentre(self, hoped: float, longer_than: float) -> float | None:
        """Add a centrality correction to the direction if it allows a longer step; None otherwise."""
        Z = self.solve(-self.model.pull(self.blocks.recentre(hoped)))
        length = self.blocks.recover(self.model.scores(Z), onto=True)
        if length < longer_than:
            return None
        self.blocks.accept()
        self.direction += Z
        return length

    def reached(self, length: float) -> float:
        """Return the mean of the products after a step along the direction."""
        return self.blocks.reached(length)

    def advance(self, length: float) -> None:
        """Move along the direction."""
        self.blocks.advance(length)
        self.Z += length * self.direction

    def _direction(self, pull: Array) -> float:
        self.direction = self.solve(-self.residual - self.model.pull(pull))
        length = self.blocks.recover(self.model.scores(self.direction), onto=False)
        self.blocks.accept()
        return length


def _factorise(matrix: Array) -> Solve:
    """Return the solution operator of a positive definite matrix, equilibrated, with a ridge if need be."""
    scale = 1.0 / np.sqrt(np.maximum(matrix.diagonal(), np.finfo(np.float64).tiny))
    scaled = matrix * scale[:, None] * scale
    for ridge in (0.0, 1e-15, 1e-13, 1e-11, 1e-9):
        raised = scaled + ridge * np.eye(len(scale)) if ridge else scaled
        factor, failed = dpotrf(raised.T, lower=1)
        if not failed:
            break
    else:
        raise np.linalg.LinAlgError("the reduced matrix is not positive definite")

    def solve(right: Array) -> Array:
        vector = scale * right.ravel()
        solution = dpotrs(factor, vector, lower=1)[0]
        solution += dpotrs(factor, vector - scaled @ solution, lower=1)[0]
        return (scale * solution).reshape(right.shape)

    return solve
