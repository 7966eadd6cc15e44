"""What compiled loops see of the search for the cheapest cycle."""


cdef class CycleSearch:
    cdef readonly Py_ssize_t size         # classes of the cycle that was found last
    cdef readonly Py_ssize_t[::1] cycle   # they, in order, and room for more
    cdef readonly double visits           # arcs looked at, of all searches
    cdef Py_ssize_t k, head
    cdef Py_ssize_t[::1] following, mark, path
    cdef double[::1] potential, shifted
    cdef double[::1] fallen, risen        # of every class: what `find_again` takes from the bounds of its arcs

    cdef double find(self, const double[:, ::1] weight) noexcept nogil
    cdef double find_again(self, const double[:, ::1] weight, const double[:, ::1] bound) noexcept nogil
    cdef bint knows(self, Py_ssize_t d, Py_ssize_t c) noexcept nogil
    cdef void _set(self, Py_ssize_t c, double potential) noexcept nogil
    cdef double _lowest(self, const double[:, ::1] bound, Py_ssize_t d) noexcept nogil
    cdef Py_ssize_t _end(self, const double[:, ::1] bound, Py_ssize_t d) noexcept nogil
    cdef double _iterate(self, const double[:, ::1] weight, const double[:, ::1] bound, double rounding,
                         Py_ssize_t rounds) noexcept nogil
    cdef double _begin(self, const double[:, ::1] weight) noexcept nogil
    cdef double _begin_again(self, const double[:, ::1] weight, const double[:, ::1] bound) noexcept nogil
    cdef void _choose_ways(self, const double[:, ::1] weight, const double[:, ::1] bound) noexcept nogil
    cdef double _cheapest_of_choice(self, const double[:, ::1] weight) noexcept nogil
    cdef void _write(self) noexcept nogil
    cdef void _evaluate(self, const double[:, ::1] weight, double mean) noexcept nogil
    cdef bint _improve(self, const double[:, ::1] weight, const double[:, ::1] bound, double mean,
                       double rounding) noexcept nogil
