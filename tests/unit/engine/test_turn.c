/* SPDX-License-Identifier: Apache-2.0 */
/* Golden traces of the engine's turns: commands to the engine and its store in virtual time, and
 * every event that they cause, line by line.
 *
 * A line that starts with a letter is a command; the indented lines after it are its events, in
 * order. Times are in milliseconds since the start. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/bytes.h"
#include "feature/reserve/engine/reservation.h"
#include "rig.h"
#include "test.h"

#define MS (SECOND / 1000)
#define DECISIONS_MAX 32
#define EVENTS_MAX 16
#define EVENT_MAX 128
#define POOL 256 /* the rig's */

static const char rules_text[] = "limits:\n"
                                 "- {name: api, key: [], algorithm: fixed_window, rate: 100/h}\n";

static struct {
    struct rig rig;
    struct weir_limit lock;
    const struct weir_store_ops *fake_ops;
    struct weir_store_ops ops;
    struct weir_decision *decisions[DECISIONS_MAX];
    char events[EVENTS_MAX][EVENT_MAX];
    uint32_t count, compared;
    uint64_t now_ns;
} world;

/* --- Events ----------------------------------------------------------------------------------- */

static char *event(void)
{
    assert_true(world.count < EVENTS_MAX);
    return world.events[world.count++];
}

static void on_done(struct rig *rig, struct weir_decision *d)
{
    static const char *const sources[] = {"store", "local", "open", "closed"};
    (void)rig;
    snprintf(event(), EVENT_MAX, "  done %d %s by %s%s%s", (int)owner_of(d),
             d->verdict == WEIR_ALLOWED ? "allowed" : "denied", sources[d->source],
             d->error != 0 ? ": " : "", d->error != 0 ? weir_error_text(d->error) : "");
}

static size_t submit(struct weir_store *store, uint64_t now_ns, struct weir_decision *const *batch,
                     size_t count)
{
    static const char *const ops[] = {
        [WEIR_OP_DECIDE] = "decide", [WEIR_OP_PEEK] = "peek",       [WEIR_OP_DEBIT] = "debit",
        [WEIR_OP_REFUND] = "refund", [WEIR_OP_RELEASE] = "release", [WEIR_OP_RESET] = "reset",
        [WEIR_OP_LOOK] = "look"};
    char *text = event();
    int size = snprintf(text, EVENT_MAX, "  submit");
    for (size_t i = 0; i < count; i++)
        size += snprintf(text + size, EVENT_MAX - (size_t)size, " %d:%s", (int)owner_of(batch[i]),
                         ops[batch[i]->op]);
    return world.fake_ops->submit(store, now_ns, batch, count);
}

static void cancel(struct weir_store *store, struct weir_decision *decision)
{
    snprintf(event(), EVENT_MAX, "  cancel %d", (int)owner_of(decision));
    world.fake_ops->cancel(store, decision);
}

/* --- Commands --------------------------------------------------------------------------------- */

static struct weir_decision *take(int number)
{
    assert_true(number > 0 && number < DECISIONS_MAX);
    return world.decisions[number] = rig_take(&world.rig, (uintptr_t)number);
}

static void queue(int number, int cost, bool reserves)
{
    struct weir_decision *d = take(number);
    struct weir_request request;
    struct weir_reason reason;
    weir_request_clear(&request, weir_rules_attribute_count(weir_engine_rules(world.rig.engine)));
    request.cost = (uint64_t)cost;
    assert_int_equal(weir_engine_apply_rules(world.rig.engine, d, &request, &reason), 0);
    if (reserves)
        assert_int_equal(weir_engine_apply_reservation(world.rig.engine, d, (uint64_t)cost,
                                                       10 * SECOND, &reason),
                         0);
    weir_engine_queue(world.rig.engine, d);
}

static void settle(int number, int of, int cost)
{
    char token[WEIR_RESERVATION_TEXT_MAX];
    struct weir_settle settle = {.cost = (uint64_t)cost, .how = WEIR_SETTLE_COST};
    struct weir_engine *engine = world.rig.engine;
    uint64_t life_ns, id;
    size_t size =
        weir_engine_reservation(engine, world.decisions[of], world.now_ns, &life_ns, &id, token);
    struct weir_decision *d = take(number);
    assert_int_equal(weir_engine_apply_settle(engine, d, (struct weir_bytes){token, size}, &settle,
                                              world.now_ns),
                     0);
    weir_engine_queue(engine, d);
}

static void end_lease(int number, int of)
{
    static char text[WEIR_LEASE_TOKEN_MAX];
    static struct weir_answer answer;
    weir_engine_answer(world.decisions[of], &answer, text);
    struct weir_decision *d = take(number);
    assert_int_equal(weir_engine_apply_lease(world.rig.engine, d, weir_bytes_of(text)), 0);
    weir_engine_queue(world.rig.engine, d);
}

static void run(int at_ms)
{
    world.now_ns = START + (uint64_t)at_ms * MS;
    uint64_t next_ns = weir_engine_run(world.rig.engine, world.now_ns);
    if (next_ns == WEIR_NEVER)
        snprintf(event(), EVENT_MAX, "  next never");
    else
        snprintf(event(), EVENT_MAX, "  next %" PRIu64, (next_ns - START) / MS);
}

/* How many decisions of the pool are free. */
static void count_free(void)
{
    struct weir_decision *taken[POOL + 1];
    uint32_t count = 0;
    while (count <= POOL && (taken[count] = weir_engine_take(world.rig.engine)) != NULL)
        count++;
    for (uint32_t i = 0; i < count; i++)
        weir_engine_release(world.rig.engine, taken[i]);
    snprintf(event(), EVENT_MAX, "  %u used, %u pending", POOL - count,
             weir_engine_pending(world.rig.engine));
}

static void command(const char *line)
{
    char verb[16];
    int a = 0, b = 0, c = 1;
    assert_true(sscanf(line, "%15s %d %d %d", verb, &a, &b, &c) >= 1);
    if (strcmp(verb, "later") == 0)
        world.rig.store->later_every = 1;
    else if (strcmp(verb, "now") == 0)
        world.rig.store->later_every = 0;
    else if (strcmp(verb, "queue") == 0)
        queue(a, 1, false);
    else if (strcmp(verb, "reserve") == 0)
        queue(a, b, true);
    else if (strcmp(verb, "settle") == 0)
        settle(a, b, c);
    else if (strcmp(verb, "hold") == 0)
        world.decisions[a] = rig_queue(&world.rig, (uintptr_t)a, &world.lock, "lock", 1);
    else if (strcmp(verb, "end") == 0)
        end_lease(a, b);
    else if (strcmp(verb, "run") == 0)
        run(a);
    else if (strcmp(verb, "answer") == 0)
        fake_store_answer(world.rig.store, 0);
    else if (strcmp(verb, "fail") == 0)
        fake_store_fail(world.rig.store, 0, WEIR_ERR_STORE);
    else if (strcmp(verb, "cancel") == 0)
        weir_engine_cancel(world.rig.engine, world.decisions[a]);
    else if (strcmp(verb, "release") == 0)
        weir_engine_release(world.rig.engine, world.decisions[a]);
    else if (strcmp(verb, "count") == 0)
        count_free();
    else
        fail_msg("no such command: %s", line);
}

/* Runs a trace. It has every event, and nothing else. */
static void play(const char *const *lines)
{
    for (; *lines != NULL; lines++) {
        if ((*lines)[0] != ' ') {
            if (world.compared < world.count)
                fail_msg("not in the trace, before '%s': '%s'", *lines,
                         world.events[world.compared]);
            world.count = world.compared = 0;
            command(*lines);
        } else if (world.compared == world.count) {
            fail_msg("did not happen: '%s'", *lines);
        } else {
            assert_string_equal(world.events[world.compared++], *lines);
        }
    }
    assert_int_equal(world.compared, world.count);
}

static int open_world(void **state)
{
    (void)state;
    memset(&world, 0, sizeof world);
    rig_open_text(&world.rig, rules_text);
    world.rig.on_done = on_done;
    world.lock = rig_limit(WEIR_CONCURRENCY, 1, 60 * SECOND);
    world.fake_ops = world.rig.store->base.ops;
    world.ops = *world.fake_ops;
    world.ops.submit = submit;
    world.ops.cancel = cancel;
    world.rig.store->base.ops = &world.ops;
    return 0;
}

static int close_world(void **state)
{
    (void)state;
    rig_close(&world.rig);
    return 0;
}

/* --- Traces ----------------------------------------------------------------------------------- */

TEST_WITH(open_world, close_world, "answers deadlines and failures end what is pending")
{
    static const char *const trace[] = {
        "queue 1",
        "run 0",
        "  submit 1:decide",
        "  done 1 allowed by store",
        "  next never",
        "later",
        "queue 2",
        "queue 3",
        "queue 4",
        "run 5",
        "  submit 2:decide 3:decide 4:decide",
        "  next 25",
        "queue 5",
        "run 10",
        "  submit 5:decide",
        "  next 25",
        "answer",
        "  done 2 allowed by store",
        "fail",
        "  done 3 allowed by open: the store did not answer",
        "run 24",
        "  next 25",
        "run 25",
        "  cancel 4",
        "  done 4 allowed by open: the deadline passed",
        "  next 30",
        "run 30",
        "  cancel 5",
        "  done 5 allowed by open: the deadline passed",
        "  next never",
        "release 1",
        "release 2",
        "release 3",
        "release 4",
        "release 5",
        "count",
        "  0 used, 0 pending",
        NULL,
    };
    play(trace);
    (void)state;
}

TEST_WITH(open_world, close_world, "a cancelled request is not reported")
{
    static const char *const trace[] = {
        "queue 1",
        "cancel 1",
        "run 0",
        "  next never",
        "later",
        "queue 2",
        "run 1",
        "  submit 2:decide",
        "  next 21",
        "cancel 2",
        "  cancel 2",
        "run 30",
        "  next never",
        "now",
        "queue 3",
        "run 31",
        "  submit 3:decide",
        "  done 3 allowed by store",
        "  next never",
        "cancel 3",
        "run 32",
        "  next never",
        "count",
        "  0 used, 0 pending",
        NULL,
    };
    play(trace);
    (void)state;
}

TEST_WITH(open_world, close_world, "a cancelled operation is still done")
{
    static const char *const trace[] = {
        "hold 1",
        "run 0",
        "  submit 1:decide",
        "  done 1 allowed by store",
        "  next never",
        "end 2 1",
        "cancel 2",
        "run 1",
        "  submit 2:release",
        "  next never",
        "hold 3",
        "run 2",
        "  submit 3:decide",
        "  done 3 allowed by store",
        "  next never",
        "end 4 3",
        "later",
        "run 3",
        "  submit 4:release",
        "  next 23",
        "cancel 4",
        "answer",
        "now",
        "hold 5",
        "run 4",
        "  submit 5:decide",
        "  done 5 allowed by store",
        "  next never",
        "later",
        "end 6 5",
        "run 5",
        "  submit 6:release",
        "  next 25",
        "cancel 6",
        "run 25",
        "  cancel 6",
        "  next never",
        "release 1",
        "release 3",
        "cancel 5",
        "run 27",
        "  submit 5:release",
        "  next 47",
        "run 47",
        "  cancel 5",
        "  next never",
        "count",
        "  0 used, 0 pending",
        NULL,
    };
    play(trace);
    (void)state;
}

TEST_WITH(open_world, close_world, "the lease of a cancelled answer ends")
{
    static const char *const trace[] = {
        "hold 1",
        "run 0",
        "  submit 1:decide",
        "  done 1 allowed by store",
        "  next never",
        "cancel 1",
        "run 1",
        "  submit 1:release",
        "  next never",
        "later",
        "hold 2",
        "run 2",
        "  submit 2:decide",
        "  next 22",
        "answer",
        "  done 2 allowed by store",
        "cancel 2",
        "run 3",
        "  submit 2:release",
        "  next 23",
        "fail",
        "count",
        "  0 used, 0 pending",
        NULL,
    };
    play(trace);
    (void)state;
}

TEST_WITH(open_world, close_world, "a settlement takes steps and continues when it is cancelled")
{
    static const char *const trace[] = {
        "reserve 1 5",
        "run 0",
        "  submit 1:decide",
        "  done 1 allowed by store",
        "  next never",
        "settle 2 1 3",
        "run 1",
        "  submit 2:debit",
        "  submit 2:refund",
        "  done 2 allowed by store",
        "  next never",
        "reserve 3 5",
        "run 2",
        "  submit 3:decide",
        "  done 3 allowed by store",
        "  next never",
        "later",
        "settle 4 3 3",
        "run 3",
        "  submit 4:debit",
        "  next 23",
        "answer",
        "run 4",
        "  submit 4:refund",
        "  next 24",
        "cancel 4",
        "answer",
        "run 5",
        "  next never",
        "release 1",
        "release 2",
        "release 3",
        "count",
        "  0 used, 0 pending",
        NULL,
    };
    play(trace);
    (void)state;
}

TEST_WITH(open_world, close_world, "a settlement ends where the store fails or is late")
{
    static const char *const trace[] = {
        "reserve 1 5",
        "run 0",
        "  submit 1:decide",
        "  done 1 allowed by store",
        "  next never",
        "later",
        "settle 2 1 3",
        "run 1",
        "  submit 2:debit",
        "  next 21",
        "run 21",
        "  cancel 2",
        "  done 2 allowed by open: the deadline passed",
        "  next never",
        "settle 3 1 3",
        "run 22",
        "  submit 3:debit",
        "  next 42",
        "fail",
        "  done 3 allowed by open: the store did not answer",
        "settle 4 1 3",
        "run 23",
        "  submit 4:debit",
        "  next 43",
        "cancel 4",
        "run 43",
        "  cancel 4",
        "  next never",
        "settle 5 1 3",
        "run 44",
        "  submit 5:debit",
        "  next 64",
        "cancel 5",
        "fail",
        "settle 6 1 3",
        "run 45",
        "  submit 6:debit",
        "  next 65",
        "answer",
        "run 46",
        "  submit 6:refund",
        "  next 66",
        "run 66",
        "  cancel 6",
        "  done 6 allowed by open: the deadline passed",
        "  next never",
        "release 1",
        "release 2",
        "release 3",
        "release 6",
        "count",
        "  0 used, 0 pending",
        NULL,
    };
    play(trace);
    (void)state;
}

RUN_TESTS()
