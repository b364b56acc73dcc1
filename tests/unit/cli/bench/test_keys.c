/* SPDX-License-Identifier: Apache-2.0 */
/* Which keys a load asks for: names, ends of the range, and how often each key comes. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include <math.h>

#include "cli/bench/keys.h"
#include "test.h"

#define DRAWS 200000

static struct bench_keys keys_of(const char *distribution, uint64_t count, uint64_t seed)
{
    struct bench_keyspace space = {.count = count};
    struct bench_keys keys;
    assert_true(bench_distribution_parse(distribution, &space));
    bench_keys_start(&keys, &space, seed, 0, 1);
    return keys;
}

TEST("distributions are known by name")
{
    struct bench_keyspace space = {.count = 9};
    assert_true(bench_distribution_parse("zipf", &space));
    assert_int_equal(space.distribution, BENCH_ZIPF);
    assert_true(space.exponent == 1);
    assert_true(bench_distribution_parse("zipf:0.75", &space));
    assert_true(space.exponent == 0.75);
    assert_int_equal(space.count, 9);
    static const char *const bad[] = {"",       "Uniform", "zipf:",   "zipf:0",   "zipf:-1",
                                      "zipf:x", "zipf:1x", "zipf:21", "zipf:nan", "hot:1"};
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++)
        assert_false(bench_distribution_parse(bad[i], &space));
}

TEST("a stream is the same for the same seed only")
{
    struct bench_keys a = keys_of("uniform", BENCH_KEYS_MAX, 1);
    struct bench_keys b = keys_of("uniform", BENCH_KEYS_MAX, 1);
    struct bench_keys c = keys_of("uniform", BENCH_KEYS_MAX, 2);
    int same = 0;
    for (int i = 0; i < 100; i++) {
        uint64_t key = bench_keys_next(&a);
        assert_int_equal(key, bench_keys_next(&b));
        same += key == bench_keys_next(&c);
    }
    assert_int_equal(same, 0);
}

TEST("threads draw streams of their own")
{
    struct bench_keyspace space = {.distribution = BENCH_UNIFORM, .count = BENCH_KEYS_MAX};
    struct bench_keys first, second;
    int same = 0;
    bench_keys_start(&first, &space, 1, 0, 2);
    bench_keys_start(&second, &space, 1, 1, 2);
    bench_keys_next(&first); /* nor is one the other, a step later */
    for (int i = 0; i < 100; i++)
        same += bench_keys_next(&first) == bench_keys_next(&second);
    assert_int_equal(same, 0);
}

TEST("one key is always that key")
{
    static const char *const names[] = {"uniform", "zipf", "zipf:0.5",
                                        "zipf:20", "hot",  "sequential"};
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        struct bench_keys keys = keys_of(names[i], 1, 3);
        for (int draw = 0; draw < 1000; draw++)
            assert_int_equal(bench_keys_next(&keys), 0);
    }
}

TEST("the hot key is the only one")
{
    struct bench_keys keys = keys_of("hot", 1000, 3);
    for (int draw = 0; draw < 1000; draw++)
        assert_int_equal(bench_keys_next(&keys), 0);
}

TEST("in turn all threads together meet each key once")
{
    struct bench_keyspace space = {.distribution = BENCH_SEQUENTIAL, .count = 10};
    unsigned seen[10] = {0};
    for (unsigned thread = 0; thread < 3; thread++) {
        struct bench_keys keys;
        bench_keys_start(&keys, &space, 1, thread, 3);
        for (unsigned i = 0; i < (thread < 10 % 3 ? 4 : 3); i++)
            seen[bench_keys_next(&keys)]++;
    }
    for (unsigned key = 0; key < 10; key++)
        assert_int_equal(seen[key], 1);
}

/* The chance of key k, from its definition. */
static double zipf_chance(double exponent, unsigned count, unsigned key)
{
    double sum = 0;
    for (unsigned k = 0; k < count; k++)
        sum += pow(k + 1, -exponent);
    return pow(key + 1, -exponent) / sum;
}

/* Each key as often as it should come, within five standard deviations. */
static void assert_frequencies(const char *name, double exponent, unsigned count)
{
    struct bench_keys keys = keys_of(name, count, 11);
    unsigned *seen = calloc(count, sizeof *seen);
    assert_non_null(seen);
    for (unsigned draw = 0; draw < DRAWS; draw++) {
        uint64_t key = bench_keys_next(&keys);
        assert_true(key < count);
        seen[key]++;
    }
    for (unsigned key = 0; key < count; key++) {
        double chance = zipf_chance(exponent, count, key), expected = chance * DRAWS;
        double deviation = sqrt(expected * (1 - chance));
        assert_true(fabs(seen[key] - expected) <= 5 * deviation + 1);
    }
    free(seen);
}

TEST("keys come as often as their distribution says")
{
    assert_frequencies("uniform", 0, 2);
    assert_frequencies("uniform", 0, 100);
    assert_frequencies("zipf", 1, 2);
    assert_frequencies("zipf", 1, 100);
    assert_frequencies("zipf:0.3", 0.3, 100);
    assert_frequencies("zipf:1.5", 1.5, 100);
    assert_frequencies("zipf:4", 4, 50);
}

TEST("the greatest key space stays within itself")
{
    static const char *const names[] = {"uniform", "zipf", "zipf:0.01"};
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        struct bench_keys keys = keys_of(names[i], BENCH_KEYS_MAX, 5);
        uint64_t greatest = 0;
        for (int draw = 0; draw < 10000; draw++) {
            uint64_t key = bench_keys_next(&keys);
            greatest = key > greatest ? key : greatest;
        }
        assert_true(greatest < BENCH_KEYS_MAX);
        assert_true(greatest > BENCH_KEYS_MAX / 2);
    }
}

RUN_TESTS()
