"""The inner loop of the kernel solver for relative losses: Weston & Watkins, Crammer & Singer.

    min 1/2 tr(R'KR) - offset sum_i R[i, y_i]   over   lower <= R <= upper,   every row of R of zero sum,

on a working set of m rows, with every class sum of R held where it is when there is an intercept. With G the
gradient in R, a row i that can *move* from class d to class c (R_id > lower, R_ic < upper) changes the objective
at the rate G_ic - G_id. Let ``weight[d, c]`` be the lowest such rate over all rows. R is optimal

    with an intercept     iff no cycle of classes has a negative sum of weights,
    without an intercept  iff no row has a move of negative rate (a violation is then minus that rate).

The steps are *exchanges*, cycles of two classes turned by two rows, of which a pair of classes takes many at a
visit, on the rows that matter there alone (see `exchanges`); all others learn of them afterwards, once for every
row that has moved, however often it was its turn. Where these are most rows, as when nearly no coefficient is at a
bound, all take part. A visit ends where every pair could have had as many steps twice: what one pair does, others
undo, so that all come near together or not at all. Where exchanges are exhausted, the cycle of lowest mean
weight (see `cycles`), which may need as many rows as there are classes. A *violation* is minus twice the mean
weight of a cycle: for an exchange, its slope.

Of many classes there are far more pairs than steps, so that a weight is looked for again only where one of its two
classes has changed since, and only among the rows that can grow in its class, its own and those that have lost to
it, where these are few; else among all rows in their order, which vector registers take many at a time. Which row
it is whose rate is lowest is asked only of the few weights that lead to a step. A pair of classes is not looked at
where what its gradients have moved by since it was, and the rows that are newly free to move, leave its violation
below what would matter: so most of them are left alone when few are still to be improved.
"""

import numpy as np

from libc.math cimport fabs

from polymargin._native.cycles cimport CycleSearch
from polymargin._native.exchanges cimport Exchanges

cdef double WALL = 1e300
cdef double OPEN = 1e299  # what lies below is a number, what lies above is a wall
cdef double SNAP = 1e-15
cdef Py_ssize_t TURNS = 5      # that a row takes by itself at a visit, at most
cdef Py_ssize_t LONG = 3       # exchanges of a pair of classes at a visit, at most, times the rows that matter
cdef double WORTHWHILE = 0.3   # part of a violation that is worth another look, or a step at the same visit
cdef double PART = 0.5         # of its share of all steps, that a pair of classes may take at a visit
cdef double WHOLE = 0.5        # part of all rows; where more matter, none are laid together: all take part
cdef Py_ssize_t AT_ONCE = 6  # rows in their order that take as long as one that has to be looked up
cdef enum:
    NONE = -1
    UNASKED = -2

cdef extern from "vectors.h" nogil:
    double lowest_rate(const double* up, const double* down, ptrdiff_t m)
    ptrdiff_t rows_below(const double* up, const double* down, const double* up_other, const double* down_other,
                         ptrdiff_t m, double forth, double back, int* rows)
    void moves_between(const double* up, const double* down, const double* up_other, const double* down_other,
                       const double* coefficient, const double* lower, const double* upper,
                       const double* coefficient_other, const double* lower_other, const double* upper_other,
                       const int* rows, ptrdiff_t q, double* forth, double* back, double* most_forth,
                       double* most_back)
    void shift_rows(double* up, double* down, double* up_other, double* down_other, const double* change,
                    ptrdiff_t m, double* fallen, double* risen)
    void exchange_rows(double* up, double* down, double step, const double* one, const double* other, ptrdiff_t m,
                       double* fallen, double* risen)


cdef void scan_moves(const double *up, const double *down, const int *rows, Py_ssize_t count, double *lowest,
                     Py_ssize_t *mover) noexcept nogil:
    """Find the lowest rate of a move among some rows: the smallest up[r] - down[r], and its row."""
    cdef double rate, low = WALL
    cdef Py_ssize_t s, r, best = -1
    for s in range(count):
        r = rows[s]
        rate = up[r] - down[r]
        if rate < low:
            low = rate
            best = r
    lowest[0] = low
    mover[0] = best


def class_moves(const double[:, ::1] up, const double[:, ::1] down):
    """Return the lowest rate ``weight[d, c]`` of a move from class d to class c over all rows, and its row.

    Parameters
    ----------
    up, down : (k, n) the gradient where the coefficient may grow (else 1e300), or shrink (else -1e300).
    """
    cdef Py_ssize_t k = up.shape[0], n = up.shape[1], c, d, r, count
    weights = np.full((k, k), WALL)
    movers = np.full((k, k), -1, dtype=np.intp)
    cdef double[:, ::1] weight = weights
    cdef Py_ssize_t[:, ::1] mover = movers
    cdef int[::1] rows = np.empty(n, dtype=np.intc)
    with nogil:
        for c in range(k):
            count = 0
            for r in range(n):  # few of many rows can grow in a class
                if up[c, r] < OPEN:
                    rows[count] = <int>r
                    count += 1
            for d in range(k):
                if c != d and count:
                    scan_moves(&up[c, 0], &down[d, 0], &rows[0], count, &weight[d, c], &mover[d, c])
    return weights, movers


cdef class Looks(CycleSearch):
    """The search for a cycle of classes that looks at the moves of rows between two of them when it needs to."""

    cdef RelativeWorkingSet rows

    cdef bint knows(self, Py_ssize_t d, Py_ssize_t c) noexcept nogil:
        return self.rows.look(d, c)


cdef class RelativeWorkingSet:
    """Rows of the working set, kept class by class so that the long loops run over rows.

    Parameters
    ----------
    kernel : (m, m) the kernel matrix of the rows.
    lower, upper : (k, m) bounds of the coefficients, -1e300 and 1e300 for none.
    coefficients : (k, m) R, changed in place.
    gradient : (k, m) G at the start.
    intercept : whether the class sums are held.
    room : entries of the kernel matrix that are laid together for the exchanges of a pair of classes: what lies
        near while steps go over it again and again.
    """

    cdef const double[:, ::1] kernel
    cdef const double[:, ::1] lower
    cdef const double[:, ::1] upper
    cdef double[:, ::1] coefficients
    cdef double[:, ::1] up, down  # the gradient where the coefficient may grow, or shrink; else walls
    cdef double[:, ::1] weight
    cdef double[::1] diagonal
    cdef int[:, ::1] open_rows  # of every class, in ascending order, the rows whose coefficient may grow
    cdef Py_ssize_t[::1] n_open
    cdef double[::1] fallen, risen   # how far the entries of a class's gradient can have come down, and up, in all
    cdef double[:, ::1] bound        # of an arc d to c, no more than its weight + fallen[c] + risen[d]
    cdef double[:, ::1] both         # of c and d < c, the bounds of both arcs in one
    cdef Py_ssize_t[::1] changed  # when a class was changed last, in looks at arcs
    cdef Py_ssize_t[:, ::1] looked  # when an arc was looked at last
    cdef Py_ssize_t now
    cdef Py_ssize_t[:, ::1] mover
    cdef Looks search
    cdef Exchanges pair
    cdef double[::1] change  # of a class's gradient, for all rows
    cdef Py_ssize_t m, k
    cdef bint intercept
    cdef Py_ssize_t part  # of all steps: what a pair of classes may take at a visit
    cdef double floor
    cdef double lowest_bend, visits

    def __init__(self, const double[:, ::1] kernel, const double[:, ::1] lower, const double[:, ::1] upper,
                 double[:, ::1] coefficients, const double[:, ::1] gradient, bint intercept,
                 Py_ssize_t room=2**19):
        self.kernel, self.lower, self.upper = kernel, lower, upper
        self.coefficients = coefficients
        self.intercept = intercept
        self.k, self.m = lower.shape[0], lower.shape[1]
        self.up = np.where(np.less(coefficients, upper), gradient, WALL)
        self.down = np.where(np.greater(coefficients, lower), gradient, -WALL)
        self.diagonal = np.diagonal(kernel).copy()
        self.weight = np.full((self.k, self.k), WALL)
        self.mover = np.empty((self.k, self.k), dtype=np.intp)
        self.search = Looks(self.k)
        self.looked, self.changed = np.zeros((self.k, self.k), dtype=np.intp), np.ones(self.k, dtype=np.intp)
        self.now = 1
        self.fallen, self.risen = self.search.fallen, self.search.risen
        self.bound, self.both = np.full((self.k, self.k), -WALL), np.full((self.k, self.k), -WALL)
        np.fill_diagonal(self.bound.base, WALL)
        self.open_rows = np.zeros((self.k, self.m), dtype=np.intc)
        self.n_open = np.zeros(self.k, dtype=np.intp)
        self.list_open_rows()
        self.floor = 1e-12 * max(1e-300, np.max(np.abs(self.diagonal)))
        self.pair, self.change = Exchanges(kernel, self.floor, room), np.empty(self.m)
        self.lowest_bend = self.visits = 0.0

    @property
    def most_negative_curvature(self):
        """The lowest curvature that steps have met."""
        return min(self.lowest_bend, self.pair.most_negative_curvature)

    @property
    def entries(self):
        """Entries that the loops went over."""
        return self.visits + self.pair.visits

    def improve(self, double reduction, Py_ssize_t max_steps):
        """Take steps until the violation has fallen by the factor `reduction`; return their number."""
        cdef Py_ssize_t steps = 0
        cdef double violation, tolerance, threshold
        self.part = 1 + <Py_ssize_t>(PART * max_steps) // max(self.k * (self.k - 1) // 2, 1)
        self.search.rows = self  # for as long as it takes: two objects that hold each other would stay
        with nogil:
            violation = self.worst_cycle() if self.intercept else self.sweep_rows(WALL, max_steps, &steps)
            tolerance = reduction * violation
            while violation > tolerance and steps < max_steps:
                # leave what is small beside the worst of the last sweep
                threshold = max(tolerance, WORTHWHILE * violation)
                violation = self.sweep_pairs(threshold, max_steps, &steps)
                if not self.intercept:
                    violation = self.sweep_rows(threshold, max_steps, &steps)
                elif violation <= tolerance and steps < max_steps:
                    violation = self.worst_cycle()
                    if violation > tolerance:
                        self.turn_cycle()
                        steps += 1
        self.search.rows = None
        return steps

    cdef double sweep_pairs(self, double threshold, Py_ssize_t max_steps, Py_ssize_t *steps) noexcept nogil:
        """Visit every pair of classes for exchanges; return the largest violation met on arrival."""
        cdef double violation, worst = 0.0
        cdef Py_ssize_t c, d, turn, first = 0
        for turn in range(self.search.size):  # the worst that is known, which an earlier loop may not have come to
            first = max(first, self.search.cycle[turn])
        for turn in range(self.k):
            c = (first + turn) % self.k
            self.visits += c
            for d in range(c):
                violation = self.fallen[c] + self.risen[c] + self.fallen[d] + self.risen[d] - self.both[c, d]
                if violation <= threshold and violation <= worst:  # no less than it is
                    continue
                if steps[0] >= max_steps:
                    return worst
                worst = max(worst, self.exchange(c, d, threshold, max_steps - steps[0], steps))
        return worst

    cdef double sweep_rows(self, double threshold, Py_ssize_t max_steps, Py_ssize_t *steps) noexcept nogil:
        """Visit every row for a few moves of its own; return the largest violation met on arrival."""
        cdef double violation, worst = 0.0
        cdef Py_ssize_t r, turn
        for r in range(self.m):
            for turn in range(TURNS):
                if steps[0] >= max_steps:
                    return worst
                violation = self.move_alone(r, threshold)
                if turn == 0:
                    worst = max(worst, violation)
                if violation <= threshold:
                    break
                steps[0] += 1
        return worst

    cdef double exchange(self, Py_ssize_t c, Py_ssize_t d, double threshold, Py_ssize_t most,
                         Py_ssize_t *steps) noexcept nogil:
        """Let rows exchange weight between two classes; return the violation of the pair on arrival."""
        cdef double violation
        self.look(d, c)
        self.look(c, d)
        self.visits += 1.0
        if self.weight[d, c] > OPEN or self.weight[c, d] > OPEN:
            return 0.0
        violation = -(self.weight[d, c] + self.weight[c, d])
        if violation > threshold:
            self.choose_rows(c, d)
            steps[0] += self.pair.take(WORTHWHILE * threshold, min(most, LONG * self.pair.size, self.part))
            self.take_over(c, d)
        return violation

    cdef void choose_rows(self, Py_ssize_t c, Py_ssize_t d) noexcept nogil:
        """Write down the rows that move from d to c, or back, at a rate below zero with another one's."""
        cdef Py_ssize_t s, r
        self.pair.size = rows_below(&self.up[c, 0], &self.down[d, 0], &self.up[d, 0], &self.down[c, 0], self.m,
                                    -self.weight[c, d], -self.weight[d, c], &self.pair.rows[0])
        if self.pair.size > WHOLE * self.m:  # they would be written and read once, and others still have to learn
            self.pair.size = self.m
            for r in range(self.m):
                self.pair.rows[r] = <int>r
        for s in range(self.pair.size):
            self.pair.own[s] = self.diagonal[self.pair.rows[s]]
        moves_between(&self.up[c, 0], &self.down[c, 0], &self.up[d, 0], &self.down[d, 0], &self.coefficients[c, 0],
                      &self.lower[c, 0], &self.upper[c, 0], &self.coefficients[d, 0], &self.lower[d, 0],
                      &self.upper[d, 0], &self.pair.rows[0], self.pair.size, &self.pair.forth[0],
                      &self.pair.back[0], &self.pair.most_forth[0], &self.pair.most_back[0])
        self.visits += 2.0 * self.m / AT_ONCE + self.pair.size

    cdef void take_over(self, Py_ssize_t c, Py_ssize_t d) noexcept nogil:
        """Bring gradients and coefficients to where the rows of the pair have moved."""
        cdef Py_ssize_t s
        cdef double fallen, risen
        self.pair.change_of_rates(&self.change[0])
        self.touch(c)
        self.touch(d)
        shift_rows(&self.up[c, 0], &self.down[c, 0], &self.up[d, 0], &self.down[d, 0], &self.change[0], self.m,
                   &fallen, &risen)
        self.fallen[c] += fallen
        self.risen[c] += risen
        self.fallen[d] += risen
        self.risen[d] += fallen
        self.visits += 4.0 * self.m
        for s in range(self.pair.size):
            if self.pair.moved[s] != 0.0:
                self.place(c, self.pair.rows[s], self.pair.moved[s])
                self.place(d, self.pair.rows[s], -self.pair.moved[s])

    cdef void list_open_rows(self) noexcept nogil:
        """Write down which rows may grow in which class."""
        cdef Py_ssize_t c, r
        for c in range(self.k):
            self.n_open[c] = 0
            for r in range(self.m):
                if self.coefficients[c, r] < self.upper[c, r]:
                    self.open_rows[c, self.n_open[c]] = <int>r
                    self.n_open[c] += 1

    cdef bint look(self, Py_ssize_t d, Py_ssize_t c) noexcept nogil:
        """Find the best move from class d to class c; tell whether neither has changed since it was found last."""
        if self.looked[d, c] >= self.changed[c] and self.looked[d, c] >= self.changed[d]:
            return True
        self.looked[d, c] = self.now
        self.seek(d, c)
        self.note(d, c, self.weight[d, c])
        return False

    cdef void note(self, Py_ssize_t d, Py_ssize_t c, double weight) noexcept nogil:
        """Write down what bounds the weight of an arc from below until one of its classes moves."""
        cdef double *both = &self.both[c, d] if d < c else &self.both[d, c]
        self.bound[d, c] = weight + self.fallen[c] + self.risen[d]
        both[0] = self.bound[d, c] + self.bound[c, d]

    cdef void seek(self, Py_ssize_t d, Py_ssize_t c) noexcept nogil:
        """Find the best move from class d to class c."""
        if AT_ONCE * self.n_open[c] > self.m:
            self.weight[d, c] = lowest_rate(&self.up[c, 0], &self.down[d, 0], self.m)
            self.mover[d, c] = UNASKED
            self.visits += <double>self.m / AT_ONCE
            return
        scan_moves(&self.up[c, 0], &self.down[d, 0], &self.open_rows[c, 0], self.n_open[c], &self.weight[d, c],
                   &self.mover[d, c])
        self.visits += self.n_open[c]

    cdef Py_ssize_t ask(self, Py_ssize_t d, Py_ssize_t c) noexcept nogil:
        """Return the row of the best move from class d to class c, which has been looked for."""
        cdef Py_ssize_t r
        if self.mover[d, c] == UNASKED:
            self.mover[d, c] = NONE
            for r in range(self.m if self.weight[d, c] < OPEN else 0):
                if self.up[c, r] - self.down[d, r] == self.weight[d, c]:
                    self.mover[d, c] = r
                    break
            self.visits += self.m / 2
        return self.mover[d, c]

    cdef double worst_cycle(self) noexcept nogil:
        """Find the cycle of lowest mean weight; return its violation."""
        cdef double mean, visits = self.search.visits
        mean = self.search.find_again(self.weight, self.bound)
        self.visits += self.search.visits - visits
        return max(-2.0 * mean, 0.0)

    cdef void turn_cycle(self) noexcept nogil:
        """Step along the cycle of `worst_cycle`: in each class one row brings weight, the next takes it on."""
        cdef Py_ssize_t s, c, d, i, j, size = self.search.size
        cdef Py_ssize_t[::1] cycle = self.search.cycle
        cdef double slope = 0.0, curvature = 0.0, step = WALL
        for s in range(size):
            d, c = cycle[s], cycle[(s + 1) % size]
            i, j = self.ask(d, c), self.ask(c, cycle[(s + 2) % size])
            slope -= self.weight[d, c]
            curvature += self.bend(i, j)
            step = min(step, self.room(c, d, i))
        step = min(step, slope / curvature)
        for s in range(size):
            d, c = cycle[s], cycle[(s + 1) % size]
            i, j = self.mover[d, c], self.mover[c, cycle[(s + 2) % size]]
            self.add(c, i, j, step)
            self.place(c, i, step)
            self.place(c, j, -step)
        self.visits += 2.0 * size * self.m

    cdef double move_alone(self, Py_ssize_t i, double threshold) noexcept nogil:
        """No intercept: take the best move of one row; return its violation, minus its rate."""
        cdef Py_ssize_t r, c, best = -1, worst = -1
        cdef double violation, step, most = 0.0
        cdef const double *row_i = &self.kernel[i, 0]
        for c in range(self.k):
            if self.up[c, i] < OPEN and (best < 0 or self.up[c, i] < self.up[best, i]):
                best = c
            if self.down[c, i] > -OPEN and (worst < 0 or self.down[c, i] > self.down[worst, i]):
                worst = c
        self.visits += 2.0 * self.k
        if best < 0 or worst < 0:
            return 0.0
        violation = self.down[worst, i] - self.up[best, i]
        if violation <= threshold:
            return violation
        self.lowest_bend = min(self.lowest_bend, self.diagonal[i])
        step = violation / (2.0 * max(self.diagonal[i], self.floor))
        step = min(step, self.room(best, worst, i))
        self.touch(best)
        self.touch(worst)
        for r in range(self.m):
            self.up[best, r] += step * row_i[r]
            self.down[best, r] += step * row_i[r]
            self.up[worst, r] -= step * row_i[r]
            self.down[worst, r] -= step * row_i[r]
            most = max(most, fabs(row_i[r]))
        self.fallen[best] += step * most
        self.risen[best] += step * most
        self.fallen[worst] += step * most
        self.risen[worst] += step * most
        self.place(best, i, step)
        self.place(worst, i, -step)
        self.visits += 4.0 * self.m
        return violation

    cdef double bend(self, Py_ssize_t i, Py_ssize_t j) noexcept nogil:
        """Curvature of a class whose rows i and j exchange weight."""
        cdef double curvature = self.diagonal[i] + self.diagonal[j] - 2.0 * self.kernel[i, j]
        self.lowest_bend = min(self.lowest_bend, curvature)
        return max(curvature, self.floor)

    cdef double room(self, Py_ssize_t c, Py_ssize_t d, Py_ssize_t r) noexcept nogil:
        """How far row r can move from class d to class c."""
        return min(self.upper[c, r] - self.coefficients[c, r], self.coefficients[d, r] - self.lower[d, r])

    cdef void add(self, Py_ssize_t c, Py_ssize_t i, Py_ssize_t j, double step) noexcept nogil:
        """Change the gradient of class c, to which row i brings `step` and from which row j takes it."""
        cdef double fallen, risen
        self.touch(c)
        exchange_rows(&self.up[c, 0], &self.down[c, 0], step, &self.kernel[i, 0], &self.kernel[j, 0], self.m,
                      &fallen, &risen)
        self.fallen[c] += fallen
        self.risen[c] += risen

    cdef void touch(self, Py_ssize_t c) noexcept nogil:
        """Note that the gradient of class c changes: what was found by it is to be found again."""
        self.now += 1
        self.changed[c] = self.now

    cdef void place(self, Py_ssize_t c, Py_ssize_t r, double step) noexcept nogil:
        """Add `step` to R_rc, put it on its bound where it is there to rounding, and note where it may go."""
        cdef double value = self.coefficients[c, r] + step
        cdef double low = self.lower[c, r], high = self.upper[c, r]
        cdef double gradient = self.up[c, r] if self.up[c, r] < OPEN else self.down[c, r]
        cdef bint may_grow, may_shrink
        cdef double rounding = SNAP * max(-low if low > -OPEN else 0.0, high if high < OPEN else 0.0)
        if value <= low + rounding:
            value = low
        elif value >= high - rounding:
            value = high
        if (value < high) != (self.coefficients[c, r] < high):
            self.toggle(c, r)
        self.coefficients[c, r] = value
        may_grow, may_shrink = self.up[c, r] > OPEN and value < high, self.down[c, r] < -OPEN and value > low
        self.up[c, r], self.down[c, r] = gradient if value < high else WALL, gradient if value > low else -WALL
        if may_grow or may_shrink:
            self.offer(c, r, may_grow, may_shrink)

    cdef void offer(self, Py_ssize_t c, Py_ssize_t r, bint may_grow, bint may_shrink) noexcept nogil:
        """Let the bounds of arcs know that row r may now grow in class c, or shrink."""
        cdef Py_ssize_t d
        cdef double rate
        for d in range(self.k):
            rate = self.up[c, r] - self.down[d, r]
            if may_grow and d != c and rate + self.fallen[c] + self.risen[d] < self.bound[d, c]:
                self.note(d, c, rate)
            rate = self.up[d, r] - self.down[c, r]
            if may_shrink and d != c and rate + self.fallen[d] + self.risen[c] < self.bound[c, d]:
                self.note(c, d, rate)
        self.visits += self.k

    cdef void toggle(self, Py_ssize_t c, Py_ssize_t r) noexcept nogil:
        """Put row r among those that may grow in class c, or take it out; their order stays."""
        cdef int *rows = &self.open_rows[c, 0]
        cdef Py_ssize_t count = self.n_open[c], s = count
        while s > 0 and rows[s - 1] >= r:
            s -= 1
        if s < count and rows[s] == r:
            for s in range(s, count - 1):
                rows[s] = rows[s + 1]
            self.n_open[c] = count - 1
            return
        for count in range(count, s, -1):
            rows[count] = rows[count - 1]
        rows[s] = <int>r
        self.n_open[c] += 1
