"""The inner loop of the kernel solver for the losses of Lee, Lin & Wahba.

    min 1/2 tr(B'KB) + <G0 - KB0, B>   over   0 <= u <= upper,   B = u - mean over classes of u,

on a working set of m rows, with every class sum of u held equal to the others' when there is an intercept.
With G the gradient in u, and over the rows lo_c = max {G: u > 0} and hi_c = min {G: u < upper}, u is optimal iff

    lo_c <= hi_c for every class c   and   sum_c lo_c <= 0 <= sum_c hi_c

(with no intercept: lo_c <= 0 <= hi_c). The feasible moves are *pairs*, two rows exchanging weight within the
classes, and *tuples*, one row per class, all moved by the same amount. A pair moves its classes in one step: the
minimiser of 1/2 eta (|t|^2 - S^2/k) + g't over the box is t_c = clip(S/k - g_c/eta) with S = sum t.
"""

import numpy as np

from libc.math cimport fabs

cdef extern from "vectors.h" nogil:
    void add_and_scan(double *gradient, const double *row, double step, const double *wall_up,
                      const double *wall_down, Py_ssize_t m, double *lowest, double *highest)
    double pair_gains(double *gain, const double *gradient, const double *wall, double start, double k_ii,
                      const double *diagonal, const double *row, double floor, Py_ssize_t m)
    void add_scaled(double *out, const double *a, double factor, const double *b, Py_ssize_t m)
    void accumulate(double *out, double factor, const double *b, Py_ssize_t m)

cdef double WALL = 1e300
cdef double SNAP = 1e-13


cdef Py_ssize_t position_of_lowest(const double *values, const double *wall, double lowest,
                                   Py_ssize_t m) noexcept nogil:
    cdef Py_ssize_t r
    for r in range(m):
        if values[r] + wall[r] <= lowest:
            return r
    return 0


cdef Py_ssize_t position_of_highest(const double *values, const double *wall, double highest,
                                    Py_ssize_t m) noexcept nogil:
    cdef Py_ssize_t r
    for r in range(m):
        if values[r] - wall[r] >= highest:
            return r
    return 0


cdef double block_step(double *t, double *g, const double *low, const double *high, double eta,
                       Py_ssize_t k) noexcept nogil:
    """Minimise 1/2 eta (|t|^2 - (sum t)^2/k) + g't over low <= t <= high; return sum t. Overwrites g.

    sum_c clip(S/k - g_c/eta) - S falls strictly in S as long as one class cannot move: Newton within a bracket,
    which ends as soon as a step meets the same classes on their bounds.
    """
    cdef double bottom = 0.0, top = 0.0, S = 0.0, value, total
    cdef Py_ssize_t c, _turn, free, previous_free = -1, at_top, previous_at_top = -1
    for c in range(k):
        bottom += low[c]
        top += high[c]
        g[c] /= eta
    for _turn in range(100):
        total = 0.0
        free = 0
        at_top = 0
        for c in range(k):
            value = S / k - g[c]
            if value <= low[c]:
                value = low[c]
            elif value >= high[c]:
                value = high[c]
                at_top += 1
            else:
                free += 1
            t[c] = value
            total += value
        # with S classes only reach their tops and leave their bottoms: equal counts mean the same linear piece
        if free == previous_free and at_top == previous_at_top:
            break
        if total > S:
            bottom = S
        elif total < S:
            top = S
        else:
            break
        previous_free, previous_at_top = free, at_top
        S += (total - S) / (1.0 - <double>free / k)
        if S <= bottom or S >= top:
            S = 0.5 * (bottom + top)
            previous_free = -1
    return total


cdef class LeeWorkingSet:
    """Rows of the working set, kept class by class so that the long loops run over rows.

    Parameters
    ----------
    kernel : (m, m) the kernel matrix of the rows.
    upper, dual, gradient : (k, m) bounds, variables and the gradient; the last two are changed in place.
    intercept : whether the class sums are held equal.
    """

    cdef const double[:, ::1] kernel
    cdef const double[:, ::1] upper
    cdef double[:, ::1] dual
    cdef double[:, ::1] gradient
    cdef double[:, ::1] wall_up
    cdef double[:, ::1] wall_down
    cdef double[::1] diagonal, row, mean, gain, lowest, highest, step, slope, low, high
    cdef Py_ssize_t[::1] rows
    cdef Py_ssize_t m, k
    cdef bint intercept
    cdef double floor
    cdef readonly double most_negative_curvature

    def __init__(self, const double[:, ::1] kernel, const double[:, ::1] upper, double[:, ::1] dual,
                 double[:, ::1] gradient, bint intercept):
        self.kernel, self.upper, self.dual, self.gradient = kernel, upper, dual, gradient
        self.intercept = intercept
        self.k, self.m = upper.shape[0], upper.shape[1]
        self.wall_up = np.where(np.less(dual, upper), 0.0, WALL)
        self.wall_down = np.where(np.greater(dual, 0.0), 0.0, WALL)
        self.diagonal = np.diagonal(kernel).copy()
        self.row, self.mean, self.gain = np.zeros(self.m), np.empty(self.m), np.empty(self.m)
        self.lowest, self.highest = np.empty(self.k), np.empty(self.k)
        self.step, self.slope = np.empty(self.k), np.empty(self.k)
        self.low, self.high = np.empty(self.k), np.empty(self.k)
        self.rows = np.empty(self.k, np.intp)
        self.floor = 1e-12 * max(1e-300, np.max(np.abs(self.diagonal)))
        self.most_negative_curvature = 0.0

    def improve(self, double reduction, Py_ssize_t max_steps):
        """Take steps until the largest violation is `reduction` times the first; return their number."""
        cdef Py_ssize_t steps, c
        cdef double tolerance = 0.0, violation = 0.0
        with nogil:
            for c in range(self.k):
                self.scan(c, 0.0)
            for steps in range(max_steps):
                violation = self.move(tolerance) if self.intercept else self.move_one(tolerance)
                if violation <= tolerance:
                    break
                if steps == 0:
                    tolerance = reduction * violation
        return steps

    cdef void scan(self, Py_ssize_t c, double step) noexcept nogil:
        add_and_scan(&self.gradient[c, 0], &self.row[0], step, &self.wall_up[c, 0], &self.wall_down[c, 0], self.m,
                     &self.lowest[c], &self.highest[c])

    cdef void shift(self, Py_ssize_t c, Py_ssize_t r, double step) noexcept nogil:
        """Add `step` to u_rc, put it on its bound where it is there to rounding, and set its walls."""
        cdef double value = self.dual[c, r] + step, bound = self.upper[c, r]
        if value <= SNAP * bound:
            value = 0.0
        elif value >= (1.0 - SNAP) * bound:
            value = bound
        self.dual[c, r] = value
        self.wall_up[c, r] = 0.0 if value < bound else WALL
        self.wall_down[c, r] = 0.0 if value > 0.0 else WALL

    cdef double move(self, double tolerance) noexcept nogil:
        """Take the better of the most violating pair and tuple; return the violation found."""
        cdef double violation = 0.0, rise = 0.0, fall = 0.0, tuple_violation
        cdef Py_ssize_t c, worst = 0, k = self.k
        for c in range(k):
            if self.highest[c] - self.lowest[c] > violation:
                violation = self.highest[c] - self.lowest[c]
                worst = c
            rise -= self.lowest[c]
            fall += self.highest[c]
        tuple_violation = max(rise, fall)
        if max(violation, tuple_violation) <= tolerance:
            return max(violation, tuple_violation)
        # squared violation over curvature, as if K were the identity: k - 1 for a tuple, 1 - 1/k for a pair
        if tuple_violation > 0.0 and tuple_violation * tuple_violation > violation * violation * k:
            self.move_tuple(rise >= fall)
            return tuple_violation
        self.move_pair(worst)
        return violation

    cdef void move_pair(self, Py_ssize_t worst) noexcept nogil:
        cdef Py_ssize_t c, r, i, partner = 0, k = self.k
        cdef double eta, total, most
        i = position_of_lowest(&self.gradient[worst, 0], &self.wall_up[worst, 0], self.lowest[worst], self.m)
        most = pair_gains(&self.gain[0], &self.gradient[worst, 0], &self.wall_down[worst, 0],
                          self.gradient[worst, i], self.diagonal[i], &self.diagonal[0], &self.kernel[i, 0],
                          self.floor, self.m)
        for r in range(self.m):
            if self.gain[r] >= most:
                partner = r
                break
        eta = self.diagonal[i] + self.diagonal[partner] - 2.0 * self.kernel[i, partner]
        self.most_negative_curvature = min(self.most_negative_curvature, eta)
        eta = max(eta, self.floor)
        for c in range(k):
            self.slope[c] = self.gradient[c, i] - self.gradient[c, partner]
            self.low[c] = max(-self.dual[c, i], self.dual[c, partner] - self.upper[c, partner])
            self.high[c] = min(self.upper[c, i] - self.dual[c, i], self.dual[c, partner])
        total = block_step(&self.step[0], &self.slope[0], &self.low[0], &self.high[0], eta, k)
        add_scaled(&self.row[0], &self.kernel[i, 0], -1.0, &self.kernel[partner, 0], self.m)
        for c in range(k):
            if self.step[c] != 0.0:
                self.shift(c, i, self.step[c])
                self.shift(c, partner, -self.step[c])
            self.scan(c, self.step[c] - total / k)

    cdef void move_tuple(self, bint upwards) noexcept nogil:
        cdef Py_ssize_t c, d, r, k = self.k
        cdef double slope = 0.0, curvature = 0.0, longest = WALL, step
        for c in range(k):
            if upwards:
                r = position_of_lowest(&self.gradient[c, 0], &self.wall_up[c, 0], self.lowest[c], self.m)
                longest = min(longest, self.upper[c, r] - self.dual[c, r])
            else:
                r = position_of_highest(&self.gradient[c, 0], &self.wall_down[c, 0], self.highest[c], self.m)
                longest = min(longest, self.dual[c, r])
            self.rows[c] = r
            slope += self.gradient[c, r]
        for c in range(k):
            curvature += self.diagonal[self.rows[c]]
            for d in range(k):
                curvature -= self.kernel[self.rows[c], self.rows[d]] / k
        self.most_negative_curvature = min(self.most_negative_curvature, curvature)
        step = min(longest, fabs(slope) / max(curvature, self.floor))
        if not upwards:
            step = -step
        self.mean[:] = 0.0
        for c in range(k):
            accumulate(&self.mean[0], 1.0 / k, &self.kernel[self.rows[c], 0], self.m)
        for c in range(k):
            self.shift(c, self.rows[c], step)
            add_scaled(&self.row[0], &self.kernel[self.rows[c], 0], -1.0, &self.mean[0], self.m)
            self.scan(c, step)

    cdef double move_one(self, double tolerance) noexcept nogil:
        """No intercept: move all classes of the row with the largest violation; return the violation."""
        cdef double violation = 0.0, total
        cdef Py_ssize_t c, i, worst = 0, k = self.k
        cdef bint upwards = True
        for c in range(k):
            if -self.lowest[c] > violation:
                violation, worst, upwards = -self.lowest[c], c, True
            if self.highest[c] > violation:
                violation, worst, upwards = self.highest[c], c, False
        if violation <= tolerance:
            return violation
        if upwards:
            i = position_of_lowest(&self.gradient[worst, 0], &self.wall_up[worst, 0], self.lowest[worst], self.m)
        else:
            i = position_of_highest(&self.gradient[worst, 0], &self.wall_down[worst, 0], self.highest[worst],
                                    self.m)
        for c in range(k):
            self.slope[c] = self.gradient[c, i]
            self.low[c] = -self.dual[c, i]
            self.high[c] = self.upper[c, i] - self.dual[c, i]
        self.most_negative_curvature = min(self.most_negative_curvature, self.diagonal[i])
        total = block_step(&self.step[0], &self.slope[0], &self.low[0], &self.high[0],
                           max(self.diagonal[i], self.floor), k)
        self.row[:] = self.kernel[i]
        for c in range(k):
            if self.step[c] != 0.0:
                self.shift(c, i, self.step[c])
            self.scan(c, self.step[c] - total / k)
        return violation
