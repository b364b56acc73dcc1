/* SPDX-License-Identifier: Apache-2.0 */
/* A concurrency limit by additive increase and multiplicative decrease.
 *
 * Source: Chiu, Jain, "Analysis of the Increase and Decrease Algorithms for Congestion Avoidance in
 * Computer Networks" (1989); as in TCP (RFC 5681), the limit reacts once a round trip:
 *
 *   - after `limit` successes, the limit has grown by `increase` (rounding: up to 1 % less); with
 *     `per_success` each success adds it, as many guides have it: a round trip then multiplies the
 *     limit by 1 + `increase`, and it is soon back where it failed;
 *   - a failure multiplies it by `decrease_percent` / 100, unless the request began before the last
 *     decrease: then the failure says nothing about the lower limit.
 *
 * A caller whose own requests fail says nothing of the backend: with WEIR_KEY_LEAST callers or more
 * a failure counts only where more than `failing_percent` of them fail (key_sample.h).
 *
 * So a burst of failures is one decrease, and recovery from `min` to `max` takes
 * (max - min) / increase round trips while the limit is in use.
 *
 * Integers only: the same results everywhere, in a replay too. Threads: one owner.
 */
#ifndef WEIR_FEATURE_ADAPTIVE_AIMD_H
#define WEIR_FEATURE_ADAPTIVE_AIMD_H

#include <stdbool.h>
#include <stdint.h>

#include "feature/adaptive/result.h"

#define WEIR_AIMD_MAX 1000000 /* of min, max and increase */

struct weir_aimd_spec {
    uint32_t min, max;        /* 1 <= min <= max <= WEIR_AIMD_MAX */
    uint32_t increase;        /* a round trip: 1..WEIR_AIMD_MAX */
    uint8_t decrease_percent; /* what is left after a failure: 1..99 */
    uint8_t failing_percent;  /* of callers, beyond which a failure counts: 0..99 */
    bool per_success;         /* `increase` is what a success adds */
    uint32_t initial;         /* min..max; 0: max */
};

struct weir_aimd {
    uint64_t limit_q16;    /* in units of 1/65536 */
    uint64_t decreased_ns; /* when it last decreased; 0: never */
};

/* A controller begins at `initial`; without it at `max`: a limit that nothing has proved wrong is
 * not lowered. */
void weir_aimd_init(struct weir_aimd *aimd, const struct weir_aimd_spec *spec);

/* Takes one result. Results may come in any order of time. */
void weir_aimd_update(struct weir_aimd *aimd, const struct weir_aimd_spec *spec,
                      const struct weir_result *result);

/* Whether a failure counts, where so many callers are in the sample, and so much of their weight is
 * failures, in hundredths of a percent. */
bool weir_aimd_heeds(const struct weir_aimd_spec *spec, uint32_t keys, uint16_t failed);

/* The limit: min to max. */
uint32_t weir_aimd_limit(const struct weir_aimd *aimd);

#endif
