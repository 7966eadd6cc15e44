"""Integers that are the same for equal rows, dense or sparse: a sum over the columns, each with its own factor.

    print of a row = sum_j mixed(bits of x_j) factor_j     modulo 2^64.

Sums of integers are the same in any order, so that a row has its print wherever it stands and however it is
stored, and zeros, whose bits are none, have no part in it. The low bits of most numbers are zero, which a product
would leave so: those on top are mixed into them first.
"""

from cython cimport floating
from libc.stdint cimport uint64_t

ctypedef fused index:
    int
    long long

cdef extern from "row_prints.h" nogil:
    uint64_t print_of_doubles(const double* row, const uint64_t* factors, Py_ssize_t p)
    uint64_t print_of_floats(const float* row, const uint64_t* factors, Py_ssize_t p)
    uint64_t mixed_bits(double value)


def add_prints(const floating[:, ::1] X, const uint64_t[::1] factors, uint64_t[::1] prints):
    """Add the prints of dense rows to `prints`."""
    cdef Py_ssize_t i, n = X.shape[0], p = X.shape[1]
    if p == 0:
        return
    with nogil:
        for i in range(n):
            if floating is double:
                prints[i] += print_of_doubles(&X[i, 0], &factors[0], p)
            else:
                prints[i] += print_of_floats(&X[i, 0], &factors[0], p)


def add_prints_of_compressed(const floating[::1] values, const index[::1] columns, const index[::1] starts,
                             const uint64_t[::1] factors, uint64_t[::1] prints):
    """Add the prints of compressed rows, no column of which comes twice, to `prints`."""
    cdef Py_ssize_t i, e
    with nogil:
        for i in range(starts.shape[0] - 1):
            for e in range(starts[i], starts[i + 1]):
                prints[i] += mixed_bits(values[e]) * factors[columns[e]]


def compressed_rows_agree(const floating[::1] values, const index[::1] columns, const index[::1] starts,
                          const Py_ssize_t[::1] first, const Py_ssize_t[::1] second):
    """Tell whether every one of the rows `first` stores the same as that of the rows `second` at its place."""
    cdef Py_ssize_t pair, e, at, other, number
    cdef bint agree = True
    with nogil:
        for pair in range(first.shape[0]):
            at, other = starts[first[pair]], starts[second[pair]]
            number = starts[first[pair] + 1] - at
            if starts[second[pair] + 1] - other != number:
                agree = False
                break
            for e in range(number):
                if columns[at + e] != columns[other + e] or values[at + e] != values[other + e]:
                    agree = False
                    break
            if not agree:
                break
    return agree
