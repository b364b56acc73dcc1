/* SPDX-License-Identifier: Apache-2.0 */
/* Backoff, the budget, the verdict after a try, the bound of requests in flight, and the heap. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "base/random.h"
#include "client/backoff.h"
#include "client/heap.h"
#include "client/instant.h"
#include "client/lane.h"
#include "client/retry.h"
#include "client/retry_budget.h"
#include "test.h"

#define MS UINT64_C(1000000)
#define S (1000 * MS)

static struct weir_backoff_spec spec = {WEIR_CLIENT_JITTER_FULL, 100 * MS, 5 * S, 2};

TEST("waits are between the bounds of their jitter")
{
    uint64_t seed = 1;

    for (uint32_t tries = 1; tries < 80; tries++) {
        uint64_t most = tries < 7 ? 100 * MS << (tries - 1) : 5 * S, sum = 0, previous = 0;
        for (int i = 0; i < 1000; i++) {
            spec.jitter = WEIR_CLIENT_JITTER_FULL;
            uint64_t wait = weir_backoff_wait(&spec, tries, 0, &seed);
            sum += wait;
            assert_true(wait <= most);
            spec.jitter = WEIR_CLIENT_JITTER_EQUAL;
            wait = weir_backoff_wait(&spec, tries, 0, &seed);
            assert_true(wait >= most / 2 && wait <= most);
            spec.jitter = WEIR_CLIENT_JITTER_DECORRELATED;
            uint64_t next = weir_backoff_wait(&spec, tries, previous, &seed);
            uint64_t from = previous > 100 * MS ? previous : 100 * MS;
            assert_true(next >= 100 * MS && next <= 5 * S && next <= 3 * from);
            previous = next;
        }
        assert_true(sum / 1000 > most * 4 / 10 && sum / 1000 < most * 6 / 10);
    }
    spec.jitter = WEIR_CLIENT_JITTER_FULL;
}

TEST("retries stop while all fails and stay below a tenth of successes")
{
    struct weir_retry_budget budget = {0};
    uint64_t requests = 0, retries = 0, seed = 5;

    for (int i = 0; i < 4; i++)
        weir_retry_budget_failure(&budget);
    assert_true(weir_retry_budget_allows(&budget));
    weir_retry_budget_failure(&budget);
    assert_false(weir_retry_budget_allows(&budget));
    for (int i = 0; i < 1000; i++)
        weir_retry_budget_failure(&budget);
    for (int i = 0; i < 50; i++)
        weir_retry_budget_success(&budget);
    assert_false(weir_retry_budget_allows(&budget));
    weir_retry_budget_success(&budget);
    assert_true(weir_retry_budget_allows(&budget));
    /* Half of the answers fail: retries may not double the load. */
    for (; requests < 100000; requests++) {
        bool again = true;
        while (again && weir_random_up_to(&seed, 1) == 0) {
            weir_retry_budget_failure(&budget);
            again = weir_retry_budget_allows(&budget);
            retries += again;
        }
        if (again)
            weir_retry_budget_success(&budget);
    }
    assert_true(retries * 10 < requests);
}

static struct weir_retry_verdict decide(struct weir_retry_case one)
{
    static uint64_t seed = 3;
    struct weir_retry_verdict verdict;

    weir_retry_decide(&one, &spec, &seed, &verdict);
    return verdict;
}

static const struct weir_retry_case fresh = {.repeatable = true,
                                             .budget = true,
                                             .tries = 1,
                                             .most = 5,
                                             .now_ns = S,
                                             .deadline_ns = UINT64_MAX};

TEST("statuses that are retried")
{
    for (int status = 100; status < 600; status++) {
        struct weir_retry_case one = fresh;
        one.status = status;
        bool again =
            status == 429 || status == 500 || (status >= 502 && status <= 504) || status == 529;
        assert_int_equal(decide(one).again, again);
        if (!again)
            assert_int_equal(decide(one).outcome, WEIR_CLIENT_ANSWERED);
        one.repeatable = false;
        assert_false(decide(one).again);
    }
}

TEST("a 403 is as 429 where it says that a limit is used up")
{
    struct weir_retry_case one = fresh;
    struct weir_advice advice = {.count = 1, .policies = {{.remaining = 1}}};

    one.status = 403;
    one.advice = &advice;
    assert_int_equal(decide(one).outcome, WEIR_CLIENT_ANSWERED);
    advice.policies[0].remaining = 0;
    assert_true(decide(one).again);
    one.tries = 5;
    assert_int_equal(decide(one).outcome, WEIR_CLIENT_LIMITED);
    one.status = 404;
    assert_int_equal(decide(one).outcome, WEIR_CLIENT_ANSWERED);
    advice = (struct weir_advice){.has_retry_after = true};
    one.status = 403;
    one.tries = 1;
    assert_true(decide(one).again);
}

TEST("named statuses and those whose server wants it are retried")
{
    struct weir_retry_case one = fresh;
    struct weir_advice advice = {.must_retry = true};

    one.status = 409;
    assert_false(decide(one).again);
    one.named = true;
    assert_true(decide(one).again);
    one.status = 200; /* an answer is no failure */
    one.advice = &advice;
    assert_false(decide(one).again);
    one.named = false;
    one.status = 418;
    assert_true(decide(one).again);
    advice.must_not_retry = true;
    assert_false(decide(one).again);
}

TEST("a list of statuses that is all replaces the usual ones and what the server wants")
{
    struct weir_retry_case one = fresh;
    struct weir_advice advice = {.must_retry = true};

    one.only = true;
    for (one.status = 400; one.status < 600; one.status++)
        assert_false(decide(one).again);
    one.status = 418;
    one.advice = &advice;
    assert_false(decide(one).again);
    one.named = true;
    assert_true(decide(one).again);
    one.status = 0; /* a broken connection has no status */
    one.named = false;
    one.transient = true;
    assert_true(decide(one).again);
}

TEST("waits grow by the factor up to the cap and without jitter are exact")
{
    static const struct {
        double factor;
        uint64_t waits_ms[5];
    } cases[] = {{1, {100, 100, 100, 100, 100}},
                 {1.5, {100, 150, 225, 337, 506}},
                 {2, {100, 200, 400, 800, 1600}},
                 {3, {100, 300, 900, 2700, 5000}},
                 {100, {100, 5000, 5000, 5000, 5000}}};
    struct weir_backoff_spec none = {WEIR_CLIENT_JITTER_NONE, 100 * MS, 5 * S, 2};
    uint64_t seed = 1;

    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        for (uint32_t tries = 1; tries <= 5; tries++) {
            none.factor = cases[i].factor;
            assert_int_equal(weir_backoff_wait(&none, tries, 0, &seed) / MS,
                             cases[i].waits_ms[tries - 1]);
        }
    none.cap_ns = UINT64_C(1) << 62;
    assert_int_equal(weir_backoff_wait(&none, 1000, 0, &seed), none.cap_ns);
}

TEST("only idempotent methods are retried")
{
    static const char *const good[] = {"GET", "HEAD", "OPTIONS", "TRACE", "PUT", "DELETE"};
    static const char *const bad[] = {"POST", "PATCH", "get", "CONNECT", ""};

    for (size_t i = 0; i < sizeof good / sizeof *good; i++)
        assert_true(weir_retry_method(good[i]));
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        assert_false(weir_retry_method(bad[i]));
}

TEST("outcomes say why there is no other try")
{
    struct weir_retry_case one = fresh;
    struct weir_advice advice = {0};

    one.status = 429;
    one.tries = 5;
    assert_int_equal(decide(one).outcome, WEIR_CLIENT_LIMITED);
    one.status = 503;
    assert_int_equal(decide(one).outcome, WEIR_CLIENT_GAVE_UP);
    one.tries = 1;
    one.budget = false;
    assert_int_equal(decide(one).outcome, WEIR_CLIENT_GAVE_UP);
    one.status = 429; /* the pace bounds these */
    assert_true(decide(one).again);
    one.stated_ns = 10 * S;
    struct weir_retry_verdict verdict = decide(one);
    assert_true(verdict.again && verdict.wait_ns == 10 * S); /* the host's pause spreads */
    one.stated_ns = WEIR_INSTANT_HORIZON_NS; /* longer than the time of any request */
    verdict = decide(one);
    assert_true(!verdict.again && verdict.outcome == WEIR_CLIENT_LIMITED);
    one.stated_ns = 10 * S;
    one.deadline_ns = 10 * S;
    verdict = decide(one);
    assert_int_equal(verdict.outcome, WEIR_CLIENT_LIMITED);
    assert_true(!verdict.again && verdict.wait_ns >= 10 * S);
    one.deadline_ns = UINT64_MAX;
    one.repeatable = false; /* what the server said is kept, whatever the reason */
    verdict = decide(one);
    assert_true(!verdict.again && verdict.wait_ns == 10 * S);
    one.repeatable = true;
    one.deadline_ns = 10 * S;
    one.status = 0;
    one.transient = true;
    one.budget = true;
    assert_int_equal(decide(one).outcome, WEIR_CLIENT_TIMEOUT);
    one.transient = false;
    assert_int_equal(decide(one).outcome, WEIR_CLIENT_REFUSED);
    one = fresh;
    one.status = 500;
    advice.must_not_retry = true;
    one.advice = &advice;
    assert_false(decide(one).again);
    one = fresh;
    one.status = 503;
    assert_true(decide(one).wait_ns <= 100 * MS); /* nothing is stated */
}

TEST("requests in flight double with each round trip")
{
    struct weir_host_lane lane;

    weir_lane_init(&lane, 16, false);
    for (uint32_t most = 1; most <= 16; most *= 2) {
        uint32_t sent = 0;
        for (; weir_lane_open(&lane, 0, false); sent++)
            weir_lane_send(&lane);
        assert_int_equal(sent, most);
        assert_false(weir_lane_open(&lane, 3, false) && most >= 3);
        for (; sent > 0; sent--)
            weir_lane_end(&lane, true, 10 * MS, S);
    }
    weir_lane_send(&lane);
    assert_false(weir_lane_open(&lane, 0, true));
    weir_lane_send(&lane);
    weir_lane_end(&lane, false, 10 * MS, S);
    assert_false(weir_lane_open(&lane, 0, false));
}

TEST("an adaptive lane shrinks while latency grows")
{
    struct weir_host_lane lane;
    uint64_t now = S;
    uint32_t before = 0, after = 0;

    weir_lane_init(&lane, 100, true);
    for (int round = 0; round < 400; round++) {
        uint32_t sent = 0;
        uint64_t latency = round < 200 ? 50 * MS : 500 * MS;
        for (; weir_lane_open(&lane, 0, false); sent++)
            weir_lane_send(&lane);
        before = round == 199 ? sent : before;
        after = sent;
        for (; sent > 0; sent--)
            weir_lane_end(&lane, true, latency, now += latency / (sent + 1));
        now += S;
    }
    assert_true(before > 50);
    assert_true(after < before / 2);
}

struct item {
    struct weir_heap_item item;
    uint64_t key;
    bool in;
};

static bool before(const struct weir_heap_item *a, const struct weir_heap_item *b)
{
    return ((const struct item *)a)->key < ((const struct item *)b)->key;
}

TEST("the least item of a heap is first")
{
    static struct item items[200];
    struct weir_heap heap = {.before = before};
    uint64_t seed = 9;

    for (int step = 0; step < 20000; step++) {
        struct item *one = &items[weir_random_up_to(&seed, 199)];
        if (one->in)
            weir_heap_remove(&heap, &one->item);
        else
            one->key = weir_random_up_to(&seed, 1000);
        if (!one->in)
            assert_true(weir_heap_add(&heap, &one->item));
        one->in = !one->in;
        uint64_t least = UINT64_MAX;
        size_t count = 0;
        for (int i = 0; i < 200; i++) {
            count += items[i].in;
            if (items[i].in && items[i].key < least)
                least = items[i].key;
        }
        assert_int_equal(heap.count, count);
        const struct item *first = (const struct item *)weir_heap_first(&heap);
        assert_true(count == 0 ? !first : first->key == least);
    }
    weir_heap_free(&heap);
}

RUN_TESTS()
