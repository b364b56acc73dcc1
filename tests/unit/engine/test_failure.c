/* SPDX-License-Identifier: Apache-2.0 */
/* on_store_error: what a decision becomes when its store cannot decide it. */
#include <string.h>

#include "engine/counters.h"
#include "engine/failure.h"
#include "rig.h"
#include "test.h"

struct parts {
    struct rig rig;
    struct weir_limit two, ten, queue;
};

/* Queues a decision of up to three checks, each described by two letters: how it fails (o, c, l)
 * and what it is (. ordinary, s shadow, d always deny, u unlimited), on keys k0, k1, k2 of a limit
 * of two a second, and lets the store fail. */
static struct weir_decision *settle_failed(struct parts *p, uint8_t op, uint8_t policy,
                                           const char *checks)
{
    static const char *const keys[] = {"k0", "k1", "k2"};
    struct weir_decision *d = rig_take(&p->rig, 0);
    d->op = op;
    d->policy = policy;
    for (int i = 0; checks[2 * i] != '\0'; i++) {
        struct weir_check *check = rig_check(d, &p->two, keys[i], 1);
        check->rule = (uint32_t)i;
        check->on_store_error = checks[2 * i] == 'o'   ? WEIR_FAIL_OPEN
                                : checks[2 * i] == 'c' ? WEIR_FAIL_CLOSED
                                                       : WEIR_FAIL_LOCAL;
        switch (checks[2 * i + 1]) {
        case 's':
            check->flags = WEIR_CHECK_SHADOW;
            break;
        case 'd':
            check->flags = WEIR_CHECK_ALWAYS_DENY;
            check->limit = NULL;
            break;
        case 'u':
            check->flags = WEIR_CHECK_UNLIMITED;
            check->limit = NULL;
            break;
        default:
            break;
        }
    }
    weir_engine_queue(p->rig.engine, d);
    weir_engine_run(p->rig.engine, START);
    fake_store_fail(p->rig.store, 0, WEIR_ERR_STORE);
    assert_int_equal(d->error, WEIR_ERR_STORE);
    assert_int_equal(d->now_ns, START);
    return d;
}

static void open_parts(struct parts *p, bool with_local)
{
    rig_open(&p->rig, 0, with_local);
    p->rig.store->later_every = 1;
    p->two = rig_limit(WEIR_FIXED_WINDOW, 2, SECOND);
    p->ten = rig_limit(WEIR_FIXED_WINDOW, 10, SECOND);
    p->queue = rig_limit(WEIR_LEAKY_QUEUE, 2, SECOND);
}

/* How much of a key's two is used at the local store. */
static uint64_t used(struct parts *p, const char *key)
{
    struct weir_check checks[1];
    struct weir_outcome outcomes[1];
    struct weir_decision d = {.checks = checks, .outcomes = outcomes, .op = WEIR_OP_PEEK};
    struct weir_report report;
    rig_check(&d, &p->two, key, 0);
    fake_store_decide(p->rig.local, START, &d);
    weir_decision_report(&d, 0, &report);
    return 2 - report.remaining;
}

TEST("open admits uncharged and reports a fresh limit")
{
    struct parts p;
    open_parts(&p, true);
    struct weir_decision *d = settle_failed(&p, WEIR_OP_DECIDE, WEIR_POLICY_ALL, "o.");
    struct weir_report report;
    weir_decision_report(d, 0, &report);
    assert_int_equal(d->verdict, WEIR_ALLOWED);
    assert_int_equal(d->source, WEIR_SOURCE_OPEN);
    assert_int_equal(d->denied_by, UINT16_MAX);
    assert_false(d->outcomes[0].charged);
    assert_int_equal(report.limit, 2);
    assert_int_equal(report.remaining, 2);
    assert_int_equal(used(&p, "k0"), 0);
    rig_close(&p.rig);
}

TEST("closed denies and asks to come back in a second")
{
    struct parts p;
    open_parts(&p, true);
    struct weir_decision *d = settle_failed(&p, WEIR_OP_DECIDE, WEIR_POLICY_ALL, "c.");
    struct weir_report report;
    weir_decision_report(d, 0, &report);
    assert_int_equal(d->verdict, WEIR_DENIED);
    assert_int_equal(d->source, WEIR_SOURCE_CLOSED);
    assert_int_equal(d->denied_by, 0);
    assert_int_equal(report.remaining, 0);
    assert_int_equal(report.retry_after_ns, WEIR_FAILURE_RETRY_NS);
    rig_close(&p.rig);
}

TEST("local is decided and charged at the local store")
{
    struct parts p;
    open_parts(&p, true);
    for (uint64_t i = 0; i < 2; i++) {
        struct weir_decision *d = settle_failed(&p, WEIR_OP_DECIDE, WEIR_POLICY_ALL, "l.");
        assert_int_equal(d->verdict, WEIR_ALLOWED);
        assert_int_equal(d->source, WEIR_SOURCE_LOCAL);
        assert_true(d->outcomes[0].charged);
        assert_int_equal(used(&p, "k0"), i + 1);
    }
    struct weir_decision *d = settle_failed(&p, WEIR_OP_DECIDE, WEIR_POLICY_ALL, "l.");
    assert_int_equal(d->verdict, WEIR_DENIED);
    assert_int_equal(d->source, WEIR_SOURCE_LOCAL);
    assert_int_equal(d->denied_by, 0);
    rig_close(&p.rig);
}

TEST("a node decides its part of the limit and tells that")
{
    struct parts p;
    open_parts(&p, true);
    struct weir_limit whole = rig_limit(WEIR_FIXED_WINDOW, 9, SECOND);
    struct weir_limit part = rig_limit(WEIR_FIXED_WINDOW, 3, SECOND);
    static struct weir_answer answer;
    char lease[WEIR_LEASE_TOKEN_MAX];
    whole.local = &part;
    for (uint64_t i = 0; i < 4; i++) {
        struct weir_decision *d = rig_queue(&p.rig, 0, &whole, "part", 1);
        weir_engine_run(p.rig.engine, START);
        fake_store_fail(p.rig.store, 0, WEIR_ERR_STORE);
        weir_engine_answer(d, &answer, lease);
        assert_int_equal(answer.allowed, i < 3);
        assert_int_equal(answer.source, WEIR_SOURCE_LOCAL);
        assert_ptr_equal(answer.limits[0].limit, &part);
        assert_int_equal(answer.limits[0].report.limit, 3);
        assert_int_equal(answer.limits[0].report.remaining, i < 3 ? 2 - i : 0);
    }
    rig_close(&p.rig);
}

TEST("a scale leaves its percentage of the part of a node")
{
    struct parts p;
    open_parts(&p, true);
    struct weir_limit whole = rig_limit(WEIR_FIXED_WINDOW, 20, SECOND);
    static struct weir_answer answer;
    char lease[WEIR_LEASE_TOKEN_MAX];
    whole.local = &p.ten;
    for (uint64_t i = 0; i < 7; i++) {
        struct weir_decision *d = rig_take(&p.rig, 0);
        struct weir_check *check = rig_check(d, &whole, "scaled", 1);
        check->scale = 60;
        check->on_store_error = WEIR_FAIL_LOCAL;
        weir_engine_queue(p.rig.engine, d);
        weir_engine_run(p.rig.engine, START);
        fake_store_fail(p.rig.store, 0, WEIR_ERR_STORE);
        weir_engine_answer(d, &answer, lease);
        assert_int_equal(answer.allowed, i < 6);
        assert_int_equal(answer.limits[0].report.limit, 6);
        assert_int_equal(answer.limits[0].report.remaining, i < 6 ? 5 - i : 0);
    }
    rig_close(&p.rig);
}

TEST("local without a local store is open")
{
    struct parts p;
    open_parts(&p, false);
    struct weir_decision *d = settle_failed(&p, WEIR_OP_DECIDE, WEIR_POLICY_ALL, "l.");
    assert_int_equal(d->verdict, WEIR_ALLOWED);
    assert_int_equal(d->source, WEIR_SOURCE_OPEN);
    rig_close(&p.rig);
}

TEST("local checks of one decision are all or nothing")
{
    struct parts p;
    open_parts(&p, true);
    for (int i = 0; i < 2; i++)
        settle_failed(&p, WEIR_OP_DECIDE, WEIR_POLICY_ALL, "l.");
    struct weir_decision *d = settle_failed(&p, WEIR_OP_DECIDE, WEIR_POLICY_ALL, "l.l.o.");
    assert_int_equal(d->verdict, WEIR_DENIED);
    assert_int_equal(d->source, WEIR_SOURCE_LOCAL);
    assert_int_equal(d->denied_by, 0);
    assert_int_equal(d->outcomes[1].verdict, WEIR_ALLOWED);
    assert_int_equal(d->outcomes[2].verdict, WEIR_ALLOWED);
    assert_int_equal(used(&p, "k1"), 0);
    rig_close(&p.rig);
}

TEST("a closed check keeps the local ones from being charged")
{
    struct parts p;
    open_parts(&p, true);
    struct weir_decision *d = settle_failed(&p, WEIR_OP_DECIDE, WEIR_POLICY_ALL, "o.l.c.");
    assert_int_equal(d->verdict, WEIR_DENIED);
    assert_int_equal(d->source, WEIR_SOURCE_CLOSED);
    assert_int_equal(d->denied_by, 2);
    assert_int_equal(d->outcomes[1].verdict, WEIR_ALLOWED);
    assert_false(d->outcomes[1].charged);
    assert_int_equal(used(&p, "k1"), 0);
    rig_close(&p.rig);
}

TEST("a closed shadow check denies nobody")
{
    struct parts p;
    open_parts(&p, true);
    struct weir_decision *d = settle_failed(&p, WEIR_OP_DECIDE, WEIR_POLICY_ALL, "csl.");
    assert_int_equal(d->verdict, WEIR_ALLOWED);
    assert_int_equal(d->source, WEIR_SOURCE_LOCAL);
    assert_int_equal(d->outcomes[0].verdict, WEIR_DENIED);
    assert_int_equal(used(&p, "k1"), 1);
    rig_close(&p.rig);
}

TEST("checks without a state keep their verdict")
{
    struct parts p;
    open_parts(&p, true);
    struct weir_decision *d = settle_failed(&p, WEIR_OP_DECIDE, WEIR_POLICY_ALL, "cul.");
    assert_int_equal(d->verdict, WEIR_ALLOWED);
    assert_int_equal(d->source, WEIR_SOURCE_LOCAL);
    d = settle_failed(&p, WEIR_OP_DECIDE, WEIR_POLICY_ALL, "odl.");
    assert_int_equal(d->verdict, WEIR_DENIED);
    assert_int_equal(d->source, WEIR_SOURCE_LOCAL);
    assert_int_equal(d->denied_by, 0);
    assert_int_equal(used(&p, "k1"), 1); /* of the first; the second was denied as a whole */
    rig_close(&p.rig);
}

TEST("peeking charges nothing anywhere")
{
    struct parts p;
    open_parts(&p, true);
    struct weir_decision *d = settle_failed(&p, WEIR_OP_PEEK, WEIR_POLICY_ALL, "l.o.");
    assert_int_equal(d->verdict, WEIR_ALLOWED);
    assert_int_equal(used(&p, "k0"), 0);
    rig_close(&p.rig);
}

TEST("under each each check decides alone")
{
    struct parts p;
    open_parts(&p, true);
    struct weir_decision *d = settle_failed(&p, WEIR_OP_DECIDE, WEIR_POLICY_EACH, "c.l.o.");
    assert_int_equal(d->verdict, WEIR_DENIED);
    assert_int_equal(d->source, WEIR_SOURCE_CLOSED);
    assert_int_equal(used(&p, "k1"), 1);
    rig_close(&p.rig);
}

TEST("under quota one admitted check is enough")
{
    struct parts p;
    open_parts(&p, true);
    struct weir_decision *d = settle_failed(&p, WEIR_OP_DECIDE, WEIR_POLICY_QUOTA, "c.o.");
    assert_int_equal(d->verdict, WEIR_ALLOWED);
    assert_int_equal(d->source, WEIR_SOURCE_OPEN);
    d = settle_failed(&p, WEIR_OP_DECIDE, WEIR_POLICY_QUOTA, "c.c.");
    assert_int_equal(d->verdict, WEIR_DENIED);
    assert_int_equal(d->source, WEIR_SOURCE_CLOSED);
    rig_close(&p.rig);
}

TEST("a delay counts only where the request continues and is not shadow")
{
    struct parts p;
    open_parts(&p, true);
    for (int i = 0; i < 3; i++) {
        struct weir_decision *d = rig_take(&p.rig, 0);
        rig_check(d, &p.queue, "q", 1)->flags = i == 2 ? WEIR_CHECK_SHADOW : 0;
        weir_engine_queue(p.rig.engine, d);
        weir_engine_run(p.rig.engine, START);
        fake_store_fail(p.rig.store, 0, WEIR_ERR_STORE);
        assert_int_equal(d->verdict, WEIR_ALLOWED);
        assert_int_equal(d->outcomes[0].delay_ns, (uint64_t)i * SECOND / 2);
        assert_int_equal(d->delay_ns, i == 1 ? SECOND / 2 : 0);
    }
    rig_close(&p.rig);
}

TEST("a deadline settles every decision by its own rule")
{
    struct parts p;
    open_parts(&p, true);
    static const uint8_t rules[] = {WEIR_FAIL_OPEN, WEIR_FAIL_CLOSED, WEIR_FAIL_LOCAL};
    static const uint8_t sources[] = {WEIR_SOURCE_OPEN, WEIR_SOURCE_CLOSED, WEIR_SOURCE_LOCAL};
    for (uintptr_t i = 0; i < 3; i++)
        rig_queue(&p.rig, i, &p.ten, "k", 1)->checks[0].on_store_error = rules[i];
    weir_engine_run(p.rig.engine, START);
    weir_engine_run(p.rig.engine, START + DEADLINE);
    assert_int_equal(p.rig.done_count, 3);
    for (uintptr_t i = 0; i < 3; i++) {
        assert_int_equal(owner_of(p.rig.done[i]), i);
        assert_int_equal(p.rig.done[i]->source, sources[i]);
        assert_int_equal(p.rig.done[i]->error, WEIR_ERR_DEADLINE);
        assert_int_equal(p.rig.done[i]->now_ns, START + DEADLINE);
    }
    const struct weir_engine_failures *f = weir_engine_failures(p.rig.engine);
    assert_int_equal(f->late, 3);
    assert_true(f->open == 1 && f->closed == 1 && f->local == 1);
    rig_close(&p.rig);
}

/* What was charged is at the store: a credit here would admit more than the limit while it is away.
 */
TEST("a refund gives back nothing in another place")
{
    static const char *const all[] = {"l.", "o.", "c.", "l.o.c.", "lsl."};
    struct parts p;
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
        open_parts(&p, true);
        for (int n = 0; n < 3; n++) /* the third is denied here */
            settle_failed(&p, WEIR_OP_DECIDE, WEIR_POLICY_ALL, "l.");
        uint32_t before = p.rig.local->submits;
        struct weir_decision *d = settle_failed(&p, WEIR_OP_REFUND, WEIR_POLICY_ALL, all[i]);
        assert_int_equal(d->verdict, WEIR_ALLOWED);
        assert_int_equal(d->source, WEIR_SOURCE_OPEN);
        assert_int_equal(p.rig.local->submits, before);
        for (uint16_t k = 0; k < d->count; k++)
            assert_false(d->outcomes[k].charged);
        d = settle_failed(&p, WEIR_OP_DECIDE, WEIR_POLICY_ALL, "l.");
        assert_int_equal(d->verdict, WEIR_DENIED);
        rig_close(&p.rig);
    }
}

/* A store that fails inside submit (a state file beside a neighbour that is stopped) is settled in
 * its batch, in order. */
TEST("what fails at once is settled at once")
{
    struct parts p;
    open_parts(&p, true);
    p.rig.store->fails_at_once = WEIR_ERR_BUSY;
    struct weir_decision *d[3];
    for (uint8_t i = 0; i < 3; i++) { /* local, open, closed */
        d[i] = rig_take(&p.rig, i + 1u);
        rig_check(d[i], &p.two, "k", 1)->on_store_error = i;
        weir_engine_queue(p.rig.engine, d[i]);
    }
    assert_int_equal(weir_engine_run(p.rig.engine, START), WEIR_NEVER);
    assert_int_equal(p.rig.done_count, 3);
    for (uint8_t i = 0; i < 3; i++) {
        const uint8_t sources[] = {WEIR_SOURCE_LOCAL, WEIR_SOURCE_OPEN, WEIR_SOURCE_CLOSED};
        assert_ptr_equal(p.rig.done[i], d[i]);
        assert_int_equal(d[i]->source, sources[i]);
        assert_int_equal(d[i]->error, WEIR_ERR_BUSY);
        assert_int_equal(d[i]->verdict, i == WEIR_FAIL_CLOSED ? WEIR_DENIED : WEIR_ALLOWED);
        weir_engine_release(p.rig.engine, d[i]);
    }
    rig_close(&p.rig);
}

/* An operation on states has no on_store_error: it is not done, and has an error. */
TEST("an operation that fails at once says so")
{
    struct parts p;
    open_parts(&p, true);
    p.rig.store->fails_at_once = WEIR_ERR_BUSY;
    struct weir_decision *d = rig_take(&p.rig, 1);
    rig_check(d, &p.two, "k", 1);
    d->op = WEIR_OP_RESET;
    weir_engine_queue(p.rig.engine, d);
    weir_engine_run(p.rig.engine, START);
    assert_int_equal(p.rig.done_count, 1);
    assert_int_equal(d->verdict, WEIR_DENIED);
    assert_int_equal(d->error, WEIR_ERR_BUSY);
    assert_int_equal(p.rig.local->submits, 0);
    rig_close(&p.rig);
}

/* The local store beside a remote one is a table too, which a stopped neighbour may hold. */
TEST("where the local store fails too its checks are open")
{
    struct parts p;
    open_parts(&p, true);
    p.rig.local->fails_at_once = WEIR_ERR_BUSY;
    struct weir_decision *d = settle_failed(&p, WEIR_OP_DECIDE, WEIR_POLICY_ALL, "l.");
    assert_int_equal(d->verdict, WEIR_ALLOWED);
    assert_int_equal(d->source, WEIR_SOURCE_OPEN);
    assert_false(d->outcomes[0].charged);
    d = settle_failed(&p, WEIR_OP_DECIDE, WEIR_POLICY_ALL, "l.c.");
    assert_int_equal(d->verdict, WEIR_DENIED);
    assert_int_equal(d->source, WEIR_SOURCE_CLOSED);
    rig_close(&p.rig);
}

RUN_TESTS()
