"""The loops of a splitting's step where hinges see differences of scores: what is not a product.

Row i of the state t (n, k), and of all tables like it, sums to zero. The nearest point z among the coefficients of
example i, of class y, to it and a step of length `shift` along the own class is

    simplices   z = weight e_y - a,           a what is nearest to ``(weight - shift) e_y - t`` on the simplex,
    boxes       z = -u + (sum u) e_y,         u_j = clip(shift - t_j + t_y - sum u, 0, upper_j).

The last class is what the others leave, so right-hand sides and answers have k - 1 columns; the former lie in
panels as in `splitting`.
"""

import numpy as np

from cython cimport floating

cdef extern from "vectors.h" nogil:
    double simplex_threshold(const double *target, double weight, int k)
    double total_change(const double *target, const double *upper, double before, double coupling, int k)


cdef inline void nearest(const double *t, int own, const double *bound, double shift, bint simplex, double *target,
                         double *z, int k) noexcept nogil:
    """Write to z the coefficients nearest to t."""
    cdef double total = 0.0, threshold, part
    cdef int j
    if simplex:
        for j in range(k):
            target[j] = -t[j]
        target[own] += bound[0] - shift
        threshold = simplex_threshold(target, bound[0], k)
        for j in range(k):
            part = target[j] - threshold
            z[j] = -part if part > 0.0 else 0.0
            total += z[j]
        total -= z[own]
    else:
        for j in range(k):
            target[j] = shift - t[j] + t[own]
        threshold = total_change(target, bound, 0.0, -1.0, k)
        for j in range(k):
            part = target[j] - threshold
            part = 0.0 if part <= 0.0 else (bound[j] if part >= bound[j] else part)
            z[j] = -part
            total += z[j]
    z[own] = -total


def project(const double[:, ::1] t, const int[::1] label, const double[:, ::1] bound, const double[::1] shift,
            double[:, ::1] z):
    """Write to z (n, k) the coefficients nearest to t; `bound` is (n, k) for boxes and (n, 1) for simplices."""
    cdef Py_ssize_t n = t.shape[0], k = t.shape[1], i
    cdef bint simplex = bound.shape[1] == 1
    cdef double[::1] target = np.empty(k)
    with nogil:
        for i in range(n):
            nearest(&t[i, 0], label[i], &bound[i, 0], shift[i], simplex, &target[0], &z[i, 0], k)


def reflect(const double[:, ::1] t, const int[::1] label, const double[:, ::1] bound, const double[::1] shift,
            double[:, ::1] v, floating[::1] right, Py_ssize_t panel):
    """Write to v ``2z - t``, z the coefficients nearest to t, and to `right` the change of v."""
    cdef Py_ssize_t n = t.shape[0], k = t.shape[1], width = right.shape[0] // n if n else 0, i, c, first
    cdef bint simplex = bound.shape[1] == 1
    cdef double[:, ::1] room = np.empty((2, k))
    cdef double *z = &room[1, 0]
    cdef double new
    cdef floating *place
    with nogil:
        for i in range(n):
            nearest(&t[i, 0], label[i], &bound[i, 0], shift[i], simplex, &room[0, 0], z, k)
            for c in range(k):
                new = 2.0 * z[c] - t[i, c]
                z[c] = new - v[i, c]
                v[i, c] = new
            for first from 0 <= first < k - 1 by panel:
                place = &right[first * n + i * min(panel, width - first)]
                for c in range(min(panel, k - 1 - first)):
                    place[c] = z[first + c]


def relax(double[:, ::1] t, double[:, ::1] x, const double[:, ::1] v, const floating[::1] right, Py_ssize_t panel,
          const floating[:, ::1] answer, const double[::1] of_ones, const double[::1] rho, double relaxation):
    """Add to x its change, and to t what x is above z, the mean of t and v, times `relaxation`.

    The change of row i is that of v, in panels as `right`, less ``answer / rho_i`` and the part of `of_ones`,
    the answer to ones, that makes its columns sum to zero; where there is no intercept `of_ones` is empty.
    """
    cdef Py_ssize_t n = t.shape[0], k = t.shape[1], width = right.shape[0] // n if n else 0, i, c, first
    cdef bint balanced = of_ones.shape[0] > 0
    cdef double total = 0.0, left, above
    cdef double[::1] part = np.zeros(k), change = np.empty(k)
    cdef const floating *place
    with nogil:
        for i in range(n):
            if not balanced:
                break
            total += of_ones[i]
            for first from 0 <= first < k - 1 by panel:
                place = &right[first * n + i * min(panel, width - first)]
                for c in range(min(panel, k - 1 - first)):
                    part[first + c] += place[c] - answer[i, first + c] / rho[i]
        for c in range(k - 1):
            part[c] /= total if balanced else 1.0
        for i in range(n):
            for first from 0 <= first < k - 1 by panel:
                place = &right[first * n + i * min(panel, width - first)]
                for c in range(min(panel, k - 1 - first)):
                    change[first + c] = place[c] - answer[i, first + c] / rho[i]
            left = above = 0.0
            for c in range(k - 1):
                x[i, c] += change[c] - (part[c] * of_ones[i] if balanced else 0.0)
                left -= x[i, c]
                t[i, c] += relaxation * (x[i, c] - 0.5 * (t[i, c] + v[i, c]))
                above -= t[i, c]
            # the last column is what the others leave: rounding errors of its own would grow from step to step
            x[i, k - 1] = left
            t[i, k - 1] = above
