/* SPDX-License-Identifier: Apache-2.0 */
/* Every order of events of a small world: a server, up to three holders, and the network between
 * them, over the real transition functions of share/share.c and the model of lua/share.lua.
 *
 * Events: a holder admits a request (or asks for a portion, refills, gives back, takes a call for
 * failed, crashes and comes back with nothing), the network delivers a call or a reply, in any
 * order, late, twice, or never (loss is a delay without end), the server decides a request exactly,
 * time passes. Searched depth first; a state that was met before is not searched again, and all
 * counts (time, calls, crashes, repetitions) are bounded, so that the search ends.
 *
 * Checked at every admission: the exact algorithm, fed with the admissions alone, would have
 * admitted it. That implies each algorithm's bound over any window, and for buckets over any
 * interval. Checked in every state: what portions were charged, less what was given back, covers
 * what was admitted from them; so nothing is given back twice. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "share_walk.h"
#include "test.h"

#define TICK_NS UINT64_C(10000000)
#define START_NS (UINT64_C(1000) * 12 * TICK_NS) /* where all windows begin */
#define NODES 3
#define NETWORK 4
#define SHADOW_WORDS 16

struct call_message {
    struct share_call call; /* id 0: no message */
};

struct reply_message {
    struct share_reply reply; /* id 0: no message */
    uint64_t holder;
};

struct node {
    struct share share;
    uint64_t holder, last_id;
};

struct world {
    struct share_server server;
    union {
        struct weir_cell cell;
        uint64_t span[SHADOW_WORDS];
    } shadow; /* what the exact algorithm makes of the admissions */
    struct node nodes[NODES];
    struct call_message calls[NETWORK];
    struct reply_message replies[NETWORK];
    uint64_t spent;
    uint8_t tick, calls_left, failures_left, crashes_left, repeats_left, exact_left;
};

/* What is explored, and what was found. */
struct search {
    struct weir_limit limit;
    struct share_terms terms;
    uint32_t nodes, ticks, repeats;
    struct share_walk walk;
    uint64_t events, admissions, returns;
};

/* --- Time ------------------------------------------------------------------------------------ */

static uint64_t server_ns(const struct world *world)
{
    return START_NS + world->tick * TICK_NS;
}

/* Clocks of holders differ from the server's by anything. */
static uint64_t node_ns(const struct world *world, uint32_t node)
{
    return server_ns(world) - START_NS / 2 + node * UINT64_C(3600000000000);
}

/* --- States that were met -------------------------------------------------------------------- */

static void put_messages(struct share_text *text, const struct world *world)
{
    uint64_t sums[2] = {0, 0};

    for (int i = 0; i < NETWORK; i++) {
        if (world->calls[i].call.id != 0)
            share_text_add(&sums[0], &world->calls[i], sizeof world->calls[i]);
        if (world->replies[i].reply.id != 0)
            share_text_add(&sums[1], &world->replies[i], sizeof world->replies[i]);
    }
    share_text_put(text, sums[0]);
    share_text_put(text, sums[1]);
}

/* Replies that nobody waits for change nothing when they come. */
static void forget_stale(struct world *world)
{
    for (int i = 0; i < NETWORK; i++) {
        bool waited_for = false;

        for (int j = 0; j < NODES; j++)
            waited_for =
                waited_for || (world->nodes[j].holder == world->replies[i].holder &&
                               world->nodes[j].share.asked_id == world->replies[i].reply.id);
        if (!waited_for)
            memset(&world->replies[i], 0, sizeof world->replies[i]);
    }
}

static bool is_new(struct search *search, const struct world *world)
{
    uint32_t words = search->limit.span_words > 0 ? search->limit.span_words : 2;
    struct share_text text;

    text.count = 0;
    share_text_put(&text, world->tick | (uint64_t)world->calls_left << 8 |
                              (uint64_t)world->crashes_left << 16 |
                              (uint64_t)world->repeats_left << 24 |
                              (uint64_t)world->exact_left << 32 |
                              (uint64_t)world->failures_left << 40 | world->spent << 48);
    for (uint32_t i = 0; i < words; i++)
        share_text_put(&text, world->shadow.span[i]);
    share_text_server(&text, &search->limit, &world->server, server_ns(world));
    put_messages(&text, world);
    for (uint32_t i = 0; i < search->nodes; i++) {
        share_text_put(&text, world->nodes[i].holder | world->nodes[i].last_id << 32);
        share_text_share(&text, &world->nodes[i].share, node_ns(world, i));
    }
    return share_walk_is_new(&search->walk, &text);
}

/* --- Events ---------------------------------------------------------------------------------- */

static void admit(struct search *search, struct world *world, uint64_t cost)
{
    struct weir_use use = {.now_ns = server_ns(world), .cost = cost};
    uint64_t delay_ns;

    if (!weir_decide(&search->limit, &world->shadow, &use, NULL, &delay_ns)) {
        printf("after %u ticks the exact algorithm would not have admitted it\n", world->tick);
        fail();
    }
    search->admissions++;
}

static void send_call(struct world *world, uint32_t node, const struct share_call *call)
{
    struct node *sender = &world->nodes[node];

    world->calls_left--;
    sender->last_id = call->id;
    sender->share.demand.since_ns = 0;
    for (int i = 0; i < NETWORK; i++) {
        if (world->calls[i].call.id == 0) {
            world->calls[i].call = *call;
            world->calls[i].call.holder = sender->holder;
            return;
        }
    }
    /* The network is full: this one is lost. */
}

static void explore(struct search *search, const struct world *world);

static void step(struct search *search, struct world *next)
{
    search->events++;
    forget_stale(next);
    assert_true(next->server.charged - next->server.returned >= next->spent);
    explore(search, next);
}

static void node_admits(struct search *search, const struct world *world, uint32_t i, uint64_t cost)
{
    struct world next = *world;
    struct share *share = &next.nodes[i].share;
    uint64_t now_ns = node_ns(world, i);
    struct share_call call;

    switch (share_look(share, &search->terms, cost, now_ns)) {
    case SHARE_COVERED:
        share_spend(share, cost, now_ns);
        next.spent += cost;
        admit(search, &next, cost);
        step(search, &next);
        break;
    case SHARE_ASK:
        if (world->calls_left == 0)
            break;
        share_ask(share, &search->terms, next.nodes[i].last_id + 1, cost, now_ns, &call);
        send_call(&next, i, &call);
        step(search, &next);
        break;
    default:
        break;
    }
}

static void node_refills(struct search *search, const struct world *world, uint32_t i)
{
    struct world next = *world;
    struct share *share = &next.nodes[i].share;
    uint64_t now_ns = node_ns(world, i);
    struct share_call call;

    if (world->calls_left == 0 || !share_refills(share, now_ns, 1))
        return;
    share_ask(share, &search->terms, next.nodes[i].last_id + 1, 0, now_ns, &call);
    send_call(&next, i, &call);
    step(search, &next);
}

static void node_gives_back(struct search *search, const struct world *world, uint32_t i)
{
    struct world next = *world;
    struct share *share = &next.nodes[i].share;
    struct share_call call;

    if (world->calls_left == 0 || share->asked_id != 0 ||
        share_due(share, &search->terms) == WEIR_NEVER)
        return;
    if (share_give_back(share, &search->terms, next.nodes[i].last_id + 1, node_ns(world, i), &call))
        send_call(&next, i, &call);
    step(search, &next);
}

static void node_takes_for_failed(struct search *search, const struct world *world, uint32_t i)
{
    struct world next = *world;
    const struct share *share = &world->nodes[i].share;

    if (share->asked_id == 0 || world->failures_left == 0)
        return;
    next.failures_left--;
    (void)share_failed(&next.nodes[i].share, true);
    step(search, &next);
    /* While its bytes are here, it is certain that it was not executed. */
    for (int j = 0; j < NETWORK; j++) {
        const struct share_call *call = &world->calls[j].call;

        if (call->id != share->asked_id || call->holder != world->nodes[i].holder ||
            search->repeats != world->repeats_left)
            continue;
        next = *world;
        next.failures_left--;
        memset(&next.calls[j], 0, sizeof next.calls[j]);
        (void)share_failed(&next.nodes[i].share, false);
        step(search, &next);
    }
}

static void node_crashes(struct search *search, const struct world *world, uint32_t i)
{
    struct world next = *world;
    struct node *node = &next.nodes[i];

    if (world->crashes_left == 0 || node->last_id == 0)
        return;
    next.crashes_left--;
    node->holder += NODES;
    node->last_id = 0;
    share_init(&node->share, 0);
    step(search, &next);
}

static void deliver_call(struct search *search, const struct world *world, int i, bool again)
{
    struct world next = *world;
    struct share_reply reply;

    if (world->calls[i].call.id == 0 || (again && world->repeats_left == 0))
        return;
    share_server_execute(&next.server, &search->limit, &world->calls[i].call, server_ns(world),
                         &reply);
    search->returns += next.server.returned > world->server.returned;
    if (again)
        next.repeats_left--;
    else
        memset(&next.calls[i], 0, sizeof next.calls[i]);
    for (int j = 0; j < NETWORK; j++) {
        if (next.replies[j].reply.id == 0) {
            next.replies[j].reply = reply;
            next.replies[j].holder = world->calls[i].call.holder;
            break;
        }
    }
    step(search, &next);
}

static void deliver_reply(struct search *search, const struct world *world, int i)
{
    struct world next = *world;

    if (world->replies[i].reply.id == 0)
        return;
    memset(&next.replies[i], 0, sizeof next.replies[i]);
    for (uint32_t j = 0; j < search->nodes; j++) {
        struct node *node = &next.nodes[j];

        if (node->holder == world->replies[i].holder)
            (void)share_answered(&node->share, &search->terms, &world->replies[i].reply,
                                 node_ns(world, j));
        node->share.remaining = node->share.retry_at_ns = node->share.reset_at_ns = 0;
    }
    step(search, &next);
}

static void server_decides(struct search *search, const struct world *world)
{
    struct world next = *world;

    if (world->exact_left == 0 ||
        !share_server_decide(&next.server, &search->limit, 1, server_ns(world)))
        return;
    next.exact_left--;
    admit(search, &next, 1);
    step(search, &next);
}

static void explore(struct search *search, const struct world *world)
{
    if (!is_new(search, world))
        return;
    for (uint32_t i = 0; i < search->nodes; i++) {
        node_admits(search, world, i, 1);
        if (i == 0)
            node_admits(search, world, i, 2);
        node_refills(search, world, i);
        node_gives_back(search, world, i);
        node_takes_for_failed(search, world, i);
        node_crashes(search, world, i);
    }
    for (int i = 0; i < NETWORK; i++) {
        deliver_call(search, world, i, false);
        deliver_call(search, world, i, true);
        deliver_reply(search, world, i);
    }
    server_decides(search, world);
    if (world->tick < search->ticks) {
        struct world next = *world;

        next.tick++;
        step(search, &next);
    }
}

/* --- Searches -------------------------------------------------------------------------------- */

struct bounds {
    uint32_t nodes, ticks;
    uint8_t calls, failures, crashes, repeats, exact;
};

static void run(const char *name, const struct weir_limit_spec *spec,
                const struct share_terms *terms, const struct bounds *bounds)
{
    struct search *search = calloc(1, sizeof *search);
    struct world *world = calloc(1, sizeof *world);

    assert_non_null(search);
    assert_non_null(world);
    assert_int_equal(weir_limit_init(&search->limit, spec, NULL), 0);
    assert_in_range(search->limit.span_words, 0, SHADOW_WORDS);
    search->terms = *terms;
    search->nodes = bounds->nodes;
    search->ticks = bounds->ticks;
    search->repeats = bounds->repeats;
    share_walk_open(&search->walk, 23);
    share_server_init(&world->server);
    world->calls_left = bounds->calls;
    world->failures_left = bounds->failures;
    world->crashes_left = bounds->crashes;
    world->repeats_left = bounds->repeats;
    world->exact_left = bounds->exact;
    for (uint32_t i = 0; i < NODES; i++)
        world->nodes[i].holder = i + 1;
    explore(search, world);
    print_message(
        "%s: %u holders, %u ticks, %u calls, %u failed, %u repeated, %u crashes, %u exact: "
        "%lu states, %lu events, %lu admissions, %lu returns\n",
        name, bounds->nodes, bounds->ticks, bounds->calls, bounds->failures, bounds->repeats,
        bounds->crashes, bounds->exact, search->walk.states, search->events, search->admissions,
        search->returns);
    assert_true(search->admissions > 0);
    share_walk_close(&search->walk);
    free(search);
    free(world);
}

static const struct share_terms small_terms = {
    .capacity = 3,
    .life_ns = 2 * TICK_NS,
    .life_long_ns = 2 * TICK_NS,
    .batch = 2,
    .chunk = 1,
    .life_min_ns = SHARE_LIFE_MIN_NS,
    .dry_max_ns = SHARE_DRY_MAX_NS,
    .idle_part = 4,
    .late_returns = true,
};

static const struct bounds searches[] = {
#ifdef __SANITIZE_ADDRESS__ /* which takes ten times as long */
    {.nodes = 2, .ticks = 2, .calls = 2, .failures = 1, .crashes = 1, .repeats = 1, .exact = 1},
#else
    {.nodes = 1, .ticks = 4, .calls = 3, .failures = 1, .crashes = 0, .repeats = 1, .exact = 1},
    {.nodes = 2, .ticks = 3, .calls = 4, .failures = 0, .crashes = 0, .repeats = 0, .exact = 0},
    {.nodes = 2, .ticks = 2, .calls = 3, .failures = 1, .crashes = 2, .repeats = 0, .exact = 0},
    {.nodes = 3, .ticks = 2, .calls = 3, .failures = 0, .crashes = 2, .repeats = 0, .exact = 0},
#endif
};

static void run_all(const char *name, const struct weir_limit_spec *spec,
                    const struct share_terms *terms)
{
    for (size_t i = 0; i < sizeof searches / sizeof searches[0]; i++)
        run(name, spec, terms, &searches[i]);
}

TEST("a fixed window is never passed")
{
    const struct weir_limit_spec spec = {
        .algorithm = WEIR_FIXED_WINDOW, .rate = 3, .window_ns = 3 * TICK_NS};

    run_all("fixed window", &spec, &small_terms);
}

TEST("a sliding window is never passed")
{
    const struct weir_limit_spec spec = {
        .algorithm = WEIR_SLIDING_WINDOW, .rate = 3, .window_ns = 3 * TICK_NS};

    run_all("sliding window", &spec, &small_terms);
}

TEST("segments are never passed")
{
    const struct weir_limit_spec spec = {
        .algorithm = WEIR_SLIDING_WINDOW, .rate = 3, .window_ns = 4 * TICK_NS, .segments = 2};

    run_all("segments", &spec, &small_terms);
}

TEST("a log is never passed")
{
    const struct weir_limit_spec spec = {
        .algorithm = WEIR_SLIDING_LOG, .rate = 3, .window_ns = 4 * TICK_NS};

    run_all("log", &spec, &small_terms);
}

TEST("a bucket is never passed")
{
    const struct weir_limit_spec spec = {
        .algorithm = WEIR_GCRA, .rate = 1, .window_ns = 2 * TICK_NS, .burst = 4};
    struct share_terms terms = small_terms;

    terms.capacity = 4;
    terms.life_ns = TICK_NS;
    terms.life_long_ns = 4 * TICK_NS;
    terms.late_returns = false;
    run_all("bucket", &spec, &terms);
}

RUN_TESTS()
