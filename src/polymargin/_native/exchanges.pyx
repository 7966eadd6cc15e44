"""Exchanges of weight between two classes, on the few rows whose moves there matter.

    min g't + t'Kt   over   most_back <= t <= most_forth,   1't = 0:

row s moves t_s from one class to the other, and as both classes' gradients change by as much, the curvature counts
twice. The steps are those of sequential minimal optimisation: the row of the lowest rate goes forth, and of the
rows that go back against it by more than a threshold the one of the largest gain (R.-E. Fan, P.-H. Chen & C.-J.
Lin, Working set selection using second order information, JMLR 6, 2005). Rows that matter are few, so that what a
step goes over is short, and the parts of the kernel matrix that it asks for again and again lie together. Where
all rows take part, steps read the matrix itself.
"""

import numpy as np

cdef double WALL = 1e300
cdef double OPEN = 1e299  # what lies below is a number, what lies above is a wall
cdef enum:
    NONE = -1

cdef extern from "vectors.h" nogil:
    void pick(double* out, const double* row, const int* places, ptrdiff_t q)
    ptrdiff_t shift_and_seek(double* shift, const double* start, double step, const double* one,
                             const double* other, ptrdiff_t q, double* low)
    ptrdiff_t best_partner(const double* start, const double* shift, double low, double k_ii,
                           const double* diagonal, const double* row, double floor, double threshold, ptrdiff_t q)
    void add_four_doubles(double* out, const double* r0, const double* r1, const double* r2, const double* r3,
                          const double* a, ptrdiff_t m)
    void accumulate(double* out, double factor, const double* b, ptrdiff_t m)


cdef class Exchanges:
    """Rows between two classes, and room for what steps need; whoever takes steps writes down the rows first.

    Parameters
    ----------
    kernel : (m, m) the kernel matrix of all rows.
    floor : the least curvature.
    room : entries of the kernel matrix that are kept, at least two rows; without room for more, steps end.
    """

    def __init__(self, const double[:, ::1] kernel, double floor, Py_ssize_t room):
        cdef Py_ssize_t m = kernel.shape[0]
        self.kernel, self.floor = kernel, floor
        self.rows, self.place = np.empty(m + 1, dtype=np.intc), np.empty(m, dtype=np.intc)
        self.own, self.forth, self.back, self.most_forth, self.most_back, self.moved, self.shift = np.empty((7, m))
        self.kept = np.empty(min(max(room, 2 * m), m * m))
        self.size = self.n_kept = 0
        self.most_negative_curvature = self.visits = 0.0

    cdef Py_ssize_t take(self, double threshold, Py_ssize_t most) noexcept nogil:
        """Take steps until no violation is above the threshold; return their number."""
        cdef Py_ssize_t s, i, j, steps = 0
        cdef double low, curvature, step
        cdef const double *part_i = &self.kernel[0, 0]
        cdef const double *part_j = part_i
        self.n_kept = 0
        for s in range(self.size):
            self.place[s], self.moved[s], self.shift[s] = NONE, 0.0, 0.0
        step = 0.0
        while steps < most:
            i = shift_and_seek(&self.shift[0], &self.forth[0], 2.0 * step, part_i, part_j, self.size, &low)
            step = 0.0
            self.visits += 2.0 * self.size
            part_i = self._part(i) if low < OPEN else NULL
            if part_i == NULL:
                break
            j = best_partner(&self.back[0], &self.shift[0], low, self.own[i], &self.own[0], part_i, self.floor,
                             threshold, self.size)
            self.visits += self.size
            part_j = self._part(j) if j >= 0 else NULL
            if part_j == NULL:
                break
            curvature = self.own[i] + self.own[j] - 2.0 * part_i[j]
            self.most_negative_curvature = min(self.most_negative_curvature, curvature)
            step = (self.back[j] + self.shift[j] - low) / (2.0 * max(curvature, self.floor))
            step = min(step, min(self.most_forth[i] - self.moved[i], self.moved[j] - self.most_back[j]))
            self._move(i, step)
            self._move(j, -step)
            steps += 1
        if step != 0.0:
            shift_and_seek(&self.shift[0], &self.forth[0], 2.0 * step, part_i, part_j, self.size, &low)
        return steps

    cdef const double *_part(self, Py_ssize_t s) noexcept nogil:
        """Return a row of the kernel matrix, these rows' entries of it; NULL where there is no room for it."""
        if self.size == self.kernel.shape[0]:
            return &self.kernel[s, 0]
        if self.place[s] == NONE:
            if (self.n_kept + 1) * self.size > self.kept.shape[0]:
                return NULL
            self.place[s] = <int>self.n_kept
            self.n_kept += 1
            pick(&self.kept[self.place[s] * self.size], &self.kernel[self.rows[s], 0], &self.rows[0], self.size)
            self.visits += self.size
        return &self.kept[self.place[s] * self.size]

    cdef void _move(self, Py_ssize_t s, double step) noexcept nogil:
        """Move a row further, to its bound where it comes there, and note where it may go from there."""
        cdef double value = self.moved[s] + step
        cdef double rate = self.forth[s] if self.forth[s] < OPEN else self.back[s]
        value = min(max(value, self.most_back[s]), self.most_forth[s])
        self.moved[s] = value
        self.forth[s] = rate if value < self.most_forth[s] else WALL
        self.back[s] = rate if value > self.most_back[s] else -WALL

    cdef void change_of_rates(self, double *change) noexcept nogil:
        """Write down, for all rows, what the moves change the gradient of the class by to which rows go forth."""
        cdef Py_ssize_t s, r, count = 0, m = self.kernel.shape[0]
        cdef const double *rows[4]
        cdef double parts[4]
        if self.size == m:  # all have taken part
            for r in range(m):
                change[r] = 0.5 * self.shift[r]
            self.visits += m
            return
        for r in range(m):
            change[r] = 0.0
        for s in range(self.size):
            if self.moved[s] != 0.0:
                rows[count % 4], parts[count % 4] = &self.kernel[self.rows[s], 0], self.moved[s]
                count += 1
                if count % 4 == 0:
                    add_four_doubles(change, rows[0], rows[1], rows[2], rows[3], parts, m)
        for s in range(count % 4):
            accumulate(change, parts[s], rows[s], m)
        self.visits += (count + 1.0) * m
