"""Blocks of the interior point for maxima over the classes: `solvers._blocks.GeneralBlocks`, compiled.

Blocks come sorted by example: those of example i are ``starts[i]`` to ``starts[i + 1]``, all have k slots, and
slot m of a block sees ``f_m - f_anchor``. Within, examples are sorted by the anchors of their blocks, and blocks
by their number in their example, so that stretches of blocks have one anchor and consecutive examples: all passes
(`simplex_runs.h`) are loops over blocks. See `solvers/hinge/_blocks.py` for the formulas and the methods' meaning.
"""

import numpy as np

from libc.string cimport memcpy, memset

cdef extern from "simplex_runs.h":
    double linearise_blocks(const Blocks* x) nogil
    void pull_slots(const Blocks* x, const double* slots, double* q) nogil
    void eliminate(const Blocks* x, double* q) nogil
    double recover_slots(const Blocks* x, const double* scores, int onto) nogil
    void want_aim(const Blocks* x, double aim) nogil
    void want_centrality(const Blocks* x, double aim, double hoped) nogil
    void miss_after_direction(const Blocks* x) nogil
    double products_after(const double* a, const double* s, const double* da, const double* ds, double length,
                          Py_ssize_t size) nogil
    double inner(const double* a, const double* b, Py_ssize_t m) nogil
    void accumulate(double* out, double factor, const double* b, Py_ssize_t m) nogil

cpdef enum:
    MOST_CLASSES = 256
    NEWTON_STEPS = 50


cdef class SimplexBlocks:
    """Iterate, direction and candidate over blocks (P, k); pulls and scores are (n, k)."""

    def __init__(self, weight, const Py_ssize_t[:] anchor, const Py_ssize_t[:] starts, alpha, slack, epigraph):
        cdef Py_ssize_t k = alpha.shape[1], size = weight.shape[0], slots = k * size, n = starts.shape[0] - 1
        if k > MOST_CLASSES:
            raise ValueError(f"at most {MOST_CLASSES} classes, got {k}")
        self._arrange(anchor, starts, k)
        self.state = np.empty((8 * k + 7, size))
        self.pulled = np.empty((k, n))
        cdef double* room = &self.state[0, 0]
        self.x.n, self.x.size, self.x.k = n, size, k
        self.x.a, self.x.s, self.x.da, self.x.ds = room, room + slots, room + 2 * slots, room + 3 * slots
        self.x.ca, self.x.cs, self.x.theta, self.x.wanted = (
            room + 4 * slots, room + 5 * slots, room + 6 * slots, room + 7 * slots
        )
        room += 8 * slots
        self.x.e, self.x.de, self.x.ce, self.x.inverse = room, room + size, room + 2 * size, room + 3 * size
        self.x.missing, self.x.wanted_missing, self.x.weight = room + 4 * size, room + 5 * size, room + 6 * size
        self._fill(weight, alpha, slack, epigraph)

    cdef void _arrange(self, const Py_ssize_t[:] anchor, const Py_ssize_t[:] starts, Py_ssize_t k) except *:
        """Sort examples by the anchors of their blocks, and find the runs."""
        cdef Py_ssize_t n = starts.shape[0] - 1, size = anchor.shape[0], layers = 0, layer, i, b, at, key, filled
        cdef Py_ssize_t[::1] order = np.arange(n), sorted_order = np.empty(n, dtype=np.intp)
        cdef Py_ssize_t[::1] counts = np.empty(k + 2, dtype=np.intp)
        cdef Run* run = NULL
        for i in range(n):
            layers = max(layers, starts[i + 1] - starts[i])
        for layer in range(layers - 1, -1, -1):
            # stable counting sort by the anchor of the layer's block; examples without one come last
            counts[:] = 0
            for i in range(n):
                b = starts[i] + layer
                counts[1 + (anchor[b] if b < starts[i + 1] else k)] += 1
            for key in range(k + 1):
                counts[key + 1] += counts[key]
            for at in range(n):
                b = starts[order[at]] + layer
                key = anchor[b] if b < starts[order[at] + 1] else k
                sorted_order[counts[key]] = order[at]
                counts[key] += 1
            order, sorted_order = sorted_order, order
        self.example_order, self.block_order = order, np.empty(size, dtype=np.intp)
        self.runs = np.empty((size, 4), dtype=np.intp)
        filled = self.x.n_runs = 0
        for layer in range(layers):
            for at in range(n):
                b = starts[order[at]] + layer
                if b >= starts[order[at] + 1]:
                    continue
                if run == NULL or run.anchor != anchor[b] or run.example + run.count != at:
                    run = <Run*> &self.runs[self.x.n_runs, 0]
                    run.block, run.example, run.count, run.anchor = filled, at, 0, anchor[b]
                    self.x.n_runs += 1
                run.count += 1
                self.block_order[filled] = b
                filled += 1
        self.x.runs = <const Run*> &self.runs[0, 0]

    cdef void _fill(self, const double[:] weight, const double[:, :] alpha, const double[:, :] slack,
                    const double[:] epigraph) except *:
        cdef Py_ssize_t b, m, size = self.x.size
        self.mean_weight = 0.0
        for b in range(size):
            self.x.weight[b] = weight[self.block_order[b]]
            self.mean_weight += self.x.weight[b] / size
            self.x.e[b] = epigraph[self.block_order[b]]
            for m in range(self.x.k):
                self.x.a[m * size + b] = alpha[self.block_order[b], m]
                self.x.s[m * size + b] = slack[self.block_order[b], m]

    @property
    def alpha(self):
        """Dual slots."""
        return self._given_order(self.x.a)

    @property
    def slack(self):
        """Slacks."""
        return self._given_order(self.x.s)

    @property
    def theta(self):
        """Dual slots over slacks."""
        return self.alpha / self.slack

    @property
    def epigraph(self):
        """Epigraph variables."""
        cdef Py_ssize_t b
        cdef double[::1] out = np.empty(self.x.size)
        for b in range(self.x.size):
            out[self.block_order[b]] = self.x.e[b]
        return out.base

    def objectives(self):
        """Return the losses, and the complementarity."""
        return inner(self.x.weight, self.x.e, self.x.size), inner(self.x.a, self.x.s, self.x.size * self.x.k)

    def centre(self, scores, double offset, double product):
        """Move to given scores, every product of dual slot and slack becoming `product` times its block's weight.

        Margins m ask for ``sum_q product / (xi - m_q) = 1`` of the epigraph variable xi, whose left side is convex
        and falls: Newton's method climbs to the root from the largest margin plus `product`.
        """
        cdef Py_ssize_t j, b, i, q, k = self.x.k, size = self.x.size
        cdef double own, top, xi, inverse, total, slope
        cdef double[MOST_CLASSES] margins
        cdef const double[:, ::1] f = self._arranged(scores)
        cdef const Run* run
        for run in self.x.runs[:self.x.n_runs]:
            for j in range(run.count):
                b, i = run.block + j, run.example + j
                own, top = f[run.anchor, i], 0.0
                for q in range(k):
                    margins[q] = 0.0 if q == run.anchor else offset + f[q, i] - own
                    top = max(top, margins[q])
                xi = top + product
                for _ in range(NEWTON_STEPS):
                    total = slope = 0.0
                    for q in range(k):
                        inverse = product / (xi - margins[q])
                        total += inverse
                        slope += inverse * inverse
                    if total < 1.0 + 1e-12:
                        break
                    xi += product * (total - 1.0) / slope
                self.x.e[b] = xi
                for q in range(k):
                    self.x.s[q * size + b] = xi - margins[q]
                    self.x.a[q * size + b] = self.x.weight[b] * product / (xi - margins[q])

    def pull(self):
        """Return the pull of the dual slots."""
        self.pull_of(self.x.a)
        return self._given_pull()

    def linearise(self):
        """Prepare the eliminations at the iterate; return the mean of the products."""
        return self.linearise_at()

    def atom_weights(self, Py_ssize_t first, Py_ssize_t last):
        """Return the weights (rows, pairs of classes) of the curvature on the examples from first to last."""
        weights = np.empty((self.x.k * (self.x.k - 1) // 2, self.x.n))
        cdef double[:, ::1] out = weights
        weigh_atoms(&self.x, &out[0, 0])
        return weights[:, np.argsort(self.example_order)[first:last]].T

    def predict(self):
        """Return the pull of the blocks when the products go to zero."""
        self.want_vanishing()
        return self._given_pull()

    def correct(self, double aim):
        """Return the pull when the products go to their share of `aim`, the second order made up for."""
        self.want_centred(aim)
        return self._given_pull()

    def recentre(self, double hoped):
        """Return the pull of a correction that draws outliers among the products at `hoped` to the aim."""
        self.want_recentred(hoped)
        return self._given_pull()

    def refine(self):
        """Return the pull of what rounding left of the blocks' sums in the direction."""
        self.want_refined()
        return self._given_pull()

    def pull_of_direction(self):
        """Return the pull of the direction's dual slots."""
        self.pull_of(self.x.da)
        return self._given_pull()

    def recover(self, scores, *, bint onto):
        """Make the candidate for given scores; return the longest step, at most 2, that it allows."""
        cdef const double[:, ::1] arranged = self._arranged(scores)
        return self.recover_at(&arranged[0, 0], onto)

    def accept(self):
        """Make the candidate the direction."""
        self.accept_candidate()

    def reached(self, double length):
        """Return the mean of the products after a step along the direction."""
        cdef Py_ssize_t slots = self.x.size * self.x.k
        return products_after(self.x.a, self.x.s, self.x.da, self.x.ds, length, slots) / slots

    def trusted(self, double length):
        """Return the step itself: there is no smooth loss."""
        return length

    def advance(self, double length):
        """Move along the direction."""
        cdef Py_ssize_t slots = self.x.size * self.x.k
        accumulate(self.x.a, length, self.x.da, slots)
        accumulate(self.x.s, length, self.x.ds, slots)
        accumulate(self.x.e, length, self.x.de, self.x.size)

    cdef void pull_of(self, const double* slots) noexcept:
        pull_slots(&self.x, slots, &self.pulled[0, 0])

    cdef double linearise_at(self) noexcept:
        return linearise_blocks(&self.x) / (self.x.size * self.x.k)

    cdef void want_vanishing(self) noexcept:
        cdef Py_ssize_t slots = self.x.size * self.x.k, entry
        for entry in range(slots):
            self.x.wanted[entry] = -self.x.a[entry]
        memcpy(self.x.wanted_missing, self.x.missing, self.x.size * sizeof(double))
        eliminate(&self.x, &self.pulled[0, 0])

    cdef void want_centred(self, double aim) noexcept:
        self.aim = aim / self.mean_weight
        want_aim(&self.x, self.aim)
        memcpy(self.x.wanted_missing, self.x.missing, self.x.size * sizeof(double))
        eliminate(&self.x, &self.pulled[0, 0])

    cdef void want_recentred(self, double hoped) noexcept:
        want_centrality(&self.x, self.aim, hoped)
        memset(self.x.wanted_missing, 0, self.x.size * sizeof(double))
        eliminate(&self.x, &self.pulled[0, 0])

    cdef void want_refined(self) noexcept:
        memset(self.x.wanted, 0, self.x.size * self.x.k * sizeof(double))
        miss_after_direction(&self.x)
        eliminate(&self.x, &self.pulled[0, 0])

    cdef double recover_at(self, const double* scores, bint onto) noexcept:
        return 1.0 / recover_slots(&self.x, scores, onto)

    cdef void accept_candidate(self) noexcept:
        self.x.da, self.x.ca = self.x.ca, self.x.da
        self.x.ds, self.x.cs = self.x.cs, self.x.ds
        self.x.de, self.x.ce = self.x.ce, self.x.de

    cdef object _arranged(self, scores):
        """Return scores (n, k) by class, examples sorted."""
        return np.ascontiguousarray(np.take(scores, self.example_order, axis=0).T)

    cdef object _given_pull(self):
        out = np.empty((self.x.n, self.x.k))
        out[np.asarray(self.example_order)] = np.asarray(self.pulled).T
        return out

    cdef object _given_order(self, const double* slots):
        cdef Py_ssize_t b, m, size = self.x.size
        cdef double[:, ::1] out = np.empty((size, self.x.k))
        for m in range(self.x.k):
            for b in range(size):
                out[self.block_order[b], m] = slots[m * size + b]
        return out.base
