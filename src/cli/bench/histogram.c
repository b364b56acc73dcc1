/* SPDX-License-Identifier: Apache-2.0 */
/* see histogram.h */
#include "cli/bench/histogram.h"

#include <math.h>

#define STEPS (UINT64_C(1) << BENCH_HISTOGRAM_BITS)

static unsigned bucket_of(uint64_t value)
{
    if (value < 2 * STEPS)
        return (unsigned)value;
    unsigned shift = 63U - (unsigned)__builtin_clzll(value) - BENCH_HISTOGRAM_BITS;
    return (shift << BENCH_HISTOGRAM_BITS) + (unsigned)(value >> shift);
}

static uint64_t bucket_lowest(unsigned bucket)
{
    if (bucket < 2 * STEPS)
        return bucket;
    unsigned shift = (bucket >> BENCH_HISTOGRAM_BITS) - 1;
    return (bucket % STEPS + STEPS) << shift;
}

static uint64_t bucket_highest(unsigned bucket)
{
    return bucket + 1 < BENCH_HISTOGRAM_BUCKETS ? bucket_lowest(bucket + 1) - 1 : UINT64_MAX;
}

/* Records `times` values of one bucket; `first` is the greatest of them and `step` apart. */
static void record_many(struct bench_histogram *histogram, uint64_t first, uint64_t step,
                        uint64_t times)
{
    uint64_t last = first - step * (times - 1);
    if (histogram->count == 0 || last < histogram->min)
        histogram->min = last;
    if (histogram->count == 0 || first > histogram->max)
        histogram->max = first;
    histogram->count += times;
    histogram->sum += ((double)first + (double)last) / 2 * (double)times;
    histogram->counts[bucket_of(first)] += times;
}

void bench_histogram_record(struct bench_histogram *histogram, uint64_t value)
{
    record_many(histogram, value, 0, 1);
}

void bench_histogram_record_expected(struct bench_histogram *histogram, uint64_t value,
                                     uint64_t interval)
{
    record_many(histogram, value, 0, 1);
    while (value >= interval && value - interval >= interval) {
        value -= interval;
        uint64_t lowest = bucket_lowest(bucket_of(value));
        uint64_t down_to = lowest > interval ? lowest : interval;
        uint64_t times = (value - down_to) / interval + 1;
        record_many(histogram, value, interval, times);
        value -= interval * (times - 1);
    }
}

void bench_histogram_add(struct bench_histogram *sum, const struct bench_histogram *other)
{
    if (other->count == 0)
        return;
    if (sum->count == 0 || other->min < sum->min)
        sum->min = other->min;
    if (sum->count == 0 || other->max > sum->max)
        sum->max = other->max;
    sum->count += other->count;
    sum->sum += other->sum;
    for (unsigned i = 0; i < BENCH_HISTOGRAM_BUCKETS; i++)
        sum->counts[i] += other->counts[i];
}

uint64_t bench_histogram_quantile(const struct bench_histogram *histogram, double fraction)
{
    if (histogram->count == 0)
        return 0;
    double rank = ceil(fraction * (double)histogram->count);
    uint64_t wanted = rank < 1 ? 1 : (uint64_t)rank, seen = 0;
    for (unsigned i = 0; i < BENCH_HISTOGRAM_BUCKETS; i++) {
        seen += histogram->counts[i];
        if (seen >= wanted)
            return bucket_highest(i) < histogram->max ? bucket_highest(i) : histogram->max;
    }
    return histogram->max;
}

double bench_histogram_mean(const struct bench_histogram *histogram)
{
    return histogram->count > 0 ? histogram->sum / (double)histogram->count : 0;
}
