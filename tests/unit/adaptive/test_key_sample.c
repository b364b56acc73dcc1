/* SPDX-License-Identifier: Apache-2.0 */
/* Readings over callers: exact for few, bounded for many, and the same however often one asks. */
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "feature/adaptive/aimd.h"
#include "feature/adaptive/key_sample.h"
#include "feature/adaptive/results.h"
#include "test.h"

#define MS UINT64_C(1000000)
#if defined(__SANITIZE_THREAD__) || defined(__SANITIZE_ADDRESS__)
#define WINDOWS 1000 /* they take ten times as long */
#else
#define WINDOWS 10000
#endif

static struct weir_key_window *window;
static uint64_t random_state;

static int setup(void **state)
{
    random_state = 1;
    window = weir_key_window_new();
    return window ? 0 : -1;
}

static int teardown(void **state)
{
    weir_key_window_free(window);
    return 0;
}

/* splitmix64: a hash of any number. */
static uint64_t hash_of(uint64_t x)
{
    x += UINT64_C(0x9e3779b97f4a7c15);
    x = (x ^ x >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
    x = (x ^ x >> 27) * UINT64_C(0x94d049bb133111eb);
    return x ^ x >> 31;
}

static uint32_t draw(uint32_t bound)
{
    return (uint32_t)(hash_of(random_state++) % bound);
}

static void add(uint64_t caller, bool failed, uint64_t latency_ns)
{
    const struct weir_key_outcome outcome = {
        .judged = true, .failed = failed, .timed = true, .latency_ns = latency_ns};

    weir_key_window_add(window, hash_of(caller), &outcome);
}

static struct weir_key_reading look(void)
{
    struct weir_key_reading reading;

    weir_key_window_turn(window);
    weir_key_window_read(window, &reading);
    return reading;
}

TEST_WITH(setup, teardown, "one caller weighs as much as any other")
{
    struct weir_key_reading reading;

    for (uint64_t caller = 1; caller <= 99; caller++)
        add(caller, false, 10 * MS);
    for (int i = 0; i < 100000; i++)
        add(100, true, 60000 * MS);
    reading = look();
    assert_int_equal(reading.keys, 100);
    assert_int_equal(reading.failed, 100); /* 1 % */
    assert_true(reading.p99_ns <= 10 * MS && reading.p99_ns > 9 * MS);
    add(99, true, 60000 * MS); /* half of its weight: more than 1 % is slow now */
    reading = look();
    assert_int_equal(reading.keys, 100);
    assert_int_equal(reading.failed, 150);
    assert_true(reading.p99_ns > 50000 * MS);
}

TEST_WITH(setup, teardown, "what is not known counts for nothing")
{
    const struct weir_key_outcome timed = {.timed = true, .latency_ns = 5 * MS};
    const struct weir_key_outcome judged = {.judged = true, .failed = true};
    struct weir_key_reading reading = look();

    assert_int_equal(reading.keys, 0);
    assert_false(reading.judged || reading.timed);
    weir_key_window_add(window, 1, &timed);
    reading = look();
    assert_true(reading.timed && !reading.judged);
    weir_key_window_add(window, 2, &judged);
    reading = look();
    assert_int_equal(reading.keys, 2);
    assert_int_equal(reading.failed, 10000);
    assert_true(reading.p99_ns <= 5 * MS && reading.p99_ns > 4 * MS);
}

/* Every share, with as many callers as fit, over all seconds of the window. */
TEST_WITH(setup, teardown, "up to 1024 callers the reading is exact")
{
    static const uint32_t counts[] = {8, 9, 100, 1000, WEIR_KEY_SAMPLES};

    for (size_t c = 0; c < sizeof counts / sizeof *counts; c++)
        for (uint32_t tenths = 0; tenths <= 10; tenths++) {
            uint32_t failing = counts[c] * tenths / 10;
            struct weir_key_reading reading = {0};

            teardown(NULL);
            setup(NULL);
            for (uint32_t second = 0; second < WEIR_KEY_SECONDS; second++) {
                for (uint32_t i = 0; i < counts[c]; i++)
                    for (uint32_t k = 0; k < 3; k++)
                        if (k == 0 || draw(2) == 0)
                            add(i, i < failing, MS);
                reading = look();
            }
            assert_int_equal(reading.keys, counts[c]);
            assert_int_equal(reading.failed, failing * 10000 / counts[c]);
        }
}

/* The bound of the header, where it is tightest: half of the callers fail. */
TEST_WITH(setup, teardown, "a share of failing callers reads at most 5 points more")
{
    enum { CALLERS = 4000 };
    static const uint32_t shares[] = {10, 50};
    const struct weir_key_outcome good = {.judged = true}, bad = {.judged = true, .failed = true};

    for (size_t s = 0; s < sizeof shares / sizeof *shares; s++) {
        uint32_t above = 0;

        for (uint64_t i = 0; i < WINDOWS; i++) {
            struct weir_key_reading reading;

            for (uint64_t caller = 0; caller < CALLERS; caller++)
                weir_key_window_add(window, hash_of(i << 32 | s << 24 | caller),
                                    caller < CALLERS / 100 * shares[s] ? &bad : &good);
            for (int turns = 0; turns < WEIR_KEY_SECONDS; turns++)
                weir_key_window_turn(window);
            weir_key_window_read(window, &reading);
            assert_int_equal(reading.keys, WEIR_KEY_SAMPLES);
            above += reading.failed > (shares[s] + 5) * 100;
            weir_key_window_turn(window);
        }
        assert_true(above <= WINDOWS / 1000);
    }
}

/* The latency of a class, each of which has a bucket of its own. */
static uint64_t class_ns(uint32_t class)
{
    return weir_results_lower_bound(weir_results_bucket(16 * MS) + class);
}

/* How many of 16 classes are below what was read. */
static uint32_t classes_below(uint64_t read_ns)
{
    uint32_t below = 0;

    while (below < 16 && class_ns(below) < read_ns)
        below++;
    return below;
}

TEST_WITH(setup, teardown, "slow callers move the median only within what the others see")
{
    enum { CALLERS = 2000 };
    static const uint32_t shares[] = {5, 20, 40};

    for (size_t s = 0; s < sizeof shares / sizeof *shares; s++) {
        uint32_t above = 0;

        for (uint64_t i = 0; i < WINDOWS; i++) {
            struct weir_key_reading reading;

            for (uint64_t caller = 0; caller < CALLERS; caller++) {
                bool slow = caller < CALLERS / 100 * shares[s];
                const struct weir_key_outcome outcome = {
                    .timed = true, .latency_ns = slow ? 3600000 * MS : class_ns(caller % 16)};

                weir_key_window_add(window, hash_of(i << 32 | s << 24 | caller), &outcome);
            }
            weir_key_window_turn(window);
            weir_key_window_latest(window, &reading);
            assert_int_equal(reading.keys, WEIR_KEY_SAMPLES);
            above += classes_below(reading.p50_ns) * 100 * (100 - shares[s]) > 16 * 55 * 100;
        }
        assert_true(above <= WINDOWS / 1000);
    }
}

TEST_WITH(setup, teardown, "the latest reading is over as few seconds as have 8 callers")
{
    struct weir_key_reading reading;

    for (uint64_t caller = 0; caller < 20; caller++) /* the oldest second */
        add(caller, false, 64 * MS);
    weir_key_window_turn(window);
    for (uint64_t caller = 0; caller < 6; caller++)
        add(caller, false, 32 * MS);
    weir_key_window_turn(window);
    for (uint64_t caller = 3; caller < 8; caller++) /* 8 with the second before */
        add(caller, false, 16 * MS);
    weir_key_window_turn(window);
    weir_key_window_latest(window, &reading);
    assert_int_equal(reading.keys, 8);
    assert_true(reading.p50_ns <= 32 * MS && reading.p99_ns <= 32 * MS);
    for (uint64_t caller = 0; caller < 8; caller++)
        add(caller, false, caller == 0 ? 3600000 * MS : 16 * MS);
    weir_key_window_turn(window);
    weir_key_window_latest(window, &reading);
    assert_int_equal(reading.keys, 8);
    assert_true(reading.p50_ns <= 16 * MS && reading.p50_ns > 14 * MS);
    for (int turns = 0; turns < WEIR_KEY_SECONDS; turns++)
        weir_key_window_turn(window);
    add(1, false, 16 * MS);
    weir_key_window_turn(window);
    weir_key_window_latest(window, &reading);
    assert_int_equal(reading.keys, 1); /* fewer in all of them */
}

/* However many outcomes a caller has, the kept ones are drawn from all of them. */
TEST_WITH(setup, teardown, "outcomes are kept with the same chance")
{
    enum { CALLERS = 1000, EACH = 400 };
    struct weir_key_reading reading;

    for (uint64_t caller = 0; caller < CALLERS; caller++)
        for (uint32_t i = 0; i < EACH; i++)
            add(caller, i < EACH / 4, MS);
    reading = look();
    assert_in_range(reading.failed, 2200, 2800); /* 25 %, with a deviation of 0.5 */
    for (uint64_t caller = 0; caller < CALLERS; caller++)
        for (uint32_t i = 0; i < 3 * EACH; i++)
            add(caller, true, MS);
    reading = look(); /* of 1,600 outcomes 1,300 failed */
    assert_in_range(reading.failed, 7825, 8425);
}

/* A slow, obvious model: all outcomes of the last seconds of at most 8 a caller. */
enum { MODEL_CALLERS = 300, MODEL_SECONDS = 200 };
static struct {
    uint8_t failed[MODEL_SECONDS][MODEL_CALLERS], all[MODEL_SECONDS][MODEL_CALLERS];
} model;

static uint64_t weight_of(uint32_t failed, uint32_t all)
{
    return all > 0 ? failed * 840 / all : 0;
}

TEST_WITH(setup, teardown, "random seconds agree with a plain model")
{
    memset(&model, 0, sizeof model);
    for (uint32_t second = 0; second < MODEL_SECONDS; second++) {
        uint32_t first = second < WEIR_KEY_SECONDS ? 0 : second - WEIR_KEY_SECONDS + 1, keys = 0;
        uint64_t sum = 0, open = 0;
        struct weir_key_reading reading;

        for (uint32_t i = 0, times = draw(400); i < times; i++) {
            uint32_t caller = draw(1 + draw(MODEL_CALLERS)), all = 0;
            bool failed = draw(3) == 0;

            for (uint32_t s = first; s <= second; s++)
                all += model.all[s][caller];
            if (all == WEIR_KEY_OUTCOMES)
                continue;
            add(caller, failed, MS);
            model.all[second][caller]++;
            model.failed[second][caller] = (uint8_t)(model.failed[second][caller] + failed);
        }
        for (uint32_t c = 0; c < MODEL_CALLERS; c++) {
            keys += model.all[second][c] > 0;
            open += weight_of(model.failed[second][c], model.all[second][c]);
        }
        assert_int_equal(weir_key_window_open_keys(window), keys);
        assert_int_equal(weir_key_window_open_failed(window),
                         keys > 0 ? open * 10000 / (keys * 840) : 0);
        keys = 0;
        for (uint32_t c = 0; c < MODEL_CALLERS; c++) {
            uint32_t failed = 0, all = 0;

            for (uint32_t s = first; s <= second; s++) {
                failed += model.failed[s][c];
                all += model.all[s][c];
            }
            keys += all > 0;
            sum += weight_of(failed, all);
        }
        reading = look();
        assert_int_equal(reading.keys, keys);
        assert_int_equal(reading.failed, keys > 0 ? sum * 10000 / (keys * 840) : 0);
    }
}

/* The open share follows a sample that loses callers to others. */
TEST_WITH(setup, teardown, "the open second is over the callers that it has")
{
    for (uint64_t caller = 0; caller < 20 * WEIR_KEY_SAMPLES; caller++)
        add(caller, caller % 4 == 0, MS);
    assert_int_equal(weir_key_window_open_keys(window), WEIR_KEY_SAMPLES);
    uint16_t open = weir_key_window_open_failed(window);
    assert_int_equal(look().failed, open);
    assert_in_range(open, 2000, 3000);
    assert_int_equal(weir_key_window_open_keys(window), 0);
    assert_int_equal(weir_key_window_open_failed(window), 0);
}

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static bool stopped;

static void *add_many(void *context)
{
    const uint64_t *first = context;
    bool stop = false;

    for (uint64_t i = 0; !stop; i++) {
        pthread_mutex_lock(&lock);
        add(*first + i % 500, i % 4 == 0, MS);
        stop = stopped;
        pthread_mutex_unlock(&lock);
    }
    return NULL;
}

/* The reader needs no lock: what has ended is its own. */
TEST_WITH(setup, teardown, "what has ended is read while others add")
{
    uint64_t firsts[] = {0, 1000};
    pthread_t threads[2];

    stopped = false;
    for (int i = 0; i < 2; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, add_many, &firsts[i]), 0);
    for (int i = 0; i < 300; i++) {
        struct weir_key_reading reading;

        pthread_mutex_lock(&lock);
        weir_key_window_turn(window);
        pthread_mutex_unlock(&lock);
        weir_key_window_read(window, &reading);
        assert_true(reading.keys <= 1000 && reading.failed <= 10000);
    }
    pthread_mutex_lock(&lock);
    stopped = true;
    pthread_mutex_unlock(&lock);
    for (int i = 0; i < 2; i++)
        pthread_join(threads[i], NULL);
}

TEST_WITH(setup, teardown, "a failure counts where enough callers fail")
{
    const struct weir_aimd_spec spec = {1, 100, 1, 90, 5, false, 0};
    const struct weir_aimd_spec any = {1, 100, 1, 90, 0, false, 0};

    assert_true(weir_aimd_heeds(&spec, 0, 0));
    assert_true(weir_aimd_heeds(&spec, WEIR_KEY_LEAST - 1, 0));
    assert_false(weir_aimd_heeds(&spec, WEIR_KEY_LEAST, 500));
    assert_true(weir_aimd_heeds(&spec, WEIR_KEY_LEAST, 501));
    assert_true(weir_aimd_heeds(&any, WEIR_KEY_LEAST, 1));
}

RUN_TESTS()
