/* SPDX-License-Identifier: Apache-2.0 */
/* Lending in virtual time, by seed: 3 to 8 regions share one key's budget. One is its home, with a
 * model of lua/share.lua; each has a floor of its own, and workers that take what the floor denies
 * from their shares of the home's part, as feature/region/engine/lend.h does.
 *
 * What goes wrong: calls take up to 300 ms one way, are lost, or come seconds late; links are cut;
 * workers die with their shares; the home's Redis forgets everything; clocks are hours apart; units
 * that were taken go back because another limit denies.
 *
 * What is held, at each admission: the home's part alone, fed with what was admitted of it, would
 * have admitted it; and no window has more than the algorithm's bound for the whole limit. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "draw.h"
#include "share_server.h"
#include "store/redis/share/shares.h"

#define STEP_NS UINT64_C(1000000)
#define SECOND_NS UINT64_C(1000000000)
#define STEPS_A_SECOND 1000
#define START_NS (UINT64_C(1700000040) * SECOND_NS)
#define SECONDS 60
#define WINDOW_S 10
#define RATE 1000
#define REGIONS_MAX 8
#define WORKERS 2 /* of each region */
#define MESSAGES 64
#define BACKS 256
#define DELAY_MAX 300     /* steps, one way */
#define TIMEOUT 2500      /* steps: then a call's end is unknown */
#define GENERATIONS 16    /* of the home's state */
#define PORTIONS_MAX 8192 /* ids of one holder */

struct message {
    enum { NOTHING, CALL, REPLY, LOST } kind;
    bool orphan; /* nobody waits for the reply any more */
    uint64_t step, give_up;
    uint32_t worker;
    struct redis_shares_call call;
    struct weir_limit limit; /* of the call: its entry may be gone */
    struct share_reply reply;
};

/* Units that go back later. */
struct back {
    uint64_t step;
    uint32_t worker;
    struct weir_lent lent;
    bool taken;
};

struct worker {
    struct redis_shares *shares;
    uint64_t clock_ns;
    bool cut_off;
    uint8_t generation[PORTIONS_MAX]; /* of the state that a portion was charged to, by id */
};

union state {
    struct weir_cell cell;
    uint64_t span[SHARE_SERVER_WORDS];
};

struct world {
    struct weir_limit whole, home, floor;
    uint32_t regions, workers, generation;
    uint64_t times; /* the rate that any window may have */
    struct share_server server, floors[REGIONS_MAX];
    union state shadow[GENERATIONS]; /* fed with the admissions */
    union state oracle;              /* one state, fed with all requests */
    struct worker worker[REGIONS_MAX * WORKERS];
    uint64_t clock_ns[REGIONS_MAX], rates[REGIONS_MAX];
    struct message messages[MESSAGES];
    struct back backs[BACKS];
    uint32_t admitted_in[SECONDS * STEPS_A_SECOND];
    uint64_t in_window, random, step;
    uint64_t seed, holders, requests, lent, admitted, could, calls, flushes;
};

static uint64_t true_ns(const struct world *world)
{
    return START_NS + world->step * STEP_NS;
}

static uint64_t region_ns(const struct world *world, uint32_t region)
{
    return true_ns(world) + world->clock_ns[region];
}

static uint64_t worker_ns(const struct world *world, uint32_t worker)
{
    return true_ns(world) + world->worker[worker].clock_ns;
}

static bool decide(const struct weir_limit *limit, void *state, uint64_t now_ns, uint64_t cost)
{
    struct weir_use use = {.now_ns = now_ns, .cost = cost};
    uint64_t delay_ns;

    return weir_decide(limit, state, &use, NULL, &delay_ns);
}

static uint64_t draw(struct world *world, uint64_t below)
{
    return draw_below(&world->random, below);
}

/* --- Admissions ------------------------------------------------------------------------------- */

static void admit(struct world *world, uint64_t cost)
{
    world->admitted += cost;
    world->admitted_in[world->step] += (uint32_t)cost;
    world->in_window += cost;

    uint64_t bound = world->times * (RATE + world->flushes * world->home.capacity);

    if (world->in_window > bound)
        fail_msg("seed %llu, after %llu ms: %llu units in a window, the bound is %llu",
                 (unsigned long long)world->seed, (unsigned long long)world->step,
                 (unsigned long long)world->in_window, (unsigned long long)bound);
}

static void admit_lent(struct world *world, uint32_t worker, const struct weir_lent *lent)
{
    for (int i = 0; i < WEIR_LENT_PORTIONS; i++) {
        if (lent->units[i] == 0)
            continue;

        uint8_t generation = world->worker[worker].generation[lent->portion[i] % PORTIONS_MAX];

        assert_true(
            decide(&world->home, &world->shadow[generation], region_ns(world, 0), lent->units[i]));
        admit(world, lent->units[i]);
        world->lent += lent->units[i];
    }
}

static struct weir_check key_check(const struct weir_limit *limit, uint64_t cost)
{
    return (struct weir_check){.limit = limit, .hash = {7, 7}, .cost = cost, .key = {"key", 3}};
}

/* Units that another limit denies go back a little later. */
static void keep_back(struct world *world, uint32_t worker, const struct weir_lent *lent)
{
    for (uint32_t i = 0; i < BACKS; i++) {
        struct back *back = &world->backs[i];

        if (back->taken)
            continue;
        *back = (struct back){world->step + draw(world, 50), worker, *lent, true};
        return;
    }
}

static void give_back(struct world *world)
{
    struct weir_check check = key_check(&world->home, 1);

    for (uint32_t i = 0; i < BACKS; i++) {
        struct back *back = &world->backs[i];

        if (!back->taken || back->step > world->step)
            continue;
        redis_shares_put_back(world->worker[back->worker].shares, &check, &back->lent);
        back->taken = false;
    }
}

/* What feature/region/engine/lend.h does for one request of one floor. */
static void arrive_abroad(struct world *world, uint32_t region, uint64_t cost)
{
    uint32_t number = region * WORKERS + (uint32_t)draw(world, WORKERS);
    struct worker *worker = &world->worker[number];
    struct weir_check check = key_check(&world->home, cost);
    struct weir_outcome outcome;
    struct weir_lent lent;
    bool asks = !worker->cut_off;
    uint64_t now_ns = worker_ns(world, number);

    if (share_server_decide(&world->floors[region], &world->floor, cost,
                            region_ns(world, region))) {
        admit(world, cost);
        redis_shares_lend(worker->shares, WEIR_LEND_AHEAD, asks, &check, now_ns, &outcome, &lent);
        return;
    }
    if (!redis_shares_lend(worker->shares, WEIR_LEND_TAKE, asks, &check, now_ns, &outcome, &lent))
        return;
    if (draw(world, 10) == 0)
        keep_back(world, number, &lent);
    else
        admit_lent(world, number, &lent);
}

static void arrive(struct world *world, uint32_t region)
{
    uint64_t cost = draw(world, 20) == 0 ? 3 : 1;

    world->requests++;
    if (decide(&world->whole, &world->oracle, true_ns(world), cost))
        world->could += cost;
    if (region > 0) {
        arrive_abroad(world, region, cost);
    } else if (share_server_decide(&world->server, &world->home, cost, region_ns(world, 0))) {
        assert_true(
            decide(&world->home, &world->shadow[world->generation], region_ns(world, 0), cost));
        admit(world, cost);
    }
}

/* --- Calls ------------------------------------------------------------------------------------ */

static struct message *free_message(struct world *world)
{
    for (uint32_t i = 0; i < MESSAGES; i++)
        if (world->messages[i].kind == NOTHING)
            return &world->messages[i];
    fail_msg("more than %d calls on their way", MESSAGES);
    return NULL;
}

/* On time, most often; seconds late or never now and then, always where the link is cut. */
static void set_out(struct world *world, struct message *message, int kind)
{
    bool cut = world->worker[message->worker].cut_off;
    uint64_t fate = draw(world, cut ? 2 : 60);

    message->kind = fate == 0 ? LOST : kind;
    message->step = world->step + 1 + draw(world, DELAY_MAX) + (fate == 1 ? draw(world, 8000) : 0);
}

static void send_calls(struct world *world, uint32_t number)
{
    struct worker *worker = &world->worker[number];
    uint64_t now_ns = worker_ns(world, number);
    struct redis_shares_call call;

    (void)redis_shares_tick(worker->shares, now_ns);
    while (redis_shares_next(worker->shares, now_ns, &call)) {
        struct message *message = free_message(world);

        world->calls++;
        *message = (struct message){.worker = number, .call = call, .limit = *call.check->limit};
        message->give_up = world->step + TIMEOUT;
        set_out(world, message, CALL);
    }
}

static void execute(struct world *world, struct message *message)
{
    struct worker *worker = &world->worker[message->worker];
    const struct share_call *ask = &message->call.ask;

    assert_in_range(ask->id, 1, PORTIONS_MAX - 1);
    share_server_execute(&world->server, &message->limit, ask, region_ns(world, 0),
                         &message->reply);
    if (message->orphan) {
        message->kind = NOTHING;
        return;
    }
    worker->generation[ask->id] = (uint8_t)world->generation;
    set_out(world, message, REPLY);
}

static void give_up(struct world *world, struct message *message)
{
    struct worker *worker = &world->worker[message->worker];

    assert_null(redis_shares_failed(worker->shares, message->call.place, true));
    message->orphan = true;
    if (message->kind != CALL) /* a call may still be executed */
        message->kind = NOTHING;
}

static void deliver(struct world *world)
{
    for (uint32_t i = 0; i < MESSAGES; i++) {
        struct message *message = &world->messages[i];

        if (message->kind == NOTHING)
            continue;
        if (!message->orphan && world->step >= message->give_up)
            give_up(world, message);
        else if (message->kind == CALL && world->step >= message->step)
            execute(world, message);
        else if (message->kind == REPLY && world->step >= message->step) {
            struct worker *worker = &world->worker[message->worker];

            message->kind = NOTHING;
            assert_null(redis_shares_answered(worker->shares, message->call.place, &message->reply,
                                              worker_ns(world, message->worker)));
        }
    }
}

/* --- What goes wrong -------------------------------------------------------------------------- */

static void open_worker(struct world *world, uint32_t number)
{
    const struct redis_shares_options options = {
        .holder = ++world->holders, .keys_max = 64, .lends = true};

    assert_int_equal(redis_shares_open(&world->worker[number].shares, &options), 0);
}

/* A worker dies with what it holds. Its calls may still come to the server. */
static void die(struct world *world, uint32_t number)
{
    for (uint32_t i = 0; i < MESSAGES; i++) {
        struct message *message = &world->messages[i];

        if (message->kind == NOTHING || message->worker != number || message->orphan)
            continue;
        message->orphan = true;
        if (message->kind != CALL)
            message->kind = NOTHING;
    }
    for (uint32_t i = 0; i < BACKS; i++)
        world->backs[i].taken &= world->backs[i].worker != number;
    redis_shares_close(world->worker[number].shares);
    open_worker(world, number);
}

static void flush_home(struct world *world)
{
    if (world->generation + 1 == GENERATIONS)
        return;
    share_server_init(&world->server);
    world->generation++;
    world->flushes++;
}

static void break_something(struct world *world, bool flushes)
{
    uint32_t number = WORKERS + (uint32_t)draw(world, world->workers - WORKERS);

    if (draw(world, 3000) == 0)
        world->worker[number].cut_off = !world->worker[number].cut_off;
    if (draw(world, 6000) == 0)
        die(world, number);
    if (flushes && draw(world, 15000) == 0)
        flush_home(world);
}

/* --- One world -------------------------------------------------------------------------------- */

static void make_limit(struct weir_limit *limit, const struct weir_limit_spec *spec, uint64_t rate)
{
    struct weir_limit_spec part = *spec;

    part.rate = rate;
    part.burst = spec->burst != 0 ? rate : 0;
    assert_int_equal(weir_limit_init(limit, &part, NULL), 0);
    assert_true(limit->span_words <= SHARE_SERVER_WORDS);
}

static void open_world(struct world *world, const struct weir_limit_spec *spec, uint64_t times,
                       uint64_t seed)
{
    memset(world, 0, sizeof *world);
    world->random = seed * UINT64_C(0x9e3779b97f4a7c15) | 1;
    for (int i = 0; i < 10; i++)
        (void)draw(world, 2);
    world->regions = 3 + (uint32_t)draw(world, 6);
    world->workers = world->regions * WORKERS;
    world->times = times;

    uint64_t floor = spec->rate / (2 * world->regions + draw(world, 30));

    make_limit(&world->whole, spec, spec->rate);
    make_limit(&world->floor, spec, floor);
    make_limit(&world->home, spec, spec->rate - (world->regions - 1) * floor);
    share_server_init(&world->server);
    for (uint32_t r = 0; r < world->regions; r++) {
        share_server_init(&world->floors[r]);
        world->clock_ns[r] = draw(world, 5 * 3600 * SECOND_NS) / 1000 * 1000;
        /* all alike, or nearly all of one */
        world->rates[r] = seed % 2 == 0 ? 150 : r == 1 ? 300 : 3;
    }
    for (uint32_t i = WORKERS; i < world->workers; i++) {
        world->worker[i].clock_ns = draw(world, 5 * 3600 * SECOND_NS);
        open_worker(world, i);
    }
}

static void close_world(struct world *world)
{
    for (uint32_t i = WORKERS; i < world->workers; i++)
        redis_shares_close(world->worker[i].shares);
}

static void run_step(struct world *world, bool faults, bool flushes)
{
    const uint64_t window = WINDOW_S * STEPS_A_SECOND;

    if (world->step >= window)
        world->in_window -= world->admitted_in[world->step - window];
    deliver(world);
    give_back(world);
    for (uint32_t r = 0; r < world->regions; r++)
        if (draw(world, STEPS_A_SECOND) < world->rates[r])
            arrive(world, r);
    for (uint32_t i = WORKERS; i < world->workers; i++)
        send_calls(world, i);
    if (faults)
        break_something(world, flushes);
    world->step++;
}

static const struct {
    const char *name;
    struct weir_limit_spec spec;
    uint64_t times; /* the rate: what any window of that length may have */
} limits[] = {
    {"fixed", {.algorithm = WEIR_FIXED_WINDOW}, 2},
    {"sliding", {.algorithm = WEIR_SLIDING_WINDOW}, 2},
    {"segments", {.algorithm = WEIR_SLIDING_WINDOW, .segments = 5}, 2},
    {"log", {.algorithm = WEIR_SLIDING_LOG}, 1},
    {"bucket", {.algorithm = WEIR_TOKEN_BUCKET, .burst = 1}, 2},
    {"gcra", {.algorithm = WEIR_GCRA, .burst = 1}, 2},
};

static uint64_t seeds = 4, first_seed = 1;

/* Runs every seed of a limit; adds up what was admitted of what one state would have. */
static void run_all(size_t at, bool faults, bool flushes, struct world *world)
{
    uint64_t admitted = 0, could = 0, lent = 0, calls = 0, requests = 0;
    struct weir_limit_spec spec = limits[at].spec;

    spec.rate = RATE;
    spec.window_ns = WINDOW_S * SECOND_NS;
    for (uint64_t seed = first_seed; seed < first_seed + seeds; seed++) {
        open_world(world, &spec, limits[at].times, seed + 1000 * at);
        world->seed = seed;
        while (world->step < SECONDS * STEPS_A_SECOND)
            run_step(world, faults, flushes);
        close_world(world);
        assert_true(world->lent > 0);
        admitted += world->admitted;
        could += world->could;
        lent += world->lent;
        calls += world->calls;
        requests += world->requests;
    }
    print_message(
        "%-9s %llu requests, admitted %.1f %% of what one state would, %.1f %% of it lent, "
        "%.1f calls a second and key\n",
        limits[at].name, (unsigned long long)requests, 100.0 * (double)admitted / (double)could,
        100.0 * (double)lent / (double)admitted, (double)calls / ((double)seeds * SECONDS));
    if (!faults)
        assert_true(admitted * 10 >= could * 7);
}

static struct world *new_world(void)
{
    struct world *world = malloc(sizeof *world);

    assert_non_null(world);
    return world;
}

static void run_each(bool faults, bool flushes)
{
    struct world *world = new_world();

    for (size_t i = 0; i < sizeof limits / sizeof limits[0]; i++)
        run_all(i, faults, flushes, world);
    free(world);
}

static void all_regions_together_never_pass_the_bound(void **state)
{
    run_each(false, false);
}

static void nor_do_they_when_links_and_workers_fail(void **state)
{
    run_each(true, false);
}

static void a_home_that_forgets_costs_its_part_each_time(void **state)
{
    run_each(true, true);
}

/* Arguments: how many seeds of each limit (4 run about 2.5 million requests), and the first one. */
int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(all_regions_together_never_pass_the_bound),
        cmocka_unit_test(nor_do_they_when_links_and_workers_fail),
        cmocka_unit_test(a_home_that_forgets_costs_its_part_each_time),
    };

    if (argc > 1)
        seeds = strtoull(argv[1], NULL, 10);
    if (argc > 2)
        first_seed = strtoull(argv[2], NULL, 10);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
