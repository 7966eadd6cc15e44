"""The dual proximal step of the hinge machines: all examples at given scores, in one pass.

For every block p of the dual, of example i, with the arguments g of its hinges at the scores ``F[i]``,

    boxes       alpha_j = clip(centre_j + upper_j g_j / width, 0, upper_j),
    simplices   alpha   = projection of centre + weight g / width on weight times the unit simplex,

which maximises ``<alpha, g> - sum_j width (alpha_j - centre_j)^2 / (2 bound_j)``.
"""

cdef extern from "vectors.h" nogil:
    void answer_of_simplex(double offset, int anchor, double width, double weight, const double *f,
                           const double *centre, double *alpha, unsigned char *free, double *R, double *sums,
                           int k)
    double answer_of_box(double start, double rate, const double *f, const double *centre, const double *upper,
                         double *alpha, unsigned char *free, double *sums, int k)


def proximal_step(
    const double[:, ::1] F, const int[::1] example, const int[::1] label, const double[:, ::1] bound,
    const double[:, ::1] centre, double offset, bint absolute, double width, double[:, ::1] alpha,
    unsigned char[:, ::1] free, double[:, ::1] R,
):
    """Set `alpha`, tell which entries are `free` and add to the coefficients R.

    `bound` is (P, k) for boxes and (P, 1) for simplices. With `absolute` a hinge sees its class's score alone
    (Lee-Lin-Wahba), otherwise its difference to the score of the own class.

    Returns
    -------
    loss, slack, price : float
        Sum of the losses, of the losses minus ``<alpha, g>``, and what straying from the centre costs.
    """
    cdef Py_ssize_t p
    cdef int i, y, j, k = F.shape[1]
    cdef bint simplex = bound.shape[1] == 1
    cdef double total, mean, own
    cdef double[3] sums = [0.0, 0.0, 0.0]
    cdef const double* f
    cdef double* r
    with nogil:
        for p in range(centre.shape[0]):
            i = example[p]
            y = label[p]
            f = &F[i, 0]
            r = &R[i, 0]
            if simplex:
                answer_of_simplex(offset, y, width, bound[p, 0], f, &centre[p, 0], &alpha[p, 0], &free[p, 0], r,
                                  sums, k)
                continue
            own = 0.0 if absolute else f[y]
            total = answer_of_box(offset - own, 1.0 / width, f, &centre[p, 0], &bound[p, 0], &alpha[p, 0],
                                  &free[p, 0], sums, k)
            mean = total / k if absolute else 0.0
            for j in range(k):
                r[j] += mean - alpha[p, j]
            if not absolute:
                r[y] += total
    return sums[0], sums[1], 0.5 * width * sums[2]
