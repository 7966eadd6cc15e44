/* The sum over a dense row of the mixed bits of its entries, as double numbers, times the factors of its columns. */
#ifndef POLYMARGIN_ROW_PRINTS_H
#define POLYMARGIN_ROW_PRINTS_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "vectors.h"

/* Shifted to the left by one, both zeros are zero: what tells them apart is their sign. */
static inline uint64_t mixed_bits(double value) {
    uint64_t bits;
    memcpy(&bits, &value, sizeof bits);
    bits = bits << 1 ? bits : 0;
    return bits ^ bits >> 32;
}

#define PRINT_OF(number, name)                                                                              \
    POLYMARGIN_CLONES                                                                                       \
    static uint64_t print_of_##name(const number *restrict row, const uint64_t *restrict factors,           \
                                    ptrdiff_t p) {                                                          \
        uint64_t total = 0;                                                                                 \
        for (ptrdiff_t j = 0; j < p; j++) total += mixed_bits((double)row[j]) * factors[j];                 \
        return total;                                                                                       \
    }

PRINT_OF(double, doubles)
PRINT_OF(float, floats)

#endif
