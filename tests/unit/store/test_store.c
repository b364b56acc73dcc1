/* SPDX-License-Identifier: Apache-2.0 */
/* The embedded store: the table behind the seam that every store has. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#include "core/text/siphash.h"
#include "store/store.h"
#include "table/table.h"
#include "test.h"

#define START UINT64_C(1700000000123456789)

struct fixture {
    struct weir_table *table;
    struct weir_store *store;
    struct weir_limit limit;
};

static int set_up(void **state)
{
    static struct fixture f;
    const struct weir_limit_spec spec = {
        .algorithm = WEIR_CONCURRENCY, .rate = 2, .window_ns = UINT64_C(60000000000)};

    assert_int_equal(weir_table_open(&f.table,
                                     &(struct weir_table_options){.bytes = WEIR_TABLE_BYTES_MIN,
                                                                  .wall_ns = START},
                                     NULL),
                     0);
    assert_int_equal(weir_store_embedded_open(&f.store, f.table), 0);
    assert_int_equal(weir_limit_init(&f.limit, &spec, NULL), 0);
    assert_int_equal(f.store->ops->prepare(f.store, &f.limit, &(struct weir_reason){{0}}), 0);
    assert_int_not_equal(f.limit.id, 0);
    *state = &f;
    return 0;
}

static int tear_down(void **state)
{
    struct fixture *f = *state;

    f->store->ops->close(f->store);
    weir_table_close(f->table);
    return 0;
}

static bool lease(struct fixture *f, uint64_t id)
{
    struct weir_check check = {.limit = &f->limit, .hash = {1, 2}, .cost = 1};
    struct weir_outcome outcome;
    struct weir_decision decision = {
        .checks = &check, .outcomes = &outcome, .count = 1, .lease = {.id = id}};
    struct weir_decision *batch[1] = {&decision};

    assert_int_equal(f->store->ops->submit(f->store, START, batch, 1), 0);
    f->store->ops->flush(f->store);
    f->store->ops->cancel(f->store, &decision);
    assert_int_equal(decision.now_ns, START);
    assert_int_equal(decision.source, WEIR_SOURCE_STORE);
    return decision.verdict == WEIR_ALLOWED;
}

TEST_WITH(set_up, tear_down, "it decides at once and nothing is pending")
{
    struct fixture *f = *state;

    assert_true(lease(f, 1));
    assert_true(lease(f, 2));
    assert_false(lease(f, 3));
}

/* Whether there was something. */
static bool operate(struct fixture *f, enum weir_op op, uint64_t first_word, uint64_t lease_id,
                    struct weir_outcome *outcome)
{
    struct weir_check check = {.hash = {first_word, 2}};
    struct weir_decision decision = {.checks = &check,
                                     .outcomes = outcome,
                                     .count = 1,
                                     .op = (uint8_t)op,
                                     .lease = {.id = lease_id}};
    struct weir_decision *batch[1] = {&decision};

    assert_int_equal(f->store->ops->submit(f->store, START, batch, 1), 0);
    assert_int_equal(decision.now_ns, START);
    assert_int_equal(decision.verdict, outcome->verdict);
    assert_int_equal(decision.error, 0);
    assert_true(outcome->reported);
    assert_false(outcome->charged);
    return decision.verdict == WEIR_ALLOWED;
}

TEST_WITH(set_up, tear_down, "it tells when a state will be fresh")
{
    struct fixture *f = *state;
    struct weir_outcome outcome;

    assert_false(operate(f, WEIR_OP_LOOK, 1, 0, &outcome));
    assert_true(lease(f, 1));
    assert_true(operate(f, WEIR_OP_LOOK, 1, 0, &outcome));
    assert_int_equal(outcome.report.reset_after_ns, UINT64_C(60000000000));
}

TEST_WITH(set_up, tear_down, "checks without a state are skipped")
{
    struct fixture *f = *state;
    struct weir_check checks[3] = {{.flags = WEIR_CHECK_UNLIMITED},
                                   {.limit = &f->limit, .hash = {1, 2}},
                                   {.flags = WEIR_CHECK_ALWAYS_DENY}};
    struct weir_outcome outcomes[3];
    struct weir_decision decision = {
        .checks = checks, .outcomes = outcomes, .count = 3, .op = WEIR_OP_RESET};
    struct weir_decision *batch[1] = {&decision};

    assert_true(lease(f, 1));
    assert_int_equal(f->store->ops->submit(f->store, START, batch, 1), 0);
    assert_int_equal(decision.verdict, WEIR_ALLOWED);
    assert_int_equal(outcomes[0].verdict, WEIR_DENIED);
    assert_int_equal(outcomes[1].verdict, WEIR_ALLOWED);
    assert_int_equal(outcomes[2].verdict, WEIR_DENIED);
}

TEST_WITH(set_up, tear_down, "it releases and resets")
{
    struct fixture *f = *state;
    struct weir_outcome outcome;

    assert_true(lease(f, 1));
    assert_true(lease(f, 2));
    assert_true(operate(f, WEIR_OP_RELEASE, 1, 2, &outcome));
    assert_false(operate(f, WEIR_OP_RELEASE, 1, 2, &outcome));
    assert_true(lease(f, 3));
    assert_false(operate(f, WEIR_OP_RESET, UINT64_MAX, 0, &outcome));
    assert_true(operate(f, WEIR_OP_RESET, 1, 0, &outcome));
    assert_false(operate(f, WEIR_OP_RESET, 1, 0, &outcome));
    assert_true(lease(f, 4));
    assert_true(lease(f, 5));
    assert_false(lease(f, 6));
}

TEST_WITH(set_up, tear_down, "a region without a free owner refuses another store")
{
    struct fixture *f = *state;
    struct weir_store *stores[WEIR_TABLE_OWNERS_MAX];
    uint32_t count = 0;
    int err;

    while ((err = weir_store_embedded_open(&stores[count], f->table)) == 0)
        count++;
    assert_int_equal(err, WEIR_ERR_FULL);
    while (count > 0) {
        count--;
        stores[count]->ops->close(stores[count]);
    }
}

RUN_TESTS()
