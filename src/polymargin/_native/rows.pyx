"""Products of a few rows of a symmetric matrix with a few columns, read where they lie."""

from cython cimport floating

cdef extern from "vectors.h" nogil:
    void add_four_doubles(double *out, const double *r0, const double *r1, const double *r2, const double *r3,
                          const double *a, Py_ssize_t m)
    void add_four_floats(double *out, const float *r0, const float *r1, const float *r2, const float *r3,
                         const double *a, Py_ssize_t m)

cdef Py_ssize_t CHUNK = 512

ctypedef fused kept:
    float
    double


def add_rows(const floating[:, ::1] matrix, const Py_ssize_t[::1] rows, const double[:, ::1] factors,
             double[:, ::1] out):
    """Add ``factors.T @ matrix[rows]`` to `out` (k, n).

    The rows are read once, four at a time and in stretches that keep `out` in the cache; gathering them for BLAS
    would move three times as much memory.
    """
    cdef Py_ssize_t n = matrix.shape[1], k = out.shape[0], m = rows.shape[0]
    cdef Py_ssize_t first, width, i, j, c
    cdef double a[4]
    cdef const floating *r[4]
    with nogil:
        first = 0
        while first < n:
            width = min(CHUNK, n - first)
            i = 0
            while i < m:
                for j in range(4):
                    # past the last row: any row, taken zero times
                    r[j] = &matrix[rows[min(i + j, m - 1)], first]
                for c in range(k):
                    for j in range(4):
                        a[j] = factors[i + j, c] if i + j < m else 0.0
                    if floating is double:
                        add_four_doubles(&out[c, first], r[0], r[1], r[2], r[3], a, width)
                    else:
                        add_four_floats(&out[c, first], r[0], r[1], r[2], r[3], a, width)
                i += 4
            first += width


def gather(const floating[:, ::1] matrix, const Py_ssize_t[::1] rows, const Py_ssize_t[::1] columns,
           kept[:, :] out):
    """Set `out`, whose rows may be apart, to ``matrix[rows][:, columns]``."""
    cdef Py_ssize_t i, j
    cdef const floating *row
    cdef kept *place
    if out.shape[1] > 1 and out.strides[1] != sizeof(kept):
        raise ValueError("The entries of a row must lie together.")
    if out.shape[1] == 0:
        return
    with nogil:
        for i in range(rows.shape[0]):
            row, place = &matrix[rows[i], 0], &out[i, 0]
            for j in range(columns.shape[0]):
                place[j] = <kept> row[columns[j]]
