/* SPDX-License-Identifier: Apache-2.0 */
/* see results.h */
#include "feature/adaptive/results.h"

#define READING_LIFE_NS UINT64_C(2000000000)

enum { FIRST_BIT = 10, FINE_BITS = 4, FINE = 1 << FINE_BITS };

uint32_t weir_results_bucket(uint64_t latency_ns)
{
    if (latency_ns < (UINT64_C(1) << FIRST_BIT))
        return 0;

    uint32_t bit = 63 - (uint32_t)__builtin_clzll(latency_ns);
    uint32_t fine = (uint32_t)(latency_ns >> (bit - FINE_BITS)) & (FINE - 1);
    uint32_t bucket = (bit - FIRST_BIT) * FINE + fine + 1;

    return bucket < WEIR_RESULTS_BUCKETS ? bucket : WEIR_RESULTS_BUCKETS - 1;
}

uint64_t weir_results_lower_bound(uint32_t bucket)
{
    if (bucket == 0)
        return 0;

    uint32_t bit = (bucket - 1) / FINE + FIRST_BIT, fine = (bucket - 1) % FINE;

    return (UINT64_C(1) << bit) | (uint64_t)fine << (bit - FINE_BITS);
}

void weir_results_add(struct weir_results *results, const uint64_t *latency_ns, const bool *failed)
{
    if (latency_ns)
        results->latencies[weir_results_bucket(*latency_ns)]++;
    if (!failed)
        return;
    results->count++;
    results->failed += *failed;
}

/* The latency that 99 of 100 results do not exceed, by its bucket. */
static uint64_t p99(const struct weir_results *now, const struct weir_results *before,
                    uint64_t count)
{
    uint64_t rank = count - count / 100, seen = 0;

    for (uint32_t i = 0; i < WEIR_RESULTS_BUCKETS; i++) {
        seen += now->latencies[i] - before->latencies[i];
        if (seen >= rank)
            return weir_results_lower_bound(i);
    }
    return weir_results_lower_bound(WEIR_RESULTS_BUCKETS - 1);
}

void weir_results_read(struct weir_results_window *window, const struct weir_results *results,
                       uint64_t now_ns, struct weir_reading readings[WEIR_SIGNALS])
{
    static const struct weir_results nothing;
    const uint32_t size = WEIR_RESULTS_WINDOW + 1;
    const uint64_t until_ns = now_ns + READING_LIFE_NS;
    const struct weir_results *before = &nothing;
    uint64_t latencies = 0;

    window->copies[window->next] = *results;
    window->next = (window->next + 1) % size;
    if (window->filled == WEIR_RESULTS_WINDOW)
        before = &window->copies[window->next];
    else
        window->filled++;

    for (uint32_t i = 0; i < WEIR_RESULTS_BUCKETS; i++)
        latencies += results->latencies[i] - before->latencies[i];

    uint64_t count = results->count - before->count, failed = results->failed - before->failed;

    readings[WEIR_SIGNAL_P99] = readings[WEIR_SIGNAL_ERRORS] = (struct weir_reading){0};
    if (latencies >= WEIR_RESULTS_LEAST)
        readings[WEIR_SIGNAL_P99] =
            (struct weir_reading){p99(results, before, latencies), until_ns};
    if (count >= WEIR_RESULTS_LEAST)
        readings[WEIR_SIGNAL_ERRORS] = (struct weir_reading){failed * 10000 / count, until_ns};
}
