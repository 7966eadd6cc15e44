"""What compiled systems see of the blocks: passes over numbers in arranged order."""

cdef extern from "simplex_runs.h":
    ctypedef struct Run:
        Py_ssize_t block, example, count, anchor

    ctypedef struct Blocks:
        Py_ssize_t n, size, k, n_runs
        const Run* runs
        double* weight
        double* a
        double* s
        double* e
        double* da
        double* ds
        double* de
        double* ca
        double* cs
        double* ce
        double* theta
        double* inverse
        double* wanted
        double* missing
        double* wanted_missing

    void inner_products(const double* left, Py_ssize_t rows, const double* right, Py_ssize_t columns,
                        Py_ssize_t n, double* out) nogil
    void combine_rows(const double* factors, Py_ssize_t rows, const double* right, Py_ssize_t columns,
                      Py_ssize_t n, double* out) nogil
    void weigh_atoms(const Blocks* x, double* weights) nogil


cdef class SimplexBlocks:
    cdef Blocks x
    cdef Py_ssize_t[:, ::1] runs
    cdef double[:, ::1] state
    cdef readonly Py_ssize_t[::1] example_order, block_order
    cdef double aim, mean_weight
    cdef readonly double[:, ::1] pulled

    cdef void pull_of(self, const double* slots) noexcept
    cdef double linearise_at(self) noexcept
    cdef void want_vanishing(self) noexcept
    cdef void want_centred(self, double aim) noexcept
    cdef void want_recentred(self, double hoped) noexcept
    cdef void want_refined(self) noexcept
    cdef double recover_at(self, const double* scores, bint onto) noexcept
    cdef void accept_candidate(self) noexcept

    cdef void _arrange(self, const Py_ssize_t[:] anchor, const Py_ssize_t[:] starts, Py_ssize_t k) except *
    cdef void _fill(self, const double[:] weight, const double[:, :] alpha, const double[:, :] slack,
                    const double[:] epigraph) except *
    cdef object _arranged(self, scores)
    cdef object _given_pull(self)
    cdef object _given_order(self, const double* slots)
