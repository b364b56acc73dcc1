/* SPDX-License-Identifier: Apache-2.0 */
/* Random numbers for tests: xorshift64 (Marsaglia 2003), so that a state gives the same ones on
 * every machine. No state may be 0. */
#ifndef WEIR_TESTS_DRAW_H
#define WEIR_TESTS_DRAW_H

#include <stdint.h>

static inline uint64_t draw_next(uint64_t *state)
{
    *state ^= *state << 13;
    *state ^= *state >> 7;
    *state ^= *state << 17;
    return *state;
}

static inline uint64_t draw_below(uint64_t *state, uint64_t below)
{
    return draw_next(state) % below;
}

#endif
