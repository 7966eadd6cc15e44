"""Blocks of the interior point for maxima over the classes: `solvers._blocks.GeneralBlocks`, compiled.

Every method is one or two passes over the slots. Blocks are sorted by example: those of example i are
``starts[i]`` to ``starts[i + 1]``, all have k slots, and slot m of a block sees ``f_m - f_anchor``. See
`solvers/_blocks.py` for the formulas and for what the methods mean.
"""

import numpy as np

from libc.math cimport fabs, sqrt
from scipy.linalg.cython_blas cimport dgemm, dsymv
from scipy.linalg.cython_lapack cimport dpotrf, dpotrs

cpdef enum:
    MOST_CLASSES = 256


cdef class SimplexBlocks:
    """Iterate, direction and candidate over blocks (P, k); pulls and scores are (n, k-1)."""

    cdef Py_ssize_t n, k, size
    cdef const double[::1] weight
    cdef const Py_ssize_t[::1] anchor, starts
    cdef const double[:, ::1] basis
    cdef readonly object alpha, slack, epigraph
    cdef double[:, ::1] a, s, da, ds, ca, cs, theta, wanted, pulled
    cdef double[::1] e, de, ce, total, missing, wanted_missing
    cdef double aim, mean_weight
    cdef object _pulled

    def __init__(self, weight, anchor, starts, basis, alpha, slack, epigraph):
        self.weight, self.anchor, self.starts, self.basis = weight, anchor, starts, basis
        self.alpha, self.slack, self.epigraph = alpha, slack, epigraph
        self.a, self.s, self.e = alpha, slack, epigraph
        self.n, self.k, self.size = starts.shape[0] - 1, alpha.shape[1], weight.shape[0]
        if self.k > MOST_CLASSES:
            raise ValueError(f"at most {MOST_CLASSES} classes, got {self.k}")
        room = np.empty((6, self.size, self.k))
        self.da, self.ds, self.ca, self.cs, self.theta, self.wanted = room
        self.de, self.ce, self.total, self.missing, self.wanted_missing = np.empty((5, self.size))
        self._pulled = np.empty((self.n, self.k - 1))
        self.pulled = self._pulled
        self.mean_weight = np.mean(weight)

    cpdef tuple objectives(self):
        """Return the losses, and the complementarity."""
        cdef Py_ssize_t b, entry
        cdef double cost = 0.0, product = 0.0
        cdef const double* a = &self.a[0, 0]
        cdef const double* s = &self.s[0, 0]
        for b in range(self.size):
            cost += self.weight[b] * self.e[b]
        for entry in range(self.size * self.k):
            product += a[entry] * s[entry]
        return cost, product

    cpdef object pull(self):
        """Return the pull of the dual slots."""
        self._pull(self.a)
        return self._pulled

    cpdef double linearise(self):
        """Prepare the eliminations at the iterate; return the mean of the products."""
        cdef Py_ssize_t b, m
        cdef double product = 0.0, total, sum_alpha
        cdef double* a
        cdef double* s
        cdef double* theta
        for b in range(self.size):
            a, s, theta = &self.a[b, 0], &self.s[b, 0], &self.theta[b, 0]
            total = sum_alpha = 0.0
            for m in range(self.k):
                theta[m] = a[m] / s[m]
                total += theta[m]
                sum_alpha += a[m]
                product += a[m] * s[m]
            self.total[b] = total
            self.missing[b] = self.weight[b] - sum_alpha
        return product / (self.size * self.k)

    def atom_weights(self, Py_ssize_t first, Py_ssize_t last):
        """Return the weights (rows, pairs of classes) of the curvature on the examples from first to last."""
        weights = np.empty((last - first, self.k * (self.k - 1) // 2))
        self._atom_weights(first, last, weights)
        return weights

    cdef void _atom_weights(self, Py_ssize_t first, Py_ssize_t last, double[:, ::1] out) noexcept:
        cdef Py_ssize_t k = self.k, i, b, m, other, at
        cdef double scaled
        cdef double* row
        cdef double* theta
        for i in range(first, last):
            row = &out[i - first, 0]
            for at in range(out.shape[1]):
                row[at] = 0.0
            for b in range(self.starts[i], self.starts[i + 1]):
                theta = &self.theta[b, 0]
                at = 0
                for m in range(k - 1):
                    scaled = theta[m] / self.total[b]
                    for other in range(m + 1, k):
                        row[at] += scaled * theta[other]
                        at += 1

    cpdef object predict(self):
        """Return the pull of the blocks when the products go to zero."""
        cdef Py_ssize_t entry
        cdef const double* a = &self.a[0, 0]
        cdef double* wanted = &self.wanted[0, 0]
        for entry in range(self.size * self.k):
            wanted[entry] = -a[entry]
        self.wanted_missing[:] = self.missing
        return self._eliminated()

    cpdef object correct(self, double aim):
        """Return the pull when the products go to their share of `aim`, the second order made up for."""
        cdef Py_ssize_t b, m
        cdef double share
        self.aim = aim
        for b in range(self.size):
            share = aim * self.weight[b] / self.mean_weight
            for m in range(self.k):
                self.wanted[b, m] = (share - self.da[b, m] * self.ds[b, m]) / self.s[b, m] - self.a[b, m]
        self.wanted_missing[:] = self.missing
        return self._eliminated()

    cpdef object recentre(self, double hoped):
        """Return the pull of a correction that draws outliers among the products at `hoped` to the aim."""
        cdef Py_ssize_t b, m
        cdef double share, product, change
        for b in range(self.size):
            share = self.aim * self.weight[b] / self.mean_weight
            for m in range(self.k):
                product = (self.a[b, m] + hoped * self.da[b, m]) * (self.s[b, m] + hoped * self.ds[b, m])
                change = 0.0
                if product < 0.1 * share:
                    change = 0.1 * share - product
                elif product > 10.0 * share:
                    change = max(10.0 * share - product, -10.0 * share)
                self.wanted[b, m] = change / self.s[b, m]
        self.wanted_missing[:] = 0.0
        return self._eliminated()

    cpdef object refine(self):
        """Return the pull of what rounding left of the blocks' sums in the direction."""
        cdef Py_ssize_t b, m
        cdef double sum_alpha
        for b in range(self.size):
            sum_alpha = 0.0
            for m in range(self.k):
                sum_alpha += self.da[b, m]
            self.wanted_missing[b] = self.missing[b] - sum_alpha
        self.wanted[:, :] = 0.0
        return self._eliminated()

    cpdef object pull_of_direction(self):
        """Return the pull of the direction's dual slots."""
        self._pull(self.da)
        return self._pulled

    def recover(self, const double[:, ::1] scores, *, bint onto):
        """Make the candidate for given scores; return the longest step, at most 2, that it allows."""
        return self._recover(scores, onto)

    cdef double _recover(self, const double[:, ::1] scores, bint onto) noexcept:
        if self.k == 2:
            return _recover_rows(self, scores, onto, 2)
        elif self.k == 3:
            return _recover_rows(self, scores, onto, 3)
        elif self.k == 4:
            return _recover_rows(self, scores, onto, 4)
        elif self.k == 5:
            return _recover_rows(self, scores, onto, 5)
        else:
            return _recover_rows(self, scores, onto, self.k)

    cpdef void accept(self) noexcept:
        """Make the candidate the direction."""
        self.da, self.ca = self.ca, self.da
        self.ds, self.cs = self.cs, self.ds
        self.de, self.ce = self.ce, self.de

    def reached(self, double length):
        """Return the mean of the products after a step along the direction."""
        cdef Py_ssize_t entry
        cdef double product = 0.0
        cdef const double* a = &self.a[0, 0]
        cdef const double* s = &self.s[0, 0]
        cdef const double* da = &self.da[0, 0]
        cdef const double* ds = &self.ds[0, 0]
        for entry in range(self.size * self.k):
            product += (a[entry] + length * da[entry]) * (s[entry] + length * ds[entry])
        return product / (self.size * self.k)

    def trusted(self, double length):
        """Return the step itself: there is no smooth loss."""
        return length

    def advance(self, double length):
        """Move along the direction."""
        cdef Py_ssize_t b, entry
        cdef double* a = &self.a[0, 0]
        cdef double* s = &self.s[0, 0]
        cdef const double* da = &self.da[0, 0]
        cdef const double* ds = &self.ds[0, 0]
        for entry in range(self.size * self.k):
            a[entry] += length * da[entry]
            s[entry] += length * ds[entry]
        for b in range(self.size):
            self.e[b] += length * self.de[b]

    cdef object _eliminated(self):
        if self.k == 2:
            _eliminate_rows(self, 2)
        elif self.k == 3:
            _eliminate_rows(self, 3)
        elif self.k == 4:
            _eliminate_rows(self, 4)
        elif self.k == 5:
            _eliminate_rows(self, 5)
        else:
            _eliminate_rows(self, self.k)
        return self._pulled

    cdef void _pull(self, const double[:, ::1] alpha) noexcept:
        if self.k == 2:
            _pull_rows(self, alpha, 2)
        elif self.k == 3:
            _pull_rows(self, alpha, 3)
        elif self.k == 4:
            _pull_rows(self, alpha, 4)
        elif self.k == 5:
            _pull_rows(self, alpha, 5)
        else:
            _pull_rows(self, alpha, self.k)


# The passes below are given k as a constant where it is small, so that the compiler unrolls their inner loops.


cdef inline double _recover_rows(
    SimplexBlocks self, const double[:, ::1] scores, bint onto, Py_ssize_t k
) noexcept:
    cdef Py_ssize_t i, b, m, r
    cdef double rate = 0.5, own, change, moved
    cdef double f[MOST_CLASSES]
    cdef const double* basis = &self.basis[0, 0]
    cdef const double* row
    cdef const double* theta
    cdef const double* wanted
    cdef const double* alpha
    cdef const double* slack
    cdef double* ca
    cdef double* cs
    for i in range(self.n):
        row = &scores[i, 0]
        for m in range(k):
            moved = 0.0
            for r in range(k - 1):
                moved += basis[m * (k - 1) + r] * row[r]
            f[m] = moved
        for b in range(self.starts[i], self.starts[i + 1]):
            theta, wanted = &self.theta[b, 0], &self.wanted[b, 0]
            alpha, slack = &self.a[b, 0], &self.s[b, 0]
            ca, cs = &self.ca[b, 0], &self.cs[b, 0]
            own = f[self.anchor[b]]
            change = -self.wanted_missing[b]
            for m in range(k):
                change += wanted[m] + theta[m] * (f[m] - own)
            change /= self.total[b]
            self.ce[b] = change + (self.de[b] if onto else 0.0)
            for m in range(k):
                moved = change - (f[m] - own)
                cs[m] = moved
                ca[m] = wanted[m] - theta[m] * moved
            if onto:
                for m in range(k):
                    cs[m] += self.ds[b, m]
                    ca[m] += self.da[b, m]
            for m in range(k):
                if ca[m] < -rate * alpha[m]:
                    rate = -ca[m] / alpha[m]
                if cs[m] < -rate * slack[m]:
                    rate = -cs[m] / slack[m]
    return 1.0 / rate


cdef inline void _eliminate_rows(SimplexBlocks self, Py_ssize_t k) noexcept:
    """Pull of ``wanted - theta (sum wanted - missing) / sum theta``."""
    cdef Py_ssize_t i, b, m
    cdef double shift
    cdef double q[MOST_CLASSES]
    cdef double moved[MOST_CLASSES]
    cdef const double* theta
    cdef const double* wanted
    for i in range(self.n):
        for m in range(k):
            q[m] = 0.0
        for b in range(self.starts[i], self.starts[i + 1]):
            theta, wanted = &self.theta[b, 0], &self.wanted[b, 0]
            shift = -self.wanted_missing[b]
            for m in range(k):
                shift += wanted[m]
            shift /= self.total[b]
            for m in range(k):
                moved[m] = wanted[m] - shift * theta[m]
            _gather(moved, self.anchor[b], k, q)
        _project(&self.basis[0, 0], q, k, &self.pulled[i, 0])


cdef inline void _pull_rows(SimplexBlocks self, const double[:, ::1] alpha, Py_ssize_t k) noexcept:
    """Pull of some dual slots."""
    cdef Py_ssize_t i, b, m
    cdef double q[MOST_CLASSES]
    cdef double moved[MOST_CLASSES]
    cdef const double* slots
    for i in range(self.n):
        for m in range(k):
            q[m] = 0.0
        for b in range(self.starts[i], self.starts[i + 1]):
            slots = &alpha[b, 0]
            for m in range(k):
                moved[m] = slots[m]
            _gather(moved, self.anchor[b], k, q)
        _project(&self.basis[0, 0], q, k, &self.pulled[i, 0])


cdef inline void _gather(double* moved, Py_ssize_t anchor, Py_ssize_t k, double* q) noexcept:
    """Add a block's slots to the pull `q` on the classes; that on the anchor is minus the sum of the others."""
    cdef double others = 0.0
    cdef Py_ssize_t m
    moved[anchor] = 0.0
    for m in range(k):
        others += moved[m]
    moved[anchor] = -others
    for m in range(k):
        q[m] += moved[m]


cdef inline void _project(const double* basis, const double* q, Py_ssize_t k, double* coordinates) noexcept:
    """Write `q` in the zero-sum basis."""
    cdef Py_ssize_t m, r
    cdef double coordinate
    for r in range(k - 1):
        coordinate = 0.0
        for m in range(k):
            coordinate += basis[m * (k - 1) + r] * q[m]
        coordinates[r] = coordinate


cdef class DenseSystem:
    """Newton systems on dense features: `solvers.interior_point._NewtonSystem`, compiled.

    Unknowns are ordered by basis vector, then feature: Z (k-1, p). `products` (n, p(p+1)/2) are those of features
    with each other, `outer` (k-1, k-1, pairs) those of the coordinates of the pairs of classes.
    """

    cdef readonly SimplexBlocks blocks
    cdef readonly object Z
    cdef int n, p, m, n_atoms, n_products, size
    cdef const double[:, ::1] X, products, outer, tilt
    cdef const double[::1] penalty
    cdef double damping
    cdef double[:, ::1] z, dz, cz, residual, right, grams, curvatures, weights, scaled, factor, scores
    cdef double[::1] scale, vector

    def __init__(self, blocks, X, products, outer, penalty, tilt, Z, damping):
        self.blocks, self.X, self.products, self.penalty = blocks, X, products, penalty
        self.Z, self.z, self.tilt, self.damping = Z, Z, tilt, damping
        self.n, self.p = X.shape
        self.m, self.n_atoms, self.n_products = Z.shape[0], outer.shape[2], products.shape[1]
        self.outer = outer.reshape(-1, outer.shape[2])
        self.size = self.m * self.p
        self.dz, self.cz, self.residual, self.right = np.empty((4, self.m, self.p))
        self.grams = np.empty((self.n_atoms, self.n_products))
        self.curvatures = np.empty((self.m * self.m, self.n_products))
        self.weights = np.empty((self.n, self.n_atoms))
        self.scaled, self.factor = np.empty((2, self.size, self.size))
        self.scores = np.empty((self.n, self.m))
        self.scale, self.vector = np.empty((2, self.size))

    def objectives(self):
        """Return primal and dual objective, the latter less what the linear conditions miss."""
        cdef Py_ssize_t r, c
        cdef double losses, complementarity, rest = 0.0, missed = 0.0
        losses, complementarity = self.blocks.objectives()
        for r in range(self.m):
            for c in range(self.p):
                rest += self.z[r, c] * (0.5 * self.penalty[c] * self.z[r, c] + self.tilt[r, c])
                self.residual[r, c] = self.penalty[c] * self.z[r, c] + self.tilt[r, c]
        self.blocks.pull()
        self._add_pull(1.0, self.residual)
        for r in range(self.m):
            for c in range(self.p):
                missed += self.residual[r, c] * self.residual[r, c]
        return losses + rest, losses + rest - complementarity - 0.5 * missed

    def linearise(self):
        """Factor the reduced matrix where `objectives` were taken; return the mean of the products."""
        cdef double mu = self.blocks.linearise()
        self._assemble()
        if not self._factorise():
            raise np.linalg.LinAlgError("the reduced matrix is not positive definite")
        return mu

    def predict(self):
        """Find the direction to vanishing products, and return how far it can be gone."""
        self.blocks.predict()
        return self._direction(self.residual, False)

    def correct(self, double aim, int refinements):
        """Find the direction to products of their share of `aim`; solve again for what rounding leaves."""
        cdef Py_ssize_t r, c
        cdef double length, error = 1e300, previous, enough = 1e-8 * self._largest(self.residual)
        cdef double[:, ::1] left = self.cz
        self.blocks.correct(aim)
        length = self._direction(self.residual, False)
        for _ in range(refinements):
            left = self.cz
            self.blocks.pull_of_direction()
            for r in range(self.m):
                for c in range(self.p):
                    left[r, c] = self.residual[r, c] + self.penalty[c] * self.dz[r, c]
            self._add_pull(1.0, left)
            previous, error = error, self._largest(left)
            if error <= enough or error > 0.5 * previous:
                break
            self.blocks.refine()
            length = self._direction(left, True)
        return length

    def recentre(self, double hoped, double longer_than):
        """Add a centrality correction to the direction if it allows a longer step; None otherwise."""
        cdef double length
        self.blocks.recentre(hoped)
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

    cdef double _direction(self, double[:, ::1] residual, bint onto) noexcept:
        cdef Py_ssize_t r, c
        cdef double length
        for r in range(self.m):
            for c in range(self.p):
                self.right[r, c] = -residual[r, c]
        length = self._answer(onto)
        self._accept(onto)
        return length

    cdef double _answer(self, bint onto) noexcept:
        """Solve for the unknowns that answer `right` and the blocks' pull, and recover the blocks."""
        cdef double one = 1.0, zero = 0.0
        self._add_pull(-1.0, self.right)
        self._solve()
        dgemm("T", "N", &self.m, &self.n, &self.p, &one, &self.cz[0, 0], &self.p, <double*> &self.X[0, 0], &self.p,
              &zero, &self.scores[0, 0], &self.m)
        return self.blocks._recover(self.scores, onto)

    cdef void _accept(self, bint onto) noexcept:
        cdef Py_ssize_t r, c
        self.blocks.accept()
        for r in range(self.m):
            for c in range(self.p):
                self.dz[r, c] = self.cz[r, c] + (self.dz[r, c] if onto else 0.0)

    cdef void _add_pull(self, double factor, double[:, ::1] out) noexcept:
        """Add the sum over rows of the blocks' pull times the features."""
        cdef double one = 1.0
        dgemm("N", "T", &self.p, &self.m, &self.n, &factor, <double*> &self.X[0, 0], &self.p,
              &self.blocks.pulled[0, 0], &self.m, &one, &out[0, 0], &self.p)

    cdef double _largest(self, double[:, ::1] values) noexcept:
        cdef Py_ssize_t r, c
        cdef double largest = 0.0
        for r in range(self.m):
            for c in range(self.p):
                largest = max(largest, fabs(values[r, c]))
        return largest

    cdef void _assemble(self) noexcept:
        """Set `scaled` to the reduced matrix: weighted Grams by pairs of classes, combined."""
        cdef double one = 1.0, zero = 0.0
        cdef int squared = self.m * self.m
        cdef Py_ssize_t r, q, c, d, at
        cdef double value
        self.blocks._atom_weights(0, self.n, self.weights)
        dgemm("N", "T", &self.n_products, &self.n_atoms, &self.n, &one, <double*> &self.products[0, 0],
              &self.n_products, &self.weights[0, 0], &self.n_atoms, &zero, &self.grams[0, 0], &self.n_products)
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
