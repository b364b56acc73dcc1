/* SPDX-License-Identifier: Apache-2.0 */
/* The engine's turns: batches, order, pending decisions, deadlines, cancelling, the pool. */
#include <string.h>

#include "engine/counters.h"
#include "engine/open.h"
#include "rig.h"
#include "test.h"

TEST("queued decisions reach the store as one batch")
{
    struct rig rig;
    rig_open(&rig, 0, false);
    struct weir_limit limit = rig_limit(WEIR_GCRA, 100, SECOND);
    for (uintptr_t i = 0; i < 50; i++)
        rig_queue(&rig, i, &limit, "k", 1);
    assert_int_equal(rig.store->submits, 0);
    assert_int_equal(weir_engine_run(rig.engine, START), WEIR_NEVER);
    assert_int_equal(rig.store->submits, 1);
    assert_int_equal(rig.store->largest_batch, 50);
    assert_int_equal(rig.store->flushes, 1);
    rig_close(&rig);
}

TEST("the store learns of a decision when it is queued")
{
    struct rig rig;
    rig_open(&rig, 0, false);
    struct weir_limit limit = rig_limit(WEIR_GCRA, 100, SECOND);
    struct weir_decision *decision = rig_take(&rig, 1);
    rig_check(decision, &limit, "a", 1);
    rig_check(decision, &limit, "b", 1);
    assert_int_equal(rig.store->prefetched, 0);
    weir_engine_queue(rig.engine, decision);
    assert_int_equal(rig.store->prefetched, 2);
    rig_queue(&rig, 2, &limit, "c", 1);
    assert_int_equal(rig.store->prefetched, 3);
    assert_int_equal(rig.store->submits, 0);
    weir_engine_run(rig.engine, START);
    assert_int_equal(rig.store->prefetched, 3);
    assert_int_equal(rig.done_count, 2);
    rig_close(&rig);
}

TEST("decisions decided at once are reported in the order they were queued")
{
    struct rig rig;
    rig_open(&rig, 0, false);
    struct weir_limit limit = rig_limit(WEIR_FIXED_WINDOW, 3, SECOND);
    for (uintptr_t i = 0; i < 5; i++)
        rig_queue(&rig, i, &limit, "k", 1);
    weir_engine_run(rig.engine, START);
    assert_int_equal(rig.done_count, 5);
    for (uintptr_t i = 0; i < 5; i++) {
        assert_int_equal(owner_of(rig.done[i]), i);
        assert_int_equal(rig.done[i]->verdict, i < 3 ? WEIR_ALLOWED : WEIR_DENIED);
        assert_int_equal(rig.done[i]->denied_by, i < 3 ? UINT16_MAX : 0);
        assert_int_equal(rig.done[i]->source, WEIR_SOURCE_STORE);
        assert_int_equal(rig.done[i]->error, 0);
    }
    rig_close(&rig);
}

TEST("a decision without checks is allowed")
{
    struct rig rig;
    rig_open(&rig, 0, false);
    weir_engine_queue(rig.engine, rig_take(&rig, 7));
    weir_engine_run(rig.engine, START);
    assert_int_equal(rig.done_count, 1);
    assert_int_equal(rig.done[0]->verdict, WEIR_ALLOWED);
    rig_close(&rig);
}

TEST("a run with nothing queued submits nothing but flushes")
{
    struct rig rig;
    rig_open(&rig, 0, false);
    assert_int_equal(weir_engine_run(rig.engine, START), WEIR_NEVER);
    assert_int_equal(rig.store->submits, 0);
    assert_int_equal(rig.store->flushes, 1);
    rig_close(&rig);
}

TEST("pending decisions are reported when the store answers in its order")
{
    struct rig rig;
    rig_open(&rig, 0, false);
    struct weir_limit limit = rig_limit(WEIR_FIXED_WINDOW, 2, SECOND);
    rig.store->later_every = 1;
    for (uintptr_t i = 0; i < 4; i++)
        rig_queue(&rig, i, &limit, "k", 1);
    assert_int_equal(weir_engine_run(rig.engine, START), START + DEADLINE);
    assert_int_equal(rig.done_count, 0);
    assert_int_equal(weir_engine_pending(rig.engine), 4);
    fake_store_answer(rig.store, 3); /* owner 3 */
    fake_store_answer(rig.store, 1); /* owner 1 */
    fake_store_answer(rig.store, 1); /* owner 2: the window is full by now */
    fake_store_answer(rig.store, 0);
    static const uintptr_t order[] = {3, 1, 2, 0};
    assert_int_equal(rig.done_count, 4);
    for (int i = 0; i < 4; i++) {
        assert_int_equal(owner_of(rig.done[i]), order[i]);
        assert_int_equal(rig.done[i]->verdict, i < 2 ? WEIR_ALLOWED : WEIR_DENIED);
    }
    assert_int_equal(rig.done[2]->denied_by, 0);
    assert_int_equal(weir_engine_pending(rig.engine), 0);
    assert_int_equal(weir_engine_run(rig.engine, START + 1), WEIR_NEVER);
    rig_close(&rig);
}

TEST("what is decided at once does not wait for what is pending")
{
    struct rig rig;
    rig_open(&rig, 0, false);
    struct weir_limit limit = rig_limit(WEIR_GCRA, 100, SECOND);
    rig.store->later_every = 2;
    for (uintptr_t i = 0; i < 6; i++)
        rig_queue(&rig, i, &limit, "k", 1);
    weir_engine_run(rig.engine, START);
    assert_int_equal(rig.done_count, 3);
    for (uintptr_t i = 0; i < 3; i++)
        assert_int_equal(owner_of(rig.done[i]), 2 * i);
    assert_int_equal(weir_engine_pending(rig.engine), 3);
    rig_close(&rig);
}

TEST("a decision fails at its deadline and not a nanosecond earlier")
{
    struct rig rig;
    rig_open(&rig, 0, false);
    struct weir_limit limit = rig_limit(WEIR_GCRA, 100, SECOND);
    rig.store->later_every = 1;
    rig_queue(&rig, 1, &limit, "k", 1)->checks[0].on_store_error = WEIR_FAIL_OPEN;
    assert_int_equal(weir_engine_run(rig.engine, START), START + DEADLINE);
    assert_int_equal(weir_engine_run(rig.engine, START + DEADLINE - 1), START + DEADLINE);
    assert_int_equal(rig.done_count, 0);
    assert_int_equal(weir_engine_run(rig.engine, START + DEADLINE), WEIR_NEVER);
    assert_int_equal(rig.done_count, 1);
    assert_int_equal(rig.done[0]->error, WEIR_ERR_DEADLINE);
    assert_int_equal(rig.done[0]->source, WEIR_SOURCE_OPEN);
    assert_int_equal(rig.store->cancels, 1); /* so that a late answer finds nobody */
    assert_int_equal(rig.store->pending_count, 0);
    assert_int_equal(weir_engine_failures(rig.engine)->late, 1);
    rig_close(&rig);
}

TEST("deadlines of the front end expire in their own order")
{
    struct rig rig;
    rig_open(&rig, 0, false);
    struct weir_limit limit = rig_limit(WEIR_GCRA, 100, SECOND);
    rig.store->later_every = 1;
    rig_queue(&rig, 0, &limit, "k", 1);
    rig_queue(&rig, 1, &limit, "k", 1)->deadline_ns = START + 5;
    rig_queue(&rig, 2, &limit, "k", 1)->deadline_ns = START + 3;
    rig_queue(&rig, 3, &limit, "k", 1)->deadline_ns = START + 4;
    assert_int_equal(weir_engine_run(rig.engine, START), START + 3);
    assert_int_equal(weir_engine_run(rig.engine, START + 4), START + 5);
    assert_int_equal(weir_engine_run(rig.engine, START + 5), START + DEADLINE);
    assert_int_equal(weir_engine_run(rig.engine, START + DEADLINE), WEIR_NEVER);
    static const uintptr_t order[] = {2, 3, 1, 0};
    for (int i = 0; i < 4; i++)
        assert_int_equal(owner_of(rig.done[i]), order[i]);
    rig_close(&rig);
}

TEST("a failed answer is settled and reported once")
{
    struct rig rig;
    rig_open(&rig, 0, false);
    struct weir_limit limit = rig_limit(WEIR_GCRA, 100, SECOND);
    rig.store->later_every = 1;
    rig_queue(&rig, 1, &limit, "k", 1)->checks[0].on_store_error = WEIR_FAIL_CLOSED;
    weir_engine_run(rig.engine, START);
    fake_store_fail(rig.store, 0, WEIR_ERR_STORE);
    weir_engine_run(rig.engine, START + DEADLINE);
    assert_int_equal(rig.done_count, 1);
    assert_int_equal(rig.done[0]->error, WEIR_ERR_STORE);
    assert_int_equal(rig.done[0]->verdict, WEIR_DENIED);
    assert_int_equal(rig.done[0]->denied_by, 0);
    assert_int_equal(weir_engine_failures(rig.engine)->failed, 1);
    assert_int_equal(weir_engine_failures(rig.engine)->closed, 1);
    rig_close(&rig);
}

TEST("cancelling a taken decision gives it back")
{
    struct rig rig;
    rig_open(&rig, 1, false);
    struct weir_decision *decision = rig_take(&rig, 0);
    assert_null(weir_engine_take(rig.engine));
    weir_engine_cancel(rig.engine, decision);
    assert_ptr_equal(weir_engine_take(rig.engine), decision);
    rig_close(&rig);
}

TEST("a queued decision that is cancelled never reaches the store")
{
    struct rig rig;
    rig_open(&rig, 3, false);
    struct weir_limit limit = rig_limit(WEIR_FIXED_WINDOW, 2, SECOND);
    rig_queue(&rig, 0, &limit, "k", 1);
    struct weir_decision *gone = rig_queue(&rig, 1, &limit, "k", 1);
    rig_queue(&rig, 2, &limit, "k", 1);
    weir_engine_cancel(rig.engine, gone);
    weir_engine_run(rig.engine, START);
    assert_int_equal(rig.store->seen, 2);
    assert_int_equal(rig.done_count, 2);
    assert_int_equal(owner_of(rig.done[1]), 2);
    assert_int_equal(rig.done[1]->verdict, WEIR_ALLOWED);
    assert_ptr_equal(weir_engine_take(rig.engine), gone);
    rig_close(&rig);
}

TEST("a pending decision that is cancelled is forgotten at the store")
{
    struct rig rig;
    rig_open(&rig, 3, false);
    struct weir_limit limit = rig_limit(WEIR_GCRA, 100, SECOND);
    struct weir_decision *decisions[3];
    rig.store->later_every = 1;
    for (uintptr_t i = 0; i < 3; i++)
        decisions[i] = rig_queue(&rig, i, &limit, "k", 1);
    weir_engine_run(rig.engine, START);
    weir_engine_cancel(rig.engine, decisions[1]);
    assert_int_equal(rig.store->cancels, 1);
    assert_int_equal(weir_engine_pending(rig.engine), 2);
    assert_ptr_equal(weir_engine_take(rig.engine), decisions[1]);
    weir_engine_cancel(rig.engine, decisions[0]);
    weir_engine_cancel(rig.engine, decisions[2]);
    assert_int_equal(weir_engine_run(rig.engine, START + SECOND), WEIR_NEVER);
    assert_int_equal(rig.done_count, 0);
    rig_close(&rig);
}

TEST("cancelling a finished decision gives it back")
{
    struct rig rig;
    rig_open(&rig, 1, false);
    struct weir_limit limit = rig_limit(WEIR_GCRA, 100, SECOND);
    struct weir_decision *decision = rig_queue(&rig, 0, &limit, "k", 1);
    weir_engine_run(rig.engine, START);
    weir_engine_cancel(rig.engine, decision);
    assert_ptr_equal(weir_engine_take(rig.engine), decision);
    rig_close(&rig);
}

static struct weir_decision *others[3];

static void cancel_the_others(struct rig *rig, struct weir_decision *decision)
{
    for (int i = 0; i < 3; i++)
        if (others[i] != NULL && others[i] != decision)
            weir_engine_cancel(rig->engine, others[i]);
    memset(others, 0, sizeof others);
}

TEST("done may cancel decided and pending ones of its own batch")
{
    struct rig rig;
    rig_open(&rig, 4, false);
    struct weir_limit limit = rig_limit(WEIR_GCRA, 100, SECOND);
    rig.store->later_every = 2; /* the 2nd and 4th stay pending */
    rig.on_done = cancel_the_others;
    for (uintptr_t i = 0; i < 3; i++)
        others[i] = rig_queue(&rig, i, &limit, "k", 1);
    weir_engine_run(rig.engine, START);
    assert_int_equal(rig.done_count, 1);
    assert_int_equal(owner_of(rig.done[0]), 0);
    assert_int_equal(weir_engine_pending(rig.engine), 0);
    weir_engine_release(rig.engine, rig.done[0]);
    for (int i = 0; i < 4; i++)
        rig_take(&rig, 0); /* all are back */
    assert_null(weir_engine_take(rig.engine));
    rig_close(&rig);
}

TEST("a lease that nobody will learn of ends at once")
{
    struct rig rig;
    rig_open(&rig, 4, false);
    struct weir_limit slots = rig_limit(WEIR_CONCURRENCY, 2, 30 * SECOND);
    rig.on_done = cancel_the_others;
    for (uintptr_t i = 0; i < 2; i++)
        others[i] = rig_queue(&rig, i, &slots, "k", 1);
    weir_engine_run(rig.engine, START);
    assert_int_equal(rig.done_count, 1);
    assert_int_equal(rig.store->releases, 1);
    for (uintptr_t i = 0; i < 2; i++)
        rig_queue(&rig, i, &slots, "k", 1);
    weir_engine_run(rig.engine, START);
    assert_int_equal(rig.done[1]->verdict, WEIR_ALLOWED);
    assert_int_equal(rig.done[2]->verdict, WEIR_DENIED);
    rig_close(&rig);
}

TEST("done may cancel another that expires at the same time")
{
    struct rig rig;
    rig_open(&rig, 4, false);
    struct weir_limit limit = rig_limit(WEIR_GCRA, 100, SECOND);
    rig.store->later_every = 1;
    rig.on_done = cancel_the_others;
    for (uintptr_t i = 0; i < 3; i++)
        others[i] = rig_queue(&rig, i, &limit, "k", 1);
    weir_engine_run(rig.engine, START);
    assert_int_equal(weir_engine_run(rig.engine, START + DEADLINE), WEIR_NEVER);
    assert_int_equal(rig.done_count, 1);
    rig_close(&rig);
}

static const struct weir_limit *next_limit;

static void queue_the_next(struct rig *rig, struct weir_decision *decision)
{
    uintptr_t owner = owner_of(decision);
    if (owner == 0)
        return;
    rig_queue(rig, owner - 1, next_limit, "k", 1);
}

TEST("what done queues is decided in the same run")
{
    struct rig rig;
    rig_open(&rig, 2, false);
    struct weir_limit limit = rig_limit(WEIR_GCRA, 100, SECOND);
    next_limit = &limit;
    rig.keep = false;
    rig.on_done = queue_the_next;
    rig_queue(&rig, 5, &limit, "k", 1);
    assert_int_equal(weir_engine_run(rig.engine, START), WEIR_NEVER);
    assert_int_equal(rig.done_count, 6);
    rig_close(&rig);
}

TEST("a run ends although done never stops queueing")
{
    struct rig rig;
    rig_open(&rig, 2, false);
    struct weir_limit limit = rig_limit(WEIR_GCRA, 100, SECOND);
    next_limit = &limit;
    rig.keep = false;
    rig.on_done = queue_the_next;
    rig_queue(&rig, UINTPTR_MAX, &limit, "k", 1);
    assert_int_equal(weir_engine_run(rig.engine, START), START); /* "call again at once" */
    assert_in_range(rig.done_count, 2, 100);
    rig_close(&rig);
}

TEST("an empty pool gives null and counts it")
{
    struct rig rig;
    rig_open(&rig, 3, false);
    for (int i = 0; i < 3; i++)
        rig_take(&rig, 0);
    assert_null(weir_engine_take(rig.engine));
    assert_null(weir_engine_take(rig.engine));
    assert_int_equal(weir_engine_failures(rig.engine)->exhausted, 2);
    rig_close(&rig);
}

TEST("the decision given back last is taken first and is empty again")
{
    struct rig rig;
    rig_open(&rig, 0, false);
    struct weir_limit limit = rig_limit(WEIR_GCRA, 100, SECOND);
    struct weir_decision *first = rig_take(&rig, 1), *second = rig_take(&rig, 2);
    rig_check(first, &limit, "k", 1);
    first->op = WEIR_OP_PEEK;
    first->policy = WEIR_POLICY_EACH;
    first->deadline_ns = 7;
    first->lease.id = 9;
    weir_engine_release(rig.engine, second);
    weir_engine_release(rig.engine, first);
    struct weir_decision *again = weir_engine_take(rig.engine);
    assert_ptr_equal(again, first);
    assert_int_equal(again->count, 0);
    assert_int_equal(again->op, WEIR_OP_DECIDE);
    assert_int_equal(again->policy, WEIR_POLICY_ALL);
    assert_int_equal(again->deadline_ns, 0);
    assert_int_equal(again->lease.id, 0);
    assert_null(again->owner);
    assert_ptr_equal(weir_engine_take(rig.engine), second);
    rig_close(&rig);
}

TEST("a pool larger than the limit is refused")
{
    struct fake_store *store = fake_store_open();
    struct weir_engine_options options = {.store = &store->base,
                                          .decisions = WEIR_ENGINE_DECISIONS_MAX + 1};
    struct weir_engine *engine;
    assert_int_equal(weir_engine_open(&engine, &options), WEIR_ERR_RANGE);
    fake_store_close(store);
}

TEST("closing cancels what is pending without reporting it")
{
    struct rig rig;
    rig_open(&rig, 0, false);
    struct weir_limit limit = rig_limit(WEIR_GCRA, 100, SECOND);
    rig.store->later_every = 1;
    rig_queue(&rig, 0, &limit, "k", 1);
    weir_engine_run(rig.engine, START);
    rig_queue(&rig, 1, &limit, "k", 1);
    weir_engine_close(rig.engine);
    assert_int_equal(rig.store->cancels, 1);
    assert_int_equal(rig.done_count, 0);
    fake_store_close(rig.store);
    fake_store_close(rig.local);
}

TEST("a deadline beyond the end of time never passes")
{
    struct rig rig;
    rig_open(&rig, 0, false);
    struct weir_limit limit = rig_limit(WEIR_GCRA, 100, SECOND);
    rig.store->later_every = 1;
    rig_queue(&rig, 0, &limit, "k", 1);
    assert_int_equal(weir_engine_run(rig.engine, UINT64_MAX - 5), WEIR_NEVER);
    assert_int_equal(rig.done_count, 0);
    rig_close(&rig);
}

TEST("every decision on leases gets an id of its own")
{
    struct rig rig;
    rig_open(&rig, 0, false);
    struct weir_limit limit = rig_limit(WEIR_CONCURRENCY, 1000, SECOND);
    for (uintptr_t i = 0; i < 100; i++)
        rig_queue(&rig, i, &limit, "k", 1);
    weir_engine_run(rig.engine, START);
    for (int i = 0; i < 100; i++) {
        assert_int_not_equal(rig.done[i]->lease.id, 0);
        for (int j = 0; j < i; j++)
            assert_int_not_equal(rig.done[i]->lease.id, rig.done[j]->lease.id);
    }
    rig_close(&rig);
}

TEST("kept bytes live with the decision until its memory is used up")
{
    struct rig rig;
    rig_open(&rig, 0, false);
    struct weir_decision *decision = rig_take(&rig, 0);
    char text[4096];
    memset(text, 'x', sizeof text);
    struct weir_bytes first = weir_decision_keep(decision, (struct weir_bytes){text, sizeof text});
    memset(text, 'y', sizeof text);
    for (int i = 1; i < 4; i++)
        assert_non_null(weir_decision_keep(decision, (struct weir_bytes){text, sizeof text}).data);
    assert_non_null(weir_decision_keep(decision, (struct weir_bytes){"", 0}).data);
    assert_null(weir_decision_keep(decision, (struct weir_bytes){text, 1}).data);
    assert_int_equal(first.size, sizeof text);
    assert_int_equal(first.data[0], 'x');
    assert_int_equal(first.data[sizeof text - 1], 'x');
    rig_close(&rig);
}

RUN_TESTS()
