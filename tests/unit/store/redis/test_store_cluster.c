/* SPDX-License-Identifier: Apache-2.0 */
/* The Redis store over a real Cluster of three masters: decisions whose limits live on several
 * servers, whole or not at all. */
#include "core/bytes.h"
#include "store_rig.h"
#include "test.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/random.h"
#include "store/redis/script/key.h"
#include "store_trace.h"

#define MASTERS 3

static struct redis_server servers[MASTERS];
static struct redis_link links[MASTERS];
static struct store_rig the_rig;

__attribute__((format(printf, 2, 3))) static const struct weir_resp_node *
say(int server, const char *format, ...)
{
    char command[256];
    va_list arguments;

    va_start(arguments, format);
    vsnprintf(command, sizeof command, format, arguments);
    va_end(arguments);
    return redis_link_say(&links[server], command);
}

static bool is_ready(int server)
{
    const struct weir_resp_node *reply = say(server, "CLUSTER INFO");

    return memmem(reply->text.data, reply->text.size, "cluster_state:ok", 16) != NULL &&
           memmem(reply->text.data, reply->text.size, "cluster_known_nodes:3", 21) != NULL;
}

static int start_cluster(void **state)
{
    static const char *const arguments[] = {"--cluster-enabled", "yes", NULL};

    (void)state;
    for (int i = 0; i < MASTERS; i++) {
        redis_server_start(&servers[i], arguments);
        redis_link_open(&links[i], &servers[i]);
        say(i, "CLUSTER SET-CONFIG-EPOCH %d", i + 1);
        say(i, "CLUSTER ADDSLOTSRANGE %d %d", REDIS_CLUSTER_SLOTS * i / MASTERS,
            REDIS_CLUSTER_SLOTS * (i + 1) / MASTERS - 1);
        if (i > 0)
            say(i, "CLUSTER MEET 127.0.0.1 %u", servers[0].port);
    }
    store_rig_init(&the_rig);
    for (int i = 0; i < MASTERS; i++)
        STORE_UNTIL(&the_rig, is_ready(i));
    store_rig_end(&the_rig);
    return 0;
}

static int stop_cluster(void **state)
{
    (void)state;
    for (int i = 0; i < MASTERS; i++) {
        redis_link_close(&links[i]);
        redis_server_stop(&servers[i]);
    }
    return 0;
}

static int set_up_with(void **state, bool test_time)
{
    struct weir_store_redis_options options;
    struct weir_reason reason;
    char url[64];

    store_rig_init(&the_rig);
    snprintf(url, sizeof url, "redis-cluster://127.0.0.1:%u", servers[0].port);
    assert_int_equal(redis_url_parse(&the_rig.url, url, &reason), 0);
    options = store_rig_options(&the_rig);
    if (test_time)
        options.test_time_ns = &the_rig.now_ns;
    store_rig_open(&the_rig, &options);
    for (int i = 0; i < MASTERS; i++)
        say(i, "FLUSHALL");
    *state = &the_rig;
    return 0;
}

static int set_up(void **state)
{
    return set_up_with(state, true);
}

static int set_up_in_real_time(void **state)
{
    return set_up_with(state, false);
}

static int tear_down(void **state)
{
    store_rig_end(*state);
    return 0;
}

/* --- What the tests ask ----------------------------------------------------------------------- */

/* A key whose slot is that server's. */
static void key_of(int server, const char *text, char key[32])
{
    for (unsigned i = 0;; i++) {
        struct weir_check check = {.limit = &(const struct weir_limit){.name = "rig"}};

        snprintf(key, 32, "%s:%u", text, i);
        check.key = weir_bytes_of(key);
        if (redis_key_cluster_slot(redis_key_tag(&check)) * MASTERS / REDIS_CLUSTER_SLOTS == server)
            return;
    }
}

/* One check on each server. */
static void begin(struct rig_decision *decision, uint8_t op, const struct weir_limit *limit,
                  uint64_t cost)
{
    store_rig_begin(decision, op);
    for (int i = 0; i < MASTERS; i++) {
        char key[32];

        key_of(i, "k", key);
        store_rig_add(decision, limit, key, cost);
    }
}

/* What is left on each server. Returns whether all have answered. */
static bool look(struct store_rig *rig, const struct weir_limit *limit, uint64_t left[MASTERS])
{
    struct rig_decision peek;

    begin(&peek, WEIR_OP_PEEK, limit, 0);
    if (store_rig_decide(rig, &peek) != WEIR_ALLOWED)
        return false;
    for (uint16_t i = 0; i < MASTERS; i++) {
        struct weir_report report;

        weir_decision_report(&peek.decision, i, &report);
        left[i] = report.remaining;
    }
    return true;
}

static void assert_left(struct store_rig *rig, const struct weir_limit *limit, uint64_t wanted)
{
    uint64_t left[MASTERS];

    assert_true(look(rig, limit, left));
    for (int i = 0; i < MASTERS; i++)
        assert_int_equal(left[i], wanted);
}

/* --- Tests ------------------------------------------------------------------------------------ */

TEST_WITH(set_up, tear_down, "random decisions are those of one store")
{
    struct store_trace trace;

    store_trace_begin(&trace, *state, 5);
    store_trace_several(&trace, 3000);
    assert_in_range(trace.denied, 300, 2700);
    store_trace_end(&trace);
}

TEST_WITH(set_up_in_real_time, tear_down, "a denial on one server charges nothing on the others")
{
    struct store_rig *rig = *state;
    struct weir_limit limit = store_rig_limit(WEIR_FIXED_WINDOW, 10, 24 * 3600 * SECOND);
    struct rig_decision decision;
    char key[32];

    key_of(1, "k", key);
    assert_int_equal(store_rig_take(rig, &limit, key, 10), WEIR_ALLOWED);
    begin(&decision, WEIR_OP_DECIDE, &limit, 1);
    assert_int_equal(store_rig_decide(rig, &decision), WEIR_DENIED);
    assert_int_equal(decision.outcomes[0].verdict, WEIR_ALLOWED);
    assert_int_equal(decision.outcomes[1].verdict, WEIR_DENIED);
    assert_int_equal(decision.outcomes[2].verdict, WEIR_ALLOWED);
    assert_int_equal(rig->stats->rollbacks, 1);

    uint64_t left[MASTERS];

    assert_true(look(rig, &limit, left));
    assert_int_equal(left[0], 10);
    assert_int_equal(left[1], 0);
    assert_int_equal(left[2], 10);
}

#define BUCKET_BYTES 41 /* kind, time and units owed, unit and period of its limit, last use */
#define BUCKET_LIMIT 17 /* where unit and period are, 16 bytes */

/* A bucket's state on the first server. */
static bool read_bucket(const struct weir_check *check, char state[BUCKET_BYTES])
{
    char key[128];
    const struct weir_resp_node *reply;

    *redis_key_write(key, "weir:", check) = '\0';
    reply = say(0, "GET %s", key);
    assert_int_equal(reply->type, WEIR_RESP_BULK);
    assert_int_equal(reply->text.size, BUCKET_BYTES);
    memcpy(state, reply->text.data, BUCKET_BYTES);
    return true;
}

/* A caller's plan has changed, and a limit on another server denies his request under it. With
 * `meanwhile`, a node that does not know of the change admits one before that. */
static void deny_under_another_plan(struct store_rig *rig, bool meanwhile)
{
    struct weir_limit before = store_rig_limit(WEIR_GCRA, 1000, 24 * 3600 * SECOND);
    struct weir_limit after = store_rig_limit(WEIR_GCRA, 700, 3600 * SECOND);
    struct weir_limit other = store_rig_limit(WEIR_FIXED_WINDOW, 1, 24 * 3600 * SECOND);
    struct rig_decision decision, peek;
    char key[32], other_key[32], was[BUCKET_BYTES], is[BUCKET_BYTES];

    key_of(0, "plan", key);
    key_of(1, "plan", other_key);
    assert_int_equal(store_rig_take(rig, &before, key, 600), WEIR_ALLOWED);
    assert_int_equal(store_rig_take(rig, &other, other_key, 1), WEIR_ALLOWED);
    store_rig_begin(&decision, WEIR_OP_DECIDE);
    store_rig_add(&decision, &after, key, 1);
    store_rig_add(&decision, &other, other_key, 1);
    read_bucket(&decision.checks[0], was);
    redis_server_signal(&servers[1], SIGSTOP);
    assert_true(store_rig_submit(rig, &decision));
    rig->store->ops->flush(rig->store);
    STORE_UNTIL(rig, read_bucket(&decision.checks[0], is) && memcmp(was, is, sizeof is) != 0);
    if (meanwhile)
        assert_int_equal(store_rig_take(rig, &before, key, 1), WEIR_ALLOWED);
    redis_server_signal(&servers[1], SIGCONT);
    STORE_UNTIL(rig, decision.done);
    assert_int_equal(decision.decision.verdict, WEIR_DENIED);
    store_rig_begin(&peek, WEIR_OP_PEEK); /* behind the roll-back */
    store_rig_add(&peek, &before, key, 1);
    assert_int_equal(store_rig_decide(rig, &peek), WEIR_ALLOWED);
    read_bucket(&decision.checks[0], is);
    assert_memory_equal(is + BUCKET_LIMIT, was + BUCKET_LIMIT, 16);
    if (!meanwhile)
        assert_memory_equal(is, was, sizeof is);
}

TEST_WITH(set_up_in_real_time, tear_down,
          "a denial on one server leaves another as an earlier plan made it")
{
    deny_under_another_plan(*state, false);
}

TEST_WITH(set_up_in_real_time, tear_down,
          "a denial on one server leaves another in the plan that it is in")
{
    deny_under_another_plan(*state, true);
}

TEST_WITH(set_up_in_real_time, tear_down, "a repeat charges no server again")
{
    struct store_rig *rig = *state;
    struct weir_limit limit = store_rig_limit(WEIR_FIXED_WINDOW, 10, 24 * 3600 * SECOND);
    struct weir_limit once = store_rig_limit(WEIR_GCRA, 1, 60 * SECOND);

    for (int i = 0; i < 3; i++) {
        struct rig_decision decision;

        begin(&decision, WEIR_OP_DECIDE, &limit, 4);
        store_rig_add(&decision, &once, "request", 1)->flags = WEIR_CHECK_IDEMPOTENCY;
        assert_int_equal(store_rig_decide(rig, &decision), WEIR_ALLOWED);
        assert_int_equal(decision.decision.repeated, i > 0);
    }
    assert_left(rig, &limit, 6);
}

/* A record keeps its place, whatever is beside it: also where no check of its decision does. */
TEST_WITH(set_up_in_real_time, tear_down, "a denial takes back a record that is alone in its slot")
{
    struct store_rig *rig = *state;
    struct weir_limit limit = store_rig_limit(WEIR_FIXED_WINDOW, 10, 24 * 3600 * SECOND);
    struct weir_limit once = store_rig_limit(WEIR_GCRA, 1, 60 * SECOND);
    static const uint64_t costs[] = {11, 10, 10};
    char key[32], record[32];

    key_of(0, "k", key);
    key_of(2, "request", record);
    for (int i = 0; i < 3; i++) {
        struct rig_decision decision;

        store_rig_begin(&decision, WEIR_OP_DECIDE);
        store_rig_add(&decision, &limit, key, costs[i]);
        store_rig_add(&decision, &once, record, 1)->flags = WEIR_CHECK_IDEMPOTENCY;
        assert_int_equal(store_rig_decide(rig, &decision), i == 0 ? WEIR_DENIED : WEIR_ALLOWED);
        assert_int_equal(decision.decision.repeated, i == 2);
    }
}

/* Cancelled between any two replies. What was decided before that stays; all else is taken back. */
TEST_WITH(set_up_in_real_time, tear_down, "a decision that is cancelled is taken back everywhere")
{
    struct store_rig *rig = *state;
    struct weir_limit limit = store_rig_limit(WEIR_FIXED_WINDOW, 100000, 24 * 3600 * SECOND);
    uint64_t random = 3, decided = 0, cancelled = 0;

    for (int i = 0; i < 300; i++) {
        struct rig_decision decision;
        uint64_t turns = weir_random(&random) % 8;

        begin(&decision, WEIR_OP_DECIDE, &limit, 1);
        assert_true(store_rig_submit(rig, &decision));
        if (weir_random(&random) % 8 != 0)
            rig->store->ops->flush(rig->store);
        while (turns-- > 0 && !decision.done)
            uv_run(&rig->loop, UV_RUN_NOWAIT);
        if (decision.done) {
            decided++;
            continue;
        }
        rig->store->ops->cancel(rig->store, &decision.decision);
        memset(&decision, 0xee, sizeof decision);
        cancelled++;
    }
    assert_true(cancelled > 50);
    assert_left(rig, &limit, 100000 - decided);
}

/* One of three masters hangs. The others go on, and what it held up is taken back from them. */
TEST_WITH(set_up_in_real_time, tear_down, "one silent server is no outage")
{
    struct store_rig *rig = *state;
    struct weir_limit limit = store_rig_limit(WEIR_FIXED_WINDOW, 1000, 24 * 3600 * SECOND);
    struct rig_decision whole[10];
    uint64_t left[MASTERS];
    char keys[MASTERS][32];

    for (int i = 0; i < MASTERS; i++)
        key_of(i, "k", keys[i]);
    assert_left(rig, &limit, 1000);
    redis_server_signal(&servers[2], SIGSTOP);
    for (int i = 0; i < 10; i++) {
        begin(&whole[i], WEIR_OP_DECIDE, &limit, 1);
        assert_true(store_rig_submit(rig, &whole[i]));
    }
    rig->store->ops->flush(rig->store);
    for (int i = 0; i < 40; i++)
        assert_int_equal(store_rig_take(rig, &limit, keys[i % 2], 1), WEIR_ALLOWED);
    for (int i = 0; i < 10; i++) {
        assert_false(whole[i].done);
        rig->store->ops->cancel(rig->store, &whole[i].decision);
    }
    for (int i = 0; i < 40; i++)
        assert_int_equal(store_rig_take(rig, &limit, keys[i % 2], 1), WEIR_ALLOWED);
    assert_int_equal(rig->stats->up, 1);
    redis_server_signal(&servers[2], SIGCONT);
    assert_true(look(rig, &limit, left));
    assert_int_equal(left[0], 960);
    assert_int_equal(left[1], 960);
    assert_int_equal(left[2], 1000);
}

/* The connection over which a reservation was made is cut before the roll-back. */
TEST_WITH(set_up_in_real_time, tear_down, "a reservation is taken back over another connection")
{
    struct store_rig *rig = *state;
    struct weir_limit limit = store_rig_limit(WEIR_FIXED_WINDOW, 1000, 24 * 3600 * SECOND);
    struct rig_decision decision;
    uint64_t left[MASTERS];

    assert_left(rig, &limit, 1000);
    redis_server_signal(&servers[1], SIGSTOP);
    begin(&decision, WEIR_OP_DECIDE, &limit, 1);
    assert_true(store_rig_submit(rig, &decision));
    rig->store->ops->flush(rig->store);
    STORE_UNTIL(rig, say(0, "DBSIZE")->integer == 2); /* the state, and the reservation */
    say(0, "CLIENT KILL TYPE normal");
    rig->store->ops->cancel(rig->store, &decision.decision);
    redis_server_signal(&servers[1], SIGCONT);
    STORE_UNTIL(rig, look(rig, &limit, left) && left[0] == 1000);
    assert_int_equal(left[1], 1000);
}

RUN_TESTS_WITH(start_cluster, stop_cluster)
