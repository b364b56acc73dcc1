/* SPDX-License-Identifier: Apache-2.0 */
/* Checks at a scale where the general way of the table matters: several on one key, overflow,
 * `on_deny: charge`, the short ways. test_table_model.c has random ones of all algorithms. */
#include "core/scale.h"
#include "table_test.h"
#include "test.h"

#define KEYS 60000

static const struct weir_limit_spec ten = {
    .algorithm = WEIR_TOKEN_BUCKET, .rate = 10, .window_ns = 1000 * SECOND};

struct rig {
    struct weir_table *table;
    struct weir_table_owner *owner;
    struct one one;
};

static void open_rig(struct rig *rig, uint64_t bytes)
{
    rig->table = open_private_table(bytes);
    rig->owner = attach(rig->table);
}

static void close_rig(struct rig *rig)
{
    validate(rig->table);
    weir_table_detach(rig->owner);
    weir_table_close(rig->table);
}

static struct weir_check *add(struct rig *rig, const struct weir_limit *limit, uint64_t key,
                              unsigned percent, enum weir_scale_kind kind)
{
    struct weir_check *check = add_check(&rig->one, rig->table, limit, key, 1);

    check->scale = percent & 0x7f;
    check->scale_kind = kind & 1;
    return check;
}

/* One check by itself. */
static bool take(struct rig *rig, const struct weir_limit *limit, uint64_t key, unsigned percent,
                 enum weir_scale_kind kind)
{
    begin_one(&rig->one);
    add(rig, limit, key, percent, kind);
    return submit_one(rig->owner, &rig->one, START);
}

static int admitted(struct rig *rig, const struct weir_limit *limit, uint64_t key, unsigned percent,
                    enum weir_scale_kind kind)
{
    int count = 0;

    while (take(rig, limit, key, percent, kind))
        count++;
    return count;
}

TEST("what a scale leaves is admitted and the rest without it")
{
    static const enum weir_algorithm algorithms[] = {WEIR_FIXED_WINDOW, WEIR_SLIDING_WINDOW,
                                                     WEIR_SLIDING_LOG,  WEIR_TOKEN_BUCKET,
                                                     WEIR_CONCURRENCY,  WEIR_LEAKY_BUCKET};
    struct rig rig;
    open_rig(&rig, UINT64_C(1) << 20);
    for (uint64_t i = 0; i < sizeof algorithms / sizeof algorithms[0]; i++) {
        struct weir_limit limit = make_limit(
            rig.table, (struct weir_limit_spec){
                           .algorithm = algorithms[i], .rate = 10, .window_ns = 1000 * SECOND});

        assert_int_equal(admitted(&rig, &limit, i, 60, WEIR_SCALE_RESERVE), 6);
        assert_int_equal(admitted(&rig, &limit, i, 0, WEIR_SCALE_RESERVE), 4);
        assert_int_equal(admitted(&rig, &limit, 100 + i, 1, WEIR_SCALE_RESERVE), 1);
    }
    close_rig(&rig);
}

/* Two checks of one unit each, at 20 % and a reserve of 50 %: 5 and 1 of 5 units fit; then neither
 * takes anything. */
TEST("checks of different scales on one key count together")
{
    struct rig rig;
    struct weir_limit limit;
    open_rig(&rig, UINT64_C(1) << 20);
    limit = make_limit(rig.table, ten);
    for (int round = 0; round < 2; round++) {
        begin_one(&rig.one);
        add(&rig, &limit, 1, 20, WEIR_SCALE_RATE);
        assert_int_equal(submit_one(rig.owner, &rig.one, START), round == 0);
        begin_one(&rig.one);
        add(&rig, &limit, 1, 20, WEIR_SCALE_RATE);
        add(&rig, &limit, 1, 50, WEIR_SCALE_RESERVE);
        assert_false(submit_one(rig.owner, &rig.one, START)); /* 5 + 5 + 1 of 5 */
        if (round == 0)
            assert_true(take(&rig, &limit, 1, 0, WEIR_SCALE_RESERVE));
    }
    begin_one(&rig.one);
    add(&rig, &limit, 2, 50, WEIR_SCALE_RATE);
    add(&rig, &limit, 2, 50, WEIR_SCALE_RESERVE);
    assert_true(submit_one(rig.owner, &rig.one, START)); /* 2 + 1 */
    begin_one(&rig.one);
    add(&rig, &limit, 2, 50, WEIR_SCALE_RATE);
    add(&rig, &limit, 2, 60, WEIR_SCALE_RESERVE);
    assert_true(submit_one(rig.owner, &rig.one, START)); /* 6 of 6 */
    assert_int_equal(admitted(&rig, &limit, 2, 0, WEIR_SCALE_RESERVE), 4);
    close_rig(&rig);
}

TEST("a denied cost is charged by its weight down to empty")
{
    struct rig rig;
    struct weir_limit limit;
    struct weir_report report;
    open_rig(&rig, UINT64_C(1) << 20);
    limit = make_limit(rig.table, ten);
    assert_int_equal(admitted(&rig, &limit, 1, 20, WEIR_SCALE_RATE), 2);
    begin_one(&rig.one);
    add(&rig, &limit, 1, 20, WEIR_SCALE_RATE)->flags = WEIR_CHECK_CHARGE_ON_DENY;
    assert_false(submit_one(rig.owner, &rig.one, START));
    weir_decision_report_whole(&rig.one.decision, 0, &report);
    assert_int_equal(report.reset_after_ns, 1000 * SECOND);
    /* A reserve of 10 %: the first cost is denied, and still charged, down to empty. */
    assert_int_equal(admitted(&rig, &limit, 2, 10, WEIR_SCALE_RESERVE), 1);
    for (int i = 0; i < 12; i++) {
        begin_one(&rig.one);
        add(&rig, &limit, 2, 10, WEIR_SCALE_RESERVE)->flags = WEIR_CHECK_CHARGE_ON_DENY;
        assert_false(submit_one(rig.owner, &rig.one, START));
    }
    weir_decision_report_whole(&rig.one.decision, 0, &report);
    assert_int_equal(report.reset_after_ns, 1000 * SECOND);
    close_rig(&rig);
}

TEST("several checks of which one has a scale do not go the short way")
{
    struct rig rig;
    struct weir_limit limit;
    open_rig(&rig, UINT64_C(1) << 20);
    limit = make_limit(rig.table, ten);
    for (uint64_t key = 1; key <= 3; key++)
        assert_true(take(&rig, &limit, key, 0, WEIR_SCALE_RESERVE));
    for (int i = 0; i < 2; i++) {
        begin_one(&rig.one);
        add(&rig, &limit, 1, 0, WEIR_SCALE_RESERVE);
        add(&rig, &limit, 2, 20, WEIR_SCALE_RESERVE);
        add(&rig, &limit, 3, 0, WEIR_SCALE_RESERVE);
        assert_int_equal(submit_one(rig.owner, &rig.one, START), i == 0);
    }
    assert_int_equal(admitted(&rig, &limit, 1, 0, WEIR_SCALE_RESERVE), 8);
    close_rig(&rig);
}

/* No key that overflows is admitted more than its scale leaves, and what is reported is at the
 * scale.
 */
static void overflow_is_never_late_at_a_scale(enum weir_algorithm algorithm,
                                              enum weir_scale_kind kind)
{
    struct rig rig;
    struct weir_limit limit;
    static unsigned char used[KEYS];
    uint32_t overflows = 0;

    open_rig(&rig, UINT64_C(512) << 10);
    memset(used, 0, sizeof used);
    limit = make_limit(
        rig.table,
        (struct weir_limit_spec){.algorithm = algorithm, .rate = 10, .window_ns = 1000 * SECOND});
    for (uint64_t key = KEYS; key < 2 * KEYS; key++) /* those who deny stay */
        decide_key(rig.table, rig.owner, &limit, key, 10, START);
    for (uint32_t round = 0; round < 4; round++)
        for (uint64_t key = 0; key < KEYS; key++) {
            struct weir_report report;

            used[key] += take(&rig, &limit, key, 20, kind);
            weir_decision_report(&rig.one.decision, 0, &report);
            assert_int_equal(report.limit, 2);
            if (!rig.one.outcomes[0].overflow)
                continue;
            overflows++;
            assert_true(used[key] <= 2);
            assert_true(report.remaining <= 2);
            if (rig.one.outcomes[0].verdict == WEIR_DENIED)
                assert_true(report.retry_after_ns > 0);
        }
    assert_true(overflows > KEYS / 4);
    close_rig(&rig);
}

TEST("overflow is never late at any kind of scale")
{
    overflow_is_never_late_at_a_scale(WEIR_TOKEN_BUCKET, WEIR_SCALE_RESERVE);
    overflow_is_never_late_at_a_scale(WEIR_TOKEN_BUCKET, WEIR_SCALE_RATE);
    overflow_is_never_late_at_a_scale(WEIR_SLIDING_WINDOW, WEIR_SCALE_RESERVE);
    overflow_is_never_late_at_a_scale(WEIR_SLIDING_LOG, WEIR_SCALE_RESERVE);
}

RUN_TESTS()
