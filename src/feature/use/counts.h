/* SPDX-License-Identifier: Apache-2.0 */
/* The counts of one limit that every request changes: the limit's own verdicts on the requests of
 * one thread. All of them are in one cache line, and may be in memory that processes share
 * (feature/use/edge.h).
 *
 * Threads: one writes (rules/counter.h), any may read.
 */
#ifndef WEIR_FEATURE_USE_COUNTS_H
#define WEIR_FEATURE_USE_COUNTS_H

#include <stdatomic.h>
#include <stdint.h>

struct weir_counts {
    _Atomic uint64_t allowed, denied, shadow_denied;
    _Atomic uint64_t cost;    /* of requests that were admitted */
    _Atomic uint64_t delayed; /* of `allowed`: with a delay */
    /* Which keys are counted (weir_engine_count_keys), and under which number. */
    _Atomic uint16_t keys_below; /* feature/use/distinct.h */
    _Atomic uint8_t keys_number;
};

#endif
