/* SPDX-License-Identifier: Apache-2.0 */
/* Units that were given, through a real redis-server beside the embedded table, decision for
 * decision and report for report: alone and beside other limits, grants and refunds, costs up to
 * their bounds, ends, times that go back, reservations that are rolled back. */
#include "script_rig.h"
#include "test.h"

#include "core/prepaid.h"
#include "store/redis/script/key.h"
#include "store/redis/share/share.h"
#include "table/submit.h"
#include "table/table.h"

#define KEYS 6

struct gifts {
    struct script_rig rig;
    struct weir_table *table;
    struct weir_table_owner *owner;
    struct weir_limit prepaid[2], bucket, window;
    uint64_t random, now_ns, calls;
    uint64_t allowed, denied, given, returned, several;
};

static void prepare(struct gifts *g, struct weir_limit *limit, const struct weir_limit_spec *spec)
{
    *limit = limit_of(*spec);
    assert_int_equal(weir_table_intern(g->table, limit), 0);
}

static int open_gifts(void **state)
{
    struct gifts *g = calloc(1, sizeof *g);
    struct weir_table_options options = {.bytes = UINT64_C(16) << 20,
                                         .params_max = WEIR_TABLE_PARAMS_MAX,
                                         .wall_ns = START,
                                         .secret = {1, 2}};
    struct weir_limit_spec specs[2] = {{.algorithm = WEIR_PREPAID, .window_ns = DAY},
                                       {.algorithm = WEIR_PREPAID, .window_ns = 366 * DAY}};
    struct weir_limit_spec bucket = {.algorithm = WEIR_GCRA, .rate = 20, .window_ns = SECOND};
    struct weir_limit_spec window = {
        .algorithm = WEIR_SLIDING_WINDOW, .rate = 30, .window_ns = 5 * SECOND};
    struct weir_reason reason;

    rig_open(&g->rig, NULL);
    assert_int_equal(weir_table_open(&g->table, &options, &reason), 0);
    assert_int_equal(weir_table_attach(g->table, &g->owner), 0);
    for (int i = 0; i < 2; i++)
        prepare(g, &g->prepaid[i], &specs[i]);
    prepare(g, &g->bucket, &bucket);
    prepare(g, &g->window, &window);
    g->now_ns = START;
    *state = g;
    return 0;
}

static int close_gifts(void **state)
{
    struct gifts *g = *state;

    weir_table_detach(g->owner);
    weir_table_close(g->table);
    rig_close(&g->rig);
    free(g);
    return 0;
}

static int call(struct gifts *g, struct one *one, uint8_t action, struct weir_reason *reason)
{
    return rig_call(&g->rig, one, action, ++g->calls, g->now_ns, reason);
}

static void compare(struct gifts *g, const struct one *actual, const struct one *expected)
{
    for (uint16_t i = 0; i < expected->decision.count; i++) {
        const struct weir_outcome *is = &actual->outcomes[i], *should = &expected->outcomes[i];
        struct weir_report a, b;

        assert_int_equal(is->verdict, should->verdict);
        assert_int_equal(is->charged, should->charged);
        assert_int_equal(actual->checks[i].cost, expected->checks[i].cost);
        weir_decision_report(&actual->decision, i, &a);
        weir_decision_report(&expected->decision, i, &b);
        assert_int_equal(a.limit, b.limit);
        assert_int_equal(a.remaining, b.remaining);
        assert_int_equal(a.retry_after_ns, b.retry_after_ns);
        assert_int_equal(a.reset_after_ns, b.reset_after_ns);
        *(is->verdict == WEIR_ALLOWED ? &g->allowed : &g->denied) += 1;
    }
    g->several += expected->decision.count > 1;
}

static void decide_both(struct gifts *g, struct one *actual)
{
    struct one expected = *actual;
    struct weir_decision *batch[1] = {&expected.decision};
    struct weir_reason reason = {""};

    expected.decision.checks = expected.checks;
    expected.decision.outcomes = expected.outcomes;
    weir_table_submit(g->owner, g->now_ns, batch, 1);

    uint8_t action = draw_below(&g->random, 6) == 0 ? REDIS_RESERVE : REDIS_DECIDE;
    int verdict = call(g, actual, action, &reason);

    if (verdict < 0)
        fail_msg("%s", reason.text);
    assert_int_equal(verdict, expected.decision.verdict);
    compare(g, actual, &expected);
}

static uint64_t random_cost(struct gifts *g)
{
    switch (draw_below(&g->random, 12)) {
    case 0:
        return 0;
    case 1:
        return draw_below(&g->random, 40);
    case 2:
        return draw_below(&g->random, 10) == 0 ? PREPAID_MAX - draw_below(&g->random, 3) : 5;
    case 3:
        return draw_below(&g->random, 10) == 0 ? UINT64_MAX : 2;
    default:
        return 1 + draw_below(&g->random, 3);
    }
}

/* Units for some keys, or what was taken given back. */
static void random_gift(struct gifts *g, struct one *one)
{
    bool gives = draw_below(&g->random, 2) == 0;
    uint64_t span_ns = draw_below(&g->random, 30) == 0 ? 80 * DAY : 20 * SECOND;

    one->decision.op = WEIR_OP_REFUND;
    one->decision.charged_at_ns = gives ? g->now_ns + draw_below(&g->random, span_ns)
                                        : g->now_ns - draw_below(&g->random, 20 * SECOND);
    for (uint16_t i = 0; i < one->decision.count; i++)
        if (one->checks[i].limit->spec.algorithm != WEIR_PREPAID && gives)
            one->checks[i].cost = 0;
    *(gives ? &g->given : &g->returned) += 1;
}

static void random_decision(struct gifts *g, struct one *one)
{
    unsigned count = 1 + (unsigned)draw_below(&g->random, 3);
    unsigned first = (unsigned)draw_below(&g->random, KEYS);

    begin_one(one);
    for (unsigned i = 0; i < count; i++) {
        unsigned key = (first + i) % KEYS;
        unsigned variant = draw_below(&g->random, 30) == 0 ? 1 : key % 2;

        if (i > 0 && draw_below(&g->random, 2) == 0)
            add_check(one, draw_below(&g->random, 2) == 0 ? &g->bucket : &g->window, 500 + key, 1);
        else
            add_check(one, &g->prepaid[variant], key, random_cost(g));
        one->checks[i].flags = draw_below(&g->random, 6) == 0 ? WEIR_CHECK_SHADOW : 0;
    }
    if (draw_below(&g->random, 4) == 0) {
        random_gift(g, one);
        return;
    }
    one->decision.policy = draw_below(&g->random, 4) == 0 ? draw_below(&g->random, 3) : 0;
    one->decision.op = draw_below(&g->random, 3) == 0 ? draw_below(&g->random, 3) : 0;
    for (uint16_t i = 0; i < one->decision.count && one->decision.op == WEIR_OP_DEBIT; i++)
        one->checks[i].floor = 1;
}

static void step_time(struct gifts *g)
{
    switch (draw_below(&g->random, 12)) {
    case 0:
        g->now_ns += draw_below(&g->random, 10 * SECOND / US) * US;
        break;
    case 1:
        if (draw_below(&g->random, 3) == 0)
            g->now_ns -= draw_below(&g->random, 5 * SECOND / US) * US;
        break;
    case 2:
        g->now_ns += draw_below(&g->random, 3) * US;
        break;
    default:
        break;
    }
}

/* One decision after the other, from each of several seeds. */
TEST("random decisions equal those of the table")
{
    struct gifts *g = *state;

    for (uint64_t seed = 1; seed <= 3; seed++) {
        g->random = seed * UINT64_C(0x9e3779b97f4a7c15);
        for (unsigned round = 0; round < 4000; round++) {
            struct one one;

            step_time(g);
            random_decision(g, &one);
            decide_both(g, &one);
        }
    }
    assert_true(g->allowed > 3000 && g->denied > 1500 && g->several > 3000);
    assert_true(g->given > 1000 && g->returned > 1000);
}

/* What is left of a key, and what the script says of a call on it. */
static uint64_t use(struct gifts *g, unsigned key, uint64_t cost, uint8_t op, uint64_t at_ns)
{
    struct weir_reason reason = {""};
    struct weir_report report;
    struct one one;

    begin_one(&one);
    add_check(&one, &g->prepaid[0], key, cost);
    one.decision.op = op;
    one.decision.charged_at_ns = at_ns;
    assert_true(call(g, &one, REDIS_DECIDE, &reason) >= 0);
    weir_decision_report(&one.decision, 0, &report);
    return report.remaining;
}

TEST("a reservation is rolled back once")
{
    struct gifts *g = *state;
    struct weir_reason reason = {""};
    struct one one;

    assert_int_equal(use(g, 900, 9, WEIR_OP_REFUND, g->now_ns + DAY), 9);
    begin_one(&one);
    add_check(&one, &g->prepaid[0], 900, 4);
    assert_int_equal(call(g, &one, REDIS_RESERVE, &reason), WEIR_ALLOWED);
    assert_int_equal(use(g, 900, 0, WEIR_OP_PEEK, 0), 5);
    g->calls--;
    for (int again = 0; again < 2; again++) {
        g->calls--;
        assert_int_equal(call(g, &one, REDIS_ROLL_BACK, &reason), WEIR_ALLOWED);
    }
    assert_int_equal(use(g, 900, 0, WEIR_OP_PEEK, 0), 9);
}

TEST("it is never decided from shares")
{
    struct gifts *g = *state;
    struct share_terms terms;

    assert_false(share_terms_init(&terms, &g->prepaid[0], 0));
}

/* By the server's own time: a key lives until its units end, and a reset removes it. */
TEST("a key lives as long as its units")
{
    struct gifts *g = *state;
    struct one one;
    char key[64] = "";
    const char *const words[] = {"PEXPIRETIME", key};

    redis_link_say(&g->rig.link, "TIME");

    uint64_t ends_ns =
        (strtoull(g->rig.link.nodes[1].text.data, NULL, 10) + 3600) * SECOND + 1234 * US;

    g->now_ns = 0;
    assert_int_equal(use(g, 910, 3, WEIR_OP_REFUND, ends_ns), 3);
    begin_one(&one);
    add_check(&one, &g->prepaid[0], 910, 1);
    redis_key_write(key, "weir:", &one.checks[0]);
    assert_int_equal(redis_link_ask(&g->rig.link, words, NULL, 2)->integer, ends_ns / MS + 1);
    assert_int_equal(use(g, 910, 3, WEIR_OP_DECIDE, 0), 0);
    assert_int_equal(redis_link_ask(&g->rig.link, words, NULL, 2)->integer, ends_ns / MS + 1);
    use(g, 910, 0, WEIR_OP_RESET, 0);
    assert_int_equal(redis_link_ask(&g->rig.link, words, NULL, 2)->integer, -2);
}

RUN_TESTS_WITH(open_gifts, close_gifts)
