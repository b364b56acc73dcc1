/* SPDX-License-Identifier: Apache-2.0 */
/* Random decisions through the engine over the table, against the same decisions made one by one on
 * plain memory by the core's functions: verdicts, outcomes, reports, blame, leases. */
#include <stdlib.h>
#include <string.h>

#include "core/text/siphash.h"
#include "draw.h"
#include "engine/open.h"
#include "rig.h"
#include "table/table.h"
#include "test.h"

#define LIMITS 12
#define KEYS 40 /* of each limit; few, so that they run full and empty again */
#define BATCH 8
#define CHECKS 6
#define RECORDS 200 /* idempotency keys */

#ifdef MODEL_QUICK
#define STEPS 20000
#else
#define STEPS 200000
#endif

struct side {
    struct weir_engine *engine;
    struct weir_store *store;
    struct weir_decision *done[BATCH + 1]; /* and the end of a lease */
    uint32_t done_count;
};

static struct weir_limit limits[LIMITS];
static struct weir_limit record_limit;
static struct side table_side, model_side;
static struct weir_table *table;
static uint64_t random_state, repeats;

static uint64_t draw(uint64_t below)
{
    return draw_below(&random_state, below);
}

static void done(void *context, struct weir_decision *decision)
{
    struct side *side = context;
    side->done[side->done_count++] = decision;
}

static void open_side(struct side *side, struct weir_store *store)
{
    static const uint64_t secret[2] = {5, 6};
    struct weir_engine_options options = {.store = store,
                                          .secret = secret,
                                          .decisions = BATCH + 1,
                                          .done = done,
                                          .done_context = side};
    side->store = store;
    assert_int_equal(weir_engine_open(&side->engine, &options), 0);
}

static void open_limits(void)
{
    struct weir_reason reason;
    static const struct weir_limit_spec specs[LIMITS] = {
        {.algorithm = WEIR_FIXED_WINDOW, .rate = 5, .window_ns = SECOND},
        {.algorithm = WEIR_FIXED_WINDOW, .rate = 0, .window_ns = SECOND},
        {.algorithm = WEIR_SLIDING_WINDOW, .rate = 7, .window_ns = SECOND},
        {.algorithm = WEIR_SLIDING_WINDOW, .rate = 7, .window_ns = SECOND, .strict = true},
        {.algorithm = WEIR_SLIDING_WINDOW, .rate = 9, .window_ns = SECOND, .segments = 10},
        {.algorithm = WEIR_SLIDING_LOG, .rate = 4, .window_ns = SECOND},
        {.algorithm = WEIR_TOKEN_BUCKET, .rate = 3, .window_ns = SECOND, .burst = 10},
        {.algorithm = WEIR_GCRA, .rate = 7, .window_ns = SECOND, .burst = 3},
        {.algorithm = WEIR_GCRA, .rate = 1000003, .window_ns = 7 * SECOND, .burst = 2},
        {.algorithm = WEIR_LEAKY_BUCKET, .rate = 2, .window_ns = SECOND, .burst = 6},
        {.algorithm = WEIR_LEAKY_QUEUE, .rate = 5, .window_ns = SECOND, .burst = 4},
        {.algorithm = WEIR_CONCURRENCY, .rate = 3, .window_ns = 2 * SECOND},
    };
    for (int i = 0; i < LIMITS; i++) {
        assert_int_equal(weir_limit_init(&limits[i], &specs[i], NULL), 0);
        assert_int_equal(table_side.store->ops->prepare(table_side.store, &limits[i], &reason), 0);
    }
    const struct weir_limit_spec record = {
        .algorithm = WEIR_GCRA, .rate = 1, .window_ns = 5 * SECOND, .burst = 1};
    assert_int_equal(weir_limit_init(&record_limit, &record, NULL), 0);
    assert_int_equal(table_side.store->ops->prepare(table_side.store, &record_limit, &reason), 0);
}

static int setup(void **state)
{
    struct weir_table_options options = {
        .bytes = 4 << 20, .wall_ns = START, .boot_ns = 1, .secret = {7, 8}};
    struct weir_reason reason;
    struct weir_store *store;
    assert_int_equal(weir_table_open(&table, &options, &reason), 0);
    assert_int_equal(weir_store_embedded_open(&store, table), 0);
    open_side(&table_side, store);
    open_side(&model_side, &fake_store_open()->base);
    open_limits();
    return 0;
}

static int teardown(void **state)
{
    weir_engine_close(table_side.engine);
    weir_engine_close(model_side.engine);
    table_side.store->ops->close(table_side.store);
    model_side.store->ops->close(model_side.store);
    weir_table_close(table);
    return 0;
}

static uint64_t draw_cost(const struct weir_limit *limit)
{
    switch (draw(8)) {
    case 0:
        return 0;
    case 1:
        return limit->capacity;
    case 2:
        return limit->capacity + 1;
    case 3:
        return draw(5);
    default:
        return 1;
    }
}

static uint8_t draw_flags(void)
{
    switch (draw(12)) {
    case 0:
        return WEIR_CHECK_SHADOW;
    case 1:
        return WEIR_CHECK_CHARGE_ON_DENY;
    case 2:
        return WEIR_CHECK_SHADOW | WEIR_CHECK_CHARGE_ON_DENY;
    default:
        return 0;
    }
}

static bool has_hash(const struct weir_decision *d, const uint64_t hash[2])
{
    for (uint16_t i = 0; i < d->count; i++)
        if (memcmp(d->checks[i].hash, hash, 16) == 0)
            return true;
    return false;
}

/* The record of an idempotency key, whatever the request is: it only has to be the same on both
 * sides. */
static void add_record(struct weir_decision *d, uint64_t key)
{
    static const uint64_t secret[2] = {11, 12};
    struct weir_check *check = &d->checks[d->count++];
    *check = (struct weir_check){
        .limit = &record_limit, .cost = 1, .rule = UINT32_MAX, .flags = WEIR_CHECK_IDEMPOTENCY};
    weir_siphash128(secret, &key, sizeof key, check->hash);
}

/* A random decision; the clock is at now_ns. */
static void draw_decision(struct weir_decision *d, uint64_t now_ns, uint64_t lease)
{
    static const uint8_t ops[] = {WEIR_OP_DECIDE, WEIR_OP_DECIDE, WEIR_OP_DECIDE, WEIR_OP_DECIDE,
                                  WEIR_OP_DECIDE, WEIR_OP_PEEK,   WEIR_OP_DEBIT,  WEIR_OP_REFUND};
    static const uint8_t rare[] = {WEIR_OP_LOOK, WEIR_OP_RESET};
    static const uint64_t secret[2] = {9, 10};
    d->op = draw(20) == 0 ? rare[draw(2)] : ops[draw(sizeof ops)];
    d->policy = draw(4) == 0 ? (uint8_t)(1 + draw(2)) : WEIR_POLICY_ALL;
    d->lease.id = lease;
    d->charged_at_ns = now_ns - draw(SECOND);
    uint64_t count = draw(CHECKS + 1);
    for (uint64_t i = 0; i < count; i++) {
        struct weir_check *check = &d->checks[d->count];
        uint64_t number[2] = {draw(LIMITS), draw(KEYS)};
        *check = (struct weir_check){.limit = &limits[number[0]],
                                     .rule = (uint32_t)(number[0] * KEYS + number[1]),
                                     .flags = draw_flags(),
                                     .cost = draw_cost(&limits[number[0]])};
        weir_siphash128(secret, number, sizeof number, check->hash);
        if (draw(40) == 0) {
            check->flags = draw(2) == 0 ? WEIR_CHECK_UNLIMITED : WEIR_CHECK_ALWAYS_DENY;
            check->limit = NULL;
        } else if (has_hash(d, check->hash)) {
            continue; /* merged by the rules before it comes this far */
        }
        d->count++;
    }
    if (d->policy == WEIR_POLICY_ALL && d->count > 0 && draw(4) == 0)
        add_record(d, draw(RECORDS));
}

static void queue_both(uint64_t now_ns, uint64_t lease)
{
    struct weir_decision *a = weir_engine_take(table_side.engine);
    struct weir_decision *b = weir_engine_take(model_side.engine);
    assert_true(a != NULL && b != NULL);
    draw_decision(a, now_ns, lease);
    b->op = a->op;
    b->policy = a->policy;
    b->lease = a->lease;
    b->charged_at_ns = a->charged_at_ns;
    b->count = a->count;
    memcpy(b->checks, a->checks, a->count * sizeof *a->checks);
    weir_engine_queue(table_side.engine, a);
    weir_engine_queue(model_side.engine, b);
}

static void compare(const struct weir_decision *a, const struct weir_decision *b)
{
    assert_int_equal(a->verdict, b->verdict);
    assert_int_equal(a->denied_by, b->denied_by);
    assert_int_equal(a->repeated, b->repeated);
    repeats += a->repeated;
    assert_int_equal(a->delay_ns, b->delay_ns);
    assert_int_equal(a->now_ns, b->now_ns);
    for (uint16_t i = 0; i < a->count; i++) {
        struct weir_report x, y;
        weir_decision_report(a, i, &x);
        weir_decision_report(b, i, &y);
        assert_int_equal(a->outcomes[i].verdict, b->outcomes[i].verdict);
        assert_int_equal(a->outcomes[i].charged, b->outcomes[i].charged);
        assert_true(x.limit == y.limit && x.remaining == y.remaining);
        assert_true(x.retry_after_ns == y.retry_after_ns);
        assert_true(x.reset_after_ns == y.reset_after_ns);
    }
    static struct weir_answer said, expected;
    char lease[WEIR_LEASE_TOKEN_MAX], expected_lease[WEIR_LEASE_TOKEN_MAX];
    weir_engine_answer(a, &said, lease);
    weir_engine_answer(b, &expected, expected_lease);
    assert_true(said.retry_after_ns == expected.retry_after_ns);
    for (uint16_t i = 0; i < said.count; i++)
        assert_true(said.limits[i].next_ns == expected.limits[i].next_ns);
    assert_int_equal(said.lease.size, expected.lease.size);
    if (said.lease.size > 0)
        assert_memory_equal(said.lease.data, expected.lease.data, said.lease.size);
}

/* Keeps some lease tokens and gives them back later, some of them twice. */
static void hold_and_release(const struct weir_decision *d, uint64_t now_ns)
{
    enum { HELD = 16 };
    static char held[HELD][WEIR_LEASE_TOKEN_MAX];
    static size_t sizes[HELD];
    static struct weir_answer answer;
    char lease[WEIR_LEASE_TOKEN_MAX];
    uint64_t slot = draw(HELD);
    weir_engine_answer(d, &answer, lease);
    if (answer.lease.data != NULL) {
        memcpy(held[slot], lease, answer.lease.size);
        sizes[slot] = answer.lease.size;
    } else if (sizes[slot] > 0) {
        struct weir_bytes token = {held[slot], sizes[slot]};
        int a = release_lease(table_side.engine, now_ns, token);
        int b = release_lease(model_side.engine, now_ns, token);
        assert_int_equal(a, b);
    }
}

static uint64_t advance(uint64_t now_ns)
{
    switch (draw(6)) {
    case 0:
        return now_ns;
    case 1:
        return now_ns + 1;
    case 2:
        return now_ns + draw(SECOND);
    case 3:
        return draw(1000) == 0 ? now_ns + 400 * 86400 * SECOND : now_ns;
    default:
        return now_ns + draw(SECOND / 20);
    }
}

TEST_WITH(setup, teardown, "decisions over the table equal those made on plain memory")
{
    uint64_t now_ns = START, lease = 1, denied = 0, decided = 0;
    random_state = 88172645463325252U;
    for (int step = 0; step < STEPS; step++) {
        now_ns = advance(now_ns);
        uint64_t batch = 1 + draw(BATCH);
        for (uint64_t i = 0; i < batch; i++)
            queue_both(now_ns, lease++);
        weir_engine_run(table_side.engine, now_ns);
        weir_engine_run(model_side.engine, now_ns);
        assert_int_equal(table_side.done_count, batch);
        assert_int_equal(model_side.done_count, batch);
        for (uint64_t i = 0; i < batch; i++) {
            compare(table_side.done[i], model_side.done[i]);
            denied += table_side.done[i]->verdict == WEIR_DENIED;
            decided++;
        }
        hold_and_release(table_side.done[0], now_ns);
        for (uint32_t i = 0; i < table_side.done_count; i++) {
            weir_engine_release(table_side.engine, table_side.done[i]);
            weir_engine_release(model_side.engine, model_side.done[i]);
        }
        table_side.done_count = model_side.done_count = 0;
    }
    assert_in_range(denied, decided / 10, decided * 9 / 10); /* both happened often */
    assert_in_range(repeats, decided / 100, decided / 4);
    struct weir_table_stats stats;
    weir_table_stats(table, now_ns, &stats);
    assert_int_equal(stats.evictions + stats.overflows, 0); /* else they need not be equal */
    assert_true(now_ns < UINT64_C(1) << 62);                /* the range of times */
    struct weir_reason reason = {""};
    int err = weir_table_validate(table, &reason);
    assert_string_equal(reason.text, "");
    assert_int_equal(err, 0);
}

RUN_TESTS()
