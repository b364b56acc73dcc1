/* SPDX-License-Identifier: Apache-2.0 */
/* Jitter: random numbers that need not be secret, so that many nodes do not act at the same time.
 * Source: splitmix64 (S. Vigna, prng.di.unimi.it), public domain. */
#ifndef WEIR_STORE_REDIS_JITTER_H
#define WEIR_STORE_REDIS_JITTER_H

#include <stdint.h>

static inline uint64_t redis_random(uint64_t *state)
{
    uint64_t z = *state += UINT64_C(0x9e3779b97f4a7c15);

    z = (z ^ (z >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ (z >> 27)) * UINT64_C(0x94d049bb133111eb);
    return z ^ (z >> 31);
}

/* A number of 0..most. */
static inline uint64_t redis_jitter(uint64_t *state, uint64_t most)
{
    return most == UINT64_MAX ? redis_random(state) : redis_random(state) % (most + 1);
}

#endif
