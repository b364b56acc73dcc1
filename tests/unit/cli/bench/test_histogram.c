/* SPDX-License-Identifier: Apache-2.0 */
/* The histogram of latencies, against a sorted list of all values. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "cli/bench/histogram.h"

#define VALUES 20000

static struct bench_histogram histogram;

static int start_empty(void **state)
{
    memset(&histogram, 0, sizeof histogram);
    return 0;
}

/* splitmix64 */
static uint64_t random_next(uint64_t *random)
{
    uint64_t z = *random += UINT64_C(0x9e3779b97f4a7c15);
    z = (z ^ z >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ z >> 27) * UINT64_C(0x94d049bb133111eb);
    return z ^ z >> 31;
}

static int compare(const void *a, const void *b)
{
    uint64_t left = *(const uint64_t *)a, right = *(const uint64_t *)b;
    return left < right ? -1 : left > right;
}

/* Never less than the value, and at most 1/128 more. */
static void assert_near(uint64_t result, uint64_t value)
{
    assert_true(result >= value);
    assert_true(result - value <= value / 128);
}

static void an_empty_histogram_tells_zero(void **state)
{
    assert_int_equal(bench_histogram_quantile(&histogram, 0.5), 0);
    assert_true(bench_histogram_mean(&histogram) == 0);
}

static void small_values_are_exact(void **state)
{
    for (uint64_t i = 0; i < 256; i++)
        bench_histogram_record(&histogram, i);
    for (uint64_t i = 0; i < 256; i++)
        assert_int_equal(bench_histogram_quantile(&histogram, (double)(i + 1) / 256), i);
    assert_true(bench_histogram_mean(&histogram) == 127.5);
    assert_int_equal(histogram.min, 0);
    assert_int_equal(histogram.max, 255);
}

static void every_value_is_reported_within_its_bound(void **state)
{
    for (unsigned bit = 0; bit < 64; bit++) {
        for (int64_t off = -2; off <= 2; off++) {
            uint64_t value = (UINT64_C(1) << bit) + (uint64_t)off;
            memset(&histogram, 0, sizeof histogram);
            bench_histogram_record(&histogram, value);
            bench_histogram_record(&histogram,
                                   UINT64_MAX); /* so that max is not what is reported */
            assert_near(bench_histogram_quantile(&histogram, 0.5), value);
        }
    }
}

static void quantiles_agree_with_a_sorted_list(void **state)
{
    static const double fractions[] = {0, 0.0001, 0.1, 0.5, 0.9, 0.99, 0.999, 0.9999, 1};
    uint64_t *values = calloc(VALUES, sizeof *values), random = 42;
    assert_non_null(values);
    for (size_t i = 0; i < VALUES; i++) {
        values[i] = random_next(&random) >> (random_next(&random) % 64);
        bench_histogram_record(&histogram, values[i]);
    }
    qsort(values, VALUES, sizeof *values, compare);
    for (size_t i = 0; i < sizeof fractions / sizeof fractions[0]; i++) {
        size_t rank = (size_t)(fractions[i] * VALUES);
        rank += (double)rank < fractions[i] * VALUES;
        assert_near(bench_histogram_quantile(&histogram, fractions[i]),
                    values[rank > 0 ? rank - 1 : 0]);
    }
    assert_int_equal(histogram.min, values[0]);
    assert_int_equal(histogram.max, values[VALUES - 1]);
    free(values);
}

static void no_quantile_passes_the_maximum(void **state)
{
    bench_histogram_record(&histogram, 1000001);
    assert_int_equal(bench_histogram_quantile(&histogram, 0.9999), 1000001);
}

static void two_histograms_add_up(void **state)
{
    struct bench_histogram *other = calloc(1, sizeof *other);
    assert_non_null(other);
    bench_histogram_add(&histogram, other);
    assert_int_equal(histogram.count, 0);
    bench_histogram_record(other, 7);
    bench_histogram_record(other, 9);
    bench_histogram_add(&histogram, other);
    bench_histogram_record(&histogram, 1);
    bench_histogram_add(&histogram, other);
    assert_int_equal(histogram.count, 5);
    assert_int_equal(histogram.min, 1);
    assert_int_equal(histogram.max, 9);
    assert_int_equal(bench_histogram_quantile(&histogram, 0.6), 7);
    assert_true(bench_histogram_mean(&histogram) == 33.0 / 5);
    free(other);
}

/* One at a time, as the correction is described. */
static void record_slowly(struct bench_histogram *slow, uint64_t value, uint64_t interval)
{
    bench_histogram_record(slow, value);
    while (value >= 2 * interval) {
        value -= interval;
        bench_histogram_record(slow, value);
    }
}

static void the_correction_records_what_a_stall_kept_from_being_sent(void **state)
{
    bench_histogram_record_expected(&histogram, 1000, 100);
    assert_int_equal(histogram.count, 10); /* 1000, 900, … 100 */
    assert_int_equal(histogram.min, 100);
    assert_int_equal(histogram.max, 1000);
    assert_true(bench_histogram_mean(&histogram) == 550);
}

static void the_correction_by_buckets_is_the_one_by_values(void **state)
{
    struct bench_histogram *slow = calloc(1, sizeof *slow);
    uint64_t random = 7;
    assert_non_null(slow);
    for (int i = 0; i < 3000; i++) {
        uint64_t interval = 1 + random_next(&random) % 3000;
        uint64_t value = random_next(&random) % 400000 >> random_next(&random) % 18;
        bench_histogram_record_expected(&histogram, value, interval);
        record_slowly(slow, value, interval);
    }
    assert_int_equal(histogram.count, slow->count);
    assert_int_equal(histogram.min, slow->min);
    assert_int_equal(histogram.max, slow->max);
    assert_memory_equal(histogram.counts, slow->counts, sizeof slow->counts);
    free(slow);
}

static void the_correction_of_the_greatest_value_ends(void **state)
{
    bench_histogram_record_expected(&histogram, UINT64_MAX, UINT64_C(1) << 63);
    assert_int_equal(histogram.count, 1);
    bench_histogram_record_expected(&histogram, UINT64_C(1) << 50, 1);
    assert_int_equal(histogram.count, (UINT64_C(1) << 50) + 1);
}

#define CASE(name) cmocka_unit_test_setup(name, start_empty)

int main(void)
{
    const struct CMUnitTest tests[] = {
        CASE(an_empty_histogram_tells_zero),
        CASE(small_values_are_exact),
        CASE(every_value_is_reported_within_its_bound),
        CASE(quantiles_agree_with_a_sorted_list),
        CASE(no_quantile_passes_the_maximum),
        CASE(two_histograms_add_up),
        CASE(the_correction_records_what_a_stall_kept_from_being_sent),
        CASE(the_correction_by_buckets_is_the_one_by_values),
        CASE(the_correction_of_the_greatest_value_ends),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
