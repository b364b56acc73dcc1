/* SPDX-License-Identifier: Apache-2.0 */
/* Pauses that double: how long to leave alone what has failed, so that it costs little while it is
 * gone and is found soon after it is back.
 *
 * The caller draws a part of the pause (base/random.h), where many would come back together.
 * Clients of a server that limits them have backoff with a factor and jitters of their own choice
 * (client/backoff.h).
 *
 * Pure functions, in units of the caller's choice.
 */
#ifndef WEIR_BASE_BACKOFF_H
#define WEIR_BASE_BACKOFF_H

#include <stdint.h>

/* The pause after one of `pause` that did not help: twice as long, `most` at the most. */
static inline uint64_t weir_backoff_longer(uint64_t pause, uint64_t most)
{
    return pause < most / 2 ? 2 * pause : most;
}

/* The pause after `failures` in a row before the last one: `first` for 0. */
static inline uint64_t weir_backoff_after(uint32_t failures, uint64_t first, uint64_t most)
{
    uint64_t pause = first < most ? first : most;

    for (uint32_t i = 0; i < failures && pause < most; i++)
        pause = weir_backoff_longer(pause, most);
    return pause;
}

#endif
