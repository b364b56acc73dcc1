/* SPDX-License-Identifier: Apache-2.0 */
/* Every order of events of two or three regions that share one key's budget, over the transition
 * functions of share/share.c and the model of lua/share.lua.
 *
 * Each region has a Redis with one state of the key, and a node. A file says each region's part and
 * the key's home, which lends what it does not use. A node decides by the file that it has: in the
 * home's region by the home's part, abroad by the floor, and what the floor denies by its share of
 * the home's part (engine/lend.h).
 *
 * Events: a request at each node; a node asks for a portion, refills, gives back, takes a call for
 * failed, crashes, or loads the next file; a lent unit goes back because another limit denies; the
 * network delivers a call or a reply, in any order, late, twice, or never; a Redis forgets
 * everything; time passes. Searched depth first, as in test_share_explore.
 *
 * Checked at each admission:
 * - Each region's part, fed with what was admitted of it, would have admitted it: the larger part
 *   of both files. Not where a Redis forgets.
 * - Over all regions, no window has more than the sum of these parts: N where all files are the
 *   same, N and once more the units that moved where they are not, and the part of a Redis that
 *   forgot once more. A change in two steps, with a window between them, admits N.
 * And after each walk, how much it has found in a window: where clocks agree, all that the bound
 * allows. */
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
#define HOUR_NS (UINT64_C(30000) * 12 * TICK_NS)
#define REGIONS 3
#define FILES 3
#define NETWORK 4
#define TICKS 8
#define NO_HOME UINT8_MAX
#ifdef __SANITIZE_ADDRESS__ /* which takes ten times as long */
#define CALLS_MAX 1
#else
#define CALLS_MAX 3
#endif

/* A file: what each region has of the limit, in units, and which one is the key's home. */
struct file {
    uint8_t part[REGIONS], home;
};

struct call_message {
    struct share_call call; /* id 0: no message */
    uint8_t file;           /* of the sender's share */
};

struct reply_message {
    struct share_reply reply; /* id 0: no message */
    uint64_t holder;
    uint8_t file;
};

struct node {
    struct share share[FILES]; /* of the home of each file */
    struct weir_lent lent;     /* taken, and to go back */
    uint64_t holder, last_id;
    uint8_t file, lent_file;
};

struct world {
    struct share_server server[REGIONS];
    union {
        struct weir_cell cell;
        uint64_t span[SHARE_SERVER_WORDS];
    } shadow[REGIONS]; /* what each region's part makes of its admissions */
    struct node nodes[REGIONS];
    struct call_message calls[NETWORK];
    struct reply_message replies[NETWORK];
    uint8_t admitted[TICKS]; /* in each tick */
    uint8_t tick, calls_left, failures_left, crashes_left, repeats_left, flushes_left, backs_left;
    uint8_t changed_tick; /* of the last node that loaded a file */
    uint8_t forgotten;    /* units */
};

/* What is walked. */
struct plan {
    const char *name;
    struct weir_limit_spec spec;
    const struct file *files;
    uint8_t files_count, regions, ticks;
    uint8_t calls, failures, crashes, repeats, flushes, backs;
    uint8_t wait;  /* ticks between two files, and then all nodes have the earlier one; 0: any */
    uint8_t bound; /* of a window, in units */
    uint8_t most;  /* that the walk finds in a window */
    bool apart;    /* windows of regions begin in different ticks */
};

struct search {
    const struct plan *plan;
    struct weir_limit limit[FILES][REGIONS], most[REGIONS];
    struct share_terms terms[FILES];
    uint8_t slot[FILES]; /* the share that a node with that file uses */
    uint32_t window;     /* ticks */
    struct share_walk walk;
    uint64_t events, admissions, lent, returns, most_admitted;
};

static void explore(struct search *search, const struct world *world);

/* --- Time ------------------------------------------------------------------------------------ */

static uint64_t region_ns(const struct search *search, const struct world *world, uint32_t region)
{
    uint64_t apart_ns = search->plan->apart ? TICK_NS : 0;

    return START_NS + world->tick * TICK_NS + region * (HOUR_NS + apart_ns);
}

/* Clocks of nodes differ from the servers' by anything. */
static uint64_t node_ns(const struct world *world, uint32_t node)
{
    return START_NS / 2 + world->tick * TICK_NS + node * UINT64_C(3600000000000);
}

/* The first tick of the window that ends with this one. Where clocks agree on them, windows begin
 * at fixed ticks. */
static uint32_t window_start(const struct search *search, const struct world *world)
{
    if (search->plan->spec.algorithm == WEIR_FIXED_WINDOW && !search->plan->apart)
        return world->tick / search->window * search->window;
    return world->tick + 1U > search->window ? world->tick + 1U - search->window : 0;
}

/* --- States that were met -------------------------------------------------------------------- */

static uint32_t words_of(const struct weir_limit *limit)
{
    return limit->span_words > 0 ? limit->span_words : 2;
}

static void put_node(struct share_text *text, const struct search *search,
                     const struct world *world, uint32_t i)
{
    const struct node *node = &world->nodes[i];

    share_text_put(text, node->holder | node->last_id << 24 | (uint64_t)node->file << 48 |
                             (uint64_t)node->lent_file << 56);
    for (uint8_t f = 0; f < search->plan->files_count; f++)
        if (search->slot[f] == f)
            share_text_share(text, &node->share[f], node_ns(world, i));
    for (int j = 0; j < WEIR_LENT_PORTIONS; j++)
        share_text_put(text, node->lent.units[j] | node->lent.portion[j] << 32);
}

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

static bool is_new(struct search *search, const struct world *world)
{
    const struct plan *plan = search->plan;
    struct share_text text;

    text.count = 0;
    share_text_put(&text,
                   world->tick | (uint64_t)world->calls_left << 8 |
                       (uint64_t)world->failures_left << 16 | (uint64_t)world->crashes_left << 24 |
                       (uint64_t)world->repeats_left << 32 | (uint64_t)world->flushes_left << 40 |
                       (uint64_t)world->backs_left << 48);
    share_text_put(&text, plan->wait > 0 ? world->changed_tick : 0);
    share_text_put(&text, world->forgotten);
    for (uint32_t tick = window_start(search, world); tick <= world->tick; tick++)
        share_text_put(&text, world->admitted[tick]);
    put_messages(&text, world);
    for (uint32_t r = 0; r < plan->regions; r++) {
        share_text_server(&text, &search->most[r], &world->server[r], region_ns(search, world, r));
        for (uint32_t i = 0; i < words_of(&search->most[r]); i++)
            share_text_put(&text, world->shadow[r].span[i]);
        put_node(&text, search, world, r);
    }
    return share_walk_is_new(&search->walk, &text);
}

/* Replies that no node waits for change nothing when they come. */
static void forget_stale(struct world *world)
{
    for (int i = 0; i < NETWORK; i++) {
        struct reply_message *message = &world->replies[i];
        bool waited_for = false;

        for (int j = 0; j < REGIONS; j++)
            waited_for =
                waited_for || (world->nodes[j].holder == message->holder &&
                               world->nodes[j].share[message->file].asked_id == message->reply.id);
        if (!waited_for)
            memset(message, 0, sizeof *message);
    }
}

static void step(struct search *search, struct world *next)
{
    search->events++;
    forget_stale(next);
    explore(search, next);
}

/* --- Requests -------------------------------------------------------------------------------- */

/* An admission of a region's part. */
static void admit(struct search *search, struct world *world, uint32_t region)
{
    struct weir_use use = {.now_ns = region_ns(search, world, region), .cost = 1};
    uint64_t delay_ns, sum = 0;

    if (search->plan->flushes == 0 &&
        !weir_decide(&search->most[region], &world->shadow[region], &use, NULL, &delay_ns))
        fail_msg("after %u ticks the part of region %u would not have admitted it", world->tick,
                 region);
    world->admitted[world->tick]++;
    for (uint32_t tick = window_start(search, world); tick <= world->tick; tick++)
        sum += world->admitted[tick];
    assert_in_range(sum, 1, search->plan->bound + world->forgotten);
    search->most_admitted = sum > search->most_admitted ? sum : search->most_admitted;
    search->admissions++;
}

/* The share by which a node lends, or NULL: it is the home, or there is none. */
static struct share *lent_share(const struct search *search, struct world *world, uint32_t i)
{
    const struct file *file = &search->plan->files[world->nodes[i].file];

    return file->home == NO_HOME || file->home == i
               ? NULL
               : &world->nodes[i].share[search->slot[world->nodes[i].file]];
}

/* The floor denies: a unit of the share is admitted, or denied by another limit. */
static void request_lent(struct search *search, const struct world *world, uint32_t i)
{
    struct world next = *world;
    struct node *node = &next.nodes[i];
    struct share *share = lent_share(search, &next, i);
    uint64_t now_ns = node_ns(world, i);
    struct weir_lent lent;

    if (!share ||
        share_look(share, &search->terms[search->slot[node->file]], 1, now_ns) != SHARE_COVERED)
        return;
    share_spend_noted(share, 1, now_ns, &lent);
    search->lent++;
    if (world->backs_left > 0 && node->lent.units[0] + node->lent.units[1] == 0) {
        struct world back = next;

        back.backs_left--;
        back.nodes[i].lent = lent;
        back.nodes[i].lent_file = search->slot[node->file];
        step(search, &back);
    }
    admit(search, &next, search->plan->files[node->file].home);
    step(search, &next);
}

static void request(struct search *search, const struct world *world, uint32_t i)
{
    struct world next = *world;

    if (!share_server_decide(&next.server[i], &search->limit[world->nodes[i].file][i], 1,
                             region_ns(search, world, i))) {
        request_lent(search, world, i);
        return;
    }
    admit(search, &next, i);
    step(search, &next);
}

static void unit_goes_back(struct search *search, const struct world *world, uint32_t i)
{
    struct world next = *world;
    struct node *node = &next.nodes[i];

    if (node->lent.units[0] + node->lent.units[1] == 0)
        return;
    share_unspend(&node->share[node->lent_file], &node->lent);
    memset(&node->lent, 0, sizeof node->lent);
    node->lent_file = 0;
    step(search, &next);
}

/* --- Calls ----------------------------------------------------------------------------------- */

static void send_call(struct world *world, uint32_t i, uint8_t file, const struct share_call *call)
{
    struct node *sender = &world->nodes[i];

    world->calls_left--;
    sender->last_id = call->id;
    sender->share[file].demand.since_ns = 0;
    for (int j = 0; j < NETWORK; j++) {
        struct call_message *message = &world->calls[j];

        if (message->call.id != 0)
            continue;
        message->call = *call;
        message->call.holder = sender->holder;
        message->file = file;
        return;
    }
    /* The network is full: this one is lost. */
}

/* From its first requests on, and when half is left. */
static void node_asks(struct search *search, const struct world *world, uint32_t i)
{
    struct world next = *world;
    struct share *share = lent_share(search, &next, i);
    uint64_t now_ns = node_ns(world, i);
    struct share_call call;

    if (!share || world->calls_left == 0 || share->asked_id != 0)
        return;

    uint8_t file = search->slot[next.nodes[i].file];
    enum share_outlook look = share_look(share, &search->terms[file], 1, now_ns);
    bool refills = look == SHARE_COVERED && share_refills(share, now_ns, 1);

    if (look != SHARE_ASK && !refills)
        return;
    share_ask(share, &search->terms[file], next.nodes[i].last_id + 1, refills ? 0 : 1, now_ns,
              &call);
    send_call(&next, i, file, &call);
    step(search, &next);
}

/* A share of a file that the node has no more too: it is never spent from then on. */
static void node_gives_back(struct search *search, const struct world *world, uint32_t i,
                            uint8_t file)
{
    struct world next = *world;
    struct share *share = &next.nodes[i].share[file];
    struct share_call call;

    if (world->calls_left == 0 || share->asked_id != 0 ||
        share_due(share, &search->terms[file]) == WEIR_NEVER)
        return;
    if (share_give_back(share, &search->terms[file], next.nodes[i].last_id + 1, node_ns(world, i),
                        &call))
        send_call(&next, i, file, &call);
    step(search, &next);
}

static void node_takes_for_failed(struct search *search, const struct world *world, uint32_t i,
                                  uint8_t file)
{
    struct world next = *world;

    if (world->nodes[i].share[file].asked_id == 0 || world->failures_left == 0)
        return;
    next.failures_left--;
    (void)share_failed(&next.nodes[i].share[file], true);
    step(search, &next);
}

static void deliver_call(struct search *search, const struct world *world, int i, bool again)
{
    const struct call_message *message = &world->calls[i];
    struct world next = *world;
    struct share_reply reply;

    if (message->call.id == 0 || (again && world->repeats_left == 0))
        return;

    uint32_t home = search->plan->files[message->file].home;

    share_server_execute(&next.server[home], &search->limit[message->file][home], &message->call,
                         region_ns(search, world, home), &reply);
    search->returns += next.server[home].returned > world->server[home].returned;
    if (again)
        next.repeats_left--;
    else
        memset(&next.calls[i], 0, sizeof next.calls[i]);
    for (int j = 0; j < NETWORK; j++) {
        if (next.replies[j].reply.id != 0)
            continue;
        next.replies[j].reply = reply;
        next.replies[j].holder = message->call.holder;
        next.replies[j].file = message->file;
        break;
    }
    step(search, &next);
}

static void deliver_reply(struct search *search, const struct world *world, int i)
{
    const struct reply_message *message = &world->replies[i];
    struct world next = *world;

    if (message->reply.id == 0)
        return;
    memset(&next.replies[i], 0, sizeof next.replies[i]);
    for (uint32_t j = 0; j < search->plan->regions; j++) {
        struct node *node = &next.nodes[j];
        struct share *share = &node->share[message->file];

        if (node->holder == message->holder)
            (void)share_answered(share, &search->terms[message->file], &message->reply,
                                 node_ns(world, j));
        share->remaining = share->retry_at_ns = share->reset_at_ns = 0;
    }
    step(search, &next);
}

/* --- Crashes and files ----------------------------------------------------------------------- */

static void node_crashes(struct search *search, const struct world *world, uint32_t i)
{
    struct world next = *world;
    struct node *node = &next.nodes[i];

    if (world->crashes_left == 0 || node->last_id == 0)
        return;
    next.crashes_left--;
    *node = (struct node){.holder = node->holder + REGIONS, .file = node->file};
    step(search, &next);
}

static void redis_forgets(struct search *search, const struct world *world, uint32_t i)
{
    struct world next = *world;

    if (world->flushes_left == 0)
        return;
    next.flushes_left--;
    next.forgotten += (uint8_t)search->most[i].capacity;
    share_server_init(&next.server[i]);
    step(search, &next);
}

/* In steps that wait, no node loads the last file before all had the one before for that long. */
static bool may_load(const struct search *search, const struct world *world, uint32_t i)
{
    const struct plan *plan = search->plan;
    uint8_t file = world->nodes[i].file;

    if (file + 1 >= plan->files_count)
        return false;
    if (plan->wait == 0 || file == 0)
        return true;
    for (uint32_t j = 0; j < plan->regions; j++)
        if (world->nodes[j].file < file)
            return false;
    return world->tick >= world->changed_tick + plan->wait;
}

static void node_loads_next_file(struct search *search, const struct world *world, uint32_t i)
{
    struct world next = *world;

    if (!may_load(search, world, i))
        return;
    next.nodes[i].file++;
    if (next.nodes[i].file == 1)
        next.changed_tick = world->tick;
    step(search, &next);
}

static void explore(struct search *search, const struct world *world)
{
    if (!is_new(search, world))
        return;
    for (uint32_t i = 0; i < search->plan->regions; i++) {
        request(search, world, i);
        unit_goes_back(search, world, i);
        node_asks(search, world, i);
        for (uint8_t file = 0; file < search->plan->files_count; file++) {
            node_gives_back(search, world, i, file);
            node_takes_for_failed(search, world, i, file);
        }
        node_crashes(search, world, i);
        redis_forgets(search, world, i);
        node_loads_next_file(search, world, i);
    }
    for (int i = 0; i < NETWORK; i++) {
        deliver_call(search, world, i, false);
        deliver_call(search, world, i, true);
        deliver_reply(search, world, i);
    }
    if (world->tick < search->plan->ticks) {
        struct world next = *world;

        next.tick++;
        step(search, &next);
    }
}

/* --- Searches -------------------------------------------------------------------------------- */

static const struct share_terms small_terms = {
    .life_ns = 2 * TICK_NS,
    .life_long_ns = 2 * TICK_NS,
    .batch = 2,
    .chunk = 1,
    .life_min_ns = SHARE_LIFE_MIN_NS,
    .dry_max_ns = SHARE_DRY_MAX_NS,
    .idle_part = 4,
    .late_returns = true,
};

static void make_limit(const struct plan *plan, uint64_t part, struct weir_limit *limit)
{
    struct weir_limit_spec spec = plan->spec;

    spec.rate = part;
    assert_int_equal(weir_limit_init(limit, &spec, NULL), 0);
    assert_in_range(limit->span_words, 0, SHARE_SERVER_WORDS);
}

static void make_limits(struct search *search)
{
    const struct plan *plan = search->plan;
    uint64_t most[REGIONS] = {0};

    for (uint8_t f = 0; f < plan->files_count; f++) {
        const struct file *file = &plan->files[f];

        for (uint32_t r = 0; r < plan->regions; r++) {
            make_limit(plan, file->part[r], &search->limit[f][r]);
            most[r] = file->part[r] > most[r] ? file->part[r] : most[r];
        }
        search->slot[f] = f;
        for (uint8_t g = 0; g < f; g++)
            if (plan->files[g].home == file->home &&
                (file->home == NO_HOME ||
                 plan->files[g].part[file->home] == file->part[file->home]))
                search->slot[f] = search->slot[g];
        search->terms[f] = small_terms;
        search->terms[f].capacity = file->home == NO_HOME ? 1 : file->part[file->home];
    }
    for (uint32_t r = 0; r < plan->regions; r++)
        make_limit(plan, most[r], &search->most[r]);
    search->window = (uint32_t)(plan->spec.window_ns / TICK_NS);
}

static void run(const struct plan *plan)
{
    struct search *search = calloc(1, sizeof *search);
    struct world *world = calloc(1, sizeof *world);

    assert_non_null(search);
    assert_non_null(world);
    search->plan = plan;
    make_limits(search);
    share_walk_open(&search->walk, 22);
    world->calls_left = plan->calls < CALLS_MAX ? plan->calls : CALLS_MAX;
    world->failures_left = plan->failures;
    world->crashes_left = plan->crashes;
    world->repeats_left = plan->repeats;
    world->flushes_left = plan->flushes;
    world->backs_left = plan->backs;
    for (uint32_t i = 0; i < REGIONS; i++)
        world->nodes[i].holder = i + 1;
    explore(search, world);
    print_message("%s: %u regions, %u ticks, %u calls: %lu states, %lu events, %lu admissions, "
                  "%lu lent, %lu returns, at most %lu of %u\n",
                  plan->name, plan->regions, plan->ticks, world->calls_left, search->walk.states,
                  search->events, search->admissions, search->lent, search->returns,
                  search->most_admitted, plan->bound);
    assert_true(search->lent > 0);
    if (plan->calls <= CALLS_MAX)
        assert_int_equal(search->most_admitted, plan->most);
    share_walk_close(&search->walk);
    free(search);
    free(world);
}

#define WINDOW(kind, length)                                                                       \
    {                                                                                              \
        .algorithm = WEIR_##kind, .rate = 1, .window_ns = (length)*TICK_NS                         \
    }

static const struct file lends[] = {{.part = {3, 1, 1}, .home = 0}};

static void walk_each(const struct plan *plans, size_t count)
{
    for (size_t i = 0; i < count; i++)
        run(&plans[i]);
}

/* clang-format off */
TEST("all regions together admit the limit")
{
    static const struct plan plans[] = {
        {"fixed window", WINDOW(FIXED_WINDOW, 2), lends, 1, .regions = 2, .ticks = 3, .calls = 2,
         .failures = 1, .crashes = 1, .backs = 1, .bound = 4, .most = 4},
        {"a unit that goes back late", WINDOW(FIXED_WINDOW, 2), lends, 1, .regions = 2, .ticks = 2,
         .calls = 3, .backs = 1, .bound = 4, .most = 4},
        {"clocks apart", WINDOW(FIXED_WINDOW, 2), lends, 1, .regions = 2, .ticks = 2, .calls = 2,
         .crashes = 1, .repeats = 1, .bound = 8, .most = 7, .apart = true},
        {"three regions", WINDOW(FIXED_WINDOW, 2), lends, 1, .regions = 3, .ticks = 2, .calls = 2,
         .crashes = 1, .bound = 5, .most = 5},
        {"sliding window", WINDOW(SLIDING_WINDOW, 2), lends, 1, .regions = 2, .ticks = 3,
         .calls = 2, .crashes = 1, .backs = 1, .bound = 8, .most = 4},
        {"log", WINDOW(SLIDING_LOG, 3), lends, 1, .regions = 2, .ticks = 3, .calls = 2,
         .crashes = 1, .backs = 1, .bound = 4, .most = 4},
    };

    walk_each(plans, sizeof plans / sizeof plans[0]);
}

TEST("a redis that forgets admits its part once more")
{
    static const struct plan plan = {
        "a Redis that forgets", WINDOW(FIXED_WINDOW, 2), lends, 1, .regions = 2, .ticks = 2,
        .calls = 2, .crashes = 1, .flushes = 1, .bound = 4, .most = 4 + 3};

    run(&plan);
}

TEST("a change in one step admits what moved once more")
{
    static const struct file floors[] = {{{3, 1}, 0}, {{2, 2}, 0}};
    static const struct file homes[] = {{{3, 1}, 0}, {{1, 3}, 1}};
    static const struct plan plans[] = {
        {"a larger floor", WINDOW(FIXED_WINDOW, 2), floors, 2, .regions = 2, .ticks = 2,
         .calls = 2, .crashes = 1, .bound = 4 + 1, .most = 5},
        {"another home", WINDOW(FIXED_WINDOW, 2), homes, 2, .regions = 2, .ticks = 2,
         .calls = 2, .crashes = 1, .bound = 4 + 2, .most = 6},
    };

    walk_each(plans, sizeof plans / sizeof plans[0]);
}

TEST("a change in two steps is exact")
{
    static const struct file floors[] = {{{3, 1}, 0}, {{2, 1}, 0}, {{2, 2}, 0}};
    static const struct file homes[] = {{{3, 1}, 0}, {{1, 1}, NO_HOME}, {{1, 3}, 1}};
    static const struct plan plans[] = {
        {"a larger floor, in two steps", WINDOW(FIXED_WINDOW, 2), floors, 3, .regions = 2,
         .ticks = 3, .calls = 1, .crashes = 1, .wait = 2, .bound = 4, .most = 4},
        {"another home, in two steps", WINDOW(FIXED_WINDOW, 2), homes, 3, .regions = 2,
         .ticks = 3, .calls = 2, .wait = 2, .bound = 4, .most = 4},
    };

    walk_each(plans, sizeof plans / sizeof plans[0]);
}
/* clang-format on */

RUN_TESTS()
