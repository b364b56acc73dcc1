/* SPDX-License-Identifier: Apache-2.0 */
/* Exponential backoff with jitter.
 *
 * Source: Brooker, "Exponential Backoff And Jitter" (AWS Architecture Blog, 2015). With
 * E = min(cap, base * factor^(tries - 1)):
 *
 *   full          random(0, E): the least load where many clients fail together
 *   equal         E / 2 + random(0, E / 2): never much less than E
 *   decorrelated  min(cap, random(base, 3 * previous wait)): spreads without counting tries
 *   none          E
 *
 * Pure functions; the caller owns the seed.
 */
#ifndef WEIR_CLIENT_BACKOFF_H
#define WEIR_CLIENT_BACKOFF_H

#include <stdint.h>

#include <weir/client.h>

struct weir_backoff_spec {
    enum weir_client_jitter jitter;
    uint64_t base_ns, cap_ns; /* 1 <= base <= cap <= 2^62 */
    double factor;            /* 1 to 100 */
};

/* The wait after try number `tries` (1 and up) has failed. `previous_ns` is the last wait, 0 before
 * the first; only decorrelated jitter reads it. */
uint64_t weir_backoff_wait(const struct weir_backoff_spec *spec, uint32_t tries,
                           uint64_t previous_ns, uint64_t *seed);

#endif
