"""The reduced system of the interior point: its unknowns, and Newton's method in them for any rows and losses."""

from collections.abc import Callable
from copy import copy
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from scipy.linalg.lapack import dpotrf, dpotri, dpotrs

from polymargin.coding import zero_sum_basis
from polymargin.problems.hinge import HingeProblem, PartitionedHinge
from polymargin.solvers.hinge._class_curvature import in_basis
from polymargin.solvers.hinge._rows import Rows, RowsInPartitions, is_by_class
from polymargin.solvers.hinge._slots import Array
from polymargin.solvers.hinge.settings import INTERIOR

RIDGES = 0.0, 1e-15, 1e-13, 1e-11, 1e-9
"""Relative ridges tried one after the other until a matrix is positive definite in floating-point arithmetic."""

Solve = Callable[[Array], Array]

INTERCEPT_DAMPING = 1e-13
"""Weight of the squared step of the intercept, which else runs away where the optimal ones are unbounded."""


class Unknowns:
    """What stays fixed over the iterations of the unknowns Z (k-1, p), whatever the rows."""

    def __init__(
        self, problem: HingeProblem | PartitionedHinge, n_classes: int, n_features: int, atoms: sparse.csr_array
    ):
        self.basis = zero_sum_basis(n_classes)
        self.penalty = np.ones(n_features + problem.fit_intercept)
        if problem.fit_intercept:
            self.penalty[-1] = 0.0
        self.by_class = is_by_class(*atoms.shape)
        self.class_of_atom = _classes_of_single_scores(atoms)
        self.atoms = atoms
        self.tilt = np.zeros((self.basis.shape[1], len(self.penalty)))

    @cached_property
    def outer(self) -> Array:
        """Products (k-1, k-1, atoms) of the atoms' coordinates in the basis."""
        coordinates = (self.atoms @ self.basis).T
        return np.ascontiguousarray(coordinates[:, None] * coordinates)

    def tilted(self, tilt: Array) -> "Unknowns":
        """Return the same with the pull of a tilt."""
        unknowns = copy(self)
        unknowns.tilt = np.ascontiguousarray(tilt)
        return unknowns

    def factorised(self, grams: Array) -> Solve:
        """Return the solution operator of the reduced system with these weighted Grams."""
        few = self.tilt.size <= min(INTERIOR.few_unknowns, INTERIOR.outer_entries // np.prod(self.atoms.shape))
        if self.class_of_atom is None or few:
            return _factorise(self.normal_matrix(grams))
        p = len(self.penalty)
        matrices = grams.reshape(-1, p, p)[np.argsort(self.class_of_atom)]
        matrices[:, np.arange(p), np.arange(p)] += np.maximum(self.penalty, INTERCEPT_DAMPING)
        return _factorise_classes(matrices, self.basis)

    def normal_matrix(self, grams: Array) -> Array:
        """Return the matrix of the reduced system; unknowns are ordered by basis vector, then feature."""
        m, p = self.tilt.shape
        if self.by_class:
            matrix = in_basis(grams, self.basis)
        else:
            curvature = self.outer.reshape(m * m, -1) @ grams
            matrix = curvature.reshape(m, m, p, p).transpose(0, 2, 1, 3).reshape(m * p, m * p)
        matrix.flat[:: m * p + 1] += np.tile(np.maximum(self.penalty, INTERCEPT_DAMPING), m)
        return matrix


class NewtonSystem:
    """Iterate, and the conditions of optimality linearised there, for any features and losses, wherever rows are.

    Unknowns Z (k-1, p) are ordered by basis vector, then feature. `DenseSystem` is the same compiled.
    """

    def __init__(self, unknowns: Unknowns, rows: Rows | RowsInPartitions, Z: Array):
        self.unknowns, self.rows, self.Z = unknowns, rows, Z

    @property
    def blocks(self) -> Any:
        """The rows' own variables."""
        return self.rows.blocks

    def objectives(self) -> tuple[float, float]:
        """Return primal and dual objective, the latter less what the linear conditions miss."""
        unknowns = self.unknowns
        losses, complementarity, pull = self.rows.objectives()
        gradient = unknowns.penalty * self.Z
        self.residual = gradient + unknowns.tilt + pull
        primal = losses + float(np.vdot(self.Z, 0.5 * gradient + unknowns.tilt))
        return primal, primal - complementarity - 0.5 * float(np.vdot(self.residual, self.residual))

    def linearise(self) -> float:
        """Factor the reduced matrix where `objectives` were taken; return the mean of the products."""
        products, grams, self.predicted = self.rows.linearise()
        self.solve = self.unknowns.factorised(grams)
        return products.mean

    def predict(self) -> float:
        """Find the direction to vanishing products, and return how far it can be gone."""
        return self._direction(self.predicted)

    def correct(self, aim: float, refinements: int) -> float:
        """Find the direction to products of their share of `aim`, and return how far it can be gone.

        Rounding in Z reaches alpha multiplied by the largest theta; what it leaves of the linear conditions is
        therefore measured in alpha itself and solved for again.
        """
        rows = self.rows
        length = self._direction(rows.correct(aim))
        error, enough = np.inf, INTERIOR.refined_to * float(np.abs(self.residual).max())
        for _ in range(refinements):
            left = self.residual + self.unknowns.penalty * self.direction + rows.pull_of_direction()
            previous, error = error, float(np.abs(left).max())
            if error <= enough or error > 0.5 * previous:
                break
            Z = self.solve(-left - rows.refine())
            length = rows.recover(Z, True)
            rows.accept()
            self.direction += Z
        return length

    def recentre(self, hoped: float, longer_than: float) -> float | None:
        """Add a centrality correction to the direction if it allows a longer step; None otherwise."""
        Z = self.solve(-self.rows.recentre(hoped))
        length = self.rows.recover(Z, True)
        if length < longer_than:
            return None
        self.rows.accept()
        self.direction += Z
        return length

    def reached(self, length: float) -> float:
        """Return the mean of the products after a step along the direction."""
        return self.rows.reached(length).mean

    def advance(self, length: float) -> None:
        """Move along the direction."""
        self.rows.advance(length)
        self.Z += length * self.direction

    def _direction(self, pull: Array) -> float:
        self.direction = self.solve(-self.residual - pull)
        length = self.rows.recover(self.direction, False)
        self.rows.accept()
        return length


def _classes_of_single_scores(atoms: sparse.csr_array) -> NDArray[np.intp] | None:
    """Return the class whose score every atom sees, where each sees that of one class, all different."""
    n_atoms, k = atoms.shape
    if n_atoms != k:
        return None
    atoms = atoms.toarray()
    classes = np.abs(atoms).argmax(axis=1)
    if len(np.unique(classes)) != k:
        return None
    seen = np.eye(k)[classes] - 1.0 / k
    signs = np.sign(atoms[np.arange(k), classes])
    return classes if np.allclose(atoms, signs[:, None] * seen, rtol=0.0, atol=1e-12) else None


def _factorise_classes(matrices: Array, basis: Array) -> Solve:
    """Return the solution operator where losses see single scores, from one matrix (p, p) per class.

    In weights W = Z'B' the system falls into classes, ``M_j w_j = r_j - common``, but for the zero sum of the
    w_j, which sets ``common``: of k matrices (p, p) and their inverses' sum, instead of one of (k - 1) p unknowns.
    The matrices are changed.
    """
    scale = 1.0 / np.sqrt(matrices.diagonal(axis1=1, axis2=2).mean(axis=0))
    matrices *= scale[:, None] * scale
    inverses = np.empty_like(matrices)
    for inverse, matrix in zip(inverses, matrices, strict=True):
        inverse[:] = _inverse(matrix)
    coupling, failed = dpotrf(inverses.sum(axis=0), lower=1)
    if failed:
        raise np.linalg.LinAlgError("the classes' coupling is not positive definite")

    def once(right: Array) -> Array:
        own = np.matmul(inverses, right[:, :, None])[:, :, 0]
        common = dpotrs(coupling, own.sum(axis=0), lower=1)[0]
        return own - inverses @ common

    def solve(right: Array) -> Array:
        right = (basis @ right) * scale
        W = once(right)
        for _ in range(2):
            left = right - np.matmul(matrices, W[:, :, None])[:, :, 0]
            W = W + once(left - left.mean(axis=0))
        return basis.T @ (W * scale)

    return solve


def _inverse(matrix: Array) -> Array:
    """Return the inverse of a positive definite matrix, with a ridge if need be."""
    diagonal = matrix.diagonal()
    for ridge in RIDGES:
        factor, failed = dpotrf((matrix + np.diag(ridge * diagonal) if ridge else matrix).T, lower=1)
        if not failed:
            inverse = dpotri(factor, lower=1, overwrite_c=1)[0]  # nothing above the diagonal
            inverse = inverse + inverse.T
            inverse.flat[:: len(inverse) + 1] *= 0.5
            return inverse
    raise np.linalg.LinAlgError("the reduced matrix of a class is not positive definite")


def _factorise(matrix: Array) -> Solve:
    """Return the solution operator of a positive definite matrix, equilibrated, with a ridge if need be."""
    scale = 1.0 / np.sqrt(np.maximum(matrix.diagonal(), np.finfo(np.float64).tiny))
    scaled = matrix * scale[:, None] * scale
    for ridge in RIDGES:
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
