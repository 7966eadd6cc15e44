"""Dual block coordinate descent for the hinge machines on explicit features.

The dual of :mod:`polymargin.problems.hinge` is a concave quadratic over a product of small sets, one box or
simplex a block; block p belongs to example i and moves row i of R alone. One step maximises the dual exactly
over one block: with scores ``f = W'x_i + shift`` and ``q = ||x_i||^2 + tau`` it is

    min over a_p   q/2 ||R_i - R_i^old||^2 + <f, R_i - R_i^old> - linear(a_p),

a projection on a scaled simplex (Crammer-Singer, the robust step), or a clipping of all hinges at once, tied by
one number, the total change S (Lee-Lin-Wahba, Weston-Watkins; g_j is the argument of hinge j):

    u_j = clip(u_j^old + g_j / q + coupling S, 0, upper_j),   S = sum_j (u_j - u_j^old).

For Lee-Lin-Wahba ``R_i = -(u - mean u)`` and coupling = 1/k; for Weston-Watkins ``R_i = -u + (sum u) e_y`` and
coupling = -1. `tau` is the weight of the augmented Lagrangian that keeps the columns of R near zero sum:
``shift = b + tau 1'R`` with multipliers b. The sequential method follows Keerthi et al. (KDD 2008).

Rows are taken from a centre m, which changes nothing where the columns of R sum to zero; what all rows have in
common would tie them to one another and slow the descent down. They are not copied: with ``W = X'R``, ``s = 1'R``
and ``d = m'(W - m s')``, what a row scores is ``(x_i - m)'(W - m s') = W'x_i - (m'x_i) s - d``. `common` (3, k) is
shift, s and d; `along` is ``m'x_i``, `centre` ``||m||^2``, and q is ``||x_i - m||^2 + tau``.

Every sweep visits the blocks `order` once, in place, and returns how many of them changed. What is stored of a
visited block: `loss` and `slack` (what it adds to the primal, and to the duality gap, at the scores it saw) and
`wake` (the epoch in which to visit it again: blocks that rest at a vertex, or whose part in the gap is below
`negligible`, are seen more and more rarely; those with a large part in it are seen several times in an epoch).
W has one row per class in `sweep_dense`, one per feature in `sweep_sparse`. With `centred` its classes carry a
common term, which is taken off the scores instead (so that a step touches only the classes whose u changed).
"""

from cython cimport floating
from libc.stddef cimport ptrdiff_t
from libc.stdint cimport uint64_t

from polymargin._native.sparse_rows cimport change_by_row, index, score_row

cdef extern from "vectors.h" nogil:
    void fetch(const void *start, ptrdiff_t bytes)
    double threshold_near(const double *target, const double *alpha, double weight, int k)
    double aim_of_simplex(double offset, int anchor, double rate, const double *f, const double *alpha,
                          double *target, double *mean, int k)
    double move_to_threshold(double theta, double rounding, const double *target, double *alpha, double *change,
                             int k)
    void products_with_doubles(const double *W, const double *x, const double *start, double *out, ptrdiff_t p,
                               ptrdiff_t k)
    void products_with_floats(const double *W, const float *x, const double *start, double *out, ptrdiff_t p,
                              ptrdiff_t k)
    int change_by_class_doubles(const double *x, double *W, const double *change, ptrdiff_t m, int k)
    int change_by_class_floats(const float *x, double *W, const double *change, ptrdiff_t m, int k)
    double total_change(const double *target, const double *upper, double before, double coupling, int k)
    void aim_of_box(double start, double rate, const double *f, const double *u, const double *upper,
                    double *target, double *loss, double *slack, double *before, int k)
    double inner(const double *a, const double *b, ptrdiff_t m)
    double sum_of(const double *values, ptrdiff_t m)
    void accumulate(double *out, double factor, const double *b, ptrdiff_t m)
    void start_from_centre(const double *shift, const double *sums, const double *of_centre, double along,
                           double *f, int k)
    void follow(double *shift, double *sums, double *of_centre, double tau, double along, const double *change,
                int k)
    double move_to_aim(double shift, const double *target, const double *upper, double *u, double *change,
                       double *size, int k)

cdef extern from "splitmix.h" nogil:
    uint64_t next_random(uint64_t *state)

cdef enum:
    LONGEST_REST = 16


cdef struct Rules:
    double offset
    double coupling
    bint simplex
    bint centred


cdef int _move_box(
    const Rules* rules, int label, const double* upper, double q, const double* f, double* u, double* change,
    double* target, double* loss, double* slack, int k
) noexcept nogil:
    """Maximise over one box; `change` becomes the change of R (up to a common term if centred)."""
    cdef double before, S, total, size, own = 0.0 if rules.centred else f[label]
    aim_of_box(rules.offset - own, 1.0 / q, f, u, upper, target, loss, slack, &before, k)
    if slack[0] <= 0.0:  # every variable is where its hinge wants it
        return 0
    S = total_change(target, upper, before, rules.coupling, k)
    total = move_to_aim(rules.coupling * S, target, upper, u, change, &size, k)
    if size == 0.0:
        return 0
    if not rules.centred:
        change[label] -= total
    return 1


cdef int _move_simplex(
    const Rules* rules, int anchor, double weight, double q, const double* f, double* alpha, double* change,
    double* target, double* loss, double* slack, int k
) noexcept nogil:
    """Maximise over one simplex; `change` becomes the change of R."""
    cdef double mean, theta
    loss[0] = weight * aim_of_simplex(rules.offset, anchor, 1.0 / q, f, alpha, target, &mean, k)
    slack[0] = loss[0] - mean
    if slack[0] <= 0.0:  # all weight is where the margin is largest
        return 0
    theta = threshold_near(target, alpha, weight, k)
    # a vertex is found again only up to rounding
    return move_to_threshold(theta, 4e-16 * weight, target, alpha, change, k) > 0.0


cdef inline int _move(
    const Rules* rules, int label, const double* bound, double q, const double* f, double* dual, double* change,
    double* target, double* loss, double* slack, int k
) noexcept nogil:
    if rules.simplex:
        return _move_simplex(rules, label, bound[0], q, f, dual, change, target, loss, slack, k)
    return _move_box(rules, label, bound, q, f, dual, change, target, loss, slack, k)


cdef inline void _centre(double* f, int k) noexcept nogil:
    cdef double mean = 0.0
    cdef int j
    for j in range(k):
        mean += f[j]
    mean /= k
    for j in range(k):
        f[j] -= mean


cdef inline void _rest(bint counts, int epoch, int* calm, int* wake) noexcept nogil:
    """A block that does not count, time after time, rests for 1, 3, 7, ... epochs.

    What it has left to do after a visit in the same epoch is no reason to rest.
    """
    if counts:
        calm[0] = 1
    elif wake[0] > epoch:
        return
    elif calm[0] < LONGEST_REST:
        calm[0] *= 2
    wake[0] = epoch + calm[0]


def shuffle_awake(const int[::1] wake, int epoch, const double[::1] slack, double share, int most,
                  int between, uint64_t[::1] state, int[::1] order):
    """Write the blocks that are to be visited in an epoch to `order`, shuffled; return the number of visits.

    A block is visited as often as its slack is whole multiples of `share`, once at least, `most` times at most,
    and not so often that fewer than `between` others are visited meanwhile: by itself it has nothing left to do.
    `state` (1,) is that of the random numbers. Every visit takes a place up to the end, whose block goes there.
    """
    cdef Py_ssize_t number = 0, awake = 0, place
    cdef int p, visits, _turn
    with nogil:
        for p in range(wake.shape[0]):
            awake += wake[p] <= epoch
        most = <int> min(most, awake / between)
        for p in range(wake.shape[0]):
            if wake[p] > epoch:
                continue
            visits = 1
            if share > 0.0 and most > 1 and slack[p] >= 2.0 * share:
                visits = <int> (slack[p] / share) if slack[p] < most * share else most
            for _turn in range(visits):
                if number == order.shape[0]:
                    break
                place = <Py_ssize_t> (((next_random(&state[0]) >> 32) * <uint64_t> (number + 1)) >> 32)
                order[number] = order[place]
                order[place] = p
                number += 1
    return number


def totals(const double[:, ::1] W, bint by_class, const double[:, ::1] common, double centre,
           const double[::1] loss, const double[::1] slack, double[::1] scratch):
    """Return ``||W - m s'||^2`` without what the classes have in common, and the sums of `loss` and of `slack`.

    W has one row per class, or one per feature; `scratch` (features,) takes their sums over classes.
    """
    cdef Py_ssize_t n_features = scratch.shape[0], k = common.shape[1], j, c
    cdef double squared = 0.0, lost, missed, summed = 0.0
    with nogil:
        if n_features > 0:
            if by_class:
                scratch[:] = 0.0
                for c in range(k):
                    accumulate(&scratch[0], 1.0, &W[c, 0], n_features)
            else:
                for j in range(n_features):
                    scratch[j] = sum_of(&W[j, 0], W.shape[1])
            squared = inner(&W[0, 0], &W[0, 0], W.shape[0] * W.shape[1])
            squared -= inner(&scratch[0], &scratch[0], n_features) / k
        # m'W is d + ||m||^2 s
        for c in range(k):
            summed += common[1, c]
        for c in range(k):
            squared -= (2.0 * common[2, c] + centre * common[1, c]) * (common[1, c] - summed / k)
        lost, missed = sum_of(&loss[0], loss.shape[0]), sum_of(&slack[0], slack.shape[0])
    return squared, lost, missed


def move_multipliers(double[::1] multipliers, double[::1] shift):
    """Make the multipliers the shift that scores have, without its mean, and take the shift as far beyond."""
    cdef Py_ssize_t j
    cdef double mean = 0.0, value
    for j in range(shift.shape[0]):
        mean += shift[j]
    mean /= shift.shape[0]
    for j in range(shift.shape[0]):
        value = shift[j] - mean
        shift[j] = 2.0 * value - multipliers[j]
        multipliers[j] = value


def lead(double[:, ::1] mean, const double[:, ::1] values, double weight):
    """Draw a mean to values by a part of the way."""
    cdef Py_ssize_t i, size = values.shape[0] * values.shape[1]
    cdef double* of_mean
    cdef const double* of_values
    if size > 0:
        of_mean, of_values = &mean[0, 0], &values[0, 0]
        with nogil:
            for i in range(size):
                of_mean[i] += weight * (of_values[i] - of_mean[i])


def sweep_dense(
    const floating[:, ::1] X, const double[::1] squares, const double[::1] along, const int[::1] order,
    const int[::1] example, const int[::1] label, const double[:, ::1] bound, double offset, double coupling,
    bint simplex, bint centred, double tau, double centre, double[:, ::1] dual, double[:, ::1] W,
    double[:, ::1] common, double[::1] loss, double[::1] slack, int[::1] calm, int[::1] wake, int epoch,
    double negligible, double[:, ::1] scratch,
):
    """Visit the blocks `order` of a problem with dense features; `scratch` is (3, k).

    Return how often a row was added to the weights of a class.
    """
    cdef Rules rules = Rules(offset, coupling, simplex, centred)
    cdef int t, p, i, changed, k = dual.shape[1]
    cdef Py_ssize_t n_features = X.shape[1], added = 0
    cdef double* f = &scratch[0, 0]
    cdef double* change = &scratch[1, 0]
    cdef double* shift = &common[0, 0]
    cdef double* sums = &common[1, 0]
    cdef double* of_centre = &common[2, 0]
    cdef const floating* x
    with nogil:
        for t in range(order.shape[0]):
            if t + 1 < order.shape[0]:
                p = order[t + 1]
                fetch(&X[example[p], 0], n_features * sizeof(floating))
                fetch(&dual[p, 0], k * sizeof(double))
                fetch(&bound[p, 0], bound.shape[1] * sizeof(double))
            p = order[t]
            i = example[p]
            x = &X[i, 0]
            start_from_centre(shift, sums, of_centre, along[i], change, k)
            if floating is double:
                products_with_doubles(&W[0, 0], x, change, f, n_features, k)
            else:
                products_with_floats(&W[0, 0], x, change, f, n_features, k)
            if centred:
                _centre(f, k)
            changed = _move(&rules, label[p], &bound[p, 0], squares[i] + tau, f, &dual[p, 0], change,
                            &scratch[2, 0], &loss[p], &slack[p], k)
            _rest(changed and slack[p] >= negligible, epoch, &calm[p], &wake[p])
            if not changed:
                continue
            if floating is double:
                added += change_by_class_doubles(x, &W[0, 0], change, n_features, k)
            else:
                added += change_by_class_floats(x, &W[0, 0], change, n_features, k)
            follow(shift, sums, of_centre, tau, along[i] - centre, change, k)
    return added


def sweep_sparse(
    const floating[::1] values, const index[::1] columns, const index[::1] starts, const double[::1] squares,
    const double[::1] along, const int[::1] order, const int[::1] example, const int[::1] label,
    const double[:, ::1] bound, double offset, double coupling, bint simplex, bint centred, double tau,
    double centre, double[:, ::1] dual, double[:, ::1] W, double[:, ::1] common, double[::1] loss,
    double[::1] slack, int[::1] calm, int[::1] wake, int epoch, double negligible, double[:, ::1] scratch,
):
    """Visit the blocks `order` of a problem with features in compressed rows.

    W is (features, width) and `scratch` (3, width), their columns from k on zero: the width is a multiple of four.
    Return how often a row was added to the weights of a class: to those of all classes if to one.
    """
    cdef Rules rules = Rules(offset, coupling, simplex, centred)
    cdef int t, p, i, changed, k = dual.shape[1]
    cdef index first, number
    cdef Py_ssize_t added = 0, width = W.shape[1]
    cdef double* f = &scratch[0, 0]
    cdef double* change = &scratch[1, 0]
    cdef double* shift = &common[0, 0]
    cdef double* sums = &common[1, 0]
    cdef double* of_centre = &common[2, 0]
    with nogil:
        for t in range(order.shape[0]):
            if t + 1 < order.shape[0]:
                p = order[t + 1]
                first = starts[example[p]]
                number = starts[example[p] + 1] - first
                fetch(&values[first], number * sizeof(floating))
                fetch(&columns[first], number * sizeof(index))
                fetch(&dual[p, 0], k * sizeof(double))
                fetch(&bound[p, 0], bound.shape[1] * sizeof(double))
            p = order[t]
            i = example[p]
            start_from_centre(shift, sums, of_centre, along[i], f, k)
            first, number = starts[i], starts[i + 1] - starts[i]
            if number > 0:
                score_row(&values[first], &columns[first], number, &W[0, 0], width, f)
            if centred:
                _centre(f, k)
            changed = _move(&rules, label[p], &bound[p, 0], squares[i] + tau, f, &dual[p, 0], change,
                            &scratch[2, 0], &loss[p], &slack[p], k)
            _rest(changed and slack[p] >= negligible, epoch, &calm[p], &wake[p])
            if not changed:
                continue
            added += k
            if number > 0:
                change_by_row(&values[first], &columns[first], number, &W[0, 0], width, change)
            follow(shift, sums, of_centre, tau, along[i] - centre, change, k)
    return added
