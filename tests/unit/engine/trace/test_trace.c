/* SPDX-License-Identifier: Apache-2.0 */
/* Golden traces of the engine in virtual time (world.h): over a table, all that Redis plays alike;
 * over a store that is late, what a deadline and a failure do. */
#include <string.h>

#include "engine/open.h"
#include "rig.h"
#include "table_rig.h"
#include "test.h"
#include "traces.h"
#include "world.h"

_Static_assert(WORLD_START == START, "the table opens when the world begins");

/* --- Over a table ----------------------------------------------------------------------------- */

struct embedded {
    struct weir_table *table;
    struct weir_store *store;
    struct weir_engine *engine;
    struct weir_decision *last;
};

static void embedded_done(void *context, struct weir_decision *decision)
{
    struct embedded *embedded = context;
    embedded->last = decision;
}

static void embedded_prepare(struct world *world, struct weir_limit *limit)
{
    struct embedded *embedded = world->context;
    assert_int_equal(rig_prepare_limit(embedded->store, limit, limit->name), 0);
}

/* Takes a decision of the engine and queues what was asked. */
static struct weir_decision *queue(struct weir_engine *engine, const struct weir_decision *asked)
{
    struct weir_decision *decision = weir_engine_take(engine);
    assert_non_null(decision);
    memcpy(decision->checks, asked->checks, asked->count * sizeof *asked->checks);
    decision->count = asked->count;
    decision->op = asked->op;
    decision->charged_at_ns = asked->charged_at_ns;
    weir_engine_queue(engine, decision);
    return decision;
}

static struct weir_decision *embedded_decide(struct world *world, const struct weir_decision *asked)
{
    struct embedded *embedded = world->context;
    if (embedded->last)
        weir_engine_release(embedded->engine, embedded->last);
    embedded->last = NULL;
    queue(embedded->engine, asked);
    weir_engine_run(embedded->engine, world->now_ns);
    assert_non_null(embedded->last); /* the table answers at once */
    return embedded->last;
}

static void play_embedded(const char *trace)
{
    static const uint64_t secret[2] = {1, 2};
    static struct world world;
    struct embedded embedded = {.table = rig_table(1 << 20)};
    embedded.store = rig_embedded(embedded.table);
    const struct weir_engine_options options = {.store = embedded.store,
                                                .secret = secret,
                                                .decisions = 4,
                                                .done = embedded_done,
                                                .done_context = &embedded};
    assert_int_equal(weir_engine_open(&embedded.engine, &options), 0);
    world = (struct world){
        .context = &embedded, .decide = embedded_decide, .prepare = embedded_prepare};
    world_play(&world, trace);
    weir_engine_release(embedded.engine, embedded.last);
    weir_engine_close(embedded.engine);
    embedded.store->ops->close(embedded.store);
    weir_table_close(embedded.table);
}

TEST("over a table the engine plays each golden trace")
{
    for (size_t i = 0; i < TRACES; i++) {
        print_message("%s\n", traces[i].story);
        play_embedded(traces[i].trace);
    }
}

/* --- Over a store that is late ---------------------------------------------------------------- */

static struct weir_decision *late_decide(struct world *world, const struct weir_decision *asked)
{
    struct rig *rig = world->context;
    uint32_t before = rig->done_count;
    queue(rig->engine, asked)->checks[0].on_store_error = WEIR_FAIL_OPEN;
    weir_engine_run(rig->engine, world->now_ns);
    if (rig->done_count > before)
        return rig->done[before];
    world_put(world, "pending");
    return NULL;
}

/* `answer` and `fail` end the oldest decision that the store has; `run` is a turn of the loop. */
static void late_other(struct world *world, const char *verb)
{
    struct rig *rig = world->context;
    uint32_t before = rig->done_count;
    if (strcmp(verb, "answer") == 0)
        fake_store_answer(rig->store, 0);
    else if (strcmp(verb, "fail") == 0)
        fake_store_fail(rig->store, 0, WEIR_ERR_STORE);
    else
        assert_string_equal(verb, "run");
    weir_engine_run(rig->engine, world->now_ns);
    if (rig->done_count == before)
        world_put(world, "nothing");
    for (uint32_t i = before; i < rig->done_count; i++) {
        world_put(world, "%s", i > before ? " | " : "");
        world_write(world, rig->done[i]);
    }
}

static void play_late(const char *trace)
{
    static struct world world;
    static struct rig rig;
    rig_open(&rig, 0, false);
    rig.store->later_every = 1;
    world = (struct world){.context = &rig, .decide = late_decide, .other = late_other};
    world_play(&world, trace);
    for (uint32_t i = 0; i < rig.done_count; i++)
        weir_engine_release(rig.engine, rig.done[i]);
    rig_close(&rig);
}

TEST("an answer in time counts and one after the deadline does not")
{
    play_late("limit api gcra 1/10s\n"
              "0s ask api -> pending\n"
              "0.01s run -> nothing\n"
              "0.015s answer -> allowed; api 0/1 reset 10s\n"
              "1s ask api -> pending\n"
              "1.019s run -> nothing\n"
              "1.02s run -> allowed (the deadline passed); api 1/1\n");
}

TEST("where the store fails the limit that fails open admits")
{
    play_late("limit api gcra 1/10s\n"
              "0s ask api -> pending\n"
              "0s fail -> allowed (the store did not answer); api 1/1\n");
}

RUN_TESTS()
