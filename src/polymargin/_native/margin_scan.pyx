"""One pass over rows that tells which of their errors keep their sign near a point, and which may not.

The errors are those of `margin_sums`, ``t = 1 - d (scale_r s - offset_r)`` with scores ``s = x'v_r``. While scale
and offset stay within a reach of a given point, so do the errors: most rows remain on one side of their margin.
Those beyond it do not count, and of those within it five sums say all. The few others are listed.
"""

from libc.math cimport fabs
from libc.string cimport memset

cdef extern from "tiles.h" nogil:
    ctypedef struct flags:
        pass
    void multiply(const double *X, Py_ssize_t n, Py_ssize_t p, const double *panels, Py_ssize_t width, double *out)
    void scan_four(const double *scores, const Py_ssize_t *labels, const double *weights, Py_ssize_t n,
                   const double *signs, const double *factors, const double *point, Py_ssize_t stride,
                   double *sums, flags *stays, flags *turns)


def scan_margins(
    const double[:, ::1] X,
    const double[:, :, ::1] panels,
    const Py_ssize_t[::1] labels,
    const double[::1] weights,
    const double[:, ::1] signs,
    const double[:, ::1] factors,
    const double[:, ::1] point,
    double[:, ::1] scores,
    long long[:, :, ::1] marks,
    double[:, ::1] sums,
    unsigned char[::1] within,
    Py_ssize_t[:, ::1] places,
    double[:, ::1] entries,
):
    """Scan the rows of `X`; return the number of entries listed.

    All problems are padded to `width`, a multiple of 12. `panels` (width / 12, p, 12) holds the directions v,
    `signs` and `factors` (n_classes, width) what rows of a class have in the problems, `point` (5, width) scale,
    offset, a middle m of the scores and reaches a and b: errors change by at most ``a |s - m| + b``. `scores`
    (height, width) and `marks` (2, height, 4) are room to work in. To `sums` (5, width) are added
    ``w, w d, w s, w d s, w s^2`` over rows that stay within the margin; `within` tells of every row whether it
    does so in any problem. `places` (2, capacity) and `entries` (3, capacity) list rows and problems, and their
    scores, signs and weights, of all that may change side.
    """
    cdef Py_ssize_t n = X.shape[0], p = X.shape[1], width = signs.shape[1], height = scores.shape[0]
    cdef Py_ssize_t first = 0, rows, i, r, c, listed = 0
    cdef double t
    cdef const double* s
    with nogil:
        while first < n:
            rows = min(height, n - first)
            multiply(&X[first, 0], rows, p, &panels[0, 0, 0], width, &scores[0, 0])
            memset(&marks[0, 0, 0], 0, 8 * height * sizeof(long long))
            r = 0
            while r < width:
                scan_four(&scores[0, r], &labels[first], &weights[first], rows, &signs[0, r], &factors[0, r],
                          &point[0, r], width, &sums[0, r], <flags*>&marks[0, 0, 0], <flags*>&marks[1, 0, 0])
                r += 4
            for i in range(rows):
                within[first + i] = (marks[0, i, 0] | marks[0, i, 1] | marks[0, i, 2] | marks[0, i, 3]) != 0
                if not (marks[1, i, 0] | marks[1, i, 1] | marks[1, i, 2] | marks[1, i, 3]):
                    continue
                s = &scores[i, 0]
                c = labels[first + i]
                for r in range(width):
                    t = 1.0 - signs[c, r] * (point[0, r] * s[r] - point[1, r])
                    if fabs(t) <= point[3, r] * fabs(s[r] - point[2, r]) + point[4, r]:
                        places[0, listed] = first + i
                        places[1, listed] = r
                        entries[0, listed] = s[r]
                        entries[1, listed] = signs[c, r]
                        entries[2, listed] = weights[first + i] * factors[c, r]
                        listed += 1
            first += rows
    return listed


def add_listed(
    const Py_ssize_t[::1] problems,
    const double[:, ::1] entries,
    const double[::1] scale,
    const double[::1] offset,
    double[:, ::1] sums,
):
    """Add the six sums of `margin_sums` to `sums` (6, k), over `entries` (3, m) of scores, signs, weights."""
    cdef Py_ssize_t e, r
    cdef double s, d, t, w, pull
    with nogil:
        for e in range(problems.shape[0]):
            r = problems[e]
            s = entries[0, e]
            d = entries[1, e]
            t = 1.0 - d * (scale[r] * s - offset[r])
            if t > 0.0:
                w = entries[2, e]
                pull = w * t
                sums[0, r] += pull * t
                sums[1, r] += pull * d * s
                sums[2, r] += pull * d
                sums[3, r] += w * s * s
                sums[4, r] += w * s
                sums[5, r] += w
