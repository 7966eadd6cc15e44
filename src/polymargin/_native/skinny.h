/* Products of a large matrix with a few columns, in registers.

   BLAS packs the matrix before it multiplies, which pays where the other side is wide. With a few columns every
   entry is used a few times only: here it is read once, where it lies, and the sums of six rows by two registers
   of columns, or of twelve by one, stay in the processor. For x86 processors with AVX2 and FMA, in wider registers
   where there is AVX-512; which, is found out at run time. BLAS serves others. */

#ifndef POLYMARGIN_SKINNY_H
#define POLYMARGIN_SKINNY_H

#include <stddef.h>

/* Rows of a tile. */
#define SKINNY_ROWS 12

/* Columns of the matrix at a time: what they meet of the other factor stays in the second cache. */
#define SKINNY_CHUNK 2048

/* What a product takes, of numbers of a kind. */
#define PRODUCT_OF(number)                                                                                      \
    const number *matrix, ptrdiff_t stride, ptrdiff_t n_rows, ptrdiff_t n,                                      \
        const number *panels, ptrdiff_t panel_rows, ptrdiff_t skipped, ptrdiff_t width, number *out

#if defined(__x86_64__) && defined(__GNUC__)
#include <immintrin.h>
#define POLYMARGIN_AVX2 __attribute__((target("avx2,fma")))
#define POLYMARGIN_AVX512 __attribute__((target("avx512f,avx2,fma")))

static int has_skinny_products(void) { return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma"); }

static int has_wide_registers(void) { return __builtin_cpu_supports("avx512f"); }

/* The sums of a tile have names of their own, as compilers keep an array of them in memory. */
#define SIX_TIMES(what, ...) \
    what(0, __VA_ARGS__) what(1, __VA_ARGS__) what(2, __VA_ARGS__) what(3, __VA_ARGS__) what(4, __VA_ARGS__) \
        what(5, __VA_ARGS__)
#define TWELVE_TIMES(what, ...)                                                                              \
    SIX_TIMES(what, __VA_ARGS__)                                                                             \
    what(6, __VA_ARGS__) what(7, __VA_ARGS__) what(8, __VA_ARGS__) what(9, __VA_ARGS__) what(10, __VA_ARGS__) \
        what(11, __VA_ARGS__)
#define BEGIN_TWO(r, vector, zero) vector left##r = zero(), right##r = zero();
#define BEGIN_ONE(r, vector, zero) vector left##r = zero();
#define STEP_TWO(r, same, multiply_add)                        \
    value = same(row[r] + j);                                  \
    left##r = multiply_add(value, first_columns, left##r);     \
    right##r = multiply_add(value, last_columns, right##r);
#define STEP_ONE(r, same, multiply_add) left##r = multiply_add(same(row[r] + j), columns, left##r);
#define END_ONE(r, lanes, load, store, add) \
    if (r < n_rows) store(out + r * width, add(load(out + r * width), left##r));
#define END_TWO(r, lanes, load, store, add)   \
    END_ONE(r, lanes, load, store, add)       \
    if (r < n_rows) store(out + r * width + lanes, add(load(out + r * width + lanes), right##r));

/* Add the product of some rows with a panel of one register of columns to as many rows of out, at most n_rows. */
#define TILE_OF_ONE(name, processor, times, number, vector, lanes, zero, load, store, same, add, multiply_add)  \
    processor                                                                                                    \
    static void name(const number *const *row, ptrdiff_t n, const number *panel, number *out, ptrdiff_t width,   \
                     ptrdiff_t n_rows) {                                                                         \
        times(BEGIN_ONE, vector, zero)                                                                           \
        for (ptrdiff_t j = 0; j < n; j++, panel += lanes) {                                                      \
            const vector columns = load(panel);                                                                  \
            times(STEP_ONE, same, multiply_add)                                                                  \
        }                                                                                                        \
        times(END_ONE, lanes, load, store, add)                                                                  \
    }

/* The same of six rows with a panel of two registers. */
#define TILE_OF_TWO(name, processor, number, vector, lanes, zero, load, store, same, add, multiply_add)         \
    processor                                                                                                    \
    static void name##_by_sixes(const number *const *row, ptrdiff_t n, const number *panel, number *out,         \
                                ptrdiff_t width, ptrdiff_t n_rows) {                                             \
        SIX_TIMES(BEGIN_TWO, vector, zero)                                                                       \
        for (ptrdiff_t j = 0; j < n; j++, panel += 2 * lanes) {                                                  \
            const vector first_columns = load(panel), last_columns = load(panel + lanes);                        \
            vector value;                                                                                        \
            SIX_TIMES(STEP_TWO, same, multiply_add)                                                              \
        }                                                                                                        \
        SIX_TIMES(END_TWO, lanes, load, store, add)                                                              \
    }                                                                                                            \
    static void name(const number *const *row, ptrdiff_t n, const number *panel, number *out, ptrdiff_t width,   \
                     ptrdiff_t n_rows) {                                                                         \
        name##_by_sixes(row, n, panel, out, width, n_rows);                                                      \
        if (n_rows > 6) name##_by_sixes(row + 6, n, panel, out + 6 * width, width, n_rows - 6);                  \
    }

/* out (n_rows, width) += matrix (n_rows, n) V. The matrix's rows are `stride` apart.
   The width is a number of registers of AVX2; V comes by panels of two of them, the last of one where their number is
   odd: all rows of the first panel, then those of the next. They have `panel_rows` rows, of which V begins with row
   `skipped`. */
#define PRODUCT_BY_TILES(name, whole_panel, half_panel, number, half)                                             \
    static void name(PRODUCT_OF(number)) {                                                                        \
        for (ptrdiff_t first = 0; first < n; first += SKINNY_CHUNK) {                                             \
            const ptrdiff_t length = n - first < SKINNY_CHUNK ? n - first : SKINNY_CHUNK;                         \
            for (ptrdiff_t i = 0; i < n_rows; i += SKINNY_ROWS) {                                                 \
                const number *row[SKINNY_ROWS];                                                                   \
                for (int r = 0; r < SKINNY_ROWS; r++) {                                                           \
                    const ptrdiff_t at = i + r < n_rows ? i + r : n_rows - 1;                                     \
                    row[r] = matrix + at * stride + first;                                                        \
                }                                                                                                 \
                for (ptrdiff_t c = 0; c < width; c += 2 * half) {                                                 \
                    const ptrdiff_t wide = width - c >= 2 * half ? 2 * half : half;                               \
                    const number *panel = panels + c * panel_rows + (skipped + first) * wide;                     \
                    (wide == half ? half_panel : whole_panel)(row, length, panel, out + i * width + c, width,     \
                                                              n_rows - i);                                        \
                }                                                                                                 \
            }                                                                                                     \
        }                                                                                                         \
    }

#define FLOATS __m256, 8, _mm256_setzero_ps, _mm256_loadu_ps, _mm256_storeu_ps, _mm256_broadcast_ss, \
               _mm256_add_ps, _mm256_fmadd_ps
#define DOUBLES __m256d, 4, _mm256_setzero_pd, _mm256_loadu_pd, _mm256_storeu_pd, _mm256_broadcast_sd, \
                _mm256_add_pd, _mm256_fmadd_pd
#define SAME_FLOATS(place) _mm512_set1_ps(*(place))
#define SAME_DOUBLES(place) _mm512_set1_pd(*(place))
#define WIDE_FLOATS __m512, 16, _mm512_setzero_ps, _mm512_loadu_ps, _mm512_storeu_ps, SAME_FLOATS, \
                    _mm512_add_ps, _mm512_fmadd_ps
#define WIDE_DOUBLES __m512d, 8, _mm512_setzero_pd, _mm512_loadu_pd, _mm512_storeu_pd, SAME_DOUBLES, \
                     _mm512_add_pd, _mm512_fmadd_pd
#define EXPANDED(macro, ...) macro(__VA_ARGS__)

/* out (n, width) += the transpose of six rows of doubles times V (6, width), of one register of columns or of two:
   what a column of the matrix adds to is read and written once for six rows. */
#define ROWS_OF_ONE(r, vector, load) const vector left##r = load(V + r * width);
#define ROWS_OF_TWO(r, vector, load) \
    const vector left##r = load(V + r * width), right##r = load(V + r * width + sizeof(vector) / sizeof(double));
#define SPREAD_ONE(r, same, multiply_add) first = multiply_add(same(row[r] + j), left##r, first);
#define SPREAD_TWO(r, same, multiply_add)      \
    value = same(row[r] + j);                  \
    first = multiply_add(value, left##r, first); \
    last = multiply_add(value, right##r, last);
#define SPREAD_OF_ONE(name, processor, vector, lanes, zero, load, store, same, add, multiply_add)                \
    processor                                                                                                    \
    static void name(const double *const *row, ptrdiff_t n, const double *V, double *out, ptrdiff_t width) {     \
        SIX_TIMES(ROWS_OF_ONE, vector, load)                                                                     \
        for (ptrdiff_t j = 0; j < n; j++, out += width) {                                                        \
            vector first = load(out);                                                                            \
            SIX_TIMES(SPREAD_ONE, same, multiply_add)                                                            \
            store(out, first);                                                                                   \
        }                                                                                                        \
    }
#define SPREAD_OF_TWO(name, processor, vector, lanes, zero, load, store, same, add, multiply_add)                \
    processor                                                                                                    \
    static void name(const double *const *row, ptrdiff_t n, const double *V, double *out, ptrdiff_t width) {     \
        SIX_TIMES(ROWS_OF_TWO, vector, load)                                                                     \
        for (ptrdiff_t j = 0; j < n; j++, out += width) {                                                        \
            vector first = load(out), last = load(out + lanes), value;                                           \
            SIX_TIMES(SPREAD_TWO, same, multiply_add)                                                            \
            store(out, first);                                                                                   \
            store(out + lanes, last);                                                                            \
        }                                                                                                        \
    }

EXPANDED(SPREAD_OF_ONE, spread_half, POLYMARGIN_AVX2, DOUBLES)
EXPANDED(SPREAD_OF_TWO, spread_narrow, POLYMARGIN_AVX2, DOUBLES)
EXPANDED(SPREAD_OF_ONE, spread_one_wide, POLYMARGIN_AVX512, WIDE_DOUBLES)
EXPANDED(SPREAD_OF_TWO, spread_two_wide, POLYMARGIN_AVX512, WIDE_DOUBLES)

/* Columns of the matrix at a time: what they add to stays in the second cache. */
#define SPREAD_CHUNK 1024

/* out (n, width) += the transpose of the rows of the matrix that `which` names times V. The width is a number of
   registers of AVX2; V has rows of zeros behind the others, so that their number is a multiple of six. */
static void add_transposed_product(const double *matrix, ptrdiff_t stride, const ptrdiff_t *which, ptrdiff_t n_rows,
                                   ptrdiff_t n, const double *V, ptrdiff_t width, double *out, int narrow) {
    for (ptrdiff_t first = 0; first < n; first += SPREAD_CHUNK) {
        const ptrdiff_t length = n - first < SPREAD_CHUNK ? n - first : SPREAD_CHUNK;
        for (ptrdiff_t i = 0; i < n_rows; i += 6) {
            const double *row[6];
            for (int r = 0; r < 6; r++) row[r] = matrix + which[i + r < n_rows ? i + r : n_rows - 1] * stride + first;
            for (ptrdiff_t c = 0; c < width;) {
                const double *factor = V + i * width + c;
                double *place = out + first * width + c;
                if (!narrow && width - c >= 16) {
                    spread_two_wide(row, length, factor, place, width);
                    c += 16;
                } else if (width - c >= 8) {
                    (narrow ? spread_narrow : spread_one_wide)(row, length, factor, place, width);
                    c += 8;
                } else {
                    spread_half(row, length, factor, place, width);
                    c += 4;
                }
            }
        }
    }
}

EXPANDED(TILE_OF_ONE, add_to_half, POLYMARGIN_AVX2, TWELVE_TIMES, float, FLOATS)
EXPANDED(TILE_OF_TWO, add_to_narrow, POLYMARGIN_AVX2, float, FLOATS)
EXPANDED(TILE_OF_ONE, add_to_wide, POLYMARGIN_AVX512, TWELVE_TIMES, float, WIDE_FLOATS)
PRODUCT_BY_TILES(add_narrow_float_product, add_to_narrow, add_to_half, float, 8)
PRODUCT_BY_TILES(add_wide_float_product, add_to_wide, add_to_half, float, 8)

EXPANDED(TILE_OF_ONE, add_to_half_of_doubles, POLYMARGIN_AVX2, TWELVE_TIMES, double, DOUBLES)
EXPANDED(TILE_OF_TWO, add_to_narrow_doubles, POLYMARGIN_AVX2, double, DOUBLES)
EXPANDED(TILE_OF_ONE, add_to_wide_doubles, POLYMARGIN_AVX512, TWELVE_TIMES, double, WIDE_DOUBLES)
PRODUCT_BY_TILES(add_narrow_double_product, add_to_narrow_doubles, add_to_half_of_doubles, double, 4)
PRODUCT_BY_TILES(add_wide_double_product, add_to_wide_doubles, add_to_half_of_doubles, double, 4)

#else

static int has_skinny_products(void) { return 0; }
static int has_wide_registers(void) { return 0; }
static void add_narrow_float_product(PRODUCT_OF(float)) {}
static void add_narrow_double_product(PRODUCT_OF(double)) {}
static void add_transposed_product(const double *matrix, ptrdiff_t stride, const ptrdiff_t *which, ptrdiff_t n_rows,
                                   ptrdiff_t n, const double *V, ptrdiff_t width, double *out, int narrow) {}
#define add_wide_float_product add_narrow_float_product
#define add_wide_double_product add_narrow_double_product

#endif

static void add_float_product(PRODUCT_OF(float)) {
    (has_wide_registers() ? add_wide_float_product : add_narrow_float_product)(
        matrix, stride, n_rows, n, panels, panel_rows, skipped, width, out);
}

static void add_double_product(PRODUCT_OF(double)) {
    (has_wide_registers() ? add_wide_double_product : add_narrow_double_product)(
        matrix, stride, n_rows, n, panels, panel_rows, skipped, width, out);
}

#endif
