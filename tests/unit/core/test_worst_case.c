/* SPDX-License-Identifier: Apache-2.0 */
/* The most that each algorithm admits in any half-open window [x, x + W): reached, never passed.
 *
 *   fixed_window     2N            the end of one window and the start of the next
 *   sliding_window   2N            weighted: the end of one window and the end of the next
 *   sliding_window   N             strict
 *   sliding_log      N
 *   buckets          B + floor(N * (W - 1) / W)
 *   leaky_queue      N             by the time of release, of costs of 1; a cost of c is released
 *                                  at once and before its c periods, so it adds at most c - 1
 */
#include "core_test.h"
#include "test.h"

#include <stdlib.h>

#define ADMISSIONS_MAX 20000

struct trace {
    struct weir_limit limit;
    uint64_t state[512]; /* a cell, or a span */
    uint64_t time_ns[ADMISSIONS_MAX], cost[ADMISSIONS_MAX];
    size_t count;
};

static struct trace trace;

static void begin(struct weir_limit_spec spec)
{
    memset(&trace, 0, sizeof(trace));
    trace.limit = make_limit(spec);
    assert_true(trace.limit.span_words <= 512);
}

/* Asks, and records what was admitted, by the time at which it is let go. */
static bool ask(uint64_t now_ns, uint64_t cost)
{
    struct weir_use use = {.now_ns = now_ns, .cost = cost};
    uint64_t delay_ns;

    if (!weir_decide(&trace.limit, trace.state, &use, NULL, &delay_ns))
        return false;
    assert_true(trace.count < ADMISSIONS_MAX);
    trace.time_ns[trace.count] = now_ns + delay_ns;
    trace.cost[trace.count] = cost;
    trace.count++;
    return true;
}

/* Takes all that is admitted at one time. */
static void drain(uint64_t now_ns)
{
    while (ask(now_ns, 1))
        continue;
}

static uint64_t remaining(uint64_t now_ns)
{
    return report_of(&trace.limit, trace.state, now_ns, 0, true).remaining;
}

/* Every window of interest starts at an admission. */
static uint64_t worst_window(void)
{
    uint64_t sum = 0, most = 0;
    size_t first = 0;

    for (size_t i = 0; i < trace.count; i++) {
        sum += trace.cost[i];
        while (trace.time_ns[i] - trace.time_ns[first] >= trace.limit.spec.window_ns)
            sum -= trace.cost[first++];
        most = sum > most ? sum : most;
    }
    return most;
}

static uint64_t bound(void)
{
    const struct weir_limit_spec *spec = &trace.limit.spec;

    switch (spec->algorithm) {
    case WEIR_FIXED_WINDOW:
        return 2 * spec->rate;
    case WEIR_SLIDING_WINDOW:
        return spec->strict ? spec->rate : 2 * spec->rate;
    case WEIR_SLIDING_LOG:
    case WEIR_LEAKY_QUEUE:
        return spec->rate;
    default:
        return spec->burst + spec->rate * (spec->window_ns - 1) / spec->window_ns;
    }
}

TEST("fixed windows admit twice the limit around a border")
{
    begin(
        (struct weir_limit_spec){.algorithm = WEIR_FIXED_WINDOW, .rate = 10, .window_ns = SECOND});
    drain(100 * SECOND - 1);
    drain(100 * SECOND);
    assert_int_equal(worst_window(), 20);
    assert_int_equal(worst_window(), bound());
}

TEST("a weighted window admits twice the limit at most")
{
    static const uint32_t counts[] = {1, 2, 10, 60, 120};

    for (size_t i = 0; i < sizeof(counts) / sizeof(counts[0]); i++) {
        struct weir_limit_spec spec = {
            .algorithm = WEIR_SLIDING_WINDOW, .rate = 10, .window_ns = 6 * SECOND};
        uint64_t w = spec.window_ns / counts[i];

        spec.segments = counts[i];
        begin(spec);
        /* The last nanosecond of one segment; and, less than W later, the last but one nanosecond
           of the segment in which the first fades: then floor(10 * 2 / w) of it is left. */
        drain(600 * SECOND + w - 1);
        drain(600 * SECOND + spec.window_ns + w - 2);
        assert_int_equal(worst_window(), 20);
        assert_int_equal(worst_window(), bound());
    }
}

TEST("strict windows and logs admit the limit and no more")
{
    static const struct weir_limit_spec specs[] = {
        {.algorithm = WEIR_SLIDING_WINDOW, .rate = 10, .window_ns = SECOND, .strict = true},
        {.algorithm = WEIR_SLIDING_WINDOW,
         .rate = 10,
         .window_ns = SECOND,
         .segments = 10,
         .strict = true},
        {.algorithm = WEIR_SLIDING_LOG, .rate = 10, .window_ns = SECOND},
    };

    for (size_t i = 0; i < sizeof(specs) / sizeof(specs[0]); i++) {
        begin(specs[i]);
        for (uint64_t t = 0; t < 4000; t++)
            drain(100 * SECOND + t * MS - 1);
        assert_int_equal(worst_window(), 10);
        assert_int_equal(worst_window(), bound());
    }
}

TEST("buckets admit their burst and the refill of a window")
{
    static const enum weir_algorithm names[] = {WEIR_TOKEN_BUCKET, WEIR_GCRA, WEIR_LEAKY_BUCKET};

    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        for (uint64_t rate = 1; rate < 30; rate++) {
            begin((struct weir_limit_spec){
                .algorithm = names[i], .rate = rate, .window_ns = MS + 7, .burst = 5});
            drain(START);
            for (uint64_t k = 1; k <= rate; k++) /* as soon as each comes back */
                drain(START + (k * (MS + 7) + rate - 1) / rate);
            assert_int_equal(worst_window(), 5 + rate - 1); /* floor(N - N/W) */
            assert_int_equal(worst_window(), bound());
        }
    }
}

TEST("a queue releases the limit in any window")
{
    begin((struct weir_limit_spec){
        .algorithm = WEIR_LEAKY_QUEUE, .rate = 7, .window_ns = SECOND, .burst = 50});
    for (uint64_t t = 0; t < 300; t++)
        drain(START + t * 10 * MS);
    assert_true(trace.count > 50);
    assert_int_equal(worst_window(), 7);
    assert_int_equal(worst_window(), bound());
}

/* SplitMix64, as in tests/lib/model_trace.c. */
static uint64_t next(uint64_t *random)
{
    uint64_t z = *random += UINT64_C(0x9e3779b97f4a7c15);

    z = (z ^ z >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ z >> 27) * UINT64_C(0x94d049bb133111eb);
    return z ^ z >> 31;
}

/* Greedy clients that wait for borders, or for the stated time, or at random, and clocks that step
 * back. */
TEST("no traffic passes the bound")
{
    uint64_t random = 3;

    for (int round = 0; round < 1200; round++) {
        struct weir_limit_spec spec = {.algorithm = (enum weir_algorithm)(round % WEIR_CONCURRENCY),
                                       .rate = next(&random) % 20 + 1,
                                       .window_ns = MS + next(&random) % 50 * 120};
        uint64_t now_ns = START, latest_ns = START;

        spec.burst = spec.rate / (next(&random) % 3 + 1) + 1;
        spec.segments = (uint32_t[]){1, 2, 4, 8, 40}[next(&random) % 5];
        spec.strict = next(&random) % 2;
        begin(spec);
        for (int i = 0; i < 500; i++) {
            struct weir_report report = report_of(&trace.limit, trace.state, now_ns, 1, false);
            uint64_t w = trace.limit.spec.window_ns;

            switch (next(&random) % 6) {
            case 0:
                now_ns += w - now_ns % w - next(&random) % 3;
                break;
            case 1:
            case 2:
                now_ns += report.retry_after_ns;
                break;
            case 3:
                now_ns += next(&random) % w;
                break;
            case 4:
                now_ns += next(&random) % (w / 20);
                break;
            default:
                break;
            }
            latest_ns = now_ns > latest_ns ? now_ns : latest_ns;
            if (next(&random) % 3 == 0) {
                uint64_t left = remaining(now_ns);

                if (spec.algorithm == WEIR_LEAKY_QUEUE && left > 0)
                    left = 1;
                if (left > 0)
                    assert_true(ask(now_ns, left));
            } else {
                (void)ask(now_ns, 1);
            }
            /* A clock that steps back admits no more on top: asked there, nothing is recorded
               that was not already possible now. */
            if (next(&random) % 8 == 0) {
                uint64_t back = next(&random) % (2 * w);
                struct weir_report earlier =
                    report_of(&trace.limit, trace.state, now_ns - back, 1, false);

                assert_true(earlier.remaining <= remaining(now_ns));
            }
        }
        assert_true(worst_window() <= bound());
    }
}

RUN_TESTS()
