/* SPDX-License-Identifier: Apache-2.0 */
/* Seeds of what has to differ from worker to worker and from run to run: jitter, ids, the places of
 * keys in memory. From the kernel's randomness; where there is none, from the clock, so not for
 * secrets.
 */
#ifndef WEIR_SERVER_NET_SEED_H
#define WEIR_SERVER_NET_SEED_H

#include <stdint.h>
#include <sys/random.h>

#include "server/daemon/clock.h"

/* `salt` tells seeds apart that are drawn at one time. */
static inline uint64_t weir_seed_draw(uint64_t salt)
{
    uint64_t seed;
    if (getrandom(&seed, sizeof seed, 0) != (ssize_t)sizeof seed)
        seed = weir_clock_boot_ns() + salt;
    return seed;
}

#endif
