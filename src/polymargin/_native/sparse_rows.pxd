"""Products of compressed rows with tables of a few columns, for whatever numbers and indices they hold."""

from cython cimport floating
from libc.stddef cimport ptrdiff_t

ctypedef fused index:
    int
    long long

cdef extern from "sparse_rows.h" nogil:
    void score_doubles(const double* values, const int* columns, ptrdiff_t entries, const double* W,
                       ptrdiff_t width, double* out)
    void change_doubles(const double* values, const int* columns, ptrdiff_t entries, double* W,
                        ptrdiff_t width, const double* change)
    void score_doubles_far(const double* values, const long long* columns, ptrdiff_t entries, const double* W,
                           ptrdiff_t width, double* out)
    void change_doubles_far(const double* values, const long long* columns, ptrdiff_t entries, double* W,
                            ptrdiff_t width, const double* change)
    void score_floats(const float* values, const int* columns, ptrdiff_t entries, const double* W,
                      ptrdiff_t width, double* out)
    void change_floats(const float* values, const int* columns, ptrdiff_t entries, double* W,
                       ptrdiff_t width, const double* change)
    void score_floats_far(const float* values, const long long* columns, ptrdiff_t entries, const double* W,
                          ptrdiff_t width, double* out)
    void change_floats_far(const float* values, const long long* columns, ptrdiff_t entries, double* W,
                           ptrdiff_t width, const double* change)


cdef inline void score_row(
    const floating* values, const index* columns, Py_ssize_t entries, const double* W, Py_ssize_t width,
    double* out
) noexcept nogil:
    """Add the product of a sparse row with W to out; its width is a multiple of four."""
    if floating is double and index is int:
        score_doubles(values, columns, entries, W, width, out)
    elif floating is float and index is int:
        score_floats(values, columns, entries, W, width, out)
    elif floating is double:
        score_doubles_far(values, columns, entries, W, width, out)
    else:
        score_floats_far(values, columns, entries, W, width, out)


cdef inline void change_by_row(
    const floating* values, const index* columns, Py_ssize_t entries, double* W, Py_ssize_t width,
    const double* change
) noexcept nogil:
    """Add the products of a sparse row's entries with the change to its rows of W."""
    if floating is double and index is int:
        change_doubles(values, columns, entries, W, width, change)
    elif floating is float and index is int:
        change_floats(values, columns, entries, W, width, change)
    elif floating is double:
        change_doubles_far(values, columns, entries, W, width, change)
    else:
        change_floats_far(values, columns, entries, W, width, change)
