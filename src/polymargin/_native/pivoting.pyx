"""Block principal pivoting for many small bounded quadratic programs.

    min 1/2 m'Qm - r'm   over   lower <= m <= upper,   Q positive definite.

A guess of which variables are at a bound gives m by one Cholesky factorisation of the free ones; variables that
break a bound, or whose slope says that they should leave it, change sides, all at once. Where that has not reduced
their number `patience` times in a row, only the last of them does, until it has (Murty's rule: it cannot cycle).
Stops when no variable is on the wrong side: an exact solution. After J. J. Judice & F. M. Pires, A block principal
pivoting algorithm for large-scale strictly monotone linear complementarity problems, 1994.
"""

from libc.math cimport fabs, sqrt

cdef int FREE = 0, AT_LOWER = 1, AT_UPPER = 2
cdef double EPS = 2.220446049250313e-16


cdef bint solve_free(const double[:, ::1] Q, const double[::1] r, const double[::1] lower, const double[::1] upper,
                     const int[::1] side, double[:, ::1] L, Py_ssize_t[::1] free,
                     double[::1] m) noexcept nogil:
    """Put held variables at their bounds and solve for the others; False if Q is not positive definite."""
    cdef Py_ssize_t b = m.shape[0], n_free = 0, i, j, t
    cdef double total
    for i in range(b):
        if side[i] == FREE:
            free[n_free] = i
            n_free += 1
        else:
            m[i] = lower[i] if side[i] == AT_LOWER else upper[i]
    for i in range(n_free):
        for j in range(i + 1):
            total = Q[free[i], free[j]]
            for t in range(j):
                total -= L[i, t] * L[j, t]
            if j < i:
                L[i, j] = total / L[j, j]
            elif total > 0:
                L[i, i] = sqrt(total)
            else:
                return False
    for i in range(n_free):
        total = r[free[i]]
        for j in range(b):
            if side[j] != FREE:
                total -= Q[free[i], j] * m[j]
        for t in range(i):
            total -= L[i, t] * m[free[t]]
        m[free[i]] = total / L[i, i]
    for i in range(n_free - 1, -1, -1):
        total = m[free[i]]
        for t in range(i + 1, n_free):
            total -= L[t, i] * m[free[t]]
        m[free[i]] = total / L[i, i]
    return True


cdef Py_ssize_t change_sides(const double[:, ::1] Q, const double[::1] r, const double[::1] lower,
                             const double[::1] upper, const double[::1] m, int[::1] side,
                             int[::1] better) noexcept nogil:
    """Write the sides that the variables should be on to `better`; return how many differ."""
    cdef Py_ssize_t b = m.shape[0], i, j, wrong = 0
    cdef double slope, largest, noise
    for i in range(b):
        better[i] = side[i]
        if side[i] == FREE:
            if m[i] < lower[i]:
                better[i] = AT_LOWER
            elif m[i] > upper[i]:
                better[i] = AT_UPPER
        elif lower[i] < upper[i]:
            slope = -r[i]
            largest = 0.0
            for j in range(b):
                slope += Q[i, j] * m[j]
                largest = max(largest, fabs(Q[i, j]))
            # rounding alone may make a variable at its bound look wrong
            noise = 64 * EPS * (fabs(r[i]) + largest)
            if (side[i] == AT_LOWER and slope < -noise) or (side[i] == AT_UPPER and slope > noise):
                better[i] = FREE
        if better[i] != side[i]:
            wrong += 1
    return wrong


def pivot(const double[:, :, ::1] Q, const double[:, ::1] R, const double[:, ::1] lower,
          const double[:, ::1] upper, double[:, ::1] M, int[:, ::1] sides, double[:, ::1] factor,
          Py_ssize_t[::1] free, Py_ssize_t patience, Py_ssize_t max_rounds):
    """Solve the programs (one per row of R) from the sides that the start `M` suggests, into `M`.

    `Q` holds one matrix for all programs or one each; `sides` (2, b), `factor` (b, b) and `free` (b,) are work
    space. Returns the number of programs solved: less than all means that the next one broke down.
    """
    cdef Py_ssize_t n_programs = R.shape[0], b = R.shape[1], at, i, count, fewest, left, rounds, matrix
    cdef bint shared = Q.shape[0] == 1
    with nogil:
        for at in range(n_programs):
            matrix = 0 if shared else at
            for i in range(b):
                if M[at, i] <= lower[at, i] or lower[at, i] == upper[at, i]:
                    sides[0, i] = AT_LOWER
                else:
                    sides[0, i] = AT_UPPER if M[at, i] >= upper[at, i] else FREE
            fewest = b + 1
            left = patience
            for rounds in range(max_rounds + 1):
                if rounds == max_rounds or not solve_free(Q[matrix], R[at], lower[at], upper[at], sides[0],
                                                          factor, free, M[at]):
                    with gil:
                        return at
                count = change_sides(Q[matrix], R[at], lower[at], upper[at], M[at], sides[0], sides[1])
                if count == 0:
                    break
                if count < fewest:
                    fewest = count
                    left = patience
                else:
                    left -= 1
                for i in range(b - 1, -1, -1):
                    if sides[1, i] != sides[0, i]:
                        sides[0, i] = sides[1, i]
                        if left < 0:
                            break
    return n_programs
