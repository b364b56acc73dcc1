/* SPDX-License-Identifier: Apache-2.0 */
/* Full tables: how many keys fit, who has to go, and what a flood of new keys can do to others. */
#include "table_test.h"
#include "test.h"

#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <unistd.h>

#include "table/region.h"

/* Under the sanitizers, which are slow, floods are smaller: the code that they reach is the same.
 */
#ifdef MODEL_QUICK
#define FLOOD_BYTES (UINT64_C(4) << 20)
#define FLOOD_KEYS (100 * 1000)
#define FLOOD_STEPS 6000
#else
#define FLOOD_BYTES (UINT64_C(8) << 20)
#define FLOOD_KEYS (1000 * 1000)
#define FLOOD_STEPS 30000
#endif

static const struct weir_limit_spec two_a_day = {
    .algorithm = WEIR_GCRA, .rate = 2, .window_ns = 1440 * MINUTE};

static struct weir_table_stats stats_of(struct weir_table *table, uint64_t now_ns)
{
    struct weir_table_stats stats;

    weir_table_stats(table, now_ns, &stats);
    return stats;
}

/* Bytes of the process that are in memory. */
static uint64_t resident(void)
{
    unsigned long size = 0, pages = 0;
    FILE *file = fopen("/proc/self/statm", "r");

    assert_non_null(file);
    assert_int_equal(fscanf(file, "%lu %lu", &size, &pages), 2);
    fclose(file);
    return (uint64_t)pages * (uint64_t)sysconf(_SC_PAGESIZE);
}

TEST("three quarters full hardly a live key is evicted")
{
    struct weir_table *table = open_private_table(UINT64_C(64) << 20);
    struct weir_table_owner *owner = attach(table);
    struct weir_limit limit = make_limit(table, two_a_day);
    uint64_t keys = stats_of(table, START).slots * 3 / 4;

    for (uint64_t key = 0; key < keys; key++)
        assert_true(decide_key(table, owner, &limit, key, 1, START));

    struct weir_table_stats stats = stats_of(table, START);

    print_message("%lu keys, %lu evicted, %.1f bytes a key\n", (unsigned long)keys,
                  (unsigned long)stats.evictions, (double)stats.bytes / (double)keys);
    assert_int_equal(stats.inserts, keys);
    assert_true(stats.evictions * 1000 < keys);
    assert_int_equal(stats.overflows, 0);
    assert_true(stats.bytes <= 32 * keys);
    assert_true(stats.keys > keys * 98 / 100 && stats.keys < keys * 102 / 100);
    validate(table);
    weir_table_detach(owner);
    weir_table_close(table);
}

TEST("states that are fresh again make room without evictions")
{
    struct weir_table *table = open_private_table(UINT64_C(1) << 20);
    struct weir_table_owner *owner = attach(table);
    struct weir_limit limit = make_limit(table, two_a_day);
    uint64_t keys = stats_of(table, START).slots * 6 / 10, now_ns = START;

    for (uint32_t day = 0; day < 20; day++, now_ns += 1440 * MINUTE)
        for (uint64_t key = 0; key < keys; key++)
            assert_true(decide_key(table, owner, &limit, day * keys + key, 1, now_ns));

    struct weir_table_stats stats = stats_of(table, now_ns);

    assert_int_equal(stats.keys, 0);
    assert_true(stats.reclaimed > 10 * keys);
    assert_true(stats.evictions * 1000 < 20 * keys);
    validate(table);
    weir_table_detach(owner);
    weir_table_close(table);
}

TEST("a flood of ten million keys pardons no denied one")
{
    uint64_t before = resident(), bytes = 100000 / 6 * 128 + (UINT64_C(512) << 10);
    struct weir_table *table = open_private_table(bytes);
    struct weir_table_owner *owner = attach(table);
    struct weir_limit limit = make_limit(table, two_a_day);
    struct weir_limit log = make_limit(
        table, (struct weir_limit_spec){
                   .algorithm = WEIR_SLIDING_LOG, .rate = 3, .window_ns = 1440 * MINUTE});
    uint64_t random = 5;

    for (uint64_t key = 0; key < 1000; key++) {
        const struct weir_limit *mine = key % 10 == 0 ? &log : &limit;

        while (decide_key(table, owner, mine, key, 1, START))
            continue;
    }
    for (uint64_t i = 0; i < 5 * FLOOD_KEYS; i++)
        decide_key(table, owner, &limit, 1000 + next_random(&random) % (UINT64_C(1) << 60), 1,
                   START + i);
    for (uint64_t key = 0; key < 1000; key++)
        assert_false(decide_key(table, owner, key % 10 == 0 ? &log : &limit, key, 1,
                                START + 5 * FLOOD_KEYS));
    print_message("%lu slots, %lu evicted\n", (unsigned long)stats_of(table, START).slots,
                  (unsigned long)stats_of(table, START).evictions);
    assert_true(resident() <= before + bytes + (UINT64_C(2) << 20));
    validate(table);
    weir_table_detach(owner);
    weir_table_close(table);
}

static struct weir_table_limit_stats limit_stats_of(const struct weir_table *table,
                                                    const char *name)
{
    struct weir_table_limit_stats stats;

    weir_table_limit_stats(table, name, &stats);
    return stats;
}

static const struct weir_limit_spec one_an_hour = {
    .algorithm = WEIR_GCRA, .rate = 1, .window_ns = 60 * MINUTE};
static const struct weir_limit_spec two_an_hour = {
    .algorithm = WEIR_GCRA, .rate = 2, .window_ns = 60 * MINUTE};
static const struct weir_limit_spec ten_an_hour = {
    .algorithm = WEIR_SLIDING_WINDOW, .rate = 10, .window_ns = 60 * MINUTE};

#define ATTACKER 0x20010db8u /* the network of those who flood */

/* One decision on one key whose address is in this network. */
static bool decide_in_network(struct weir_table *table, struct weir_table_owner *owner,
                              const struct weir_limit *limit, uint64_t key, uint64_t cost,
                              uint32_t network, bool *overflow)
{
    struct one one;
    bool allowed;

    begin_one(&one);
    add_check(&one, table, limit, key, cost);
    one.decision.network = network;
    one.checks[0].flags |= WEIR_CHECK_NETWORK;
    allowed = submit_one(owner, &one, START);
    if (overflow != NULL)
        *overflow = one.outcomes[0].overflow;
    return allowed;
}

/* Four times as many new keys as there are slots, each used once. */
static void flood(struct weir_table *table, struct weir_table_owner *owner,
                  const struct weir_limit *limit)
{
    uint64_t keys = 4 * stats_of(table, START).slots;

    for (uint64_t key = 0; key < keys; key++)
        decide_in_network(table, owner, limit, (UINT64_C(1) << 40) + key, 1, ATTACKER, NULL);
}

/* Takes all slots for states of one name that deny, and has more keys of it overflow. */
static void fill(struct weir_table *table, struct weir_table_owner *owner, const char *name)
{
    struct weir_limit limit = make_named(table, name, two_an_hour);
    uint64_t keys = 4 * stats_of(table, START).slots;

    flood(table, owner, &limit);
    for (uint64_t key = 0; key < keys; key++) {
        struct weir_report report;
        struct one one;

        begin_one(&one);
        add_check(&one, table, &limit, (UINT64_C(1) << 40) + key, 1);
        one.decision.op = WEIR_OP_PEEK;
        submit_one(owner, &one, START);
        weir_decision_report(&one.decision, 0, &report);
        one.decision.op = WEIR_OP_DECIDE;
        if (report.remaining == 1) /* it has a slot still */
            assert_true(submit_one(owner, &one, START));
    }
    flood(table, owner, &limit);
    assert_true(stats_of(table, START).slots_used > stats_of(table, START).slots * 999 / 1000);
}

/* The next key for which there is no room. */
static uint64_t next_without_room(struct weir_table *table, struct weir_table_owner *owner,
                                  const struct weir_limit *limit, uint64_t *next)
{
    struct one one;

    for (uint64_t end = *next + 100000; *next < end;) {
        begin_one(&one);
        add_check(&one, table, limit, ++*next, 1);
        one.decision.op = WEIR_OP_PEEK;
        submit_one(owner, &one, START);
        if (one.outcomes[0].overflow)
            return *next;
    }
    fail_msg("there is room for every key");
    return 0;
}

TEST("a flood of one limit denies no caller of another")
{
    struct weir_table *table = open_private_table(UINT64_C(2) << 20);
    struct weir_table_owner *owner = attach(table);
    struct weir_limit other = make_named(table, "other", ten_an_hour);
    struct weir_limit command = make_limit(table, ten_an_hour);

    for (uint64_t key = 0; key < 1000; key++)
        for (uint32_t i = 0; i < 9; i++)
            assert_true(decide_key(table, owner, &other, key, 1, START));
    fill(table, owner, "flooded");
    /* Known callers have one left, new ones ten. */
    for (uint64_t key = 0; key < 1000; key++)
        for (uint32_t i = 0; i < 2; i++)
            assert_int_equal(decide_key(table, owner, &other, key, 1, START), i < 1);
    for (uint64_t key = 1000; key < 2000; key++)
        for (uint32_t i = 0; i < 11; i++)
            assert_int_equal(decide_key(table, owner, &other, key, 1, START), i < 10);
    for (uint64_t key = 2000; key < 2200; key++)
        for (uint32_t i = 0; i < 11; i++)
            assert_int_equal(decide_key(table, owner, &command, key, 1, START), i < 10);
    assert_int_equal(limit_stats_of(table, "other").evictions, 0);
    assert_int_equal(limit_stats_of(table, "other").overflows, 0);
    assert_int_equal(limit_stats_of(table, NULL).evictions, 0);
    assert_true(limit_stats_of(table, "flooded").evictions > 1000);
    assert_true(limit_stats_of(table, "flooded").overflows > 10000);
    validate(table);
    weir_table_detach(owner);
    weir_table_close(table);
}

TEST("a flood takes at most the guarantee from a limit that had it all")
{
    struct weir_table *table = open_private_table(UINT64_C(2) << 20);
    struct weir_table_owner *owner = attach(table);
    struct weir_limit flooded = make_named(table, "flooded", one_an_hour);
    struct weir_limit other = make_named(table, "other", ten_an_hour);
    uint64_t slots = stats_of(table, START).slots, kept = 0;

    /* Keys of 9 of 10, as many as there are slots; then a flood. A half of a half is its. */
    for (uint64_t key = 0; key < slots * 9 / 10; key++)
        decide_key(table, owner, &other, key, 9, START);
    flood(table, owner, &flooded);
    for (uint64_t key = 0; key < slots * 9 / 10; key++)
        kept += !use_key(table, owner, &other, key, 2, START, WEIR_OP_PEEK);
    print_message("%.3f of all slots are kept\n", (double)kept / (double)slots);
    assert_true(kept > slots * 70 / 100);
    validate(table);
    weir_table_detach(owner);
    weir_table_close(table);
}

TEST("random keys do not make those who used more start again")
{
    struct weir_table *table = open_private_table(UINT64_C(2) << 20);
    struct weir_table_owner *owner = attach(table);
    struct weir_limit limit = make_named(table, "api", ten_an_hour);
    uint64_t random = 5, again = 0;

    for (uint64_t key = 0; key < 1000; key++)
        assert_true(decide_key(table, owner, &limit, key, 9, START));
    for (uint64_t i = 0; i < FLOOD_KEYS; i++)
        decide_key(table, owner, &limit, next_random(&random) | UINT64_C(1) << 60, 1, START + i);
    for (uint64_t key = 0; key < 1000; key++)
        again += decide_key(table, owner, &limit, key, 2, START + FLOOD_KEYS);
    print_message("%lu of 1000 started again\n", (unsigned long)again);
    assert_true(again <= 5);
    validate(table);
    weir_table_detach(owner);
    weir_table_close(table);
}

/* Keys that are used up have all room that keys with something left do not take: those keep theirs,
 * and are decided exactly, also while another limit takes its guarantee. */
TEST("keys that are used up displace none that has something left")
{
    struct weir_table *table =
        open_table(&(struct weir_table_options){.bytes = UINT64_C(4) << 20, .span_percent = 50});
    struct weir_table_owner *owner = attach(table);
    struct weir_limit limits[2] = {make_named(table, "api", ten_an_hour)};
    struct weir_limit_spec log = {
        .algorithm = WEIR_SLIDING_LOG, .rate = 10, .window_ns = 60 * MINUTE};

    limits[1] = make_named(table, "log", log);
    for (uint32_t l = 0; l < 2; l++) {
        uint64_t keys = 4 * stats_of(table, START).slots, base = (uint64_t)(l + 1) << 32;

        for (uint64_t key = base; key < base + 500; key++)
            assert_true(decide_key(table, owner, &limits[l], key, 3, START));
        for (uint64_t key = base + 1000; key < base + keys; key++)
            decide_key(table, owner, &limits[l], key, 10, START);
        assert_true(limit_stats_of(table, limits[l].name).overflows > 10000);
    }
    for (uint32_t l = 0; l < 2; l++) {
        uint64_t base = (uint64_t)(l + 1) << 32;

        for (uint64_t key = base; key < base + 500; key++)
            for (uint32_t i = 0; i < 8; i++)
                assert_int_equal(decide_key(table, owner, &limits[l], key, 1, START), i < 7);
    }
    validate(table);
    weir_table_detach(owner);
    weir_table_close(table);
}

TEST("a network of many keys denies no newcomer of other networks")
{
    struct weir_table *table = open_private_table(FLOOD_BYTES);
    struct weir_table_owner *owner = attach(table);
    struct weir_limit limit = make_named(table, "login", two_an_hour);
    uint64_t denied = 0, next = 0, mine = 0;
    bool overflow;

    fill(table, owner, "login");
    for (uint32_t i = 0; i < 500; i++) {
        uint64_t key = next_without_room(table, owner, &limit, &next);

        denied += !decide_in_network(table, owner, &limit, key, 1, 1 + i * 97, &overflow);
        assert_true(overflow);
        key = next_without_room(table, owner, &limit, &next);
        mine += !decide_in_network(table, owner, &limit, key, 1, ATTACKER, &overflow);
    }
    print_message("denied: %lu of 500 in other networks, %lu of 500 in the flood's\n",
                  (unsigned long)denied, (unsigned long)mine);
    assert_true(denied <= 5);
    assert_true(mine > 400);
    validate(table);
    weir_table_detach(owner);
    weir_table_close(table);
}

/* Each of 64 networks has more keys than it needs to fill its cell. */
TEST("newcomers are denied only where they share a cell with a flooding network")
{
    struct weir_table *table = open_private_table(UINT64_C(8) << 20);
    struct weir_table_owner *owner = attach(table);
    struct weir_limit limit = make_named(table, "login", two_an_hour);
    uint64_t denied = 0, next = 0;

    fill(table, owner, "login");
    for (uint32_t i = 0; i < 64 * 10; i++)
        decide_in_network(table, owner, &limit, next_without_room(table, owner, &limit, &next), 1,
                          0x40000000 + i % 64, NULL);
    for (uint32_t i = 0; i < 2000; i++)
        denied +=
            !decide_in_network(table, owner, &limit, next_without_room(table, owner, &limit, &next),
                               1, 1 + i * 97, NULL);
    print_message("denied: %lu of 2000\n", (unsigned long)denied);
    assert_true(denied <= 20);
    validate(table);
    weir_table_detach(owner);
    weir_table_close(table);
}

/* What one key may have used, decided by itself in plain memory. */
struct exact {
    struct weir_cell cell;
    uint64_t *span;
};

#define OVERFLOW_KEYS 400

/* Whether the exact state admits; what is charged is what the table says. */
static void check_never_late(const struct weir_limit *limit, struct exact *exact,
                             const struct one *one)
{
    const struct weir_decision *decision = &one->decision;
    uint64_t delay, cost = one->checks[0].cost, now_ns = decision->now_ns;
    bool allowed = decision->verdict == WEIR_ALLOWED;
    struct weir_use use = {.now_ns = now_ns, .cost = cost, .lease = decision->lease};
    struct weir_edits edits;

    if (allowed && decision->op == WEIR_OP_DECIDE)
        assert_true(limit->span_words > 0
                        ? weir_span_test(limit, exact->span, now_ns, cost)
                        : weir_cell_test(limit, &exact->cell, now_ns, cost, &delay));
    if (!one->outcomes[0].charged)
        return;
    if (limit->span_words > 0) {
        weir_span_charge(limit, exact->span, &use, &edits);
        weir_edits_apply(&edits, exact->span);
    } else if (allowed) {
        weir_cell_charge(limit, &exact->cell, now_ns, cost);
    } else {
        weir_cell_charge_denied(limit, &exact->cell, now_ns, cost);
    }
}

/* Keys that overflow, beside a state of their own each: what the cells admit, it admits too. */
static void overflow_is_never_late(struct weir_limit_spec spec)
{
    struct weir_table *table = open_private_table(UINT64_C(1) << 20);
    struct weir_table_owner *owner = attach(table);
    struct weir_limit limit = make_named(table, "x", spec);
    static struct exact keys[OVERFLOW_KEYS];
    uint64_t random = 77, now_ns = START, admitted = 0, overflows = 0, next = 0;
    uint64_t names[OVERFLOW_KEYS];

    memset(keys, 0, sizeof keys);
    for (uint32_t i = 0; i < OVERFLOW_KEYS; i++)
        keys[i].span = calloc(limit.span_words + 1, 8);
    fill(table, owner, "x");
    for (uint32_t i = 0; i < OVERFLOW_KEYS; i++)
        names[i] = next_without_room(table, owner, &limit, &next);
    for (uint32_t i = 0; i < FLOOD_STEPS; i++) {
        uint64_t key = next_random(&random) % OVERFLOW_KEYS;
        uint32_t network = (uint32_t)(key % 7), kind = next_random(&random) >> 40 & 15;
        struct one one;

        now_ns += next_random(&random) % (spec.window_ns / 200);
        begin_one(&one);
        add_check(&one, table, &limit, names[key], 1 + (next_random(&random) >> 33) % 3);
        one.decision.network = network;
        one.checks[0].flags |= WEIR_CHECK_NETWORK;
        one.decision.op = kind == 0 ? WEIR_OP_DEBIT : WEIR_OP_DECIDE;
        one.decision.lease.id = i + 1;
        one.checks[0].flags = WEIR_CHECK_NETWORK | (kind == 1 ? WEIR_CHECK_CHARGE_ON_DENY : 0);
        admitted += submit_one(owner, &one, now_ns);
        assert_true(one.outcomes[0].overflow);
        overflows++;
        check_never_late(&limit, &keys[key], &one);
    }
    assert_true(admitted > overflows / 100);
    validate(table);
    for (uint32_t i = 0; i < OVERFLOW_KEYS; i++)
        free(keys[i].span);
    weir_table_detach(owner);
    weir_table_close(table);
}

TEST("overflow is never late whatever the algorithm")
{
    static const struct weir_limit_spec specs[] = {
        {.algorithm = WEIR_GCRA, .rate = 7, .window_ns = SECOND},
        {.algorithm = WEIR_TOKEN_BUCKET, .rate = 7, .window_ns = SECOND, .burst = 20},
        {.algorithm = WEIR_LEAKY_QUEUE, .rate = 10, .window_ns = SECOND, .burst = 5},
        {.algorithm = WEIR_FIXED_WINDOW, .rate = 9, .window_ns = SECOND},
        {.algorithm = WEIR_SLIDING_WINDOW, .rate = 9, .window_ns = SECOND},
        {.algorithm = WEIR_SLIDING_WINDOW, .rate = 9, .window_ns = SECOND, .segments = 10},
        {.algorithm = WEIR_SLIDING_LOG, .rate = 9, .window_ns = SECOND},
        {.algorithm = WEIR_CONCURRENCY, .rate = 9, .window_ns = SECOND},
    };

    for (size_t i = 0; i < sizeof specs / sizeof specs[0]; i++)
        overflow_is_never_late(specs[i]);
}

TEST("a key leaves overflow when one of its cells is fresh")
{
    struct weir_table *table = open_private_table(UINT64_C(1) << 20);
    struct weir_table_owner *owner = attach(table);
    struct weir_limit limit = make_named(table, "a", ten_an_hour);
    struct one one;

    flood(table, owner, &limit);
    for (uint64_t key = 0; key < 3; key++) {
        uint64_t now_ns = START + (key == 2 ? 3 * 60 * MINUTE : 0);

        begin_one(&one);
        add_check(&one, table, &limit, 7, 1);
        if (key == 0) /* the whole limit, all of whose slots have used one of ten, goes for it */
            one.checks[0].cost = 10;
        submit_one(owner, &one, now_ns);
        assert_false(one.outcomes[0].overflow);
    }
    validate(table);
    weir_table_detach(owner);
    weir_table_close(table);
}

TEST("checks that overflow under one limit count together")
{
    struct weir_table *table = open_private_table(UINT64_C(1) << 20);
    struct weir_table_owner *owner = attach(table);
    struct weir_limit limit = make_named(table, "x", ten_an_hour);
    struct one one;
    uint64_t next = 0, key;

    fill(table, owner, "x");
    key = next_without_room(table, owner, &limit, &next);
    for (uint32_t turn = 0; turn < 3; turn++) {
        begin_one(&one);
        add_check(&one, table, &limit, key, 2);
        add_check(&one, table, &limit, key, 2);
        assert_int_equal(submit_one(owner, &one, START), turn < 2);
        assert_true(one.outcomes[0].overflow && one.outcomes[1].overflow);
    }
    validate(table);
    weir_table_detach(owner);
    weir_table_close(table);
}

TEST("a refund leaves overflow cells alone")
{
    struct weir_table *table = open_private_table(UINT64_C(1) << 20);
    struct weir_table_owner *owner = attach(table);
    struct weir_limit limit = make_named(table, "x", ten_an_hour);
    uint64_t next = 0, key;

    fill(table, owner, "x");
    key = next_without_room(table, owner, &limit, &next);
    assert_true(decide_key(table, owner, &limit, key, 10, START));
    assert_true(use_key(table, owner, &limit, key, 10, START, WEIR_OP_REFUND));
    assert_false(decide_key(table, owner, &limit, key, 1, START));
    validate(table);
    weir_table_detach(owner);
    weir_table_close(table);
}

/* A file that somebody has written over while it was in use: what a limit says of its chunks leads
 * nowhere, and its overflow begins anew. */
TEST("chunks that the region does not have are not followed")
{
    struct weir_table *table = open_private_table(UINT64_C(1) << 20);
    struct weir_table_owner *owner = attach(table);
    struct weir_limit limit = make_named(table, "x", ten_an_hour);
    uint32_t chunks = table->fixed.chunks, *of = &table->params[limit.id - 1].chunks;
    const uint32_t damaged[] = {UINT32_MAX,      UINT32_MAX << 8, (chunks - 1) << 8 | 2,
                                chunks << 8 | 1, chunks + 1,      CHUNKS_OF_PARAM_MAX + 1};
    uint64_t next = 0;

    fill(table, owner, "x");
    for (size_t i = 0; i < sizeof damaged / sizeof *damaged; i++) {
        uint64_t key = next_without_room(table, owner, &limit, &next);

        decide_key(table, owner, &limit, key, 6, START);
        *of = damaged[i];
        assert_true(decide_key(table, owner, &limit, key, 6, START));
        assert_false(decide_key(table, owner, &limit, key, 6, START));
        validate(table);

        /* Who opens cells of its own meanwhile looks at those of all. */
        struct weir_limit_spec spec = ten_an_hour;

        spec.rate += 1 + i;

        struct weir_limit other = make_named(table, "x", spec);

        *of = damaged[i];
        key = next_without_room(table, owner, &other, &next);
        assert_true(decide_key(table, owner, &other, key, spec.rate, START));
        assert_false(decide_key(table, owner, &other, key, 1, START));
        *of = 0;
        validate(table);
    }
    weir_table_detach(owner);
    weir_table_close(table);
}

TEST("spans that run out are taken from keys that do not deny")
{
    struct weir_table *table = open_private_table(UINT64_C(1) << 20);
    struct weir_table_owner *owner = attach(table);
    struct weir_limit log = make_limit(
        table,
        (struct weir_limit_spec){.algorithm = WEIR_SLIDING_LOG, .rate = 4, .window_ns = MINUTE});
    uint64_t denied = 0;

    for (uint64_t key = 0; key < 100; key++)
        decide_key(table, owner, &log, key, 4, START);
    for (uint64_t key = 100; key < 20000; key++)
        assert_true(decide_key(table, owner, &log, key, 1, START + key));

    struct weir_table_stats stats = stats_of(table, START);

    assert_true(stats.evictions > 1000);
    assert_true(stats.span_bytes_used > stats.span_bytes * 9 / 10);
    for (uint64_t key = 0; key < 100; key++)
        denied += !decide_key(table, owner, &log, key, 1, START + 20000);
    assert_int_equal(denied, 100);
    /* All fresh: no more evictions. */
    for (uint64_t key = 30000; key < 30300; key++)
        assert_true(decide_key(table, owner, &log, key, 1, START + 2 * MINUTE));
    assert_int_equal(stats_of(table, START).evictions, stats.evictions);
    validate(table);
    weir_table_detach(owner);
    weir_table_close(table);
}

TEST("spans that all deny leave newcomers to overflow")
{
    struct weir_table *table =
        open_table(&(struct weir_table_options){.bytes = UINT64_C(1) << 20, .span_percent = 10});
    struct weir_table_owner *owner = attach(table);
    struct weir_limit log = make_limit(
        table,
        (struct weir_limit_spec){.algorithm = WEIR_SLIDING_LOG, .rate = 500, .window_ns = MINUTE});
    uint64_t admitted[100] = {0}, at_limit = 0;

    for (uint64_t key = 0; key < 100; key++)
        for (uint64_t i = 0; i < 500; i++)
            admitted[key] += decide_key(table, owner, &log, key, 1, START + key * 500 + i);
    for (uint64_t key = 0; key < 100; key++) {
        at_limit += admitted[key] == 500;
        assert_true(admitted[key] <= 500);
        assert_true(admitted[key] < 500 || !decide_key(table, owner, &log, key, 1, START + 60000));
    }
    assert_true(at_limit > 10); /* as many as there is room for */
    assert_true(stats_of(table, START).overflows > 100);
    validate(table);
    weir_table_detach(owner);
    weir_table_close(table);
}

/* All memory for spans is held by logs that deny. Those of known keys join events, whose count is
 * exact and whose expiry is the newest's. */
TEST("a log that cannot grow counts on")
{
    struct weir_table *table =
        open_table(&(struct weir_table_options){.bytes = UINT64_C(1) << 20, .span_percent = 10});
    struct weir_table_owner *owner = attach(table);
    struct weir_limit log = make_limit(
        table,
        (struct weir_limit_spec){.algorithm = WEIR_SLIDING_LOG, .rate = 10, .window_ns = MINUTE});

    for (uint64_t key = 0; key < 100; key++)
        assert_true(decide_key(table, owner, &log, key, 2, START));
    for (uint64_t key = 100; key < 20000; key++)
        for (uint32_t i = 0; i < 11; i++)
            decide_key(table, owner, &log, key, 1, START + key);

    struct weir_table_stats stats = stats_of(table, START);

    assert_true(stats.span_bytes_used > stats.span_bytes * 9 / 10);
    assert_true(stats.overflows > 10000);
    for (uint64_t key = 0; key < 100; key++)
        for (uint32_t i = 0; i < 9; i++)
            assert_int_equal(decide_key(table, owner, &log, key, 1, START + 20000 + i), i < 8);
    assert_int_equal(stats_of(table, START).evictions, stats.evictions);
    for (uint64_t key = 0; key < 100; key++)
        for (uint32_t i = 0; i < 11; i++)
            assert_int_equal(decide_key(table, owner, &log, key, 1, START + 20007 + MINUTE),
                             i < 10);
    validate(table);
    weir_table_detach(owner);
    weir_table_close(table);
}

TEST("a region with hardly a span serves logs from overflow")
{
    struct weir_table *table =
        open_table(&(struct weir_table_options){.bytes = WEIR_TABLE_BYTES_MIN, .span_percent = 1});
    struct weir_table_owner *owner = attach(table);
    struct weir_limit log = make_limit(
        table,
        (struct weir_limit_spec){.algorithm = WEIR_SLIDING_LOG, .rate = 100, .window_ns = MINUTE});
    for (uint64_t key = 0; key < 50; key++) {
        uint64_t admitted = 0;

        for (uint64_t i = 0; i < 120; i++)
            admitted += decide_key(table, owner, &log, key, 1, START + i);
        assert_true(admitted <= 100);
    }
    assert_true(stats_of(table, START).overflows > 1000);
    validate(table);
    weir_table_detach(owner);
    weir_table_close(table);
}

/* One limit's callers take all of the heap in pages of small spans; then a caller of another limit
 * needs larger and larger ones, up to a run of pages. */
TEST("no size of spans starves another")
{
    struct weir_table *table =
        open_table(&(struct weir_table_options){.bytes = UINT64_C(2) << 20, .span_percent = 20});
    struct weir_table_owner *owner = attach(table);
    struct weir_limit limits[2];
    struct weir_table_stats stats;

    for (uint32_t i = 0; i < 2; i++) {
        struct weir_limit_spec spec = {
            .algorithm = WEIR_SLIDING_LOG, .rate = i == 0 ? 5 : 1000, .window_ns = MINUTE};
        struct weir_reason reason;

        assert_int_equal(weir_limit_init(&limits[i], &spec, &reason), 0);
        limits[i].name = i == 0 ? "login" : "api";
        assert_int_equal(weir_table_intern(table, &limits[i]), 0);
    }
    for (uint64_t key = 0; key < 30000; key++)
        decide_key(table, owner, &limits[0], key, 1, START + key);
    stats = stats_of(table, START);
    assert_true(stats.span_bytes_used > stats.span_bytes * 95 / 100);
    for (uint64_t key = 50000; key < 50010; key++)
        for (uint64_t i = 0; i < 1000; i++)
            assert_true(decide_key(table, owner, &limits[1], key, 1, START + 30000 + i));
    for (uint64_t key = 50000; key < 50010; key++)
        assert_false(decide_key(table, owner, &limits[1], key, 1, START + 40000));
    validate(table);
    weir_table_detach(owner);
    weir_table_close(table);
}

RUN_TESTS()
