"""Products of a large matrix with a few columns: the matrix is read once, where it lies (see skinny.h)."""

from cython cimport floating

from polymargin._native.skinny_products cimport (
    add_double_product,
    add_float_product,
    add_narrow_double_product,
    add_narrow_float_product,
    add_transposed_product,
    has_skinny_products,
    has_wide_registers,
)


def available() -> bool:
    """Tell whether the processor has what the products need; without it `multiply` is not to be called."""
    return bool(has_skinny_products())


def has_wide() -> bool:
    """Tell whether the processor has the wider registers of AVX-512."""
    return bool(has_wide_registers())


def register_width(itemsize: int) -> int:
    """Return how many numbers of so many bytes a register holds."""
    return 32 // itemsize


def pack(const floating[:, :] V, floating[::1] panels):
    """Copy V (n, k) to `panels`: two registers of columns after two others, the last alone where one is enough.

    Columns beyond k stay as they are; they are to be zero.
    """
    cdef Py_ssize_t n = V.shape[0], k = V.shape[1], lanes = 32 // sizeof(floating)
    cdef Py_ssize_t width = panels.shape[0] // n if n else 0, first, wide, i, c
    cdef floating *place
    with nogil:
        first = 0
        while first < width:
            wide = 2 * lanes if width - first >= 2 * lanes else lanes
            place = &panels[first * n]
            for c in range(first, min(first + wide, k)):
                for i in range(n):
                    place[i * wide + c - first] = V[i, c]
            first += wide


def multiply(const floating[:, :] matrix, const floating[::1] panels, floating[:, ::1] out, bint narrow=False):
    """Add ``matrix @ V`` to `out` (rows, width), V (n, width) as `pack` has written it, the width a multiple of a
    register's. The entries of a row of the matrix must lie together, its rows may be apart. `narrow` keeps to the
    registers of AVX2 where there are wider ones."""
    cdef Py_ssize_t stride = matrix.strides[0] // <Py_ssize_t> sizeof(floating), n = matrix.shape[1]
    cdef Py_ssize_t n_rows = matrix.shape[0]
    if n_rows == 0 or n == 0 or out.shape[1] == 0:
        return
    if n > 1 and matrix.strides[1] != sizeof(floating):
        raise ValueError("The entries of a row must lie together.")
    with nogil:
        if floating is float:
            (add_narrow_float_product if narrow else add_float_product)(
                &matrix[0, 0], stride, n_rows, n, &panels[0], n, 0, out.shape[1], &out[0, 0]
            )
        else:
            (add_narrow_double_product if narrow else add_double_product)(
                &matrix[0, 0], stride, n_rows, n, &panels[0], n, 0, out.shape[1], &out[0, 0]
            )


def multiply_transposed(const double[:, :] matrix, const Py_ssize_t[::1] rows, const double[:, ::1] V,
                        double[:, ::1] out, bint narrow=False):
    """Add ``matrix[rows].T @ V`` to `out`, of the matrix's columns by V's, a multiple of a register's number.

    V has zeros in as many rows behind those of `rows` as make their number a multiple of six. The entries of a row
    of the matrix must lie together, its rows may be apart. `narrow` as in `multiply`."""
    cdef Py_ssize_t stride = matrix.strides[0] // <Py_ssize_t> sizeof(double), n = matrix.shape[1]
    cdef Py_ssize_t n_rows = rows.shape[0]
    if n_rows == 0 or n == 0 or out.shape[1] == 0:
        return
    if n > 1 and matrix.strides[1] != sizeof(double):
        raise ValueError("The entries of a row must lie together.")
    with nogil:
        add_transposed_product(&matrix[0, 0], stride, &rows[0], n_rows, n, &V[0, 0], V.shape[1], &out[0, 0],
                               narrow or not has_wide_registers())
