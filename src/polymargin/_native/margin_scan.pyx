"""One pass over rows that tells which of their errors keep their sign near a point, and which may not.

The errors are those of `margin_sums`, ``t = 1 - d (scale_r s - offset_r)`` with scores ``s = x'v_r``. While scale
and offset stay within a reach of a given point, so do the errors: most rows remain on one side of their margin.
Those beyond it do not count, and of those within it five sums say all. The few others are listed.
"""

from libc.string cimport memset

cdef extern from "tiles.h" nogil:
    ctypedef struct flags:
        pass
    void multiply(const double *X, Py_ssize_t n, Py_ssize_t p, const double *panels, Py_ssize_t width, double *out)
    void scan_four(const double *scores, const Py_ssize_t *labels, const double *weights, Py_ssize_t n,
                   const double *signs, const double *factors, const double *point, Py_ssize_t stride,
                   double *sums, int bit, flags *stays, flags *turns)
    Py_ssize_t lowest_bit(long long marks)
    void sum_entries(const double *s, const double *d, const double *w, Py_ssize_t n, double scale, double offset,
                     double *sums, Py_ssize_t stride)


cdef enum:
    BAND = 60  # problems whose marks fit into one number


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
    double[:, :, ::1] entries,
    Py_ssize_t[::1] listed,
    Py_ssize_t start,
):
    """Scan the rows of `X`, which are numbered from `start`.

    All problems are padded to `width`, a multiple of 12. `panels` (width / 12, p, 12) holds the directions v,
    `signs` and `factors` (n_classes, width) what rows of a class have in the problems, `point` (5, width) scale,
    offset, a middle m of the scores and reaches a and b: errors change by at most ``a |s - m| + b``. `scores`
    (height, width) and `marks` (2, height, 4) are room to work in. To `sums` (5, width) are added
    ``w, w d, w s, w d s, w s^2`` over rows that stay within the margin; `within` tells of every row whether it
    does so in any problem. `places` (width, size) and `entries` (width, 3, size) list the rows of every problem
    that may change side, and their scores, signs and weights, after the `listed` (width,) that they hold already.
    """
    cdef Py_ssize_t n = X.shape[0], p = X.shape[1], width = signs.shape[1], height = scores.shape[0]
    cdef Py_ssize_t first = 0, rows, band, i, r, c, m
    cdef long long turns
    cdef long long* row
    with nogil:
        while first < n:
            rows = min(height, n - first)
            multiply(&X[first, 0], rows, p, &panels[0, 0, 0], width, &scores[0, 0])
            memset(&marks[0, 0, 0], 0, 4 * rows * sizeof(long long))
            band = 0
            while band < width:
                memset(&marks[1, 0, 0], 0, 4 * rows * sizeof(long long))
                for r in range(band, min(band + <Py_ssize_t>BAND, width), 4):
                    scan_four(&scores[0, r], &labels[first], &weights[first], rows, &signs[0, r], &factors[0, r],
                              &point[0, r], width, &sums[0, r], <int>(r - band), <flags*>&marks[0, 0, 0],
                              <flags*>&marks[1, 0, 0])
                for i in range(rows):
                    row = &marks[1, i, 0]
                    turns = row[0] | row[1] | row[2] | row[3]
                    c = labels[first + i]
                    while turns:
                        r = band + lowest_bit(turns)
                        turns &= turns - 1
                        m = listed[r]
                        places[r, m] = start + first + i
                        entries[r, 0, m] = scores[i, r]
                        entries[r, 1, m] = signs[c, r]
                        entries[r, 2, m] = weights[first + i] * factors[c, r]
                        listed[r] = m + 1
                band += BAND
            for i in range(rows):
                row = &marks[0, i, 0]
                within[first + i] = (row[0] | row[1] | row[2] | row[3]) != 0
            first += rows


def add_listed(
    const double[:, :, ::1] entries,
    const Py_ssize_t[::1] listed,
    const double[::1] scale,
    const double[::1] offset,
    double[:, ::1] sums,
):
    """Add the six sums of `margin_sums` over what `scan_margins` has listed to `sums` (6, k)."""
    cdef Py_ssize_t r, k = sums.shape[1]
    with nogil:
        for r in range(k):
            sum_entries(&entries[r, 0, 0], &entries[r, 1, 0], &entries[r, 2, 0], listed[r], scale[r], offset[r],
                        &sums[0, r], k)


def mark_listed(
    const Py_ssize_t[:, ::1] places,
    const double[:, :, ::1] entries,
    const Py_ssize_t[::1] listed,
    const double[::1] scale,
    const double[::1] offset,
    unsigned char[::1] within,
):
    """Mark in `within` (n,) the rows of what `scan_margins` has listed that are within a margin."""
    cdef Py_ssize_t r, e
    with nogil:
        for r in range(scale.shape[0]):
            for e in range(listed[r]):
                within[places[r, e]] |= 1.0 - entries[r, 1, e] * (scale[r] * entries[r, 0, e] - offset[r]) > 0.0
