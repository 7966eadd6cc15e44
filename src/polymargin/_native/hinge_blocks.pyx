"""Blocks of the interior point for hinges: `solvers.hinge._blocks.GeneralBlocks`, compiled.

A block has two slots, the hinge's argument and zero; only the first sees the scores. The hinge of block b stands
at ``cell[b]`` of a table over examples and classes. See `solvers/hinge/_blocks.py` for the formulas and the
methods' meaning.
"""

import numpy as np

from libc.math cimport isfinite

cdef enum:
    TABLES = 23


cdef inline double larger(double x, double y) noexcept nogil:
    return x if x > y else y


cdef inline double lowered(double product, double low, double high) noexcept nogil:
    """Return what is to be added to a product to draw it between bounds, far above them only so much."""
    if product < low:
        return low - product
    return larger(high - product, -high) if product > high else 0.0


cdef class HingeBlocks:
    """Iterate, direction and candidate over blocks (P, 2); pulls and scores are (n, k)."""

    cdef Py_ssize_t size
    cdef object losses
    cdef const Py_ssize_t[::1] cell, starts, atom
    cdef Py_ssize_t n_atoms, n_hinges
    cdef double[:, ::1] table, state
    cdef double least_product, largest_product, aim
    cdef double *weight
    cdef double *share
    cdef double *a
    cdef double *b
    cdef double *s
    cdef double *t
    cdef double *e
    cdef double *da
    cdef double *db
    cdef double *ds
    cdef double *dt
    cdef double *de
    cdef double *ca
    cdef double *cb
    cdef double *cs
    cdef double *ct
    cdef double *ce
    cdef double *theta
    cdef double *inverse
    cdef double *wanted
    cdef double *other_wanted
    cdef double *missing
    cdef double *wanted_missing

    def __init__(self, slots, alpha, slack, epigraph, double least_product, double largest_product):
        self.losses = slots.losses
        self.least_product, self.largest_product = least_product, largest_product
        self.size, self.n_atoms = len(slots.weight), slots.atoms.shape[0]
        self.n_hinges = slots.losses.upper.shape[1]
        self.cell = slots.example * self.n_hinges + slots.hinge
        self.starts, self.atom = slots.starts, slots.atom
        self.table = np.zeros(slots.losses.upper.shape)
        self.state = np.zeros((TABLES, max(self.size, 1)))
        # dual slot, slack: a and s of the hinge's argument, b and t of zero
        cdef double* row = &self.state[0, 0]
        cdef Py_ssize_t width = self.state.shape[1]
        self.weight, self.share = row, row + width
        self.a, self.b, self.s, self.t, self.e = (
            row + 2 * width, row + 3 * width, row + 4 * width, row + 5 * width, row + 6 * width
        )
        self.da, self.db, self.ds, self.dt, self.de = (
            row + 7 * width, row + 8 * width, row + 9 * width, row + 10 * width, row + 11 * width
        )
        self.ca, self.cb, self.cs, self.ct, self.ce = (
            row + 12 * width, row + 13 * width, row + 14 * width, row + 15 * width, row + 16 * width
        )
        self.theta, self.inverse, self.wanted = row + 17 * width, row + 18 * width, row + 19 * width
        self.other_wanted, self.missing, self.wanted_missing = (
            row + 20 * width, row + 21 * width, row + 22 * width
        )
        state = np.asarray(self.state)[:, :self.size]
        state[0], state[1] = slots.weight, slots.weight / slots.weight.mean()
        state[2:4], state[4:6], state[6] = alpha.T, slack.T, epigraph

    @property
    def alpha(self):
        """Dual slots."""
        return self._columns(self.a, self.b)

    @property
    def slack(self):
        """Slacks."""
        return self._columns(self.s, self.t)

    @property
    def theta(self):
        """Dual slots over slacks."""
        return self.alpha / self.slack

    @property
    def epigraph(self):
        """Epigraph variables."""
        return np.array(<double[:self.size]> self.e)

    def objectives(self):
        """Return the losses, and what separates primal and dual objective."""
        cdef Py_ssize_t i
        cdef double cost = 0.0, products = 0.0, above
        with nogil:
            for i in range(self.size):
                # the epigraph variable lies above its hinge, which would count for about half of the gap
                above = self.weight[i] * (self.s[i] if self.s[i] < self.t[i] else self.t[i])
                cost += self.weight[i] * self.e[i] - above
                products += self.a[i] * self.s[i] + self.b[i] * self.t[i] - above
        return cost, products

    def pull(self):
        """Return the pull of the dual slots."""
        return self._pulled(self.a)

    def linearise(self):
        """Prepare the eliminations at the iterate; return the mean of the products."""
        cdef Py_ssize_t i
        cdef double products = 0.0
        with nogil:
            for i in range(self.size):
                self.theta[i] = self.a[i] / self.s[i]
                self.inverse[i] = 1.0 / (self.theta[i] + self.b[i] / self.t[i])
                self.missing[i] = self.weight[i] - (self.a[i] + self.b[i])
                products += self.a[i] * self.s[i] + self.b[i] * self.t[i]
        return products / (2.0 * self.size)

    def atom_weights(self, Py_ssize_t first, Py_ssize_t last):
        """Return the weights (rows, atoms) of the curvature on the examples from first to last."""
        weights = np.zeros((last - first, self.n_atoms))
        cdef double[:, ::1] out = weights
        cdef Py_ssize_t i
        with nogil:
            for i in range(self.starts[first], self.starts[last]):
                # half the harmonic mean of the two thetas
                out[self.cell[i] // self.n_hinges - first, self.atom[i]] += (
                    self.theta[i] * self.inverse[i] * (self.b[i] / self.t[i])
                )
        return weights

    def predict(self):
        """Return the pull of the blocks when the products go to zero."""
        cdef Py_ssize_t i
        with nogil:
            for i in range(self.size):
                self.wanted[i], self.other_wanted[i] = -self.a[i], -self.b[i]
                self.wanted_missing[i] = self.missing[i]
        return self._eliminated()

    def correct(self, double aim):
        """Return the pull when the products go to their share of `aim`, the second order made up for."""
        cdef Py_ssize_t i
        cdef double own
        self.aim = aim
        with nogil:
            for i in range(self.size):
                own = aim * self.share[i]
                self.wanted[i] = (own - self.da[i] * self.ds[i]) / self.s[i] - self.a[i]
                self.other_wanted[i] = (own - self.db[i] * self.dt[i]) / self.t[i] - self.b[i]
                self.wanted_missing[i] = self.missing[i]
        return self._eliminated()

    def recentre(self, double hoped):
        """Return the pull of a correction that draws outliers among the products at `hoped` to the aim."""
        cdef Py_ssize_t i
        cdef double low, high, product
        with nogil:
            for i in range(self.size):
                high = self.largest_product * self.aim * self.share[i]
                low = self.least_product * self.aim * self.share[i]
                product = (self.a[i] + hoped * self.da[i]) * (self.s[i] + hoped * self.ds[i])
                self.wanted[i] = lowered(product, low, high) / self.s[i]
                product = (self.b[i] + hoped * self.db[i]) * (self.t[i] + hoped * self.dt[i])
                self.other_wanted[i] = lowered(product, low, high) / self.t[i]
                self.wanted_missing[i] = 0.0
        return self._eliminated()

    def refine(self):
        """Return the pull of what rounding left of the blocks' sums in the direction."""
        cdef Py_ssize_t i
        with nogil:
            for i in range(self.size):
                self.wanted[i] = self.other_wanted[i] = 0.0
                self.wanted_missing[i] = self.missing[i] - (self.da[i] + self.db[i])
        return self._eliminated()

    def pull_of_direction(self):
        """Return the pull of the direction's dual slots."""
        return self._pulled(self.da)

    def recover(self, scores, *, bint onto):
        """Make the candidate for given scores; return the longest step, at most 2, that it allows."""
        cdef const double[:, :] lifted = self.losses.slopes(scores)
        cdef const double[::1] margins = np.ascontiguousarray(lifted).reshape(-1)
        cdef Py_ssize_t i
        cdef double margin, e, s, a, b, t, rate = 0.5, finite = 0.0
        with nogil:
            for i in range(self.size):
                margin = margins[self.cell[i]]
                e = (self.wanted[i] + self.theta[i] * margin + self.other_wanted[i] - self.wanted_missing[i])
                e *= self.inverse[i]
                s, t = e - margin, e
                a = self.wanted[i] - self.theta[i] * s
                b = self.other_wanted[i] - self.b[i] / self.t[i] * t
                if onto:
                    a, b, s, t, e = a + self.da[i], b + self.db[i], s + self.ds[i], t + self.dt[i], e + self.de[i]
                self.ca[i], self.cb[i], self.cs[i], self.ct[i], self.ce[i] = a, b, s, t, e
                rate = larger(rate, larger(-a / self.a[i], -b / self.b[i]))
                rate = larger(rate, larger(-s / self.s[i], -t / self.t[i]))
                finite += 0.0 * (a + b + s + t)
        if not isfinite(finite):
            raise FloatingPointError("a direction of the interior point is not finite")
        return 1.0 / rate

    def accept(self):
        """Make the candidate the direction."""
        self.da, self.ca = self.ca, self.da
        self.db, self.cb = self.cb, self.db
        self.ds, self.cs = self.cs, self.ds
        self.dt, self.ct = self.ct, self.dt
        self.de, self.ce = self.ce, self.de

    def reached(self, double length):
        """Return the mean of the products after a step along the direction."""
        cdef Py_ssize_t i
        cdef double products = 0.0
        with nogil:
            for i in range(self.size):
                products += (self.a[i] + length * self.da[i]) * (self.s[i] + length * self.ds[i])
                products += (self.b[i] + length * self.db[i]) * (self.t[i] + length * self.dt[i])
        return products / (2.0 * self.size)

    def trusted(self, double length):
        """Return the step itself: there is no smooth loss."""
        return length

    def advance(self, double length):
        """Move along the direction."""
        cdef Py_ssize_t i
        with nogil:
            for i in range(self.size):
                self.a[i] += length * self.da[i]
                self.b[i] += length * self.db[i]
                self.s[i] += length * self.ds[i]
                self.t[i] += length * self.dt[i]
                self.e[i] += length * self.de[i]

    cdef object _eliminated(self):
        """Return the pull of wanted - theta (sum wanted - missing) / sum theta."""
        cdef Py_ssize_t i
        cdef double total
        cdef double* table = &self.table[0, 0]
        with nogil:
            for i in range(self.size):
                total = self.wanted[i] + self.other_wanted[i] - self.wanted_missing[i]
                table[self.cell[i]] = self.wanted[i] - self.theta[i] * (total * self.inverse[i])
        return -self.losses.coefficients(np.asarray(self.table))

    cdef object _pulled(self, const double* slots):
        cdef Py_ssize_t i
        cdef double* table = &self.table[0, 0]
        with nogil:
            for i in range(self.size):
                table[self.cell[i]] = slots[i]
        return -self.losses.coefficients(np.asarray(self.table))

    cdef object _columns(self, const double* first, const double* second):
        cdef double[:, ::1] out = np.empty((self.size, 2))
        cdef Py_ssize_t i
        for i in range(self.size):
            out[i, 0], out[i, 1] = first[i], second[i]
        return out.base
