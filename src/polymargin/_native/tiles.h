/* Products of many short rows in registers: their Gram matrices, their products with a few columns, their margins.

   BLAS is at its best where all sides are long. Rows of at most a few hundred numbers that come by once cost it as
   much in packing as in multiplying. Tiles of 4 x 12 numbers fill the registers of processors with AVX2; where the
   linker can choose at run time, a version for these and one for all others are compiled. */
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
typedef four tile[TILE_ROWS][3];
typedef int64_t flags __attribute__((vector_size(32), aligned(8)));

/* tile[r] += left[r] * right[0..11] */
#define ADD_TO_TILE(sums, left, right)                                                                        \
    {                                                                                                         \
        const four first = *(const four *)(right), second = *(const four *)((right) + 4);                    \
        const four third = *(const four *)((right) + 8);                                                      \
        for (int r = 0; r < TILE_ROWS; r++) {                                                                 \
            const double value = (left);                                                                      \
            const four factor = {value, value, value, value};                                                 \
            sums[r][0] += factor * first;                                                                     \
            sums[r][1] += factor * second;                                                                    \
            sums[r][2] += factor * third;                                                                     \
        }                                                                                                     \
    }

/* Add R'R of rows R (n, width) to the upper triangle of gram (width, width). The width is a multiple of 4 and at
   least 12. Tiles are laid from the right; the leftmost overlaps its neighbour and adds only what that lacks. */
POLYMARGIN_TILED
static void add_gram(const double *rows, ptrdiff_t n, ptrdiff_t width, double *gram) {
    for (ptrdiff_t top = 0; top < width; top += TILE_ROWS) {
        for (ptrdiff_t end = width; end > top; end -= TILE_COLUMNS) {
            const ptrdiff_t begin = end >= TILE_COLUMNS ? end - TILE_COLUMNS : 0;
            tile sums = {{{0}}};
            const double *row = rows;
            for (ptrdiff_t i = 0; i < n; i++, row += width) ADD_TO_TILE(sums, row[top + r], row + begin)
            for (int r = 0; r < TILE_ROWS; r++) {
                four *out = (four *)(gram + (top + r) * width + begin);
                out[0] += sums[r][0];
                if (end - begin > 4) out[1] += sums[r][1];
                if (end - begin > 8) out[2] += sums[r][2];
            }
        }
    }
}

/* out (n, width) = X (n, p) V, where V (width / 12, p, 12) is given by panels of 12 columns. */
POLYMARGIN_TILED
static void multiply(const double *X, ptrdiff_t n, ptrdiff_t p, const double *panels, ptrdiff_t width, double *out) {
    for (ptrdiff_t i = 0; i < n; i += TILE_ROWS) {
        const double *row[TILE_ROWS];
        for (int r = 0; r < TILE_ROWS; r++) row[r] = X + (i + r < n ? i + r : n - 1) * p;
        for (ptrdiff_t begin = 0; begin < width; begin += TILE_COLUMNS) {
            tile sums = {{{0}}};
            const double *v = panels + begin * p;
            for (ptrdiff_t j = 0; j < p; j++, v += TILE_COLUMNS) ADD_TO_TILE(sums, row[r][j], v)
            for (int r = 0; r < TILE_ROWS && i + r < n; r++)
                for (int s = 0; s < 3; s++) *(four *)(out + (i + r) * width + begin + 4 * s) = sums[r][s];
        }
    }
}

/* Errors t = 1 - sign (scale s - offset) of n rows in four problems, which change by at most
   reach_scale |s - middle| + reach_offset. `point` holds scale, offset, middle and both reaches, `stride` apart, as
   are the five sums: over rows whose t stays positive their weights w, w sign, w s, w sign s and w s^2. Adds to
   `stays` marks of the rows whose t does, and to `turns` of those whose t may change its sign. */
POLYMARGIN_TILED
static void scan_four(const double *scores, const ptrdiff_t *labels, const double *weights, ptrdiff_t n,
                      const double *signs, const double *factors, const double *point, ptrdiff_t stride,
                      double *sums, flags *stays, flags *turns) {
    const flags magnitude = {INT64_MAX, INT64_MAX, INT64_MAX, INT64_MAX};
    const four scale = *(const four *)point, offset = *(const four *)(point + stride);
    const four middle = *(const four *)(point + 2 * stride), reach_scale = *(const four *)(point + 3 * stride);
    const four reach_offset = *(const four *)(point + 4 * stride);
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
        turns[i] |= small;
    }
    for (int entry = 0; entry < 5; entry++) *(four *)(sums + entry * stride) += out[entry];
}

#endif
