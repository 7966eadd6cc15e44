/* Passes over the blocks of the interior point for maxima, compiled for the processor at hand where possible.

   Numbers of a slot m lie side by side for all blocks, (k, size), and those of a class for all examples, (k, n). Runs
   are stretches of blocks with one anchor whose examples are consecutive, so that all inner loops go over blocks. */
#ifndef POLYMARGIN_SIMPLEX_RUNS_H
#define POLYMARGIN_SIMPLEX_RUNS_H

#include <stddef.h>
#include <string.h>

#include "vectors.h"

/* Blocks at a time: their intermediate sums stay in the nearest cache. */
#define PIECE 128

typedef struct {
    ptrdiff_t block, example, count, anchor;
} Run;

typedef struct {
    ptrdiff_t n, size, k, n_runs;
    const Run *runs;
    double *weight;
    double *a, *s, *e;           /* iterate: dual slots, slacks, epigraph variables */
    double *da, *ds, *de;        /* direction */
    double *ca, *cs, *ce;        /* candidate */
    double *theta, *inverse;     /* a / s, and the inverse of its sum over a block */
    double *wanted, *missing, *wanted_missing;
} Blocks;

#define FOR_PIECES_OF_RUNS(x, b, i, count, anchor)                                                            \
    for (const Run *run = (x)->runs; run < (x)->runs + (x)->n_runs; run++)                                    \
        for (ptrdiff_t at = 0, count, anchor = run->anchor, b = run->block, i = run->example;                 \
             count = run->count - at < PIECE ? run->count - at : PIECE, at < run->count;                      \
             at += PIECE, b += PIECE, i += PIECE)

static void clear(double *out, ptrdiff_t size) { memset(out, 0, size * sizeof(double)); }

/* theta, the inverse of its sums, and what the dual slots miss of their weights; the sum of the products. */
POLYMARGIN_CLONES
static double linearise_blocks(const Blocks *x) {
    double product = 0.0, total[PIECE], sum[PIECE];
    for (ptrdiff_t b = 0; b < x->size; b += PIECE) {
        const ptrdiff_t count = x->size - b < PIECE ? x->size - b : PIECE;
        for (ptrdiff_t j = 0; j < count; j++) total[j] = sum[j] = 0.0;
        for (ptrdiff_t m = 0; m < x->k; m++) {
            const double *restrict a = x->a + m * x->size + b, *restrict s = x->s + m * x->size + b;
            double *restrict theta = x->theta + m * x->size + b;
            for (ptrdiff_t j = 0; j < count; j++) {
                const double ratio = a[j] / s[j];
                theta[j] = ratio;
                total[j] += ratio;
                sum[j] += a[j];
                product += a[j] * s[j];
            }
        }
        for (ptrdiff_t j = 0; j < count; j++) {
            x->inverse[b + j] = 1.0 / total[j];
            x->missing[b + j] = x->weight[b + j] - sum[j];
        }
    }
    return product;
}

/* weights (pairs of classes, n) of the curvature */
POLYMARGIN_CLONES
static void weigh_atoms(const Blocks *x, double *weights) {
    double scaled[PIECE];
    clear(weights, x->k * (x->k - 1) / 2 * x->n);
    FOR_PIECES_OF_RUNS(x, b, i, count, anchor) {
        double *restrict out = weights + i;
        for (ptrdiff_t m = 0; m + 1 < x->k; m++) {
            const double *restrict theta = x->theta + m * x->size + b, *restrict inverse = x->inverse + b;
            for (ptrdiff_t j = 0; j < count; j++) scaled[j] = theta[j] * inverse[j];
            for (ptrdiff_t other = m + 1; other < x->k; other++, out += x->n) {
                const double *restrict beside = x->theta + other * x->size + b;
                for (ptrdiff_t j = 0; j < count; j++) out[j] += scaled[j] * beside[j];
            }
        }
        (void)anchor;
    }
}

/* q (k, n): pull of dual slots on the classes; that on the anchor is minus the sum of the others */
POLYMARGIN_CLONES
static void pull_slots(const Blocks *x, const double *slots, double *q) {
    double others[PIECE];
    clear(q, x->k * x->n);
    FOR_PIECES_OF_RUNS(x, b, i, count, anchor) {
        clear(others, count);
        for (ptrdiff_t m = 0; m < x->k; m++) {
            if (m == anchor) continue;
            const double *restrict moved = slots + m * x->size + b;
            double *restrict out = q + m * x->n + i;
            for (ptrdiff_t j = 0; j < count; j++) {
                out[j] += moved[j];
                others[j] += moved[j];
            }
        }
        double *restrict own = q + anchor * x->n + i;
        for (ptrdiff_t j = 0; j < count; j++) own[j] -= others[j];
    }
}

/* q: pull of wanted - theta (sum wanted - missing) / sum theta */
POLYMARGIN_CLONES
static void eliminate(const Blocks *x, double *q) {
    double others[PIECE], shift[PIECE];
    clear(q, x->k * x->n);
    FOR_PIECES_OF_RUNS(x, b, i, count, anchor) {
        for (ptrdiff_t j = 0; j < count; j++) {
            shift[j] = -x->wanted_missing[b + j];
            others[j] = 0.0;
        }
        for (ptrdiff_t m = 0; m < x->k; m++) {
            const double *restrict wanted = x->wanted + m * x->size + b;
            for (ptrdiff_t j = 0; j < count; j++) shift[j] += wanted[j];
        }
        for (ptrdiff_t j = 0; j < count; j++) shift[j] *= x->inverse[b + j];
        for (ptrdiff_t m = 0; m < x->k; m++) {
            if (m == anchor) continue;
            const double *restrict wanted = x->wanted + m * x->size + b, *restrict theta = x->theta + m * x->size + b;
            double *restrict out = q + m * x->n + i;
            for (ptrdiff_t j = 0; j < count; j++) {
                const double moved = wanted[j] - shift[j] * theta[j];
                out[j] += moved;
                others[j] += moved;
            }
        }
        double *restrict own = q + anchor * x->n + i;
        for (ptrdiff_t j = 0; j < count; j++) own[j] -= others[j];
    }
}

/* The candidate for scores (k, n), added onto the direction if asked for; the largest rate of shrinking, at least 1/2. */
POLYMARGIN_CLONES
static double recover_slots(const Blocks *x, const double *scores, int onto) {
    double change[PIECE], rate = 0.5;
    FOR_PIECES_OF_RUNS(x, b, i, count, anchor) {
        const double *restrict own = scores + anchor * x->n + i;
        for (ptrdiff_t j = 0; j < count; j++) change[j] = -x->wanted_missing[b + j];
        for (ptrdiff_t m = 0; m < x->k; m++) {
            const double *restrict wanted = x->wanted + m * x->size + b, *restrict theta = x->theta + m * x->size + b;
            const double *restrict f = scores + m * x->n + i;
            for (ptrdiff_t j = 0; j < count; j++) change[j] += wanted[j] + theta[j] * (f[j] - own[j]);
        }
        for (ptrdiff_t j = 0; j < count; j++) {
            change[j] *= x->inverse[b + j];
            x->ce[b + j] = onto ? change[j] + x->de[b + j] : change[j];
        }
        for (ptrdiff_t m = 0; m < x->k; m++) {
            const ptrdiff_t place = m * x->size + b;
            const double *restrict wanted = x->wanted + place, *restrict theta = x->theta + place;
            const double *restrict f = scores + m * x->n + i;
            const double *restrict a = x->a + place, *restrict s = x->s + place;
            double *restrict ca = x->ca + place, *restrict cs = x->cs + place;
            for (ptrdiff_t j = 0; j < count; j++) {
                const double moved = change[j] - (f[j] - own[j]);
                cs[j] = moved;
                ca[j] = wanted[j] - theta[j] * moved;
            }
            if (onto) {
                const double *restrict da = x->da + place, *restrict ds = x->ds + place;
                for (ptrdiff_t j = 0; j < count; j++) {
                    ca[j] += da[j];
                    cs[j] += ds[j];
                }
            }
            for (ptrdiff_t j = 0; j < count; j++) {
                const double alpha_rate = -ca[j] / a[j], slack_rate = -cs[j] / s[j];
                const double larger = alpha_rate > slack_rate ? alpha_rate : slack_rate;
                rate = larger > rate ? larger : rate;
            }
        }
    }
    return rate;
}

/* what is wanted of the dual slots where products go to their share of the aim, the second order made up for */
POLYMARGIN_CLONES
static void want_aim(const Blocks *x, double aim) {
    for (ptrdiff_t m = 0; m < x->k; m++) {
        const ptrdiff_t place = m * x->size;
        const double *restrict a = x->a + place, *restrict s = x->s + place, *restrict weight = x->weight;
        const double *restrict da = x->da + place, *restrict ds = x->ds + place;
        double *restrict wanted = x->wanted + place;
        for (ptrdiff_t b = 0; b < x->size; b++) wanted[b] = (aim * weight[b] - da[b] * ds[b]) / s[b] - a[b];
    }
}

/* what is wanted of a correction that draws outliers among the products at a step `hoped` to the aim; products far
   above it are lowered only so much, lest they take over */
POLYMARGIN_CLONES
static void want_centrality(const Blocks *x, double aim, double hoped) {
    for (ptrdiff_t m = 0; m < x->k; m++) {
        const ptrdiff_t place = m * x->size;
        const double *restrict a = x->a + place, *restrict s = x->s + place, *restrict weight = x->weight;
        const double *restrict da = x->da + place, *restrict ds = x->ds + place;
        double *restrict wanted = x->wanted + place;
        for (ptrdiff_t b = 0; b < x->size; b++) {
            const double share = aim * weight[b], product = (a[b] + hoped * da[b]) * (s[b] + hoped * ds[b]);
            const double low = 0.1 * share - product, high = 10.0 * share - product;
            double change = high > -10.0 * share ? high : -10.0 * share;
            change = change < 0.0 ? change : 0.0;
            change = low > 0.0 ? low : change;
            wanted[b] = change / s[b];
        }
    }
}

/* what the sums of the direction's dual slots leave missing */
POLYMARGIN_CLONES
static void miss_after_direction(const Blocks *x) {
    for (ptrdiff_t b = 0; b < x->size; b++) x->wanted_missing[b] = x->missing[b];
    for (ptrdiff_t m = 0; m < x->k; m++) {
        const double *restrict da = x->da + m * x->size;
        for (ptrdiff_t b = 0; b < x->size; b++) x->wanted_missing[b] -= da[b];
    }
}

/* the sum of the products of so many slots after a step along their direction */
POLYMARGIN_CLONES
static double products_after(const double *restrict a, const double *restrict s, const double *restrict da,
                             const double *restrict ds, double length, ptrdiff_t size) {
    double product = 0.0;
    for (ptrdiff_t at = 0; at < size; at++) product += (a[at] + length * da[at]) * (s[at] + length * ds[at]);
    return product;
}

/* out[r] = x . y_r for four vectors, `stride` apart */
POLYMARGIN_CLONES
static void inner_four(const double *restrict x, const double *restrict y, ptrdiff_t stride, ptrdiff_t n, double *out) {
    const double *restrict y1 = y + stride, *restrict y2 = y1 + stride, *restrict y3 = y2 + stride;
    double sum = 0.0, sum1 = 0.0, sum2 = 0.0, sum3 = 0.0;
    for (ptrdiff_t j = 0; j < n; j++) {
        sum += x[j] * y[j];
        sum1 += x[j] * y1[j];
        sum2 += x[j] * y2[j];
        sum3 += x[j] * y3[j];
    }
    out[0] = sum;
    out[1] = sum1;
    out[2] = sum2;
    out[3] = sum3;
}

/* out (rows, columns) = left (rows, n) right' (n, columns); four of the right stay in the cache for all of the left */
static void inner_products(const double *left, ptrdiff_t rows, const double *right, ptrdiff_t columns, ptrdiff_t n,
                           double *out) {
    ptrdiff_t c = 0;
    for (; c + 4 <= columns; c += 4)
        for (ptrdiff_t r = 0; r < rows; r++) inner_four(left + r * n, right + c * n, n, n, out + r * columns + c);
    for (; c < columns; c++)
        for (ptrdiff_t r = 0; r < rows; r++) out[r * columns + c] = inner(left + r * n, right + c * n, n);
}

/* out (rows, n) = factors (rows, columns) right (columns, n) */
static void combine_rows(const double *factors, ptrdiff_t rows, const double *right, ptrdiff_t columns, ptrdiff_t n,
                         double *out) {
    clear(out, rows * n);
    for (ptrdiff_t r = 0; r < rows; r++) {
        ptrdiff_t c = 0;
        for (; c + 4 <= columns; c += 4)
            add_four_doubles(out + r * n, right + c * n, right + (c + 1) * n, right + (c + 2) * n,
                             right + (c + 3) * n, factors + r * columns + c, n);
        for (; c < columns; c++) accumulate(out + r * n, factors[r * columns + c], right + c * n, n);
    }
}

#endif
