/* SPDX-License-Identifier: Apache-2.0 */
/* Borrowing: directed cases on a fake store, and random requests over the table beside the core's
 * functions on plain memory: whatever comes, a pool is never overdrawn, and nobody gets more than
 * their own limit and the pool. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/bytes.h"
#include "core/text/siphash.h"
#include "draw.h"
#include "engine/borrow.h"
#include "engine/counters.h"
#include "engine/open.h"
#include "feature/reserve/engine/reservation.h"
#include "limit_model.h"
#include "rig.h"
#include "table_rig.h"
#include "test.h"

static struct weir_request request;

/* Queues a request of these attributes. */
static struct weir_decision *send(struct rig *rig, uint64_t cost, const char *const *pairs)
{
    struct weir_reason reason;
    struct weir_decision *decision = rig_take(rig, 0);
    rig_request(&request, weir_engine_rules(rig->engine), pairs);
    request.cost = cost;
    assert_int_equal(weir_engine_apply_rules(rig->engine, decision, &request, &reason), 0);
    return decision;
}

static struct weir_decision *run(struct rig *rig, struct weir_decision *decision)
{
    weir_engine_queue(rig->engine, decision);
    weir_engine_run(rig->engine, START);
    return decision;
}
#define ASK(rig, cost, ...) run(rig, send(rig, cost, (const char *const[]){__VA_ARGS__, NULL}))

struct counts {
    uint64_t allowed, denied, borrowed;
};

static struct counts counts_of(const struct rig *rig, const char *name)
{
    const struct weir_engine_counters *counters =
        weir_engine_find_counters(rig->engine, name, strlen(name));
    return (struct counts){counters->counts.allowed, counters->counts.denied, counters->borrowed};
}

/* Expects "name:remaining name:remaining ..." of the answer. */
static void expect_reported(struct weir_decision *decision, const char *expected)
{
    static char lease[WEIR_LEASE_TOKEN_MAX];
    struct weir_answer answer;
    char text[512] = "";
    size_t used = 0;
    weir_engine_answer(decision, &answer, lease);
    for (uint16_t i = 0; i < answer.count; i++)
        used += (size_t)snprintf(text + used, sizeof text - used, "%s%.*s:%llu", i > 0 ? " " : "",
                                 (int)answer.limits[i].name.size, answer.limits[i].name.data,
                                 (unsigned long long)answer.limits[i].report.remaining);
    assert_string_equal(text, expected);
}

static const char simple[] = "limits:\n"
                             "- {name: all, key: [], algorithm: fixed_window, rate: 100/h}\n"
                             "- {name: own, match: {plan: pro}, key: [user],\n"
                             "   algorithm: fixed_window, rate: 2/h, pool: pool}\n"
                             "- {name: pool, match: {plan: free}, key: [plan],\n"
                             "   algorithm: fixed_window, rate: 3/min, borrow: true}\n";

TEST("what a limit denies is charged to its pool")
{
    struct rig rig;
    rig_open_text(&rig, simple);
    for (int i = 0; i < 2; i++)
        assert_int_equal(ASK(&rig, 1, "plan", "pro", "user", "ann")->verdict, WEIR_ALLOWED);
    expect_reported(rig.done[1], "all:98 own:0");
    for (int i = 0; i < 3; i++) {
        struct weir_decision *decision = ASK(&rig, 1, "plan", "pro", "user", "ann");
        assert_int_equal(decision->verdict, WEIR_ALLOWED);
        struct weir_borrowed borrowed[WEIR_CHECKS_MAX];
        assert_int_equal(weir_engine_borrowed(decision, borrowed), 1);
        assert_int_equal(borrowed[0].check->rule, 1);
        assert_int_equal(borrowed[0].pool, 2);
    }
    expect_reported(rig.done[4], "all:95 pool:0");
    assert_int_equal(ASK(&rig, 1, "plan", "free", "user", "zoe")->verdict, WEIR_DENIED);
    assert_int_equal(counts_of(&rig, "own").allowed, 2);
    assert_int_equal(counts_of(&rig, "own").borrowed, 3);
    assert_int_equal(counts_of(&rig, "own").denied, 0);
    assert_int_equal(counts_of(&rig, "pool").allowed, 3);
    assert_int_equal(counts_of(&rig, "pool").denied, 1);
    rig_close(&rig);
}

TEST("where both deny the shorter wait is reported")
{
    struct rig rig;
    rig_open_text(&rig, simple);
    for (int i = 0; i < 5; i++)
        ASK(&rig, 1, "plan", "pro", "user", "ann");
    struct weir_decision *denied = ASK(&rig, 1, "plan", "pro", "user", "ann");
    assert_int_equal(denied->verdict, WEIR_DENIED);
    uint64_t retry_ns;
    uint16_t blamed = weir_decision_blame(denied, &retry_ns);
    assert_int_equal(denied->denied_by, blamed);
    assert_int_equal(denied->checks[blamed].rule, 2); /* the pool's minute, not the hour */
    assert_int_equal(retry_ns, 60 * SECOND - START % (60 * SECOND));
    expect_reported(denied, "all:95 pool:0");
    /* A cost that no pool ever admits: the answer has the limit that does. */
    struct weir_decision *dear = ASK(&rig, 4, "plan", "pro", "user", "bob");
    assert_int_equal(dear->verdict, WEIR_DENIED);
    expect_reported(dear, "all:95 own:2");
    assert_int_equal(counts_of(&rig, "own").denied, 2);
    assert_int_equal(counts_of(&rig, "pool").denied, 0);
    assert_int_equal(counts_of(&rig, "all").allowed, 7); /* its own verdicts, as before */
    rig_close(&rig);
}

/* Of two limits that borrow, one is free again by itself, and the other by its pool. */
TEST("the wait that is reported is enough and no longer than needed")
{
    struct rig rig;
    rig_open_text(&rig,
                  "limits:\n"
                  "- {name: a, key: [user], algorithm: fixed_window, rate: 1/h, pool: pool-a}\n"
                  "- {name: b, key: [user], algorithm: fixed_window, rate: 1/min, pool: pool-b}\n"
                  "- {name: pool-a, match: {path: /x}, key: [], algorithm: fixed_window,\n"
                  "   rate: 1/5min, borrow: true}\n"
                  "- {name: pool-b, match: {path: /x}, key: [], algorithm: fixed_window,\n"
                  "   rate: 1/day, borrow: true}\n");
    for (int i = 0; i < 2; i++)
        assert_int_equal(ASK(&rig, 1, "user", "ann")->verdict, WEIR_ALLOWED);
    struct weir_decision *denied = ASK(&rig, 1, "user", "ann");
    uint64_t retry_ns;
    assert_int_equal(denied->verdict, WEIR_DENIED);
    assert_int_equal(weir_decision_blame(denied, &retry_ns), denied->denied_by);
    assert_int_equal(retry_ns, 300 * SECOND - START % (300 * SECOND));
    expect_reported(denied, "b:0 pool-a:0");
    struct weir_decision *again = send(&rig, 1, (const char *const[]){"user", "ann", NULL});
    weir_engine_queue(rig.engine, again);
    weir_engine_run(rig.engine, START + retry_ns - 1);
    assert_int_equal(again->verdict, WEIR_DENIED);
    again = send(&rig, 1, (const char *const[]){"user", "ann", NULL});
    weir_engine_queue(rig.engine, again);
    weir_engine_run(rig.engine, START + retry_ns);
    assert_int_equal(again->verdict, WEIR_ALLOWED);
    rig_close(&rig);
}

TEST("another limit that denies leaves the pool alone")
{
    struct rig rig;
    rig_open_text(&rig,
                  "limits:\n"
                  "- {name: all, key: [], algorithm: fixed_window, rate: 2/h}\n"
                  "- {name: own, key: [user], algorithm: fixed_window, rate: 1/h, pool: pool}\n"
                  "- {name: pool, match: {path: /x}, key: [], algorithm: fixed_window, rate: 9/h,\n"
                  "   borrow: true}\n");
    for (int i = 0; i < 2; i++)
        assert_int_equal(ASK(&rig, 1, "user", "ann")->verdict, WEIR_ALLOWED);
    struct weir_decision *denied = ASK(&rig, 1, "user", "ann");
    assert_int_equal(denied->verdict, WEIR_DENIED);
    expect_reported(denied, "all:0 own:0");
    expect_reported(ASK(&rig, 1, "path", "/x"), "all:0 pool:8");
    rig_close(&rig);
}

TEST("a dry run borrows without charging")
{
    struct rig rig;
    rig_open_text(&rig, simple);
    for (int i = 0; i < 4; i++) {
        struct weir_decision *decision =
            send(&rig, 3, (const char *const[]){"plan", "pro", "user", "ann", NULL});
        decision->op = WEIR_OP_PEEK;
        run(&rig, decision);
        assert_int_equal(decision->verdict, WEIR_ALLOWED);
        expect_reported(decision, "all:100 pool:3");
    }
    assert_int_equal(counts_of(&rig, "own").borrowed, 0);
    rig_close(&rig);
}

TEST("a pool that is met anyhow is charged once")
{
    struct rig rig;
    rig_open_text(&rig,
                  "limits:\n"
                  "- {name: org, key: [], algorithm: fixed_window, rate: 5/h, borrow: true}\n"
                  "- {name: a, key: [user], algorithm: fixed_window, rate: 1/h, pool: org}\n"
                  "- {name: b, key: [user], algorithm: fixed_window, rate: 1/h, pool: org}\n");
    expect_reported(ASK(&rig, 1, "user", "ann"), "org:4 a:0 b:0");
    expect_reported(ASK(&rig, 1, "user", "ann"), "org:3");
    expect_reported(ASK(&rig, 2, "user", "ann"), "org:1");
    struct weir_decision *denied = ASK(&rig, 2, "user", "ann");
    assert_int_equal(denied->verdict, WEIR_DENIED);
    assert_int_equal(ASK(&rig, 1, "user", "bob")->verdict, WEIR_ALLOWED);
    assert_int_equal(counts_of(&rig, "a").borrowed, 2);
    assert_int_equal(counts_of(&rig, "b").borrowed, 2);
    rig_close(&rig);
}

TEST("what is charged on denial is charged once")
{
    struct rig rig;
    rig_open_text(&rig,
                  "limits:\n"
                  "- {name: tries, key: [], algorithm: fixed_window, rate: 9/h, on_deny: charge}\n"
                  "- {name: own, key: [user], algorithm: fixed_window, rate: 1/h, pool: pool}\n"
                  "- {name: pool, match: {path: /x}, key: [], algorithm: fixed_window, rate: 1/h,\n"
                  "   borrow: true}\n");
    expect_reported(ASK(&rig, 1, "user", "ann"), "tries:8 own:0");
    struct weir_decision *borrowed = ASK(&rig, 1, "user", "ann");
    assert_int_equal(borrowed->verdict, WEIR_ALLOWED);
    expect_reported(borrowed, "tries:7 pool:0");
    struct weir_decision *denied = ASK(&rig, 1, "user", "ann");
    assert_int_equal(denied->verdict, WEIR_DENIED);
    static char lease[WEIR_LEASE_TOKEN_MAX];
    struct weir_answer answer;
    weir_engine_answer(denied, &answer, lease);
    assert_int_equal(answer.limits[0].report.remaining, 6);
    assert_int_equal(counts_of(&rig, "tries").allowed, 3);
    rig_close(&rig);
}

/* How long another limit denies is shorter: what the pool says is asked for, and nothing more. */
TEST("what is charged on denial still denies where a pool would lend")
{
    struct rig rig;
    struct weir_answer answer;
    static char lease[WEIR_LEASE_TOKEN_MAX];
    rig_open_text(
        &rig, "limits:\n"
              "- {name: tries, key: [], algorithm: fixed_window, rate: 2/min, on_deny: charge}\n"
              "- {name: own, key: [user], algorithm: fixed_window, rate: 1/h, pool: pool}\n"
              "- {name: pool, match: {path: /x}, key: [], algorithm: fixed_window, rate: 9/h,\n"
              "   borrow: true}\n");
    for (int i = 0; i < 4; i++)
        assert_int_equal(ASK(&rig, 1, "user", "ann")->verdict, i < 2 ? WEIR_ALLOWED : WEIR_DENIED);
    expect_reported(rig.done[3], "tries:0 pool:8");
    weir_engine_answer(rig.done[3], &answer, lease);
    assert_int_equal(answer.denied_by, 0);
    assert_int_equal(answer.limits[0].limit->spec.rate, 2);
    assert_int_equal(answer.retry_after_ns, 60 * SECOND - START % (60 * SECOND));
    assert_int_equal(counts_of(&rig, "tries").denied, 2);
    assert_int_equal(counts_of(&rig, "own").denied, 2);
    assert_int_equal(counts_of(&rig, "own").borrowed, 1);
    assert_int_equal(counts_of(&rig, "pool").allowed, 1);
    rig_close(&rig);
}

TEST("a repeat is charged nothing and borrows nothing")
{
    struct rig rig;
    struct weir_reason reason;
    rig_open_text(&rig, simple);
    ASK(&rig, 2, "plan", "pro", "user", "ann");
    for (int i = 0; i < 3; i++) {
        struct weir_decision *decision =
            send(&rig, 1, (const char *const[]){"plan", "pro", "user", "ann", NULL});
        assert_int_equal(weir_engine_apply_idempotency(rig.engine, decision,
                                                       (struct weir_bytes){"key", 3}, &reason),
                         0);
        run(&rig, decision);
        assert_int_equal(decision->verdict, WEIR_ALLOWED);
        assert_int_equal(decision->repeated, i > 0);
    }
    expect_reported(ASK(&rig, 1, "plan", "free"), "all:96 pool:1");
    assert_int_equal(counts_of(&rig, "own").borrowed, 1);
    rig_close(&rig);
}

static const char in_flight[] =
    "limits:\n"
    "- {name: own, key: [user], algorithm: concurrency, limit: 1, pool: pool}\n"
    "- {name: pool, match: {path: /x}, key: [], algorithm: concurrency, limit: 1,\n"
    "   borrow: true}\n";

TEST("a lease of the pool is ended by its token")
{
    static char lease[WEIR_LEASE_TOKEN_MAX], text[WEIR_LEASE_TOKEN_MAX];
    struct rig rig;
    struct weir_answer answer;
    rig_open_text(&rig, in_flight);
    ASK(&rig, 1, "user", "ann");
    struct weir_decision *borrowed = ASK(&rig, 1, "user", "ann");
    assert_int_equal(borrowed->verdict, WEIR_ALLOWED);
    weir_engine_answer(borrowed, &answer, lease);
    memcpy(text, answer.lease.data, answer.lease.size);
    assert_int_equal(ASK(&rig, 1, "user", "ann")->verdict, WEIR_DENIED);
    assert_int_equal(release_lease(rig.engine, START, (struct weir_bytes){text, answer.lease.size}),
                     0);
    assert_int_equal(ASK(&rig, 1, "user", "ann")->verdict, WEIR_ALLOWED);
    rig_close(&rig);
}

static struct weir_decision *ask_once(struct rig *rig, const char *key)
{
    struct weir_reason reason;
    struct weir_decision *decision = send(rig, 1, (const char *const[]){"user", "ann", NULL});
    assert_int_equal(
        weir_engine_apply_idempotency(rig->engine, decision, weir_bytes_of(key), &reason), 0);
    return run(rig, decision);
}

TEST("a repeat has the lease of the pool too")
{
    static char first[WEIR_LEASE_TOKEN_MAX], second[WEIR_LEASE_TOKEN_MAX];
    struct rig rig;
    struct weir_answer one, two;
    rig_open_text(&rig, in_flight);
    ASK(&rig, 1, "user", "ann");
    struct weir_decision *borrowed = ask_once(&rig, "key");
    assert_int_equal(borrowed->verdict, WEIR_ALLOWED);
    assert_false(borrowed->repeated);
    weir_engine_answer(borrowed, &one, first);
    struct weir_decision *repeat = ask_once(&rig, "key");
    assert_true(repeat->repeated);
    weir_engine_answer(repeat, &two, second);
    assert_int_equal(one.lease.size, two.lease.size);
    assert_memory_equal(one.lease.data, two.lease.data, one.lease.size);
    assert_int_equal(ASK(&rig, 1, "user", "ann")->verdict, WEIR_DENIED);
    assert_int_equal(release_lease(rig.engine, START, two.lease), 0);
    assert_int_equal(ASK(&rig, 1, "user", "ann")->verdict, WEIR_ALLOWED);
    rig_close(&rig);
}

TEST("a reservation is settled where it was charged")
{
    static char text[WEIR_RESERVATION_TEXT_MAX];
    struct rig rig;
    struct weir_reason reason;
    uint64_t life_ns, id;
    rig_open_text(&rig, simple);
    ASK(&rig, 2, "plan", "pro", "user", "ann");
    struct weir_decision *decision =
        send(&rig, 3, (const char *const[]){"plan", "pro", "user", "ann", NULL});
    assert_int_equal(weir_engine_apply_reservation(rig.engine, decision, 3, 60 * SECOND, &reason),
                     0);
    run(&rig, decision);
    assert_int_equal(decision->verdict, WEIR_ALLOWED);
    size_t size = weir_engine_reservation(rig.engine, decision, START, &life_ns, &id, text);
    assert_int_equal(ASK(&rig, 1, "plan", "free")->verdict, WEIR_DENIED);
    struct weir_decision *settles = rig_take(&rig, 1);
    const struct weir_settle settle = {.how = WEIR_SETTLE_COST, .cost = 1};
    assert_int_equal(weir_engine_apply_settle(rig.engine, settles, (struct weir_bytes){text, size},
                                              &settle, START),
                     0);
    run(&rig, settles);
    expect_reported(ASK(&rig, 1, "plan", "free"), "all:96 pool:1");
    rig_close(&rig);
}

/* --- Stores that answer later ----------------------------------------------------------------- */

static void exhaust(struct rig *rig)
{
    ASK(rig, 2, "plan", "pro", "user", "ann");
    rig->store->later_every = 1;
}

TEST("a second try may be answered later")
{
    struct rig rig;
    rig_open_text(&rig, simple);
    exhaust(&rig);
    struct weir_decision *decision = ASK(&rig, 1, "plan", "pro", "user", "ann");
    uint64_t deadline_ns = decision->deadline_ns;
    fake_store_answer(rig.store, 0);
    assert_int_equal(rig.done_count, 1); /* denied: it continues */
    assert_true(weir_engine_waits(rig.engine));
    weir_engine_run(rig.engine, START + 1);
    assert_int_equal(decision->deadline_ns, deadline_ns);
    fake_store_answer(rig.store, 0);
    assert_int_equal(rig.done_count, 2);
    assert_int_equal(decision->verdict, WEIR_ALLOWED);
    assert_int_equal(counts_of(&rig, "own").borrowed, 1);
    rig_close(&rig);
}

TEST("where the store fails the second try the first stands")
{
    for (int late = 0; late < 2; late++) {
        struct rig rig;
        rig_open_text(&rig, simple);
        exhaust(&rig);
        struct weir_decision *decision = ASK(&rig, 1, "plan", "pro", "user", "ann");
        fake_store_answer(rig.store, 0);
        weir_engine_run(rig.engine, START + 1);
        if (late)
            weir_engine_run(rig.engine, START + DEADLINE);
        else
            fake_store_fail(rig.store, 0, WEIR_ERR_STORE);
        assert_int_equal(rig.done_count, 2);
        assert_int_equal(decision->verdict, WEIR_DENIED);
        assert_int_equal(decision->source, WEIR_SOURCE_STORE);
        expect_reported(decision, "all:98 own:0");
        assert_int_equal(counts_of(&rig, "own").denied, 1);
        const struct weir_engine_failures *failures = weir_engine_failures(rig.engine);
        uint64_t were_late = failures->late, failed = failures->failed;
        assert_int_equal(were_late, late);
        assert_int_equal(failed, !late);
        rig_close(&rig);
    }
}

TEST("a decision may be cancelled at any time")
{
    struct rig rig;
    rig_open_text(&rig, simple);
    exhaust(&rig);
    struct weir_decision *queued = ASK(&rig, 1, "plan", "pro", "user", "ann");
    fake_store_answer(rig.store, 0);
    weir_engine_cancel(rig.engine, queued);
    weir_engine_run(rig.engine, START);
    assert_int_equal(rig.store->pending_count, 0);
    struct weir_decision *pending = ASK(&rig, 1, "plan", "pro", "user", "ann");
    fake_store_answer(rig.store, 0);
    weir_engine_run(rig.engine, START);
    weir_engine_cancel(rig.engine, pending);
    assert_int_equal(rig.store->pending_count, 0);
    assert_int_equal(weir_engine_pending(rig.engine), 0);
    assert_int_equal(rig.done_count, 1);
    rig_close(&rig);
}

/* --- Against the model ------------------------------------------------------------------------ */

#ifdef MODEL_QUICK
#define STEPS 3000
#else
#define STEPS 20000
#endif
#define USERS 3

static struct {
    struct weir_table *table;
    struct weir_store *store;
    struct weir_engine *engine;
    struct weir_rules *rules;
    struct weir_decision *done;
    struct limit_model all, own[USERS], pool;
    struct weir_limit lent[LIMIT_MODEL_RATES_MAX]; /* the pool's for borrowers */
    uint64_t now_ns, random, borrowed;
} world;

static uint64_t draw(uint64_t below)
{
    return draw_below(&world.random, below);
}

static void keep(void *context, struct weir_decision *decision)
{
    (void)context;
    world.done = decision;
}

static struct limit_model model_of(const char *name)
{
    struct weir_rule_info info;
    weir_rules_info(world.rules, (uint32_t)weir_rules_find(world.rules, name, strlen(name)), &info);
    return limit_model_of(info.limit, info.limit_count);
}

static void open_world(const char *text, int reserve)
{
    memset(&world, 0, sizeof world);
    world.random = 88172645463325252U + strlen(text);
    world.now_ns = START;
    world.rules = rig_rules(text);
    world.table = rig_table(1 << 20);
    world.store = rig_embedded(world.table);
    rig_prepare(world.rules, world.store);
    struct weir_engine_options engine = {.store = world.store,
                                         .rules = world.rules,
                                         .secret = weir_table_secret(world.table),
                                         .decisions = 4,
                                         .done = keep};
    assert_int_equal(weir_engine_open(&world.engine, &engine), 0);
    world.all = model_of("all");
    world.pool = model_of("pool");
    for (int i = 0; i < USERS; i++)
        world.own[i] = model_of("own");
    for (uint32_t i = 0; i < world.pool.count; i++) {
        struct weir_limit_spec spec = world.pool.limits[i].spec;
        uint64_t *most = spec.burst > 0 ? &spec.burst : &spec.rate;
        *most -= (*most * (uint64_t)reserve + 99) / 100;
        assert_int_equal(weir_limit_init(&world.lent[i], &spec, NULL), 0);
    }
}

static void close_world(void)
{
    weir_engine_close(world.engine);
    world.store->ops->close(world.store);
    weir_table_close(world.table);
    weir_rules_unref(world.rules);
}

static bool admits(const struct limit_model *limit, const struct weir_limit *under, uint64_t cost,
                   uint64_t *retry_ns)
{
    return limit_model_admits(limit, under, world.now_ns, cost, retry_ns);
}

static void charge(struct limit_model *limit, uint64_t cost)
{
    limit_model_charge(limit, world.now_ns, cost);
}

/* No state has more than its capacity, ever. */
static void check_not_overdrawn(void)
{
    for (uint32_t i = 0; i < world.pool.count; i++) {
        uint64_t delay_ns;
        assert_true(weir_cell_test(&world.pool.limits[i], &world.pool.cells[i], world.now_ns, 0,
                                   &delay_ns));
    }
}

/* What the model says of a request; charges it where it is allowed. */
static bool model_decides(int user, bool free, uint64_t cost, uint64_t *retry_ns)
{
    uint64_t first_ns = 0, second_ns = 0, others_ns = 0;
    bool all = admits(&world.all, world.all.limits, cost, &others_ns);
    struct limit_model *own = free ? &world.pool : &world.own[user];
    bool first = admits(own, own->limits, cost, &first_ns);
    *retry_ns = others_ns > first_ns ? others_ns : first_ns;
    if (all && first) {
        charge(&world.all, cost);
        charge(own, cost);
        return true;
    }
    if (!all || free)
        return false;
    if (!admits(&world.pool, world.lent, cost, &second_ns)) {
        *retry_ns = second_ns < *retry_ns ? second_ns : *retry_ns;
        return false;
    }
    charge(&world.all, cost);
    charge(&world.pool, cost);
    world.borrowed++;
    return true;
}

static void step(void)
{
    static const char *const names[USERS] = {"ann", "bob", "cid"};
    static const uint64_t pauses[] = {0, 1000000, SECOND / 3, 2 * SECOND, 45 * SECOND};
    int user = (int)draw(USERS);
    bool free = draw(3) == 0;
    uint64_t cost = draw(10) == 0 ? draw(12) : 1, retry_ns, told_ns;
    struct weir_reason reason;
    world.now_ns += pauses[draw(40) < 38 ? draw(3) : draw(5)];
    rig_request(&request, world.rules,
                (const char *const[]){"plan", free ? "free" : "pro", "user", names[user], NULL});
    request.cost = cost;
    struct weir_decision *decision = weir_engine_take(world.engine);
    assert_int_equal(weir_engine_apply_rules(world.engine, decision, &request, &reason), 0);
    weir_engine_queue(world.engine, decision);
    world.done = NULL;
    weir_engine_run(world.engine, world.now_ns);
    assert_ptr_equal(world.done, decision);
    bool allowed = model_decides(user, free, cost, &retry_ns);
    assert_int_equal(decision->verdict == WEIR_ALLOWED, allowed);
    if (!allowed) {
        weir_decision_blame(decision, &told_ns);
        assert_int_equal(told_ns, retry_ns);
    }
    check_not_overdrawn();
    weir_engine_release(world.engine, decision);
}

TEST("random requests borrow as the model does")
{
    static const char *const own[] = {"rate: 5/min", "rate: 3/10s, algorithm: fixed_window",
                                      "rate: 10/min burst 4, algorithm: token_bucket",
                                      "rate: [2/s, 20/min]"};
    static const char *const pool[] = {"rate: 20/min", "rate: 12/min, algorithm: fixed_window",
                                       "rate: 30/min burst 10, algorithm: gcra",
                                       "rate: [10/s, 60/min]", "rate: 20/min, strict: true"};
    for (size_t i = 0; i < 2 * sizeof own / sizeof *own * (sizeof pool / sizeof *pool); i++) {
        int reserve = i % 2 == 0 ? 0 : 30;
        size_t o = i / 2 % 4, p = i / 8;
        char text[512];
        snprintf(text, sizeof text,
                 "limits:\n- {name: all, key: [], rate: 200/min}\n"
                 "- {name: own, match: {plan: pro}, key: [user], pool: pool, %s}\n"
                 "- {name: pool, match: {plan: free}, key: [plan], borrow: true%s, %s}\n",
                 own[o], reserve > 0 ? ", reserve: 30%" : "", pool[p]);
        open_world(text, reserve);
        for (int s = 0; s < STEPS; s++)
            step();
        assert_true(world.borrowed > STEPS / 200);
        close_world();
    }
}

/* Whether the same request is allowed at a time; charges it, or not. */
static bool decide_at(uint64_t now_ns, uint64_t cost, uint8_t op, uint64_t *retry_ns)
{
    struct weir_reason reason;
    struct weir_decision *decision = weir_engine_take(world.engine);
    rig_request(&request, world.rules, (const char *const[]){"user", "ann", NULL});
    request.cost = cost;
    decision->op = op;
    assert_int_equal(weir_engine_apply_rules(world.engine, decision, &request, &reason), 0);
    weir_engine_queue(world.engine, decision);
    weir_engine_run(world.engine, now_ns);
    bool allowed = decision->verdict == WEIR_ALLOWED;
    weir_decision_blame(decision, retry_ns);
    weir_engine_release(world.engine, decision);
    return allowed;
}

/* Where nobody else asks: exactly what is reported is enough, and a nanosecond less is not. */
TEST("no wait is reported too long or too short")
{
    static const char *const rates[] = {
        "rate: 5/min",
        "rate: 3/10s, algorithm: fixed_window",
        "rate: 10/min burst 4, algorithm: token_bucket",
        "rate: [2/s, 20/min]",
        "rate: 7/min, algorithm: sliding_log",
    };
    for (size_t i = 0; i < 4 * 125; i += 3) {
        char text[768];
        uint64_t waits = 0, retry_ns, again_ns;
        snprintf(text, sizeof text,
                 "limits:\n- {name: all, key: [], rate: 40/min}\n"
                 "- {name: own, key: [user], pool: pool, %s}\n"
                 "- {name: org, key: [], pool: %s, %s}\n"
                 "- {name: pool, key: [], %sborrow: true, %s}\n"
                 "- {name: other, match: {path: /x}, key: [], borrow: true, rate: 9/min%s}\n",
                 rates[i % 5], i % 2 == 0 ? "pool" : "other", rates[i / 5 % 5],
                 i % 3 == 0 ? "" : "match: {path: /x}, ", rates[i / 25 % 5],
                 i % 4 == 0 ? "" : ", reserve: 30%");
        open_world(text, 0);
        for (int k = 0; k < STEPS / 40; k++) {
            uint64_t cost = draw(4) == 0 ? 1 + draw(3) : 1;
            world.now_ns += draw(3) * SECOND / (1 + draw(7));
            if (decide_at(world.now_ns, cost, WEIR_OP_DECIDE, &retry_ns) || retry_ns == WEIR_NEVER)
                continue;
            waits++;
            assert_true(decide_at(world.now_ns + retry_ns, cost, WEIR_OP_PEEK, &again_ns));
            assert_false(decide_at(world.now_ns + retry_ns - 1, cost, WEIR_OP_PEEK, &again_ns));
            assert_int_equal(again_ns, 1);
        }
        assert_true(waits > 0);
        close_world();
    }
}

RUN_TESTS()
