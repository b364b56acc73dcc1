/* SPDX-License-Identifier: Apache-2.0 */
/* Candidates: directed cases on a fake store, and random requests over the table beside the core's
 * functions on plain memory: what differs is exactly what the model says differs. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "draw.h"
#include "engine/counters.h"
#include "engine/effect/candidate.h"
#include "engine/open.h"
#include "limit_model.h"
#include "rig.h"
#include "table_rig.h"
#include "test.h"

static struct weir_request request;

static void fill(const struct weir_rules *rules, const char *user)
{
    rig_request(&request, rules, (const char *const[]){"user", user, NULL});
}

static struct weir_decision *send(struct rig *rig, const char *user)
{
    struct weir_reason reason;
    struct weir_decision *decision = rig_take(rig, 0);
    fill(weir_engine_rules(rig->engine), user);
    assert_int_equal(weir_engine_apply_rules(rig->engine, decision, &request, &reason), 0);
    return decision;
}

static struct weir_decision *ask(struct rig *rig, const char *user)
{
    struct weir_decision *decision = send(rig, user);
    weir_engine_queue(rig->engine, decision);
    weir_engine_run(rig->engine, START);
    return decision;
}

/* Expects both_allow, both_deny, stricter, looser, skipped of a limit. */
static void expect_trials(struct weir_engine *engine, const char *name, uint64_t both_allow,
                          uint64_t both_deny, uint64_t stricter, uint64_t looser, uint64_t skipped)
{
    const uint64_t expected[] = {both_allow, both_deny, stricter, looser, skipped};
    const struct weir_engine_counters *c = weir_engine_find_counters(engine, name, strlen(name));
    for (int i = 0; i < WEIR_TRIAL_OUTCOMES; i++)
        if (c->trials[i] != expected[i])
            fail_msg("%s: %llu, not %llu", weir_trial_name((enum weir_trial_outcome)i),
                     (unsigned long long)c->trials[i], (unsigned long long)expected[i]);
}

#define RULES(live, candidate)                                                                     \
    "limits:\n- {name: api, key: [user], algorithm: fixed_window, rate: " live                     \
    ", candidate: " candidate "}\n"

TEST("a stricter and a looser candidate are reported apart")
{
    struct rig rig;
    rig_open_text(&rig, RULES("4/h", "2/h"));
    for (int i = 0; i < 6; i++)
        assert_int_equal(ask(&rig, "ann")->verdict, i < 4 ? WEIR_ALLOWED : WEIR_DENIED);
    expect_trials(rig.engine, "api", 2, 2, 2, 0, 0);
    rig_close(&rig);
    rig_open_text(&rig, RULES("2/h", "4/h"));
    for (int i = 0; i < 6; i++)
        assert_int_equal(ask(&rig, "ann")->verdict, i < 2 ? WEIR_ALLOWED : WEIR_DENIED);
    expect_trials(rig.engine, "api", 2, 2, 0, 2, 0);
    rig_close(&rig);
}

TEST("what others deny is not charged")
{
    struct rig rig;
    rig_open_text(
        &rig, "limits:\n"
              "- {name: all, key: [], algorithm: fixed_window, rate: 2/h}\n"
              "- {name: api, key: [user], algorithm: fixed_window, rate: 9/h, candidate: 3/h}\n"
              "- {name: tries, key: [user], algorithm: fixed_window, rate: 9/h, candidate: 3/h,\n"
              "   on_deny: charge}\n");
    for (int i = 0; i < 6; i++)
        ask(&rig, "ann");
    expect_trials(rig.engine, "api", 6, 0, 0, 0, 0); /* 2 of 3 are used */
    expect_trials(rig.engine, "tries", 3, 0, 3, 0, 0);
    rig_close(&rig);
}

TEST("rates of a candidate are charged together")
{
    struct rig rig;
    rig_open_text(&rig, RULES("9/h", "[1/min, 3/h]"));
    for (int i = 0; i < 5; i++)
        ask(&rig, "ann");
    expect_trials(rig.engine, "api", 1, 0, 4, 0, 0);
    struct weir_decision *later = send(&rig, "ann");
    weir_engine_queue(rig.engine, later);
    weir_engine_run(rig.engine, START + 60 * SECOND); /* the hour has 2 left */
    expect_trials(rig.engine, "api", 2, 0, 4, 0, 0);
    rig_close(&rig);
}

TEST("a borrower is compared by its own verdict")
{
    struct rig rig;
    rig_open_text(&rig,
                  "limits:\n"
                  "- {name: own, key: [user], algorithm: fixed_window, rate: 1/h, candidate: 2/h,\n"
                  "   pool: pool}\n"
                  "- {name: pool, match: {path: /x}, key: [], algorithm: fixed_window, rate: 9/h,\n"
                  "   borrow: true}\n");
    for (int i = 0; i < 4; i++)
        assert_int_equal(ask(&rig, "ann")->verdict, WEIR_ALLOWED);
    expect_trials(rig.engine, "own", 1, 2, 0, 1, 0);
    rig_close(&rig);
}

TEST("dry runs and repeats try nothing")
{
    struct rig rig;
    struct weir_reason reason;
    rig_open_text(&rig, RULES("4/h", "2/h"));
    struct weir_decision *peek = send(&rig, "ann");
    peek->op = WEIR_OP_PEEK;
    weir_engine_queue(rig.engine, peek);
    for (int i = 0; i < 3; i++) {
        struct weir_decision *once = send(&rig, "ann");
        assert_int_equal(
            weir_engine_apply_idempotency(rig.engine, once, (struct weir_bytes){"key", 3}, &reason),
            0);
        weir_engine_queue(rig.engine, once);
        weir_engine_run(rig.engine, START);
    }
    expect_trials(rig.engine, "api", 1, 0, 0, 0, 0);
    rig_close(&rig);
}

TEST("nobody waits for a candidate")
{
    struct rig rig;
    rig_open_text(&rig, RULES("4/h", "2/h"));
    rig.store->later_every = 1;
    struct weir_decision *decision = ask(&rig, "ann");
    fake_store_answer(rig.store, 0);
    assert_int_equal(rig.done_count, 1);
    assert_true(weir_engine_waits(rig.engine));
    weir_engine_release(rig.engine, decision); /* its key's text goes with it */
    rig.done_count = 0;
    weir_engine_run(rig.engine, START);
    assert_int_equal(rig.store->pending_count, 1);
    rig_expect_key(rig.store->pending[0], 0, "user=ann");
    fake_store_answer(rig.store, 0);
    expect_trials(rig.engine, "api", 1, 0, 0, 0, 0);
    assert_int_equal(rig.done_count, 0);
    rig_close(&rig);
}

TEST("what the store fails is skipped")
{
    struct rig rig;
    rig_open_text(&rig, RULES("4/h", "2/h"));
    rig.store->later_every = 1;
    ask(&rig, "ann"); /* the live one fails */
    fake_store_fail(rig.store, 0, WEIR_ERR_STORE);
    expect_trials(rig.engine, "api", 0, 0, 0, 0, 1);
    ask(&rig, "ann"); /* the candidate's fails */
    fake_store_answer(rig.store, 0);
    weir_engine_run(rig.engine, START);
    fake_store_fail(rig.store, 0, WEIR_ERR_STORE);
    expect_trials(rig.engine, "api", 0, 0, 0, 0, 2);
    ask(&rig, "ann"); /* the candidate's is late */
    fake_store_answer(rig.store, 0);
    weir_engine_run(rig.engine, START);
    weir_engine_run(rig.engine, START + DEADLINE);
    expect_trials(rig.engine, "api", 0, 0, 0, 0, 3);
    assert_int_equal(weir_engine_pending(rig.engine), 0);
    uint64_t failed = weir_engine_failures(rig.engine)->failed;
    assert_int_equal(failed, 1); /* of requests */
    rig_close(&rig);
}

TEST("more than there is room for are skipped")
{
    struct rig rig;
    rig_open_text(&rig, RULES("4/h", "2/h"));
    rig.keep = false;
    rig.store->later_every = 1;
    for (int i = 0; i < WEIR_TRIALS_MAX + 3; i++) {
        ask(&rig, "ann");
        fake_store_answer(rig.store, rig.store->pending_count - 1);
    }
    expect_trials(rig.engine, "api", 0, 0, 0, 0, 3);
    rig_close(&rig); /* with all of them pending */
}

TEST("counts survive a change of rules")
{
    struct rig rig;
    struct weir_rules *before = rig_rules(RULES("4/h", "2/h"));
    struct weir_rules *after = rig_rules(RULES("4/h", "3/h"));
    rig_open_rules(&rig, before);
    for (int i = 0; i < 3; i++)
        ask(&rig, "ann");
    assert_int_equal(weir_engine_set_rules(rig.engine, after), 0);
    weir_rules_unref(before);
    expect_trials(rig.engine, "api", 2, 0, 1, 0, 0);
    ask(&rig, "bob");
    expect_trials(rig.engine, "api", 3, 0, 1, 0, 0);
    rig_close(&rig);
    weir_rules_unref(after);
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
    struct limit_model all, live[USERS], candidate[USERS];
    uint64_t now_ns, random, trials[WEIR_TRIAL_OUTCOMES], result;
} world;

static uint64_t draw(uint64_t below)
{
    return draw_below(&world.random, below);
}

static void release(void *context, struct weir_decision *decision)
{
    (void)context;
    weir_engine_release(world.engine, decision);
}

static void tell(void *context, const struct weir_check *check, enum weir_trial_outcome outcome)
{
    (void)context;
    (void)outcome;
    assert_int_equal(check->rule, 1);
    world.result++;
}

static void open_world(const char *live, const char *candidate)
{
    char text[512];
    snprintf(text, sizeof text,
             "limits:\n- {name: all, key: [], rate: 150/min}\n"
             "- {name: api, key: [user], %s, candidate: %s}\n",
             live, candidate);
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
                                         .done = release,
                                         .tried = tell};
    assert_int_equal(weir_engine_open(&world.engine, &engine), 0);
    struct weir_rule_info all, api;
    weir_rules_info(world.rules, 0, &all);
    weir_rules_info(world.rules, 1, &api);
    world.all = limit_model_of(all.limit, all.limit_count);
    for (int i = 0; i < USERS; i++) {
        world.live[i] = limit_model_of(api.limit, api.limit_count);
        world.candidate[i] = limit_model_of(api.candidate, api.candidate_count);
    }
}

static void close_world(void)
{
    weir_engine_close(world.engine);
    world.store->ops->close(world.store);
    weir_table_close(world.table);
    weir_rules_unref(world.rules);
}

static bool admits(const struct limit_model *limit, uint64_t cost)
{
    return limit_model_admits(limit, limit->limits, world.now_ns, cost, NULL);
}

static void charge(struct limit_model *limit, uint64_t cost)
{
    limit_model_charge(limit, world.now_ns, cost);
}

static void model_step(int user, uint64_t cost)
{
    struct limit_model *live = &world.live[user], *candidate = &world.candidate[user];
    bool all = admits(&world.all, cost), own = admits(live, cost), other = admits(candidate, cost);
    world.trials[own && other ? WEIR_TRIAL_BOTH_ALLOW
                 : own        ? WEIR_TRIAL_STRICTER
                 : other      ? WEIR_TRIAL_LOOSER
                              : WEIR_TRIAL_BOTH_DENY]++;
    if (all && own) {
        charge(&world.all, cost);
        charge(live, cost);
    }
    if (all && other)
        charge(candidate, cost);
}

static void step(void)
{
    static const char *const names[USERS] = {"ann", "bob", "cid"};
    static const uint64_t pauses[] = {0, 1000000, SECOND / 3, 2 * SECOND, 45 * SECOND};
    int user = (int)draw(USERS);
    struct weir_reason reason;
    world.now_ns += pauses[draw(40) < 38 ? draw(3) : draw(5)];
    fill(world.rules, names[user]);
    request.cost = draw(10) == 0 ? draw(8) : 1;
    struct weir_decision *decision = weir_engine_take(world.engine);
    assert_int_equal(weir_engine_apply_rules(world.engine, decision, &request, &reason), 0);
    weir_engine_queue(world.engine, decision);
    weir_engine_run(world.engine, world.now_ns);
    model_step(user, request.cost);
}

TEST("random requests differ where the model does")
{
    static const char *const lives[] = {"rate: 20/min", "rate: [2/s, 20/min]",
                                        "rate: 20/min burst 5, algorithm: token_bucket",
                                        "rate: 12/10s, algorithm: fixed_window"};
    static const char *const candidates[] = {"15/min", "[1/s, 30/min]",
                                             "{rate: 15/min burst 9, algorithm: gcra}",
                                             "{rate: 20/10s, algorithm: fixed_window}"};
    for (size_t i = 0; i < 16; i++) {
        open_world(lives[i % 4], candidates[i / 4]);
        for (int s = 0; s < STEPS / 4; s++)
            step();
        expect_trials(world.engine, "api", world.trials[0], world.trials[1], world.trials[2],
                      world.trials[3], 0);
        assert_int_equal(world.result, STEPS / 4);
        assert_true(world.trials[WEIR_TRIAL_STRICTER] + world.trials[WEIR_TRIAL_LOOSER] > 20);
        close_world();
    }
}

TEST("a candidate like the live limit never differs")
{
    static const char *const same[][2] = {
        {"rate: 20/min", "20/min"},
        {"rate: [2/s, 20/min]", "[2/s, 20/min]"},
        {"rate: 20/min burst 5, algorithm: token_bucket", "{rate: 20/min burst 5}"},
        {"rate: 20/min, segments: 6, strict: true", "20/min"},
        {"rate: 9/10s, algorithm: sliding_log", "9/10s"},
    };
    for (size_t i = 0; i < sizeof same / sizeof *same; i++) {
        open_world(same[i][0], same[i][1]);
        for (int s = 0; s < STEPS / 4; s++) {
            world.live[0].count = 0; /* spans are not the model's */
            step();
        }
        const struct weir_engine_counters *c = weir_engine_find_counters(world.engine, "api", 3);
        uint64_t differ = c->trials[WEIR_TRIAL_STRICTER] + c->trials[WEIR_TRIAL_LOOSER];
        uint64_t both_deny = c->trials[WEIR_TRIAL_BOTH_DENY];
        assert_int_equal(differ, 0);
        assert_true(both_deny > 100);
        close_world();
    }
}

RUN_TESTS()
