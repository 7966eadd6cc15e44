"""Sums over rows for the maps from scores to probabilities: `problems.softmax`, compiled and fold by fold."""

import numpy as np

from libc.math cimport log
from scipy.linalg.cython_blas cimport dgemm
from scipy.linalg.cython_lapack cimport dpotrf, dpotrs

cdef extern from "vectors.h" nogil:
    double inner(const double *a, const double *b, Py_ssize_t m)

cdef extern from "softmax.h" nogil:
    void set_logits(double *z, const double *s, double a, const double *b, bint onto, Py_ssize_t k, Py_ssize_t m,
                    Py_ssize_t width)
    void take_top(double *z, double *top, Py_ssize_t k, Py_ssize_t m, Py_ssize_t width)
    void add_products(double *out, const double *t, const double *z, Py_ssize_t k, Py_ssize_t m, Py_ssize_t width)
    void normalise(double *e, double *sums, double *inverse, Py_ssize_t k, Py_ssize_t n)
    void set_residual(double *out, const double *p, const double *t, const double *w, Py_ssize_t k, Py_ssize_t n)
    void multiply(double *out, const double *a, const double *b, Py_ssize_t m)
    void multiply_three(double *out, const double *a, const double *b, const double *c, Py_ssize_t m)
    double total(const double *a, Py_ssize_t m)

cdef enum:
    # Rows whose products are multiplied out while they are in the cache of the processor
    HEIGHT = 256


cdef class SoftmaxSums:
    """Objective, gradient and second derivatives at one point after the other.

    Parameters are (a, b, M) of the size of what is asked. Scores and targets (k, n) lie side by side for every
    class. The probabilities are those of the last point that was asked for, and derivatives are there.
    """

    cdef readonly object probabilities
    cdef int n, k
    cdef bint has_room
    cdef const double[:, ::1] scores, targets
    cdef const double[::1] weights
    cdef double[:, ::1] P, residual, pairs, products, grams
    cdef double[::1] top, sums, inverse, matched, some

    def __init__(self, const double[:, ::1] scores, const double[:, ::1] targets, const double[::1] weights):
        cdef Py_ssize_t n = scores.shape[1], k = scores.shape[0]
        self.scores, self.targets, self.weights, self.n, self.k = scores, targets, weights, n, k
        room, of_rows = np.empty((2 * k, n)), np.empty((4, n))
        self.probabilities = room[:k]
        self.P, self.residual = self.probabilities, room[k:]
        self.top, self.sums, self.inverse, self.matched = of_rows[0], of_rows[1], of_rows[2], of_rows[3]
        self.some = np.empty(HEIGHT)

    def objective(self, const double[::1] theta, double[::1] gradient):
        """Return the summed losses at a point, and set their gradient."""
        cdef double value = 0.0
        cdef Py_ssize_t i
        self._set_logits(&theta[0], theta.shape[0], 0, self.n)
        self.matched[:] = 0.0
        add_products(&self.matched[0], &self.targets[0, 0], &self.P[0, 0], self.k, self.n, self.n)
        take_top(&self.P[0, 0], &self.top[0], self.k, self.n, self.n)
        np.exp(self.probabilities, out=self.probabilities)
        normalise(&self.P[0, 0], &self.sums[0], &self.inverse[0], self.k, self.n)
        set_residual(&self.residual[0, 0], &self.P[0, 0], &self.targets[0, 0], &self.weights[0], self.k, self.n)
        for i in range(self.n):
            value += self.weights[i] * (log(self.sums[i]) + self.top[i] - self.matched[i])
        self._pull(0, self.n, &gradient[0], gradient.shape[0])
        return value

    def pulled(self, Py_ssize_t first, Py_ssize_t last, double[::1] gradient):
        """Set the part of the gradient of the losses that some rows have."""
        self._pull(first, last, &gradient[0], gradient.shape[0])

    def steps_without(
        self, const Py_ssize_t[::1] edges, const double[::1] gradient, const double[:, ::1] H, double[:, ::1] steps
    ):
        """Set the steps (folds, d) to where the gradient without every fold would vanish; folds end at `edges`.

        `gradient` and `H` are those of all rows. Return for every fold whether the Hessian without it is positive
        definite; where it is not there is no step.
        """
        cdef Py_ssize_t fold, i, j, first = 0
        cdef int size = H.shape[0], one = 1, info = 0
        cdef double[:, ::1] rest = np.empty((size, size))
        positive = np.ones(edges.shape[0], dtype=bool)
        for fold in range(edges.shape[0]):
            self._pull(first, edges[fold], &steps[fold, 0], size)
            self.curvature(first, edges[fold], rest)
            first = edges[fold]
            for i in range(size):
                steps[fold, i] -= gradient[i]
                for j in range(size):
                    rest[i, j] = H[i, j] - rest[i, j]
            dpotrf("L", &size, &rest[0, 0], &size, &info)
            if info == 0:
                dpotrs("L", &size, &one, &rest[0, 0], &size, &steps[fold, 0], &size, &info)
            else:
                positive[fold] = False
        return positive

    def curvature(self, Py_ssize_t first, Py_ssize_t last, double[:, ::1] H):
        """Set the second derivatives of the losses of some rows."""
        H[:, :] = 0.0
        if last <= first:
            return
        if H.shape[0] == 1 + self.k + self.k * self.k:
            self._curve_everything(first, last, H)
        else:
            self._curve_slope_and_offsets(first, last, H)

    def losses(self, const double[:, ::1] points, const Py_ssize_t[::1] edges, const Py_ssize_t[::1] labels):
        """Return ``-log p`` of every row's own class, by the point of its fold; folds end at `edges`."""
        cdef Py_ssize_t fold, i, first = 0
        found = np.empty(self.n)
        cdef double[::1] loss = found
        for fold in range(edges.shape[0]):
            self._set_logits(&points[fold, 0], points.shape[1], first, edges[fold])
            first = edges[fold]
        take_top(&self.P[0, 0], &self.top[0], self.k, self.n, self.n)
        np.exp(self.probabilities, out=self.probabilities)
        normalise(&self.P[0, 0], &self.sums[0], &self.inverse[0], self.k, self.n)
        for i in range(self.n):
            loss[i] = -log(self.P[labels[i], i])
        return found

    cdef void _set_logits(self, const double *theta, Py_ssize_t size, Py_ssize_t first, Py_ssize_t last) noexcept:
        cdef int m = last - first, k = self.k, n = self.n
        cdef double one = 1.0, zero = 0.0
        cdef bint has_matrix = size > 1 + k
        if m <= 0:
            return
        if has_matrix:
            dgemm("N", "N", &m, &k, &k, &one, <double *> &self.scores[0, first], &n, <double *> theta + 1 + k,
                  &k, &zero, &self.P[0, first], &n)
        set_logits(&self.P[0, first], &self.scores[0, first], theta[0], theta + 1 if size > 1 else NULL,
                   has_matrix, k, m, n)

    cdef void _pull(self, Py_ssize_t first, Py_ssize_t last, double *gradient, Py_ssize_t size) noexcept:
        """Set the gradient in theta of ``<residual, z(theta)>``."""
        cdef int m = last - first, k = self.k, n = self.n
        cdef double one = 1.0, zero = 0.0
        cdef Py_ssize_t j
        for j in range(size):
            gradient[j] = 0.0
        if m <= 0:
            return
        for j in range(k):
            gradient[0] += inner(&self.residual[j, first], &self.scores[j, first], m)
            if size > 1:
                gradient[1 + j] = total(&self.residual[j, first], m)
        if size > 1 + k:
            dgemm("T", "N", &k, &k, &m, &one, <double *> &self.scores[0, first], &n, &self.residual[0, first], &n,
                  &zero, gradient + 1 + k, &k)

    cdef void _curve_slope_and_offsets(self, Py_ssize_t first, Py_ssize_t last, double[:, ::1] H) noexcept:
        """Add covariances of ``(s, identity)`` under p, summed over rows."""
        cdef Py_ssize_t i, j, other, turn, start, m, k = self.k
        cdef bint has_offsets = H.shape[0] > 1
        cdef double deviation
        for turn in range((last - first + HEIGHT - 1) // HEIGHT):
            start = first + turn * HEIGHT
            m = min(HEIGHT, last - start)
            self.matched[:m] = 0.0  # the means of the scores under p
            add_products(&self.matched[0], &self.P[0, start], &self.scores[0, start], k, m, self.n)
            for j in range(k):
                multiply(&self.some[0], &self.weights[start], &self.P[j, start], m)
                for i in range(m):
                    deviation = self.scores[j, start + i] - self.matched[i]
                    H[0, 0] += self.some[i] * deviation * deviation
                    if has_offsets:
                        H[0, 1 + j] += self.some[i] * deviation
                if has_offsets:
                    H[1 + j, 1 + j] += total(&self.some[0], m)
                    for other in range(j + 1):
                        H[1 + j, 1 + other] -= inner(&self.some[0], &self.P[other, start], m)
        if has_offsets:
            for j in range(k):
                H[1 + j, 0] = H[0, 1 + j]
                for other in range(j):
                    H[1 + other, 1 + j] = H[1 + j, 1 + other]

    cdef int _curve_everything(self, Py_ssize_t first, Py_ssize_t last, double[:, ::1] H) except -1:
        """Set second derivatives in all of ``(a, b, M)``; those in the slope are M's along the identity.

        With u = (1, s) they are ``sum w (p_j [j = m] - p_j p_m) u_c u_d``, symmetric in classes and in places.
        """
        cdef Py_ssize_t j, other, c, d, at, of, row, column, k = self.k
        cdef double value
        self._gather(first, last)
        at = 0
        for j in range(k):
            for other in range(j + 1):
                H[1 + j, 1 + other] = self.grams[at, 0]
                H[1 + other, 1 + j] = self.grams[at, 0]
                of = 1
                for c in range(k):
                    value = self.grams[at, of]
                    of += 1
                    H[1 + k + j * k + c, 1 + other] = value
                    H[1 + other, 1 + k + j * k + c] = value
                    H[1 + k + other * k + c, 1 + j] = value
                    H[1 + j, 1 + k + other * k + c] = value
                    for d in range(c + 1):
                        value = self.grams[at, of]
                        of += 1
                        row, column = 1 + k + j * k, 1 + k + other * k
                        H[row + c, column + d] = value
                        H[row + d, column + c] = value
                        H[column + c, row + d] = value
                        H[column + d, row + c] = value
                at += 1
        for column in range(1, H.shape[0]):
            value = 0.0
            for j in range(k):
                value += H[1 + k + j * (k + 1), column]
            H[0, column] = value
            H[column, 0] = value
        value = 0.0
        for j in range(k):
            value += H[0, 1 + k + j * (k + 1)]
        H[0, 0] = value
        return 0

    cdef int _gather(self, Py_ssize_t first, Py_ssize_t last) except -1:
        """Set `grams`, a row a pair of classes, a column a pair of places in (1, s)."""
        cdef int k = self.k, n_pairs = k * (k + 1) // 2, n_products = (k + 1) * (k + 2) // 2, height = HEIGHT, m
        cdef double minus = -1.0, beta = 0.0
        cdef Py_ssize_t j, other, i, at, turn, start
        if not self.has_room:
            self.has_room = True
            room = np.empty((n_pairs + n_products, HEIGHT))
            self.pairs, self.products = room[:n_pairs], room[n_pairs:]
            self.grams = np.empty((n_pairs, n_products))
        for turn in range((last - first + HEIGHT - 1) // HEIGHT):
            start = first + turn * HEIGHT
            m = min(HEIGHT, last - start)
            at = 0
            for j in range(k):
                for other in range(j + 1):
                    multiply_three(&self.pairs[at, 0], &self.weights[start], &self.P[j, start],
                                   &self.P[other, start], m)
                    at += 1
                for i in range(m):
                    self.pairs[at - 1, i] -= self.weights[start + i] * self.P[j, start + i]
            for i in range(m):
                self.products[0, i] = 1.0
            at = 1
            for j in range(k):
                for i in range(m):
                    self.products[at, i] = self.scores[j, start + i]
                at += 1
                for other in range(j + 1):
                    multiply(&self.products[at, 0], &self.scores[j, start], &self.scores[other, start], m)
                    at += 1
            dgemm("T", "N", &n_products, &n_pairs, &m, &minus, &self.products[0, 0], &height, &self.pairs[0, 0],
                  &height, &beta, &self.grams[0, 0], &n_products)
            beta = 1.0
        return 0


def factorise(const double[:, ::1] H, Py_ssize_t first, double[:, ::1] factor):
    """Factorise the part of a symmetric matrix from `first` on; tell whether it is positive definite."""
    cdef int size = H.shape[0] - first, info = 0, width = H.shape[0]
    if size <= 0:
        return True
    factor[:, :] = H
    dpotrf("L", &size, &factor[first, first], &width, &info)
    return info == 0


def solve(double[:, ::1] factor, Py_ssize_t first, double[::1] right):
    """Solve with a factor for what `right` holds from `first` on, in place."""
    cdef int size = factor.shape[0] - first, one = 1, info = 0, width = factor.shape[0]
    if size > 0:
        dpotrs("L", &size, &one, &factor[first, first], &width, &right[first], &width, &info)
