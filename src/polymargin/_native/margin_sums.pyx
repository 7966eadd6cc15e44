"""Sums over rows within their margins, which a Newton step of the refinement is made of.

For class r with scores s, signs d and weights w, the errors are ``t = 1 - d (scale_r s - offset_r)``; over rows
with t > 0 the weighted sums of ``t^2, d s t, d t, s^2, s, 1`` are wanted. In NumPy this takes a dozen passes over
the scores; here it is one, with the classes in the inner loop, which compilers turn into vector instructions. Sums
are kept by blocks of rows, so that rounding grows with the number of blocks and not of rows.
"""

from libc.string cimport memset

cdef enum:
    BLOCK = 1024


def margin_sums(
    const double[:, ::1] scores,
    const Py_ssize_t[::1] labels,
    const double[::1] weights,
    const double[:, ::1] factors,
    const double[:, ::1] signs,
    const double[::1] scale,
    const double[::1] offset,
    double[:, ::1] block,
    double[:, ::1] sums,
):
    """Add the six sums (6, k) of the rows to `sums`.

    A row of class c weighs ``weights * factors[c, r]`` and has the sign ``signs[c, r]`` in the problem of class r;
    `block` (6, k) is room to work in.
    """
    cdef Py_ssize_t n = scores.shape[0], k = scores.shape[1], i, r, first = 0, last, entry
    cdef const double* s
    cdef const double* d
    cdef const double* f
    cdef double t, w, pull
    cdef double* b0 = &block[0, 0]
    cdef double* b1 = &block[1, 0]
    cdef double* b2 = &block[2, 0]
    cdef double* b3 = &block[3, 0]
    cdef double* b4 = &block[4, 0]
    cdef double* b5 = &block[5, 0]
    cdef double* total = &sums[0, 0]
    with nogil:
        while first < n:
            last = min(first + BLOCK, n)
            memset(b0, 0, 6 * k * sizeof(double))
            for i in range(first, last):
                s = &scores[i, 0]
                d = &signs[labels[i], 0]
                f = &factors[labels[i], 0]
                for r in range(k):
                    t = 1.0 - d[r] * (scale[r] * s[r] - offset[r])
                    w = weights[i] * f[r] if t > 0.0 else 0.0
                    pull = w * t
                    b0[r] += pull * t
                    pull *= d[r]
                    b1[r] += pull * s[r]
                    b2[r] += pull
                    b3[r] += w * s[r] * s[r]
                    b4[r] += w * s[r]
                    b5[r] += w
            for entry in range(6 * k):
                total[entry] += b0[entry]
            first = last
