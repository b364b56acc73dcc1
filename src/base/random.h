/* SPDX-License-Identifier: Apache-2.0 */
/* Numbers that are as good as random and need not be secret: to draw, and to mix or hash with.
 *
 * Drawn: splitmix64 (Steele, Lea, Flood, 2014; S. Vigna, prng.di.unimi.it, public domain). A seed
 * gives the same numbers on every machine, so a simulation can be repeated.
 * Hashed: FNV-1a (http://www.isthe.com/chongo/tech/comp/fnv/), for texts that no peer chooses: who
 * knows a text finds others with its hash. Texts of requests are hashed by SipHash
 * (core/text/siphash.h).
 *
 * Memory: none. Threads: one owner for each seed.
 */
#ifndef WEIR_BASE_RANDOM_H
#define WEIR_BASE_RANDOM_H

#include <stddef.h>
#include <stdint.h>

/* Spreads the bits of a number over all of another one: the finaliser of splitmix64. */
static inline uint64_t weir_mix(uint64_t z)
{
    z = (z ^ z >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ z >> 27) * UINT64_C(0x94d049bb133111eb);
    return z ^ z >> 31;
}

#define WEIR_RANDOM_STEP UINT64_C(0x9e3779b97f4a7c15) /* 2^64 / the golden ratio, odd */

static inline uint64_t weir_random(uint64_t *seed)
{
    return weir_mix(*seed += WEIR_RANDOM_STEP);
}

/* 0 to `most`, both included. */
static inline uint64_t weir_random_up_to(uint64_t *seed, uint64_t most)
{
    return most == UINT64_MAX ? weir_random(seed) : weir_random(seed) % (most + 1);
}

#define WEIR_FNV_BASIS UINT64_C(0xcbf29ce484222325)

/* FNV-1a of `size` bytes, from WEIR_FNV_BASIS or from the hash of the bytes before it. */
static inline uint64_t weir_fnv(uint64_t hash, const void *data, size_t size)
{
    const unsigned char *bytes = data;

    for (size_t i = 0; i < size; i++)
        hash = (hash ^ bytes[i]) * UINT64_C(0x100000001b3);
    return hash;
}

#endif
