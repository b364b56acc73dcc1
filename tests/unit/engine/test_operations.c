/* SPDX-License-Identifier: Apache-2.0 */
/* Operations on states: ends of leases, also of those that nobody will hear of; resets, looks. */
#include <string.h>

#include "engine/token/lease_token.h"
#include "rig.h"
#include "test.h"

static struct weir_answer answer;
static char lease[WEIR_LEASE_TOKEN_MAX];

static struct weir_decision *queue_operation(struct rig *rig, enum weir_op op, const char *key)
{
    struct weir_decision *d = rig_take(rig, 0);
    rig_check(d, NULL, key, 0);
    d->op = (uint8_t)op;
    weir_engine_queue(rig->engine, d);
    return d;
}

static struct weir_decision *decide_lease(struct rig *rig, const struct weir_limit *slots)
{
    struct weir_decision *d = rig_queue(rig, 0, slots, "k", 1);
    weir_engine_run(rig->engine, START);
    return d;
}

static bool is_free(struct rig *rig, const struct weir_limit *slots, uint64_t now_ns)
{
    struct weir_decision *d = rig_take(rig, 0);
    rig_check(d, slots, "k", 1);
    d->op = WEIR_OP_PEEK;
    weir_engine_queue(rig->engine, d);
    weir_engine_run(rig->engine, now_ns);
    return d->verdict == WEIR_ALLOWED;
}

TEST("a look tells when and a reset forgets")
{
    struct rig rig;
    rig_open(&rig, 0, false);
    struct weir_limit limit = rig_limit(WEIR_GCRA, 10, SECOND);
    struct weir_decision *look = queue_operation(&rig, WEIR_OP_LOOK, "k");
    rig_queue(&rig, 0, &limit, "k", 5);
    struct weir_decision *again = queue_operation(&rig, WEIR_OP_LOOK, "k");
    struct weir_decision *reset = queue_operation(&rig, WEIR_OP_RESET, "k");
    struct weir_decision *last = queue_operation(&rig, WEIR_OP_LOOK, "k");
    weir_engine_run(rig.engine, START); /* in the order in which they were queued */
    assert_int_equal(look->verdict, WEIR_DENIED);
    assert_int_equal(again->verdict, WEIR_ALLOWED);
    assert_int_equal(again->outcomes[0].report.reset_after_ns, SECOND / 2);
    assert_int_equal(reset->verdict, WEIR_ALLOWED);
    assert_int_equal(last->verdict, WEIR_DENIED);
    assert_int_equal(look->error | again->error | reset->error | last->error, 0);
    rig_close(&rig);
}

TEST("where the store fails an operation says so whatever the rule")
{
    struct rig rig;
    rig_open(&rig, 0, true);
    rig.store->later_every = 1;
    for (uint8_t failure = WEIR_FAIL_LOCAL; failure <= WEIR_FAIL_CLOSED; failure++) {
        struct weir_decision *failed = queue_operation(&rig, WEIR_OP_RESET, "k");
        struct weir_decision *late = queue_operation(&rig, WEIR_OP_LOOK, "k");
        failed->checks[0].on_store_error = late->checks[0].on_store_error = failure;
        weir_engine_run(rig.engine, START);
        fake_store_fail(rig.store, 0, WEIR_ERR_STORE);
        weir_engine_run(rig.engine, START + DEADLINE);
        assert_int_equal(failed->verdict, WEIR_DENIED);
        assert_int_equal(failed->error, WEIR_ERR_STORE);
        assert_int_equal(late->verdict, WEIR_DENIED);
        assert_int_equal(late->error, WEIR_ERR_DEADLINE);
        assert_true(late->outcomes[0].reported);
    }
    assert_int_equal(rig.local->submits, 0);
    rig_close(&rig);
}

TEST("a token names the state so that any node ends its lease")
{
    struct rig rig;
    rig_open_elsewhere(&rig, NULL);
    struct weir_limit slots = rig_limit(WEIR_CONCURRENCY, 1, 30 * SECOND);
    weir_engine_answer(decide_lease(&rig, &slots), &answer, lease);
    assert_int_equal(answer.lease.size, 44);

    struct weir_decision *d = rig_take(&rig, 0);
    assert_int_equal(weir_engine_apply_lease(rig.engine, d, answer.lease), 0);
    assert_int_equal(d->op, WEIR_OP_RELEASE);
    assert_int_equal(d->checks[0].tag, FAKE_TAG);
    assert_int_equal(d->checks[0].key.size, WEIR_STORE_DIGEST);
    assert_null(d->checks[0].limit);
    weir_engine_queue(rig.engine, d);
    weir_engine_run(rig.engine, START);
    assert_int_equal(d->verdict, WEIR_ALLOWED);
    assert_int_equal(rig.store->releases, 1);
    assert_int_equal(rig.local->releases, 0);
    assert_true(is_free(&rig, &slots, START));
    rig_close(&rig);
}

TEST("a lease of the table is found beside another store")
{
    struct rig before, after;
    rig_open(&before, 0, false);
    struct weir_limit slots = rig_limit(WEIR_CONCURRENCY, 1, 30 * SECOND);
    weir_engine_answer(decide_lease(&before, &slots), &answer, lease);
    rig_open_elsewhere(&after, NULL); /* its local store has no such lease; it is asked */
    assert_int_equal(release_lease(after.engine, START, answer.lease), WEIR_ERR_NOT_FOUND);
    assert_int_equal(after.store->submits, 0);
    assert_int_equal(after.local->submits, 1);
    weir_engine_answer(decide_lease(&after, &slots), &answer, lease);
    assert_int_equal(release_lease(before.engine, START, answer.lease), WEIR_ERR_NOT_FOUND);
    rig_close(&after);
    rig_close(&before);
}

static uint64_t an_hour_ahead(const struct weir_store *store, uint64_t now_ns)
{
    (void)store;
    return now_ns + 3600 * SECOND;
}

TEST("a lease has lasted by the clock of its store")
{
    static const struct {
        enum weir_lease_token_place place;
        uint64_t begun_ns;
    } tokens[] = {{WEIR_LEASE_TOKEN_TABLE, START},
                  {WEIR_LEASE_TOKEN_LOCAL, START},
                  {WEIR_LEASE_TOKEN_REMOTE, START + 3600 * SECOND}};
    struct rig rig;
    rig_open_elsewhere(&rig, NULL);
    struct weir_store_ops ahead = *rig.store->base.ops;
    ahead.time = an_hour_ahead;
    rig.store->base.ops = &ahead;
    for (size_t i = 0; i < sizeof tokens / sizeof *tokens; i++) {
        struct weir_lease_fields fields = {.id = 1,
                                           .count = 1,
                                           .place = (uint8_t)tokens[i].place,
                                           .begun = {.ns = tokens[i].begun_ns, .count = 1}};
        struct weir_decision *d = rig_take(&rig, 0);
        uint64_t lasted_ns;
        size_t size = weir_lease_token_write(&fields, lease);
        assert_int_equal(weir_engine_apply_lease(rig.engine, d, (struct weir_bytes){lease, size}),
                         0);
        assert_true(weir_engine_lease_lasted(rig.engine, d, START + 5 * SECOND, &lasted_ns));
        assert_int_equal(lasted_ns, 5 * SECOND);
        assert_false(weir_engine_lease_lasted(rig.engine, d, START - 1, &lasted_ns));
        weir_engine_release(rig.engine, d);
    }
    rig_close(&rig);
}

TEST("a reply that was not written ends its lease")
{
    struct rig rig;
    rig_open(&rig, 0, false);
    struct weir_limit slots = rig_limit(WEIR_CONCURRENCY, 1, 30 * SECOND);
    struct weir_decision *d = decide_lease(&rig, &slots);
    assert_false(is_free(&rig, &slots, START));
    weir_engine_cancel(rig.engine, d); /* it is FINISHED, and its connection gone */
    weir_engine_run(rig.engine, START);
    assert_true(is_free(&rig, &slots, START));
    rig_close(&rig);
}

TEST("an operation is done though its asker is gone")
{
    struct rig rig;
    rig_open(&rig, 8, false);
    struct weir_limit slots = rig_limit(WEIR_CONCURRENCY, 1, 30 * SECOND);
    weir_engine_answer(decide_lease(&rig, &slots), &answer, lease);
    struct weir_decision *d = rig_take(&rig, 0);
    assert_int_equal(weir_engine_apply_lease(rig.engine, d, answer.lease), 0);
    weir_engine_queue(rig.engine, d);
    weir_engine_cancel(rig.engine, d);
    weir_engine_run(rig.engine, START);
    assert_int_equal(rig.done_count, 1); /* the lease's own decision */
    assert_int_equal(rig.store->releases, 1);
    rig.store->later_every = 1;
    d = queue_operation(&rig, WEIR_OP_RESET, "k");
    weir_engine_run(rig.engine, START);
    weir_engine_cancel(rig.engine, d); /* it is at the store */
    assert_int_equal(rig.store->cancels, 0);
    fake_store_answer(rig.store, 0);
    assert_int_equal(rig.done_count, 1);
    weir_engine_run(rig.engine, START);
    for (int i = 0; i < 7; i++)
        rig_take(&rig, 0); /* all but the first are back */
    assert_null(weir_engine_take(rig.engine));
    rig_close(&rig);
}

TEST("what nobody waits for gives itself back when it is late")
{
    struct rig rig;
    rig_open(&rig, 2, false);
    rig.store->later_every = 1;
    struct weir_decision *d = queue_operation(&rig, WEIR_OP_RESET, "k");
    weir_engine_run(rig.engine, START);
    weir_engine_cancel(rig.engine, d);
    weir_engine_run(rig.engine, START + DEADLINE);
    assert_int_equal(rig.store->cancels, 1);
    assert_int_equal(rig.done_count, 0);
    rig_take(&rig, 0);
    rig_take(&rig, 0);
    rig_close(&rig);
}

RUN_TESTS()
