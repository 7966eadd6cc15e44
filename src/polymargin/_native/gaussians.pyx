"""Gaussian kernels from inner products, in one pass over them (see gaussians.h)."""

cdef extern from "gaussians.h" nogil:
    int has_gaussians()
    void gaussian_row(double *values, double own, const double *others, Py_ssize_t n)


def available() -> bool:
    """Tell whether the processor has what it takes; without it `gaussians` is not to be called."""
    return bool(has_gaussians())


def gaussians(double[:, ::1] products, const double[::1] rows, const double[::1] columns):
    """Replace products by ``exp(min(products - rows[:, None] - columns, 0))``."""
    cdef Py_ssize_t i
    if products.shape[1] == 0:
        return
    with nogil:
        for i in range(products.shape[0]):
            gaussian_row(&products[i, 0], rows[i], &columns[0], products.shape[1])
