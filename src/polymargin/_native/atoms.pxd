"""The steepest atom of one variable under every penalty: compiled twins of `problems.penalties`, for inner loops.

Each takes the correlations g of the k classes, writes the atom to `direction`, which comes as zeros, and its cost,
and returns their ratio, the polar. Column j of `table` holds what the penalty needs of the variable.
"""

from libc.math cimport fabs

cdef enum:
    MOST_CLASSES = 64


cdef inline void descending(const double* g, int k, int* order) noexcept nogil:
    """Order classes by falling g, equal ones as they come."""
    cdef int i, j
    for i in range(k):
        j = i
        while j > 0 and g[order[j - 1]] < g[i]:
            order[j] = order[j - 1]
            j -= 1
        order[j] = i


cdef inline double steepest_pair(
    const double* g, int k, const double[:, ::1] table, Py_ssize_t j, double* direction, double* cost
) noexcept nogil:
    """l1: the best difference of two classes; the table holds the weights of the classes."""
    cdef int a, b, first = 0, second = 1
    cdef double best = -1.0, slope
    for a in range(k):
        for b in range(a + 1, k):
            slope = fabs(g[a] - g[b]) / (table[a, j] + table[b, j])
            if slope > best:
                best, first, second = slope, a, b
    direction[first], direction[second] = 1.0, -1.0
    cost[0] = table[first, j] + table[second, j]
    return best


cdef inline double steepest_signs(
    const double* g, int k, const double[:, ::1] table, Py_ssize_t j, double* direction, double* cost
) noexcept nogil:
    """Sup-norm: signs about the weighted median; the table holds the weights of the classes."""
    cdef int[MOST_CLASSES] order
    cdef int i, c, median = 0
    cdef double total = 0.0, mass = 0.0, value = 0.0
    descending(g, k, order)
    for c in range(k):
        total += 1.0 / table[c, j]
    for i in range(k - 1, -1, -1):
        mass += 1.0 / table[order[i], j]
        if mass >= 0.5 * total:
            median = i
            break
    mass = 0.0
    for i in range(k):
        c = order[i]
        if i != median:
            direction[c] = (1.0 if i < median else -1.0) / table[c, j]
            value += direction[c] * (g[c] - g[order[median]])
            mass += direction[c]
    direction[order[median]] = -mass
    cost[0] = 1.0
    return value


cdef inline double steepest_prefix(const double* g, int k, double* direction, double* cost) noexcept nogil:
    """Fusion with unit weights: the highest classes against the others, named without the last class."""
    cdef int[MOST_CLASSES] order
    cdef int i, size = 1
    cdef double mean = 0.0, prefix = 0.0, best = -1.0, inside = 1.0
    descending(g, k, order)
    for i in range(k):
        mean += g[i] / k
    for i in range(k - 1):
        prefix += g[order[i]] - mean
        if prefix > best * ((i + 1) * (k - 1 - i)):
            best, size = prefix / ((i + 1) * (k - 1 - i)), i + 1
    for i in range(size):
        if order[i] == k - 1:
            inside = 0.0
    for i in range(k):
        direction[order[i]] = inside if i < size else 1.0 - inside
    cost[0] = size * (k - size)
    return best


cdef inline double steepest_cut(
    const double* g, int k, const double[:, ::1] table, Py_ssize_t j, double* sums, double* direction,
    double* cost
) noexcept nogil:
    """Weighted fusion: the best of all sets of classes without the last one; the table holds their cuts."""
    cdef Py_ssize_t code, rest, winner = 1, n_sets = table.shape[0]
    cdef int c
    cdef double best = -1.0, mean = 0.0
    for c in range(k):
        mean += g[c] / k
    sums[0] = 0.0
    for code in range(1, n_sets + 1):
        # the sum of a set is that of the set without its lowest class, and the lowest class
        rest, c = code & (code - 1), 0
        while not (code >> c) & 1:
            c += 1
        sums[code] = sums[rest] + g[c] - mean
        if fabs(sums[code]) > best * table[code - 1, j]:
            best, winner = fabs(sums[code]) / table[code - 1, j], code
    for c in range(k):
        direction[c] = (winner >> c) & 1
    cost[0] = table[winner - 1, j]
    return best
