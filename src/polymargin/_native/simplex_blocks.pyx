"""Blocks of the interior point for maxima over the classes: `solvers._blocks.GeneralBlocks`, compiled.

Every method is one or two passes over the slots. Blocks are sorted by example: those of example i are
``starts[i]`` to ``starts[i + 1]``, all have k slots, and slot m of a block sees ``f_m - f_anchor``. See
`solvers/_blocks.py` for the formulas and for what the methods mean.
"""

import numpy as np

cpdef enum:
    MOST_CLASSES = 256
    NEWTON_STEPS = 50


cdef class SimplexBlocks:
    """Iterate, direction and candidate over blocks (P, k); pulls and scores are (n, k)."""

    cdef Py_ssize_t n, k, size
    cdef const double[::1] weight
    cdef const Py_ssize_t[::1] anchor, starts
    cdef readonly object alpha, slack, epigraph, pulled
    cdef double[:, ::1] a, s, da, ds, ca, cs, theta, wanted, q
    cdef double[::1] e, de, ce, total, missing, wanted_missing
    cdef double aim, mean_weight

    def __init__(self, weight, anchor, starts, alpha, slack, epigraph):
        self.weight, self.anchor, self.starts = weight, anchor, starts
        self.alpha, self.slack, self.epigraph = alpha, slack, epigraph
        self.a, self.s, self.e = alpha, slack, epigraph
        self.n, self.k, self.size = starts.shape[0] - 1, alpha.shape[1], weight.shape[0]
        if self.k > MOST_CLASSES:
            raise ValueError(f"at most {MOST_CLASSES} classes, got {self.k}")
        room = np.empty((6, self.size, self.k))
        self.da, self.ds, self.ca, self.cs, self.theta, self.wanted = room
        self.de, self.ce, self.total, self.missing, self.wanted_missing = np.empty((5, self.size))
        self.pulled = np.empty((self.n, self.k))
        self.q = self.pulled
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

    def centre(self, const double[:, ::1] scores, double offset, double product):
        """Move to given scores, every product of dual slot and slack becoming `product` times its block's weight.

        Margins m ask for ``sum_q product / (xi - m_q) = 1`` of the epigraph variable xi, whose left side is convex
        and falls: Newton's method climbs to the root from the largest margin plus `product`.
        """
        cdef Py_ssize_t i, b, q
        cdef double own, top, xi, inverse, total, slope
        cdef const double* f
        cdef double* s
        for i in range(self.n):
            f = &scores[i, 0]
            for b in range(self.starts[i], self.starts[i + 1]):
                s, own, top = &self.s[b, 0], f[self.anchor[b]], 0.0
                for q in range(self.k):
                    s[q] = 0.0 if q == self.anchor[b] else offset + f[q] - own
                    top = max(top, s[q])
                xi = top + product
                for _ in range(NEWTON_STEPS):
                    total = slope = 0.0
                    for q in range(self.k):
                        inverse = product / (xi - s[q])
                        total += inverse
                        slope += inverse * inverse
                    if total < 1.0 + 1e-12:
                        break
                    xi += product * (total - 1.0) / slope
                self.e[b] = xi
                for q in range(self.k):
                    s[q] = xi - s[q]
                    self.a[b, q] = self.weight[b] * product / s[q]

    def pull(self):
        """Return the pull of the dual slots."""
        self._pull(self.a)
        return self.pulled

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

    def atom_weights(self, Py_ssize_t first, Py_ssize_t last, double[:, ::1] out=None):
        """Return the weights (rows, pairs of classes) of the curvature on the examples from first to last."""
        cdef Py_ssize_t k = self.k, i, b, m, other, at
        cdef double scaled
        cdef double* row
        cdef double* theta
        if out is None:
            out = np.empty((last - first, k * (k - 1) // 2))
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
        return out.base

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
        return self.pulled

    def recover(self, const double[:, ::1] scores, *, bint onto):
        """Make the candidate for given scores; return the longest step, at most 2, that it allows."""
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
        return self.pulled

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
    cdef Py_ssize_t i, b, m
    cdef double rate = 0.5, own, change, moved
    cdef const double* f
    cdef const double* theta
    cdef const double* wanted
    cdef const double* alpha
    cdef const double* slack
    cdef double* ca
    cdef double* cs
    for i in range(self.n):
        f = &scores[i, 0]
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
    cdef double moved[MOST_CLASSES]
    cdef double* q
    cdef const double* theta
    cdef const double* wanted
    for i in range(self.n):
        q = &self.q[i, 0]
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


cdef inline void _pull_rows(SimplexBlocks self, const double[:, ::1] alpha, Py_ssize_t k) noexcept:
    """Pull of some dual slots."""
    cdef Py_ssize_t i, b, m
    cdef double moved[MOST_CLASSES]
    cdef double* q
    cdef const double* slots
    for i in range(self.n):
        q = &self.q[i, 0]
        for m in range(k):
            q[m] = 0.0
        for b in range(self.starts[i], self.starts[i + 1]):
            slots = &alpha[b, 0]
            for m in range(k):
                moved[m] = slots[m]
            _gather(moved, self.anchor[b], k, q)


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
