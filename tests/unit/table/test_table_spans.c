/* SPDX-License-Identifier: Apache-2.0 */
/* Spans as large as their content: what logs and leases take, that they grow and shrink, and what
 * happens where they cannot. */
#include "table_test.h"
#include "test.h"

#include <stdlib.h>

#include "table/region.h"

static uint64_t span_bytes(struct weir_table *table)
{
    struct weir_table_stats stats;

    weir_table_stats(table, START, &stats);
    return stats.span_bytes_used;
}

static uint64_t overflows(struct weir_table *table)
{
    struct weir_table_stats stats;

    weir_table_stats(table, START, &stats);
    return stats.overflows;
}

/* The most that a span takes which was made for a state of so many words: an eighth more and the
 * heap's own word, rounded up to a size of the heap, which is at most twice as much; and what is
 * left over of the one page that is cut into such spans, which counts as used. */
static uint64_t most_bytes(uint64_t words)
{
    uint64_t bytes = (words * 9 / 8 + 1) * 8;

    return bytes < 4096 ? (bytes > 2048 ? 4096 : bytes * 3 / 2 + 96) : bytes + 4096;
}

TEST("a log takes room for what it holds")
{
    struct weir_table *table = open_private_table(UINT64_C(1) << 20);
    struct weir_table_owner *owner = attach(table);
    struct weir_limit limit = make_limit(
        table,
        (struct weir_limit_spec){.algorithm = WEIR_SLIDING_LOG, .rate = 1000, .window_ns = MINUTE});
    uint64_t events = 0;

    for (uint64_t now_ns = START; events < 1000; events++, now_ns += MS) {
        assert_true(decide_key(table, owner, &limit, 1, 1, now_ns));
        assert_true(span_bytes(table) <= most_bytes(2 + (events > 0 ? events + 1 : 2)));
        assert_int_equal(key_remaining(table, owner, &limit, 1, now_ns), 999 - events);
    }
    assert_false(decide_key(table, owner, &limit, 1, 1, START + SECOND));
    validate(table);
    /* All but the last of them are gone: so is their room, when the log is charged. */
    assert_true(decide_key(table, owner, &limit, 1, 1, START + MINUTE + 998 * MS));
    assert_true(span_bytes(table) <= most_bytes(2 + 2));
    assert_int_equal(key_remaining(table, owner, &limit, 1, START + MINUTE + 998 * MS), 998);
    validate(table);
    weir_table_detach(owner);
    weir_table_close(table);
}

TEST("leases take room for those in flight")
{
    struct weir_table *table = open_private_table(UINT64_C(2) << 20);
    struct weir_table_owner *owner = attach(table);
    struct weir_limit limit = make_limit(
        table,
        (struct weir_limit_spec){.algorithm = WEIR_CONCURRENCY, .rate = 1000, .window_ns = MINUTE});
    uint64_t hash[2];

    key_hash(table, 1, hash);
    for (uint64_t i = 0; i < 500; i++) {
        struct one one;

        begin_one(&one);
        add_check(&one, table, &limit, 1, 1);
        one.decision.lease = (struct weir_lease){i + 1, 0};
        assert_true(submit_one(owner, &one, START));
        assert_true(span_bytes(table) <= most_bytes(2 + 4 * (i + 1)));
    }
    for (uint64_t i = 0; i < 498; i++)
        assert_int_equal(weir_table_release(owner, hash, i * 37 % 500 + 1), 0);
    assert_int_equal(key_remaining(table, owner, &limit, 1, START), 998);
    assert_true(decide_key(table, owner, &limit, 1, 1, START));
    assert_true(span_bytes(table) <= 32 * 8);
    assert_int_equal(key_remaining(table, owner, &limit, 1, START), 997);
    validate(table);
    weir_table_detach(owner);
    weir_table_close(table);
}

/* The figure of issue 11: 1,000 callers of sliding_log 1000/min at 60 requests each. */
TEST("a thousand callers of a large log fit with room to spare")
{
    struct weir_table *table =
        open_table(&(struct weir_table_options){.span_percent_new = 50, .secret = {1, 2}});
    struct weir_table_owner *owner = attach(table);
    struct weir_limit limit = make_limit(
        table,
        (struct weir_limit_spec){.algorithm = WEIR_SLIDING_LOG, .rate = 1000, .window_ns = MINUTE});
    struct weir_table_stats stats;

    for (uint64_t i = 0; i < 60; i++)
        for (uint64_t key = 0; key < 1000; key++)
            assert_true(decide_key(table, owner, &limit, key, 1, START + i * SECOND + key));
    for (uint64_t key = 0; key < 1000; key++)
        assert_int_equal(key_remaining(table, owner, &limit, key, START + 59 * SECOND + key), 940);
    weir_table_stats(table, START, &stats);
    assert_int_equal(stats.evictions, 0);
    assert_int_equal(stats.overflows, 0);
    assert_true(stats.span_bytes_used < 1000 * 640);
    assert_true(stats.span_bytes_used < stats.span_bytes / 40); /* of the share of such rules */
    validate(table);
    weir_table_detach(owner);
    weir_table_close(table);
}

/* A log that may have a quarter of the heap, and not more, since another limit takes the rest.
 * Where it cannot grow, events join, and the report shows it: it admits no more than N in any
 * window, sometimes fewer, and tells when it admits again. */
TEST("a log that cannot grow joins events")
{
    struct weir_table *table = open_table(&(struct weir_table_options){
        .bytes = WEIR_TABLE_BYTES_MIN, .span_percent = 10, .secret = {1, 2}});
    struct weir_table_owner *owner = attach(table);
    struct weir_limit crowd =
        make_named(table, "crowd",
                   (struct weir_limit_spec){
                       .algorithm = WEIR_SLIDING_LOG, .rate = 3, .window_ns = 60 * MINUTE});
    struct weir_limit limit = make_named(
        table, "large",
        (struct weir_limit_spec){.algorithm = WEIR_SLIDING_LOG, .rate = 2000, .window_ns = SECOND});
    uint64_t admitted_ns[8000], random = 3, early = 0, joined = 0, first = 0, last = 0,
                                again_ns = 0;

    for (uint64_t key = 1000; key < 4000; key++)
        for (uint64_t i = 0; i < 2; i++)
            decide_key(table, owner, &crowd, key, 1, START);
    for (uint64_t i = 0, now_ns = START; i < 8000; i++) {
        struct one one;

        now_ns += next_random(&random) % 500000;
        begin_one(&one);
        add_check(&one, table, &limit, 1, 1);

        bool admitted = submit_one(owner, &one, now_ns);

        while (first < last && admitted_ns[first] + SECOND <= now_ns)
            first++;
        assert_true(last - first + admitted <= 2000);
        assert_int_equal(admitted, now_ns >= again_ns);
        joined += one.outcomes[0].overflow;
        if (admitted)
            admitted_ns[last++] = now_ns;

        struct weir_report report;

        weir_decision_report(&one.decision, 0, &report);
        if (!admitted || report.remaining == 0) {
            uint64_t after_ns = admitted ? one.outcomes[0].next_ns : report.retry_after_ns;

            assert_in_range(after_ns, 1, SECOND);
            again_ns = now_ns + after_ns;
        }
        early += !admitted && last - first < 2000;
        decide_key(table, owner, &crowd, 4000 + i, 1, START + i);
    }
    assert_true(joined > 0 && early > 0 && last > 2000);
    assert_true(overflows(table) >= joined);
    validate(table);
    weir_table_detach(owner);
    weir_table_close(table);
}

/* Owners that are gone have left all buckets locked. */
TEST("states behind locks of the dead make room")
{
    struct weir_table *table = open_private_table(UINT64_C(1) << 20);
    struct weir_table_owner *owner = attach(table), *other = attach(table);
    struct weir_limit limit = make_limit(
        table,
        (struct weir_limit_spec){.algorithm = WEIR_SLIDING_LOG, .rate = 10, .window_ns = MINUTE});
    uint32_t stale = other->me;
    uint64_t key = 0;
    struct weir_table_stats stats;

    for (; span_bytes(table) < table->fixed.pages * TABLE_PAGE; key++)
        assert_true(decide_key(table, owner, &limit, key, 1, START));
    weir_table_detach(other);
    other = attach(table); /* in the same place, but of a later generation */
    assert_int_equal(other->index, stale & 255);
    assert_int_not_equal(other->me, stale);
    for (uint64_t end = key + 20; key < end; key++) {
        for (uint64_t b = 0; b < table->fixed.buckets; b++)
            table->buckets[b].lock = stale;
        assert_true(decide_key(table, owner, &limit, key, 1, START));
    }
    weir_table_stats(table, START, &stats);
    assert_int_equal(stats.overflows, 0);
    assert_true(stats.evictions >= 20);
    validate(table);
    weir_table_detach(other);
    weir_table_detach(owner);
    weir_table_close(table);
}

/* Callers of a large log, of which half have room, use it up in turn. */
TEST("logs that grow forget none that used as much")
{
    struct weir_table *table = open_table(&(struct weir_table_options){
        .bytes = UINT64_C(1) << 20, .span_percent = 20, .secret = {1, 2}});
    struct weir_table_owner *owner = attach(table);
    struct weir_limit log = make_named(
        table, "api",
        (struct weir_limit_spec){.algorithm = WEIR_SLIDING_LOG, .rate = 500, .window_ns = MINUTE});
    uint32_t admitted[100] = {0};

    for (uint64_t i = 0; i < 600; i++)
        for (uint64_t key = 0; key < 100; key++)
            admitted[key] += decide_key(table, owner, &log, key, 1, START + i * 100 + key);
    for (uint64_t key = 0; key < 100; key++)
        assert_int_equal(admitted[key], 500);
    assert_true(overflows(table) > 0);
    validate(table);
    weir_table_detach(owner);
    weir_table_close(table);
}

/* Callers who have used little have all spans; one who uses much takes what he needs of them. */
TEST("a log that grows takes room from those who used little")
{
    struct weir_table *table = open_table(&(struct weir_table_options){
        .bytes = UINT64_C(1) << 20, .span_percent = 20, .secret = {1, 2}});
    struct weir_table_owner *owner = attach(table);
    struct weir_limit log = make_named(
        table, "api",
        (struct weir_limit_spec){.algorithm = WEIR_SLIDING_LOG, .rate = 500, .window_ns = MINUTE});

    for (uint64_t i = 0; i < 20; i++)
        assert_true(decide_key(table, owner, &log, 1, 1, START + i));
    for (uint64_t key = 100; key < 10000; key++)
        assert_true(decide_key(table, owner, &log, key, 1, START + 20));
    for (uint64_t i = 20; i < 500; i++)
        assert_true(decide_key(table, owner, &log, 1, 1, START + i));
    assert_int_equal(overflows(table), 0);
    /* Each request expires by itself. */
    for (uint64_t i = 0; i < 500; i++)
        assert_true(decide_key(table, owner, &log, 1, 1, START + MINUTE + i));
    validate(table);
    weir_table_detach(owner);
    weir_table_close(table);
}

TEST("two leases of one key in one decision both have room")
{
    struct weir_table *table = open_private_table(UINT64_C(1) << 20);
    struct weir_table_owner *owner = attach(table);
    struct weir_limit limit = make_limit(
        table,
        (struct weir_limit_spec){.algorithm = WEIR_CONCURRENCY, .rate = 60, .window_ns = MINUTE});

    for (uint64_t i = 0; i < 20; i++) {
        struct one one;

        begin_one(&one);
        for (uint32_t k = 0; k < 3; k++)
            add_check(&one, table, &limit, 1, 1);
        one.decision.lease.id = i + 1;
        assert_true(submit_one(owner, &one, START));
        assert_int_equal(key_remaining(table, owner, &limit, 1, START), 60 - 3 * (i + 1));
    }
    validate(table);
    weir_table_detach(owner);
    weir_table_close(table);
}

/* The first of two checks on one log denies; the second is still charged. It has an event of
 * its own, whatever room the log had: what is left of it when the event before expires says so. */
TEST("a denied cost that is charged has room behind a check that denies")
{
    struct weir_table *table = open_private_table(UINT64_C(1) << 20);
    struct weir_table_owner *owner = attach(table);
    struct weir_limit limit = make_limit(
        table,
        (struct weir_limit_spec){.algorithm = WEIR_SLIDING_LOG, .rate = 40, .window_ns = SECOND});
    for (uint64_t events = 1; events < 30; events++) {
        uint64_t key = events, now_ns = START;
        struct weir_report report;
        struct one one;

        for (uint64_t i = 0; i < events; i++, now_ns += MS)
            assert_true(decide_key(table, owner, &limit, key, 1, now_ns));
        begin_one(&one);
        add_check(&one, table, &limit, key, 1000);
        add_check(&one, table, &limit, key, 1)->flags = WEIR_CHECK_CHARGE_ON_DENY;
        assert_false(submit_one(owner, &one, now_ns));
        begin_one(&one);
        add_check(&one, table, &limit, key, 39);
        assert_false(submit_one(owner, &one, now_ns));
        weir_decision_report(&one.decision, 0, &report);
        assert_int_equal(report.retry_after_ns, SECOND - MS);
    }
    validate(table);
    weir_table_detach(owner);
    weir_table_close(table);
}

TEST("a changed limit takes a log along")
{
    struct weir_table *table = open_private_table(UINT64_C(1) << 20);
    struct weir_table_owner *owner = attach(table);
    struct weir_limit limits[2];

    for (uint32_t i = 0; i < 2; i++)
        limits[i] = make_limit(table, (struct weir_limit_spec){.algorithm = WEIR_SLIDING_LOG,
                                                               .rate = i == 0 ? 500 : 20,
                                                               .window_ns = MINUTE});
    for (uint64_t i = 0; i < 50; i++)
        assert_true(decide_key(table, owner, &limits[0], 1, 1, START + i));
    assert_false(decide_key(table, owner, &limits[1], 1, 1, START + 50));
    assert_int_equal(key_remaining(table, owner, &limits[0], 1, START + 50), 450);
    assert_true(decide_key(table, owner, &limits[0], 1, 3, START + 50));
    /* A debit writes it as the other limit's, which has room for 20 events: the rest joins. */
    use_key(table, owner, &limits[1], 1, 1, START + 60, WEIR_OP_DEBIT);
    assert_int_equal(key_remaining(table, owner, &limits[0], 1, START + 60), 446);
    assert_true(decide_key(table, owner, &limits[0], 1, 446, START + 60));
    assert_false(decide_key(table, owner, &limits[0], 1, 1, START + 61));
    validate(table);
    weir_table_detach(owner);
    weir_table_close(table);
}

RUN_TESTS()
