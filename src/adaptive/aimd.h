/* SPDX-License-Identifier: Apache-2.0 */
/* A concurrency limit by additive increase and multiplicative decrease.
 *
 * Source: Chiu, Jain, "Analysis of the Increase and Decrease Algorithms for Congestion Avoidance in
 * Computer Networks" (1989); as in TCP (RFC 5681), the limit reacts once a round trip:
 *
 *   - after `limit` successes, the limit has grown by `increase` (rounding: up to 1 % less);
 *   - a failure multiplies it by `decrease_percent` / 100, unless the request began before the last
 *     decrease: then the failure says nothing about the lower limit.
 *
 * So a burst of failures is one decrease, and recovery from `min` to `max` takes
 * (max - min) / increase round trips while the limit is in use.
 *
 * Integers only: the same results everywhere, in a replay too. Threads: one owner.
 */
#ifndef WEIR_ADAPTIVE_AIMD_H
#define WEIR_ADAPTIVE_AIMD_H

#include <stdint.h>

#include "adaptive/result.h"

#define WEIR_AIMD_MAX 1000000 /* of min, max and increase */

struct weir_aimd_spec {
    uint32_t min, max;        /* 1 <= min <= max <= WEIR_AIMD_MAX */
    uint32_t increase;        /* a round trip: 1..WEIR_AIMD_MAX */
    uint8_t decrease_percent; /* what is left after a failure: 1..99 */
};

struct weir_aimd {
    uint64_t limit_q16;    /* in units of 1/65536 */
    uint64_t decreased_ns; /* when it last decreased; 0: never */
};

/* A controller begins at `max`: a limit that nothing has proved wrong is not lowered. */
void weir_aimd_init(struct weir_aimd *aimd, const struct weir_aimd_spec *spec);

/* Takes one result. Results may come in any order of time. */
void weir_aimd_update(struct weir_aimd *aimd, const struct weir_aimd_spec *spec,
                      const struct weir_result *result);

/* The limit: min to max. */
uint32_t weir_aimd_limit(const struct weir_aimd *aimd);

#endif
