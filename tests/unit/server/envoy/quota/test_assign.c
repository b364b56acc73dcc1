/* SPDX-License-Identifier: Apache-2.0 */
/* server/envoy/quota/assign: one assignment at a time of a group, and what ends one early. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "feature/envoy/server/quota/assign.h"
#include "test.h"

static void report(struct weir_quota_stream *stream, uint64_t now_ms)
{
    const uint64_t hash[2] = {7, 8};
    const struct weir_quota_use use = {1, 0};
    assert_int_equal(weir_quota_report(stream, hash, (struct weir_bytes){"id", 2}, &use, now_ms),
                     0);
}

TEST("states that are being charged are claimed")
{
    const uint64_t one[] = {5, 6}, other[] = {7, 6 + WEIR_QUOTA_CLAIMS}, third[] = {8, 8};
    struct weir_quota *quota;
    assert_int_equal(weir_quota_open(&quota, 1, 1), 0);
    assert_true(weir_quota_claim(quota, one, 2));
    assert_false(weir_quota_claim(quota, other, 2)); /* and 7 stays free */
    assert_true(weir_quota_claim(quota, other, 1));
    assert_true(weir_quota_claim(quota, third, 2)); /* two rates of one key */
    weir_quota_unclaim(quota, one, 2);
    assert_true(weir_quota_claim(quota, &other[1], 1));
    weir_quota_close(quota);
}

/* Of one group one bucket is at work at a time, until it has ended or its stream has. */
TEST("buckets of a group wait for each other")
{
    struct weir_quota_stream *streams[2];
    struct weir_quota *quota;
    uint32_t late = 0;
    bool waits;
    assert_int_equal(weir_quota_open(&quota, 2, 2), 0);
    for (int i = 0; i < 2; i++) {
        streams[i] = weir_quota_stream_open(quota);
        report(streams[i], 1000);
    }
    struct weir_quota_bucket *first = weir_quota_begin(streams[0], 1000, &waits);
    assert_true(first && first->stage == WEIR_QUOTA_PEEKS);
    assert_true(!weir_quota_begin(streams[0], 1000, &waits) && !waits);
    assert_true(!weir_quota_begin(streams[1], 1000, &waits) && waits);
    weir_quota_put_off(first);
    assert_ptr_equal(weir_quota_begin(streams[0], 1000, &waits), first);
    weir_quota_stream_close(streams[0]);
    struct weir_quota_bucket *second = weir_quota_begin(streams[1], 1000, &waits);
    assert_non_null(second);
    assert_false(weir_quota_peeked(second, WEIR_QUOTA_NO_ANSWER, NULL, 0, 1000, NULL));
    assert_null(weir_quota_take(streams[1], 1000, &late));
    assert_null(weir_quota_begin(streams[1], 1000 + WEIR_QUOTA_RETRY_MS - 1, &waits));
    assert_ptr_equal(weir_quota_begin(streams[1], 1000 + WEIR_QUOTA_RETRY_MS, &waits), second);
    weir_quota_close(quota);
}

/* What is the same for all takes a client's tokens away. */
TEST("an allowance and a denial are sent without a charge")
{
    const enum weir_quota_peeked found[] = {WEIR_QUOTA_NO_LIMIT, WEIR_QUOTA_DENIED_ALWAYS};
    struct weir_quota *quota;
    uint64_t now_ms = 1000;
    uint32_t late = 0;
    bool waits;
    assert_int_equal(weir_quota_open(&quota, 1, 1), 0);
    struct weir_quota_stream *stream = weir_quota_stream_open(quota);
    report(stream, now_ms);
    for (int i = 0; i < 2; i++, now_ms += WEIR_QUOTA_RENEW_MS) {
        struct weir_quota_bucket *of = weir_quota_begin(stream, now_ms, &waits);
        assert_false(weir_quota_peeked(of, found[i], NULL, 0, now_ms, NULL));
        assert_int_equal(weir_quota_ready_since(stream), now_ms);
        assert_ptr_equal(weir_quota_take(stream, now_ms, &late), of);
        assert_int_equal(of->action, i ? WEIR_GRPC_QUOTA_DENY_ALL : WEIR_GRPC_QUOTA_ALLOW_ALL);
        assert_true(of->plan.ttl_s == WEIR_QUOTA_TTL_S && of->share.denied);
        assert_int_equal(weir_quota_ready_since(stream), 0);
    }
    struct weir_quota_bucket *of = weir_quota_begin(stream, now_ms + WEIR_QUOTA_IDLE_MS, &waits);
    assert_true(of->stage == WEIR_QUOTA_READY && of->action == WEIR_GRPC_QUOTA_ABANDON);
    weir_quota_forget(of); /* from the list of those that are ready, too */
    assert_null(weir_quota_take(stream, now_ms, &late));
    assert_int_equal(late, 0);
    weir_quota_close(quota);
}

/* A window of 60 a minute that has all of it. */
static const struct weir_quota_supply minute = {.unit = 1,
                                                .remaining = 60,
                                                .end_ms = 61000,
                                                .spread_ms = 60000,
                                                .rate = 60,
                                                .window_ms = 60000};

/* The stage after a charge that is answered so long after the peek. */
static enum weir_quota_stage charged_after(bool charged, uint64_t answer_ms, uint64_t send_ms)
{
    struct weir_quota_supply supply = minute;
    struct weir_quota *quota;
    uint64_t cost = 0;
    uint32_t late = 0;
    bool waits;
    assert_int_equal(weir_quota_open(&quota, 1, 1), 0);
    struct weir_quota_stream *stream = weir_quota_stream_open(quota);
    report(stream, 1000);
    struct weir_quota_bucket *of = weir_quota_begin(stream, 1000, &waits);
    assert_true(weir_quota_peeked(of, WEIR_QUOTA_SUPPLIES, &supply, 1, 1000, &cost));
    assert_true(of->stage == WEIR_QUOTA_CHARGES && cost > 0 && !of->share.ends_ms);
    assert_null(weir_quota_begin(stream, 9000, &waits)); /* one at a time */
    bool ready = weir_quota_charged(of, charged, 1000 + answer_ms);
    enum weir_quota_stage stage = (enum weir_quota_stage)of->stage;
    assert_int_equal(ready, stage == WEIR_QUOTA_READY);
    bool sent = weir_quota_take(stream, 1000 + send_ms, &late) == of;
    assert_int_equal(late, ready && !sent);
    assert_int_equal(sent, stage == WEIR_QUOTA_READY && send_ms <= WEIR_QUOTA_CHARGE_MS);
    assert_true(sent == (of->share.ends_ms > 0) && of->stage == WEIR_QUOTA_IDLE);
    assert_true(of->due_ms > 1000 && !of->group->at_work);
    weir_quota_close(quota);
    return stage;
}

TEST("a charge that is late or denied is not sent")
{
    assert_int_equal(charged_after(true, 0, 0), WEIR_QUOTA_READY);
    assert_int_equal(charged_after(true, WEIR_QUOTA_CHARGE_MS, WEIR_QUOTA_CHARGE_MS),
                     WEIR_QUOTA_READY);
    assert_int_equal(charged_after(true, WEIR_QUOTA_CHARGE_MS, WEIR_QUOTA_CHARGE_MS + 1),
                     WEIR_QUOTA_READY);
    assert_int_equal(charged_after(true, WEIR_QUOTA_CHARGE_MS + 1, WEIR_QUOTA_CHARGE_MS + 1),
                     WEIR_QUOTA_IDLE);
    assert_int_equal(charged_after(false, 0, 0), WEIR_QUOTA_IDLE);
}

/* Of those that are READY, too: none is looked for in the list of all of them. */
TEST("a stream ends with buckets that are ready")
{
    const uint32_t count = 1000;
    const struct weir_quota_use use = {1, 0};
    struct weir_quota_bucket *of;
    struct weir_quota *quota;
    bool waits;
    assert_int_equal(weir_quota_open(&quota, 2, count), 0);
    struct weir_quota_stream *stream = weir_quota_stream_open(quota);
    for (uint64_t i = 0; i < count; i++)
        assert_int_equal(
            weir_quota_report(stream, (uint64_t[]){i, i}, (struct weir_bytes){"id", 2}, &use, 1000),
            0);
    while ((of = weir_quota_begin(stream, 1000, &waits)))
        assert_false(weir_quota_peeked(of, WEIR_QUOTA_NO_LIMIT, NULL, 0, 1000, NULL));
    assert_int_equal(weir_quota_ready_since(stream), 1000);
    weir_quota_stream_close(stream);
    assert_int_equal(weir_quota_buckets(quota), 0);
    weir_quota_close(quota);
}

RUN_TESTS()
