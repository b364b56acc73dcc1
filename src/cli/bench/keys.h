/* SPDX-License-Identifier: Apache-2.0 */
/* Which key each request of a load is for: numbers of 0..count - 1, from a seed.
 *
 * uniform     every key alike
 * zipf:S      key k with a weight of 1/(k + 1)^S, S > 0, 1 by default: few keys take most. Drawn by
 *             rejection-inversion (W. Hörmann, G. Derflinger, "Rejection-inversion to generate
 *             variates from monotone discrete distributions", ACM TOMACS 6(3), 1996): no table, and
 *             exact for any count
 * hot         key 0 only
 * sequential  each in turn, over and over: fills a server with all of them
 *
 * Random numbers are splitmix64's (Steele, Lea, Flood 2014). Threads: one owner each; those of a
 * load take their own stream, and in turn every n-th key.
 */
#ifndef WEIR_CLI_BENCH_KEYS_H
#define WEIR_CLI_BENCH_KEYS_H

#include <stdbool.h>
#include <stdint.h>

/* A multiplication draws one of so many without bias. */
#define BENCH_KEYS_MAX (UINT64_C(1) << 32)
#define BENCH_ZIPF_EXPONENT_MAX 20.0 /* beyond it everything is key 0 */

enum bench_distribution { BENCH_UNIFORM, BENCH_ZIPF, BENCH_HOT, BENCH_SEQUENTIAL };

struct bench_keyspace {
    enum bench_distribution distribution;
    uint64_t count; /* 1..BENCH_KEYS_MAX */
    double exponent;
};

struct bench_keys {
    enum bench_distribution distribution;
    uint64_t count, random, next, step;
    double one_minus_s, s, integral_first, integral_last, near;
};

/* Reads "uniform", "zipf", "zipf:1.2", "hot" or "sequential"; leaves the count. */
bool bench_distribution_parse(const char *text, struct bench_keyspace *space);

/* The stream of thread `index` of `threads`. */
void bench_keys_start(struct bench_keys *keys, const struct bench_keyspace *space, uint64_t seed,
                      unsigned index, unsigned threads);

uint64_t bench_keys_next(struct bench_keys *keys);

#endif
