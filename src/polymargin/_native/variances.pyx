"""For the scores of left-out rows: inverses, variances of scores given others, and multipliers that are pinned."""

import numpy as np

from cython cimport floating
from libc.float cimport DBL_MIN, FLT_MIN
from libc.math cimport sqrt
from scipy.linalg.cython_blas cimport dtrmm, strmm
from scipy.linalg.cython_lapack cimport dlauum, dpotrf, slauum, spotrf

cdef enum:
    # Side of the squares that are mirrored while they are in the cache of the processor
    TILE = 32
    # Side up to which triangles are inverted entry by entry
    SMALL = 16


def invert(floating[:, ::1] matrix, double pivot):
    """Invert a positive definite matrix in place, of which the upper triangle is meant.

    Tell whether it is one whose pivots are at least `pivot`; otherwise the matrix is lost.
    """
    cdef int n = matrix.shape[0]
    cdef Py_ssize_t i, j, top, left
    cdef bint is_positive
    if n == 0:
        return True
    with nogil:
        is_positive = factorise(&matrix[0, 0], n, pivot)
        if is_positive:
            invert_factored(&matrix[0, 0], n)
            for top in range(1 + n // TILE):
                for left in range(top + 1):
                    for i in range(TILE * top, min(n, TILE * top + TILE)):
                        for j in range(TILE * left, min(i, TILE * left + TILE)):
                            matrix[i, j] = matrix[j, i]
    return is_positive


def weigh(floating[:, ::1] matrix, const double[:, ::1] K, const Py_ssize_t[::1] place):
    """Multiply the upper triangle of a matrix by the kernel values between the `place` of every row."""
    cdef Py_ssize_t a, b, n = matrix.shape[0]
    cdef const double *row
    for a in range(n):
        row = &K[place[a], 0]
        for b in range(a, n):
            matrix[a, b] *= <floating> row[place[b]]


def given_told(
    const floating[:, ::1] K,
    const unsigned char[:, ::1] told,
    const unsigned char[:, ::1] asked,
    const double[:, ::1] noise,
    double pivot,
    bint fit_intercept,
    double[:, ::1] found,
):
    """Set the variances of what is told or asked, `found` (n, k), each given what the other rows tell of a class.

    `noise` (n, k) is the variance of what rows leave open of what they tell. Return False where a pivot is too
    low, as `invert` does.
    """
    cdef int n = K.shape[0], r, o
    cdef Py_ssize_t j, p, q
    cdef floating[::1] matrix, columns, sums
    cdef int[::1] rows, others
    cdef floating total, value
    cdef bint ok = True
    dtype = np.float64 if floating is double else np.float32
    rows, others = np.empty(n, dtype=np.intc), np.empty(n, dtype=np.intc)
    r, o = largest_product(told, asked)
    matrix, columns, sums = np.empty(r * r + 1, dtype), np.empty(o + 1, dtype), np.empty(n, dtype)
    with nogil:
        for j in range(told.shape[1]):
            r = o = 0
            for p in range(n):
                if told[p, j]:
                    rows[r] = p
                    r += 1
                elif asked[p, j]:
                    others[o] = p
                    o += 1
            if r == 0:
                for p in range(o):
                    found[others[p], j] = K[others[p], others[p]]
                continue
            for p in range(r):
                for q in range(p, r):
                    matrix[p * r + q] = K[rows[p], rows[q]]
                matrix[p * r + p] += <floating> noise[rows[p], j]
            ok = factorise(&matrix[0], r, pivot)
            if not ok:
                break
            invert_triangle(&matrix[0], r, r)
            total = 0.0
            if fit_intercept:
                total = sum_columns(&matrix[0], &sums[0], r)
            for p in range(r):
                value = dot(&matrix[p * r + p], &matrix[p * r + p], r - p)
                if fit_intercept:
                    value -= squared(dot(&matrix[p * r + p], &sums[p], r - p)) / total
                found[rows[p], j] = 1.0 / above_zero(value) - noise[rows[p], j]
            if o == 0:
                continue
            for p in range(o):
                for q in range(r):
                    columns[p * r + q] = K[others[p], rows[q]]
            multiply_triangle(&matrix[0], &columns[0], r, o)
            for p in range(o):
                value = K[others[p], others[p]] - dot(&columns[p * r], &columns[p * r], r)
                if fit_intercept:
                    value += squared(1.0 - dot(&columns[p * r], &sums[0], r)) / total
                found[others[p], j] = value
    return ok


def given_inverse(
    const floating[:, ::1] inverse,
    const unsigned char[:, ::1] told,
    const floating[:, ::1] told_sums,
    double ridge,
    bint fit_intercept,
    double[:, ::1] found,
):
    """Set all variances where rows tell all but the `ridge`, from the inverse of the whole matrix with it.

    The inverse of a part is a Schur complement, of the few rows that do not tell of a class. `told_sums` (n, k)
    are the sums of the inverse over those that do.
    """
    cdef int n = inverse.shape[0], r, o
    cdef Py_ssize_t j, p, q
    cdef floating[::1] matrix, columns, seen, sums
    cdef int[::1] rows, others
    cdef floating total, value
    cdef bint ok = True
    dtype = np.float64 if floating is double else np.float32
    rows, others = np.empty(n, dtype=np.intc), np.empty(n, dtype=np.intc)
    r, o = largest_complement(told)
    matrix, columns = np.empty(o * o + 1, dtype), np.empty(r + 1, dtype)
    seen, sums = np.empty(n, dtype), np.empty(n, dtype)
    with nogil:
        for j in range(told.shape[1]):
            r = o = 0
            for p in range(n):
                if told[p, j]:
                    rows[r] = p
                    r += 1
                else:
                    others[o] = p
                    o += 1
            for p in range(o):
                for q in range(p, o):
                    matrix[p * o + q] = inverse[others[p], others[q]]
            for p in range(r):
                for q in range(o):
                    columns[p * o + q] = inverse[rows[p], others[q]]
            if o > 0:
                ok = factorise(&matrix[0], o, 0.0)
                if not ok:
                    break
                invert_triangle(&matrix[0], o, o)
                if r > 0:
                    multiply_triangle(&matrix[0], &columns[0], o, r)
            total = 0.0
            if fit_intercept:
                for q in range(o):
                    seen[q] = 0.0
                for p in range(r):
                    for q in range(o):
                        seen[q] += columns[p * o + q]
                for p in range(r):
                    sums[p] = told_sums[rows[p], j] - dot(&seen[0], &columns[p * o], o)
                    total += sums[p]
            for p in range(r):
                value = inverse[rows[p], rows[p]] - dot(&columns[p * o], &columns[p * o], o)
                if fit_intercept:
                    value -= squared(sums[p]) / total
                found[rows[p], j] = 1.0 / above_zero(value) - ridge
            for p in range(o):
                value = dot(&matrix[p * o + p], &matrix[p * o + p], o - p)
                if fit_intercept:
                    value += squared(1.0 + dot(&matrix[p * o + p], &seen[p], o - p)) / total
                found[others[p], j] = value - ridge
    return ok


def make_up(
    const double[:, ::1] direction, const Py_ssize_t[::1] edges, double[:, ::1] lost, double[::1] steps
):
    """Set the steps by which the own multipliers of every row make up for what it loses.

    What they cannot make up for is left of `lost`. Those of row i go from edges[i] to edges[i + 1]; their
    directions are independent.
    """
    cdef Py_ssize_t i, a, b, j, r, first, k = direction.shape[1]
    cdef double[::1] block = np.empty(most_between(edges) ** 2 + 1)
    for i in range(lost.shape[0]):
        first, r = edges[i], edges[i + 1] - edges[i]
        for a in range(r):
            steps[first + a] = dot(&direction[first + a, 0], &lost[i, 0], k)
            for b in range(a + 1):
                block[a * r + b] = dot(&direction[first + a, 0], &direction[first + b, 0], k)
        if not solve_small(&block[0], &steps[first] if r else NULL, r, 0.0):
            raise np.linalg.LinAlgError("Directions of free multipliers of a row depend on each other.")
        for a in range(r):
            for j in range(k):
                lost[i, j] -= steps[first + a] * direction[first + a, j]


def pin(
    const floating[:, ::1] inverse,
    const double[:, ::1] spread,
    const double[:, ::1] pulled,
    const Py_ssize_t[::1] edges,
    floating[:, ::1] step,
    double[:, ::1] pull,
):
    """Add to every row's `step` (n, m) the answer to forces that keep its own multipliers where they are.

    Multipliers answer forces by ``inverse - pulled spread'``, of which the second part is left to do: `pull`
    (n, q) are the forces times `pulled`. Those of row i go from edges[i] to edges[i + 1]. Return the rows whose
    own answers are singular to rounding, with which nothing is done.
    """
    cdef Py_ssize_t i, a, b, c, r, first, m = inverse.shape[0], q = spread.shape[1]
    cdef Py_ssize_t most = most_between(edges)
    cdef double[::1] block = np.empty(most * most + 1), force = np.empty(most + 1)
    cdef double rounding = np.finfo(np.float64 if floating is double else np.float32).eps
    cdef floating factor
    singular = []
    for i in range(step.shape[0]):
        first, r = edges[i], edges[i + 1] - edges[i]
        for a in range(r):
            force[a] = -step[i, first + a]
            for b in range(a + 1):
                block[a * r + b] = inverse[first + a, first + b]
                for c in range(q):
                    block[a * r + b] -= pulled[first + a, c] * spread[first + b, c]
        if not solve_small(&block[0], &force[0], r, r * rounding):
            singular.append(i)
            continue
        for a in range(r):
            factor = <floating> force[a]
            for b in range(m):
                step[i, b] += factor * inverse[first + a, b]
            for c in range(q):
                pull[i, c] += force[a] * pulled[first + a, c]
    return singular


cdef Py_ssize_t most_between(const Py_ssize_t[::1] edges):
    cdef Py_ssize_t i, most = 0
    for i in range(edges.shape[0] - 1):
        most = max(most, edges[i + 1] - edges[i])
    return most


cdef bint solve_small(double *block, double *right, Py_ssize_t n, double least) noexcept nogil:
    """Solve a positive definite system, of which the lower triangle is meant, in place.

    Tell whether all pivots are more than a part `least` of the largest entry of the diagonal.
    """
    cdef Py_ssize_t i, j, c
    cdef double value, largest = 0.0
    for i in range(n):
        largest = max(largest, block[i * n + i])
    for j in range(n):
        for i in range(j, n):
            value = block[i * n + j]
            for c in range(j):
                value -= block[i * n + c] * block[j * n + c]
            if i > j:
                block[i * n + j] = value / block[j * n + j]
            elif value > least * largest:
                block[j * n + j] = sqrt(value)
            else:
                return False
        right[j] /= block[j * n + j]
        for i in range(j + 1, n):
            right[i] -= block[i * n + j] * right[j]
    for j in range(n - 1, -1, -1):
        for i in range(j + 1, n):
            right[j] -= block[i * n + j] * right[i]
        right[j] /= block[j * n + j]
    return True


def largest_product(const unsigned char[:, ::1] told, const unsigned char[:, ::1] asked):
    """Return the most rows that tell of a class, and the most pairs of one that tells and one that only asks."""
    cdef Py_ssize_t j, p, r, o, most = 0, pairs = 0
    for j in range(told.shape[1]):
        r = o = 0
        for p in range(told.shape[0]):
            r += told[p, j]
            o += asked[p, j] and not told[p, j]
        most, pairs = max(most, r), max(pairs, r * o)
    return most, pairs


def largest_complement(const unsigned char[:, ::1] told):
    """Return the most pairs of a row that tells of a class and one that does not, and the most that do not."""
    cdef Py_ssize_t j, p, r, most = 0, pairs = 0, n = told.shape[0]
    for j in range(told.shape[1]):
        r = 0
        for p in range(n):
            r += told[p, j]
        most, pairs = max(most, n - r), max(pairs, r * (n - r))
    return pairs, most


# Matrices are by rows, of which LAPACK sees the transpose: the triangle from the diagonal on is its lower one.

cdef bint factorise(floating *matrix, int n, double pivot) noexcept nogil:
    """Factorise a positive definite matrix; tell whether all pivots are at least `pivot`."""
    cdef int info = 0
    cdef Py_ssize_t i
    if floating is double:
        dpotrf("L", &n, matrix, &n, &info)
    else:
        spotrf("L", &n, matrix, &n, &info)
    if info != 0:
        return False
    for i in range(n):
        if <double> matrix[i * n + i] * matrix[i * n + i] < pivot:
            return False
    return True


cdef void invert_factored(floating *factor, int n) noexcept nogil:
    """Set the triangle of the inverse of a factorised matrix."""
    cdef int info = 0
    invert_triangle(factor, n, n)
    if floating is double:
        dlauum("L", &n, factor, &n, &info)
    else:
        slauum("L", &n, factor, &n, &info)


cdef void invert_triangle(floating *triangle, int n, int width) noexcept nogil:
    """Invert a triangle in place, by halves: LAPACK's way is several times slower than its products.

    Its rows are `width` apart.
    """
    cdef int half = n // 2, rest = n - half
    cdef floating *corner = triangle + half
    cdef floating *last = triangle + half * (width + 1)
    cdef floating plus = 1.0, minus = -1.0
    cdef Py_ssize_t i, j, c
    cdef floating value
    cdef floating *column
    if n <= SMALL:
        for j in range(n - 1, -1, -1):
            column = triangle + j * width
            column[j] = 1.0 / column[j]
            for i in range(n - 1, j, -1):
                value = column[i]
                for c in range(i + 1, n):
                    column[c] += value * triangle[i * width + c]
                column[i] = value * triangle[i * width + i]
            for i in range(j + 1, n):
                column[i] *= -column[j]
        return
    invert_triangle(triangle, half, width)
    invert_triangle(last, rest, width)
    if floating is double:
        dtrmm("L", "L", "N", "N", &rest, &half, &plus, last, &width, corner, &width)
        dtrmm("R", "L", "N", "N", &rest, &half, &minus, triangle, &width, corner, &width)
    else:
        strmm("L", "L", "N", "N", &rest, &half, &plus, last, &width, corner, &width)
        strmm("R", "L", "N", "N", &rest, &half, &minus, triangle, &width, corner, &width)


cdef void multiply_triangle(floating *triangle, floating *columns, int n, int m) noexcept nogil:
    """Multiply m columns of n numbers by a triangle."""
    cdef floating one = 1.0
    if floating is double:
        dtrmm("L", "L", "N", "N", &n, &m, &one, triangle, &n, columns, &n)
    else:
        strmm("L", "L", "N", "N", &n, &m, &one, triangle, &n, columns, &n)


cdef floating sum_columns(const floating *triangle, floating *sums, int n) noexcept nogil:
    """Set the sum of a triangle's columns, and return its squared length."""
    cdef Py_ssize_t p, q
    for q in range(n):
        sums[q] = 0.0
    for p in range(n):
        for q in range(p, n):
            sums[q] += triangle[p * n + q]
    return dot(sums, sums, n)


cdef inline floating dot(const floating *a, const floating *b, Py_ssize_t n) noexcept nogil:
    cdef floating total = 0.0
    cdef Py_ssize_t i
    for i in range(n):
        total += a[i] * b[i]
    return total


cdef inline floating squared(floating value) noexcept nogil:
    return value * value


cdef inline floating above_zero(floating value) noexcept nogil:
    if floating is double:
        return max(value, DBL_MIN)
    else:
        return max(value, FLT_MIN)
