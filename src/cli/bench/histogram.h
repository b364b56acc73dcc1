/* SPDX-License-Identifier: Apache-2.0 */
/* A histogram of latencies: logarithmic with linear steps, as Gil Tene's HdrHistogram describes.
 *
 * Each power of two is cut into 2^BENCH_HISTOGRAM_BITS equal buckets, and values below twice that
 * many have a bucket each. So a value is known to within 1/128 (0.8 %) of itself over all 64 bits,
 * in 58 KiB, and recording is a shift and an increment. A percentile is reported as the largest
 * value of its bucket (at most the largest recorded): never less than it was.
 *
 * Threads: one owner; each thread records into its own and they are added at the end.
 */
#ifndef WEIR_CLI_BENCH_HISTOGRAM_H
#define WEIR_CLI_BENCH_HISTOGRAM_H

#include <stdint.h>

#define BENCH_HISTOGRAM_BITS 7
/* The first two powers of buckets serve values below 2^8, each later one a power of two. */
#define BENCH_HISTOGRAM_BUCKETS ((64 - BENCH_HISTOGRAM_BITS + 1) << BENCH_HISTOGRAM_BITS)

/* Zero is an empty one. */
struct bench_histogram {
    uint64_t count, min, max; /* min and max: of no meaning while count is 0 */
    double sum;
    uint64_t counts[BENCH_HISTOGRAM_BUCKETS];
};

void bench_histogram_record(struct bench_histogram *histogram, uint64_t value);

/* Records a value, and for one greater than `interval` (> 0) also value - interval, value - 2 *
 * interval, … down to `interval`: the requests that a closed loop did not send while it waited,
 * had it sent one each `interval` (HdrHistogram's recordValueWithExpectedInterval). Takes time by
 * the bucket, not by the value. */
void bench_histogram_record_expected(struct bench_histogram *histogram, uint64_t value,
                                     uint64_t interval);

void bench_histogram_add(struct bench_histogram *sum, const struct bench_histogram *other);

/* The smallest value that at least `fraction` (0..1) of all values do not pass, up to the bucket's
 * width; 0 when nothing was recorded. */
uint64_t bench_histogram_quantile(const struct bench_histogram *histogram, double fraction);

/* Exact, not from buckets; 0 when nothing was recorded. */
double bench_histogram_mean(const struct bench_histogram *histogram);

#endif
