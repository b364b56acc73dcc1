/* SPDX-License-Identifier: Apache-2.0 */
/* Actions: the step that the use after a request has reached, of several rates and limits, beside a
 * slow model of every algorithm; and which denials challenge, come late, or are shaped. */
#include <stdio.h>
#include <string.h>

#include "challenge_test.h"
#include "core/bytes.h"
#include "draw.h"
#include "engine/answer.h"
#include "engine/counters.h"
#include "engine/open.h"
#include "feature/adaptive/rules/limit.h"
#include "model.h"
#include "rig.h"
#include "rules/actions/reject.h"
#include "rules/counter.h"
#include "table_rig.h"
#include "test.h"

#ifdef MODEL_QUICK
#define STEPS 2000
#else
#define STEPS 20000
#endif
#define USERS 3
#define CHECKS 4

static struct {
    struct weir_table *table;
    struct weir_store *store;
    struct weir_rules *rules;
    struct weir_engine *engine;
    struct weir_decision *done;
    uint64_t now_ns, random;
    const char *plan; /* of requests; NULL: none */
    struct weir_answer answer;
} world;

static void done(void *context, struct weir_decision *decision)
{
    (void)context;
    world.done = decision;
}

static void open_world(const char *text)
{
    memset(&world, 0, sizeof world);
    world.now_ns = START;
    world.random = 88172645463325252;
    world.table = rig_table(4 << 20);
    world.store = rig_embedded(world.table);
    world.rules = rig_rules(strstr(text, "challenge:") ? challenge_rules(text) : text);
    rig_prepare(world.rules, world.store);
    struct weir_engine_options options = {.store = world.store,
                                          .rules = world.rules,
                                          .secret = weir_table_secret(world.table),
                                          .decisions = 16,
                                          .done = done};
    assert_int_equal(weir_engine_open(&world.engine, &options), 0);
}

static void close_world(void)
{
    weir_engine_close(world.engine);
    world.store->ops->close(world.store);
    weir_rules_unref(world.rules);
    weir_table_close(world.table);
}

/* Decides a request of a user and fills world.answer; the decision stays. */
static struct weir_decision *decide(const char *user, uint64_t cost, enum weir_op op)
{
    static char lease[WEIR_LEASE_TOKEN_MAX];
    struct weir_request request;
    struct weir_reason reason;
    struct weir_decision *d = weir_engine_take(world.engine);
    assert_non_null(d);
    weir_request_clear(&request, weir_rules_attribute_count(world.rules));
    request.values[WEIR_ATTR_USER] = weir_bytes_of(user);
    if (world.plan != NULL)
        request.values[WEIR_ATTR_PLAN] = weir_bytes_of(world.plan);
    request.cost = cost;
    assert_int_equal(weir_engine_apply_rules(world.engine, d, &request, &reason), 0);
    d->op = (uint8_t)op;
    world.done = NULL;
    weir_engine_queue(world.engine, d);
    weir_engine_run(world.engine, world.now_ns);
    assert_ptr_equal(world.done, d);
    memset(&world.answer, 0xa5, sizeof world.answer);
    weir_engine_answer(d, &world.answer, lease);
    return d;
}

static void expect(const char *user, uint64_t cost, enum weir_action action, uint64_t delay_ns)
{
    weir_engine_release(world.engine, decide(user, cost, WEIR_OP_DECIDE));
    assert_int_equal(world.answer.action, action);
    assert_int_equal(world.answer.delay_ns, delay_ns);
}

/* --- The model -------------------------------------------------------------------------------- */

/* A step as the test knows it. */
struct step {
    uint32_t percent;
    enum weir_action action;
    uint64_t delay_ns; /* 0: a delay until what is owed is back at the step */
};

struct limit_model {
    uint32_t first, end; /* of its checks */
    uint32_t challenge;
    struct step steps[4]; /* ascending; percent 0: none */
    uint64_t tarpit_ns;
};

struct expected {
    bool allowed;
    enum weir_action action;
    uint64_t delay_ns;
};

static uint64_t remaining_of(const struct model *model)
{
    uint64_t low = 0, high = model_capacity(model) + 1;
    while (high - low > 1) {
        uint64_t middle = low + (high - low) / 2;
        if (model_admits(model, world.now_ns, middle))
            low = middle;
        else
            high = middle;
    }
    return low;
}

static bool is_bucket(const struct model *model)
{
    return model->spec.algorithm >= WEIR_TOKEN_BUCKET && model->spec.algorithm <= WEIR_LEAKY_QUEUE;
}

/* Of a state that was charged, or, `more`, is yet to be charged that much. */
static bool step_reached(const struct model *model, uint64_t more, const struct step *step,
                         uint64_t *delay_ns)
{
    uint64_t capacity = model_capacity(model), rate = model->spec.rate;
    uint64_t used = capacity - remaining_of(model) + more;
    *delay_ns = step->delay_ns;
    if (step->action != WEIR_ACTION_DELAY || step->delay_ns != 0)
        return (used < capacity ? used : capacity) * 100 >= step->percent * capacity;
    assert_true(is_bucket(model));
    model_wide owed =
        model_bucket_owed(model, world.now_ns) + (model_wide)more * model->spec.window_ns;
    model_wide owed_ns = (owed + rate - 1) / rate;
    model_wide step_ns = (model_wide)step->percent * capacity * model->spec.window_ns;
    step_ns = (step_ns + (model_wide)rate * 100 - 1) / ((model_wide)rate * 100);
    *delay_ns = owed_ns > step_ns ? (uint64_t)(owed_ns - step_ns) : 0;
    return *delay_ns > 0;
}

static void join(struct expected *expected, enum weir_action action, uint64_t delay_ns)
{
    if (action > expected->action)
        expected->action = action;
    if ((action == WEIR_ACTION_DELAY || action == WEIR_ACTION_TARPIT) &&
        delay_ns > expected->delay_ns)
        expected->delay_ns = delay_ns;
}

static void join_steps(struct expected *expected, const struct limit_model *limit,
                       const struct model *models, uint64_t more)
{
    for (int s = 3; s >= 0; s--) {
        uint64_t delay_ns;
        for (uint32_t i = limit->first; limit->steps[s].percent != 0 && i < limit->end; i++) {
            if (step_reached(&models[i], more, &limit->steps[s], &delay_ns)) {
                join(expected, limit->steps[s].action, delay_ns);
                return;
            }
        }
    }
}

static bool admits_at(struct model *model, uint32_t percent, uint64_t cost)
{
    model->percent = percent;
    bool admits = model_admits(model, world.now_ns, cost);
    model->percent = 0;
    return admits;
}

/* What a limit's denial is; false: it admits. */
static bool denies(const struct limit_model *limit, struct model *models, uint64_t cost,
                   enum weir_action *action)
{
    bool denies = false, challenges = true;
    for (uint32_t i = limit->first; i < limit->end; i++) {
        if (admits_at(&models[i], limit->challenge, cost))
            continue;
        denies = true;
        challenges = challenges && admits_at(&models[i], 0, cost);
    }
    *action = challenges              ? WEIR_ACTION_CHALLENGE
              : limit->tarpit_ns != 0 ? WEIR_ACTION_TARPIT
                                      : WEIR_ACTION_REJECT;
    return denies;
}

static struct expected model_decide(const struct limit_model *limits, uint32_t count,
                                    struct model *models, uint64_t cost, enum weir_op op)
{
    struct expected expected = {true, WEIR_ACTION_NONE, 0};
    enum weir_action action;
    for (uint32_t l = 0; l < count; l++) {
        if (!denies(&limits[l], models, cost, &action))
            continue;
        expected.allowed = false;
        join(&expected, action, limits[l].tarpit_ns);
    }
    if (!expected.allowed) {
        if (expected.action != WEIR_ACTION_TARPIT)
            expected.delay_ns = 0;
        return expected;
    }
    struct weir_use use = {.now_ns = world.now_ns, .cost = cost};
    for (uint32_t i = 0; op == WEIR_OP_DECIDE && i < limits[count - 1].end; i++)
        model_charge(&models[i], &use);
    for (uint32_t l = 0; l < count; l++)
        join_steps(&expected, &limits[l], models, op == WEIR_OP_DECIDE ? 0 : cost);
    return expected;
}

static void run_model(const struct limit_model *limits, uint32_t count, uint64_t pause_ns)
{
    static const char *const users[USERS] = {"a", "b", "c"};
    struct model models[USERS][CHECKS];
    uint32_t checks = limits[count - 1].end, seen[WEIR_ACTION_REJECT + 1] = {0};
    struct weir_decision *first = decide(users[0], 0, WEIR_OP_PEEK);
    assert_int_equal(first->count, checks);
    for (int u = 0; u < USERS; u++)
        for (uint32_t i = 0; i < checks; i++)
            model_init(&models[u][i], &first->checks[i].limit->spec);
    weir_engine_release(world.engine, first);
    for (int step = 0; step < STEPS; step++) {
        int u = (int)draw_below(&world.random, USERS);
        uint64_t cost = 1 + draw_below(&world.random, draw_below(&world.random, 8) == 0 ? 60 : 4);
        enum weir_op op = draw_below(&world.random, 8) == 0 ? WEIR_OP_PEEK : WEIR_OP_DECIDE;
        world.now_ns += draw_below(&world.random, 3) == 0 ? draw_below(&world.random, pause_ns) : 0;
        struct expected expected = model_decide(limits, count, models[u], cost, op);
        weir_engine_release(world.engine, decide(users[u], cost, op));
        assert_int_equal(world.answer.allowed, expected.allowed);
        assert_int_equal(world.answer.action, expected.action);
        assert_int_equal(world.answer.delay_ns, expected.delay_ns);
        seen[expected.action]++;
    }
    for (int action = WEIR_ACTION_NONE; action <= WEIR_ACTION_REJECT; action++)
        if (action != WEIR_ACTION_REJECT)
            assert_true(seen[action] > 0);
    for (int u = 0; u < USERS; u++)
        for (uint32_t i = 0; i < checks; i++)
            model_free(&models[u][i]);
}

/* --- Random use ------------------------------------------------------------------------------- */

/* Two limits: the first of the algorithm at hand, the second of two rates. */
TEST("random use takes the steps of the model")
{
    static const struct {
        const char *numbers;
        bool bucket;
        uint32_t rates;
    } cases[] = {
        {"algorithm: fixed_window, rate: 100/min", false, 1},
        {"algorithm: sliding_window, rate: 100/min", false, 1},
        {"algorithm: sliding_window, segments: 6, rate: 100/min", false, 1},
        {"algorithm: sliding_log, rate: 97/min", false, 1},
        {"algorithm: token_bucket, rate: 97/min burst 53", true, 1},
        {"algorithm: gcra, rate: 90/min burst 31", true, 1},
        {"algorithm: leaky_bucket, rate: 7/s burst 60", true, 1},
        {"algorithm: fixed_window, rate: [20/s, 100/min]", false, 2},
        {"algorithm: gcra, rate: [20/s burst 30, 100/min burst 70]", false, 2},
    };
    for (size_t c = 0; c < sizeof cases / sizeof cases[0]; c++) {
        char text[1024];
        snprintf(
            text, sizeof text,
            "limits:\n"
            "- {name: a, key: [user], %s, reject: {tarpit: 2s}, steps: [{at: 31%%, mark: true},"
            " {at: 50%%, delay: %s}, {at: 70%%, delay: 800ms}, {at: 85%%, challenge: true}]}\n"
            "- {name: b, key: [user], algorithm: sliding_log, rate: [80/s, 300/min],"
            " steps: [{at: 60%%, mark: true}, {at: 90%%, delay: 100ms}]}\n",
            cases[c].numbers, cases[c].bucket ? "true" : "20ms");
        uint64_t drain_ns = cases[c].bucket ? 0 : 20000000;
        const struct limit_model limits[2] = {
            {.first = 0,
             .end = cases[c].rates,
             .challenge = 85,
             .steps = {{31, WEIR_ACTION_MARK, 0},
                       {50, WEIR_ACTION_DELAY, drain_ns},
                       {70, WEIR_ACTION_DELAY, 800000000}},
             .tarpit_ns = 2 * SECOND},
            {.first = cases[c].rates,
             .end = cases[c].rates + 2,
             .steps = {{60, WEIR_ACTION_MARK, 0}, {90, WEIR_ACTION_DELAY, 100000000}}},
        };
        open_world(text);
        run_model(limits, 2, 12 * SECOND);
        close_world();
    }
}

/* --- One by one ------------------------------------------------------------------------------- */

TEST("a bucket lets a burst through at its own pace")
{
    open_world("limits: [{name: a, key: [user], algorithm: gcra, rate: 10/s burst 10,\n"
               "          steps: [{at: 40%, delay: true}]}]\n");
    for (int i = 1; i <= 4; i++)
        expect("a", 1, WEIR_ACTION_NONE, 0);
    for (uint64_t i = 1; i <= 6; i++)
        expect("a", 1, WEIR_ACTION_DELAY, i * SECOND / 10);
    expect("a", 1, WEIR_ACTION_REJECT, 0);
    world.now_ns += SECOND / 10;
    expect("a", 1, WEIR_ACTION_DELAY, 6 * SECOND / 10);
    close_world();
}

TEST("only a challenge that alone denies challenges")
{
    open_world("limits: [{name: a, key: [user], rate: 10/h, reject: {status: 403},\n"
               "          steps: [{at: 50%, challenge: true}]}]\n");
    for (int i = 1; i <= 5; i++)
        expect("a", 1, WEIR_ACTION_NONE, 0);
    expect("a", 5, WEIR_ACTION_CHALLENGE, 0);
    assert_null(world.answer.reject);
    expect("a", 6, WEIR_ACTION_REJECT, 0);
    assert_int_equal(world.answer.reject->status, 403);
    close_world();
}

/* Free requests would be denied just so after a challenge, so they are not sent to one. */
TEST("a challenge does not take the denials of an equal scale for its own")
{
    open_world("plans: {free: {}, paid: {}}\n"
               "default_plan: free\n"
               "priority: {from: plan}\n"
               "limits: [{name: a, key: [], rate: 10/h, shed: {free: 50%},\n"
               "          steps: [{at: 50%, challenge: true}]}]\n");
    world.plan = "free";
    for (int i = 1; i <= 5; i++)
        expect("a", 1, WEIR_ACTION_NONE, 0);
    expect("a", 1, WEIR_ACTION_REJECT, 0);
    world.plan = "paid";
    expect("a", 1, WEIR_ACTION_CHALLENGE, 0);
    close_world();
}

/* Of 10 a free request may use 8, and 5 without a challenge; of a bucket of 10 too, where the rest
 * is scaled. */
TEST("what another scale denies anyway is not challenged")
{
    static const char *const algorithms[] = {"fixed_window", "token_bucket"};
    for (int i = 0; i < 2; i++) {
        char text[512];
        snprintf(text, sizeof text,
                 "plans: {free: {}, paid: {}}\n"
                 "default_plan: free\n"
                 "priority: {from: plan}\n"
                 "limits: [{name: a, key: [], rate: 10/h, algorithm: %s, shed: {free: 80%%},\n"
                 "          steps: [{at: 50%%, challenge: true}]}]\n",
                 algorithms[i]);
        open_world(text);
        world.plan = "free";
        expect("a", 5, WEIR_ACTION_NONE, 0);
        expect("a", 3, WEIR_ACTION_CHALLENGE, 0);
        expect("a", 4, WEIR_ACTION_REJECT, 0);
        world.plan = "paid";
        expect("a", 5, WEIR_ACTION_CHALLENGE, 0);
        expect("a", 6, WEIR_ACTION_REJECT, 0);
        close_world();
    }
}

/* At a rate of 50 % a cost weighs twice as much. */
TEST("a peek counts its cost as a scale weighs it")
{
    open_world("adaptive: {c: {algorithm: aimd, max: 10}}\n"
               "limits: [{name: a, key: [user], algorithm: gcra, rate: 10/s burst 10,\n"
               "          adaptive: c, steps: [{at: 40%, mark: true}, {at: 60%, delay: true}]}]\n");
    weir_rules_set_scale(world.rules, 0, 50);
    expect("a", 1, WEIR_ACTION_NONE, 0);
    weir_engine_release(world.engine, decide("a", 1, WEIR_OP_PEEK));
    assert_int_equal(world.answer.action, WEIR_ACTION_MARK);
    weir_engine_release(world.engine, decide("a", 3, WEIR_OP_PEEK));
    assert_int_equal(world.answer.action, WEIR_ACTION_DELAY);
    assert_int_equal(world.answer.delay_ns, 2 * SECOND / 10);
    expect("a", 1, WEIR_ACTION_MARK, 0);
    close_world();
}

TEST("the limit to blame shapes and the strictest denial counts")
{
    open_world("limits:\n"
               "- {name: late, key: [user], rate: 1/min, reject: {tarpit: 3s, status: 403}}\n"
               "- {name: plain, key: [], rate: 2/h}\n");
    expect("a", 1, WEIR_ACTION_NONE, 0);
    expect("a", 1, WEIR_ACTION_TARPIT, 3 * SECOND);
    assert_int_equal(world.answer.reject->status, 403);
    expect("b", 1, WEIR_ACTION_NONE, 0);
    expect("c", 1, WEIR_ACTION_REJECT, 0);
    assert_null(world.answer.reject);
    expect("b", 1, WEIR_ACTION_REJECT, 0); /* both deny, and `plain` for longer */
    assert_null(world.answer.reject);
    close_world();
}

TEST("shadow and unlimited limits take no step")
{
    open_world("limits:\n"
               "- {name: a, key: [], rate: 1/h, shadow: true, steps: [{at: 50%, mark: true}]}\n"
               "- {name: b, key: [], rate: 1/h, enforce: 0%, steps: [{at: 50%, challenge: true}],\n"
               "   reject: {tarpit: 1s}}\n"
               "- {name: c, key: [], rate: unlimited}\n");
    for (int i = 0; i < 3; i++)
        expect("a", 1, WEIR_ACTION_NONE, 0);
    close_world();
}

/* A queue of 10 places: the one that is served, and `burst` behind it. Free requests use six. */
TEST("a queue that sheds keeps its places in order of arrival")
{
    open_world("plans: {free: {}, paid: {}}\n"
               "default_plan: free\n"
               "priority: {from: plan}\n"
               "limits: [{name: a, key: [], algorithm: leaky_bucket, queue: true, rate: 10/s,\n"
               "          burst: 9, shed: {free: 60%}}]\n");
    world.plan = "free";
    for (uint64_t i = 0; i < 6; i++)
        expect("a", 1, WEIR_ACTION_NONE, i * SECOND / 10);
    expect("a", 1, WEIR_ACTION_NONE, 0);
    assert_false(world.answer.allowed);
    assert_int_equal(world.answer.retry_after_ns, SECOND / 10);
    world.plan = "paid";
    for (uint64_t i = 6; i < 10; i++)
        expect("a", 1, WEIR_ACTION_NONE, i * SECOND / 10);
    expect("a", 1, WEIR_ACTION_NONE, 0);
    assert_false(world.answer.allowed);
    world.now_ns +=
        SECOND / 2; /* five places are free again, and the sixth is the first reserved */
    world.plan = "free";
    expect("a", 1, WEIR_ACTION_NONE, SECOND / 2);
    expect("a", 1, WEIR_ACTION_NONE, 0);
    assert_false(world.answer.allowed);
    close_world();
}

static uint64_t counted(uint32_t rule, enum weir_action action)
{
    return weir_counted(&weir_engine_counters(world.engine, rule)->actions[action]);
}

TEST("each limit counts what it does itself")
{
    open_world(
        "plans: {free: {}, paid: {}}\n"
        "default_plan: free\n"
        "priority: {from: plan, classes: [paid, free]}\n"
        "limits:\n"
        "- {name: a, key: [], rate: 4/h, steps: [{at: 50%, mark: true}], shed: {free: 75%}}\n"
        "- {name: b, key: [], rate: 10/h, steps: [{at: 30%, delay: 1s}]}\n"
        "- {name: c, key: [], rate: 1/h, shadow: true, reject: {tarpit: 1s}}\n");
    world.plan = "free";
    expect("a", 1, WEIR_ACTION_NONE, 0);
    expect("a", 1, WEIR_ACTION_MARK, 0);
    expect("a", 1, WEIR_ACTION_DELAY, SECOND);
    weir_engine_release(world.engine, decide("a", 1, WEIR_OP_PEEK));
    expect("a", 1, WEIR_ACTION_REJECT, 0);
    world.plan = "paid";
    expect("a", 1, WEIR_ACTION_DELAY, SECOND);
    expect("a", 1, WEIR_ACTION_REJECT, 0);
    expect("a", 1, WEIR_ACTION_REJECT, 0);
    assert_int_equal(counted(0, WEIR_ACTION_MARK), 3);
    assert_int_equal(counted(0, WEIR_ACTION_REJECT), 3);
    assert_int_equal(counted(1, WEIR_ACTION_DELAY), 2);
    assert_int_equal(counted(1, WEIR_ACTION_REJECT), 0);
    assert_int_equal(counted(2, WEIR_ACTION_TARPIT), 0);
    const struct weir_engine_counters *counters = weir_engine_counters(world.engine, 0);
    assert_int_equal(weir_counted(&counters->class_denied[0]), 2);
    assert_int_equal(weir_counted(&counters->class_denied[1]), 1);
    close_world();
}

RUN_TESTS()
