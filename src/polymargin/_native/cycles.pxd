"""What compiled loops see of the search for the cheapest cycle."""


cdef class CycleSearch:
    cdef readonly Py_ssize_t size         # classes of the cycle that was found last
    cdef readonly Py_ssize_t[::1] cycle   # they, in order, and room for more
    cdef readonly double visits           # arcs looked at, of all searches
    cdef Py_ssize_t k, head
    cdef Py_ssize_t[::1] following, mark, path
    cdef double[::1] potential

    cdef double find(self, const double[:, ::1] weight) noexcept nogil
    cdef double _begin(self, const double[:, ::1] weight) noexcept nogil
    cdef double _cheapest_of_choice(self, const double[:, ::1] weight) noexcept nogil
    cdef void _write(self) noexcept nogil
    cdef void _evaluate(self, const double[:, ::1] weight, double mean) noexcept nogil
    cdef bint _improve(self, const double[:, ::1] weight, double mean, double rounding) noexcept nogil
