/* A seeded sequence. */
#ifndef FAULTS_RANDOM_H
#define FAULTS_RANDOM_H

#include <stdint.h>

static inline uint64_t random_next(uint64_t *state) {
    uint64_t z = (*state += 0x9E3779B97F4A7C15u);
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9u;
    z = (z ^ (z >> 27)) * 0x94D049BB133111EBu;
    return z ^ (z >> 31);
}
static inline uint64_t random_below(uint64_t *state, uint64_t limit) { return limit ? random_next(state) % limit : 0; }

#endif
