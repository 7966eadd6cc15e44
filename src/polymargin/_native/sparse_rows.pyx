"""Products of all compressed rows of a matrix, or of its transpose, with a table of a few columns.

A general product goes over the columns of the table entry by entry of the rows; of a few columns that is mostly
the loop itself. Tables here are as wide as whole registers, see sparse_rows.h.
"""

from cython cimport floating

from polymargin._native.sparse_rows cimport change_by_row, index, score_row


def add_product(const floating[::1] values, const index[::1] columns, const index[::1] starts,
                const double[:, ::1] W, double[:, ::1] out):
    """Add the products of the rows with W (columns, width) to `out` (rows, width); the width is in fours."""
    cdef Py_ssize_t i, first, entries, width = W.shape[1]
    with nogil:
        for i in range(out.shape[0]):
            first, entries = starts[i], starts[i + 1] - starts[i]
            if entries > 0:
                score_row(&values[first], &columns[first], entries, &W[0, 0], width, &out[i, 0])


def add_transposed_product(const floating[::1] values, const index[::1] columns, const index[::1] starts,
                           const double[:, :] V, double[:, ::1] out, double[::1] scratch):
    """Add the product of the transposed rows with V (rows, k) to `out` (columns, width), the width as above.

    Rows of V that are zero cost a look at them. `scratch` (width,) is zero.
    """
    cdef Py_ssize_t i, j, first, entries, k = V.shape[1]
    cdef bint counts
    with nogil:
        for i in range(V.shape[0]):
            first, entries = starts[i], starts[i + 1] - starts[i]
            counts = False
            for j in range(k):
                scratch[j] = V[i, j]
                counts |= scratch[j] != 0.0
            if counts and entries > 0:
                change_by_row(&values[first], &columns[first], entries, &out[0, 0], out.shape[1], &scratch[0])


def add_squares(const floating[::1] values, const index[::1] starts, double[::1] out):
    """Add the squared lengths of the rows, no column of which comes twice, to `out`."""
    cdef Py_ssize_t i, e
    cdef double value, total
    with nogil:
        for i in range(out.shape[0]):
            total = 0.0
            for e in range(starts[i], starts[i + 1]):
                value = values[e]
                total += value * value
            out[i] += total
