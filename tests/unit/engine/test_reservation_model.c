/* SPDX-License-Identifier: Apache-2.0 */
/* Requests, reservations, settlements by cost and by outcome, releases, grants, resets, reloads and
 * time, of several keys, in random order, some repeated; over a store whose calls are lost before
 * or after they were done, and processes that die there. After each step every state is what the
 * exact model says: nothing gained, nothing leaked, never better than fresh. */
#include <stdlib.h>
#include <string.h>

#include "core/bytes.h"
#include "draw.h"
#include "engine/open.h"
#include "feature/reserve/engine/reservation.h"
#include "reservation_model.h"
#include "rig.h"
#include "rules/match/key_values.h"
#include "rules/source.h"
#include "table_rig.h"
#include "test.h"

#define MINUTE (60 * SECOND)
#define LIFE (10 * MINUTE)
#define KEYS 3
#define OPEN_MAX 32
#ifdef MODEL_QUICK
#define WORLDS 6
#else
#define WORLDS 60
#endif
#define STEPS 1500

#define LIMITS(window, log, day, quota)                                                            \
    "version: 1\n"                                                                                 \
    "attributes: [l, b]\n"                                                                         \
    "limits:\n"                                                                                    \
    "- {name: window, key: [user], algorithm: fixed_window, rate: " window                         \
    ", cost: 3, debt: 50%}\n"                                                                      \
    "- {name: log, key: [user], algorithm: sliding_log, rate: " log ", debt: 0%,\n"                \
    "   cost: {from: l, max: 9}}\n"                                                                \
    "- {name: bucket, key: [user], algorithm: token_bucket, rate: 60/h, burst: 800,\n"             \
    "   cost: {from: b, max: 9}, refund_on: [5xx], refund_cap: 100%}\n" quota                      \
    "- {name: pair, key: [user], algorithm: fixed_window, rate: [500/h, " day "]}\n"

static const char *const texts[2] = {
    LIMITS("1000/h", "700/h", "4000/d",
           "- {name: quota, key: [user], quota: 400/day, timezone: UTC, rollover: 20%,\n"
           "   refund_on: [500], refund_cap: 10%, debt: 0%}\n"),
    LIMITS("1500/h", "400/h", "3000/d", "")};
/* The rule of each state, by generation. */
static const uint32_t rule_of[2][STATES] = {{0, 1, 2, 3, 4, 4}, {0, 1, 2, 0, 3, 3}};
static const char *const users[KEYS] = {"ada", "bob", "eve"};

struct open_reservation {
    char token[WEIR_RESERVATION_TEXT_MAX];
    size_t size;
    struct charged charged;
    uint64_t ends_at_ns;
    int key;
    bool settled;
};

/* What becomes of the submit that the fuse has reached. */
enum fault { NO_FAULT, LOST_BEFORE, LOST_AFTER, DIES_BEFORE, DIES_AFTER, FAULTS };

static struct {
    struct weir_store store; /* of the engine: comes before the table's */
    struct weir_store *inner;
    struct weir_table *table;
    struct weir_engine *engine;
    struct weir_rules *rules[2];
    struct weir_decision *done, *lost;
    struct account accounts[KEYS];
    struct open_reservation open[OPEN_MAX];
    uint64_t now_ns, random, engines;
    uint32_t open_count, fuse; /* submits until the fault */
    enum fault fault;
    bool blown;
    int generation;
} world;

static uint64_t counted[FAULTS], settlements, repetitions, capped, partly, debts, operations, mixed;

static uint64_t draw(uint64_t below)
{
    return draw_below(&world.random, below);
}

static const struct generation *rules_now(void)
{
    return &generations[world.generation];
}

/* --- The store -------------------------------------------------------------------------------- */

static int store_prepare(struct weir_store *store, struct weir_limit *limit,
                         struct weir_reason *reason)
{
    return world.inner->ops->prepare(world.inner, limit, reason);
}

static size_t store_submit(struct weir_store *store, uint64_t now_ns,
                           struct weir_decision *const *decisions, size_t count)
{
    assert_int_equal(count, 1);
    if (world.fault == NO_FAULT || world.fuse-- > 0)
        return world.inner->ops->submit(world.inner, now_ns, decisions, count);
    if (world.fault == LOST_AFTER || world.fault == DIES_AFTER)
        world.inner->ops->submit(world.inner, now_ns, decisions, count);
    decisions[0]->verdict = WEIR_PENDING;
    world.lost = decisions[0];
    world.blown = true;
    return 1;
}

static void store_cancel(struct weir_store *store, struct weir_decision *decision)
{
}

static const struct weir_store_ops store_ops = {
    .name = "faulty", .prepare = store_prepare, .submit = store_submit, .cancel = store_cancel};

/* --- The engine ------------------------------------------------------------------------------- */

static void done(void *context, struct weir_decision *decision)
{
    world.done = decision;
}

static void open_engine(void)
{
    const struct weir_engine_options options = {.store = &world.store,
                                                .rules = world.rules[world.generation],
                                                .secret = weir_table_secret(world.table),
                                                .decisions = 4,
                                                .lease_seed = ++world.engines << 32,
                                                .done = done};
    assert_int_equal(weir_engine_open(&world.engine, &options), 0);
}

static void open_world(uint64_t seed)
{
    memset(&world, 0, sizeof world);
    world.store.ops = &store_ops;
    world.random = 88172645463325252 * seed;
    world.now_ns = START / DAY_NS * DAY_NS;
    world.table = rig_table(4 << 20);
    world.inner = rig_embedded(world.table);
    for (int i = 0; i < 2; i++) {
        world.rules[i] = rig_rules(texts[i]);
        rig_prepare(world.rules[i], &world.store);
    }
    for (int i = 0; i < KEYS; i++)
        account_open(&world.accounts[i], world.now_ns);
    world.now_ns += draw(24) * HOUR_NS;
    open_engine();
}

static void close_world(void)
{
    weir_engine_close(world.engine);
    world.inner->ops->close(world.inner);
    for (int i = 0; i < 2; i++)
        weir_rules_unref(world.rules[i]);
    for (int i = 0; i < KEYS; i++)
        account_close(&world.accounts[i]);
    weir_table_close(world.table);
}

static uint16_t cost_source(const char *name)
{
    int attribute = weir_rules_cost_source(world.rules[world.generation], weir_bytes_of(name));
    assert_true(attribute >= 0);
    return (uint16_t)attribute;
}

static struct weir_decision *ask(int key, const struct charged *price)
{
    static const char *const digits[10] = {"0", "1", "2", "3", "4", "5", "6", "7", "8", "9"};
    struct weir_request request;
    struct weir_reason reason;
    struct weir_decision *d = weir_engine_take(world.engine);
    assert_non_null(d);
    weir_request_clear(&request, weir_rules_attribute_count(world.rules[world.generation]));
    request.values[WEIR_ATTR_USER] = weir_bytes_of(users[key]);
    request.cost = price->estimate;
    weir_request_put_cost(&request, cost_source("l"), weir_bytes_of(digits[price->unit[LOG]]));
    weir_request_put_cost(&request, cost_source("b"), weir_bytes_of(digits[price->unit[BUCKET]]));
    assert_int_equal(weir_engine_apply_rules(world.engine, d, &request, &reason), 0);
    return d;
}

/* Returns the decision, or NULL: the process died, another has been started. */
static struct weir_decision *run(struct weir_decision *d)
{
    world.done = world.lost = NULL;
    weir_engine_queue(world.engine, d);
    weir_engine_run(world.engine, world.now_ns);
    if (world.lost != NULL && world.fault >= DIES_BEFORE) {
        weir_engine_close(world.engine);
        open_engine();
        return NULL;
    }
    if (world.lost != NULL) {
        world.store.done(world.store.done_context, world.lost, WEIR_ERR_STORE);
        weir_engine_run(world.engine, world.now_ns);
    }
    assert_ptr_equal(world.done, d);
    return d;
}

/* Of what comes next, the submit number `draw(steps)` may go wrong. Returns how many submits are
 * done: those before the fault, and the one that was lost on its way back. */
static void set_fault(uint32_t steps)
{
    world.fault = draw(4) == 0 ? (enum fault)draw(FAULTS) : NO_FAULT;
    world.fuse = (uint32_t)draw(steps);
    world.blown = false;
}

static void end_fault(void)
{
    counted[world.blown ? world.fault : NO_FAULT]++;
    world.fault = NO_FAULT;
}

/* Whether the submit `number` of those since set_fault would have been done. */
static bool was_done(uint32_t number, uint32_t fuse, enum fault fault)
{
    return fault == NO_FAULT || number < fuse ||
           (number == fuse && (fault == LOST_AFTER || fault == DIES_AFTER));
}

static bool went_on(uint32_t number, uint32_t fuse, enum fault fault)
{
    return fault == NO_FAULT || number < fuse;
}

/* --- Steps ------------------------------------------------------------------------------------ */

static void reserve(int key)
{
    struct account *account = &world.accounts[key];
    struct open_reservation *r = &world.open[world.open_count];
    uint64_t cost = 1 + draw(draw(2) ? 20 : 150), life_ns, id;
    struct charged price =
        account_price(cost, draw(3) ? 1 : 1 + draw(4), draw(3) ? 1 : 1 + draw(4));
    struct weir_decision *d = ask(key, &price);
    bool admitted = account_admits(account, rules_now(), world.now_ns, &price);
    assert_int_equal(weir_engine_apply_reservation(world.engine, d, cost, LIFE, NULL), 0);
    set_fault(1);
    bool charged = admitted && was_done(0, world.fuse, world.fault);
    bool known = went_on(0, world.fuse, world.fault);
    d = run(d);
    end_fault();
    price.at_ns = world.now_ns;
    if (charged)
        account_charge(account, rules_now(), world.now_ns, &price);
    *r = (struct open_reservation){.key = key, .charged = price};
    if (d == NULL)
        return;
    assert_int_equal(d->verdict == WEIR_ALLOWED, admitted || !known);
    if (d->verdict == WEIR_ALLOWED) {
        if (!known) /* on_store_error: what it may have charged is given back by no caller */
            memset(r->charged.has, 0, sizeof r->charged.has);
        r->size = weir_engine_reservation(world.engine, d, world.now_ns, &life_ns, &id, r->token);
        r->ends_at_ns = world.now_ns + life_ns;
        world.open_count++;
    }
    weir_engine_release(world.engine, d);
}

/* What the model says of a settlement, of which submits are done as the fault says. Returns the
 * number of the submit that made the record; UINT32_MAX: none did. */
static uint32_t model_settle(struct open_reservation *r, const struct weir_settle *truth,
                             uint32_t fuse, enum fault fault)
{
    struct account *account = &world.accounts[r->key];
    const struct charged *c = &r->charged;
    bool first = was_done(0, fuse, fault), goes_on = went_on(0, fuse, fault);
    bool second = goes_on && was_done(1, fuse, fault);
    if (!first)
        return UINT32_MAX;
    if (truth->how == WEIR_SETTLE_STATUS && truth->status == 500) {
        unsigned wanted = account_outcome_capped(rules_now(), c);
        unsigned given = account_outcome_admits(account, world.now_ns, c, wanted);
        bool third = went_on(1, fuse, fault) && was_done(2, fuse, fault);
        if (given != wanted) { /* again, without those whose caps have denied */
            capped++;
            partly += given != 0;
            if (!second)
                return UINT32_MAX;
        }
        account_outcome_charge(account, world.now_ns, c, given);
        account_outcome_return(account, world.now_ns, c, given, given == wanted ? !second : !third);
        return given != wanted;
    } else if (truth->how == WEIR_SETTLE_COST && truth->cost > c->estimate) {
        debts++;
        account_debit(account, rules_now(), world.now_ns, c, truth->cost);
    } else if (truth->how != WEIR_SETTLE_STATUS && truth->cost < c->estimate) {
        account_return(account, rules_now(), world.now_ns, c, truth->cost, !second);
    }
    return 0;
}

/* By costs of their own for LOG and BUCKET (`said`, a set), perhaps with an outcome. */
struct truth {
    uint64_t unit[STATES];
    unsigned said;
};

/* Whether a settlement corrects something upwards, or downwards. */
static bool corrects(const struct charged *c, const struct truth *truth, bool up)
{
    for (int i = 0; i < STATES; i++) {
        bool here = c->has[i] && c->estimate > 0 && (truth->said >> i & 1) != 0;
        if (here && rules_now()->has[i] &&
            (up ? truth->unit[i] > c->unit[i] : truth->unit[i] < c->unit[i]))
            return true;
    }
    return false;
}

/* What is given back at last, by the submit `number`. */
static void model_back(struct open_reservation *r, const struct truth *truth, unsigned given,
                       bool done)
{
    struct account *account = &world.accounts[r->key];
    if (done)
        account_correct(account, rules_now(), world.now_ns, &r->charged, truth->unit, truth->said,
                        false);
    account_outcome_return(account, world.now_ns, &r->charged, given, !done);
}

/* As model_settle, by costs: the debits with the record, then the caps, then what goes back. */
static uint32_t model_costs(struct open_reservation *r, const struct truth *truth, uint32_t status,
                            uint32_t fuse, enum fault fault)
{
    struct account *account = &world.accounts[r->key];
    const struct charged *c = &r->charged;
    bool up = corrects(c, truth, true), down = corrects(c, truth, false);
    unsigned wanted = status == 500 ? account_outcome_capped(rules_now(), c) & ~truth->said : 0;
    unsigned given = account_outcome_admits(account, world.now_ns, c, wanted);
    uint32_t n = 0, record = UINT32_MAX;
    if (up) {
        if (!was_done(0, fuse, fault))
            return UINT32_MAX;
        account_correct(account, rules_now(), world.now_ns, c, truth->unit, truth->said, true);
        record = 0;
        mixed += down;
        if (!went_on(n++, fuse, fault))
            return record;
    }
    if (given != wanted) { /* denied: nothing is done */
        capped++;
        if (!went_on(n++, fuse, fault))
            return record;
    }
    if (!up || given != 0) { /* the caps, where nothing was debited with the record */
        if (!was_done(n, fuse, fault))
            return record;
        account_outcome_charge(account, world.now_ns, c, given);
        if (!up)
            record = n;
        if (!went_on(n++, fuse, fault))
            return account_outcome_return(account, world.now_ns, c, given, true), record;
    }
    model_back(r, truth, given, was_done(n, fuse, fault));
    return record;
}

/* One that has charged nothing leaves no record: it is settled anew each time, which does nothing.
 */
static bool has_record(const struct open_reservation *r)
{
    bool charged = false;
    for (size_t i = 0; i < sizeof r->charged.has / sizeof r->charged.has[0]; i++)
        charged = charged || r->charged.has[i];
    return r->settled && charged;
}

static void name_costs(struct weir_settle *truth, const struct truth *costs,
                       struct weir_true_cost named[2])
{
    truth->true_costs = named;
    truth->status = draw(2) ? truth->status : 0;
    if ((costs->said >> LOG & 1) != 0)
        named[truth->true_count++] = (struct weir_true_cost){cost_source("l"), costs->unit[LOG]};
    if ((costs->said >> BUCKET & 1) != 0)
        named[truth->true_count++] = (struct weir_true_cost){cost_source("b"), costs->unit[BUCKET]};
}

static void settle(struct open_reservation *r)
{
    struct weir_settled settled;
    struct weir_settle truth = {.how = (uint8_t)draw(4), .status = draw(3) ? 500 : 200};
    struct truth costs = {.unit = {[LOG] = draw(6), [BUCKET] = draw(6)},
                          .said = (draw(2) ? 1U << LOG : 0) | (draw(2) ? 1U << BUCKET : 0)};
    struct weir_true_cost named[2];
    struct weir_bytes token = {r->token, r->size};
    bool late = world.now_ns >= r->ends_at_ns, was_settled = has_record(r);
    if (truth.how == WEIR_SETTLE_COST)
        truth.cost = draw(4) == 0 ? draw(2000) : draw(2 * r->charged.estimate + 1);
    if (truth.how == WEIR_SETTLE_COSTS)
        name_costs(&truth, &costs, named);
    struct weir_decision *d = weir_engine_take(world.engine);
    int err = weir_engine_apply_settle(world.engine, d, token, &truth, world.now_ns);
    if (late && truth.how != WEIR_SETTLE_RELEASE) {
        assert_int_equal(err, WEIR_ERR_NOT_FOUND);
        weir_engine_release(world.engine, d);
        return;
    }
    assert_int_equal(err, 0);
    set_fault(truth.how == WEIR_SETTLE_COSTS ? 5 : 3);
    uint32_t fuse = world.fuse, record = UINT32_MAX;
    enum fault fault = world.fault;
    if (!was_settled)
        record = truth.how == WEIR_SETTLE_COSTS ? model_costs(r, &costs, truth.status, fuse, fault)
                                                : model_settle(r, &truth, fuse, fault);
    r->settled = r->settled || record != UINT32_MAX;
    d = run(d);
    bool lost = world.blown;
    end_fault();
    settlements++;
    repetitions += was_settled;
    if (d == NULL)
        return;
    weir_engine_settled(d, &settled);
    assert_int_equal(settled.failed || settled.kept, lost);
    if (!lost)
        assert_int_equal(settled.repeated, was_settled);
    if (settled.kept) /* read only where it is so */
        assert_true(r->settled && !was_settled);
    weir_engine_release(world.engine, d);
}

/* All checks of a rule, as the admin listener and `weir grant` have them. */
static void operate(int key, bool reset)
{
    struct account *account = &world.accounts[key];
    struct weir_key_values values = {.values = {{users[key], strlen(users[key])}}, .count = 1};
    struct weir_reason reason;
    int state = (int)draw(STATES);
    uint64_t units = 1 + draw(draw(4) ? 50 : 2000);
    if (!rules_now()->has[state] || (!reset && state == LOG))
        return;
    struct weir_decision *d = weir_engine_take(world.engine);
    assert_int_equal(
        weir_engine_apply_key(world.engine, d, rule_of[world.generation][state], &values, &reason),
        0);
    bool pair = state == PAIR_HOUR || state == PAIR_DAY;
    assert_int_equal(d->count, pair ? 2 : 1);
    for (uint16_t i = 0; i < d->count; i++)
        d->checks[i].cost = units;
    d->op = reset ? WEIR_OP_RESET : WEIR_OP_REFUND;
    d->charged_at_ns = world.now_ns;
    set_fault(1);
    bool did = was_done(0, world.fuse, world.fault);
    d = run(d);
    end_fault();
    if (d != NULL)
        weir_engine_release(world.engine, d);
    for (int i = pair ? PAIR_HOUR : state; did && i <= (pair ? PAIR_DAY : state); i++)
        if (reset)
            account_reset(account, i, world.now_ns);
        else
            account_grant(account, i, world.now_ns, units);
    operations += did;
}

static void reload(void)
{
    world.generation = !world.generation;
    assert_int_equal(weir_engine_set_rules(world.engine, world.rules[world.generation]), 0);
    for (int i = 0; i < KEYS; i++)
        account_reload(&world.accounts[i], world.generation);
}

static void pass_time(void)
{
    world.now_ns += draw(50) == 0 ? draw(30) * HOUR_NS : draw(6) * MINUTE;
    /* The server has released by now what was not settled, or it has died and cannot. */
    for (uint32_t i = world.open_count; i > 0; i--)
        if (world.open[i - 1].ends_at_ns + LIFE < world.now_ns)
            world.open[i - 1] = world.open[--world.open_count];
}

/* --- Comparing -------------------------------------------------------------------------------- */

static void compare(int key)
{
    const struct account *account = &world.accounts[key];
    const struct charged nothing = account_price(0, 0, 0);
    struct weir_decision *d = ask(key, &nothing);
    uint64_t least, most;
    uint16_t at = 0;
    d->op = WEIR_OP_PEEK;
    assert_non_null(run(d));
    for (int i = 0; i < STATES; i++) {
        struct weir_report report;
        if (!rules_now()->has[i])
            continue;
        weir_decision_report(d, at++, &report);
        assert_int_equal(report.remaining, account_remaining(account, i, world.now_ns));
        assert_true(report.remaining <= report.limit);
        assert_true(report.limit <= account_capacity(account, i));
        if (i != WINDOW)
            continue;
        account_bounds(account, world.now_ns, &least, &most);
        assert_true(report.remaining + least <= report.limit || report.remaining == 0);
        assert_true(report.remaining + most >= report.limit);
    }
    assert_int_equal(at, d->count);
    weir_engine_release(world.engine, d);
}

static void step(void)
{
    int key = (int)draw(KEYS);
    uint64_t what = draw(40);
    if (what < 15 && world.open_count < OPEN_MAX)
        reserve(key);
    else if (what < 31 && world.open_count > 0)
        settle(&world.open[draw(world.open_count)]);
    else if (what < 34)
        operate(key, what == 33 && draw(4) == 0);
    else if (what == 34)
        reload();
    else
        pass_time();
}

TEST("in any order over any fault states are what the model says")
{
    for (uint64_t seed = 1; seed <= WORLDS; seed++) {
        open_world(seed);
        for (int i = 0; i < STEPS; i++) {
            step();
            for (int key = 0; key < KEYS; key++)
                compare(key);
        }
        close_world();
    }
    for (int i = 0; i < FAULTS; i++)
        assert_true(counted[i] > 20 * WORLDS);
    assert_true(settlements > 300 * WORLDS && repetitions > 50 * WORLDS && debts > 20 * WORLDS);
    assert_true(mixed > WORLDS);
    assert_true(capped > WORLDS && partly > 0 && operations > 50 * WORLDS);
}

RUN_TESTS()
