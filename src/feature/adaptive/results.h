/* SPDX-License-Identifier: Apache-2.0 */
/* Latencies and failures of the last seconds: the readings `p99` and `errors`.
 *
 * Counters only grow; once a second their owner takes the difference to WEIR_RESULTS_WINDOW seconds
 * ago.
 *
 * Latencies are counted in 16 buckets for each power of two, from 1 us to 137 s: a p99 is the lower
 * bound of its bucket, at most 6.3 % below the true one and never above it.
 *
 * Threads: one owner.
 */
#ifndef WEIR_FEATURE_ADAPTIVE_RESULTS_H
#define WEIR_FEATURE_ADAPTIVE_RESULTS_H

#include <stdbool.h>
#include <stdint.h>

#include "feature/adaptive/health.h"

#define WEIR_RESULTS_BUCKETS 448
#define WEIR_RESULTS_WINDOW 10 /* seconds */
#define WEIR_RESULTS_LEAST 20  /* results in a window; below, there is no reading */

struct weir_results {
    uint64_t latencies[WEIR_RESULTS_BUCKETS]; /* of those whose latency is known */
    uint64_t count, failed;                   /* of those that are known to have failed or not */
};

/* The bucket of a latency, and the least latency of a bucket. */
uint32_t weir_results_bucket(uint64_t latency_ns);
uint64_t weir_results_lower_bound(uint32_t bucket);

/* One request has ended. NULL: its latency, or whether it failed, is not known. */
void weir_results_add(struct weir_results *results, const uint64_t *latency_ns, const bool *failed);

/* The counters of the last seconds, the newest at `next - 1`. */
struct weir_results_window {
    struct weir_results copies[WEIR_RESULTS_WINDOW + 1];
    uint32_t next, filled;
};

/* Takes the counters of this second, and sets the readings `p99` and `errors`: valid for two
 * seconds, or none where too few requests have ended. Call it once a second. */
void weir_results_read(struct weir_results_window *window, const struct weir_results *results,
                       uint64_t now_ns, struct weir_reading readings[WEIR_SIGNALS]);

#endif
