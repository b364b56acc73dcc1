/* SPDX-License-Identifier: Apache-2.0 */
/* The sticky store without a network: its own keys, what peers ask, and a peer that is not there.
 * Real nodes are in tests/integration/store/sticky. */
#include "feature/sticky/store/sticky.h"
#include "test.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#include "core/bytes.h"
#include "core/text/reason.h"
#include "store/redis/script/key.h"
#include "table/table.h"

#define START UINT64_C(1700000000123456789)

struct fixture {
    uv_loop_t loop;
    struct weir_table *table;
    struct weir_store *embedded, *store;
    struct weir_limit limit, unnamed;
    struct redis_url url;
    struct sticky_peer_stats stats;
    int downs, asked, gone;
};

/* Node 0 is this one; even tags are its own. */
static uint32_t home(void *context, uint64_t tag)
{
    (void)context;
    return (uint32_t)(tag & 1);
}

static void on_event(void *context, void *owner, bool up, const char *text)
{
    struct fixture *f = context;
    assert_ptr_equal(owner, &f->url);
    assert_false(up);
    assert_true(text[0] != '\0');
    f->downs++;
}

static void on_gone(void *context, void *owner)
{
    struct fixture *f = context;
    assert_ptr_equal(owner, &f->url);
    f->gone++;
}

static void make_limit(struct fixture *f, struct weir_limit *limit, const char *name)
{
    const struct weir_limit_spec spec = {
        .algorithm = WEIR_FIXED_WINDOW, .rate = 5, .window_ns = UINT64_C(86400000000000)};
    assert_int_equal(weir_limit_init(limit, &spec, NULL), 0);
    limit->name = name;
    assert_int_equal(weir_store_prepare(f->store, f->embedded, limit, &(struct weir_reason){{0}}),
                     0);
    assert_int_not_equal(limit->id, 0);
}

static int set_up(void **state)
{
    static struct fixture f;
    const struct weir_table_options table = {.bytes = WEIR_TABLE_BYTES_MIN, .wall_ns = START};
    struct weir_reason reason;
    memset(&f, 0, sizeof f);
    assert_int_equal(uv_loop_init(&f.loop), 0);
    assert_int_equal(weir_table_open(&f.table, &table, NULL), 0);
    assert_int_equal(weir_store_embedded_open(&f.embedded, f.table), 0);
    assert_int_equal(redis_url_parse(&f.url, "unix:/nonexistent/weir.sock", &reason), 0);
    const struct sticky_peer peers[2] = {
        {.from = STICKY_NEW},
        {.url = &f.url, .stats = &f.stats, .owner = &f.url, .from = STICKY_NEW},
    };
    const struct sticky_options options = {
        .loop = &f.loop,
        .table = f.embedded,
        .table_secret = weir_table_secret(f.table),
        .peers = peers,
        .peer_count = 2,
        .home = home,
        .event = on_event,
        .gone = on_gone,
        .context = &f,
    };
    assert_int_equal(weir_store_sticky_open(&f.store, &options, &reason), 0);
    make_limit(&f, &f.limit, "api");
    make_limit(&f, &f.unnamed, NULL);
    *state = &f;
    return 0;
}

static int tear_down(void **state)
{
    struct fixture *f = *state;
    f->store->ops->close(f->store);
    uv_run(&f->loop, UV_RUN_DEFAULT);
    assert_int_equal(f->gone, 1);
    assert_int_equal(uv_loop_close(&f->loop), 0);
    f->embedded->ops->close(f->embedded);
    weir_table_close(f->table);
    return 0;
}

static struct weir_check check_of(const struct weir_limit *limit, uint64_t tag)
{
    return (struct weir_check){
        .limit = limit, .hash = {3, 4}, .cost = 1, .key = weir_bytes_of("user=x"), .tag = tag};
}

/* Decides a check; the decision as it was left. */
static struct weir_decision submit(struct fixture *f, struct weir_check *check,
                                   struct weir_outcome *outcome)
{
    struct weir_decision decision = {.checks = check, .outcomes = outcome, .count = 1};
    struct weir_decision *batch[1] = {&decision};
    memset(outcome, 0, sizeof *outcome);
    assert_int_equal(f->store->ops->submit(f->store, START, batch, 1), 0);
    f->store->ops->flush(f->store);
    return decision;
}

static uint64_t remaining(const struct weir_decision *decision)
{
    struct weir_report report;
    assert_int_equal(decision->verdict, WEIR_ALLOWED);
    weir_decision_report(decision, 0, &report);
    return report.remaining;
}

static int find(void *context, struct sticky_check *read, const struct weir_limit **limit,
                struct weir_reason *reason)
{
    struct fixture *f = context;
    f->asked++;
    if (!weir_bytes_are(read->name, "api")) {
        reason_text(reason, "no such limit");
        return WEIR_ERR_NOT_FOUND;
    }
    *limit = &f->limit;
    return 0;
}

/* What a peer asks for this check. */
static long ask(struct fixture *f, const struct weir_check *check, char *answer,
                struct weir_reason *reason)
{
    struct weir_check copy = *check;
    struct weir_decision decision = {.checks = &copy, .count = 1};
    unsigned char digest[1][STICKY_DIGEST];
    char message[STICKY_MESSAGE_MAX];
    redis_key_digest(check, digest[0]);
    size_t size =
        sticky_message_write(message, &decision, (const unsigned char(*)[STICKY_DIGEST])digest);
    return sticky_decide(f->embedded, weir_table_secret(f->table),
                         (struct weir_bytes){message, size}, START, find, f, answer, reason);
}

TEST_WITH(set_up, tear_down, "a state is the same for this node and for peers")
{
    struct fixture *f = *state;
    struct weir_check check = check_of(&f->limit, 2);
    struct weir_outcome outcome;
    struct weir_reason reason;
    char answer[STICKY_ANSWER_MAX];
    for (uint64_t left = 5; left > 1;) {
        struct weir_decision decision = submit(f, &check, &outcome);
        assert_int_equal(remaining(&decision), --left);
        long size = ask(f, &check, answer, &reason);
        assert_true(size > 0);
        decision = (struct weir_decision){.checks = &check, .outcomes = &outcome, .count = 1};
        assert_int_equal(sticky_answer_read((struct weir_bytes){answer, (size_t)size}, &decision),
                         0);
        assert_int_equal(remaining(&decision), --left);
    }
    assert_int_equal(check.hash[0], 3); /* the check's own */
}

TEST_WITH(set_up, tear_down, "a limit has one state with and without a tag")
{
    struct fixture *f = *state;
    struct weir_check tagged = check_of(&f->limit, 4), plain = check_of(&f->limit, 0);
    struct weir_outcome outcome;
    struct weir_decision decision = submit(f, &tagged, &outcome);
    assert_int_equal(remaining(&decision), 4);
    decision = submit(f, &plain, &outcome);
    assert_int_equal(remaining(&decision), 3);
    struct weir_check command = check_of(&f->unnamed, 0); /* by its own hash */
    decision = submit(f, &command, &outcome);
    assert_int_equal(remaining(&decision), 4);
    command.hash[0]++;
    decision = submit(f, &command, &outcome);
    assert_int_equal(remaining(&decision), 4);
}

TEST_WITH(set_up, tear_down, "what a peer asks is refused with a reason")
{
    struct fixture *f = *state;
    struct weir_check check = check_of(&f->unnamed, 2);
    struct weir_reason reason = {{0}};
    char answer[STICKY_ANSWER_MAX];
    assert_int_equal(ask(f, &check, answer, &reason), WEIR_ERR_NOT_FOUND);
    assert_string_equal(reason.text, "no such limit");
    assert_int_equal(sticky_decide(f->embedded, weir_table_secret(f->table),
                                   (struct weir_bytes){"xyz", 3}, START, find, f, answer, &reason),
                     WEIR_ERR_SYNTAX);
    assert_int_equal(f->asked, 1);
}

TEST_WITH(set_up, tear_down, "a peer that is not there fails a decision at once")
{
    struct fixture *f = *state;
    struct weir_check check = check_of(&f->limit, 3);
    struct weir_outcome outcome;
    while (f->downs == 0) /* there is no such socket */
        uv_run(&f->loop, UV_RUN_ONCE);
    for (int i = 0; i < 3; i++) {
        struct weir_decision decision = submit(f, &check, &outcome);
        assert_int_equal(decision.verdict, WEIR_PENDING);
        assert_int_equal(decision.error, WEIR_ERR_STORE);
    }
    assert_int_equal(f->stats.refused, 3);
    assert_int_equal(f->stats.calls, 0);
    assert_int_equal(f->stats.up, 0);
    assert_int_equal(f->downs, 1);
    struct weir_check own = check_of(&f->limit, 2);
    struct weir_decision decision = submit(f, &own, &outcome);
    assert_int_equal(remaining(&decision), 4);
}

RUN_TESTS()
