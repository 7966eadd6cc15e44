"""Triangular factors, updated by rows while other threads run: SciPy's wrapper of LAPACK keeps them waiting."""

import numpy as np

from scipy.linalg.cython_lapack cimport dtpqrt


def add_to_triangle(double[::1, :] triangle, double[::1, :] rows, int slanted, int panel):
    """Make of `triangle` (q, q) the triangular factor of itself and `rows` (m, q), which are spent.

    Of the rows the last `slanted` form a trapezoid with nothing below its diagonal. Columns are taken `panel`, at
    most q, at a time.
    """
    cdef int q = triangle.shape[1], m = rows.shape[0], info = 0
    cdef double[::1, :] room = np.empty((panel, q), order="F")
    cdef double[::1] work = np.empty(panel * q)
    if m == 0:
        return
    with nogil:
        dtpqrt(&m, &q, &slanted, &panel, &triangle[0, 0], &q, &rows[0, 0], &m, &room[0, 0], &panel, &work[0],
               &info)
