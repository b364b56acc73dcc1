/* SPDX-License-Identifier: Apache-2.0 */
/* Units that were bought above a limit: directed cases on a fake store, and random requests, grants
 * and settlements over the table beside a model that keeps what each key was given. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/bytes.h"
#include "draw.h"
#include "engine/borrow.h"
#include "engine/counters.h"
#include "engine/open.h"
#include "engine/pool.h"
#include "feature/reserve/engine/reservation.h"
#include "limit_model.h"
#include "rig.h"
#include "rules/charge/top_up.h"
#include "rules/match/key_values.h"
#include "table_rig.h"
#include "test.h"

#define DAY (86400 * SECOND)

static struct weir_request request;

static struct weir_decision *send(struct rig *rig, uint64_t cost, const char *const *pairs)
{
    struct weir_reason reason;
    struct weir_decision *decision = rig_take(rig, 0);
    rig_request(&request, weir_engine_rules(rig->engine), pairs);
    request.cost = cost;
    assert_int_equal(weir_engine_apply_rules(rig->engine, decision, &request, &reason), 0);
    return decision;
}

static struct weir_decision *run_at(struct rig *rig, uint64_t now_ns,
                                    struct weir_decision *decision)
{
    weir_engine_queue(rig->engine, decision);
    weir_engine_run(rig->engine, now_ns);
    return decision;
}
#define PAIRS(...) ((const char *const[]){__VA_ARGS__, NULL})
#define ASK_AT(rig, now_ns, cost, ...) run_at(rig, now_ns, send(rig, cost, PAIRS(__VA_ARGS__)))
#define ASK(rig, cost, ...) ASK_AT(rig, START, cost, __VA_ARGS__)

/* A decision on what a key was given above a limit. */
static struct weir_decision *above(struct rig *rig, const char *limit, const char *key)
{
    struct weir_key_values values = {.count = 1, .values = {weir_bytes_of(key)}};
    struct weir_reason reason;
    int rule = weir_rules_find(weir_engine_rules(rig->engine), limit, strlen(limit));
    struct weir_decision *decision = rig_take(rig, 0);
    assert_int_equal(weir_engine_apply_key(rig->engine, decision, (uint32_t)rule, &values, &reason),
                     0);
    assert_true(weir_engine_apply_top_up(decision));
    return decision;
}

static void give(struct rig *rig, const char *limit, const char *key, uint64_t units)
{
    struct weir_decision *decision = above(rig, limit, key);
    decision->checks[0].cost = units;
    decision->op = WEIR_OP_REFUND;
    decision->charged_at_ns = START + DAY;
    run_at(rig, START, decision);
    assert_true(decision->outcomes[0].charged);
}

static uint64_t left_of(struct rig *rig, const char *limit, const char *key)
{
    struct weir_decision *decision = above(rig, limit, key);
    struct weir_report report;
    decision->op = WEIR_OP_PEEK;
    run_at(rig, START, decision);
    weir_decision_report(decision, 0, &report);
    return report.remaining;
}

/* Expects "name:remaining/limit[+] ..." of the answer; + where bought units were charged. */
static void expect_reported(struct weir_decision *decision, const char *expected)
{
    static char lease[WEIR_LEASE_TOKEN_MAX];
    struct weir_answer answer;
    char text[512] = "";
    size_t used = 0;
    weir_engine_answer(decision, &answer, lease);
    for (uint16_t i = 0; i < answer.count; i++) {
        const struct weir_answer_limit *limit = &answer.limits[i];
        assert_false(limit->borrowed);
        used += (size_t)snprintf(text + used, sizeof text - used, "%s%.*s:%llu/%llu%s",
                                 i > 0 ? " " : "", (int)limit->name.size, limit->name.data,
                                 (unsigned long long)limit->report.remaining,
                                 (unsigned long long)limit->report.limit, limit->bought ? "+" : "");
    }
    assert_string_equal(text, expected);
}

static const struct weir_engine_counters *counters_of(const struct rig *rig, const char *name)
{
    return weir_engine_find_counters(rig->engine, name, strlen(name));
}

static const char simple[] =
    "limits:\n"
    "- {name: all, key: [], algorithm: fixed_window, rate: 100/h}\n"
    "- {name: own, key: [user], algorithm: fixed_window, rate: 2/h, top_up: 366d}\n";

TEST("what a limit denies is charged to what was bought")
{
    struct rig rig;
    rig_open_text(&rig, simple);
    give(&rig, "own", "ann", 3);
    expect_reported(ASK(&rig, 2, "user", "ann"), "all:98/100 own:0/2");
    assert_int_equal(left_of(&rig, "own", "ann"), 3);
    struct weir_decision *bought = ASK(&rig, 1, "user", "ann");
    assert_int_equal(bought->verdict, WEIR_ALLOWED);
    expect_reported(bought, "all:97/100 own:2/2+");
    assert_int_equal(ASK(&rig, 2, "user", "ann")->verdict, WEIR_ALLOWED);
    struct weir_decision *denied = ASK(&rig, 1, "user", "ann");
    assert_int_equal(denied->verdict, WEIR_DENIED);
    expect_reported(denied, "all:95/100 own:0/2");
    uint64_t retry_ns;
    weir_decision_blame(denied, &retry_ns);
    assert_int_equal(retry_ns, 3600 * SECOND - START % (3600 * SECOND));
    assert_int_equal(ASK(&rig, 1, "user", "bob")->verdict, WEIR_ALLOWED); /* has bought nothing */
    assert_int_equal(ASK(&rig, 2, "user", "bob")->verdict, WEIR_DENIED);
    assert_int_equal(counters_of(&rig, "own")->borrowed, 2);
    assert_int_equal(counters_of(&rig, "own")->bought, 3);
    assert_int_equal(counters_of(&rig, "own")->counts.denied, 2);
    rig_close(&rig);
}

TEST("nothing is asked until the limit denies")
{
    struct rig rig;
    rig_open_text(&rig, simple);
    struct weir_decision *decision = ASK(&rig, 1, "user", "ann");
    assert_null(weir_entry_of(decision)->borrow);
    decision = ASK(&rig, 9, "user", "ann");
    assert_int_equal(decision->verdict, WEIR_DENIED);
    assert_true(weir_entry_of(decision)->borrow->tried);
    rig_close(&rig);
}

TEST("another limit that denies leaves it alone")
{
    struct rig rig;
    rig_open_text(&rig, simple);
    give(&rig, "own", "ann", 500);
    assert_int_equal(ASK(&rig, 98, "user", "ann")->verdict, WEIR_ALLOWED);
    struct weir_decision *denied = ASK(&rig, 3, "user", "ann");
    assert_int_equal(denied->verdict, WEIR_DENIED);
    assert_false(weir_entry_of(denied)->borrow && weir_entry_of(denied)->borrow->tried);
    expect_reported(denied, "all:2/100 own:2/2");
    assert_int_equal(left_of(&rig, "own", "ann"), 402);
    rig_close(&rig);
}

TEST("several limits are topped up together or not at all")
{
    struct rig rig;
    rig_open_text(&rig, "limits:\n"
                        "- {name: a, key: [user], algorithm: fixed_window, rate: 1/h, top_up: 1d}\n"
                        "- {name: b, key: [user], algorithm: gcra, rate: 1/h, top_up: 1d}\n");
    give(&rig, "a", "ann", 4);
    give(&rig, "b", "ann", 1);
    expect_reported(ASK(&rig, 1, "user", "ann"), "a:0/1 b:0/1");
    expect_reported(ASK(&rig, 1, "user", "ann"), "a:3/1+ b:0/1+");
    struct weir_decision *denied = ASK(&rig, 1, "user", "ann");
    assert_int_equal(denied->verdict, WEIR_DENIED);
    expect_reported(denied, "b:0/1 a:3/1+"); /* the wait is for b alone */
    uint64_t retry_ns;
    weir_decision_blame(denied, &retry_ns);
    assert_int_equal(denied->checks[denied->denied_by].rule, 1);
    assert_int_equal(left_of(&rig, "a", "ann"), 3);
    rig_close(&rig);
}

TEST("a pool and a top up may both be needed")
{
    struct rig rig;
    rig_open_text(&rig,
                  "limits:\n"
                  "- {name: a, key: [user], algorithm: fixed_window, rate: 1/h, top_up: 1d}\n"
                  "- {name: b, key: [user], algorithm: fixed_window, rate: 1/h, pool: pool}\n"
                  "- {name: pool, match: {path: /x}, key: [], algorithm: fixed_window, rate: 2/h,\n"
                  "   borrow: true}\n");
    give(&rig, "a", "ann", 9);
    assert_int_equal(ASK(&rig, 1, "user", "ann")->verdict, WEIR_ALLOWED);
    for (int i = 0; i < 2; i++)
        assert_int_equal(ASK(&rig, 1, "user", "ann")->verdict, WEIR_ALLOWED);
    struct weir_decision *denied = ASK(&rig, 1, "user", "ann");
    assert_int_equal(denied->verdict, WEIR_DENIED); /* the pool is empty */
    assert_int_equal(left_of(&rig, "a", "ann"), 7);
    rig_close(&rig);
}

TEST("units end")
{
    struct rig rig;
    rig_open_text(&rig, simple);
    give(&rig, "own", "ann", 9);
    assert_int_equal(ASK_AT(&rig, START + DAY - 1, 3, "user", "ann")->verdict, WEIR_ALLOWED);
    assert_int_equal(ASK_AT(&rig, START + DAY, 3, "user", "ann")->verdict, WEIR_DENIED);
    rig_close(&rig);
}

TEST("a dry run charges nothing")
{
    struct rig rig;
    rig_open_text(&rig, simple);
    give(&rig, "own", "ann", 9);
    for (int i = 0; i < 3; i++) {
        struct weir_decision *decision = send(&rig, 5, PAIRS("user", "ann"));
        decision->op = WEIR_OP_PEEK;
        run_at(&rig, START, decision);
        assert_int_equal(decision->verdict, WEIR_ALLOWED);
        expect_reported(decision, "all:100/100 own:9/2+");
    }
    assert_int_equal(counters_of(&rig, "own")->bought, 0);
    rig_close(&rig);
}

TEST("a repeat is charged nothing")
{
    struct rig rig;
    struct weir_reason reason;
    rig_open_text(&rig, simple);
    give(&rig, "own", "ann", 9);
    for (int i = 0; i < 3; i++) {
        struct weir_decision *decision = send(&rig, 5, PAIRS("user", "ann"));
        assert_int_equal(weir_engine_apply_idempotency(rig.engine, decision,
                                                       (struct weir_bytes){"key", 3}, &reason),
                         0);
        run_at(&rig, START, decision);
        assert_int_equal(decision->verdict, WEIR_ALLOWED);
        assert_int_equal(decision->repeated, i > 0);
    }
    assert_int_equal(left_of(&rig, "own", "ann"), 4);
    rig_close(&rig);
}

/* A reservation of 5 bought units, settled by `settle`. */
static void settle_five(struct rig *rig, const struct weir_settle *settle)
{
    static char text[WEIR_RESERVATION_TEXT_MAX];
    struct weir_reason reason;
    uint64_t life_ns, id;
    struct weir_decision *decision = send(rig, 5, PAIRS("user", "ann"));
    assert_int_equal(weir_engine_apply_reservation(rig->engine, decision, 5, 60 * SECOND, &reason),
                     0);
    run_at(rig, START, decision);
    assert_int_equal(decision->verdict, WEIR_ALLOWED);
    size_t size = weir_engine_reservation(rig->engine, decision, START, &life_ns, &id, text);
    struct weir_decision *settles = rig_take(rig, 1);
    assert_int_equal(weir_engine_apply_settle(rig->engine, settles, (struct weir_bytes){text, size},
                                              settle, START),
                     0);
    run_at(rig, START, settles);
}

TEST("a reservation is settled where it was charged")
{
    struct rig rig;
    rig_open_text(&rig,
                  "limits:\n"
                  "- {name: own, key: [user], algorithm: fixed_window, rate: 5/h, top_up: 366d,\n"
                  "   refund_on: [5xx], refund_cap: 100%}\n");
    assert_int_equal(ASK(&rig, 5, "user", "ann")->verdict, WEIR_ALLOWED);
    give(&rig, "own", "ann", 20);
    settle_five(&rig, &(const struct weir_settle){.how = WEIR_SETTLE_COST, .cost = 2});
    assert_int_equal(left_of(&rig, "own", "ann"), 18);
    settle_five(&rig, &(const struct weir_settle){.how = WEIR_SETTLE_COST, .cost = 8});
    assert_int_equal(left_of(&rig, "own", "ann"), 10);
    settle_five(&rig, &(const struct weir_settle){.how = WEIR_SETTLE_STATUS, .status = 503});
    assert_int_equal(left_of(&rig, "own", "ann"), 10);
    settle_five(&rig, &(const struct weir_settle){.how = WEIR_SETTLE_STATUS, .status = 200});
    assert_int_equal(left_of(&rig, "own", "ann"), 5);
    settle_five(&rig, &(const struct weir_settle){.how = WEIR_SETTLE_COST, .cost = 900});
    assert_int_equal(left_of(&rig, "own", "ann"), 0);
    /* The limit itself owes nothing. */
    expect_reported(ASK_AT(&rig, START + 3600 * SECOND, 5, "user", "ann"), "own:0/5");
    rig_close(&rig);
}

TEST("plans share what was bought")
{
    struct rig rig;
    rig_open_text(
        &rig, "default_plan: free\n"
              "plans:\n"
              "  free: {own: 1/h}\n"
              "  pro: {own: 2/day}\n"
              "limits:\n"
              "- {name: own, key: [user], algorithm: fixed_window, rate: plan, top_up: 366d}\n");
    struct weir_key_values values = {
        .count = 1, .values = {weir_bytes_of("ann")}, .plan = weir_bytes_of("pro")};
    struct weir_reason reason;
    struct weir_decision *gives = rig_take(&rig, 0);
    assert_int_equal(weir_engine_apply_key(rig.engine, gives, 0, &values, &reason), 0);
    assert_true(weir_engine_apply_top_up(gives));
    gives->checks[0].cost = 9;
    gives->op = WEIR_OP_REFUND;
    gives->charged_at_ns = START + DAY;
    run_at(&rig, START, gives);
    expect_reported(ASK(&rig, 3, "user", "ann", "plan", "pro"), "own:6/2+");
    expect_reported(ASK(&rig, 3, "user", "ann", "plan", "free"), "own:3/1+");
    rig_close(&rig);
}

TEST("decisions without aid take nothing")
{
    struct rig rig;
    rig_open_text(&rig, simple);
    give(&rig, "own", "ann", 9);
    struct weir_decision *decision = send(&rig, 5, PAIRS("user", "ann"));
    weir_engine_unaided(decision);
    assert_int_equal(run_at(&rig, START, decision)->verdict, WEIR_DENIED);
    assert_int_equal(left_of(&rig, "own", "ann"), 9);
    rig_close(&rig);
}

TEST("a request at a scale takes nothing but a grant has none")
{
    struct rig rig;
    rig_open_text(&rig, simple);
    give(&rig, "own", "ann", 9);
    struct weir_decision *decision = send(&rig, 5, PAIRS("user", "ann"));
    decision->checks[1].scale = 50;
    assert_int_equal(run_at(&rig, START, decision)->verdict, WEIR_DENIED);
    assert_int_equal(left_of(&rig, "own", "ann"), 9);
    struct weir_check check;
    assert_true(weir_rules_top_up(weir_engine_rules(rig.engine), &decision->checks[1], &check));
    assert_int_equal(check.scale, 0); /* of a limit that follows health */
    rig_close(&rig);
}

TEST("where the store fails the second try the first stands")
{
    struct rig rig;
    rig_open_text(&rig, simple);
    give(&rig, "own", "ann", 9);
    ASK(&rig, 2, "user", "ann");
    rig.store->later_every = 1;
    struct weir_decision *decision = ASK(&rig, 1, "user", "ann");
    fake_store_answer(rig.store, 0);
    weir_engine_run(rig.engine, START + 1);
    fake_store_fail(rig.store, 0, WEIR_ERR_STORE);
    assert_int_equal(decision->verdict, WEIR_DENIED);
    expect_reported(decision, "all:98/100 own:0/2");
    rig_close(&rig);
}

/* --- Against the model ------------------------------------------------------------------------ */

#ifdef MODEL_QUICK
#define STEPS 4000
#else
#define STEPS 40000
#endif
#define USERS 3

static struct {
    struct weir_table *table;
    struct weir_store *store;
    struct weir_engine *engine;
    struct weir_rules *rules;
    struct weir_decision *done;
    struct limit_model all, own[USERS];
    uint64_t left[USERS], ends_ns[USERS];
    uint64_t now_ns, random, bought, denied;
} world;

static const char *const names[USERS] = {"ann", "bob", "cid"};

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

static void open_world(const char *text)
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
    for (int i = 0; i < USERS; i++)
        world.own[i] = model_of("own");
}

static void close_world(void)
{
    weir_engine_close(world.engine);
    world.store->ops->close(world.store);
    weir_table_close(world.table);
    weir_rules_unref(world.rules);
}

static uint64_t model_left(int user)
{
    return world.now_ns < world.ends_ns[user] ? world.left[user] : 0;
}

static bool model_decides(int user, uint64_t cost)
{
    uint64_t retry_ns;
    bool all = limit_model_admits(&world.all, world.all.limits, world.now_ns, cost, &retry_ns);
    struct limit_model *own = &world.own[user];
    bool first = limit_model_admits(own, own->limits, world.now_ns, cost, &retry_ns);
    bool bought = model_left(user) >= (cost > 0 ? cost : 1);
    if (!all || (!first && !bought))
        return false;
    limit_model_charge(&world.all, world.now_ns, cost);
    if (first)
        limit_model_charge(own, world.now_ns, cost);
    else
        world.left[user] -= cost;
    world.bought += first ? 0 : cost;
    return true;
}

static struct weir_decision *finish(struct weir_decision *decision)
{
    weir_engine_queue(world.engine, decision);
    world.done = NULL;
    weir_engine_run(world.engine, world.now_ns);
    assert_ptr_equal(world.done, decision);
    return decision;
}

static struct weir_decision *above_of(int user)
{
    struct weir_key_values values = {.count = 1, .values = {weir_bytes_of(names[user])}};
    struct weir_reason reason;
    struct weir_decision *decision = weir_engine_take(world.engine);
    assert_int_equal(weir_engine_apply_key(world.engine, decision, 1, &values, &reason), 0);
    assert_true(weir_engine_apply_top_up(decision));
    return decision;
}

static void step_grant(int user)
{
    uint64_t units = 1 + draw(12), until_ns = world.now_ns + (1 + draw(200)) * SECOND;
    struct weir_decision *decision = above_of(user);
    decision->checks[0].cost = units;
    decision->op = WEIR_OP_REFUND;
    decision->charged_at_ns = until_ns;
    assert_true(finish(decision)->outcomes[0].charged);
    weir_engine_release(world.engine, decision);
    world.left[user] = model_left(user) + units;
    if (world.now_ns >= world.ends_ns[user] || until_ns > world.ends_ns[user])
        world.ends_ns[user] = until_ns;
}

static void step_look(int user)
{
    struct weir_report report;
    struct weir_decision *decision = above_of(user);
    decision->op = WEIR_OP_PEEK;
    finish(decision);
    weir_decision_report(decision, 0, &report);
    assert_int_equal(report.remaining, model_left(user));
    weir_engine_release(world.engine, decision);
}

static void step_request(int user)
{
    uint64_t cost = draw(6) == 0 ? draw(12) : 1;
    struct weir_reason reason;
    rig_request(&request, world.rules, PAIRS("user", names[user]));
    request.cost = cost;
    struct weir_decision *decision = weir_engine_take(world.engine);
    assert_int_equal(weir_engine_apply_rules(world.engine, decision, &request, &reason), 0);
    bool allowed = model_decides(user, cost);
    assert_int_equal(finish(decision)->verdict, allowed ? WEIR_ALLOWED : WEIR_DENIED);
    world.denied += !allowed;
    weir_engine_release(world.engine, decision);
}

TEST("random requests and grants equal the model")
{
    static const char *const rates[] = {"algorithm: fixed_window, rate: 5/10s",
                                        "algorithm: sliding_window, rate: 5/10s",
                                        "algorithm: gcra, rate: 20/min, burst: 4",
                                        "algorithm: token_bucket, rate: 7/10s, burst: 9"};
    static const uint64_t pauses[] = {0, 1000000, SECOND / 3, 2 * SECOND, 45 * SECOND};
    for (size_t r = 0; r < sizeof rates / sizeof *rates; r++) {
        char text[512];
        snprintf(text, sizeof text,
                 "limits:\n"
                 "- {name: all, key: [], algorithm: gcra, rate: 90/10s}\n"
                 "- {name: own, key: [user], %s, top_up: 1d}\n",
                 rates[r]);
        open_world(text);
        for (int i = 0; i < STEPS; i++) {
            int user = (int)draw(USERS);
            world.now_ns += pauses[draw(40) < 38 ? draw(3) : draw(5)];
            if (draw(25) == 0)
                step_grant(user);
            else if (draw(10) == 0)
                step_look(user);
            else
                step_request(user);
        }
        assert_true(world.bought > STEPS / 50 && world.denied > STEPS / 50);
        close_world();
    }
}

RUN_TESTS()
