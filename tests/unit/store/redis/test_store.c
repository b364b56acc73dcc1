/* SPDX-License-Identifier: Apache-2.0 */
/* The Redis store over a real server: every operation by submit, flush and done. */
#include "store_rig.h"
#include "test.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "store/redis/script/key.h"
#include "store_trace.h"

static struct store_rig the_rig;

static int set_up(void **state)
{
    store_rig_set_up(&the_rig, true);
    *state = &the_rig;
    return 0;
}

static int set_up_in_real_time(void **state)
{
    store_rig_set_up(&the_rig, false);
    *state = &the_rig;
    return 0;
}

static int tear_down(void **state)
{
    store_rig_end(*state);
    return 0;
}

/* --- As the core does ------------------------------------------------------------------------- */

TEST_WITH(set_up, tear_down, "every algorithm decides as the core does")
{
    static const enum weir_algorithm algorithms[] = {
        WEIR_FIXED_WINDOW, WEIR_SLIDING_WINDOW, WEIR_SLIDING_LOG, WEIR_TOKEN_BUCKET,
        WEIR_GCRA,         WEIR_LEAKY_BUCKET,   WEIR_LEAKY_QUEUE, WEIR_CONCURRENCY};

    for (uint64_t a = 0; a < 8; a++) {
        struct weir_limit limit = store_rig_limit(algorithms[a], 7, 3 * SECOND);
        struct store_trace trace;
        char key[16];

        snprintf(key, sizeof key, "%u", (unsigned)a);
        store_trace_begin(&trace, *state, 100 + a);
        store_trace_one(&trace, &limit, key, 500);
        assert_in_range(trace.denied, 20, 480);
        store_trace_end(&trace);
    }
}

TEST_WITH(set_up, tear_down, "several limits are one decision and one call")
{
    struct store_rig *rig = *state;
    uint64_t calls = rig->stats->calls;
    struct store_trace trace;

    store_trace_begin(&trace, rig, 77);
    store_trace_several(&trace, 2000);
    assert_in_range(trace.denied, 200, 1800);
    /* except for limits that charge although another check has no state and denies */
    assert_in_range(rig->stats->calls - calls, 1, trace.steps - trace.remembered + 200);
    store_trace_end(&trace);
}

TEST_WITH(set_up, tear_down, "what needs no state needs no server")
{
    struct store_rig *rig = *state;
    uint64_t calls = rig->stats->calls;
    struct rig_decision decision;

    store_rig_begin(&decision, WEIR_OP_DECIDE);
    assert_false(store_rig_submit(rig, &decision));
    assert_int_equal(decision.decision.verdict, WEIR_ALLOWED);
    store_rig_add(&decision, NULL, "x", 1)->flags = WEIR_CHECK_UNLIMITED;
    assert_false(store_rig_submit(rig, &decision));
    assert_int_equal(decision.decision.verdict, WEIR_ALLOWED);
    store_rig_add(&decision, NULL, "y", 1)->flags = WEIR_CHECK_ALWAYS_DENY;
    assert_false(store_rig_submit(rig, &decision));
    assert_int_equal(decision.decision.verdict, WEIR_DENIED);
    assert_int_equal(decision.outcomes[0].verdict, WEIR_ALLOWED);
    decision.decision.op = WEIR_OP_DEBIT;
    assert_false(store_rig_submit(rig, &decision));
    assert_int_equal(decision.decision.verdict, WEIR_ALLOWED);
    assert_int_equal(rig->stats->calls, calls);
}

/* --- Operations on states --------------------------------------------------------------------- */

static int operate(struct store_rig *rig, uint8_t op, const struct weir_limit *limit,
                   const char *key, uint64_t *reset_after_ns)
{
    struct rig_decision decision;
    struct weir_report report;

    store_rig_begin(&decision, op);
    store_rig_add(&decision, limit, key, 0);

    int verdict = store_rig_decide(rig, &decision);

    weir_decision_report(&decision.decision, 0, &report);
    if (reset_after_ns != NULL)
        *reset_after_ns = report.reset_after_ns;
    return verdict;
}

TEST_WITH(set_up, tear_down, "states are looked at and forgotten")
{
    struct store_rig *rig = *state;
    struct weir_limit limit = store_rig_limit(WEIR_GCRA, 10, 10 * SECOND);
    uint64_t reset_ns;

    assert_int_equal(operate(rig, WEIR_OP_LOOK, &limit, "a", NULL), WEIR_DENIED);
    assert_int_equal(operate(rig, WEIR_OP_RESET, &limit, "a", NULL), WEIR_DENIED);
    assert_int_equal(store_rig_take(rig, &limit, "a", 3), WEIR_ALLOWED);
    assert_int_equal(operate(rig, WEIR_OP_LOOK, &limit, "a", &reset_ns), WEIR_ALLOWED);
    assert_int_equal(reset_ns, 3 * SECOND);
    assert_int_equal(operate(rig, WEIR_OP_RESET, &limit, "a", NULL), WEIR_ALLOWED);
    assert_int_equal(store_rig_take(rig, &limit, "a", 10), WEIR_ALLOWED);
    assert_int_equal(store_rig_take(rig, &limit, "a", 1), WEIR_DENIED);
    assert_int_equal(operate(rig, WEIR_OP_RESET, &limit, "a", NULL), WEIR_ALLOWED);
    assert_int_equal(store_rig_take(rig, &limit, "a", 1), WEIR_ALLOWED); /* not remembered */
}

TEST_WITH(set_up, tear_down, "a lease is ended by what its token says")
{
    struct store_rig *rig = *state;
    struct weir_limit limit = store_rig_limit(WEIR_CONCURRENCY, 1, 30 * SECOND);
    struct rig_decision decision, release;
    struct weir_store_name name;

    store_rig_begin(&decision, WEIR_OP_DECIDE);
    store_rig_add(&decision, &limit, "a", 1);
    assert_int_equal(store_rig_decide(rig, &decision), WEIR_ALLOWED);
    rig->store->ops->name_of(rig->store, &decision.checks[0], &name);
    for (int i = 0; i < 2; i++) {
        store_rig_begin(&release, WEIR_OP_RELEASE);
        release.decision.lease.id = decision.decision.lease.id;
        release.decision.count = 1;
        release.checks[0] = (struct weir_check){
            .tag = name.tag, .key = {(const char *)name.digest, sizeof name.digest}};
        assert_int_equal(store_rig_take(rig, &limit, "a", 1), i == 0 ? WEIR_DENIED : WEIR_ALLOWED);
        assert_int_equal(store_rig_decide(rig, &release), i == 0 ? WEIR_ALLOWED : WEIR_DENIED);
    }
}

TEST_WITH(set_up, tear_down, "a repeated request charges once")
{
    struct store_rig *rig = *state;
    struct weir_limit limit = store_rig_limit(WEIR_FIXED_WINDOW, 10, 60 * SECOND);
    struct weir_limit once = store_rig_limit(WEIR_GCRA, 1, 60 * SECOND);

    for (int i = 0; i < 3; i++) {
        struct rig_decision decision;
        struct weir_report report;

        store_rig_begin(&decision, WEIR_OP_DECIDE);
        store_rig_add(&decision, &limit, "a", 7);
        store_rig_add(&decision, &once, "request-1", 1)->flags = WEIR_CHECK_IDEMPOTENCY;
        assert_int_equal(store_rig_decide(rig, &decision), WEIR_ALLOWED);
        assert_int_equal(decision.decision.repeated, i > 0);
        weir_decision_report(&decision.decision, 0, &report);
        assert_int_equal(report.remaining, 3);
    }
    assert_int_equal(store_rig_take(rig, &limit, "a", 4), WEIR_DENIED);
    assert_int_equal(store_rig_take(rig, &limit, "a", 3), WEIR_ALLOWED);
}

/* As in the core: a_debit_has_no_room_beyond_the_latest_time. */
TEST_WITH(set_up, tear_down, "a debit is charged up to the latest time")
{
    struct store_rig *rig = *state;
    const uint64_t day = 24 * 3600 * SECOND;
    const struct weir_limit_spec spec = {
        .algorithm = WEIR_TOKEN_BUCKET, .rate = 1, .window_ns = day, .burst = 53000};
    uint64_t room = (INT64_MAX - rig->now_ns) / day;
    struct weir_limit limit;

    assert_int_equal(weir_limit_init(&limit, &spec, NULL), 0);
    limit.name = "rig";
    for (int i = 0; i < 2; i++) {
        struct rig_decision decision;
        struct weir_report report;

        store_rig_begin(&decision, WEIR_OP_DEBIT);
        store_rig_add(&decision, &limit, "a", 500000)->floor = 1001;
        assert_int_equal(store_rig_decide(rig, &decision), WEIR_ALLOWED);
        assert_int_equal(decision.checks[0].cost, i == 0 ? room : 0);
        weir_decision_report(&decision.decision, 0, &report);
        assert_int_equal(report.reset_after_ns, room * day);
    }
}

TEST_WITH(set_up, tear_down, "a limit that redis cannot hold is refused")
{
    struct store_rig *rig = *state;
    struct weir_limit limit = store_rig_limit(WEIR_FIXED_WINDOW, 10, SECOND);
    struct weir_reason reason = {""};

    assert_int_equal(rig->store->ops->prepare(rig->store, &limit, &reason), 0);
    limit = store_rig_limit(WEIR_FIXED_WINDOW, 10, SECOND + 1);
    assert_int_equal(rig->store->ops->prepare(rig->store, &limit, &reason), WEIR_ERR_RANGE);
    assert_true(reason.text[0] != '\0');
}

TEST_WITH(set_up, tear_down, "a prefix that would move slots is refused")
{
    struct store_rig *rig = *state;
    struct weir_store_redis_options options = store_rig_options(rig);
    char text[REDIS_PREFIX_MAX + 2];
    struct weir_store *store;
    struct weir_reason reason;

    memset(text, 'p', sizeof text);
    text[sizeof text - 1] = '\0';
    options.prefix = text;
    assert_int_equal(weir_store_redis_open(&store, &options, &reason), WEIR_ERR_RANGE);
    options.prefix = "a{b}";
    assert_int_equal(weir_store_redis_open(&store, &options, &reason), WEIR_ERR_RANGE);
    assert_non_null(strstr(reason.text, "prefix"));
}

/* --- Denials remembered ----------------------------------------------------------------------- */

TEST_WITH(set_up, tear_down, "a denial is answered from memory for 100 ms")
{
    struct store_rig *rig = *state;
    struct weir_limit limit = store_rig_limit(WEIR_FIXED_WINDOW, 5, 60 * SECOND);
    struct rig_decision decision;
    struct weir_report report;
    uint64_t calls;

    rig->now_ns = START / (60 * SECOND) * (60 * SECOND);
    assert_int_equal(store_rig_take(rig, &limit, "a", 5), WEIR_ALLOWED);
    assert_int_equal(store_rig_take(rig, &limit, "a", 1), WEIR_DENIED);
    calls = rig->stats->calls;
    rig->now_ns += 99 * MS;
    store_rig_begin(&decision, WEIR_OP_DECIDE);
    store_rig_add(&decision, &limit, "a", 1);
    assert_false(store_rig_submit(rig, &decision));
    assert_int_equal(decision.decision.verdict, WEIR_DENIED);
    weir_decision_report(&decision.decision, 0, &report);
    assert_int_equal(report.retry_after_ns, 60 * SECOND - 99 * MS);
    assert_int_equal(rig->stats->calls, calls);
    assert_int_equal(rig->stats->remembered, 1);
    assert_int_equal(store_rig_take(rig, &limit, "a", 2), WEIR_DENIED); /* another cost */
    assert_int_equal(store_rig_take(rig, &limit, "b", 1), WEIR_ALLOWED);
    assert_int_equal(rig->stats->calls, calls + 2);
    rig->now_ns += MS;
    assert_int_equal(store_rig_take(rig, &limit, "a", 1), WEIR_DENIED);
    assert_int_equal(rig->stats->calls, calls + 3);
}

TEST_WITH(set_up, tear_down, "a refund is known at once")
{
    struct store_rig *rig = *state;
    struct weir_limit limit = store_rig_limit(WEIR_FIXED_WINDOW, 5, 60 * SECOND);
    struct rig_decision refund;

    assert_int_equal(store_rig_take(rig, &limit, "a", 5), WEIR_ALLOWED);
    assert_int_equal(store_rig_take(rig, &limit, "a", 1), WEIR_DENIED);
    store_rig_begin(&refund, WEIR_OP_REFUND);
    store_rig_add(&refund, &limit, "a", 2);
    refund.decision.charged_at_ns = rig->now_ns;
    assert_int_equal(store_rig_decide(rig, &refund), WEIR_ALLOWED);
    assert_int_equal(store_rig_take(rig, &limit, "a", 1), WEIR_ALLOWED);
}

/* --- Turns, cancelling ------------------------------------------------------------------------ */

#define MANY 10000

static uint64_t info(struct store_rig *rig, const char *field)
{
    static struct redis_link link;
    const struct weir_resp_node *node;
    uint64_t value;

    redis_link_open(&link, &rig->server);
    node = redis_link_say(&link, "INFO stats");
    value = strtoull(strstr(node->text.data, field) + strlen(field) + 1, NULL, 10);
    redis_link_close(&link);
    return value;
}

TEST_WITH(set_up_in_real_time, tear_down, "ten thousand decisions of a turn travel together")
{
    struct store_rig *rig = *state;
    struct weir_limit limit = store_rig_limit(WEIR_GCRA, MANY / 2, WEIR_WINDOW_MAX_NS);
    struct rig_decision *decisions = calloc(MANY, sizeof *decisions);
    struct weir_decision **batch = calloc(MANY, sizeof *batch);
    uint64_t reads = info(rig, "total_reads_processed"), allowed = 0;

    for (int i = 0; i < MANY; i++) {
        store_rig_begin(&decisions[i], WEIR_OP_DECIDE);
        store_rig_add(&decisions[i], &limit, "a", 1);
        batch[i] = &decisions[i].decision;
    }
    assert_int_equal(rig->store->ops->submit(rig->store, rig->now_ns, batch, MANY), MANY);
    assert_int_equal(rig->finished, 0);
    rig->store->ops->flush(rig->store);
    STORE_UNTIL(rig, rig->finished == MANY);
    for (int i = 0; i < MANY; i++)
        allowed += decisions[i].decision.verdict == WEIR_ALLOWED && decisions[i].error == 0;
    assert_int_equal(allowed, MANY / 2);
    /* the server reads 16 KiB at a time; 10,000 writes would be some thousand reads */
    assert_in_range(info(rig, "total_reads_processed") - reads, 1, 600);
    free(decisions);
    free(batch);
}

TEST_WITH(set_up_in_real_time, tear_down,
          "a decision that is cancelled before the flush is never executed")
{
    struct store_rig *rig = *state;
    struct weir_limit limit = store_rig_limit(WEIR_FIXED_WINDOW, 5, 60 * SECOND);
    struct rig_decision decision;

    store_rig_begin(&decision, WEIR_OP_DECIDE);
    store_rig_add(&decision, &limit, "a", 5);
    assert_true(store_rig_submit(rig, &decision));
    rig->store->ops->cancel(rig->store, &decision.decision);
    rig->store->ops->flush(rig->store);
    assert_int_equal(store_rig_take(rig, &limit, "a", 5), WEIR_ALLOWED);
    assert_false(decision.done);
    assert_int_equal(rig->stats->timeouts, 0); /* it was not late */
}

TEST_WITH(set_up_in_real_time, tear_down, "a late reply is dropped")
{
    struct store_rig *rig = *state;
    struct weir_limit limit = store_rig_limit(WEIR_FIXED_WINDOW, 5, 60 * SECOND);
    struct rig_decision decision;

    store_rig_begin(&decision, WEIR_OP_DECIDE);
    store_rig_add(&decision, &limit, "a", 2);
    assert_true(store_rig_submit(rig, &decision));
    rig->store->ops->flush(rig->store);
    rig->store->ops->cancel(rig->store, &decision.decision);
    memset(&decision, 0xee, sizeof decision); /* nobody may look at it any more */
    assert_int_equal(store_rig_take(rig, &limit, "a", 4), WEIR_DENIED); /* it was charged */
    assert_int_equal(store_rig_take(rig, &limit, "a", 3), WEIR_ALLOWED);
    assert_int_equal(rig->finished, 2);
}

TEST_WITH(set_up_in_real_time, tear_down, "a lease given to nobody is ended")
{
    struct store_rig *rig = *state;
    struct weir_limit limit = store_rig_limit(WEIR_CONCURRENCY, 1, 3600 * SECOND);
    struct rig_decision decision;

    store_rig_begin(&decision, WEIR_OP_DECIDE);
    store_rig_add(&decision, &limit, "a", 1);
    assert_true(store_rig_submit(rig, &decision));
    rig->store->ops->flush(rig->store);
    rig->store->ops->cancel(rig->store, &decision.decision);
    assert_int_equal(store_rig_take(rig, &limit, "a", 1), WEIR_ALLOWED);
}

static struct rig_decision *victim;

static void cancel_the_other(struct store_rig *rig, struct rig_decision *decision)
{
    if (victim != decision)
        rig->store->ops->cancel(rig->store, &victim->decision);
    rig->on_done = NULL;
}

TEST_WITH(set_up_in_real_time, tear_down, "a decision may be cancelled while another is reported")
{
    struct store_rig *rig = *state;
    struct weir_limit limit = store_rig_limit(WEIR_FIXED_WINDOW, 5, 60 * SECOND);
    struct rig_decision first, second;

    store_rig_begin(&first, WEIR_OP_DECIDE);
    store_rig_add(&first, &limit, "a", 1);
    store_rig_begin(&second, WEIR_OP_DECIDE);
    store_rig_add(&second, &limit, "a", 1);
    store_rig_submit(rig, &first);
    store_rig_submit(rig, &second);
    victim = &second;
    rig->on_done = cancel_the_other;
    rig->store->ops->flush(rig->store);
    STORE_UNTIL(rig, first.done);
    assert_int_equal(store_rig_take(rig, &limit, "b", 1), WEIR_ALLOWED);
    assert_false(second.done);
}

/* A call that has no room fails with the flush, also when another's `done` cancels it. */
TEST_WITH(set_up_in_real_time, tear_down, "what has no room fails at the flush")
{
    struct store_rig *rig = *state;
    struct weir_limit limit = store_rig_limit(WEIR_FIXED_WINDOW, 5, 60 * SECOND);
    struct rig_decision decisions[3];
    size_t size = 2 * 1024 * 1024;
    char *text = malloc(size);

    memset(text, 'k', size);
    for (int i = 0; i < 3; i++) {
        store_rig_begin(&decisions[i], WEIR_OP_DECIDE);
        store_rig_add(&decisions[i], &limit, "", 1)->key = (struct weir_bytes){text, size};
        assert_true(store_rig_submit(rig, &decisions[i]));
    }
    victim = &decisions[1];
    rig->on_done = cancel_the_other;
    rig->store->ops->flush(rig->store);
    assert_int_equal(decisions[0].error, WEIR_ERR_FULL);
    assert_false(decisions[1].done);
    assert_int_equal(decisions[2].error, WEIR_ERR_FULL);
    free(text);
}

/* --- Errors of the server --------------------------------------------------------------------- */

TEST_WITH(set_up_in_real_time, tear_down,
          "a key of another type fails its decision and is reported once")
{
    struct store_rig *rig = *state;
    struct weir_limit limit = store_rig_limit(WEIR_FIXED_WINDOW, 5, 60 * SECOND);
    struct rig_decision decision;
    static struct redis_link link;
    char key[200], command[256];

    store_rig_begin(&decision, WEIR_OP_DECIDE);
    store_rig_add(&decision, &limit, "a", 1);
    *redis_key_write(key, "weir:", &decision.checks[0]) = '\0';
    snprintf(command, sizeof command, "LPUSH %s x", key);
    redis_link_open(&link, &rig->server);
    redis_link_say(&link, command);
    redis_link_close(&link);
    for (int i = 0; i < 5; i++)
        assert_int_equal(store_rig_take(rig, &limit, "a", 1), WEIR_ERR_STORE);
    assert_int_equal(store_rig_events(rig, "store_error"), 1);
    assert_int_equal(rig->stats->errors, 5);
    assert_int_equal(rig->stats->up, 1);
    assert_int_equal(store_rig_take(rig, &limit, "b", 1), WEIR_ALLOWED);
}

TEST_WITH(set_up_in_real_time, tear_down, "scripts that were flushed are loaded again")
{
    struct store_rig *rig = *state;
    struct weir_limit limit = store_rig_limit(WEIR_FIXED_WINDOW, 5, 60 * SECOND);
    static struct redis_link link;

    assert_int_equal(store_rig_take(rig, &limit, "a", 3), WEIR_ALLOWED);
    redis_link_open(&link, &rig->server);
    redis_link_say(&link, "SCRIPT FLUSH");
    redis_link_close(&link);
    assert_int_equal(store_rig_take(rig, &limit, "a", 3), WEIR_DENIED);
    assert_int_equal(store_rig_take(rig, &limit, "a", 2), WEIR_ALLOWED);
}

TEST_WITH(set_up_in_real_time, tear_down, "calls and their latency are counted")
{
    struct store_rig *rig = *state;
    struct weir_limit limit = store_rig_limit(WEIR_GCRA, 1000, SECOND);
    uint64_t entered = 0;

    for (int i = 0; i < 100; i++)
        assert_int_equal(store_rig_take(rig, &limit, "a", 1), WEIR_ALLOWED);
    for (int i = 0; i <= REDIS_LATENCY_BUCKETS; i++)
        entered += rig->stats->latency_buckets[i];
    assert_int_equal(rig->stats->calls, 100);
    assert_int_equal(entered, 100);
    assert_true(rig->stats->latency_ns > 100 * 1000);
    assert_int_equal(rig->stats->errors, 0);
}

RUN_TESTS()
