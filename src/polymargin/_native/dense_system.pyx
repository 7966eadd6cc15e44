"""Newton systems of the interior point on few dense features: `solvers._newton_system.NewtonSystem`, compiled."""

import numpy as np

from libc.math cimport fabs, sqrt
from polymargin._native.simplex_blocks cimport SimplexBlocks, combine_rows, inner_products, weigh_atoms
from scipy.linalg.cython_blas cimport dgemm, dsymv
from scipy.linalg.cython_lapack cimport dpotrf, dpotrs

cdef enum:
    # Multiplications, and atoms of weighted Grams, up to which our own loops are quicker than BLAS
    SMALL_PRODUCT = 32768
    FEW_ATOMS = 6


cdef class DenseSystem:
    """Iterate, and the conditions of optimality linearised there; the rows' own variables are `SimplexBlocks`.

    Unknowns are ordered by basis vector, then feature: Z (k-1, p). `outer` (k-1, k-1, pairs) are the products of
    the coordinates of the pairs of classes. Features, their products with each other (p(p+1)/2, n) and all that is
    known by example lie side by side for all examples, in the order of the blocks.
    """

    cdef readonly SimplexBlocks blocks
    cdef readonly object Z
    cdef int n, p, k, m, n_atoms, n_products, size
    cdef const double[:, ::1] basis, outer, tilt
    cdef const double[::1] penalty
    cdef double damping
    cdef double[:, ::1] X, products, z, dz, cz, residual, right, grams, curvatures, weights, scaled, factor, scores
    cdef double[:, ::1] by_class
    cdef double[::1] scale, vector

    def __init__(self, blocks, const double[:, ::1] X, basis, outer, penalty, tilt, Z, damping):
        self.blocks, self.basis, self.penalty = blocks, basis, penalty
        self.Z, self.z, self.tilt, self.damping = Z, Z, tilt, damping
        self.n, self.p, self.k = X.shape[0], X.shape[1], basis.shape[0]
        self.m, self.n_atoms, self.n_products = Z.shape[0], outer.shape[2], self.p * (self.p + 1) // 2
        self.outer = outer.reshape(-1, outer.shape[2])
        self.size = self.m * self.p
        self._allocate()
        self._arrange(X)

    cdef int _allocate(self) except -1:
        """Make room: one array for all that have rows of the same length, as small ones take time too."""
        cdef Py_ssize_t m = self.m, p = self.p, k = self.k, end = p + self.n_products
        cdef double[:, ::1] room = np.empty((end + self.n_atoms + k, self.n))
        self.X, self.products = room[:p], room[p:end]
        self.weights, self.scores = room[end:end + self.n_atoms], room[end + self.n_atoms:]
        room = np.empty((4 * m + k, p))
        self.dz, self.cz, self.residual, self.right = room[:m], room[m:2 * m], room[2 * m:3 * m], room[3 * m:4 * m]
        self.by_class = room[4 * m:]
        room = np.empty((self.n_atoms + m * m, self.n_products))
        self.grams, self.curvatures = room[:self.n_atoms], room[self.n_atoms:]
        room = np.empty((2 * self.size + 2, self.size))
        self.scaled, self.factor = room[:self.size], room[self.size:2 * self.size]
        self.scale, self.vector = room[2 * self.size], room[2 * self.size + 1]

    cdef void _arrange(self, const double[:, ::1] X) noexcept:
        """Set the features, in the order of the blocks, and their products."""
        cdef Py_ssize_t i, c, d, at = 0
        for i in range(self.n):
            for c in range(self.p):
                self.X[c, i] = X[self.blocks.example_order[i], c]
        for c in range(self.p):
            for d in range(c, self.p):
                for i in range(self.n):
                    self.products[at, i] = self.X[c, i] * self.X[d, i]
                at += 1

    def objectives(self):
        """Return primal and dual objective, the latter less what the linear conditions miss."""
        cdef Py_ssize_t r, c
        cdef double losses, complementarity, rest = 0.0, missed = 0.0
        losses, complementarity = self.blocks.objectives()
        for r in range(self.m):
            for c in range(self.p):
                rest += self.z[r, c] * (0.5 * self.penalty[c] * self.z[r, c] + self.tilt[r, c])
                self.residual[r, c] = self.penalty[c] * self.z[r, c] + self.tilt[r, c]
        self.blocks.pull_of(self.blocks.x.a)
        self._add_pull(1.0, self.residual)
        for r in range(self.m):
            for c in range(self.p):
                missed += self.residual[r, c] * self.residual[r, c]
        return losses + rest, losses + rest - complementarity - 0.5 * missed

    def linearise(self):
        """Factor the reduced matrix where `objectives` were taken; return the mean of the products."""
        cdef double mu = self.blocks.linearise_at()
        self._assemble()
        if not self._factorise():
            raise np.linalg.LinAlgError("the reduced matrix is not positive definite")
        return mu

    def predict(self):
        """Find the direction to vanishing products, and return how far it can be gone."""
        self.blocks.want_vanishing()
        return self._direction(self.residual, False)

    def correct(self, double aim, int refinements):
        """Find the direction to products of their share of `aim`; solve again for what rounding leaves."""
        cdef Py_ssize_t r, c
        cdef double length, error = 1e300, previous, enough = 1e-8 * self._largest(self.residual)
        cdef double[:, ::1] left = self.cz
        self.blocks.want_centred(aim)
        length = self._direction(self.residual, False)
        for _ in range(refinements):
            left = self.cz
            self.blocks.pull_of(self.blocks.x.da)
            for r in range(self.m):
                for c in range(self.p):
                    left[r, c] = self.residual[r, c] + self.penalty[c] * self.dz[r, c]
            self._add_pull(1.0, left)
            previous, error = error, self._largest(left)
            if error <= enough or error > 0.5 * previous:
                break
            self.blocks.want_refined()
            length = self._direction(left, True)
        return length

    def recentre(self, double hoped, double longer_than):
        """Add a centrality correction to the direction if it allows a longer step; None otherwise."""
        cdef double length
        self.blocks.want_recentred(hoped)
        self.right[:, :] = 0.0
        length = self._answer(True)
        if length < longer_than:
            return None
        self._accept(True)
        return length

    def reached(self, double length):
        """Return the mean of the products after a step along the direction."""
        return self.blocks.reached(length)

    def advance(self, double length):
        """Move along the direction."""
        cdef Py_ssize_t r, c
        self.blocks.advance(length)
        for r in range(self.m):
            for c in range(self.p):
                self.z[r, c] += length * self.dz[r, c]

    cdef double _direction(self, double[:, ::1] residual, bint onto) except? -1.0:
        cdef Py_ssize_t r, c
        cdef double length
        for r in range(self.m):
            for c in range(self.p):
                self.right[r, c] = -residual[r, c]
        length = self._answer(onto)
        self._accept(onto)
        return length

    cdef double _answer(self, bint onto) except? -1.0:
        """Solve for the unknowns that answer `right` and the blocks' pull, and recover the blocks."""
        cdef double one = 1.0, zero = 0.0
        self._add_pull(-1.0, self.right)
        self._solve()
        dgemm("N", "N", &self.p, &self.k, &self.m, &one, &self.cz[0, 0], &self.p, <double*> &self.basis[0, 0],
              &self.m, &zero, &self.by_class[0, 0], &self.p)
        if self.n * self.p * self.k <= SMALL_PRODUCT:
            combine_rows(&self.by_class[0, 0], self.k, &self.X[0, 0], self.p, self.n, &self.scores[0, 0])
        else:
            dgemm("N", "N", &self.n, &self.k, &self.p, &one, &self.X[0, 0], &self.n, &self.by_class[0, 0], &self.p,
                  &zero, &self.scores[0, 0], &self.n)
        return self.blocks.recover_at(&self.scores[0, 0], onto)

    cdef int _accept(self, bint onto) except -1:
        cdef Py_ssize_t r, c
        self.blocks.accept_candidate()
        for r in range(self.m):
            for c in range(self.p):
                self.dz[r, c] = self.cz[r, c] + (self.dz[r, c] if onto else 0.0)

    cdef void _add_pull(self, double factor, double[:, ::1] out) noexcept:
        """Add the sum over rows of the blocks' pull times the features, in the zero-sum basis."""
        cdef double one = 1.0, zero = 0.0
        cdef double* pulled = &self.blocks.pulled[0, 0]
        if self.n * self.p * self.k <= SMALL_PRODUCT:
            inner_products(pulled, self.k, &self.X[0, 0], self.p, self.n, &self.by_class[0, 0])
        else:
            dgemm("T", "N", &self.p, &self.k, &self.n, &one, &self.X[0, 0], &self.n, pulled, &self.n, &zero,
                  &self.by_class[0, 0], &self.p)
        dgemm("N", "T", &self.p, &self.m, &self.k, &factor, &self.by_class[0, 0], &self.p,
              <double*> &self.basis[0, 0], &self.m, &one, &out[0, 0], &self.p)

    cdef double _largest(self, double[:, ::1] values) noexcept:
        cdef Py_ssize_t r, c
        cdef double largest = 0.0
        for r in range(self.m):
            for c in range(self.p):
                largest = max(largest, fabs(values[r, c]))
        return largest

    cdef int _assemble(self) except -1:
        """Set `scaled` to the reduced matrix: weighted Grams by pairs of classes, combined."""
        cdef double one = 1.0, zero = 0.0
        cdef int squared = self.m * self.m
        cdef Py_ssize_t r, q, c, d, at
        cdef double value
        weigh_atoms(&self.blocks.x, &self.weights[0, 0])
        if self.n_atoms <= FEW_ATOMS:
            inner_products(&self.weights[0, 0], self.n_atoms, &self.products[0, 0], self.n_products, self.n,
                           &self.grams[0, 0])
        else:
            dgemm("T", "N", &self.n_products, &self.n_atoms, &self.n, &one, &self.products[0, 0], &self.n,
                  &self.weights[0, 0], &self.n, &zero, &self.grams[0, 0], &self.n_products)
        dgemm("N", "N", &self.n_products, &squared, &self.n_atoms, &one, &self.grams[0, 0], &self.n_products,
              <double*> &self.outer[0, 0], &self.n_atoms, &zero, &self.curvatures[0, 0], &self.n_products)
        for r in range(self.m):
            for q in range(self.m):
                at = 0
                for c in range(self.p):
                    for d in range(c, self.p):
                        value = self.curvatures[r * self.m + q, at]
                        at += 1
                        self.scaled[r * self.p + c, q * self.p + d] = value
                        self.scaled[r * self.p + d, q * self.p + c] = value
            for c in range(self.p):
                self.scaled[r * self.p + c, r * self.p + c] += max(self.penalty[c], self.damping)

    cdef bint _factorise(self) noexcept:
        """Equilibrate the matrix and factor it, with a ridge if need be; tell whether that worked."""
        cdef double[5] ridges = [0.0, 1e-15, 1e-13, 1e-11, 1e-9]
        cdef Py_ssize_t r, q, attempt
        cdef int failed
        for r in range(self.size):
            self.scale[r] = 1.0 / sqrt(max(self.scaled[r, r], 1e-300))
        for r in range(self.size):
            for q in range(self.size):
                self.scaled[r, q] *= self.scale[r] * self.scale[q]
        for attempt in range(5):
            self.factor[:, :] = self.scaled
            for r in range(self.size):
                self.factor[r, r] += ridges[attempt]
            dpotrf("L", &self.size, &self.factor[0, 0], &self.size, &failed)
            if not failed:
                return True
        return False

    cdef void _solve(self) noexcept:
        """Set `cz` to the solution for `right`, refined once."""
        cdef int one = 1, info
        cdef double plus = 1.0, minus = -1.0
        cdef Py_ssize_t r
        cdef double* solution = &self.cz[0, 0]
        cdef const double* right = &self.right[0, 0]
        for r in range(self.size):
            self.vector[r] = solution[r] = self.scale[r] * right[r]
        dpotrs("L", &self.size, &one, &self.factor[0, 0], &self.size, solution, &self.size, &info)
        dsymv("L", &self.size, &minus, &self.scaled[0, 0], &self.size, solution, &one, &plus, &self.vector[0],
              &one)
        dpotrs("L", &self.size, &one, &self.factor[0, 0], &self.size, &self.vector[0], &self.size, &info)
        for r in range(self.size):
            solution[r] = self.scale[r] * (solution[r] + self.vector[r])
