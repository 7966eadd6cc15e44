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
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from scipy.linalg.lapack import dpotrf, dpotrs

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

PRODUCT_ENTRIES = 2**22
"""Products of features with each other that are worth keeping: they make all weighted Grams one product."""

INTERCEPT_DAMPING = 1e-13
"""Weight of the squared step of the intercept, which else runs away where the optimal ones are unbounded."""

CORRECTIONS = 3
"""Centrality corrections (Gondzio, 1996) tried in an iteration whose step is short."""

PATIENCE = 5
"""Iterations without progress after which rounding is taken to allow no more."""


class InteriorPoint:
    """Predictor-corrector interior point; O(n p^2) an iteration for every atom of the losses.

    `features` stand for the problem's gram where that is no `FeatureGram`: rows whose inner products are the gram
    to rounding (a pivoted Cholesky factor). The certificate is the problem's own all the same.
    """

    def __init__(self, features: Any = None):
        self.features = features

    def solve(
        self,
        problem: HingeProblem,
        settings: Settings,
        *,
        start: HingePoint | None = None,
        observer: Observer | None = None,
    ) -> Solution[HingePoint]:
        """Solve `problem`; of a `start` the dual point is used, drawn into the interior."""
        model = _Model(problem, self.features)
        iterate = _first_iterate(model, start)
        best: tuple[HingePoint, Certificate] | None = None
        length, idle = 1.0, 0
        with Progress(settings, observer) as progress:
            for _ in progress:
                primal, complementarity = model.objectives(iterate)
                record = progress.record(primal, primal - complementarity)
                if record.gap <= settings.tol:
                    previous = np.inf if best is None else best[1].gap
                    best = model.better(best, iterate)
                    if best[1].within(settings.tol):
                        break
                    advanced = best[1].gap < 0.9 * previous
                else:
                    advanced = length > 0.05
                idle = 0 if advanced else idle + 1
                if idle == PATIENCE:
                    progress.status = Status.STALLED
                    break
                try:
                    length = _predictor_corrector(model, iterate)
                except np.linalg.LinAlgError:
                    progress.status = Status.NUMERICAL_ERROR
                    break
        if best is None or not best[1].within(settings.tol):
            best = model.better(best, iterate)
        return progress.finish(*best)


@dataclass(slots=True)
class _Iterate:
    """Unknowns Z (features, k-1), and the blocks with dual slots, slacks and epigraph variables."""

    Z: Array
    blocks: GeneralBlocks | SimplexBlocks


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
            self.features = np.asarray(self.features, dtype=np.float64)
        self.penalty = np.ones((self.features.shape[1], 1))
        if problem.fit_intercept:
            self.penalty[-1] = 0.0
        self.damping = np.tile(np.maximum(self.penalty[:, 0], INTERCEPT_DAMPING), self.basis.shape[1])
        self.products = _products(self.features)
        coordinates = self.slots.atoms @ self.basis
        self.outer = np.einsum("tr,ts->rst", coordinates, coordinates).reshape(-1, len(coordinates))
        shape = self.features.shape[1], self.basis.shape[1]
        self.tilt = np.zeros(shape) if problem.tilt is None else self.pull(problem.tilt @ self.basis)

    def scores(self, Z: Array) -> Array:
        """Return the scores in the zero-sum basis (n, k-1)."""
        return self.features @ Z

    def pull(self, Q: Array) -> Array:
        """Return ``X'Q``: a sum over rows."""
        return self.features.T @ Q

    def objectives(self, iterate: _Iterate) -> tuple[float, float]:
        """Return the primal objective, and the complementarity, which is the gap once all conditions hold."""
        Z = iterate.Z
        losses, complementarity = iterate.blocks.objectives()
        return 0.5 * float(np.vdot(Z, self.penalty * Z)) + losses + float(np.vdot(self.tilt, Z)), complementarity

    def residual(self, iterate: _Iterate) -> Array:
        """Return ``[W; 0] - X'R B``."""
        return self.penalty * iterate.Z + self.tilt + self.pull(iterate.blocks.pull())

    def normal_matrix(self, blocks: GeneralBlocks | SimplexBlocks) -> Array:
        """Return the matrix of the reduced system; unknowns are ordered by basis vector, then feature."""
        m, p = self.basis.shape[1], self.features.shape[1]
        grams = weighted_grams(self.features, self.products, len(self.slots.atoms), blocks.atom_weights)
        matrix = (self.outer @ grams).reshape(m, m, p, p).transpose(0, 2, 1, 3).reshape(m * p, m * p)
        matrix.flat[:: m * p + 1] += self.damping
        return matrix

    def better(
        self, best: tuple[HingePoint, Certificate] | None, iterate: _Iterate
    ) -> tuple[HingePoint, Certificate]:
        """Certify the iterate, and return it if its gap is the smaller one."""
        point = self.point(iterate)
        certificate = self.problem.certify(point)
        return (point, certificate) if best is None or certificate.gap < best[1].gap else best

    def point(self, iterate: _Iterate) -> HingePoint:
        """Return the iterate as a dual point that is feasible to rounding, with its intercepts."""
        alpha = iterate.blocks.alpha
        dual = self.slots.to_dual(alpha * (self.slots.weight / row_sums(alpha))[:, None])
        if not self.problem.fit_intercept:
            return HingePoint(dual, np.zeros(len(self.basis)))
        repaired = balanced(self.problem, dual)
        return HingePoint(dual if repaired is None else repaired, self.basis @ iterate.Z[-1])


def _products(features: Any) -> Array | None:
    """Return the products (n, p(p+1)/2) of the features with each other, where they are few enough to keep."""
    n, p = features.shape
    if sparse.issparse(features) or n * p * (p + 1) // 2 > PRODUCT_ENTRIES:
        return None
    first, second = np.triu_indices(p)
    return features[:, first] * features[:, second]


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


def _first_iterate(model: _Model, start: HingePoint | None) -> _Iterate:
    slots = model.slots
    n_slots = slots.offsets.shape[1]
    alpha = np.repeat(slots.weight[:, None] / n_slots, n_slots, axis=1)
    if start is not None:
        alpha = 0.7 * slots.from_dual(start.dual) + 0.3 * alpha
    Z = np.zeros((model.features.shape[1], model.basis.shape[1]))
    offset = float(slots.offsets.max())
    epigraph = np.full(len(slots.weight), 2.0 * offset if offset > 0.0 else 1.0)
    return _Iterate(Z, blocks_of(slots, model.basis, alpha, epigraph[:, None] - slots.offsets, epigraph))


def _predictor_corrector(model: _Model, iterate: _Iterate) -> float:
    """Move the iterate by one step of Mehrotra's method with Gondzio's corrections; return its length."""
    blocks = iterate.blocks
    mu = blocks.linearise()
    system = _NewtonSystem(model, iterate)

    length = min(1.0, system.direction(blocks.predict()))
    # a block's part in the products is that of its weight: so weights are repetition on the central path too
    aim = mu * (blocks.reached(length) / mu) ** 3

    length = system.direction(blocks.correct(aim), refinements=5)
    for _ in range(CORRECTIONS):
        if length > 0.9:
            break
        corrected = system.corrected(blocks.recentre(min(1.0, length + 0.1)), longer_than=length + 0.01)
        if corrected is None:
            break
        length = corrected
    length = blocks.trusted(min(1.0, 0.995 * length))
    blocks.advance(length)
    iterate.Z += length * system.Z
    return length


class _NewtonSystem:
    """The conditions of optimality linearised at an iterate, with the reduced matrix factored."""

    def __init__(self, model: _Model, iterate: _Iterate):
        self.model, self.blocks = model, iterate.blocks
        self.solve = _factorise(model.normal_matrix(iterate.blocks))
        self.residual = model.residual(iterate)

    def direction(self, pull: Array, refinements: int = 0) -> float:
        """Find Newton's direction for the blocks' `pull`, and return how far it can be gone.

        Rounding in Z reaches alpha multiplied by the largest theta; what it leaves of the linear conditions is
        therefore measured in alpha itself and solved for again.
        """
        model, blocks = self.model, self.blocks
        self.Z = self.solve(-self.residual - model.pull(pull))
        length = blocks.recover(model.scores(self.Z), onto=False)
        blocks.accept()
        error, enough = np.inf, 1e-8 * float(np.abs(self.residual).max())
        for _ in range(refinements):
            left = self.residual + model.penalty * self.Z + model.pull(blocks.pull_of_direction())
            previous, error = error, float(np.abs(left).max())
            if error <= enough or error > 0.5 * previous:
                break
            Z = self.solve(-left - model.pull(blocks.refine()))
            length = blocks.recover(model.scores(Z), onto=True)
            blocks.accept()
            self.Z += Z
        return length

    def corrected(self, pull: Array, *, longer_than: float) -> float | None:
        """Add to the direction what answers the `pull` of a correction, if that allows a long enough step."""
        Z = self.solve(-self.model.pull(pull))
        length = self.blocks.recover(self.model.scores(Z), onto=True)
        if length < longer_than:
            return None
        self.blocks.accept()
        self.Z += Z
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
        vector = scale * right.T.ravel()
        solution = dpotrs(factor, vector, lower=1)[0]
        solution += dpotrs(factor, vector - scaled @ solution, lower=1)[0]
        return (scale * solution).reshape(right.shape[1], right.shape[0]).T

    return solve
