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
cdef enum:
    UNKNOWN = -1
    LEADS = -2      # to the cheapest cycle
    ELSEWHERE = -3


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
        self.potential = np.empty(k)
        self.size, self.visits = 0, 0.0

    def seek(self, const double[:, ::1] weight):
        """Return what `find` does."""
        return self.find(weight)

    cdef double find(self, const double[:, ::1] weight) noexcept nogil:
        """Write down the cycle of lowest mean weight and return that mean; `WALL` and no classes without any."""
        cdef double mean, rounding = self._begin(weight)
        while True:
            mean = self._cheapest_of_choice(weight)
            if self.head < 0:
                break
            self._evaluate(weight, mean)
            if not self._improve(weight, mean, rounding):
                break
        self.size = 0
        if mean < OPEN:
            self._write()
        return mean

    cdef double _begin(self, const double[:, ::1] weight) noexcept nogil:
        """Choose the cheapest arc of every class that lies on a way without end; return what is rounding."""
        cdef Py_ssize_t d, c, left = 1
        cdef double low, scale = 0.0
        for d in range(self.k):
            self.following[d], self.potential[d] = 0, 0.0
        while left:  # classes from which no arc leads on are no part of a cycle, nor those that lead to them alone
            left = 0
            for d in range(self.k):
                if self.following[d] < 0:
                    continue
                low = lowest_sum(&weight[d, 0], &self.potential[0], self.k)
                if low > OPEN:
                    self.following[d], self.potential[d] = -1, WALL
                    left += 1
                    continue
                c = 0
                while weight[d, c] + self.potential[c] != low:
                    c += 1
                self.following[d] = c
            self.visits += <double>self.k * self.k
        for d in range(self.k):
            if self.following[d] < 0:
                continue
            self.potential[d] = weight[d, self.following[d]]
            for c in range(self.k):
                scale = max(scale, fabs(weight[d, c]) if weight[d, c] < OPEN else 0.0)
        return PART * self.k * scale

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
                self.potential[at] = weight[at, self.following[at]] - mean + self.potential[self.following[at]]
                self.mark[at] = LEADS

    cdef bint _improve(self, const double[:, ::1] weight, double mean, double rounding) noexcept nogil:
        """Let classes choose cheaper arcs; tell whether any did, by more than rounding."""
        cdef Py_ssize_t d, c
        cdef double low
        cdef bint is_better = False
        for d in range(self.k):
            if self.following[d] < 0:
                continue
            low = lowest_sum(&weight[d, 0], &self.potential[0], self.k)
            if low - mean < self.potential[d] - rounding:
                for c in range(self.k):
                    if weight[d, c] + self.potential[c] == low:
                        self.following[d], self.potential[d] = c, low - mean
                        is_better = True
                        break
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
