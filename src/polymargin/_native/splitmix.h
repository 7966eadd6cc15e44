/* Random numbers: splitmix64 (Steele, Lea & Flood, 2014). */
#ifndef POLYMARGIN_SPLITMIX_H
#define POLYMARGIN_SPLITMIX_H

#include <stdint.h>

static inline uint64_t next_random(uint64_t *state) {
    uint64_t bits = *state += 0x9E3779B97F4A7C15u;
    bits = (bits ^ bits >> 30) * 0xBF58476D1CE4E5B9u;
    bits = (bits ^ bits >> 27) * 0x94D049BB133111EBu;
    return bits ^ bits >> 31;
}

#endif
