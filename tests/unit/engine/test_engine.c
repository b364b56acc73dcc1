/* SPDX-License-Identifier: Apache-2.0 */
/* The engine's turns: batches, order, pending decisions, deadlines, cancelling, the pool. */
#include <string.h>

#include "rig.h"

static void queued_decisions_reach_the_store_as_one_batch(void **state)
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

static void the_store_learns_of_a_decision_when_it_is_queued(void **state)
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

static void decisions_decided_at_once_are_reported_in_the_order_they_were_queued(void **state)
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

static void a_decision_without_checks_is_allowed(void **state)
{
    struct rig rig;
    rig_open(&rig, 0, false);
    weir_engine_queue(rig.engine, rig_take(&rig, 7));
    weir_engine_run(rig.engine, START);
    assert_int_equal(rig.done_count, 1);
    assert_int_equal(rig.done[0]->verdict, WEIR_ALLOWED);
    rig_close(&rig);
}

static void a_run_with_nothing_queued_submits_nothing_but_flushes(void **state)
{
    struct rig rig;
    rig_open(&rig, 0, false);
    assert_int_equal(weir_engine_run(rig.engine, START), WEIR_NEVER);
    assert_int_equal(rig.store->submits, 0);
    assert_int_equal(rig.store->flushes, 1);
    rig_close(&rig);
}

static void pending_decisions_are_reported_when_the_store_answers_in_its_order(void **state)
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

static void what_is_decided_at_once_does_not_wait_for_what_is_pending(void **state)
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

static void a_decision_fails_at_its_deadline_and_not_a_nanosecond_earlier(void **state)
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

static void deadlines_of_the_front_end_expire_in_their_own_order(void **state)
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

static void a_failed_answer_is_settled_and_reported_once(void **state)
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

static void cancelling_a_taken_decision_gives_it_back(void **state)
{
    struct rig rig;
    rig_open(&rig, 1, false);
    struct weir_decision *decision = rig_take(&rig, 0);
    assert_null(weir_engine_take(rig.engine));
    weir_engine_cancel(rig.engine, decision);
    assert_ptr_equal(weir_engine_take(rig.engine), decision);
    rig_close(&rig);
}

static void a_queued_decision_that_is_cancelled_never_reaches_the_store(void **state)
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

static void a_pending_decision_that_is_cancelled_is_forgotten_at_the_store(void **state)
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

static void cancelling_a_finished_decision_gives_it_back(void **state)
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

static void done_may_cancel_decided_and_pending_ones_of_its_own_batch(void **state)
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

static void a_lease_that_nobody_will_learn_of_ends_at_once(void **state)
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

static void done_may_cancel_another_that_expires_at_the_same_time(void **state)
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

static void what_done_queues_is_decided_in_the_same_run(void **state)
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

static void a_run_ends_although_done_never_stops_queueing(void **state)
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

static void an_empty_pool_gives_null_and_counts_it(void **state)
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

static void the_decision_given_back_last_is_taken_first_and_is_empty_again(void **state)
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

static void a_pool_larger_than_the_limit_is_refused(void **state)
{
    struct fake_store *store = fake_store_open();
    struct weir_engine_options options = {.store = &store->base,
                                          .decisions = WEIR_ENGINE_DECISIONS_MAX + 1};
    struct weir_engine *engine;
    assert_int_equal(weir_engine_open(&engine, &options), WEIR_ERR_RANGE);
    fake_store_close(store);
}

static void closing_cancels_what_is_pending_without_reporting_it(void **state)
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

static void a_deadline_beyond_the_end_of_time_never_passes(void **state)
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

static void every_decision_on_leases_gets_an_id_of_its_own(void **state)
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

static void kept_bytes_live_with_the_decision_until_its_memory_is_used_up(void **state)
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

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(queued_decisions_reach_the_store_as_one_batch),
        cmocka_unit_test(the_store_learns_of_a_decision_when_it_is_queued),
        cmocka_unit_test(decisions_decided_at_once_are_reported_in_the_order_they_were_queued),
        cmocka_unit_test(a_decision_without_checks_is_allowed),
        cmocka_unit_test(a_run_with_nothing_queued_submits_nothing_but_flushes),
        cmocka_unit_test(pending_decisions_are_reported_when_the_store_answers_in_its_order),
        cmocka_unit_test(what_is_decided_at_once_does_not_wait_for_what_is_pending),
        cmocka_unit_test(a_decision_fails_at_its_deadline_and_not_a_nanosecond_earlier),
        cmocka_unit_test(deadlines_of_the_front_end_expire_in_their_own_order),
        cmocka_unit_test(a_failed_answer_is_settled_and_reported_once),
        cmocka_unit_test(cancelling_a_taken_decision_gives_it_back),
        cmocka_unit_test(a_queued_decision_that_is_cancelled_never_reaches_the_store),
        cmocka_unit_test(a_pending_decision_that_is_cancelled_is_forgotten_at_the_store),
        cmocka_unit_test(cancelling_a_finished_decision_gives_it_back),
        cmocka_unit_test(done_may_cancel_decided_and_pending_ones_of_its_own_batch),
        cmocka_unit_test(a_lease_that_nobody_will_learn_of_ends_at_once),
        cmocka_unit_test(done_may_cancel_another_that_expires_at_the_same_time),
        cmocka_unit_test(what_done_queues_is_decided_in_the_same_run),
        cmocka_unit_test(a_run_ends_although_done_never_stops_queueing),
        cmocka_unit_test(an_empty_pool_gives_null_and_counts_it),
        cmocka_unit_test(the_decision_given_back_last_is_taken_first_and_is_empty_again),
        cmocka_unit_test(a_pool_larger_than_the_limit_is_refused),
        cmocka_unit_test(closing_cancels_what_is_pending_without_reporting_it),
        cmocka_unit_test(a_deadline_beyond_the_end_of_time_never_passes),
        cmocka_unit_test(every_decision_on_leases_gets_an_id_of_its_own),
        cmocka_unit_test(kept_bytes_live_with_the_decision_until_its_memory_is_used_up),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
