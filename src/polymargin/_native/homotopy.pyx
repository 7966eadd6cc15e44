"""Exchanges of the parametric dual simplex method for the sparse machines (`solvers.homotopy`).

    K v_basic = lambda [0; signs * costs] - (what the hinges at their upper bounds contribute),   K' y = offsets,

K holds the entries of the basic hinges in the rows of the k - 1 intercepts and of the tight atoms, in this order,
and `inverse` its inverse. While lambda falls v moves along a line until a multiplier reaches a bound or another
atom becomes tight; y, the intercepts and the coefficients of the atoms, then moves until an atom's coefficient or
a hinge's margin is zero, which names what to exchange. Stops at the target, after a number of exchanges, or where
a pivot cannot be trusted. The caller computes everything afresh now and then.
"""

from libc.math cimport fabs, INFINITY

from polymargin._native.atoms cimport (
    MOST_CLASSES, steepest_cut, steepest_pair, steepest_prefix, steepest_signs
)

cdef extern from "vectors.h" nogil:
    void accumulate(double *out, double factor, const double *b, Py_ssize_t m)
    double inner(const double *a, const double *b, Py_ssize_t m)

ARRIVED, EXCHANGED, LOST = range(3)
LASSO, SUPNORM, FUSION, WEIGHTED_FUSION = range(4)
MAX_CLASSES = MOST_CLASSES
cdef int _ARRIVED = 0, _EXCHANGED = 1, _LOST = 2
cdef int _LASSO = 0, _SUPNORM = 1, _FUSION = 2
cdef double SMALLEST_PIVOT = 1e-9   # relative to the largest entry of its line
cdef double TIGHT = 1e-10           # relative excess below which an atom is not violated
cdef int MAX_CUTBACKS = 100


cdef class Walk:
    """A vertex on its way; every array is the caller's, and changed in place."""

    cdef public Py_ssize_t n_basic
    cdef public double weight
    cdef readonly Py_ssize_t n_steps
    cdef Py_ssize_t n, p, n_hinges
    cdef int k, kind
    # the data: X both ways round, and the hinges
    cdef const double[:, ::1] X, columns, sees, table
    cdef const Py_ssize_t[::1] example
    cdef const double[::1] upper
    # the vertex, with room for more atoms than there are
    cdef Py_ssize_t[::1] basic, variables
    cdef unsigned char[::1] at_upper, is_basic
    cdef double[:, ::1] inverse, directions, G
    cdef double[::1] values, multipliers, margins, costs, signs
    # scratch
    cdef double[:, ::1] dR, dG, scores
    cdef double[::1] moves, line, delta, slopes, row, sums
    cdef double[::1] new_direction
    cdef Py_ssize_t[::1] suspects

    def __init__(self, data, vertex, state, scratch):
        self.X, self.columns, self.example, self.sees, self.upper, self.kind, self.table = data
        (self.basic, self.at_upper, self.is_basic, self.variables, self.directions, self.costs,
         self.signs) = vertex
        self.inverse, self.values, self.G, self.multipliers, self.margins = state
        (self.dR, self.dG, self.scores, self.moves, self.line, self.delta, self.slopes, self.row, self.sums,
         self.new_direction, self.suspects) = scratch
        self.n, self.p = self.X.shape[0], self.X.shape[1]
        self.n_hinges, self.k = self.example.shape[0], self.sees.shape[1]
        self.n_steps = 0

    def advance(self, double target, Py_ssize_t max_steps):
        """Make at most `max_steps` exchanges on the way to the target; return ARRIVED, EXCHANGED or LOST."""
        cdef Py_ssize_t _step
        cdef int status = _EXCHANGED
        with nogil:
            for _step in range(max_steps):
                status = self.exchange(target)
                if status != _EXCHANGED:
                    break
                self.n_steps += 1
        return status

    cdef int exchange(self, double target) noexcept nogil:
        """Move to the next vertex."""
        cdef Py_ssize_t q, c, h, m = self.n_basic, leaving = 0, entering
        cdef double step, room, sign = 0.0, cost = 0.0
        for q in range(self.k - 1):
            self.line[q] = 0.0
        for q in range(self.k - 1, m):
            self.line[q] = -self.signs[q] * self.costs[q]
        step = INFINITY
        for q in range(m):
            h = self.basic[q]
            self.moves[q] = inner(&self.inverse[q, 0], &self.line[0], m)
            if self.moves[q] < 0.0:
                room = -self.values[h] / self.moves[q]
            elif self.moves[q] > 0.0:
                room = (self.upper[h] - self.values[h]) / self.moves[q]
            else:
                continue
            if room < step:
                step = room
                leaving = q
        step = max(0.0, min(step, self.weight - target))
        self.correlate()
        entering = self.first_tight(&step, &sign, &cost)
        if entering < 0 and step >= self.weight - target:
            return _ARRIVED
        for q in range(m):
            self.values[self.basic[q]] += step * self.moves[q]
        for c in range(self.k):
            accumulate(&self.G[c, 0], step, &self.dG[c, 0], self.p)
        self.weight -= step
        if entering < 0:
            return self.release(leaving)
        return self.tighten(entering, sign, cost)

    cdef void correlate(self) noexcept nogil:
        """Write to dG what the moves of the basic hinges do to G."""
        cdef Py_ssize_t q, c, h, i
        self.dR[:, :] = 0.0
        self.dG[:, :] = 0.0
        for q in range(self.n_basic):
            h = self.basic[q]
            for c in range(self.k):
                self.dR[self.example[h], c] += self.moves[q] * self.sees[h, c]
        for i in range(self.n):
            for c in range(self.k):
                if self.dR[i, c] != 0.0:
                    accumulate(&self.dG[c, 0], self.dR[i, c], &self.X[i, 0], self.p)

    cdef Py_ssize_t first_tight(self, double* step, double* sign, double* cost) noexcept nogil:
        """Shorten the step until no atom is violated; return the variable of the one that is tight then, or -1.

        From the right, by Newton's method: a polar is convex along the line, and variables that are not violated
        at a longer step are not at a shorter one.
        """
        cdef Py_ssize_t j, s, c, n_suspects = self.p, n_left, winner = -1, found
        cdef int _turn
        cdef double weight, now, rate, side, new, best, its_cost
        cdef double[MOST_CLASSES] direction
        for j in range(self.p):
            self.suspects[j] = j
        for _turn in range(MAX_CUTBACKS):
            weight = self.weight - step[0]
            n_left, best, found = 0, step[0], -1
            for s in range(n_suspects):
                j = self.suspects[s]
                if self.best_atom(j, step[0], direction, &its_cost) <= weight * (1.0 + TIGHT):
                    continue
                self.suspects[n_left] = j
                n_left += 1
                now, rate = 0.0, 0.0
                for c in range(self.k):
                    now += direction[c] * self.G[c, j]
                    rate += direction[c] * self.dG[c, j]
                side = 1.0 if now + step[0] * rate > 0.0 else -1.0
                now, rate = side * now, side * rate + its_cost
                new = max((self.weight * its_cost - now) / rate, 0.0) if rate > 0.0 else best
                if new < best:
                    best, found = new, j
                    sign[0], cost[0] = side, its_cost
                    for c in range(self.k):
                        self.new_direction[c] = direction[c]
            if found < 0:
                break
            step[0], winner, n_suspects = best, found, n_left
            if best == 0.0:
                break
        return winner

    cdef double best_atom(self, Py_ssize_t j, double step, double* direction, double* cost) noexcept nogil:
        """Write the steepest atom of variable j after a step, and return its polar."""
        cdef int c
        cdef double[MOST_CLASSES] g
        for c in range(self.k):
            g[c] = self.G[c, j] + step * self.dG[c, j]
            direction[c] = 0.0
        if self.kind == _LASSO:
            return steepest_pair(g, self.k, self.table, j, direction, cost)
        if self.kind == _SUPNORM:
            return steepest_signs(g, self.k, self.table, j, direction, cost)
        if self.kind == _FUSION:
            return steepest_prefix(g, self.k, direction, cost)
        return steepest_cut(g, self.k, self.table, j, &self.sums[0], direction, cost)

    cdef int release(self, Py_ssize_t leaving) noexcept nogil:
        """A basic hinge has reached a bound: its margin is let go, until something else is exchanged."""
        cdef Py_ssize_t q, stop, h = self.basic[leaving], m = self.n_basic
        cdef double side = 1.0 if self.moves[leaving] > 0.0 else -1.0
        # the margin grows at the upper bound and falls at the lower one
        for q in range(m):
            self.delta[q] = -side * self.inverse[leaving, q]
        self.slope_of_margins()
        stop = self.dual_step()
        if stop == m + self.n_hinges:
            return _LOST
        self.at_upper[h], self.is_basic[h] = side > 0.0, False
        self.values[h] = self.upper[h] if side > 0.0 else 0.0
        if stop < m:
            return self.drop(stop, leaving)
        return self.replace_hinge(leaving, stop - m)

    cdef int tighten(self, Py_ssize_t j, double sign, double cost) noexcept nogil:
        """An atom has become tight: its coefficient grows until something is exchanged for it."""
        cdef Py_ssize_t q, c, h, stop, m = self.n_basic
        cdef double total
        for h in range(self.n_hinges):
            total = 0.0
            for c in range(self.k):
                total += self.sees[h, c] * self.new_direction[c]
            self.row[h] = total * self.columns[j, self.example[h]]
        for q in range(m):
            self.line[q] = 0.0
        for q in range(m):
            accumulate(&self.line[0], self.row[self.basic[q]], &self.inverse[q, 0], m)
        for q in range(m):
            self.delta[q] = -sign * self.line[q]
        self.slope_of_margins()
        for h in range(self.n_hinges):
            self.slopes[h] -= sign * self.row[h]
        stop = self.dual_step()
        if stop == m + self.n_hinges:
            return _LOST
        if stop < m:
            return self.replace_atom(stop, j, sign, cost)
        return self.grow(stop - m, j, sign, cost)

    cdef void slope_of_margins(self) noexcept nogil:
        """Write how the margins of all hinges change with y along delta."""
        cdef Py_ssize_t q, c, h, i
        cdef double total
        for c in range(self.k):
            for i in range(self.n):
                self.scores[c, i] = self.delta[c] if c < self.k - 1 else 0.0
        for q in range(self.k - 1, self.n_basic):
            for c in range(self.k):
                if self.directions[q, c] != 0.0:
                    accumulate(
                        &self.scores[c, 0], self.delta[q] * self.directions[q, c],
                        &self.columns[self.variables[q], 0], self.n
                    )
        for h in range(self.n_hinges):
            total = 0.0
            for c in range(self.k):
                total -= self.sees[h, c] * self.scores[c, self.example[h]]
            self.slopes[h] = total

    cdef Py_ssize_t dual_step(self) noexcept nogil:
        """Move y along delta until an atom (its position) or a hinge (n_basic + its number) stops it."""
        cdef Py_ssize_t q, h, m = self.n_basic, stop = m + self.n_hinges
        cdef double length = INFINITY, scale = 0.0, rate, reach
        for q in range(m):
            scale = max(scale, fabs(self.delta[q]))
        for h in range(self.n_hinges):
            scale = max(scale, fabs(self.slopes[h]))
        scale *= SMALLEST_PIVOT
        for q in range(self.k - 1, m):
            rate = -self.signs[q] * self.delta[q]
            if rate > scale:
                reach = max(self.signs[q] * self.multipliers[q], 0.0) / rate
                if reach < length:
                    length, stop = reach, q
        for h in range(self.n_hinges):
            # margins are positive at the upper bound and negative at the lower one
            rate = -self.slopes[h] if self.at_upper[h] else self.slopes[h]
            if rate > scale and not self.is_basic[h]:
                reach = max(self.margins[h] if self.at_upper[h] else -self.margins[h], 0.0) / rate
                if reach < length:
                    length, stop = reach, m + h
        if stop < m + self.n_hinges:
            accumulate(&self.multipliers[0], length, &self.delta[0], m)
            accumulate(&self.margins[0], length, &self.slopes[0], self.n_hinges)
            self.line[m] = length
        return stop

    cdef bint is_safe(self, double pivot, const double* line, Py_ssize_t m) noexcept nogil:
        cdef Py_ssize_t q
        cdef double largest = 0.0
        for q in range(m):
            largest = max(largest, fabs(line[q]))
        return fabs(pivot) > SMALLEST_PIVOT * largest

    cdef void name(self, Py_ssize_t position, Py_ssize_t j, double sign, double cost) noexcept nogil:
        """Put the entering atom at a position."""
        cdef Py_ssize_t c
        self.variables[position], self.costs[position], self.signs[position] = j, cost, sign
        for c in range(self.k):
            self.directions[position, c] = self.new_direction[c]

    cdef double entry(self, Py_ssize_t h, Py_ssize_t q) noexcept nogil:
        """Return the entry of a hinge in row q of the kernel."""
        cdef Py_ssize_t c
        cdef double total = 0.0
        if q < self.k - 1:
            return self.sees[h, q]
        for c in range(self.k):
            total += self.sees[h, c] * self.directions[q, c]
        return total * self.columns[self.variables[q], self.example[h]]

    cdef void express(self, Py_ssize_t h) noexcept nogil:
        """Write a hinge's column in terms of the basic ones to `moves`."""
        cdef Py_ssize_t q, m = self.n_basic
        for q in range(m):
            self.delta[q] = self.entry(h, q)
        for q in range(m):
            self.moves[q] = inner(&self.inverse[q, 0], &self.delta[0], m)

    cdef int drop(self, Py_ssize_t atom, Py_ssize_t leaving) noexcept nogil:
        """Remove a tight atom and a basic hinge; the last ones take their places."""
        cdef Py_ssize_t q, c, last = self.n_basic - 1
        cdef double pivot = self.inverse[leaving, atom]
        if not self.is_safe(pivot, &self.inverse[leaving, 0], last + 1):
            return _LOST
        for q in range(last + 1):
            if q != leaving:
                accumulate(
                    &self.inverse[q, 0], -self.inverse[q, atom] / pivot, &self.inverse[leaving, 0], last + 1
                )
        for q in range(last + 1):
            self.inverse[leaving, q] = self.inverse[last, q]
        for q in range(last + 1):
            self.inverse[q, atom] = self.inverse[q, last]
        self.basic[leaving] = self.basic[last]
        self.variables[atom], self.costs[atom] = self.variables[last], self.costs[last]
        self.signs[atom], self.multipliers[atom] = self.signs[last], self.multipliers[last]
        for c in range(self.k):
            self.directions[atom, c] = self.directions[last, c]
        self.n_basic = last
        return _EXCHANGED

    cdef int replace_hinge(self, Py_ssize_t leaving, Py_ssize_t hinge) noexcept nogil:
        cdef Py_ssize_t q, m = self.n_basic
        cdef double pivot
        self.express(hinge)
        pivot = self.moves[leaving]
        if not self.is_safe(pivot, &self.moves[0], m):
            return _LOST
        for q in range(m):
            self.inverse[leaving, q] /= pivot
        for q in range(m):
            if q != leaving:
                accumulate(&self.inverse[q, 0], -self.moves[q], &self.inverse[leaving, 0], m)
        self.basic[leaving] = hinge
        self.is_basic[hinge], self.at_upper[hinge] = True, False
        return _EXCHANGED

    cdef int replace_atom(self, Py_ssize_t atom, Py_ssize_t j, double sign, double cost) noexcept nogil:
        cdef Py_ssize_t q, m = self.n_basic
        cdef double pivot = self.line[atom]
        if not self.is_safe(pivot, &self.line[0], m):
            return _LOST
        self.multipliers[atom] = sign * self.line[m]
        self.line[atom] -= 1.0
        for q in range(m):
            accumulate(&self.inverse[q, 0], -self.inverse[q, atom] / pivot, &self.line[0], m)
        self.name(atom, j, sign, cost)
        return _EXCHANGED

    cdef int grow(self, Py_ssize_t hinge, Py_ssize_t j, double sign, double cost) noexcept nogil:
        """Add a tight atom and a basic hinge."""
        cdef Py_ssize_t q, m = self.n_basic
        cdef double schur, length = self.line[m]
        if m == self.basic.shape[0]:
            return _LOST
        self.express(hinge)
        schur = self.row[hinge]
        for q in range(m):
            schur -= self.row[self.basic[q]] * self.moves[q]
        if not fabs(schur) > SMALLEST_PIVOT * fabs(self.row[hinge]):
            return _LOST
        self.line[m] = -1.0
        for q in range(m):
            self.inverse[q, m] = 0.0
            accumulate(&self.inverse[q, 0], self.moves[q] / schur, &self.line[0], m + 1)
        for q in range(m + 1):
            self.inverse[m, q] = -self.line[q] / schur
        self.name(m, j, sign, cost)
        self.multipliers[m] = sign * length
        self.basic[m] = hinge
        self.is_basic[hinge], self.at_upper[hinge] = True, False
        self.n_basic = m + 1
        return _EXCHANGED
