/* SPDX-License-Identifier: Apache-2.0 */
/* server/envoy/quota: clients that behave as Envoy does, in virtual time, over states of the core.
 *
 * The bound is checked by the algorithm itself: fed with what was admitted alone, in its order, it
 * would have admitted every request. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "draw.h"
#include "feature/envoy/server/quota/assign.h"
#include "test.h"

#define MS UINT64_C(1000000)
#define STEP_MS 10
/* A letter is applied with the next step. */
#define DELAY_MAX_MS (WEIR_QUOTA_LATE_MS - STEP_MS)
#define CLIENTS_MAX 20
#define NODES_MAX 2

/* --- Envoy ------------------------------------------------------------------------------------
 * One bucket of one Envoy, as its global_client_impl.cc keeps it: an equal assignment prolongs the
 * token bucket, a changed one replaces it by a full one, an expired one denies (DENY_ALL is
 * configured). */

struct letter { /* an assignment on its way */
    uint64_t due_ms;
    bool deny;
    uint32_t max_tokens, per_fill, ttl_s;
};
#define LETTERS 64

struct envoy {
    struct weir_quota_stream *stream;
    unsigned node; /* of weir, that it is connected to */
    bool assigned, deny;
    uint32_t max_tokens, per_fill;
    double tokens;
    uint64_t filled_ms, expires_ms, report_ms, reported_ms;
    uint64_t allowed, denied; /* since the last report */
    uint64_t wanted, admitted;
    struct letter letters[LETTERS];
    unsigned first, count;
    uint64_t last_due_ms;
    double rate; /* requests a second that come */
    double pending;
};

static void envoy_apply(struct envoy *envoy, const struct letter *letter, uint64_t now_ms)
{
    bool equal = envoy->assigned && !envoy->deny && !letter->deny &&
                 envoy->max_tokens == letter->max_tokens && envoy->per_fill == letter->per_fill;
    if (!equal) {
        envoy->tokens = letter->max_tokens;
        envoy->filled_ms = now_ms;
    }
    envoy->assigned = true;
    envoy->deny = letter->deny;
    envoy->max_tokens = letter->max_tokens;
    envoy->per_fill = letter->per_fill;
    envoy->expires_ms = now_ms + letter->ttl_s * 1000;
}

static void envoy_step(struct envoy *envoy, uint64_t now_ms)
{
    while (envoy->count && envoy->letters[envoy->first].due_ms <= now_ms) {
        envoy_apply(envoy, &envoy->letters[envoy->first], now_ms);
        envoy->first = (envoy->first + 1) % LETTERS;
        envoy->count--;
    }
    if (envoy->assigned && now_ms >= envoy->expires_ms)
        envoy->assigned = false;
}

static bool envoy_admits(struct envoy *envoy, uint64_t now_ms)
{
    if (!envoy->assigned || envoy->deny)
        return false;
    envoy->tokens +=
        (double)(now_ms - envoy->filled_ms) * envoy->per_fill / (double)WEIR_QUOTA_FILL_MS;
    envoy->filled_ms = now_ms;
    if (envoy->tokens > envoy->max_tokens)
        envoy->tokens = envoy->max_tokens;
    if (envoy->tokens < 1)
        return false;
    envoy->tokens -= 1;
    return true;
}

/* --- A world ---------------------------------------------------------------------------------- */

struct state {
    struct weir_limit limit;
    uint64_t words[512], oracle[512]; /* what was charged; what was admitted */
};

/* A call to the store: it is executed, and answered, when its time comes, or neither. */
struct call {
    struct weir_quota_bucket *bucket; /* NULL: its stream has gone */
    uint64_t asked_ms, due_ms, answer_ms, store_ns;
    bool used, charges, executed, charged, lost, lost_after;
    uint64_t costs[2], peeked_ns;
    struct weir_report reports[2];
};
#define CALLS_MAX 64

struct world {
    uint64_t random, now_ms, offset_ms;
    struct weir_quota *quotas[NODES_MAX];
    unsigned nodes, groups; /* of clients, by their ids; all meet the same limits */
    /* The store: of another clock, if it is not the table; a call takes so long each way at most,
     * and one in `lose` is lost before it is executed or after. */
    bool remote, answers_late; /* executed at once, and then answered late */
    unsigned call_ms, lose;
    int drift; /* thousandths that its clock runs faster */
    struct call calls[CALLS_MAX];
    uint64_t late, dropped; /* charges whose answers were; those that had none */
    struct envoy envoys[CLIENTS_MAX];
    unsigned clients, report_ms, delay_least_ms, delay_ms, chaos;
    struct state states[2];
    unsigned limits;
    double direct_rate, direct_pending; /* decisions beside the assignments, a second */
    uint64_t admitted, direct, sent, lost, restarts;
};

/* By the clock of the store. */
static uint64_t now_ns(const struct world *world)
{
    uint64_t now_ms = world->now_ms + world->offset_ms;
    return now_ms * MS + (uint64_t)((int64_t)(world->now_ms % 1000000000 * 1000) * world->drift);
}

static void state_open(struct state *state, struct weir_limit_spec spec)
{
    memset(state, 0, sizeof *state);
    assert_int_equal(weir_limit_init(&state->limit, &spec, NULL), 0);
    assert_true(state->limit.span_words <= 512);
}

/* All limits, or none. */
static bool states_charge(struct world *world, const uint64_t *costs)
{
    struct weir_report report;
    for (unsigned i = 0; i < world->limits; i++) {
        uint64_t copy[512];
        struct weir_use use = {.now_ns = now_ns(world), .cost = costs[i]};
        memcpy(copy, world->states[i].words, sizeof copy);
        if (!weir_decide(&world->states[i].limit, copy, &use, &report, NULL))
            return false;
    }
    for (unsigned i = 0; i < world->limits; i++) {
        struct weir_use use = {.now_ns = now_ns(world), .cost = costs[i]};
        assert_true(weir_decide(&world->states[i].limit, world->states[i].words, &use, NULL, NULL));
    }
    return true;
}

/* A request was admitted: the algorithms, fed with admissions alone, admit it too. */
static void world_admit(struct world *world)
{
    for (unsigned i = 0; i < world->limits; i++) {
        struct weir_use use = {.now_ns = now_ns(world), .cost = 1};
        assert_true(
            weir_decide(&world->states[i].limit, world->states[i].oracle, &use, NULL, NULL));
    }
    world->admitted++;
}

/* --- The store -------------------------------------------------------------------------------- */

static uint64_t call_delay(struct world *world)
{
    return world->call_ms ? draw_below(&world->random, world->call_ms + 1) : 0;
}

/* Peeks, or charges where there are costs. */
static void call_begin(struct world *world, struct weir_quota_bucket *bucket, const uint64_t *costs,
                       uint64_t peeked_ns)
{
    struct call *call = world->calls;
    while (call->used)
        assert_true(++call < world->calls + CALLS_MAX);
    *call = (struct call){.bucket = bucket,
                          .used = true,
                          .charges = costs != NULL,
                          .peeked_ns = peeked_ns,
                          .asked_ms = world->now_ms};
    if (costs)
        memcpy(call->costs, costs, sizeof call->costs);
    call->due_ms = world->now_ms + (world->answers_late ? 0 : call_delay(world));
    call->answer_ms = call->due_ms + (world->answers_late ? world->call_ms : call_delay(world));
    bool lost = world->lose && draw_below(&world->random, world->lose) == 0;
    call->lost = lost && draw_below(&world->random, 2);
    call->lost_after = lost && !call->lost;
}

static void call_execute(struct world *world, struct call *call)
{
    call->executed = true;
    call->store_ns = now_ns(world);
    if (call->lost)
        return;
    if (call->charges)
        call->charged = states_charge(world, call->costs);
    for (unsigned i = 0; i < world->limits && !call->charges; i++) {
        uint64_t copy[512];
        struct weir_use use = {.now_ns = call->store_ns, .cost = 0};
        memcpy(copy, world->states[i].words, sizeof copy);
        weir_decide(&world->states[i].limit, copy, &use, &call->reports[i], NULL);
    }
}

static void charge_answered(struct world *world, const struct call *call)
{
    bool answered = !call->lost && !call->lost_after, holds = call->charged && answered;
    for (unsigned i = 0; i < world->limits; i++)
        holds &= weir_quota_holds(&world->states[i].limit, call->peeked_ns, call->store_ns);
    world->dropped += call->charged && !answered;
    weir_quota_charged(call->bucket, holds, world->now_ms);
    world->late += holds && call->bucket->stage != WEIR_QUOTA_READY;
    assert_true(world->remote || holds);
}

static void peek_answered(struct world *world, const struct call *call)
{
    const struct weir_quota_moment moment = {call->store_ns, call->asked_ms * MS,
                                             world->remote ? WEIR_QUOTA_DRIFT_MS : 0};
    struct weir_quota_supply supplies[2];
    uint64_t costs[2] = {0};
    bool answered = !call->lost && !call->lost_after;
    for (unsigned i = 0; i < world->limits; i++)
        supplies[i] = weir_quota_supply_of(&world->states[i].limit, &call->reports[i], 1, &moment);
    if (weir_quota_peeked(call->bucket, answered ? WEIR_QUOTA_SUPPLIES : WEIR_QUOTA_NO_ANSWER,
                          supplies, world->limits, world->now_ms, costs))
        call_begin(world, call->bucket, costs, call->store_ns);
}

static void call_answer(struct world *world, struct call *call)
{
    struct call answered = *call;
    call->used = false;
    if (!answered.bucket)
        world->dropped += answered.charged;
    else if (answered.charges)
        charge_answered(world, &answered);
    else
        peek_answered(world, &answered);
}

/* Continues the calls whose time has come, also with those that their answers begin. */
static void world_calls(struct world *world)
{
    bool any = true;
    while (any) {
        any = false;
        for (struct call *call = world->calls; call < world->calls + CALLS_MAX; call++) {
            if (!call->used || (call->executed ? call->answer_ms : call->due_ms) > world->now_ms)
                continue;
            any = true;
            if (call->executed)
                call_answer(world, call);
            else
                call_execute(world, call);
        }
    }
}

static void calls_forget(struct world *world, const struct envoy *envoy)
{
    for (struct call *call = world->calls; call < world->calls + CALLS_MAX; call++)
        if (call->used && call->bucket && call->bucket->stream == envoy->stream)
            call->bucket = NULL;
}

/* --- weir ------------------------------------------------------------------------------------- */

static void world_send(struct world *world, struct envoy *envoy)
{
    struct weir_quota_bucket *bucket;
    uint32_t late = 0;
    while ((bucket = weir_quota_take(envoy->stream, world->now_ms, &late))) {
        const struct weir_quota_plan *plan = &bucket->plan;
        if (bucket->action == WEIR_GRPC_QUOTA_ABANDON) {
            weir_quota_forget(bucket);
            continue;
        }
        bool tokens = bucket->action == WEIR_GRPC_QUOTA_TOKENS;
        assert_true(!tokens || world->now_ms <= bucket->planned_ms + WEIR_QUOTA_CHARGE_MS);
        world->sent++;
        assert_true(envoy->count < LETTERS);
        uint64_t due_ms = world->now_ms + world->delay_least_ms;
        due_ms += draw_below(&world->random, world->delay_ms - world->delay_least_ms + 1);
        if (due_ms > bucket->planned_ms + DELAY_MAX_MS)
            due_ms = bucket->planned_ms + DELAY_MAX_MS;
        if (due_ms < envoy->last_due_ms)
            due_ms = envoy->last_due_ms;
        envoy->last_due_ms = due_ms;
        envoy->letters[(envoy->first + envoy->count++) % LETTERS] =
            (struct letter){due_ms, bucket->action == WEIR_GRPC_QUOTA_DENY_ALL,
                            plan->share.max_tokens, plan->share.per_fill, plan->ttl_s};
    }
}

static void world_serve(struct world *world, struct envoy *envoy)
{
    struct weir_quota_bucket *bucket;
    bool waits;
    while ((bucket = weir_quota_begin(envoy->stream, world->now_ms, &waits)))
        if (bucket->stage == WEIR_QUOTA_PEEKS)
            call_begin(world, bucket, NULL, 0);
    world_calls(world);
    world_send(world, envoy);
}

static void world_report(struct world *world, struct envoy *envoy)
{
    const uint64_t hash[2] = {7, (uint64_t)(envoy - world->envoys) % world->groups};
    uint64_t elapsed_s = envoy->reported_ms ? (world->now_ms - envoy->reported_ms) / 1000 : 0;
    const struct weir_quota_use use = {envoy->allowed + envoy->denied, elapsed_s};
    const struct weir_bytes id = {"id", 2};
    assert_int_equal(weir_quota_report(envoy->stream, hash, id, &use, world->now_ms), 0);
    envoy->allowed = envoy->denied = 0;
    envoy->reported_ms = world->now_ms;
    envoy->report_ms = world->now_ms + world->report_ms;
}

/* A stream that breaks, with or without the Envoy behind it. */
static void world_break(struct world *world, struct envoy *envoy)
{
    calls_forget(world, envoy);
    weir_quota_stream_close(envoy->stream);
    envoy->stream = weir_quota_stream_open(world->quotas[envoy->node]);
    assert_non_null(envoy->stream);
    if (draw_below(&world->random, 2)) {
        envoy->assigned = false;
        envoy->count = 0;
    }
    envoy->report_ms = world->now_ms;
    world->lost++;
}

/* weir restarts, and its states are kept, as in a handover: it knows no stream and no assignment,
 * and the Envoys go on with theirs. */
static void world_restart(struct world *world)
{
    for (unsigned i = 0; i < world->clients; i++)
        calls_forget(world, &world->envoys[i]);
    for (unsigned i = 0; i < world->nodes; i++) {
        weir_quota_close(world->quotas[i]);
        assert_int_equal(weir_quota_open(&world->quotas[i], world->clients, world->clients), 0);
    }
    for (unsigned i = 0; i < world->clients; i++) {
        world->envoys[i].stream = weir_quota_stream_open(world->quotas[world->envoys[i].node]);
        assert_non_null(world->envoys[i].stream);
    }
    world->restarts++;
}

/* Decisions of other front ends. */
static void world_direct(struct world *world)
{
    uint64_t ones[2] = {1, 1};
    world->direct_pending += world->direct_rate * STEP_MS / 1000;
    for (; world->direct_pending >= 1 && states_charge(world, ones); world->direct_pending -= 1) {
        world->direct++;
        world_admit(world);
    }
    if (world->direct_pending >= 1) /* what is denied is not tried again */
        world->direct_pending = 0;
}

static void world_step(struct world *world)
{
    world_direct(world);
    for (unsigned i = 0; i < world->clients; i++) {
        struct envoy *envoy = &world->envoys[i];
        if (world->chaos && draw_below(&world->random, world->chaos) == 0)
            world_break(world, envoy);
        envoy_step(envoy, world->now_ms);
        envoy->pending += envoy->rate * STEP_MS / 1000;
        for (; envoy->pending >= 1; envoy->pending -= 1) {
            bool admitted = envoy_admits(envoy, world->now_ms);
            envoy->wanted++;
            envoy->admitted += admitted;
            if (admitted) {
                envoy->allowed++;
                world_admit(world);
            } else {
                envoy->denied++;
            }
        }
        if (world->now_ms >= envoy->report_ms)
            world_report(world, envoy);
        bool tick = world->now_ms % 250 == 0;
        if (tick || world->remote)
            world_serve(world, envoy);
    }
    world->now_ms += STEP_MS;
}

/* Every `nodes`-th client is one of the same node. */
static struct world world_open_nodes(uint64_t seed, unsigned clients, unsigned nodes)
{
    struct world world = {.random = seed,
                          .clients = clients,
                          .nodes = nodes,
                          .groups = 1,
                          .report_ms = 1000,
                          .now_ms = 1700000000000};
    for (unsigned i = 0; i < nodes; i++)
        assert_int_equal(weir_quota_open(&world.quotas[i], clients, clients), 0);
    for (unsigned i = 0; i < clients; i++) {
        world.envoys[i].node = i % nodes;
        world.envoys[i].stream = weir_quota_stream_open(world.quotas[i % nodes]);
        world.envoys[i].report_ms = world.now_ms + i * 50;
        assert_non_null(world.envoys[i].stream);
    }
    return world;
}

static struct world world_open(uint64_t seed, unsigned clients)
{
    return world_open_nodes(seed, clients, 1);
}

static void world_close(struct world *world)
{
    for (unsigned i = 0; i < world->nodes; i++)
        weir_quota_close(world->quotas[i]);
}

static void world_run(struct world *world, unsigned seconds)
{
    for (unsigned i = 0; i < seconds * (1000 / STEP_MS); i++)
        world_step(world);
}

static const struct weir_limit_spec window = {
    .algorithm = WEIR_FIXED_WINDOW, .rate = 6000, .window_ns = 60000 * MS};
static const struct weir_limit_spec sliding = {
    .algorithm = WEIR_SLIDING_WINDOW, .rate = 3000, .window_ns = 60000 * MS};
static const struct weir_limit_spec segments = {
    .algorithm = WEIR_SLIDING_WINDOW, .rate = 3000, .window_ns = 120000 * MS, .segments = 4};
static const struct weir_limit_spec bucket = {
    .algorithm = WEIR_GCRA, .rate = 6000, .window_ns = 60000 * MS, .burst = 3000};
static const struct weir_limit_spec sliding_hour = {
    .algorithm = WEIR_SLIDING_WINDOW, .rate = 360000, .window_ns = 3600000 * MS};
static const struct weir_limit_spec slow = {
    .algorithm = WEIR_TOKEN_BUCKET, .rate = 20, .window_ns = 60000 * MS, .burst = 20};

/* --- Tests ------------------------------------------------------------------------------------ */

/* What random worlds have seen. */
struct sum {
    uint64_t admitted, direct, lost, restarts, late, dropped;
};

static void add(struct sum *sum, const struct world *world)
{
    sum->admitted += world->admitted, sum->direct += world->direct;
    sum->lost += world->lost, sum->restarts += world->restarts;
    sum->late += world->late, sum->dropped += world->dropped;
}

/* A random world: delays up to what a PING bounds, streams that break, Envoys and weir that
 * restart, reports that come late or not at all, demand that changes, decisions of other front ends
 * on the same states, two limits at once. world_admit checks the bound. */
static void world_shake(struct world *world, uint64_t seed)
{
    const struct weir_limit_spec specs[] = {window, sliding, segments, bucket, slow};
    world->delay_ms = seed % 2 ? DELAY_MAX_MS : (unsigned)draw_below(&world->random, DELAY_MAX_MS);
    world->report_ms = 500 + (unsigned)draw_below(&world->random, 7000);
    world->chaos = seed % 3 ? 20000 : 0;
    world->limits = 1 + (seed % 4 == 0);
    for (unsigned i = 0; i < world->limits; i++)
        state_open(&world->states[i], specs[draw_below(&world->random, 5)]);
    for (unsigned part = 0; part < 40; part++) {
        if (seed % 3 == 0 && draw_below(&world->random, 6) == 0)
            world_restart(world);
        bool bursts = seed % 2 && draw_below(&world->random, 3) == 0;
        world->direct_rate = bursts ? 100000 : 0; /* all that is left, at once */
        for (unsigned i = 0; i < world->clients; i++)
            world->envoys[i].rate =
                draw_below(&world->random, 3) ? 0 : (double)draw_below(&world->random, 200);
        world_run(world, 1 + (unsigned)draw_below(&world->random, 12));
    }
}

TEST("clients together never exceed the limit")
{
    struct sum sum = {0};
    for (uint64_t seed = 1; seed <= 40; seed++) {
        struct world world = world_open(seed, 1 + (unsigned)(seed % 8));
        world_shake(&world, seed);
        add(&sum, &world);
        world_close(&world);
    }
    assert_true(sum.admitted > 100000 && sum.direct > 1000 && sum.lost > 20 && sum.restarts > 20);
}

/* One or two nodes over a store that answers late, in any order, or not at all, by a clock that is
 * somewhere else and runs faster or slower. */
TEST("a store that answers late is never exceeded")
{
    struct sum sum = {0};
    for (uint64_t seed = 1; seed <= 80; seed++) {
        struct world world = world_open_nodes(seed, 1 + (unsigned)(seed % 8), 1 + seed / 2 % 2);
        world.remote = true;
        world.groups = 2; /* their charges come in any order */
        world.offset_ms = draw_below(&world.random, 7200000);
        world.drift = (int)draw_below(&world.random, 3) - 1;
        world.call_ms = seed % 5 == 0 ? 0 : seed % 5 == 1 ? 400 : 40;
        world.lose = seed % 3 == 1 ? 10 : 0;
        world_shake(&world, seed);
        add(&sum, &world);
        world_close(&world);
    }
    assert_true(sum.admitted > 100000 && sum.direct > 1000 && sum.lost > 20 && sum.restarts > 20);
    assert_true(sum.late > 100 && sum.dropped > 100);
}

/* All assignments are applied as late as can be; others take the whole of every second window in
 * its first moment, and weir restarts before it could deny what it has assigned. */
static void ends_with_its_window(struct world *world, unsigned restart_ms)
{
    world->limits = 1;
    world->delay_least_ms = world->delay_ms = DELAY_MAX_MS;
    state_open(&world->states[0], window);
    for (unsigned i = 0; i < world->clients; i++)
        world->envoys[i].rate = 25;
    for (unsigned i = 0; i < 20 * 60000 / STEP_MS; i++) {
        uint64_t at_ms = now_ns(world) / MS % 120000;
        world->direct_rate = at_ms < 2 * STEP_MS ? 1000000 : 0;
        if (at_ms == restart_ms)
            world_restart(world);
        world_step(world);
    }
    assert_true(world->direct > 8 * 5000 && world->admitted > world->direct + 8 * 3000);
    world_close(world);
}

TEST("late assignments end with their window")
{
    struct world world = world_open(1, 3);
    ends_with_its_window(&world, 118100);
}

/* The store's clock is an hour and a half ahead, and its answers are late. */
TEST("late answers do not prolong a window")
{
    for (unsigned restart_ms = 116000; restart_ms < 119000; restart_ms += 250) {
        struct world world = world_open(1, 3);
        world.remote = world.answers_late = true;
        world.offset_ms = 5400010;
        world.call_ms = 200;
        ends_with_its_window(&world, restart_ms);
    }
}

/* Twenty clients, the first two with nine tenths of a demand of twice the limit, as Envoys report
 * it. The small ones get `percent` of what they ask for, and `use` percent of the limit is used. */
static void skewed(struct weir_limit_spec spec, unsigned percent, unsigned use, uint64_t seed)
{
    const double limit_rate = (double)spec.rate * 1e9 / (double)spec.window_ns;
    struct world world = world_open(seed, CLIENTS_MAX);
    world.limits = 1;
    world.delay_ms = 20;
    world.report_ms = 5000;
    state_open(&world.states[0], spec);
    for (unsigned i = 0; i < world.clients; i++) {
        world.envoys[i].rate = 2 * limit_rate * (i < 2 ? 0.45 : 0.1 / 18);
        world.envoys[i].report_ms = world.now_ms + draw_below(&world.random, 5000);
    }
    world_run(&world, 60);
    world.admitted = 0;
    for (unsigned i = 0; i < world.clients; i++)
        world.envoys[i].wanted = world.envoys[i].admitted = 0;
    world_run(&world, 300);
    for (unsigned i = 2; i < world.clients; i++)
        if (world.envoys[i].admitted * 100 < world.envoys[i].wanted * percent)
            fail_msg("client %u: %lu of %lu", i, world.envoys[i].admitted, world.envoys[i].wanted);
    if ((double)world.admitted < 300 * limit_rate * use / 100)
        fail_msg("%lu of %.0f admitted", world.admitted, 300 * limit_rate);
    assert_true(world.envoys[0].admitted * 10 > world.envoys[1].admitted * 9);
    assert_true(world.envoys[1].admitted * 10 > world.envoys[0].admitted * 9);
    world_close(&world);
}

TEST("small clients get their demand and the limit is used")
{
    for (uint64_t seed = 1; seed <= 3; seed++) {
        skewed(bucket, 95, 85, seed);
        skewed(window, 95, 85, seed);
        skewed(sliding, 95, 80, seed); /* what is charged and not used counts in the next, too */
    }
}

/* Twenty clients that each ask for twice an equal part, `few` of them at another node. The nodes do
 * not know of each other's clients, so it is not max-min fair among all, but none starves. */
static void divided(struct weir_limit_spec spec, unsigned few)
{
    const double equal = 300 * (double)spec.rate * 1e9 / (double)spec.window_ns / CLIENTS_MAX;
    struct world world = world_open_nodes(1, CLIENTS_MAX, 2);
    world.limits = 1, world.remote = true, world.call_ms = 1, world.delay_ms = 20;
    world.report_ms = 5000;
    state_open(&world.states[0], spec);
    for (unsigned i = 0; i < world.clients; i++) {
        struct envoy *envoy = &world.envoys[i];
        weir_quota_stream_close(envoy->stream);
        envoy->node = i < few;
        envoy->stream = weir_quota_stream_open(world.quotas[envoy->node]);
        envoy->rate = 2 * equal / 300;
        envoy->report_ms = world.now_ms + draw_below(&world.random, 5000);
    }
    world_run(&world, 60);
    world.admitted = 0;
    for (unsigned i = 0; i < world.clients; i++)
        world.envoys[i].admitted = 0;
    world_run(&world, 300);
    for (unsigned i = 0; i < world.clients; i++)
        assert_true((double)world.envoys[i].admitted > equal / 5);
    assert_true((double)world.admitted > CLIENTS_MAX * equal * 0.55);
    world_close(&world);
}

TEST("no client of two nodes starves")
{
    for (unsigned few = 1; few <= 10; few += 3) {
        divided(bucket, few);
        divided(window, few);
        divided(sliding, few);
    }
}

/* Twenty clients of a limit that is not scarce. */
TEST("plenty is not kept back")
{
    struct world world = world_open(5, CLIENTS_MAX);
    world.limits = 1;
    world.report_ms = 5000;
    state_open(&world.states[0], sliding_hour);
    for (unsigned i = 0; i < world.clients; i++)
        world.envoys[i].rate = 10;
    world_run(&world, 20);
    for (unsigned i = 0; i < world.clients; i++)
        world.envoys[i].wanted = world.envoys[i].admitted = 0;
    world_run(&world, 100);
    for (unsigned i = 0; i < world.clients; i++)
        assert_true(world.envoys[i].admitted * 100 >= world.envoys[i].wanted * 99);
    world_close(&world);
}

/* --- Demand ----------------------------------------------------------------------------------- */

/* A bucket of 100 requests a second that is fresh, and what a client wants of it. */
static const struct weir_quota_supply plenty = {
    .bucket = true, .unit = 1, .remaining = 100000, .rate = 100, .window_ms = 1000};

static struct weir_quota_bucket *report(struct weir_quota_stream *stream, uint64_t requests,
                                        uint64_t elapsed_s, uint64_t now_ms)
{
    const uint64_t hash[2] = {7, 8};
    const struct weir_quota_use use = {requests, elapsed_s};
    const struct weir_bytes id = {"id", 2};
    assert_int_equal(weir_quota_report(stream, hash, id, &use, now_ms), 0);
    bool waits;
    return weir_quota_due(stream, UINT64_MAX, &waits);
}

static uint64_t wants(const struct weir_quota_bucket *of, uint64_t now_ms)
{
    struct weir_quota_supply supply = plenty;
    return weir_quota_want(of, &supply, 1, now_ms);
}

TEST("a new bucket asks for a quarter until its demand is known")
{
    struct weir_quota *quota;
    assert_int_equal(weir_quota_open(&quota, 1, 1), 0);
    struct weir_quota_stream *stream = weir_quota_stream_open(quota);
    struct weir_quota_bucket *of = report(stream, 1, 0, 1000);
    assert_int_equal(wants(of, 1000), 250);
    report(stream, 0, 0, 1000 + WEIR_QUOTA_LEARN_MS - 1); /* too early to say much */
    assert_int_equal(wants(of, 3500), 250);
    report(stream, 40, 0, 1000 + WEIR_QUOTA_LEARN_MS - 1); /* more than that counts at once */
    assert_int_equal(wants(of, 3500), 451);
    weir_quota_stream_close(stream);
    stream = weir_quota_stream_open(quota);
    of = report(stream, 1, 0, 1000);
    report(stream, 4, 5, 6000); /* in 5 s: with the 10 a second of the first, 9 in 10 s */
    assert_int_equal(wants(of, 6000), 11);
    weir_quota_close(quota);
}

TEST("an old bucket on a new stream brings its time")
{
    struct weir_quota *quota;
    assert_int_equal(weir_quota_open(&quota, 1, 1), 0);
    struct weir_quota_stream *stream = weir_quota_stream_open(quota);
    struct weir_quota_bucket *of = report(stream, 20, 5, 1000);
    assert_int_equal(wants(of, 1000), 46); /* 40 in 10 s, an eighth more, and one */
    weir_quota_stream_close(stream);
    stream = weir_quota_stream_open(quota);
    of = report(stream, 20, UINT64_MAX, 1000); /* an hour at most */
    assert_int_equal(wants(of, 1000), 1);
    weir_quota_close(quota);
}

TEST("large clients leave what small ones renew")
{
    struct weir_quota *quota;
    assert_int_equal(weir_quota_open(&quota, 2, 2), 0);
    struct weir_quota_stream *streams[2];
    struct weir_quota_bucket *of[2];
    for (int i = 0; i < 2; i++) {
        streams[i] = weir_quota_stream_open(quota);
        of[i] = report(streams[i], i ? 100000 : 20, 1, 1000);
    }
    struct weir_quota_supply scarce = plenty;
    scarce.remaining = 1000;
    assert_int_equal(weir_quota_want(of[0], &scarce, 1, 1000), 226);
    assert_int_equal(scarce.remaining, 1000);
    assert_true(weir_quota_want(of[1], &scarce, 1, 1000) > 226);
    assert_int_equal(scarce.remaining, 1000 - 57); /* 226 x 2.5 s / 10 s, and a token */
    scarce.remaining = 56;
    weir_quota_want(of[1], &scarce, 1, 1000);
    assert_int_equal(scarce.remaining, 0);
    weir_quota_close(quota);
}

RUN_TESTS()
