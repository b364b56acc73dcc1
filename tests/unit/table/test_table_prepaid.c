/* SPDX-License-Identifier: Apache-2.0 */
/* Units that were given to keys, in the table: no request makes a state of them, no key has those
 * of another, and no flood of other keys takes them away. */
#include "table_test.h"
#include "test.h"

#define DAY (1440 * MINUTE)

#ifdef MODEL_QUICK
#define FLOOD_KEYS 100000
#else
#define FLOOD_KEYS 400000
#endif
#define GIVEN 40

static const struct weir_limit_spec prepaid = {.algorithm = WEIR_PREPAID, .window_ns = DAY};

/* One operation on the units of a key. Returns the outcome. */
static struct weir_outcome use(struct weir_table *table, struct weir_table_owner *owner,
                               const struct weir_limit *limit, uint64_t key, uint8_t op,
                               uint64_t cost)
{
    struct weir_check check = {.limit = limit, .cost = cost};
    struct weir_outcome outcome;
    struct weir_decision decision = {
        .checks = &check, .outcomes = &outcome, .count = 1, .op = op, .charged_at_ns = START + DAY};
    struct weir_decision *batch[1] = {&decision};

    key_hash(table, key, check.hash);
    weir_table_submit(owner, START, batch, 1);
    return outcome;
}

static uint64_t left(struct weir_table *table, struct weir_table_owner *owner,
                     const struct weir_limit *limit, uint64_t key)
{
    const struct weir_use one = {.now_ns = START};
    struct weir_outcome outcome = use(table, owner, limit, key, WEIR_OP_PEEK, 0);
    struct weir_report report;

    weir_cell_report(limit, &outcome.cell, &one, true, &report);
    return report.remaining;
}

TEST("a request makes no state")
{
    struct weir_table *table = open_private_table(UINT64_C(1) << 20);
    struct weir_table_owner *owner = attach(table);
    struct weir_limit limit = make_named(table, "month~top_up", prepaid);
    struct weir_table_stats stats;

    for (uint64_t key = 0; key < 1000; key++) {
        assert_int_equal(use(table, owner, &limit, key, WEIR_OP_DECIDE, 1).verdict, WEIR_DENIED);
        assert_false(use(table, owner, &limit, key, WEIR_OP_DEBIT, 1).charged);
    }
    weir_table_stats(table, START, &stats);
    assert_int_equal(stats.inserts, 0);
    validate(table);
    weir_table_detach(owner);
    weir_table_close(table);
}

TEST("a flood of other keys takes no units away")
{
    struct weir_table *table = open_private_table(UINT64_C(1) << 20);
    struct weir_table_owner *owner = attach(table);
    struct weir_limit limit = make_named(table, "month~top_up", prepaid);
    struct weir_limit other =
        make_named(table, "flooded",
                   (struct weir_limit_spec){.algorithm = WEIR_GCRA, .rate = 2, .window_ns = DAY});

    for (uint64_t key = 0; key < GIVEN; key++)
        assert_true(use(table, owner, &limit, key, WEIR_OP_REFUND, key + 1).charged);
    for (uint64_t key = 0; key < FLOOD_KEYS; key++)
        decide_key(table, owner, &other, 1000 + key, 1, START);
    for (uint64_t key = 0; key < GIVEN; key++)
        assert_int_equal(left(table, owner, &limit, key), key + 1);
    /* A key that was given nothing has nothing, though the table is full. */
    for (uint64_t key = 500; key < 900; key++)
        assert_int_equal(use(table, owner, &limit, key, WEIR_OP_DECIDE, 1).verdict, WEIR_DENIED);
    validate(table);
    weir_table_detach(owner);
    weir_table_close(table);
}

/* Where there is no room, a grant says so, and takes nothing from others that were given more. */
TEST("what finds no room is not given")
{
    struct weir_table *table = open_private_table(UINT64_C(1) << 18);
    struct weir_table_owner *owner = attach(table);
    struct weir_limit limit = make_named(table, "month~top_up", prepaid);
    uint64_t given = 0, refused = 0, kept = 0;
    static bool has[20000];

    for (uint64_t key = 0; key < 20000; key++) {
        has[key] = use(table, owner, &limit, key, WEIR_OP_REFUND, 9).charged;
        given += has[key];
        refused += !has[key];
    }
    for (uint64_t key = 0; key < 20000; key++) {
        uint64_t units = left(table, owner, &limit, key);

        assert_true(units == 9 || units == 0);
        assert_true(has[key] || units == 0);
        kept += units == 9;
    }
    assert_true(refused > 1000 && given > 100);
    assert_int_equal(kept, given);
    validate(table);
    weir_table_detach(owner);
    weir_table_close(table);
}

RUN_TESTS()
