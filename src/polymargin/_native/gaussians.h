/* exp(-distance) of many distances at once, for x86 processors with AVX2 and FMA, found out at run time. */
#ifndef POLYMARGIN_GAUSSIANS_H
#define POLYMARGIN_GAUSSIANS_H

#include <stddef.h>

#if defined(__x86_64__) && defined(__GNUC__)
#include <immintrin.h>

static int has_gaussians(void) { return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma"); }

/* exp(x) of four x <= 0: with x = m log 2 + r, |r| <= log(2) / 2, it is 2^m times the Taylor polynomial of degree 13,
   whose remainder is below 1e-17. The two parts of log 2 are those of fdlibm: m times the first is exact. Zero below
   -708, where 2^m would leave the normal numbers. Fused operations cannot be reassociated by the compiler. */
__attribute__((target("avx2,fma"))) static inline __m256d exponentials(__m256d x) {
    static const double inverse_factorials[] = {
        1.0 / 6227020800.0, 1.0 / 479001600.0, 1.0 / 39916800.0, 1.0 / 3628800.0, 1.0 / 362880.0,
        1.0 / 40320.0, 1.0 / 5040.0, 1.0 / 720.0, 1.0 / 120.0, 1.0 / 24.0, 1.0 / 6.0, 0.5, 1.0, 1.0};
    const __m256d lowest = _mm256_set1_pd(-708.0);
    const __m256d seen = _mm256_cmp_pd(x, lowest, _CMP_GE_OQ);
    x = _mm256_max_pd(x, lowest);
    const __m256d m = _mm256_round_pd(_mm256_mul_pd(x, _mm256_set1_pd(1.44269504088896338700)),
                                      _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC);
    __m256d r = _mm256_fnmadd_pd(m, _mm256_set1_pd(6.93147180369123816490e-01), x);
    r = _mm256_fnmadd_pd(m, _mm256_set1_pd(1.90821492927058770002e-10), r);
    __m256d value = _mm256_set1_pd(inverse_factorials[0]);
    for (int i = 1; i < 14; i++) value = _mm256_fmadd_pd(value, r, _mm256_set1_pd(inverse_factorials[i]));
    const __m256i exponent = _mm256_add_epi64(_mm256_cvtepi32_epi64(_mm256_cvtpd_epi32(m)), _mm256_set1_epi64x(1023));
    value = _mm256_mul_pd(value, _mm256_castsi256_pd(_mm256_slli_epi64(exponent, 52)));
    return _mm256_and_pd(value, seen);
}

/* values[j] = exp(min(values[j] - own - others[j], 0)) */
__attribute__((target("avx2,fma"))) static void gaussian_row(double *values, double own, const double *others,
                                                              ptrdiff_t n) {
    const __m256d zero = _mm256_setzero_pd(), all_own = _mm256_set1_pd(own);
    ptrdiff_t j = 0;
    for (; j + 4 <= n; j += 4) {
        const __m256d x = _mm256_sub_pd(_mm256_sub_pd(_mm256_loadu_pd(values + j), all_own), _mm256_loadu_pd(others + j));
        _mm256_storeu_pd(values + j, exponentials(_mm256_min_pd(x, zero)));
    }
    if (j < n) {
        double rest[4] = {0.0, 0.0, 0.0, 0.0};
        for (ptrdiff_t i = j; i < n; i++) rest[i - j] = values[i] - own - others[i];
        _mm256_storeu_pd(rest, exponentials(_mm256_min_pd(_mm256_loadu_pd(rest), zero)));
        for (ptrdiff_t i = j; i < n; i++) values[i] = rest[i - j];
    }
}

#else

static int has_gaussians(void) { return 0; }
static void gaussian_row(double *values, double own, const double *others, ptrdiff_t n) {}

#endif
#endif
