/* SPDX-License-Identifier: Apache-2.0 */
/* The fixed windows of pyrate-limiter: one counter a rate, all of which are charged or none. See
 * rates.h for the keys.
 *
 * The script is that of sliding windows. A client says for each rate when the window began (a
 * multiple of its length since 1970, by its own clock), and that no request blocks. It never says
 * how long a window is, so a window is known by when it began:
 *
 *   counter    when its window began in ms, << FIXED_COUNT_BITS | what it has counted
 *   a later window    begins a new count
 *   an earlier one    comes from a client whose clock is behind, and counts in the present window
 *
 * A counter lives at least as long as its window: all beginnings are multiples of the length, so
 * the greatest common divisor of two of them is one too. The first window of a key may keep its
 * counter for 366 days, unless the library's own thread forgets it (sorted.h).
 *
 * A clock that is ahead would open windows in which others then count. So clocks of clients must be
 * within a minute of weir's; others get an error. */
#ifndef WEIR_SERVER_RESP_SCRIPT_FIXED_H
#define WEIR_SERVER_RESP_SCRIPT_FIXED_H

#include "server/resp/script/script.h"

#define WEIR_SCRIPT_FIXED_COUNT_BITS 21

/* When the window of a counter began, in ms; 0: it is no counter of a window. */
static inline int64_t weir_script_fixed_began(uint64_t value)
{
    return value >> 63 ? 0 : (int64_t)(value >> WEIR_SCRIPT_FIXED_COUNT_BITS);
}

static inline int64_t weir_script_fixed_count(uint64_t value)
{
    return (int64_t)(value & ((UINT64_C(1) << WEIR_SCRIPT_FIXED_COUNT_BITS) - 1));
}

/* Whether the rates of PYRATE_WINDOWS, `count` from the argument `first` on, are fixed windows:
 * they name no request that blocks, where sliding ones name that at limit - weight. */
bool weir_script_is_fixed(const struct weir_script_call *script, uint32_t first, uint32_t count,
                          int64_t weight);
/* Decides on them. */
void weir_script_fixed(const struct weir_script_call *script, uint32_t first, uint32_t count,
                       int64_t weight);

#endif
