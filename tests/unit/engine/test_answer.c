/* SPDX-License-Identifier: Apache-2.0 */
/* What a client learns: reports, blame, retries, the next admission, leases. */
#include <string.h>

#include "rig.h"
#include "test.h"

static struct weir_answer answer;
static char lease[WEIR_LEASE_TOKEN_MAX];

static void run_and_answer(struct rig *rig, struct weir_decision *decision, uint64_t now_ns)
{
    weir_engine_queue(rig->engine, decision);
    weir_engine_run(rig->engine, now_ns);
    weir_engine_answer(decision, &answer, lease);
}

TEST("an allowed answer tells the state after the decision")
{
    struct rig rig;
    rig_open(&rig, 0, false);
    struct weir_limit limit = rig_limit(WEIR_FIXED_WINDOW, 10, SECOND);
    struct weir_decision *d = rig_take(&rig, 0);
    rig_check(d, &limit, "k", 4);
    run_and_answer(&rig, d, START + 1);
    assert_true(answer.allowed);
    assert_int_equal(answer.denied_by, -1);
    assert_int_equal(answer.retry_after_ns, 0);
    assert_int_equal(answer.now_ns, START + 1);
    assert_int_equal(answer.count, 1);
    assert_null(answer.lease.data);
    const struct weir_answer_limit *l = &answer.limits[0];
    assert_ptr_equal(l->limit, &limit);
    assert_int_equal(l->name.size, 0); /* a command's limit */
    assert_int_equal(l->cost, 4);
    assert_true(l->allowed && !l->shadow && !l->unlimited);
    assert_int_equal(l->report.limit, 10);
    assert_int_equal(l->report.remaining, 6);
    assert_int_equal(l->report.reset_after_ns, SECOND - 1);
    assert_int_equal(l->next_ns, 0);
    rig_close(&rig);
}

TEST("a denial blames the longest retry and ties go to the first rule")
{
    struct rig rig;
    rig_open(&rig, 0, false);
    struct weir_limit second = rig_limit(WEIR_FIXED_WINDOW, 0, SECOND);
    struct weir_limit one = rig_limit(WEIR_FIXED_WINDOW, 1, SECOND);
    struct weir_limit minute = rig_limit(WEIR_FIXED_WINDOW, 1, 60 * SECOND);
    struct weir_decision *d = rig_take(&rig, 0);
    for (int i = 0; i < 2; i++) { /* the second finds both windows full */
        d = rig_take(&rig, 0);
        rig_check(d, &one, "a", 1)->rule = 2;
        rig_check(d, &minute, "b", 1)->rule = 1;
        rig_check(d, &minute, "c", 1)->rule = 0;
        run_and_answer(&rig, d, START);
    }
    assert_false(answer.allowed);
    assert_int_equal(answer.denied_by, 2);
    assert_int_equal(answer.retry_after_ns, 60 * SECOND - START % (60 * SECOND));
    d = rig_take(&rig, 0);
    rig_check(d, &minute, "b", 1);
    rig_check(d, &second, "z", 1);
    run_and_answer(&rig, d, START);
    assert_int_equal(answer.denied_by, 1); /* never is longest */
    assert_true(answer.retry_after_ns == WEIR_NEVER);
    assert_true(answer.limits[1].next_ns == WEIR_NEVER);
    rig_close(&rig);
}

TEST("several rates of one limit are reported as one")
{
    struct rig rig;
    rig_open(&rig, 0, false);
    struct weir_limit second = rig_limit(WEIR_FIXED_WINDOW, 2, SECOND);
    struct weir_limit hour = rig_limit(WEIR_FIXED_WINDOW, 3, 3600 * SECOND);
    struct weir_limit other = rig_limit(WEIR_FIXED_WINDOW, 1, SECOND);
    static const struct {
        uint64_t now_ns, remaining;
        int denied_by;
        uint64_t of_second;
    } steps[] = {
        {0, 1, -1, 1},
        {0, 0, -1, 0},
        {SECOND, 0, -1, 1},    /* of the hour, with one left of the second */
        {2 * SECOND, 0, 1, 2}, /* shown of the hour alone */
    };
    for (size_t i = 0; i < sizeof(steps) / sizeof(steps[0]); i++) {
        struct weir_decision *d = rig_take(&rig, 0);
        rig_check(d, &other, i % 2 == 0 ? "z" : "y", 0)->rule = 4;
        rig_check(d, &second, "a", 1)->rule = 7;
        rig_check(d, &hour, "b", 1)->rule = 7;
        run_and_answer(&rig, d, START + steps[i].now_ns);
        assert_int_equal(answer.count, 2);
        assert_int_equal(answer.denied_by, steps[i].denied_by);
        assert_int_equal(answer.limits[1].report.remaining, steps[i].remaining);
        assert_ptr_equal(answer.limits[1].limit, i < 2 ? &second : &hour);
        assert_int_equal(answer.limits[1].allowed, steps[i].denied_by < 0);
        /* And each of them in its place, whichever is the tightest. */
        assert_int_equal(answer.limits[0].rate_count, 0);
        assert_int_equal(answer.limits[1].rate_count, 2);
        const struct weir_answer_rate *rates = &answer.rates[answer.limits[1].first_rate];
        assert_ptr_equal(rates[0].limit, &second);
        assert_ptr_equal(rates[1].limit, &hour);
        assert_int_equal(rates[0].report.remaining, steps[i].of_second);
        assert_int_equal(rates[1].report.remaining, i < 3 ? 2 - i : 0);
        assert_true(rates[0].allowed);
        assert_int_equal(rates[1].allowed, i < 3);
    }
    uint64_t hour_ends = 3600 * SECOND - (START + 2 * SECOND) % (3600 * SECOND);
    assert_int_equal(answer.retry_after_ns, hour_ends);
    assert_int_equal(answer.limits[1].next_ns, hour_ends);
    rig_close(&rig);
}

TEST("a shadow check reports its own verdict and is never blamed")
{
    struct rig rig;
    rig_open(&rig, 0, false);
    struct weir_limit none = rig_limit(WEIR_FIXED_WINDOW, 0, SECOND);
    struct weir_limit some = rig_limit(WEIR_FIXED_WINDOW, 5, SECOND);
    struct weir_decision *d = rig_take(&rig, 0);
    rig_check(d, &none, "a", 1)->flags = WEIR_CHECK_SHADOW;
    rig_check(d, &some, "b", 1);
    run_and_answer(&rig, d, START);
    assert_true(answer.allowed);
    assert_int_equal(answer.denied_by, -1);
    assert_true(answer.limits[0].shadow && !answer.limits[0].allowed);
    assert_true(answer.limits[0].report.retry_after_ns == WEIR_NEVER);
    assert_int_equal(answer.limits[1].report.remaining, 4);
    rig_close(&rig);
}

TEST("under each the request waits for the last and under quota for the first")
{
    struct rig rig;
    rig_open(&rig, 0, false);
    struct weir_limit quick = rig_limit(WEIR_FIXED_WINDOW, 1, SECOND);
    struct weir_limit slow = rig_limit(WEIR_FIXED_WINDOW, 1, 3600 * SECOND);
    for (int policy = WEIR_POLICY_EACH; policy <= WEIR_POLICY_QUOTA; policy++) {
        struct weir_decision *d;
        for (int i = 0; i < 2; i++) {
            d = rig_take(&rig, 0);
            d->policy = (uint8_t)policy;
            rig_check(d, &quick, "a", 1)->rule = 0;
            rig_check(d, &slow, "b", 1)->rule = 1;
            run_and_answer(&rig, d, START);
        }
        assert_false(answer.allowed);
        assert_int_equal(answer.denied_by, 1);
        assert_int_equal(answer.retry_after_ns, policy == WEIR_POLICY_QUOTA
                                                    ? SECOND
                                                    : 3600 * SECOND - START % (3600 * SECOND));
    }
    rig_close(&rig);
}

TEST("next is when a cost of one is admitted whatever was asked")
{
    struct rig rig;
    rig_open(&rig, 0, false);
    struct weir_limit limit = rig_limit(WEIR_GCRA, 10, SECOND);
    struct weir_decision *d = rig_take(&rig, 0);
    rig_check(d, &limit, "k", 10);
    run_and_answer(&rig, d, START);
    assert_true(answer.allowed);
    assert_int_equal(answer.limits[0].report.remaining, 0);
    assert_int_equal(answer.limits[0].report.retry_after_ns, 0);
    assert_int_equal(answer.limits[0].next_ns, SECOND / 10);
    d = rig_take(&rig, 0);
    rig_check(d, &limit, "k", 5);
    run_and_answer(&rig, d, START + 1);
    assert_false(answer.allowed);
    assert_int_equal(answer.limits[0].report.retry_after_ns, SECOND / 2 - 1);
    assert_int_equal(answer.limits[0].next_ns, SECOND / 10 - 1);
    rig_close(&rig);
}

TEST("next of a state in a span is exact too")
{
    struct rig rig;
    rig_open(&rig, 0, false);
    struct weir_limit limit = rig_limit(WEIR_SLIDING_LOG, 4, SECOND);
    for (uint64_t i = 0; i < 3; i++) {
        struct weir_decision *d = rig_take(&rig, 0);
        rig_check(d, &limit, "k", 2);
        run_and_answer(&rig, d, START + i);
        static const uint64_t next[] = {0, SECOND - 1, SECOND - 2}; /* when the first has gone */
        assert_int_equal(answer.limits[0].next_ns, next[i]);
        assert_int_equal(answer.allowed, i < 2);
    }
    rig_close(&rig);
}

TEST("checks without a state are reported as what they are")
{
    struct rig rig;
    rig_open(&rig, 0, false);
    struct weir_decision *d = rig_take(&rig, 0);
    rig_check(d, NULL, "u", 1)->flags = WEIR_CHECK_UNLIMITED;
    rig_check(d, NULL, "d", 1)->flags = WEIR_CHECK_ALWAYS_DENY;
    run_and_answer(&rig, d, START);
    assert_false(answer.allowed);
    assert_int_equal(answer.denied_by, 1);
    assert_true(answer.limits[0].unlimited && answer.limits[0].allowed);
    assert_int_equal(answer.limits[0].next_ns, 0);
    assert_null(answer.limits[1].limit);
    assert_true(answer.limits[1].next_ns == WEIR_NEVER);
    rig_close(&rig);
}

TEST("a lease is given for what was charged and ends once")
{
    struct rig rig;
    rig_open(&rig, 0, false);
    struct weir_limit slots = rig_limit(WEIR_CONCURRENCY, 1, 30 * SECOND);
    struct weir_limit rate = rig_limit(WEIR_GCRA, 10, SECOND);
    struct weir_decision *d = rig_take(&rig, 0);
    rig_check(d, &rate, "r", 1);
    rig_check(d, &slots, "a", 1);
    rig_check(d, &slots, "b", 1);
    run_and_answer(&rig, d, START);
    assert_true(answer.allowed);
    assert_non_null(answer.lease.data);
    char token[WEIR_LEASE_TOKEN_MAX];
    struct weir_bytes text = {token, answer.lease.size};
    memcpy(token, answer.lease.data, answer.lease.size);

    d = rig_take(&rig, 0);
    rig_check(d, &slots, "a", 1);
    run_and_answer(&rig, d, START + 1);
    assert_false(answer.allowed);
    assert_null(answer.lease.data);

    assert_int_equal(release_lease(rig.engine, START + 2, text), 0);
    assert_int_equal(rig.store->releases, 2);
    assert_int_equal(release_lease(rig.engine, START + 3, text), WEIR_ERR_NOT_FOUND);
    d = rig_take(&rig, 0);
    rig_check(d, &slots, "a", 1);
    run_and_answer(&rig, d, START + 4);
    assert_true(answer.allowed);
    text.size--;
    assert_int_equal(release_lease(rig.engine, START, text), WEIR_ERR_SYNTAX);
    rig_close(&rig);
}

TEST("peeking and a cost of zero give no lease")
{
    struct rig rig;
    rig_open(&rig, 0, false);
    struct weir_limit slots = rig_limit(WEIR_CONCURRENCY, 1, 30 * SECOND);
    struct weir_decision *d = rig_take(&rig, 0);
    d->op = WEIR_OP_PEEK;
    rig_check(d, &slots, "a", 1);
    run_and_answer(&rig, d, START);
    assert_true(answer.allowed);
    assert_null(answer.lease.data);
    d = rig_take(&rig, 0);
    rig_check(d, &slots, "a", 0);
    run_and_answer(&rig, d, START);
    assert_true(answer.allowed);
    assert_null(answer.lease.data);
    rig_close(&rig);
}

TEST("a lease of the local store is released there")
{
    struct rig rig;
    rig_open(&rig, 0, true);
    struct weir_limit slots = rig_limit(WEIR_CONCURRENCY, 1, 30 * SECOND);
    rig.store->later_every = 1;
    struct weir_decision *d = rig_take(&rig, 0);
    rig_check(d, &slots, "a", 1);
    weir_engine_queue(rig.engine, d);
    weir_engine_run(rig.engine, START);
    fake_store_fail(rig.store, 0, WEIR_ERR_STORE);
    weir_engine_answer(d, &answer, lease);
    assert_int_equal(answer.source, WEIR_SOURCE_LOCAL);
    assert_int_equal(release_lease(rig.engine, START, answer.lease), 0);
    assert_int_equal(rig.local->releases, 1);
    assert_int_equal(rig.store->releases, 0);
    rig_close(&rig);
}

TEST("the largest lease fits its buffer")
{
    struct rig rig;
    rig_open(&rig, 0, false);
    struct weir_limit slots = rig_limit(WEIR_CONCURRENCY, 1, 30 * SECOND);
    struct weir_decision *d = rig_take(&rig, 0);
    static char keys[WEIR_CHECKS_MAX][2];
    for (int i = 0; i < WEIR_CHECKS_MAX; i++) {
        keys[i][0] = (char)('A' + i);
        rig_check(d, &slots, keys[i], 1);
    }
    run_and_answer(&rig, d, START);
    assert_true(answer.allowed);
    assert_int_equal(answer.lease.size, 695);
    assert_int_equal(release_lease(rig.engine, START, answer.lease), 0);
    assert_int_equal(rig.store->releases, WEIR_CHECKS_MAX);
    rig_close(&rig);
}

RUN_TESTS()
