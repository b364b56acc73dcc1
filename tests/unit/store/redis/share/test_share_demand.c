/* SPDX-License-Identifier: Apache-2.0 */
/* Seconds of demand on one key, over three workers with their tables of portions and a model of the
 * server: how much of the limit is used, how many calls it takes, and that no admission is one that
 * the exact algorithm, fed with the admissions alone, would not have made.
 *
 * Time goes in steps of STEP_NS. A call reaches the server two steps after it was sent, its reply
 * the worker two steps after that. Requests come at random with each worker's rate of the moment.
 */
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
#include "test.h"

#define STEP_NS UINT64_C(100000)
#define SECOND_NS UINT64_C(1000000000)
#define MINUTE (60 * SECOND_NS)
#define START_NS (UINT64_C(1700000040) * SECOND_NS) /* a minute begins */
#define WAY 2                                       /* steps */
#define WORKERS 3
#define WAITING 512
#define CALLS 512

struct request {
    struct weir_check check;
    struct weir_outcome outcome;
    struct weir_decision decision;
    struct redis_shares_wait wait;
    bool taken;
};

/* Something on its way: a worker's call, its reply, or a request to be decided exactly. */
struct message {
    enum { NOTHING, CALL, REPLY, EXACT } kind;
    uint64_t step;
    uint32_t worker;
    struct redis_shares_call call;
    struct share_reply reply;
    struct request *request;
};

struct worker {
    struct redis_shares *shares;
    struct request requests[WAITING];
    uint64_t clock_ns; /* what its clock is ahead */
};

/* Requests a second of each worker, as the time goes. */
typedef void (*demand_of)(uint64_t step, uint64_t rates[WORKERS]);

struct world {
    struct weir_limit limit;
    struct share_server server;
    union {
        struct weir_cell cell;
        uint64_t span[SHARE_SERVER_WORDS];
    } shadow, exact; /* fed with the admissions; with all requests */
    struct worker workers[WORKERS];
    struct message messages[CALLS];
    uint64_t random, step, cost;
    uint64_t decisions, admitted, could, calls, exactly, forfeited;
};

static uint64_t next_random(struct world *world)
{
    return draw_next(&world->random);
}

static uint64_t server_ns(const struct world *world)
{
    return START_NS + world->step * STEP_NS;
}

static uint64_t worker_ns(const struct world *world, uint32_t worker)
{
    return server_ns(world) + world->workers[worker].clock_ns;
}

static void admit(struct world *world)
{
    struct weir_use use = {.now_ns = server_ns(world), .cost = world->cost};
    uint64_t delay_ns;

    assert_true(weir_decide(&world->limit, &world->shadow, &use, NULL, &delay_ns));
    world->admitted += world->cost;
}

static struct message *send(struct world *world, int kind, uint32_t worker)
{
    for (int i = 0; i < CALLS; i++) {
        struct message *message = &world->messages[i];

        if (message->kind == NOTHING) {
            message->kind = kind;
            message->step = world->step + WAY;
            message->worker = worker;
            return message;
        }
    }
    fail_msg("more than %d messages on their way", CALLS);
    return NULL;
}

static void finish(struct world *world, struct request *request)
{
    world->decisions++;
    if (request->decision.verdict == WEIR_ALLOWED)
        admit(world);
    else
        assert_true(request->outcome.reported && request->outcome.report.retry_after_ns > 0);
    request->taken = false;
}

static void try_request(struct world *world, uint32_t worker, struct request *request)
{
    switch (redis_shares_try(world->workers[worker].shares, &request->decision, &request->wait,
                             worker_ns(world, worker))) {
    case REDIS_SHARES_DECIDED:
        finish(world, request);
        break;
    case REDIS_SHARES_EXACT:
        send(world, EXACT, worker)->request = request;
        world->exactly++;
        break;
    case REDIS_SHARES_WAIT:
        break;
    }
}

static void arrive(struct world *world, uint32_t worker)
{
    struct weir_use use = {.now_ns = server_ns(world), .cost = world->cost};
    struct request *request = world->workers[worker].requests;
    uint64_t delay_ns;

    if (weir_decide(&world->limit, &world->exact, &use, NULL, &delay_ns))
        world->could += world->cost;
    while (request->taken) {
        request++;
        assert_true(request < world->workers[worker].requests + WAITING);
    }
    memset(request, 0, sizeof *request);
    request->taken = true;
    request->check = (struct weir_check){.limit = &world->limit,
                                         .hash = {7, 7},
                                         .cost = world->cost,
                                         .key = {"key", 3},
                                         .flags = WEIR_CHECK_LEASED};
    request->decision.checks = &request->check;
    request->decision.outcomes = &request->outcome;
    request->decision.count = 1;
    try_request(world, worker, request);
}

static void deliver(struct world *world, struct message *message)
{
    struct message got = *message;
    struct redis_shares *shares = world->workers[got.worker].shares;
    struct redis_shares_wait *woken;

    message->kind = NOTHING;
    if (got.kind == EXACT) {
        bool admits =
            share_server_decide(&world->server, &world->limit, world->cost, server_ns(world));

        world->decisions++;
        if (admits)
            admit(world);
        got.request->taken = false;
    } else if (got.kind == CALL) {
        struct message *answer = send(world, REPLY, got.worker);

        world->calls++;
        answer->call = got.call;
        share_server_execute(&world->server, &world->limit, &got.call.ask, server_ns(world),
                             &answer->reply);
    } else {
        woken =
            redis_shares_answered(shares, got.call.place, &got.reply, worker_ns(world, got.worker));
        while (woken != NULL) {
            struct request *request =
                (struct request *)(void *)((char *)woken - offsetof(struct request, wait));
            woken = woken->next;
            try_request(world, got.worker, request);
        }
    }
}

static void send_calls(struct world *world, uint32_t worker)
{
    struct redis_shares *shares = world->workers[worker].shares;
    struct redis_shares_call call;

    (void)redis_shares_tick(shares, worker_ns(world, worker));
    while (redis_shares_next(shares, worker_ns(world, worker), &call))
        send(world, CALL, worker)->call = call;
}

static void run_step(struct world *world, demand_of demand)
{
    uint64_t rates[WORKERS];

    demand(world->step, rates);
    for (int i = 0; i < CALLS; i++)
        if (world->messages[i].kind != NOTHING && world->messages[i].step <= world->step)
            deliver(world, &world->messages[i]);
    for (uint32_t worker = 0; worker < WORKERS; worker++) {
        /* Two chances a step, so that rates up to 20,000 a second can be. */
        for (int chance = 0; chance < 2; chance++)
            if (next_random(world) % (2 * SECOND_NS / STEP_NS) < rates[worker])
                arrive(world, worker);
        send_calls(world, worker);
    }
    world->step++;
}

static void open_world(struct world *world, const struct weir_limit_spec *spec, uint64_t cost)
{
    memset(world, 0, sizeof *world);
    assert_int_equal(weir_limit_init(&world->limit, spec, NULL), 0);
    assert_in_range(world->limit.span_words, 0, SHARE_SERVER_WORDS);
    share_server_init(&world->server);
    world->random = 88172645463325252;
    world->cost = cost;
    for (uint32_t i = 0; i < WORKERS; i++) {
        struct redis_shares_options options = {.holder = i + 1, .keys_max = 64};

        assert_int_equal(redis_shares_open(&world->workers[i].shares, &options), 0);
        world->workers[i].clock_ns = i * 3600 * SECOND_NS; /* an hour between them */
    }
}

static void close_world(struct world *world)
{
    for (uint32_t i = 0; i < WORKERS; i++)
        redis_shares_close(world->workers[i].shares);
}

/* --- Demands --------------------------------------------------------------------------------- */

static void steady(uint64_t step, uint64_t rates[WORKERS])
{
    for (int i = 0; i < WORKERS; i++)
        rates[i] = 2000;
}

static void skewed(uint64_t step, uint64_t rates[WORKERS])
{
    rates[0] = 5000;
    rates[1] = 200;
    rates[2] = 20;
}

/* 200 ms of every 300, in each worker at another time. */
static void bursts(uint64_t step, uint64_t rates[WORKERS])
{
    for (uint64_t i = 0; i < WORKERS; i++)
        rates[i] = (step + 1000 * i) % 3000 < 2000 ? 3000 : 0;
}

/* After three seconds one worker has nothing to do, after six the next. */
static void leaving(uint64_t step, uint64_t rates[WORKERS])
{
    for (uint64_t i = 0; i < WORKERS; i++)
        rates[i] = step < (i + 1) * 30000 ? 3000 : 0;
}

/* Four fifths of 100 a second, and all of the others' rates. */
static void modest(uint64_t step, uint64_t rates[WORKERS])
{
    rates[0] = 40;
    rates[1] = 30;
    rates[2] = 10;
}

/* Half as much again as the limit in question: of all workers the same, or nearly all of one. */
static uint64_t a_second;

static void half_above(uint64_t step, uint64_t rates[WORKERS])
{
    for (int i = 0; i < WORKERS; i++)
        rates[i] = a_second / 2;
}

static void half_above_of_one(uint64_t step, uint64_t rates[WORKERS])
{
    rates[0] = a_second * 27 / 20;
    rates[1] = a_second * 3 / 20;
    rates[2] = 0;
}

/* --- Limits ---------------------------------------------------------------------------------- */

static const struct {
    const char *name;
    struct weir_limit_spec spec;
} limits[] = {
    {"fixed 100/s", {.algorithm = WEIR_FIXED_WINDOW, .rate = 100, .window_ns = SECOND_NS}},
    {"fixed 1000/10s", {.algorithm = WEIR_FIXED_WINDOW, .rate = 1000, .window_ns = 10 * SECOND_NS}},
    {"sliding 100/s", {.algorithm = WEIR_SLIDING_WINDOW, .rate = 100, .window_ns = SECOND_NS}},
    {"sliding 1000/10s",
     {.algorithm = WEIR_SLIDING_WINDOW, .rate = 1000, .window_ns = 10 * SECOND_NS}},
    {"sliding 10000/min",
     {.algorithm = WEIR_SLIDING_WINDOW, .rate = 10000, .window_ns = 60 * SECOND_NS}},
    {"segments 1000/10s",
     {.algorithm = WEIR_SLIDING_WINDOW, .rate = 1000, .window_ns = 10 * SECOND_NS, .segments = 10}},
    {"log 100/s", {.algorithm = WEIR_SLIDING_LOG, .rate = 100, .window_ns = SECOND_NS}},
    {"log 1000/10s", {.algorithm = WEIR_SLIDING_LOG, .rate = 1000, .window_ns = 10 * SECOND_NS}},
    {"bucket 1000/s burst 200",
     {.algorithm = WEIR_TOKEN_BUCKET, .rate = 1000, .window_ns = SECOND_NS, .burst = 200}},
    {"bucket 100/s", {.algorithm = WEIR_TOKEN_BUCKET, .rate = 100, .window_ns = SECOND_NS}},
    {"gcra 777/s burst 333",
     {.algorithm = WEIR_GCRA, .rate = 777, .window_ns = SECOND_NS, .burst = 333}},
};

/* Under the sanitizers, one of each family of algorithms. */
#ifdef MODEL_QUICK
#define EACH 3
#else
#define EACH 1
#endif

/* So many seconds of it. Returns parts in a thousand of what exact mode would have admitted. */
static uint64_t run_for(struct world *world, const struct weir_limit_spec *spec, demand_of demand,
                        uint64_t cost, uint64_t seconds)
{
    open_world(world, spec, cost);
    while (world->step < seconds * SECOND_NS / STEP_NS)
        run_step(world, demand);
    world->forfeited = 0;
    for (int i = 0; i < WORKERS; i++)
        world->forfeited += redis_shares_counters(world->workers[i].shares)->forfeited;
    close_world(world);
    return world->admitted * 1000 / world->could;
}

static uint64_t run(struct world *world, const struct weir_limit_spec *spec, demand_of demand,
                    uint64_t cost)
{
    return run_for(world, spec, demand, cost, 10);
}

static void check_all(const char *name, demand_of demand, uint64_t cost, uint64_t used_min,
                      uint64_t a_call_min)
{
    static struct world world;
    bool good = true;

    for (size_t i = 0; i < sizeof limits / sizeof limits[0]; i += EACH) {
        uint64_t used = run(&world, &limits[i].spec, demand, cost);
        uint64_t a_call = world.decisions / (world.calls + world.exactly);

        print_message("%s, %s: %lu decisions, %lu calls, %lu exact: %lu a call; %lu of %lu "
                      "admitted: %lu.%lu %%\n",
                      limits[i].name, name, world.decisions, world.calls, world.exactly, a_call,
                      world.admitted, world.could, used / 10, used % 10);
        good = good && used >= used_min && a_call >= a_call_min;
    }
    assert_true(good);
}

TEST("steady demand uses the limit")
{
    check_all("steady", steady, 1, 970, 20);
}

TEST("skewed demand uses the limit")
{
    check_all("skewed", skewed, 1, 970, 20);
}

TEST("bursts use the limit")
{
    check_all("bursts", bursts, 1, 970, 20);
}

TEST("what idle workers held is used by the others")
{
    check_all("leaving", leaving, 1, 970, 20);
}

TEST("larger costs use the limit")
{
    check_all("cost 7", steady, 7, 900, 20);
}

TEST("demand below the limit is hardly denied")
{
    check_all("modest", modest, 1, 970, 0);
}

/* From fresh, and long after the burst is used up. */
TEST("demand above the limit uses nearly all of it")
{
    static struct world world;
    static const struct {
        const char *name;
        struct weir_limit_spec spec;
        uint64_t a_second, seconds;
    } cases[] = {
        {"gcra 600/min", {.algorithm = WEIR_GCRA, .rate = 600, .window_ns = MINUTE}, 10, 180},
        {"gcra 6000/min", {.algorithm = WEIR_GCRA, .rate = 6000, .window_ns = MINUTE}, 100, 180},
        {"gcra 300/s", {.algorithm = WEIR_GCRA, .rate = 300, .window_ns = SECOND_NS}, 300, 20},
        {"fixed 300/s",
         {.algorithm = WEIR_FIXED_WINDOW, .rate = 300, .window_ns = SECOND_NS},
         300,
         20},
        {"sliding 300/s",
         {.algorithm = WEIR_SLIDING_WINDOW, .rate = 300, .window_ns = SECOND_NS},
         300,
         20},
        {"log 300/s",
         {.algorithm = WEIR_SLIDING_LOG, .rate = 300, .window_ns = SECOND_NS},
         300,
         20},
    };
    bool good = true;

    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i += EACH)
        for (int of_one = 0; of_one < 2; of_one++) {
            a_second = cases[i].a_second;
            uint64_t used = run_for(&world, &cases[i].spec, of_one ? half_above_of_one : half_above,
                                    1, cases[i].seconds);

            print_message(
                "%s%s: %lu of %lu admitted: %lu.%lu %%, %lu calls, %lu exact, %lu forfeited\n",
                cases[i].name, of_one ? ", of one" : "", world.admitted, world.could, used / 10,
                used % 10, world.calls, world.exactly, world.forfeited);
            good = good && used >= 970;
        }
    assert_true(good);
}

RUN_TESTS()
