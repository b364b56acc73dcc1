/* SPDX-License-Identifier: Apache-2.0 */
/* Quotas by calendar through a real redis-server beside the embedded table, decision for decision
 * and report for report: irregular periods and what lies past their end, units that come over,
 * numbers that change meanwhile, clocks that differ and go back. */
#include "script_rig.h"
#include "test.h"

#include "store/redis/script/key.h"
#include "store/redis/share/share.h"
#include "table/submit.h"
#include "table/table.h"

#define PERIODS 300
#define VARIANTS 5
#define KEYS 10
#define MANY 4000000000

struct quotas {
    struct script_rig rig;
    struct weir_table *table;
    struct weir_table_owner *owner;
    uint64_t bounds[2][PERIODS], days[PERIODS];
    struct weir_limit limits[2][VARIANTS], window;
    uint64_t random, now_ns, calls;
    uint64_t allowed, denied, refunds, came_over, skewed, backwards, several;
};

static void prepare(struct quotas *q, struct weir_limit *limit, const struct weir_limit_spec *spec)
{
    *limit = limit_of(*spec);
    assert_int_equal(weir_table_intern(q->table, limit), 0);
}

/* Of one calendar; N and what comes over differ. */
static void make_limits(struct quotas *q, unsigned calendar)
{
    static const struct {
        uint64_t rate, rollover;
    } variants[VARIANTS] = {{10, 0}, {20, 0}, {10, 4}, {15, 15}, {MANY, MANY / 2}};

    for (unsigned i = 0; i < PERIODS; i++)
        q->bounds[calendar][i] = (i == 0 ? START - 100 * SECOND : q->bounds[calendar][i - 1]) +
                                 (1 + draw_below(&q->random, 20 * SECOND / US)) * US;
    for (unsigned v = 0; v < VARIANTS; v++) {
        struct weir_limit_spec spec = {.algorithm = WEIR_QUOTA,
                                       .rate = variants[v].rate,
                                       .rollover = variants[v].rollover,
                                       .window_ns = 9 * SECOND,
                                       .calendar = 7 + calendar,
                                       .bounds = q->bounds[calendar],
                                       .bound_count = PERIODS};

        prepare(q, &q->limits[calendar][v], &spec);
    }
}

static int open_quotas(void **state)
{
    struct quotas *q = calloc(1, sizeof *q);
    struct weir_table_options options = {.bytes = UINT64_C(16) << 20,
                                         .params_max = WEIR_TABLE_PARAMS_MAX,
                                         .wall_ns = START,
                                         .secret = {1, 2}};
    struct weir_limit_spec window = {
        .algorithm = WEIR_SLIDING_WINDOW, .rate = 30, .window_ns = 5 * SECOND};
    struct weir_reason reason;

    q->random = UINT64_C(0x9e3779b97f4a7c15);
    rig_open(&q->rig, NULL);
    assert_int_equal(weir_table_open(&q->table, &options, &reason), 0);
    assert_int_equal(weir_table_attach(q->table, &q->owner), 0);
    make_limits(q, 0);
    make_limits(q, 1);
    prepare(q, &q->window, &window);
    q->now_ns = START;
    *state = q;
    return 0;
}

static int close_quotas(void **state)
{
    struct quotas *q = *state;

    weir_table_detach(q->owner);
    weir_table_close(q->table);
    rig_close(&q->rig);
    free(q);
    return 0;
}

/* --- Beside the table ------------------------------------------------------------------------- */

/* Sends the decision with what a node knows whose clock shows `node_ns`. */
static int call(struct quotas *q, struct one *one, uint8_t action, uint64_t node_ns,
                struct weir_reason *reason)
{
    struct redis_batch batch = batch_of(one, action, ++q->calls, q->now_ns);
    const struct redis_script *script;
    char bytes[8192];

    batch.now_ns = node_ns;
    assert_true(redis_script_size(&batch) <= sizeof bytes);
    redis_link_exchange(&q->rig.link, bytes, redis_script_write(&batch, bytes, &script, NULL));
    return redis_script_read(&batch, &one->decision, q->rig.link.nodes, q->rig.link.count,
                             &one->decision.now_ns, &one->decision.repeated, reason);
}

static void compare(struct quotas *q, const struct one *actual, const struct one *expected)
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
        *(is->verdict == WEIR_ALLOWED ? &q->allowed : &q->denied) += 1;
        q->refunds += is->charged && expected->decision.op == WEIR_OP_REFUND;
        q->came_over += actual->checks[i].limit->spec.algorithm == WEIR_QUOTA &&
                        a.limit > actual->checks[i].limit->spec.rate;
    }
    q->several += expected->decision.count > 1;
}

/* What the clock of a node may show: from two periods behind that of the server to one ahead, in
 * the calendar of all its checks. */
static uint64_t node_time(struct quotas *q, const struct one *one)
{
    const struct weir_limit_spec *spec = &one->checks[0].limit->spec;
    uint64_t i = 0;

    for (uint16_t n = 1; n < one->decision.count; n++)
        if (one->checks[n].limit->spec.bounds != spec->bounds)
            return q->now_ns;
    if (q->now_ns < spec->bounds[2] || q->now_ns >= spec->bounds[PERIODS - 2])
        return q->now_ns;
    while (spec->bounds[i + 1] <= q->now_ns)
        i++;
    q->skewed++;
    return spec->bounds[i - 2 + draw_below(&q->random, 4)];
}

static void decide_both(struct quotas *q, struct one *actual, uint64_t node_ns)
{
    struct one expected = *actual;
    struct weir_decision *batch[1] = {&expected.decision};
    struct weir_reason reason = {""};

    expected.decision.checks = expected.checks;
    expected.decision.outcomes = expected.outcomes;
    weir_table_submit(q->owner, q->now_ns, batch, 1);

    uint8_t action = draw_below(&q->random, 6) == 0 ? REDIS_RESERVE : REDIS_DECIDE;
    int verdict = call(q, actual, action, node_ns, &reason);

    if (verdict < 0)
        fail_msg("%s", reason.text);
    assert_int_equal(verdict, expected.decision.verdict);
    compare(q, actual, &expected);
}

static uint64_t random_cost(struct quotas *q)
{
    switch (draw_below(&q->random, 12)) {
    case 0:
        return 0;
    case 1:
        return draw_below(&q->random, 40);
    case 2:
        return MANY - draw_below(&q->random, 3);
    case 3:
        return draw_below(&q->random, 10) == 0 ? UINT64_MAX : 5;
    default:
        return 1 + draw_below(&q->random, 3);
    }
}

/* On keys from `first_key` on. */
static void random_decision(struct quotas *q, struct one *one, unsigned first_key)
{
    unsigned count = draw_below(&q->random, 3) != 0 ? 1 : 2 + (unsigned)draw_below(&q->random, 3),
             calendar = draw_below(&q->random, 2) != 0;
    unsigned first = (unsigned)draw_below(&q->random, KEYS);

    first_key += 1000 + 100 * calendar;
    begin_one(one);
    for (unsigned i = 0; i < count; i++) {
        unsigned key = (first + 3 * i) % KEYS;
        unsigned variant = draw_below(&q->random, 20) == 0
                               ? (unsigned)draw_below(&q->random, VARIANTS)
                               : key % VARIANTS;
        unsigned other = draw_below(&q->random, 200) == 0 ? 1 - calendar : calendar;

        add_check(one, &q->limits[other][variant], first_key + key, random_cost(q))->flags =
            draw_below(&q->random, 4) == 0 ? draw_below(&q->random, 4) : 0;
        if (draw_below(&q->random, 3) == 0)
            one->checks[i].scale = 1 + draw_below(&q->random, 99);
    }
    if (count > 1 && draw_below(&q->random, 3) == 0)
        add_check(one, &q->window, 500, 1);
    if (count == 1 && draw_below(&q->random, 10) == 0) /* two on one state */
        add_check(one, one->checks[0].limit, first_key + first, draw_below(&q->random, 3));
    one->decision.policy = draw_below(&q->random, 4) == 0 ? draw_below(&q->random, 3) : 0;
    one->decision.op = draw_below(&q->random, 3) == 0 ? draw_below(&q->random, 4) : 0;
    for (uint16_t i = 0; i < one->decision.count && one->decision.op == WEIR_OP_DEBIT; i++)
        one->checks[i].floor =
            (uint16_t)(draw_below(&q->random, 3) == 0 ? 0 : 1 + draw_below(&q->random, 150));
    one->decision.charged_at_ns = q->now_ns - draw_below(&q->random, 25 * SECOND);
}

static void step_time(struct quotas *q)
{
    switch (draw_below(&q->random, 24)) {
    case 0:
        q->now_ns += draw_below(&q->random, 10 * SECOND / US) * US;
        break;
    case 1: /* to a border, or beside it */
        for (unsigned i = 0; i < PERIODS; i++)
            if (q->bounds[0][i] > q->now_ns) {
                q->now_ns = q->bounds[0][i] + draw_below(&q->random, 3) * US - US;
                break;
            }
        break;
    case 2:
        if (draw_below(&q->random, 3) == 0) {
            q->now_ns -= draw_below(&q->random, 30 * SECOND / US) * US;
            q->backwards++;
        }
        break;
    case 3:
        q->now_ns += draw_below(&q->random, 20) == 0 ? 100 * SECOND : SECOND;
        break;
    default:
        break;
    }
}

TEST("random decisions equal those of the table")
{
    struct quotas *q = *state;

    for (unsigned round = 0; round < 12000; round++) {
        struct one one;

        step_time(q);
        if (q->now_ns > q->bounds[0][PERIODS - 1] + 200 * SECOND)
            q->now_ns = START; /* far back: what was charged in a later period counts on */
        random_decision(q, &one, round / 1000 * 1000);
        decide_both(q, &one, node_time(q, &one));
    }
    assert_true(q->allowed > 5000 && q->denied > 3000 && q->refunds > 200 && q->came_over > 500);
    assert_true(q->skewed > 1000 && q->backwards > 50 && q->several > 2000);
}

TEST("a reservation is rolled back once")
{
    struct quotas *q = *state;
    struct weir_reason reason = {""};
    struct weir_report report;
    struct one one;

    q->now_ns = START + US;
    begin_one(&one);
    add_check(&one, &q->limits[0][2], 900, 3);
    assert_int_equal(call(q, &one, REDIS_RESERVE, q->now_ns, &reason), WEIR_ALLOWED);
    for (int again = 0; again < 2; again++) {
        q->calls--;
        assert_int_equal(call(q, &one, REDIS_ROLL_BACK, q->now_ns, &reason), WEIR_ALLOWED);
    }
    one.checks[0].cost = 1;
    assert_int_equal(call(q, &one, REDIS_PEEK, q->now_ns, &reason), WEIR_ALLOWED);
    weir_decision_report(&one.decision, 0, &report);
    assert_int_equal(report.remaining, 14);
    assert_int_equal(report.reset_after_ns, 0);
}

/* --- What is not known ------------------------------------------------------------------------ */

TEST("a time outside of what was sent is an error")
{
    struct quotas *q = *state;
    struct weir_reason reason = {""};
    struct one one;

    q->now_ns = q->bounds[0][100];
    begin_one(&one);
    add_check(&one, &q->limits[0][0], 901, 1);
    assert_int_equal(call(q, &one, REDIS_DECIDE, q->bounds[0][101], &reason), WEIR_ALLOWED);
    assert_int_equal(call(q, &one, REDIS_DECIDE, q->bounds[0][102], &reason), WEIR_ERR_STORE);
    assert_non_null(strstr(reason.text, "WEIR clocks differ"));
    assert_int_equal(call(q, &one, REDIS_DECIDE, q->bounds[0][98], &reason), WEIR_ALLOWED);
    assert_int_equal(call(q, &one, REDIS_DECIDE, q->bounds[0][97], &reason), WEIR_ERR_STORE);

    struct weir_report report;

    assert_int_equal(call(q, &one, REDIS_PEEK, q->now_ns, &reason), WEIR_ALLOWED);
    weir_decision_report(&one.decision, 0, &report);
    assert_int_equal(report.remaining, 8);
}

TEST("periods between two microseconds are refused")
{
    const uint64_t bounds[] = {START, START + DAY, START + 2 * DAY + 1};
    struct weir_limit_spec spec = {
        .algorithm = WEIR_QUOTA, .rate = 5, .window_ns = DAY, .bounds = bounds, .bound_count = 2};
    struct weir_limit limit;
    struct weir_reason reason = {""};
    assert_int_equal(weir_limit_init(&limit, &spec, &reason), 0);
    assert_int_equal(redis_script_accepts(&limit, &reason), 0);
    spec.bound_count = 3;
    assert_int_equal(weir_limit_init(&limit, &spec, &reason), 0);
    assert_int_equal(redis_script_accepts(&limit, &reason), WEIR_ERR_RANGE);
    assert_non_null(strstr(reason.text, "at a whole microsecond"));
    spec.bound_count = 2;
    spec.window_ns = DAY + 1;
    assert_int_equal(weir_limit_init(&limit, &spec, &reason), 0);
    assert_int_equal(redis_script_accepts(&limit, &reason), WEIR_ERR_RANGE);
}

TEST("a quota is never decided from shares")
{
    struct quotas *q = *state;
    struct share_terms terms;

    for (unsigned v = 0; v < VARIANTS; v++)
        assert_false(share_terms_init(&terms, &q->limits[0][v], 0));
}

/* --- By the server's own time ----------------------------------------------------------------- */

static uint64_t server_ns(struct quotas *q)
{
    redis_link_say(&q->rig.link, "TIME");

    const struct weir_resp_node *nodes = q->rig.link.nodes;

    return strtoull(nodes[1].text.data, NULL, 10) * SECOND;
}

TEST("a key expires when its quota is fresh")
{
    struct quotas *q = *state;
    uint64_t now_ns = server_ns(q);

    for (unsigned i = 0; i < PERIODS; i++)
        q->days[i] = (now_ns / DAY - 100 + i) * DAY;
    for (unsigned rollover = 0; rollover < 2; rollover++) {
        struct weir_limit_spec spec = {.algorithm = WEIR_QUOTA,
                                       .rate = 5,
                                       .rollover = rollover,
                                       .window_ns = DAY,
                                       .calendar = 1,
                                       .bounds = q->days,
                                       .bound_count = PERIODS};
        struct weir_limit limit;
        struct weir_reason reason = {""};
        struct one one;
        char key[32];
        const char *const words[] = {"PEXPIRETIME", key};

        prepare(q, &limit, &spec);
        begin_one(&one);
        add_check(&one, &limit, 910 + rollover, 2);
        q->now_ns = 0;
        assert_int_equal(call(q, &one, REDIS_DECIDE, now_ns, &reason), WEIR_ALLOWED);

        struct weir_report report;

        weir_decision_report(&one.decision, 0, &report);
        assert_int_equal(report.remaining, 3 + rollover);
        snprintf(key, sizeof key, "%s", "weir:");
        redis_key_write(key, "weir:", &one.checks[0]);
        key[redis_key_size("weir:", &one.checks[0])] = '\0';
        assert_int_equal(redis_link_ask(&q->rig.link, words, NULL, 2)->integer,
                         (one.decision.now_ns / DAY + 1 + rollover) * DAY / MS);
        one.decision.op = WEIR_OP_LOOK;
        assert_int_equal(call(q, &one, REDIS_DECIDE, now_ns, &reason), WEIR_ALLOWED);
        weir_decision_report(&one.decision, 0, &report);
        assert_int_equal(one.decision.now_ns + report.reset_after_ns,
                         (one.decision.now_ns / DAY + 1 + rollover) * DAY);

        /* Given back whole, nothing is left to expire. */
        one.decision.op = WEIR_OP_REFUND;
        one.decision.charged_at_ns = one.decision.now_ns;
        assert_int_equal(call(q, &one, REDIS_DECIDE, now_ns, &reason), WEIR_ALLOWED);
        assert_int_equal(redis_link_ask(&q->rig.link, words, NULL, 2)->integer, -2);
    }
}

RUN_TESTS_WITH(open_quotas, close_quotas)
