/* SPDX-License-Identifier: Apache-2.0 */
/* Random numbers that spread clients: splitmix64 (Steele, Lea, Flood 2014). A seed gives the same
 * numbers on every machine, so a simulation can be repeated. Not for secrets.
 *
 * Threads: one owner for each seed.
 */
#ifndef WEIR_CLIENT_DICE_H
#define WEIR_CLIENT_DICE_H

#include <stdint.h>

static inline uint64_t weir_dice(uint64_t *seed)
{
    uint64_t z = *seed += UINT64_C(0x9e3779b97f4a7c15);
    z = (z ^ z >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ z >> 27) * UINT64_C(0x94d049bb133111eb);
    return z ^ z >> 31;
}

/* 0 to `most`, both included. */
static inline uint64_t weir_dice_up_to(uint64_t *seed, uint64_t most)
{
    return most == UINT64_MAX ? weir_dice(seed) : weir_dice(seed) % (most + 1);
}

#endif
