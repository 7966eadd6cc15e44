/* Products of sparse rows with tables of a few columns, in registers.

   A row's entries meet rows of the table, whose columns are so few that a loop over them is over before it is quick.
   Here the table is as wide as whole registers, and the loop over entries is the inner one: the sums stay where they
   are. Where the linker can choose at run time, a version for processors with AVX2 and one for all others are
   compiled. */
#ifndef POLYMARGIN_SPARSE_ROWS_H
#define POLYMARGIN_SPARSE_ROWS_H

#include "tiles.h"

#define GROUP 4

/* sums += entry e of the row times its groups of W */
#define ADD_ENTRY(groups, e, sums)                                                             \
    {                                                                                          \
        const double *w = W + (ptrdiff_t)columns[e] * width;                                   \
        const double value = values[e];                                                        \
        const four same = {value, value, value, value};                                        \
        for (int g = 0; g < groups; g++) sums[g] += same * *(const four *)(w + GROUP * g);     \
    }

/* out[:groups] += the row's product with so many groups of four columns of W; two sums, as one would wait for itself */
#define ADD_PRODUCT_OF_ROW(groups)                                                             \
    {                                                                                          \
        four sums[groups], others[groups] = {{0}};                                             \
        ptrdiff_t e = 0;                                                                       \
        for (int g = 0; g < groups; g++) sums[g] = *(const four *)(out + GROUP * g);           \
        for (; e + 1 < entries; e += 2) {                                                      \
            ADD_ENTRY(groups, e, sums)                                                         \
            ADD_ENTRY(groups, e + 1, others)                                                   \
        }                                                                                      \
        if (e < entries) ADD_ENTRY(groups, e, sums)                                            \
        for (int g = 0; g < groups; g++) *(four *)(out + GROUP * g) = sums[g] + others[g];     \
    }

/* W[columns, :groups] += the row's entries times so many groups of four numbers of change */
#define ADD_ROW_TIMES(groups)                                                                      \
    {                                                                                              \
        four changes[groups];                                                                      \
        for (int g = 0; g < groups; g++) changes[g] = *(const four *)(change + GROUP * g);         \
        for (ptrdiff_t e = 0; e < entries; e++) {                                                  \
            double *w = W + (ptrdiff_t)columns[e] * width;                                         \
            const double value = values[e];                                                        \
            const four same = {value, value, value, value};                                        \
            for (int g = 0; g < groups; g++) *(four *)(w + GROUP * g) += same * changes[g];        \
        }                                                                                          \
    }

/* Do something to all groups, four, two and one of them at a time; `at` is what moves on besides W. */
#define IN_GROUPS(what, at)                                                             \
    ptrdiff_t left = width / GROUP;                                                     \
    for (; left >= 4; left -= 4, at += 4 * GROUP, W += 4 * GROUP) what(4)               \
    if (left == 3) what(3)                                                              \
    if (left == 2) what(2)                                                              \
    if (left == 1) what(1)

#define ROWS_OF(number, index, name)                                                                         \
    POLYMARGIN_TILED                                                                                         \
    static void score_##name(const number *restrict values, const index *restrict columns, ptrdiff_t entries, \
                             const double *restrict W, ptrdiff_t width, double *restrict out) {              \
        IN_GROUPS(ADD_PRODUCT_OF_ROW, out)                                                                   \
    }                                                                                                        \
    POLYMARGIN_TILED                                                                                         \
    static void change_##name(const number *restrict values, const index *restrict columns, ptrdiff_t entries, \
                              double *restrict W, ptrdiff_t width, const double *restrict change) {          \
        IN_GROUPS(ADD_ROW_TIMES, change)                                                                     \
    }

ROWS_OF(double, int, doubles)
ROWS_OF(float, int, floats)
ROWS_OF(double, long long, doubles_far)
ROWS_OF(float, long long, floats_far)

#endif
