/* Products of a large matrix with a few columns, in registers.

   BLAS packs the matrix before it multiplies, which pays where the other side is wide. With a few columns every
   entry is used a few times only: here it is read once, where it lies, and the sums of six rows by two registers of
   columns stay in the processor. For x86 processors with AVX2 and FMA, found out at run time; BLAS serves others. */
#ifndef POLYMARGIN_SKINNY_H
#define POLYMARGIN_SKINNY_H

#include <stddef.h>

#define SKINNY_ROWS 6

/* Columns of the matrix at a time: what they meet of the other factor stays in the second cache. */
#define SKINNY_CHUNK 2048

#if defined(__x86_64__) && defined(__GNUC__)
#include <immintrin.h>
#define POLYMARGIN_AVX2 __attribute__((target("avx2,fma")))

static int has_skinny_products(void) { return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma"); }

/* Add the product of six rows with a panel of two registers of columns, or of one, to six rows of out. The sums
   have names of their own, as compilers keep an array of them in memory. */
#define SIX_TIMES(what, ...) \
    what(0, __VA_ARGS__) what(1, __VA_ARGS__) what(2, __VA_ARGS__) what(3, __VA_ARGS__) what(4, __VA_ARGS__) \
        what(5, __VA_ARGS__)
#define BEGIN_TWO(r, vector, zero) vector left##r = zero(), right##r = zero();
#define BEGIN_ONE(r, vector, zero) vector left##r = zero();
#define STEP_TWO(r, same, multiply_add)                        \
    value = same(row[r] + j);                                  \
    left##r = multiply_add(value, first_columns, left##r);     \
    right##r = multiply_add(value, last_columns, right##r);
#define STEP_ONE(r, same, multiply_add) left##r = multiply_add(same(row[r] + j), first_columns, left##r);
#define END_ONE(r, lanes, load, store, add) \
    if (r < n_rows) store(out + r * width, add(load(out + r * width), left##r));
#define END_TWO(r, lanes, load, store, add)   \
    END_ONE(r, lanes, load, store, add)       \
    if (r < n_rows) store(out + r * width + lanes, add(load(out + r * width + lanes), right##r));

/* out (n_rows, width) += matrix (n_rows, n) V. The matrix's rows are `stride` apart. The width is a number of
   registers; V comes by panels of two registers of columns, the last of one where their number is odd: all rows of
   the first panel, then those of the next. They have `panel_rows` rows, of which V begins with row `skipped`. */
#define SKINNY_PRODUCT(name, tile, number, vector, lanes, zero, load, store, same, add, multiply_add)              \
    POLYMARGIN_AVX2                                                                                               \
    static void tile##_two(const number *const *row, ptrdiff_t n, const number *panel, number *out,               \
                           ptrdiff_t width, ptrdiff_t n_rows) {                                                   \
        SIX_TIMES(BEGIN_TWO, vector, zero)                                                                        \
        for (ptrdiff_t j = 0; j < n; j++, panel += 2 * lanes) {                                                   \
            const vector first_columns = load(panel), last_columns = load(panel + lanes);                         \
            vector value;                                                                                         \
            SIX_TIMES(STEP_TWO, same, multiply_add)                                                               \
        }                                                                                                         \
        SIX_TIMES(END_TWO, lanes, load, store, add)                                                               \
    }                                                                                                             \
    POLYMARGIN_AVX2                                                                                               \
    static void tile##_one(const number *const *row, ptrdiff_t n, const number *panel, number *out,               \
                           ptrdiff_t width, ptrdiff_t n_rows) {                                                   \
        SIX_TIMES(BEGIN_ONE, vector, zero)                                                                        \
        for (ptrdiff_t j = 0; j < n; j++, panel += lanes) {                                                       \
            const vector first_columns = load(panel);                                                             \
            SIX_TIMES(STEP_ONE, same, multiply_add)                                                               \
        }                                                                                                         \
        SIX_TIMES(END_ONE, lanes, load, store, add)                                                               \
    }                                                                                                             \
    static void name(const number *matrix, ptrdiff_t stride, ptrdiff_t n_rows, ptrdiff_t n, const number *panels, \
                     ptrdiff_t panel_rows, ptrdiff_t skipped, ptrdiff_t width, number *out) {                     \
        for (ptrdiff_t first = 0; first < n; first += SKINNY_CHUNK) {                                             \
            const ptrdiff_t length = n - first < SKINNY_CHUNK ? n - first : SKINNY_CHUNK;                         \
            for (ptrdiff_t i = 0; i < n_rows; i += SKINNY_ROWS) {                                                 \
                const number *row[SKINNY_ROWS];                                                                   \
                for (int r = 0; r < SKINNY_ROWS; r++)                                                             \
                    row[r] = matrix + (i + r < n_rows ? i + r : n_rows - 1) * stride + first;                     \
                for (ptrdiff_t c = 0; c < width; c += 2 * lanes) {                                                \
                    const ptrdiff_t wide = width - c >= 2 * lanes ? 2 * lanes : lanes;                            \
                    const number *panel = panels + c * panel_rows + (skipped + first) * wide;                     \
                    (wide == lanes ? tile##_one : tile##_two)(row, length, panel, out + i * width + c, width,     \
                                                              n_rows - i);                                        \
                }                                                                                                 \
            }                                                                                                     \
        }                                                                                                         \
    }

SKINNY_PRODUCT(add_float_product, add_float_tile, float, __m256, 8, _mm256_setzero_ps, _mm256_loadu_ps,
               _mm256_storeu_ps, _mm256_broadcast_ss, _mm256_add_ps, _mm256_fmadd_ps)
SKINNY_PRODUCT(add_double_product, add_double_tile, double, __m256d, 4, _mm256_setzero_pd, _mm256_loadu_pd,
               _mm256_storeu_pd, _mm256_broadcast_sd, _mm256_add_pd, _mm256_fmadd_pd)

#else

static int has_skinny_products(void) { return 0; }
static void add_float_product(const float *matrix, ptrdiff_t stride, ptrdiff_t n_rows, ptrdiff_t n,
                              const float *panels, ptrdiff_t panel_rows, ptrdiff_t skipped, ptrdiff_t width,
                              float *out) {}
static void add_double_product(const double *matrix, ptrdiff_t stride, ptrdiff_t n_rows, ptrdiff_t n,
                              const double *panels, ptrdiff_t panel_rows, ptrdiff_t skipped, ptrdiff_t width,
                              double *out) {}

#endif
#endif
