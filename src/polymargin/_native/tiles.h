/* Products of many short rows in registers: their Gram matrices, their products with a few columns, their margins.

   BLAS is at its best where all sides are long. Rows of at most a few hundred numbers that come by once cost it as
   much in packing as in multiplying, and as much again in waiting for the memory. Tiles of 4 x 12 numbers fill the
   registers of processors with AVX2; where the linker can choose at run time, a version for these and one for all
   others are compiled. */
#ifndef POLYMARGIN_TILES_H
#define POLYMARGIN_TILES_H

#include <stddef.h>
#include <stdint.h>

#if defined(__x86_64__) && defined(__linux__) && defined(__GNUC__) && !defined(__clang__)
#define POLYMARGIN_TILED __attribute__((target_clones("arch=x86-64-v3", "default"), optimize("fp-contract=fast")))
#else
#define POLYMARGIN_TILED
#endif

#define TILE_ROWS 4
#define TILE_COLUMNS 12

typedef double four __attribute__((vector_size(32), aligned(8)));
typedef int64_t flags __attribute__((vector_size(32), aligned(8)));

/* sums[r] += left[r] * right, where right is so many groups of four numbers */
#define ADD_TO_TILE(sums, groups, left, right)                                                                \
    {                                                                                                         \
        four factors[groups];                                                                                 \
        for (int g = 0; g < groups; g++) factors[g] = *(const four *)((right) + 4 * g);                      \
        for (int r = 0; r < TILE_ROWS; r++) {                                                                 \
            const double value = (left);                                                                      \
            const four same = {value, value, value, value};                                                   \
            for (int g = 0; g < groups; g++) sums[r][g] += same * factors[g];                                 \
        }                                                                                                     \
    }

/* Add the tile of R'R with rows from `top` and so many groups of four columns from `begin` to gram. */
#define ADD_GRAM_TILE(groups)                                                                                 \
    {                                                                                                         \
        four sums[TILE_ROWS][groups] = {{{0}}};                                                               \
        const double *row = rows;                                                                             \
        for (ptrdiff_t i = 0; i < n; i++, row += width) ADD_TO_TILE(sums, groups, row[top + r], row + begin)  \
        for (int r = 0; r < TILE_ROWS; r++)                                                                   \
            for (int g = 0; g < groups; g++) *(four *)(gram + (top + r) * width + begin + 4 * g) += sums[r][g]; \
        begin += 4 * groups;                                                                                  \
    }

/* Rows whose products come this much later are fetched into the cache meanwhile. */
#define ROWS_AHEAD 16

/* Lines of the cache that are fetched ahead with every tile of a Gram matrix. */
#define LINES_AHEAD 10

/* Add R'R of rows R (n, width) to the upper triangle of gram (width, width). The width is a multiple of 4. As
   much of what comes `next` is fetched meanwhile, as the multiplication alone would leave the memory idle. */
POLYMARGIN_TILED
static void add_gram(const double *rows, ptrdiff_t n, ptrdiff_t width, double *gram, const void *next) {
    const char *line = next, *end = line + n * width * sizeof(double);
    for (ptrdiff_t top = 0; top < width; top += TILE_ROWS) {
        for (ptrdiff_t begin = top; begin < width;) {
            for (int i = 0; i < LINES_AHEAD && line < end; i++, line += 64) __builtin_prefetch(line, 0, 2);
            const ptrdiff_t groups = (width - begin) / 4;
            if (groups == 1) ADD_GRAM_TILE(1)
            else if (groups == 2 || groups == 4) ADD_GRAM_TILE(2)
            else ADD_GRAM_TILE(3)
        }
    }
}

/* out (n, width) = X (n, p) V, where V (width / 12, p, 12) is given by panels of 12 columns. */
POLYMARGIN_TILED
static void multiply(const double *X, ptrdiff_t n, ptrdiff_t p, const double *panels, ptrdiff_t width, double *out) {
    for (ptrdiff_t i = 0; i < n; i += TILE_ROWS) {
        const double *row[TILE_ROWS];
        for (int r = 0; r < TILE_ROWS; r++) row[r] = X + (i + r < n ? i + r : n - 1) * p;
        const char *ahead = (const char *)(row[0] + ROWS_AHEAD * p), *end = ahead + TILE_ROWS * p * sizeof(double);
        for (; ahead < end; ahead += 64) __builtin_prefetch(ahead, 0, 2);
        for (ptrdiff_t begin = 0; begin < width; begin += TILE_COLUMNS) {
            four sums[TILE_ROWS][3] = {{{0}}};
            const double *v = panels + begin * p;
            for (ptrdiff_t j = 0; j < p; j++, v += TILE_COLUMNS) ADD_TO_TILE(sums, 3, row[r][j], v)
            for (int r = 0; r < TILE_ROWS && i + r < n; r++)
                for (int g = 0; g < 3; g++) *(four *)(out + (i + r) * width + begin + 4 * g) = sums[r][g];
        }
    }
}

/* Errors t = 1 - sign (scale s - offset) of n rows in four problems, which change by at most
   reach_scale |s - middle| + reach_offset. `point` holds scale, offset, middle and both reaches, `stride` apart, as
   are the five sums: over rows whose t stays positive their weights w, w sign, w s, w sign s and w s^2. Adds marks
   of the rows whose t does to `stays` and, where it may change its sign, one bit a problem, from `bit` on, to
   `turns`; both have four parts to a row. */
POLYMARGIN_TILED
static void scan_four(const double *scores, const ptrdiff_t *labels, const double *weights, ptrdiff_t n,
                      const double *signs, const double *factors, const double *point, ptrdiff_t stride,
                      double *sums, int bit, flags *stays, flags *turns) {
    const flags magnitude = {INT64_MAX, INT64_MAX, INT64_MAX, INT64_MAX};
    const four scale = *(const four *)point, offset = *(const four *)(point + stride);
    const four middle = *(const four *)(point + 2 * stride), reach_scale = *(const four *)(point + 3 * stride);
    const four reach_offset = *(const four *)(point + 4 * stride);
    const flags bits = {1LL << bit, 2LL << bit, 4LL << bit, 8LL << bit};
    four out[5] = {{0}};
    for (ptrdiff_t i = 0; i < n; i++) {
        const four s = *(const four *)(scores + i * stride), sign = *(const four *)(signs + labels[i] * stride);
        const four t = 1.0 - sign * (scale * s - offset);
        const four reach = reach_scale * (four)((flags)(s - middle) & magnitude) + reach_offset;
        const flags positive = (flags)(t > reach), small = (flags)((four)((flags)t & magnitude) <= reach);
        const four weight = weights[i] * *(const four *)(factors + labels[i] * stride);
        const four w = (four)((flags)weight & positive), ws = w * s;
        out[0] += w;
        out[1] += w * sign;
        out[2] += ws;
        out[3] += ws * sign;
        out[4] += ws * s;
        stays[i] |= positive;
        turns[i] |= small & bits;
    }
    for (int entry = 0; entry < 5; entry++) *(four *)(sums + entry * stride) += out[entry];
}

/* Position of the lowest bit of marks that has been set. */
static inline ptrdiff_t lowest_bit(int64_t marks) { return __builtin_ctzll((uint64_t)marks); }

/* Add the six sums of `margin_sums` over n entries of one problem, of scores s, signs d and weights w, to sums that
   are `stride` apart. */
POLYMARGIN_TILED
static void sum_entries(const double *s, const double *d, const double *w, ptrdiff_t n, double scale, double offset,
                        double *sums, ptrdiff_t stride) {
    double rest[3][4] = {{0}};
    four out[6] = {{0}};
    for (ptrdiff_t i = 0; i < n; i += 4) {
        const double *entries[3] = {s + i, d + i, w + i};
        for (int part = 0; part < 3 && i + 4 > n; part++) {
            for (ptrdiff_t j = i; j < n; j++) rest[part][j - i] = entries[part][j - i];
            entries[part] = rest[part];
        }
        const four score = *(const four *)entries[0], sign = *(const four *)entries[1];
        const four t = 1.0 - sign * (scale * score - offset);
        const four weight = (four)((flags)*(const four *)entries[2] & (flags)(t > 0.0));
        const four pull = weight * t, weighted = weight * score;
        out[0] += pull * t;
        out[1] += pull * sign * score;
        out[2] += pull * sign;
        out[3] += weighted * score;
        out[4] += weighted;
        out[5] += weight;
    }
    for (int entry = 0; entry < 6; entry++)
        sums[entry * stride] += (out[entry][0] + out[entry][1]) + (out[entry][2] + out[entry][3]);
}

#endif
