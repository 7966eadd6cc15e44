"""Blocks of the interior point for maxima over the classes: `solvers._blocks.GeneralBlocks`, compiled.

Every method is one or two passes over the slots. Blocks are sorted by example: those of example i are
``starts[i]`` to ``starts[i + 1]``, all have k slots, and slot m of a block sees ``f_m - f_anchor``. See
`solvers/_blocks.py` for the formulas and for what the methods mean.
"""

import numpy as np

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

    def objectives(self):
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

    def pull(self):
        """Return the pull of the dual slots."""
        self._pull(self.a)
        return self._pulled

    def linearise(self):
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
        cdef Py_ssize_t k = self.k, i, b, m, other, at
        cdef double scaled
        cdef double* row
        cdef double* theta
        weights = np.zeros((last - first, k * (k - 1) // 2))
        cdef double[:, ::1] out = weights
        for i in range(first, last):
            row = &out[i - first, 0]
            for b in range(self.starts[i], self.starts[i + 1]):
                theta = &self.theta[b, 0]
                at = 0
                for m in range(k - 1):
                    scaled = theta[m] / self.total[b]
                    for other in range(m + 1, k):
                        row[at] += scaled * theta[other]
                        at += 1
        return weights

    def predict(self):
        """Return the pull of the blocks when the products go to zero."""
        cdef Py_ssize_t entry
        cdef const double* a = &self.a[0, 0]
        cdef double* wanted = &self.wanted[0, 0]
        for entry in range(self.size * self.k):
            wanted[entry] = -a[entry]
        self.wanted_missing[:] = self.missing
        return self._eliminated()

    def correct(self, double aim):
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

    def recentre(self, double hoped):
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

    def refine(self):
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

    def pull_of_direction(self):
        """Return the pull of the direction's dual slots."""
        self._pull(self.da)
        return self._pulled

    def recover(self, const double[:, ::1] scores, *, bint onto):
        """Make the candidate for given scores; return the longest step, at most 2, that it allows."""
        cdef Py_ssize_t k = self.k, i, b, m, r
        cdef double rate = 0.5, own, change, lifted
        cdef double f[MOST_CLASSES]
        cdef double* theta
        cdef double* wanted
        cdef double* ca
        cdef double* cs
        for i in range(self.n):
            for m in range(k):
                f[m] = 0.0
                for r in range(k - 1):
                    f[m] += self.basis[m, r] * scores[i, r]
            for b in range(self.starts[i], self.starts[i + 1]):
                theta, wanted = &self.theta[b, 0], &self.wanted[b, 0]
                ca, cs = &self.ca[b, 0], &self.cs[b, 0]
                own = f[self.anchor[b]]
                change = -self.wanted_missing[b]
                for m in range(k):
                    change += wanted[m] + theta[m] * (f[m] - own)
                change /= self.total[b]
                self.ce[b] = change + (self.de[b] if onto else 0.0)
                for m in range(k):
                    lifted = change - (f[m] - own)
                    cs[m] = lifted
                    ca[m] = wanted[m] - theta[m] * lifted
                if onto:
                    for m in range(k):
                        cs[m] += self.ds[b, m]
                        ca[m] += self.da[b, m]
                for m in range(k):
                    rate = max(rate, max(-ca[m] / self.a[b, m], -cs[m] / self.s[b, m]))
        return 1.0 / rate

    def accept(self):
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
        """Pull of ``wanted - theta (sum wanted - missing) / sum theta``."""
        cdef Py_ssize_t k = self.k, i, b, m
        cdef double shift, moved, others
        cdef double q[MOST_CLASSES]
        cdef double* theta
        cdef double* wanted
        for i in range(self.n):
            for m in range(k):
                q[m] = 0.0
            for b in range(self.starts[i], self.starts[i + 1]):
                theta, wanted = &self.theta[b, 0], &self.wanted[b, 0]
                shift = -self.wanted_missing[b]
                for m in range(k):
                    shift += wanted[m]
                shift /= self.total[b]
                others = 0.0
                for m in range(k):
                    if m != self.anchor[b]:
                        moved = wanted[m] - shift * theta[m]
                        q[m] += moved
                        others += moved
                q[self.anchor[b]] -= others
            self._project(i, q)
        return self._pulled

    cdef void _pull(self, double[:, ::1] alpha) noexcept:
        """Pull of some dual slots."""
        cdef Py_ssize_t k = self.k, i, b, m
        cdef double others
        cdef double q[MOST_CLASSES]
        for i in range(self.n):
            for m in range(k):
                q[m] = 0.0
            for b in range(self.starts[i], self.starts[i + 1]):
                others = 0.0
                for m in range(k):
                    if m != self.anchor[b]:
                        q[m] += alpha[b, m]
                        others += alpha[b, m]
                q[self.anchor[b]] -= others
            self._project(i, q)

    cdef void _project(self, Py_ssize_t i, const double* q) noexcept:
        """Set row i of the pull to `q` in the zero-sum basis."""
        cdef Py_ssize_t m, r
        cdef double coordinate
        for r in range(self.k - 1):
            coordinate = 0.0
            for m in range(self.k):
                coordinate += self.basis[m, r] * q[m]
            self.pulled[i, r] = coordinate
