/* SPDX-License-Identifier: Apache-2.0 */
/* A concurrency limit that follows latency: Gradient2.
 *
 * Source: Netflix, concurrency-limits (2018), Gradient2Limit inside WindowedLimit, with the
 * published parameters. Latency now is compared with its long exponential average; where it grows,
 * requests queue, and the limit shrinks by at most half, smoothed:
 *
 *   gradient  = clamp(tolerance * long / short, 0.5, 1)
 *   limit     = limit * (1 - smoothing) + (limit * gradient + queue) * smoothing
 *
 * `short` is the latency of a window of at least WEIR_GRADIENT2_SAMPLES results and one second: the
 * median over callers (key_sample.h), so that a few slow ones do not speak for all, or, where their
 * number is too small, the mean of the results, as in the original. `long` averages
 * WEIR_GRADIENT2_LONG windows, of means and of medians apart. Where `long` is above twice `short`,
 * it is lowered by 5 % a window, so that a recovered backend is believed. Failures need no rule of
 * their own: a request that times out is slow.
 *
 * Bounds: each window multiplies the limit by no less than 1 - smoothing / 2 (0.9) and adds at most
 * smoothing * queue (0.8). So from min to max takes (max - min) / 0.8 windows of full use.
 *
 * Threads: one owner.
 */
#ifndef WEIR_FEATURE_ADAPTIVE_GRADIENT2_H
#define WEIR_FEATURE_ADAPTIVE_GRADIENT2_H

#include <stdint.h>

#include "feature/adaptive/result.h"

#define WEIR_GRADIENT2_SMOOTHING 0.2
#define WEIR_GRADIENT2_TOLERANCE 1.5
#define WEIR_GRADIENT2_QUEUE 4.0
#define WEIR_GRADIENT2_LONG 600
#define WEIR_GRADIENT2_WARMUP 10
#define WEIR_GRADIENT2_SAMPLES 10
#define WEIR_GRADIENT2_WINDOW_NS UINT64_C(1000000000)
#define WEIR_GRADIENT2_LEAST_NS UINT64_C(100000) /* shorter latencies say nothing of a queue */

struct weir_gradient2_spec {
    uint32_t min, max; /* 1 <= min <= max <= 1,000,000 */
};

struct weir_gradient2_average {
    double long_ns;   /* the exponential average */
    uint32_t windows; /* that it has seen, up to the warm-up */
};

struct weir_gradient2 {
    double limit;
    struct weir_gradient2_average averages[2]; /* of means, and of medians over callers */
    /* The window that is open. */
    uint64_t window_end_ns; /* 0: none is open */
    uint64_t latency_sum_ns;
    uint32_t samples, most_in_flight;
};

/* A controller begins at `min`, as Netflix' does, and finds its limit from below. */
void weir_gradient2_init(struct weir_gradient2 *gradient, const struct weir_gradient2_spec *spec);

/* Takes one result; results in order of time, later ones of the same window may be a little
 * earlier. `typical_ns`: the median over the callers of the last second; 0: they are too few. */
void weir_gradient2_update(struct weir_gradient2 *gradient, const struct weir_gradient2_spec *spec,
                           const struct weir_result *result, uint64_t typical_ns);

/* The limit, rounded down: min to max. */
uint32_t weir_gradient2_limit(const struct weir_gradient2 *gradient);

#endif
