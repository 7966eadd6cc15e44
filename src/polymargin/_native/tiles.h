/* Products of many short rows in registers: their Gram matrices, their products with a few columns, their margins.

   BLAS is at its best where all sides are long. Rows of at most a few hundred numbers that come by once cost it as
   much in packing as in multiplying. Tiles of 4 x 12 numbers fill the registers of processors with AVX2; where the
   linker can choose at run time, a version for these and one for all others are compiled. */
#ifndef POLYMARGIN_TILES_H
#define POLYMARGIN_TILES_H

#include <math.h>
#include <stddef.h>

#if defined(__x86_64__) && defined(__linux__) && defined(__GNUC__) && !defined(__clang__)
#define POLYMARGIN_TILED __attribute__((target_clones("arch=x86-64-v3", "default"), optimize("fp-contract=fast")))
#else
#define POLYMARGIN_TILED
#endif

#define TILE_ROWS 4
#define TILE_COLUMNS 12

typedef double four __attribute__((vector_size(32), aligned(8)));
typedef four tile[TILE_ROWS][3];

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

#endif
