/* SPDX-License-Identifier: Apache-2.0 */
/* The golden traces of the engine (tests/unit/engine/trace/traces.h), played by the scripts of a
 * real server in virtual time: each step a call with its time, and the same text. */
#include "script_rig.h"
#include "test.h"

#include "traces.h"
#include "world.h"

struct twin {
    struct script_rig rig;
    struct one one;
};

static struct weir_decision *twin_decide(struct world *world, const struct weir_decision *asked)
{
    struct twin *twin = world->context;
    struct one *one = &twin->one;
    begin_one(one);
    memcpy(one->checks, asked->checks, asked->count * sizeof *asked->checks);
    one->decision.count = asked->count;
    one->decision.op = asked->op;
    one->decision.charged_at_ns = asked->charged_at_ns;
    one->decision.verdict = (uint8_t)rig_decide(&twin->rig, one, world->now_ns);
    return &one->decision;
}

static void twin_prepare(struct world *world, struct weir_limit *limit)
{
    struct weir_reason reason;
    (void)world;
    assert_int_equal(redis_script_accepts(limit, &reason), 0);
}

TEST("the scripts play each golden trace of the engine")
{
    static struct world world;
    static struct twin twin;
    static const char *const forget[] = {"FLUSHALL"};
    rig_open(&twin.rig, NULL);
    for (size_t i = 0; i < TRACES; i++) {
        print_message("%s\n", traces[i].story);
        redis_link_ask(&twin.rig.link, forget, NULL, 1);
        world = (struct world){.context = &twin, .decide = twin_decide, .prepare = twin_prepare};
        world_play(&world, traces[i].trace);
    }
    rig_close(&twin.rig);
}

RUN_TESTS()
