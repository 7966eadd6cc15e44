"""Cycles of classes of lowest mean weight, and shortest paths, where ``weight[d, c]`` is that of the arc d to c.

Howard's policy iteration: every class chooses one arc. The cheapest of the cycles that these make gives a mean,
and potentials: what the way from a class to that cycle costs above the mean. A class for which another arc is
cheaper chooses that. Where no arc is, ``potential[d] <= weight[d, c] - mean + potential[c]`` on all of them, and
summed over any cycle that says that its mean is no lower: the proof needs no more than these inequalities. A
handful of rounds of k^2 arcs takes the place of the k rounds of Karp's walks, most of the work of 300 classes.
After J. Cochet-Terrasson et al., Numerical computation of spectral elements in max-plus algebra, 1998, and A.
Dasdan, Experimental analysis of the fastest optimum cycle ratio and mean algorithms, ACM TODAES 9, 2004.
"""

import numpy as np

from libc.math cimport INFINITY, fabs

cdef extern from "vectors.h" nogil:
    double lowest_sum(const double* weight, const double* potential, ptrdiff_t k)
    void shorten(double* distance, const double* rest, double first, ptrdiff_t k)

cdef double WALL = 1e300
cdef double OPEN = 1e299  # what lies below is a number, what lies above is a missing arc
ROUNDING = 2.0**-50
"""Part of the largest weight, times the number of classes, by which a mean that was found may be too high."""
cdef double PART = ROUNDING
cdef Py_ssize_t MOST_ROUNDS = 100  # from the last choice: a handful is what it takes
cdef enum:
    UNKNOWN = -1
    LEADS = -2      # to the cheapest cycle
    ELSEWHERE = -3
    KEPT = -4       # the arc chosen last time
    GIVEN_UP = 2    # a mean is no such number


cdef class CycleSearch:
    """The search, and room for it.

    Parameters
    ----------
    k : number of classes.
    """

    def __init__(self, Py_ssize_t k):
        self.k = k
        self.cycle, self.following = np.empty(k, dtype=np.intp), np.empty(k, dtype=np.intp)
        self.mark, self.path = np.empty(k, dtype=np.intp), np.empty(k, dtype=np.intp)
        self.potential, self.shifted = np.zeros(k), np.zeros(k)
        self.fallen, self.risen = np.zeros(k), np.zeros(k)
        self.following[:] = -1
        self.size, self.visits = 0, 0.0

    def seek(self, const double[:, ::1] weight):
        """Return what `find` does."""
        return self.find(weight)

    cdef double find(self, const double[:, ::1] weight) noexcept nogil:
        """Write down the cycle of lowest mean weight and return that mean; `WALL` and no classes without any."""
        self.fallen[:], self.risen[:] = 0.0, 0.0
        return self._iterate(weight, weight, self._begin(weight), -1)

    cdef double find_again(self, const double[:, ::1] weight, const double[:, ::1] bound) noexcept nogil:
        """Do the same from the last choice, where weights are asked for as they are needed.

        That of an arc from d to c is no less than ``bound[d, c] - fallen[c] - risen[d]``, and is in `weight` once
        the class that inherits from this one `knows` it.
        """
        cdef Py_ssize_t d
        cdef double mean = self._iterate(weight, bound, self._begin_again(weight, bound), MOST_ROUNDS)
        if mean < GIVEN_UP * WALL:
            return mean
        for d in range(self.k):
            self.following[d] = -1
        return self._iterate(weight, bound, self._begin_again(weight, bound), -1)

    cdef bint knows(self, Py_ssize_t d, Py_ssize_t c) noexcept nogil:
        """Tell whether the weight of an arc is known; if not, ask for it."""
        return True

    cdef double _iterate(self, const double[:, ::1] weight, const double[:, ::1] bound, double rounding,
                         Py_ssize_t rounds) noexcept nogil:
        cdef double mean
        while rounds != 0:
            mean = self._cheapest_of_choice(weight)
            if self.head < 0:
                break
            self._evaluate(weight, mean)
            if not self._improve(weight, bound, mean, rounding):
                break
            rounds -= 1
        else:
            return GIVEN_UP * WALL
        self.size = 0
        if mean < OPEN:
            self._write()
        return mean

    cdef void _set(self, Py_ssize_t c, double potential) noexcept nogil:
        self.potential[c], self.shifted[c] = potential, potential - self.fallen[c]

    cdef double _lowest(self, const double[:, ::1] bound, Py_ssize_t d) noexcept nogil:
        """Return what no way from a class by any of its arcs costs less than."""
        return lowest_sum(&bound[d, 0], &self.shifted[0], self.k) - self.risen[d]

    cdef Py_ssize_t _end(self, const double[:, ::1] bound, Py_ssize_t d) noexcept nogil:
        """Return where the arc of the cheapest way from a class leads; below zero where none does."""
        cdef Py_ssize_t c
        cdef double low
        while True:
            low = lowest_sum(&bound[d, 0], &self.shifted[0], self.k)
            if low > OPEN:
                return -1
            c = 0
            while bound[d, c] + self.shifted[c] != low:
                c += 1
            if self.knows(d, c):
                return c

    cdef double _begin(self, const double[:, ::1] weight) noexcept nogil:
        """Choose the cheapest arc of every class that lies on a way without end; return what is rounding."""
        cdef Py_ssize_t d, c
        cdef double scale = 0.0
        for d in range(self.k):
            self.following[d], self.mark[d] = 0, UNKNOWN
            self._set(d, 0.0)
        self._choose_ways(weight, weight)
        for d in range(self.k):
            if self.following[d] < 0:
                continue
            self._set(d, weight[d, self.following[d]])
            for c in range(self.k):
                scale = max(scale, fabs(weight[d, c]) if weight[d, c] < OPEN else 0.0)
        return PART * self.k * scale

    cdef double _begin_again(self, const double[:, ::1] weight, const double[:, ::1] bound) noexcept nogil:
        """The same, where classes keep the arc that they chose last time as long as there is one."""
        cdef Py_ssize_t d
        cdef bint is_open
        cdef double scale = 0.0
        for d in range(self.k):
            if self.following[d] >= 0:
                self.knows(d, self.following[d])
            is_open = self.following[d] >= 0 and weight[d, self.following[d]] < OPEN
            self.mark[d] = KEPT if is_open else UNKNOWN
            self.following[d] = self.following[d] if is_open else 0
            self._set(d, self.potential[d] if is_open else 0.0)
        self._choose_ways(weight, bound)
        for d in range(self.k):
            if self.following[d] < 0:
                continue
            if self.mark[d] != KEPT:
                self._set(d, weight[d, self.following[d]])
            scale = max(scale, max(fabs(weight[d, self.following[d]]), fabs(self.potential[d])))
        return PART * self.k * scale

    cdef void _choose_ways(self, const double[:, ::1] weight, const double[:, ::1] bound) noexcept nogil:
        """Let classes choose arcs; those from which none leads on are in no cycle, nor what leads to them."""
        cdef Py_ssize_t d, left = 1
        while left:
            left = 0
            for d in range(self.k):
                if self.following[d] < 0:
                    continue
                if self.mark[d] == KEPT and self.following[self.following[d]] >= 0:
                    continue
                self.mark[d] = UNKNOWN
                self.following[d] = self._end(bound, d)
                if self.following[d] < 0:
                    self._set(d, WALL)
                    left += 1
                self.visits += self.k

    cdef double _cheapest_of_choice(self, const double[:, ::1] weight) noexcept nogil:
        """Return the lowest mean of the cycles of the chosen arcs, and note a class of it."""
        cdef Py_ssize_t d, at, length
        cdef double total, lowest = WALL
        self.head = -1
        for d in range(self.k):
            self.mark[d] = UNKNOWN
        for d in range(self.k):
            at = d
            while self.following[at] >= 0 and self.mark[at] == UNKNOWN:
                self.mark[at] = d
                at = self.following[at]
            if self.following[at] < 0 or self.mark[at] != d:
                continue
            total, length = 0.0, 0
            while length == 0 or at != self.path[0]:
                self.path[length] = at
                total += weight[at, self.following[at]]
                length += 1
                at = self.following[at]
            if total / length < lowest:
                lowest, self.head = total / length, at
        return lowest

    cdef void _write(self) noexcept nogil:
        cdef Py_ssize_t at = self.head
        while self.size == 0 or at != self.head:
            self.cycle[self.size] = at
            self.size += 1
            at = self.following[at]

    cdef void _evaluate(self, const double[:, ::1] weight, double mean) noexcept nogil:
        """Set the potentials of all that the chosen arcs lead to the cheapest cycle; others keep theirs."""
        cdef Py_ssize_t d, at, length
        for d in range(self.k):
            self.mark[d] = UNKNOWN
        self.mark[self.head] = LEADS
        for d in range(self.k):
            at, length = d, 0
            while self.following[at] >= 0 and self.mark[at] == UNKNOWN:
                self.mark[at] = ELSEWHERE  # as long as a way has not come to the cycle it is a cycle of its own
                self.path[length] = at
                length += 1
                at = self.following[at]
            if self.mark[at] != LEADS:
                continue
            while length > 0:
                length -= 1
                at = self.path[length]
                self._set(at, weight[at, self.following[at]] - mean + self.potential[self.following[at]])
                self.mark[at] = LEADS

    cdef bint _improve(self, const double[:, ::1] weight, const double[:, ::1] bound, double mean,
                       double rounding) noexcept nogil:
        """Let classes choose cheaper arcs; tell whether any did, by more than rounding."""
        cdef Py_ssize_t d, c
        cdef double low
        cdef bint is_better = False
        for d in range(self.k):
            if self.following[d] < 0:
                continue
            if self._lowest(bound, d) - mean < self.potential[d] - rounding:
                c = self._end(bound, d)
                low = weight[d, c] + self.potential[c]
                if low - mean < self.potential[d] - rounding:
                    self.following[d] = c
                    self._set(d, low - mean)
                    is_better = True
        self.visits += <double>self.k * self.k
        return is_better


def cheapest_cycle(const double[:, ::1] weight):
    """Return the minimum mean weight of a cycle of the classes, and the classes of such a cycle in order.

    Weights of 1e299 and more are missing arcs, and those from a class to itself must be; without any cycle the
    mean is 1e300.
    """
    search = CycleSearch(weight.shape[0])
    mean = search.find(weight)
    return mean, np.array(search.cycle[:search.size])


def shortest_paths(double[:, ::1] distance):
    """Turn the lengths of arcs into distances between all pairs of classes, in place (Floyd & Warshall)."""
    cdef Py_ssize_t k = distance.shape[0], stop, d
    with nogil:
        for stop in range(k):
            for d in range(k):
                if d != stop and distance[d, stop] < INFINITY:
                    shorten(&distance[d, 0], &distance[stop, 0], distance[d, stop], k)
