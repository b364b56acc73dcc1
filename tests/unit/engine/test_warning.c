/* SPDX-License-Identifier: Apache-2.0 */
/* Warnings: once for each key, threshold and period, whatever is charged, given back, repeated or
 * restarted, by every algorithm; and what a remote store does to them. */
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/bytes.h"
#include "draw.h"
#include "engine/counters.h"
#include "engine/effect/warning.h"
#include "engine/open.h"
#include "rig.h"
#include "table_rig.h"
#include "test.h"

#define MINUTE (60 * SECOND)
#define WARNED_MAX 4096
#define DECISIONS 1024

struct result {
    char limit[65], key[WEIR_WARNING_KEY_MAX + 1], user[WEIR_IDENTITY_MAX + 1];
    uint64_t used, capacity, now_ns, resets_at_ns;
    uint8_t percent;
};

static struct {
    struct weir_table *table;
    struct weir_store *store;
    struct fake_store *fake;
    struct weir_rules *rules;
    struct weir_engine *engine;
    uint64_t now_ns, random;
    struct result result[WARNED_MAX];
    uint32_t warned_count;
    bool counts; /* them only */
    struct weir_decision *done;
} world;

static uint64_t draw(uint64_t below)
{
    return draw_below(&world.random, below);
}

static void copy(char *out, size_t room, struct weir_bytes text)
{
    assert_true(text.size < room);
    if (text.size > 0)
        memcpy(out, text.data, text.size);
    out[text.size] = '\0';
}

static void warn(void *context, const struct weir_warning *warning)
{
    assert_ptr_equal(context, &world);
    assert_true(world.counts || world.warned_count < WARNED_MAX);
    struct result *result = &world.result[world.warned_count++ % WARNED_MAX];
    copy(result->limit, sizeof result->limit, warning->limit);
    copy(result->key, sizeof result->key, warning->key);
    copy(result->user, sizeof result->user, warning->identity->user);
    result->used = warning->used;
    result->capacity = warning->capacity;
    result->now_ns = warning->now_ns;
    result->resets_at_ns = warning->resets_at_ns;
    result->percent = warning->percent;
}

static void done(void *context, struct weir_decision *decision)
{
    (void)context;
    world.done = decision;
}

static struct weir_engine *open_engine(void)
{
    struct weir_engine *engine;
    struct weir_engine_options options = {.store = world.store,
                                          .rules = world.rules,
                                          .secret = weir_table_secret(world.table),
                                          .decisions = DECISIONS,
                                          .done = done,
                                          .warn = warn,
                                          .warn_context = &world};
    assert_int_equal(weir_engine_open(&engine, &options), 0);
    return engine;
}

static struct weir_rules *load(const char *limits)
{
    char text[2048];
    snprintf(text, sizeof text, "version: 1\nlimits:\n%s", limits);
    struct weir_rules *rules = rig_rules(text);
    if (world.fake == NULL)
        rig_prepare(rules, world.store);
    return rules;
}

static void open_world(const char *limits, bool elsewhere)
{
    memset(&world, 0, sizeof world);
    world.now_ns = START / (1440 * MINUTE) * 1440 * MINUTE;
    world.random = 88172645463325252;
    world.table = rig_table(4 << 20);
    if (elsewhere) {
        world.fake = fake_store_open_named();
        world.store = &world.fake->base;
    } else {
        world.store = rig_embedded(world.table);
    }
    world.rules = load(limits);
    world.engine = open_engine();
}

static void close_world(void)
{
    weir_engine_close(world.engine);
    if (world.fake != NULL)
        fake_store_close(world.fake);
    else
        world.store->ops->close(world.store);
    weir_rules_unref(world.rules);
    weir_table_close(world.table);
}

/* A decision on all limits, of a user. */
static struct weir_decision *take(struct weir_engine *engine, const char *user, uint64_t cost)
{
    struct weir_request request;
    struct weir_reason reason;
    struct weir_decision *d = weir_engine_take(engine);
    assert_non_null(d);
    weir_request_clear(&request, weir_rules_attribute_count(world.rules));
    request.values[WEIR_ATTR_USER] = weir_bytes_of(user);
    request.cost = cost;
    assert_int_equal(weir_engine_apply_rules(engine, d, &request, &reason), 0);
    return d;
}

/* Decides one at once; it stays taken. */
static struct weir_decision *decide(struct weir_engine *engine, const char *user, uint64_t cost,
                                    enum weir_op op, uint64_t charged_at_ns)
{
    struct weir_decision *d = take(engine, user, cost);
    d->op = (uint8_t)op;
    d->charged_at_ns = charged_at_ns;
    world.done = NULL;
    weir_engine_queue(engine, d);
    weir_engine_run(engine, world.now_ns);
    return d;
}

/* The same; returns whether it was allowed. */
static bool use(const char *user, uint64_t cost)
{
    struct weir_decision *d = decide(world.engine, user, cost, WEIR_OP_DECIDE, 0);
    assert_ptr_equal(world.done, d);
    bool allowed = d->verdict == WEIR_ALLOWED;
    weir_engine_release(world.engine, d);
    return allowed;
}

static void give_back(const char *user, uint64_t cost, uint64_t charged_at_ns)
{
    weir_engine_release(world.engine,
                        decide(world.engine, user, cost, WEIR_OP_REFUND, charged_at_ns));
}

static uint64_t counted(const char *limit, int threshold)
{
    return atomic_load(
        &weir_engine_find_counters(world.engine, limit, strlen(limit))->warnings[threshold]);
}

/* --- Every algorithm -------------------------------------------------------------------------- */

#define ALGORITHMS 9
static const char *const algorithms[ALGORITHMS] = {
    "algorithm: fixed_window, rate: 100/min",
    "algorithm: sliding_window, rate: 100/min",
    "algorithm: sliding_window, segments: 6, rate: 100/min",
    "algorithm: sliding_log, rate: 100/min",
    "algorithm: token_bucket, rate: 100/min burst 50",
    "algorithm: gcra, rate: 100/min",
    "algorithm: leaky_bucket, rate: 100/min",
    "quota: 100/day",
    "quota: 100/day, rollover: 50%",
};

static void open_algorithm(int algorithm, const char *warn_at)
{
    char limits[256];
    snprintf(limits, sizeof limits, "- {name: a, key: [user], %s, warn_at: %s}\n",
             algorithms[algorithm], warn_at);
    open_world(limits, false);
}

static uint64_t capacity_of(int algorithm)
{
    return algorithm == 4 ? 50 : algorithm == 8 ? 150 : 100;
}

TEST("every algorithm warns at the unit that reaches the threshold")
{
    for (int a = 0; a < ALGORITHMS; a++) {
        open_algorithm(a, "80%");
        uint64_t capacity = capacity_of(a), threshold = capacity * 80 / 100;
        for (uint64_t i = 1; i < threshold; i++)
            assert_true(use("alice", 1));
        assert_int_equal(world.warned_count, 0);
        assert_true(use("alice", 1));
        assert_int_equal(world.warned_count, 1);
        const struct result *result = &world.result[0];
        assert_string_equal(result->limit, "a");
        assert_string_equal(result->key, "user=alice");
        assert_string_equal(result->user, "alice");
        assert_int_equal(result->percent, 80);
        assert_int_equal(result->used, threshold);
        assert_int_equal(result->capacity, capacity);
        assert_int_equal(result->now_ns, world.now_ns);
        assert_true(result->resets_at_ns > world.now_ns);
        while (use("alice", 1))
            continue;
        assert_int_equal(world.warned_count, 1);
        assert_int_equal(counted("a", 0), 1);
        close_world();
    }
    (void)state;
}

/* The level of each decision, by what the decision itself reports, and what was reported so far. */
struct level_model {
    uint64_t period_ns;
    uint64_t said[8][3]; /* end of the last period in which it was said: by user and threshold */
    uint32_t expected;
};

static void level_step(struct level_model *model, int user, const struct weir_decision *d)
{
    static const uint64_t percents[3] = {50, 80, 100};
    struct weir_report report;
    uint64_t end_ns = (d->now_ns / model->period_ns + 1) * model->period_ns;
    weir_decision_report(d, 0, &report);
    for (int t = 0; t < 3; t++) {
        bool reached = (report.limit - report.remaining) * 100 >= percents[t] * report.limit;
        if (d->op != WEIR_OP_DECIDE || !reached || model->said[user][t] == end_ns)
            continue;
        model->said[user][t] = end_ns;
        const struct result *result = &world.result[model->expected++];
        assert_int_equal(result->percent, percents[t]);
        assert_int_equal(result->used, report.limit - report.remaining);
        assert_int_equal(result->key[5], '0' + user);
    }
    assert_int_equal(world.warned_count, model->expected);
}

/* Random costs, refunds, pauses and restarts of the engine, by several keys. */
TEST("random traffic warns as the model does")
{
    for (int a = 0; a < ALGORITHMS; a++) {
        struct level_model model = {.period_ns = a < 7 ? MINUTE : 1440 * MINUTE};
        open_algorithm(a, "[100%, 50%, 80%]");
        for (int step = 0; step < 4000 && world.warned_count < WARNED_MAX - 8; step++) {
            int user = (int)draw(8);
            char name[2] = {(char)('0' + user), '\0'};
            uint64_t what = draw(20);
            if (what == 0) {
                world.now_ns += draw(2) ? draw(10) * SECOND : draw(2 * model.period_ns);
            } else if (what == 1 && draw(10) == 0) {
                weir_engine_close(world.engine); /* what it knew is gone; the table is there */
                world.engine = open_engine();
            }
            enum weir_op op = what < 4 ? WEIR_OP_REFUND : what < 6 ? WEIR_OP_PEEK : WEIR_OP_DECIDE;
            struct weir_decision *d =
                decide(world.engine, name, 1 + draw(30), op, world.now_ns - draw(5) * SECOND);
            level_step(&model, user, d);
            weir_engine_release(world.engine, d);
        }
        assert_true(world.warned_count > 50);
        close_world();
    }
    (void)state;
}

/* --- Once ------------------------------------------------------------------------------------- */

TEST("a refund and a second crossing say nothing new")
{
    open_algorithm(7, "80%");
    assert_true(use("alice", 85));
    give_back("alice", 50, world.now_ns);
    assert_true(use("alice", 50));
    assert_int_equal(world.warned_count, 1);
    world.now_ns += 1440 * MINUTE;
    assert_true(use("alice", 85));
    assert_int_equal(world.warned_count, 2);
    close_world();
    (void)state;
}

TEST("a restart says nothing new")
{
    open_algorithm(7, "80%");
    assert_true(use("alice", 85));
    for (int i = 0; i < 5; i++) {
        weir_engine_close(world.engine);
        world.engine = open_engine();
        assert_true(use("alice", 1));
    }
    assert_int_equal(world.warned_count, 1);
    close_world();
    (void)state;
}

TEST("two engines on one table say it once")
{
    open_algorithm(7, "[50%, 80%]");
    struct weir_store *mine = world.store, *other_store;
    assert_int_equal(weir_store_embedded_open(&other_store, world.table), 0);
    world.store = other_store;
    struct weir_engine *other = open_engine();
    world.store = mine;
    for (int i = 0; i < 100; i++) {
        struct weir_engine *engine = i % 2 ? other : world.engine;
        weir_engine_release(engine, decide(engine, "alice", 1, WEIR_OP_DECIDE, 0));
    }
    assert_int_equal(world.warned_count, 2);
    weir_engine_close(other);
    other_store->ops->close(other_store);
    close_world();
    (void)state;
}

TEST("a new threshold is reported with the next request")
{
    open_algorithm(7, "80%");
    assert_true(use("alice", 90));
    assert_int_equal(world.warned_count, 1);
    struct weir_rules *old = world.rules;
    world.rules = load("- {name: a, key: [user], quota: 100/day, warn_at: [80%, 85%]}\n");
    assert_int_equal(weir_engine_set_rules(world.engine, world.rules), 0);
    weir_rules_unref(old);
    assert_int_equal(counted("a", 0), 0);
    assert_true(use("alice", 1));
    assert_int_equal(world.warned_count, 2);
    assert_int_equal(world.result[1].percent, 85);
    assert_int_equal(counted("a", 1), 1);
    close_world();
    (void)state;
}

/* --- Which limit, which request --------------------------------------------------------------- */

TEST("one request may reach several thresholds lowest first")
{
    open_algorithm(0, "[95%, 80%, 50%]");
    assert_true(use("alice", 96));
    assert_int_equal(world.warned_count, 3);
    for (int i = 0; i < 3; i++) {
        assert_int_equal(world.result[i].percent, i == 0 ? 50 : i == 1 ? 80 : 95);
        assert_int_equal(world.result[i].used, 96);
        assert_int_equal(counted("a", i), 1);
    }
    close_world();
    (void)state;
}

TEST("of several rates the one with the longest window warns")
{
    open_world("- {name: a, key: [user], rate: [100/day, 10/s, 50/h], warn_at: 80%}\n", false);
    for (int i = 0; i < 79; i++) {
        assert_true(use("alice", 1));
        world.now_ns += i == 40 ? 120 * MINUTE : SECOND;
    }
    assert_int_equal(world.warned_count, 0);
    world.now_ns += 60 * MINUTE;
    assert_true(use("alice", 1));
    assert_int_equal(world.warned_count, 1);
    assert_int_equal(world.result[0].capacity, 100);
    assert_int_equal(world.result[0].used, 80);
    close_world();
    (void)state;
}

TEST("a denied request warns of what others have used")
{
    open_algorithm(0, "80%");
    assert_true(use("alice", 70));
    assert_false(use("alice", 40));
    assert_int_equal(world.warned_count, 0); /* 70 are used */
    weir_engine_release(world.engine, decide(world.engine, "alice", 50, WEIR_OP_DEBIT, 0));
    assert_int_equal(world.warned_count, 1);
    assert_false(use("alice", 1));
    assert_int_equal(world.warned_count, 1);
    close_world();
    (void)state;
}

TEST("dry runs refunds and keys that are not enforced warn of nothing")
{
    open_world("- {name: a, key: [user], rate: 100/day, warn_at: 80%, enforce: 50%}\n", false);
    uint32_t shadowed = 0;
    for (int user = 0; user < 64; user++) {
        char name[16];
        snprintf(name, sizeof name, "u%d", user);
        struct weir_decision *d = decide(world.engine, name, 90, WEIR_OP_PEEK, 0);
        shadowed += (d->checks[0].flags & WEIR_CHECK_SHADOW) != 0;
        weir_engine_release(world.engine, d);
        assert_int_equal(world.warned_count, (uint32_t)user + 1 - shadowed - 1 +
                                                 ((d->checks[0].flags & WEIR_CHECK_SHADOW) != 0));
        assert_true(use(name, 90));
        give_back(name, 1, world.now_ns);
        assert_int_equal(world.warned_count, (uint32_t)user + 1 - shadowed);
    }
    assert_true(shadowed > 10 && shadowed < 54);
    close_world();
    (void)state;
}

TEST("a request that borrows warns of its other limits")
{
    open_world(
        "- {name: pool, key: [], match: {user: owner}, rate: 100/day, borrow: true, warn_at: "
        "10%}\n"
        "- {name: mine, key: [user], match: {user: alice}, rate: 10/day, pool: pool, "
        "warn_at: 90%}\n"
        "- {name: all, key: [], rate: 50/day, warn_at: 80%}\n",
        false);
    for (int i = 0; i < 50; i++)
        assert_true(use("alice", 1));
    assert_int_equal(world.warned_count, 2); /* and not the pool's: its owners hear of it */
    assert_string_equal(world.result[0].limit, "mine");
    assert_int_equal(world.result[0].used, 9);
    assert_string_equal(world.result[1].limit, "all");
    assert_int_equal(world.result[1].used, 40);
    close_world();
    (void)state;
}

/* Where both tries deny, the second may be the one that is reported. */
TEST("a pool that denies a borrower warns its owners only")
{
    open_world(
        "- {name: pool, key: [], match: {user: owner}, rate: 100/min, borrow: true, reserve: "
        "50%, warn_at: 90%}\n"
        "- {name: mine, key: [user], match: {user: alice}, rate: 10/day, pool: pool}\n",
        false);
    for (int i = 0; i < 60; i++)
        assert_true(use("alice", 1));
    struct weir_decision *d = decide(world.engine, "alice", 1, WEIR_OP_DECIDE, 0);
    assert_int_equal(d->verdict, WEIR_DENIED);
    assert_int_equal(d->checks[0].rule, 0); /* it is the one to wait less for */
    weir_engine_release(world.engine, d);
    assert_int_equal(world.warned_count, 0); /* half of it is used */
    assert_true(use("owner", 40));
    assert_int_equal(world.warned_count, 1);
    assert_int_equal(world.result[0].used, 90);
    assert_int_equal(world.result[0].capacity, 100);
    close_world();
    (void)state;
}

/* A settlement's checks don't say for whom their limit is enforced. */
TEST("a settlement warns of no limit that is enforced on some keys")
{
    open_world("- {name: a, key: [user], rate: 100/day, warn_at: 80%, enforce: 50%}\n", false);
    for (int user = 0; user < 64; user++) {
        char name[16];
        snprintf(name, sizeof name, "u%d", user);
        struct weir_decision *d = take(world.engine, name, 90);
        d->op = WEIR_OP_DEBIT;
        d->checks[0].flags = 0;
        weir_engine_queue(world.engine, d);
        weir_engine_run(world.engine, world.now_ns);
        weir_engine_release(world.engine, d);
    }
    assert_int_equal(world.warned_count, 0);
    close_world();
    (void)state;
}

TEST("an answer warns a caller that is allowed at or above the threshold")
{
    struct weir_answer answer;
    char lease[WEIR_LEASE_TOKEN_MAX];
    static const struct {
        uint64_t cost;
        uint8_t percent, used;
    } steps[] = {{79, 0, 0}, {1, 80, 80}, {1, 80, 81}, {14, 95, 95}, {5, 95, 100}, {1, 0, 0}};
    open_algorithm(0, "[80%, 95%]");
    for (size_t i = 0; i < sizeof steps / sizeof *steps; i++) {
        struct weir_decision *d = decide(world.engine, "alice", steps[i].cost, WEIR_OP_DECIDE, 0);
        weir_engine_answer(d, &answer, lease);
        assert_int_equal(answer.allowed, i < 5);
        assert_int_equal(answer.limits[0].warning.percent, steps[i].percent);
        if (steps[i].percent != 0) {
            assert_int_equal(answer.limits[0].warning.used, steps[i].used);
            assert_int_equal(answer.limits[0].warning.capacity, 100);
        }
        weir_engine_release(world.engine, d);
    }
    close_world();
    (void)state;
}

/* 50 of 100 are all that the request may use, but half of the limit. */
TEST("a threshold counts at 100 percent whatever the scale")
{
    struct weir_answer answer;
    char lease[WEIR_LEASE_TOKEN_MAX];
    static const uint8_t scales[] = {50, 0};
    open_algorithm(0, "[80%]");
    for (size_t i = 0; i < sizeof scales; i++) {
        struct weir_decision *d = take(world.engine, "alice", i == 0 ? 50 : 30);
        d->checks[0].scale = scales[i] & 0x7f;
        weir_engine_queue(world.engine, d);
        weir_engine_run(world.engine, world.now_ns);
        weir_engine_answer(d, &answer, lease);
        assert_true(answer.allowed);
        assert_int_equal(answer.limits[0].scale, scales[i]);
        assert_int_equal(answer.limits[0].report.limit, i == 0 ? 50 : 100);
        assert_int_equal(answer.limits[0].warning.percent, i == 0 ? 0 : 80);
        weir_engine_release(world.engine, d);
    }
    close_world();
}

TEST("what comes over raises the threshold")
{
    open_algorithm(8, "80%");
    assert_true(use("alice", 90)); /* of 150: the day before was not used */
    assert_int_equal(world.warned_count, 0);
    world.now_ns += 1440 * MINUTE; /* 10 come over: 110 */
    assert_true(use("alice", 87));
    assert_int_equal(world.warned_count, 0);
    assert_true(use("alice", 1));
    assert_int_equal(world.warned_count, 1);
    assert_int_equal(world.result[0].capacity, 110);
    assert_int_equal(world.result[0].resets_at_ns, world.now_ns + 1440 * MINUTE);
    close_world();
    (void)state;
}

/* --- A remote store --------------------------------------------------------------------------- */

static void open_elsewhere(void)
{
    open_world("- {name: a, key: [user], quota: 100/day, warn_at: 80%, on_store_error: open}\n",
               true);
}

TEST("another store is asked for the record once")
{
    open_elsewhere();
    world.fake->later_every = 1;
    struct weir_decision *first = decide(world.engine, "alice", 90, WEIR_OP_DECIDE, 0);
    struct weir_decision *second = decide(world.engine, "alice", 1, WEIR_OP_DECIDE, 0);
    assert_int_equal(world.fake->pending_count, 2);
    fake_store_answer(world.fake, 0);
    fake_store_answer(world.fake, 0);
    assert_int_equal(world.fake->pending_count, 0);
    assert_true(weir_engine_waits(world.engine));
    weir_engine_run(world.engine, world.now_ns);
    assert_int_equal(world.fake->pending_count, 1); /* the record */
    const struct weir_check *record = &world.fake->pending[0]->checks[0];
    static const char name[] = "a,80,";
    assert_string_equal(record->limit->name, "warned~");
    assert_memory_equal(record->key.data, name, sizeof name - 1);
    assert_int_equal(world.warned_count, 0);
    fake_store_answer(world.fake, 0);
    assert_int_equal(world.warned_count, 1);
    assert_string_equal(world.result[0].key, "user=alice");
    weir_engine_release(world.engine, first);
    weir_engine_release(world.engine, second);
    close_world();
    (void)state;
}

TEST("a record that the store has not made is due again")
{
    open_elsewhere();
    for (int i = 0; i < 3; i++) {
        world.fake->later_every = 0;
        struct weir_decision *d = take(world.engine, "alice", i == 0 ? 90 : 1);
        weir_engine_queue(world.engine, d);
        world.fake->later_every = 2; /* the request at once, the record later */
        world.fake->seen = 0;
        weir_engine_run(world.engine, world.now_ns);
        weir_engine_release(world.engine, d);
        assert_int_equal(world.fake->pending_count, 1);
        if (i == 0)
            fake_store_fail(world.fake, 0, WEIR_ERR_STORE);
        else if (i == 1)
            weir_engine_run(world.engine, world.now_ns += SECOND); /* past its deadline */
        else
            fake_store_answer(world.fake, 0);
        assert_int_equal(world.warned_count, i == 2);
        assert_int_equal(weir_engine_pending(world.engine), 0);
    }
    close_world();
    (void)state;
}

TEST("what a store has not decided warns of nothing")
{
    open_elsewhere();
    world.fake->later_every = 1;
    struct weir_decision *d = decide(world.engine, "alice", 90, WEIR_OP_DECIDE, 0);
    fake_store_fail(world.fake, 0, WEIR_ERR_STORE);
    weir_engine_run(world.engine, world.now_ns);
    assert_int_equal(world.fake->pending_count, 0);
    weir_engine_release(world.engine, d);
    close_world();
    (void)state;
}

TEST("more warnings at a time than there is room for are due again")
{
    enum { KEYS = WEIR_WARNINGS_MAX * 2 + 5 };
    struct weir_decision *all[KEYS];
    char name[16];
    open_elsewhere();
    for (int round = 0; round < 8;
         round++) { /* some of which ask for what is known and forgotten */
        world.fake->later_every = 0;
        for (int i = 0; i < KEYS; i++) {
            snprintf(name, sizeof name, "u%d", i);
            all[i] = take(world.engine, name, round == 0 ? 90 : 1);
            weir_engine_queue(world.engine, all[i]);
        }
        weir_engine_run(world.engine, world.now_ns);
        uint32_t most = (uint32_t)(round + 1) * WEIR_WARNINGS_MAX;
        assert_true(world.warned_count <= most && world.warned_count >= WEIR_WARNINGS_MAX);
        for (int i = 0; i < KEYS; i++)
            weir_engine_release(world.engine, all[i]);
    }
    assert_int_equal(world.warned_count, KEYS);
    close_world();
    (void)state;
}

TEST("a table has no such bound")
{
    struct weir_decision *all[DECISIONS];
    char name[16];
    open_algorithm(7, "80%");
    for (int i = 0; i < DECISIONS; i++) {
        snprintf(name, sizeof name, "u%d", i);
        all[i] = take(world.engine, name, 90);
        weir_engine_queue(world.engine, all[i]);
    }
    weir_engine_run(world.engine, world.now_ns);
    assert_int_equal(world.warned_count, DECISIONS);
    assert_false(weir_engine_waits(world.engine));
    for (int i = 0; i < DECISIONS; i++)
        weir_engine_release(world.engine, all[i]);
    close_world();
    (void)state;
}

/* What denies keeps its place in a full table; a record must not. */
TEST("a flood of warnings shuts nobody out of the table")
{
    enum { ROUNDS = 5, KEYS = 50000, NEWCOMERS = 500 };
    struct weir_table_stats stats;
    char name[16];
    open_world(
        "- {name: a, key: [user], match: {user: 'new*'}, rate: 100/day}\n"
        "- {name: b, key: [user], match: {user: 'old*'}, algorithm: gcra, rate: 3600/h burst "
        "100, warn_at: 50%}\n",
        false);
    world.counts = true;
    for (int i = 0; i < ROUNDS * KEYS; i++) { /* each state is fresh before the next round */
        world.now_ns += i % KEYS == 0 ? 2 * MINUTE : 0;
        snprintf(name, sizeof name, "old%d", i);
        assert_true(use(name, 60));
    }
    weir_table_stats(world.table, world.now_ns, &stats);
    assert_true(world.warned_count == ROUNDS * KEYS && stats.slots < ROUNDS * KEYS);
    for (int i = 0; i < 2 * NEWCOMERS; i++) {
        snprintf(name, sizeof name, "new%d", i % NEWCOMERS);
        assert_true(use(name, 50));
    }
    weir_table_stats(world.table, world.now_ns, &stats);
    assert_int_equal(stats.overflows, 0);
    close_world();
    (void)state;
}

TEST("closing with records at the store leaks nothing")
{
    open_elsewhere();
    struct weir_decision *d = take(world.engine, "alice", 90);
    weir_engine_queue(world.engine, d);
    world.fake->later_every = 2;
    world.fake->seen = 0;
    weir_engine_run(world.engine, world.now_ns);
    assert_int_equal(world.fake->pending_count, 1);
    weir_engine_release(world.engine, d);
    close_world();
    (void)state;
}

TEST("nobody to tell means no question")
{
    open_elsewhere();
    weir_engine_close(world.engine);
    struct weir_engine_options options = {.store = world.store,
                                          .rules = world.rules,
                                          .secret = weir_table_secret(world.table),
                                          .done = done};
    assert_int_equal(weir_engine_open(&world.engine, &options), 0);
    uint32_t before = world.fake->submits;
    assert_true(use("alice", 90));
    assert_int_equal(world.fake->submits, before + 1);
    close_world();
    (void)state;
}

RUN_TESTS()
