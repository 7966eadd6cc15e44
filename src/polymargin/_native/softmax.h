/* Loops over rows of the maps from scores to probabilities; every class's numbers lie side by side for all rows. */
#ifndef POLYMARGIN_SOFTMAX_H
#define POLYMARGIN_SOFTMAX_H

#include <stddef.h>

#include "vectors.h"

/* z[j] = a s[j] + b[j] (+ z[j] where `onto`) for m rows of k classes; classes are `width` apart. */
POLYMARGIN_CLONES
static void set_logits(double *restrict z, const double *restrict s, double a, const double *b, int onto, ptrdiff_t k,
                       ptrdiff_t m, ptrdiff_t width) {
    for (ptrdiff_t j = 0; j < k; j++) {
        double *to = z + j * width;
        const double *from = s + j * width;
        const double offset = b ? b[j] : 0.0;
        if (onto)
            for (ptrdiff_t i = 0; i < m; i++) to[i] += a * from[i] + offset;
        else
            for (ptrdiff_t i = 0; i < m; i++) to[i] = a * from[i] + offset;
    }
}

/* Take the largest logit of every row, which goes to `top`, from all of them. */
POLYMARGIN_CLONES
static void take_top(double *restrict z, double *restrict top, ptrdiff_t k, ptrdiff_t m, ptrdiff_t width) {
    for (ptrdiff_t i = 0; i < m; i++) top[i] = z[i];
    for (ptrdiff_t j = 1; j < k; j++) {
        const double *from = z + j * width;
        for (ptrdiff_t i = 0; i < m; i++) top[i] = from[i] > top[i] ? from[i] : top[i];
    }
    for (ptrdiff_t j = 0; j < k; j++) {
        double *to = z + j * width;
        for (ptrdiff_t i = 0; i < m; i++) to[i] -= top[i];
    }
}

/* out[i] += sum_j t_ij z_ij */
POLYMARGIN_CLONES
static void add_products(double *restrict out, const double *restrict t, const double *restrict z, ptrdiff_t k,
                         ptrdiff_t m, ptrdiff_t width) {
    for (ptrdiff_t j = 0; j < k; j++) {
        const double *left = t + j * width, *right = z + j * width;
        for (ptrdiff_t i = 0; i < m; i++) out[i] += left[i] * right[i];
    }
}

/* Divide the exponentials of every row by their sum, which goes to `sums`. */
POLYMARGIN_CLONES
static void normalise(double *restrict e, double *restrict sums, double *restrict inverse, ptrdiff_t k, ptrdiff_t n) {
    for (ptrdiff_t i = 0; i < n; i++) sums[i] = e[i];
    for (ptrdiff_t j = 1; j < k; j++) {
        const double *from = e + j * n;
        for (ptrdiff_t i = 0; i < n; i++) sums[i] += from[i];
    }
    for (ptrdiff_t i = 0; i < n; i++) inverse[i] = 1.0 / sums[i];
    for (ptrdiff_t j = 0; j < k; j++) {
        double *to = e + j * n;
        for (ptrdiff_t i = 0; i < n; i++) to[i] *= inverse[i];
    }
}

/* out = w (p - t) */
POLYMARGIN_CLONES
static void set_residual(double *restrict out, const double *restrict p, const double *restrict t,
                         const double *restrict w, ptrdiff_t k, ptrdiff_t n) {
    for (ptrdiff_t j = 0; j < k; j++)
        for (ptrdiff_t i = 0; i < n; i++) out[j * n + i] = w[i] * (p[j * n + i] - t[j * n + i]);
}

/* out = a b, and out = a b c */
POLYMARGIN_CLONES
static void multiply(double *restrict out, const double *a, const double *b, ptrdiff_t m) {
    for (ptrdiff_t i = 0; i < m; i++) out[i] = a[i] * b[i];
}

POLYMARGIN_CLONES
static void multiply_three(double *restrict out, const double *restrict a, const double *b, const double *c,
                           ptrdiff_t m) {
    for (ptrdiff_t i = 0; i < m; i++) out[i] = a[i] * b[i] * c[i];
}

/* the sum of a */
POLYMARGIN_CLONES
static double total(const double *restrict a, ptrdiff_t m) {
    double sum = 0.0;
    for (ptrdiff_t i = 0; i < m; i++) sum += a[i];
    return sum;
}

#endif
