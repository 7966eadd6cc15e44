"""What the loop over pairs of classes sees of the exchanges between two of them."""


cdef class Exchanges:
    cdef Py_ssize_t size           # rows that take part
    cdef int[::1] rows             # they, and room for more
    cdef double[::1] own           # of each: its own kernel value,
    cdef double[::1] forth, back   # the rate that its move forth had at first, and minus that of the one back
    cdef double[::1] shift         # what steps have added to both; walls where there is no way
    cdef double[::1] most_forth, most_back  # how far it may move, the latter below zero
    cdef double[::1] moved         # how far it has
    cdef readonly double visits    # entries that the loops went over
    cdef readonly double most_negative_curvature
    cdef const double[:, ::1] kernel
    cdef double[::1] kept          # parts of rows of the kernel matrix, one after the other
    cdef int[::1] place            # where that of a row is
    cdef Py_ssize_t n_kept
    cdef double floor

    cdef Py_ssize_t take(self, double threshold, Py_ssize_t most) noexcept nogil
    cdef void change_of_rates(self, double *change) noexcept nogil
    cdef const double *_part(self, Py_ssize_t s) noexcept nogil
    cdef void _move(self, Py_ssize_t s, double step) noexcept nogil
