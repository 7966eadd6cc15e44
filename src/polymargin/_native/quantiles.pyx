"""The entries of a table by columns that lie within a window, which is what is sorted of it."""

import numpy as np


def entries_within(const double[:, :] values, const double[:, :] weights, const double[::1] lowest,
                   const double[::1] highest):
    """Return the entries of positive weight with ``lowest[c] <= value <= highest[c]``, column after column.

    They come as values, weights and the number of them in every column, with the weight that lies below each
    window.
    """
    cdef Py_ssize_t n = values.shape[0], k = values.shape[1], i, c, filled = 0
    cdef Py_ssize_t[::1] counts = np.zeros(k, dtype=np.intp)
    cdef double[::1] before = np.zeros(k)
    cdef double value, total
    with nogil:
        for c in range(k):
            total = 0.0
            for i in range(n):
                value = values[i, c]
                if value < lowest[c]:
                    total += weights[i, c]
                elif weights[i, c] > 0.0 and value <= highest[c]:
                    counts[c] += 1
            before[c] = total
            filled += counts[c]
    cdef double[::1] inside = np.empty(filled), weight = np.empty(filled)
    filled = 0
    with nogil:
        for c in range(k):
            for i in range(n):
                value = values[i, c]
                if weights[i, c] > 0.0 and lowest[c] <= value and value <= highest[c]:
                    inside[filled] = value
                    weight[filled] = weights[i, c]
                    filled += 1
    return inside.base, weight.base, counts.base, before.base
