"""Weighted Gram matrices of classes, of rows in whatever order.

Every class has a bucket, into which its rows are copied as they come, scaled by the roots of their weights and
augmented by a column of -1. A full bucket is multiplied out while it is in the cache of the processor: the rows
are read once, in order, and nothing is sorted.
"""

from cython cimport floating
from libc.string cimport memcpy

cdef extern from "tiles.h" nogil:
    void add_gram(const double *rows, Py_ssize_t n, Py_ssize_t width, double *gram, const void *next)


def add_rows(
    const floating[:, ::1] X,
    const Py_ssize_t[::1] labels,
    const double[::1] roots,
    double[:, :, ::1] buckets,
    Py_ssize_t[::1] filled,
    double[:, :, ::1] grams,
):
    """Add rows to the buckets (k, height, width) of their classes, and full buckets to `grams` (k, width, width).

    The width is at least one more than that of the rows. Columns beyond stay zero, as they are to be at the start.
    Of `grams` the upper triangles are meant. `roots` may be None, for weights of one.
    """
    cdef Py_ssize_t p = X.shape[1], height = buckets.shape[1], width = buckets.shape[2], i, j, c
    cdef double root = 1.0
    cdef double *place
    cdef const floating *row
    cdef bint weighted = roots is not None
    with nogil:
        for i in range(X.shape[0]):
            c = labels[i]
            place = &buckets[c, filled[c], 0]
            row = &X[i, 0]
            if weighted:
                root = roots[i]
                for j in range(p):
                    place[j] = root * row[j]
            elif floating is double:
                memcpy(place, row, p * sizeof(double))
            else:
                for j in range(p):
                    place[j] = row[j]
            place[p] = -root
            filled[c] += 1
            if filled[c] == height:
                add_gram(&buckets[c, 0, 0], height, width, &grams[c, 0, 0], row + p)
                filled[c] = 0


def empty_buckets(const double[:, :, ::1] buckets, Py_ssize_t[::1] filled, double[:, :, ::1] grams):
    """Add what is left in the buckets to `grams`."""
    cdef Py_ssize_t c
    with nogil:
        for c in range(buckets.shape[0]):
            add_gram(&buckets[c, 0, 0], filled[c], buckets.shape[2], &grams[c, 0, 0], &buckets[c, 0, 0])
            filled[c] = 0
