"""The loops of a splitting's step: what is not a product, and solutions by the blocks of a Cholesky factor.

The rows of v and x (n, k) sum to zero, so the last class is what the others leave: right-hand sides and answers
have k - 1 columns, and no more digits than the matrix. Right-hand sides lie in panels, as products take them:
`panel` columns of all rows, then as many others; the last has what is left.
"""

import numpy as np

from cython cimport floating

from polymargin._native.skinny_products cimport add_double_product, add_float_product


cdef Py_ssize_t FEW_ROWS = 60


cdef inline double within(double value, double upper) noexcept nogil:
    value = value if value < upper else upper
    return value if value > 0.0 else 0.0


def reflect(const double[:, ::1] t, const double[:, ::1] upper, double[:, ::1] v, double[::1] mean,
            floating[::1] right, Py_ssize_t panel):
    """Write to v ``2z - t``, z = t within bounds, less the `mean` of its rows, and to `right` the change of v."""
    cdef Py_ssize_t n = t.shape[0], k = t.shape[1], width = right.shape[0] // n if n else 0, i, c, first, wide
    cdef double total, new
    with nogil:
        for i in range(n):
            total = 0.0
            for c in range(k):
                total += 2.0 * within(t[i, c], upper[i, c]) - t[i, c]
            mean[i] = total / k
        for first from 0 <= first < k by panel:
            wide = min(panel, width - first)
            for i in range(n):
                for c in range(first, min(first + panel, k)):
                    new = 2.0 * within(t[i, c], upper[i, c]) - t[i, c] - mean[i]
                    if c < k - 1:
                        right[first * n + i * wide + c - first] = new - v[i, c]
                    v[i, c] = new


def relax(double[:, ::1] t, double[:, ::1] x, const double[:, ::1] upper, const double[::1] mean,
          const floating[:, ::1] answer, const double[::1] of_ones, double rho, double shift, double relaxation):
    """Add to x its change, and to t what ``x + mean + shift`` is above z = t within bounds, times `relaxation`.

    The change is rho times the answer, less the part of `of_ones`, the answer to ones, that makes its columns sum
    to zero; where there is no intercept `of_ones` is empty.
    """
    cdef Py_ssize_t n = t.shape[0], k = t.shape[1], i, c
    cdef bint balanced = of_ones.shape[0] > 0
    cdef double total = 0.0, change, left
    cdef double[::1] part = np.zeros(k)
    with nogil:
        if balanced:
            for i in range(n):
                total += of_ones[i]
                for c in range(k - 1):
                    part[c] += answer[i, c]
            for c in range(k - 1):
                part[c] /= total
        for i in range(n):
            left = 0.0
            for c in range(k - 1):
                change = answer[i, c]
                if balanced:
                    change -= part[c] * of_ones[i]
                x[i, c] += rho * change
                left -= rho * change
            x[i, k - 1] += left
            for c in range(k):
                t[i, c] += relaxation * (x[i, c] + mean[i] + shift - within(t[i, c], upper[i, c]))


cdef void multiply(const floating *matrix, Py_ssize_t stride, Py_ssize_t n_rows, Py_ssize_t n,
                   const floating *panels, Py_ssize_t panel_rows, Py_ssize_t skipped, floating[:, ::1] out,
                   Py_ssize_t at) noexcept nogil:
    """Add a product to the rows of `out` from `at` on."""
    if n == 0 or n_rows == 0:
        return
    if floating is float:
        add_float_product(matrix, stride, n_rows, n, panels, panel_rows, skipped, out.shape[1], &out[at, 0])
    else:
        add_double_product(matrix, stride, n_rows, n, panels, panel_rows, skipped, out.shape[1], &out[at, 0])


cdef void take_off(floating *panels, Py_ssize_t panel_rows, Py_ssize_t skipped, floating[:, ::1] out,
                   Py_ssize_t at, Py_ssize_t n_rows, floating *room) noexcept nogil:
    """Write to `room`, panels of so many rows, those of `panels` less the rows of `out`, which become zero."""
    cdef Py_ssize_t width = out.shape[1], panel = 64 // sizeof(floating), first, wide, i, c
    for first from 0 <= first < width by panel:
        wide = min(panel, width - first)
        for i in range(n_rows):
            for c in range(wide):
                room[first * n_rows + i * wide + c] = (
                    panels[first * panel_rows + (skipped + i) * wide + c] - out[at + i, first + c]
                )
                out[at + i, first + c] = 0.0


cdef void put_back(floating *panels, Py_ssize_t panel_rows, const floating[:, ::1] out, Py_ssize_t at,
                   Py_ssize_t n_rows) noexcept nogil:
    cdef Py_ssize_t width = out.shape[1], panel = 64 // sizeof(floating), first, wide, i, c
    for first from 0 <= first < width by panel:
        wide = min(panel, width - first)
        for i in range(at, at + n_rows):
            for c in range(wide):
                panels[first * panel_rows + i * wide + c] = out[i, first + c]


def sweep(const floating[:, :] matrix, const floating[:, ::1] transposed, floating[::1] right,
          floating[:, ::1] answer):
    """Solve ``L L' X = V`` by blocks for V, as panels in `right`, which are spent; `answer` (n, width) becomes X.

    The matrix has L below the blocks on its diagonal, L' above them, and in them the inverses of L's blocks, whose
    transposes are the rows of `transposed` (n, width of a block); rows of the matrix may be apart. The processor
    must have what products need.
    """
    cdef Py_ssize_t n = matrix.shape[0], stride = matrix.strides[0] // <Py_ssize_t> sizeof(floating)
    cdef Py_ssize_t size = transposed.shape[1], first, rows, last, i, some
    cdef floating[::1] room = np.empty(size * answer.shape[1], dtype=np.asarray(answer).dtype)
    cdef floating *panels
    if n == 0 or answer.shape[1] == 0:
        return
    panels = &right[0]
    with nogil:
        answer[:] = 0.0
        for first from 0 <= first < n by size:
            rows = min(size, n - first)
            multiply(&matrix[first, 0], stride, rows, first, panels, n, 0, answer, first)
            take_off(panels, n, first, answer, first, rows, &room[0])
            for i from 0 <= i < rows by FEW_ROWS:  # below the diagonal
                some = min(FEW_ROWS, rows - i)
                multiply(&matrix[first + i, first], stride, some, i + some, &room[0], rows, 0, answer, first + i)
            put_back(panels, n, answer, first, rows)
        answer[:] = 0.0
        for first from (n - 1) // size * size >= first >= 0 by size:
            rows = min(size, n - first)
            last = first + rows
            if last < n:
                multiply(&matrix[first, last], stride, rows, n - last, panels, n, last, answer, first)
            take_off(panels, n, first, answer, first, rows, &room[0])
            for i from 0 <= i < rows by FEW_ROWS:  # above it
                some = min(FEW_ROWS, rows - i)
                multiply(&transposed[first + i, i], size, some, rows - i, &room[0], rows, i, answer, first + i)
            put_back(panels, n, answer, first, rows)
