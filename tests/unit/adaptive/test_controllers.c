/* SPDX-License-Identifier: Apache-2.0 */
/* The controllers against a simulated backend in virtual time: latency steps, two kinds of
 * requests, idle gaps, a dead backend. Each is bounded, follows the backend down and comes back in
 * the time that its header states. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "feature/adaptive/aimd.h"
#include "feature/adaptive/gradient2.h"
#include "test.h"

#define MS UINT64_C(1000000)
#define S (1000 * MS)

static const struct weir_aimd_spec aimd_spec = {20, 2000, 1, 90, 5, false, 0};
static const struct weir_gradient2_spec gradient_spec = {4, 200};

static struct weir_result result(uint64_t now_ns, uint64_t latency_ns, uint32_t in_flight,
                                 bool failed)
{
    return (struct weir_result){now_ns, latency_ns, in_flight, failed};
}

static void aimd_take(struct weir_aimd *aimd, struct weir_result one)
{
    weir_aimd_update(aimd, &aimd_spec, &one);
}

TEST("aimd begins at its maximum")
{
    struct weir_aimd aimd;

    weir_aimd_init(&aimd, &aimd_spec);
    assert_int_equal(weir_aimd_limit(&aimd), 2000);
    for (uint64_t i = 1; i < 100000; i++)
        aimd_take(&aimd, result(i * MS, MS, WEIR_IN_FLIGHT_UNKNOWN, false));
    assert_int_equal(weir_aimd_limit(&aimd), 2000);
}

TEST("a burst of failures is one decrease")
{
    struct weir_aimd aimd;

    weir_aimd_init(&aimd, &aimd_spec);
    for (int i = 0; i < 1000; i++)
        aimd_take(&aimd, result(10 * S + (uint64_t)i, 50 * MS, WEIR_IN_FLIGHT_UNKNOWN, true));
    assert_int_equal(weir_aimd_limit(&aimd), 1800);
    /* The next one began after the decrease. */
    aimd_take(&aimd, result(10 * S + 50 * MS, 50 * MS, WEIR_IN_FLIGHT_UNKNOWN, true));
    assert_int_equal(weir_aimd_limit(&aimd), 1620);
}

TEST("a dead backend takes aimd to its minimum and no further")
{
    struct weir_aimd aimd;

    weir_aimd_init(&aimd, &aimd_spec);
    for (uint64_t i = 1; i <= 100; i++)
        aimd_take(&aimd, result(i * 5 * S, 5 * S, WEIR_IN_FLIGHT_UNKNOWN, true));
    assert_int_equal(weir_aimd_limit(&aimd), 20);
}

/* After `limit` successes the limit has grown by one, so a round trip brings one. */
TEST("aimd recovers by one a round trip")
{
    struct weir_aimd aimd = {.limit_q16 = (uint64_t)20 << 16};
    uint64_t now_ns = S;

    for (uint32_t round = 0; round < 1980; round++) {
        uint32_t limit = weir_aimd_limit(&aimd);

        for (uint32_t i = 0; i < limit; i++)
            aimd_take(&aimd, result(++now_ns, MS, limit, false));
    }
    assert_in_range(weir_aimd_limit(&aimd), 1978, 2000);
}

TEST("aimd begins where it is configured to")
{
    const struct weir_aimd_spec spec = {10, 1000, 1, 50, 5, false, 100};
    struct weir_aimd aimd;

    weir_aimd_init(&aimd, &spec);
    assert_int_equal(weir_aimd_limit(&aimd), 100);
}

/* The numbers of most guides: +1 a success, half after a failure. */
TEST("aimd may grow by each success")
{
    const struct weir_aimd_spec spec = {10, 1000, 1, 50, 5, true, 100};
    struct weir_result good = result(S, MS, WEIR_IN_FLIGHT_UNKNOWN, false);
    struct weir_result bad = result(2 * S, MS, WEIR_IN_FLIGHT_UNKNOWN, true);
    struct weir_aimd aimd;

    weir_aimd_init(&aimd, &spec);
    for (uint32_t i = 1; i <= 100; i++) {
        weir_aimd_update(&aimd, &spec, &good);
        assert_int_equal(weir_aimd_limit(&aimd), 100 + i);
    }
    weir_aimd_update(&aimd, &spec, &bad);
    assert_int_equal(weir_aimd_limit(&aimd), 100);
    for (uint32_t i = 0; i < 2000; i++)
        weir_aimd_update(&aimd, &spec, &good);
    assert_int_equal(weir_aimd_limit(&aimd), 1000);
}

TEST("aimd does not grow while it is not used")
{
    struct weir_aimd aimd = {.limit_q16 = (uint64_t)100 << 16};

    for (uint64_t i = 0; i < 100000; i++)
        aimd_take(&aimd, result(S + i, MS, 49, false));
    assert_int_equal(weir_aimd_limit(&aimd), 100);
    for (uint64_t i = 0; i < 200; i++)
        aimd_take(&aimd, result(S + i, MS, 51, false));
    assert_int_equal(weir_aimd_limit(&aimd), 101);
}

TEST("late and early results do no harm")
{
    struct weir_aimd aimd;

    weir_aimd_init(&aimd, &aimd_spec);
    aimd_take(&aimd, result(MS, UINT64_MAX, WEIR_IN_FLIGHT_UNKNOWN, true));
    aimd_take(&aimd, result(0, 0, 0, true));
    assert_in_range(weir_aimd_limit(&aimd), 1800, 2000);
}

/* A backend with room for `room` requests: more of them queue, so latency grows with what is in
 * flight. The limit is fully used. */
struct backend {
    struct weir_gradient2 gradient;
    uint64_t now_ns, least_ns;
    uint32_t room;
};

static void serve(struct backend *backend, uint32_t seconds)
{
    for (uint32_t i = 0; i < seconds * 20; i++) {
        uint32_t in_flight = weir_gradient2_limit(&backend->gradient);
        uint64_t latency_ns = in_flight > backend->room
                                  ? backend->least_ns * in_flight / backend->room
                                  : backend->least_ns;
        struct weir_result one = {backend->now_ns, latency_ns, in_flight, false};

        weir_gradient2_update(&backend->gradient, &gradient_spec, &one, 0);
        backend->now_ns += 50 * MS;
        assert_in_range(weir_gradient2_limit(&backend->gradient), 4, 200);
    }
}

static void start(struct backend *backend, uint32_t room)
{
    *backend = (struct backend){.now_ns = S, .least_ns = 20 * MS, .room = room};
    weir_gradient2_init(&backend->gradient, &gradient_spec);
}

/* In full use the limit grows by at most 0.8 a window of one second. */
TEST("gradient finds its maximum in the stated time")
{
    struct backend backend;

    start(&backend, 1000);
    serve(&backend, 200);
    assert_in_range(weir_gradient2_limit(&backend.gradient), 120, 164);
    serve(&backend, 100);
    assert_int_equal(weir_gradient2_limit(&backend.gradient), 200);
}

TEST("gradient backs off when latency steps up and comes back")
{
    struct backend backend;

    start(&backend, 1000);
    serve(&backend, 300);
    backend.least_ns = 200 * MS;
    serve(&backend, 30);
    assert_in_range(weir_gradient2_limit(&backend.gradient), 4, 60);
    backend.least_ns = 20 * MS;
    serve(&backend, 400);
    assert_int_equal(weir_gradient2_limit(&backend.gradient), 200);
}

TEST("a dead backend takes gradient down to what its queue holds")
{
    struct backend backend;

    start(&backend, 1000);
    serve(&backend, 300);
    backend.least_ns = 5 * S;
    serve(&backend, 60);
    assert_in_range(weir_gradient2_limit(&backend.gradient), 4, 20);
}

/* Nine of ten requests take 10 ms, one takes 400: the mean is steady, and so is the limit. */
TEST("two kinds of requests do not lower it")
{
    struct backend backend;

    start(&backend, 1000);
    for (uint32_t i = 0; i < 300 * 20; i++) {
        struct weir_result one = {backend.now_ns, i % 10 == 0 ? 400 * MS : 10 * MS,
                                  weir_gradient2_limit(&backend.gradient), false};

        weir_gradient2_update(&backend.gradient, &gradient_spec, &one, 0);
        backend.now_ns += 50 * MS;
    }
    assert_int_equal(weir_gradient2_limit(&backend.gradient), 200);
}

TEST("an idle gap changes nothing")
{
    struct backend backend;
    uint32_t before;

    start(&backend, 1000);
    serve(&backend, 100);
    before = weir_gradient2_limit(&backend.gradient);
    backend.now_ns += 3600 * S;
    serve(&backend, 1);
    assert_in_range(weir_gradient2_limit(&backend.gradient), before, before + 1);
}

TEST("gradient does not grow while it is not used")
{
    struct weir_gradient2 gradient;

    weir_gradient2_init(&gradient, &gradient_spec);
    for (uint64_t i = 0; i < 10000; i++) {
        struct weir_result one = {S + i * 50 * MS, 20 * MS, 1, false};

        weir_gradient2_update(&gradient, &gradient_spec, &one, 0);
    }
    assert_int_equal(weir_gradient2_limit(&gradient), 4);
}

/* Two slow callers among ten: the mean is three times the median. Callers come and go, so that now
 * the one is read and now the other, and nothing queues. */
TEST("gradient does not shrink where median and mean take turns")
{
    struct backend backend;

    start(&backend, 1000);
    for (uint32_t i = 0; i < 900 * 20; i++) {
        struct weir_result one = {backend.now_ns, i % 10 < 2 ? 110 * MS : 10 * MS,
                                  weir_gradient2_limit(&backend.gradient), false};
        double before = backend.gradient.limit;

        weir_gradient2_update(&backend.gradient, &gradient_spec, &one,
                              i / 20 / 30 % 2 == 0 ? 10 * MS : 0);
        backend.now_ns += 50 * MS;
        assert_true(backend.gradient.limit >= before);
    }
    assert_int_equal(weir_gradient2_limit(&backend.gradient), 200);
}

/* The published algorithm, written down once more without windows of its own: the same series of
 * window means has to give the same limits. */
TEST("gradient follows the published formula")
{
    struct weir_gradient2 gradient;
    double limit = gradient_spec.min, average = 0;
    uint64_t now_ns = S;

    weir_gradient2_init(&gradient, &gradient_spec);
    for (uint32_t window = 0; window < 2000; window++) {
        uint64_t latency_ns = (10 + window * 7919 % 90) * MS;

        for (uint32_t i = 0; i <= 10; i++) {
            struct weir_result one = {now_ns, latency_ns, WEIR_IN_FLIGHT_UNKNOWN, false};

            weir_gradient2_update(&gradient, &gradient_spec, &one, 0);
            now_ns += S / 10;
        }

        double mean = (double)latency_ns, slope, factor = 2.0 / 601;

        if (window < 10)
            average = (average * window + mean) / (window + 1);
        else
            average = average * (1 - factor) + mean * factor;
        if (average / mean > 2)
            average *= 0.95;
        slope = 1.5 * average / mean;
        slope = slope > 1 ? 1 : slope < 0.5 ? 0.5 : slope;
        limit = limit * 0.8 + (limit * slope + 4) * 0.2;
        limit = limit < 4 ? 4 : limit > 200 ? 200 : limit;
        assert_in_range(gradient.limit * 1000, limit * 1000 - 1, limit * 1000 + 1);
    }
}

/* Latencies from nothing to hours, times that go back, any number in flight: the limits stay
 * within their bounds, and each moves by no more in one step than its header states. */
TEST("nothing that is reported leaves the bounds")
{
    struct weir_gradient2 gradient;
    struct weir_aimd aimd;
    uint32_t random = 1;
    uint64_t now_ns = S;

    weir_gradient2_init(&gradient, &gradient_spec);
    weir_aimd_init(&aimd, &aimd_spec);
    for (uint32_t i = 0; i < 1000000; i++) {
        random = random * 1664525 + 1013904223;

        uint64_t latency_ns = UINT64_C(1) << (random >> 8) % 45;
        uint32_t in_flight = random % 7 == 0 ? WEIR_IN_FLIGHT_UNKNOWN : (random >> 10) % 4000;
        struct weir_result one = result(now_ns, latency_ns, in_flight, random % 97 == 0);
        double before = gradient.limit;
        uint64_t aimd_before = aimd.limit_q16;

        weir_gradient2_update(&gradient, &gradient_spec, &one, 0);
        aimd_take(&aimd, one);
        assert_in_range(weir_gradient2_limit(&gradient), 4, 200);
        assert_in_range(weir_aimd_limit(&aimd), 20, 2000);
        assert_true(gradient.limit >= before * 0.9 - 0.001 && gradient.limit <= before + 0.801);
        assert_true(aimd.limit_q16 + aimd.limit_q16 / 8 >= aimd_before);
        now_ns += random % 5 == 0 ? 3 * S : (random >> 20) * 1000;
        if (random % 1000 == 0 && now_ns > 20 * S)
            now_ns -= 10 * S;
    }
}

/* A recorded day in small: steady, a backend that dies for a minute, and comes back. AIMD is at its
 * minimum within that minute, and back at what it was after (max - min) / increase round trips,
 * while its number is in use. */
TEST("aimd survives a minute without a backend")
{
    static const struct weir_aimd_spec spec = {10, 100, 1, 90, 5, false, 0};
    struct weir_aimd aimd;
    uint64_t now_ns = 100 * S, died_ns;

    weir_aimd_init(&aimd, &spec);
    for (died_ns = now_ns; now_ns < died_ns + 60 * S; now_ns += S / 10) {
        struct weir_result one = {now_ns, S, weir_aimd_limit(&aimd), true};

        weir_aimd_update(&aimd, &spec, &one);
    }
    assert_int_equal(weir_aimd_limit(&aimd), 10);
    for (uint32_t round_trip = 0; round_trip < 92; round_trip++)
        for (uint32_t i = weir_aimd_limit(&aimd); i > 0; i--) {
            struct weir_result one = {now_ns += MS, 10 * MS, weir_aimd_limit(&aimd), false};

            weir_aimd_update(&aimd, &spec, &one);
        }
    assert_in_range(weir_aimd_limit(&aimd), 99, 100);
}

RUN_TESTS()
