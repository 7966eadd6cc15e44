"""Products of a matrix with a few columns, for compiled loops (see skinny.h)."""

cdef extern from "skinny.h" nogil:
    int has_skinny_products()
    void add_float_product(
        const float *matrix, Py_ssize_t stride, Py_ssize_t n_rows, Py_ssize_t n,
        const float *panels, Py_ssize_t panel_rows, Py_ssize_t skipped, Py_ssize_t width, float *out
    )
    void add_double_product(
        const double *matrix, Py_ssize_t stride, Py_ssize_t n_rows, Py_ssize_t n,
        const double *panels, Py_ssize_t panel_rows, Py_ssize_t skipped, Py_ssize_t width, double *out
    )
    void add_narrow_float_product(
        const float *matrix, Py_ssize_t stride, Py_ssize_t n_rows, Py_ssize_t n,
        const float *panels, Py_ssize_t panel_rows, Py_ssize_t skipped, Py_ssize_t width, float *out
    )
    void add_narrow_double_product(
        const double *matrix, Py_ssize_t stride, Py_ssize_t n_rows, Py_ssize_t n,
        const double *panels, Py_ssize_t panel_rows, Py_ssize_t skipped, Py_ssize_t width, double *out
    )
    int has_wide_registers()
    void add_transposed_product(
        const double *matrix, Py_ssize_t stride, const Py_ssize_t *which, Py_ssize_t n_rows, Py_ssize_t n,
        const double *V, Py_ssize_t width, double *out, int narrow
    )
