/* SPDX-License-Identifier: Apache-2.0 */
/* The scripts through a real redis-server beside the embedded table, decision for decision and
 * report for report: all algorithms, operations, policies and flags, costs up to their bounds,
 * scales, limits that change meanwhile, several checks at once and several on one key, times that
 * go back.
 */
#include "script_rig.h"
#include "test.h"

#include "core/bucket.h"
#include "core/debit.h"
#include "store/redis/script/key.h"
#include "table/submit.h"
#include "table/table.h"

#define FAMILIES 9
#define VARIANTS 5
#define KEYS_EACH 6
#define LIMITS (FAMILIES * VARIANTS)
#define SEEDS 8
#define ROUNDS 6000

/* A key is decided by the limits of its family, now this one, now that. */
static const struct weir_limit_spec specs[FAMILIES][VARIANTS] = {
    {
        {.algorithm = WEIR_GCRA, .rate = 5, .window_ns = SECOND},
        {.algorithm = WEIR_GCRA, .rate = 7, .window_ns = SECOND, .burst = 3},
        {.algorithm = WEIR_GCRA, .rate = 1000, .window_ns = MINUTE, .burst = 4},
        {.algorithm = WEIR_GCRA, .rate = 0, .window_ns = SECOND},
        {.algorithm = WEIR_LEAKY_QUEUE, .rate = 7, .window_ns = SECOND, .burst = 3},
    },
    {
        {.algorithm = WEIR_TOKEN_BUCKET, .rate = (UINT64_C(1) << 39) - 7, .window_ns = SECOND + US},
        {.algorithm = WEIR_TOKEN_BUCKET, .rate = (UINT64_C(1) << 40) - 1, .window_ns = 366 * DAY},
        {.algorithm = WEIR_TOKEN_BUCKET, .rate = 1, .window_ns = 366 * DAY, .burst = 145},
        {.algorithm = WEIR_TOKEN_BUCKET, .rate = 3, .window_ns = MS, .burst = UINT64_C(1) << 40},
        {.algorithm = WEIR_TOKEN_BUCKET, .rate = 9, .window_ns = MS},
    },
    {
        {.algorithm = WEIR_LEAKY_QUEUE, .rate = 10, .window_ns = SECOND, .burst = 5},
        {.algorithm = WEIR_LEAKY_QUEUE, .rate = 7, .window_ns = MINUTE, .burst = 9},
        {.algorithm = WEIR_LEAKY_QUEUE, .rate = 100, .window_ns = MS, .burst = 1000},
        {.algorithm = WEIR_LEAKY_BUCKET, .rate = 10, .window_ns = SECOND, .burst = 5},
        {.algorithm = WEIR_LEAKY_BUCKET, .rate = 3, .window_ns = SECOND},
    },
    {
        {.algorithm = WEIR_FIXED_WINDOW, .rate = 4, .window_ns = SECOND},
        {.algorithm = WEIR_FIXED_WINDOW, .rate = 40, .window_ns = SECOND},
        {.algorithm = WEIR_FIXED_WINDOW, .rate = 0, .window_ns = SECOND},
        {.algorithm = WEIR_FIXED_WINDOW, .rate = 4, .window_ns = 366 * DAY},
        {.algorithm = WEIR_FIXED_WINDOW, .rate = WEIR_RATE_MAX, .window_ns = MS},
    },
    {
        {.algorithm = WEIR_SLIDING_WINDOW, .rate = 6, .window_ns = SECOND},
        {.algorithm = WEIR_SLIDING_WINDOW, .rate = 60, .window_ns = SECOND},
        {.algorithm = WEIR_SLIDING_WINDOW, .rate = 6, .window_ns = SECOND, .strict = true},
        {.algorithm = WEIR_SLIDING_WINDOW, .rate = 0, .window_ns = SECOND},
        {.algorithm = WEIR_SLIDING_WINDOW, .rate = 9, .window_ns = SECOND, .segments = 4},
    },
    {
        {.algorithm = WEIR_SLIDING_WINDOW, .rate = WEIR_RATE_MAX, .window_ns = MS},
        {.algorithm = WEIR_SLIDING_WINDOW, .rate = 1000, .window_ns = MS},
        {.algorithm = WEIR_SLIDING_WINDOW, .rate = WEIR_RATE_MAX, .window_ns = 366 * DAY},
        {.algorithm = WEIR_SLIDING_WINDOW, .rate = 2, .window_ns = 366 * DAY},
        {.algorithm = WEIR_FIXED_WINDOW, .rate = 2, .window_ns = 366 * DAY},
    },
    {
        {.algorithm = WEIR_SLIDING_WINDOW, .rate = 9, .window_ns = SECOND, .segments = 4},
        {.algorithm = WEIR_SLIDING_WINDOW, .rate = 90, .window_ns = SECOND, .segments = 4},
        {.algorithm = WEIR_SLIDING_WINDOW,
         .rate = 9,
         .window_ns = SECOND,
         .segments = 4,
         .strict = true},
        {.algorithm = WEIR_SLIDING_WINDOW, .rate = 30, .window_ns = 120 * MS, .segments = 120},
        {.algorithm = WEIR_SLIDING_WINDOW,
         .rate = WEIR_RATE_MAX,
         .window_ns = 366 * DAY,
         .segments = 120},
    },
    {
        {.algorithm = WEIR_SLIDING_LOG, .rate = 8, .window_ns = SECOND},
        {.algorithm = WEIR_SLIDING_LOG, .rate = 400, .window_ns = SECOND},
        {.algorithm = WEIR_SLIDING_LOG, .rate = 3, .window_ns = SECOND},
        {.algorithm = WEIR_SLIDING_LOG, .rate = 3, .window_ns = MINUTE},
        {.algorithm = WEIR_SLIDING_LOG, .rate = 0, .window_ns = SECOND},
    },
    {
        {.algorithm = WEIR_CONCURRENCY, .rate = 4, .window_ns = SECOND},
        {.algorithm = WEIR_CONCURRENCY, .rate = 120, .window_ns = SECOND},
        {.algorithm = WEIR_CONCURRENCY, .rate = 3, .window_ns = 20 * MS},
        {.algorithm = WEIR_CONCURRENCY, .rate = 1, .window_ns = MINUTE},
        {.algorithm = WEIR_CONCURRENCY, .rate = 0, .window_ns = SECOND},
    },
};

struct traces {
    struct script_rig rig;
    struct weir_table *table;
    struct weir_table_owner *owner;
    struct weir_limit limits[FAMILIES][VARIANTS], once;
    uint64_t random, now_ns, lease;
    uint32_t first_key; /* of this seed's trace */
    uint64_t decisions, allowed, denied, refunds, delays, repeated, several, backwards, operations;
    uint64_t floored;
};

static void prepare(struct traces *t, struct weir_limit *limit, const struct weir_limit_spec *spec)
{
    *limit = limit_of(*spec);
    assert_int_equal(weir_table_intern(t->table, limit), 0);
}

static int open_traces(void **state)
{
    struct traces *t = calloc(1, sizeof *t);
    struct weir_table_options options = {.bytes = UINT64_C(64) << 20,
                                         .params_max = WEIR_TABLE_PARAMS_MAX,
                                         .wall_ns = START,
                                         .secret = {1, 2}};
    struct weir_limit_spec once = {.algorithm = WEIR_GCRA, .rate = 1, .window_ns = 2 * SECOND};
    struct weir_reason reason;

    rig_open(&t->rig, NULL);
    assert_int_equal(weir_table_open(&t->table, &options, &reason), 0);
    assert_int_equal(weir_table_attach(t->table, &t->owner), 0);
    for (uint32_t f = 0; f < FAMILIES; f++)
        for (uint32_t v = 0; v < VARIANTS; v++)
            prepare(t, &t->limits[f][v], &specs[f][v]);
    prepare(t, &t->once, &once);
    t->now_ns = START;
    *state = t;
    return 0;
}

static int close_traces(void **state)
{
    struct traces *t = *state;

    weir_table_detach(t->owner);
    weir_table_close(t->table);
    rig_close(&t->rig);
    free(t);
    return 0;
}

static uint64_t random_cost(struct traces *t, const struct weir_limit *limit)
{
    switch (draw_below(&t->random, 16)) {
    case 0:
        return 0;
    case 1:
        return limit->capacity + draw_below(&t->random, 3) - 1;
    case 2:
        return draw_below(&t->random, limit->capacity + 2);
    case 3:
        return draw_below(&t->random, 12);
    case 4:
        return draw_below(&t->random, 20) == 0 ? UINT64_MAX - draw_below(&t->random, 2)
                                               : UINT64_C(1) << draw_below(&t->random, 41);
    case 5:
        return limit->capacity / 2;
    default:
        return 1;
    }
}

static void random_scale(struct traces *t, struct weir_check *check)
{
    if (draw_below(&t->random, 3) != 0)
        return;
    check->scale = 1 + draw_below(&t->random, 99);
    check->scale_kind = draw_below(&t->random, 2);
    check->scale_alone = check->scale_kind & draw_below(&t->random, 2);
}

static void random_check(struct traces *t, struct one *one, uint32_t key)
{
    uint32_t family = key / KEYS_EACH;
    uint32_t variant = draw_below(&t->random, 12) == 0 ? (uint32_t)draw_below(&t->random, VARIANTS)
                                                       : key % KEYS_EACH % VARIANTS;
    const struct weir_limit *limit = &t->limits[family][variant];
    struct weir_check *check = add_check(one, limit, t->first_key + key, random_cost(t, limit));

    if (draw_below(&t->random, 4) == 0)
        check->flags = draw_below(&t->random, 4);
    random_scale(t, check);
}

/* Whether capacity and debt are less than 2^53 us of a bucket's time (285 years): beyond that
 * scripts take them for that. */
static bool is_countable(const struct weir_check *check)
{
    const struct weir_limit *limit = check->limit;
    uint64_t units = limit->capacity + weir_check_debt(check);

    return bucket_cost(limit, units).ns < (UINT64_C(1) << 53) * US;
}

/* A debit stops at a floor of debt: none, 0 % to 1000 % of the capacity. */
static void random_floors(struct traces *t, struct one *one)
{
    for (uint16_t i = 0; i < one->decision.count; i++) {
        struct weir_check *check = &one->checks[i];

        if (check->limit->spec.algorithm != WEIR_CONCURRENCY &&
            !(check->flags & WEIR_CHECK_IDEMPOTENCY) && draw_below(&t->random, 4) != 0)
            check->floor =
                (uint16_t)(1 + (draw_below(&t->random, 2) ? draw_below(&t->random, 1001)
                                                          : 100 * draw_below(&t->random, 3)));
        if (check->floor != 0 && !is_countable(check))
            check->floor = 0;
    }
}

/* Some checks from `first` on are the rates of one shadow limit. */
static void random_rates(struct traces *t, struct one *one, uint32_t first)
{
    for (uint32_t i = first; i < one->decision.count && i <= first + 1 + draw_below(&t->random, 2);
         i++) {
        if (one->checks[i].flags & WEIR_CHECK_IDEMPOTENCY)
            return;
        one->checks[i].flags |= WEIR_CHECK_SHADOW;
        one->checks[i].rule = 100;
    }
}

static void random_decision(struct traces *t, struct one *one)
{
    uint32_t count = draw_below(&t->random, 3) != 0 ? 1 : 1 + (uint32_t)draw_below(&t->random, 6);
    uint32_t key = (uint32_t)draw_below(&t->random, FAMILIES * KEYS_EACH),
             step = 1 + (uint32_t)draw_below(&t->random, 7);

    begin_one(one);
    for (uint32_t i = 0; i < count; i++, key = (key + step) % (FAMILIES * KEYS_EACH))
        random_check(t, one, key);
    if (count > 1 && draw_below(&t->random, 8) == 0) { /* two checks on one state */
        const struct weir_check *first = &one->checks[0];
        unsigned same;

        assert_int_equal(sscanf(one->keys[0], "key=%u", &same), 1);
        struct weir_check *second = add_check(one, first->limit, same, draw_below(&t->random, 3));

        second->flags = draw_below(&t->random, 4);
        random_scale(t, second);
    }
    one->decision.policy = draw_below(&t->random, 4) == 0 ? draw_below(&t->random, 3) : 0;
    one->decision.op = draw_below(&t->random, 4) == 0 ? draw_below(&t->random, 4) : 0;
    if (draw_below(&t->random, 10) == 0 && one->decision.policy == WEIR_POLICY_ALL) {
        struct weir_check *check =
            add_check(one, &t->once, t->first_key + 1000 + (unsigned)draw_below(&t->random, 5), 1);

        check->flags = WEIR_CHECK_IDEMPOTENCY;
    }
    if (one->decision.op == WEIR_OP_DEBIT)
        random_floors(t, one);
    if (count > 1 && draw_below(&t->random, 4) == 0)
        random_rates(t, one, (uint32_t)draw_below(&t->random, count - 1));
    one->decision.lease = (struct weir_lease){++t->lease, draw_below(&t->random, 3)};
    if (draw_below(&t->random, 3) == 0 && t->lease > 8)
        one->decision.lease.id -= draw_below(&t->random, 8);
    one->decision.charged_at_ns =
        t->now_ns - draw_below(&t->random, 2 * SECOND) / US * (draw_below(&t->random, 2) ? US : 1);
    if (draw_below(&t->random, 3) == 0)
        one->decision.charged_at_ns = t->now_ns;
}

/* Ends a lease, forgets a state, or looks at one. */
static void random_operation(struct traces *t, struct one *one)
{
    uint32_t key = (uint32_t)draw_below(&t->random, FAMILIES * KEYS_EACH);

    begin_one(one);
    one->decision.op = WEIR_OP_RELEASE + draw_below(&t->random, 3);
    if (one->decision.op == WEIR_OP_RELEASE)
        key = (FAMILIES - 1) * KEYS_EACH + key % KEYS_EACH;
    add_check(one, &t->limits[key / KEYS_EACH][0], t->first_key + key, 0);
    one->decision.lease.id = t->lease - draw_below(&t->random, t->lease < 200 ? t->lease : 200);
}

static void step_time(struct traces *t)
{
    switch (draw_below(&t->random, 16)) {
    case 0:
        t->now_ns += draw_below(&t->random, 2 * SECOND / US) * US;
        break;
    case 1:
        t->now_ns += draw_below(&t->random, 300) == 0 ? draw_below(&t->random, 400) * DAY
                                                      : draw_below(&t->random, 3) * MINUTE;
        break;
    case 2:
    case 3:
        t->now_ns += draw_below(&t->random, 20000) * US;
        break;
    case 4:
        t->now_ns += draw_below(&t->random, 1500) * US;
        break;
    case 5:
        if (draw_below(&t->random, 4) == 0) {
            t->now_ns -= draw_below(&t->random, 3 * SECOND / US) * US;
            t->backwards++;
        }
        break;
    case 6:
        t->now_ns += US;
        break;
    default:
        break;
    }
}

static void compare_reports(const struct one *actual, const struct one *expected, uint16_t i)
{
    struct weir_report is, should;

    weir_decision_report(&actual->decision, i, &is);
    weir_decision_report(&expected->decision, i, &should);
    assert_int_equal(is.reset_after_ns, should.reset_after_ns);
    if (actual->decision.op == WEIR_OP_LOOK) { /* a remote store does not say what it found */
        assert_int_equal(is.limit, WEIR_LOOK_OTHER);
        return;
    }
    assert_int_equal(is.limit, should.limit);
    assert_int_equal(is.remaining, should.remaining);
    assert_int_equal(is.retry_after_ns, should.retry_after_ns);
    if (actual->checks[i].limit != NULL && actual->checks[i].limit->span_words > 0 &&
        actual->decision.op < WEIR_OP_RELEASE) {
        assert_true(actual->outcomes[i].reported);
        if (should.remaining == 0)
            assert_int_equal(actual->outcomes[i].next_ns, expected->outcomes[i].next_ns);
    }
}

static void compare(struct traces *t, const struct one *actual, const struct one *expected,
                    const uint64_t *costs)
{
    assert_int_equal(actual->decision.repeated, expected->decision.repeated);
    for (uint16_t i = 0; i < expected->decision.count; i++) {
        const struct weir_outcome *is = &actual->outcomes[i], *should = &expected->outcomes[i];

        assert_int_equal(is->verdict, should->verdict);
        assert_int_equal(is->charged, should->charged);
        assert_int_equal(is->delay_ns, should->delay_ns);
        assert_int_equal(actual->checks[i].cost, expected->checks[i].cost);
        t->floored += expected->checks[i].cost != costs[i];
        compare_reports(actual, expected, i);
        *(is->verdict == WEIR_ALLOWED ? &t->allowed : &t->denied) += 1;
        t->operations += expected->decision.op >= WEIR_OP_RELEASE && is->verdict == WEIR_ALLOWED;
        t->delays += is->delay_ns > 0;
        t->refunds += is->charged && expected->decision.op == WEIR_OP_REFUND;
    }
    t->repeated += actual->decision.repeated;
    t->several += expected->decision.count > 1;
    t->decisions++;
}

/* What is needed to look into a failure. */
static void print_decision(const struct traces *t, const struct one *one)
{
    print_error("decision %llu at %llu: op %u policy %u charged_at %llu lease %llu\n",
                (unsigned long long)t->decisions, (unsigned long long)t->now_ns, one->decision.op,
                one->decision.policy, (unsigned long long)one->decision.charged_at_ns,
                (unsigned long long)one->decision.lease.id);
    for (uint16_t i = 0; i < one->decision.count; i++) {
        const struct weir_check *check = &one->checks[i];

        print_error("  %s algorithm %u rate %llu window %llu cost %llu flags %u rule %u floor %u "
                    "scale %u kind %u alone %u\n",
                    one->keys[i], check->limit->spec.algorithm,
                    (unsigned long long)check->limit->spec.rate,
                    (unsigned long long)check->limit->spec.window_ns,
                    (unsigned long long)check->cost, check->flags, check->rule, check->floor,
                    check->scale, check->scale_kind, check->scale_alone);
    }
}

/* Whether the outcomes are the same, so that a failure can be shown before it ends the test. */
static bool same_outcomes(const struct one *actual, const struct one *expected)
{
    bool same = actual->decision.repeated == expected->decision.repeated;

    for (uint16_t i = 0; i < expected->decision.count; i++) {
        const struct weir_outcome *is = &actual->outcomes[i], *should = &expected->outcomes[i];
        struct weir_report a, b;

        weir_decision_report(&actual->decision, i, &a);
        weir_decision_report(&expected->decision, i, &b);
        if (actual->decision.op == WEIR_OP_LOOK) /* see compare_reports */
            b = (struct weir_report){a.limit, a.remaining, a.retry_after_ns, b.reset_after_ns};
        same = same && is->verdict == should->verdict && is->charged == should->charged &&
               is->delay_ns == should->delay_ns && memcmp(&a, &b, sizeof a) == 0 &&
               actual->checks[i].cost == expected->checks[i].cost;
    }
    return same;
}

/* Decides the same on both sides. */
static void decide_both(struct traces *t, struct one *actual)
{
    struct one expected = *actual;
    struct weir_decision *batch[1] = {&expected.decision};
    uint64_t costs[WEIR_CHECKS_MAX];

    for (uint16_t i = 0; i < actual->decision.count; i++)
        costs[i] = actual->checks[i].cost;

    expected.decision.checks = expected.checks;
    expected.decision.outcomes = expected.outcomes;
    weir_table_submit(t->owner, t->now_ns, batch, 1);

    struct weir_reason reason = {""};
    uint8_t action = t->decisions % 6 == 0 && actual->decision.op < WEIR_OP_RELEASE ? REDIS_RESERVE
                                                                                    : REDIS_DECIDE;
    int verdict = rig_call(&t->rig, actual, action, t->decisions, t->now_ns, &reason);

    if (verdict != expected.decision.verdict || !same_outcomes(actual, &expected)) {
        print_decision(t, actual);
        print_error("%s\n", reason.text);
    }
    assert_int_equal(verdict, expected.decision.verdict);
    compare(t, actual, &expected, costs);
}

/* The trace of one seed, on keys of its own. */
static void run_trace(struct traces *t, uint64_t seed, uint32_t rounds)
{
    t->random = (seed + 1) * UINT64_C(0x9e3779b97f4a7c15);
    t->first_key = (uint32_t)(seed % 4000 + 1) * 1000000;
    t->now_ns = START;
    for (uint32_t round = 0; round < rounds; round++) {
        struct one one;

        step_time(t);
        if (draw_below(&t->random, 25) == 0 && t->lease > 0)
            random_operation(t, &one);
        else
            random_decision(t, &one);
        decide_both(t, &one);
    }
}

/* `SEED=5 ROUNDS=100000` runs that trace alone, of another length. */
TEST("random decisions equal those of the table")
{
    struct traces *t = *state;
    const char *seed = getenv("SEED"), *rounds = getenv("ROUNDS");

    if (seed) {
        run_trace(t, strtoull(seed, NULL, 10), rounds ? (uint32_t)atoi(rounds) : ROUNDS);
        return;
    }
    for (uint64_t i = 0; i < SEEDS; i++)
        run_trace(t, i, ROUNDS);
    assert_true(t->allowed > 10000 && t->denied > 5000 && t->several > 5000);
    assert_true(t->operations > 200 && t->refunds > 200 && t->delays > 200 && t->repeated > 50 &&
                t->backwards > 200 && t->floored > 300);
}

/* One check with a cost; returns its report. */
static struct weir_report use(struct traces *t, const struct weir_limit *limit, unsigned key,
                              uint64_t cost, enum weir_op op)
{
    struct weir_report report;
    struct one one;

    begin_one(&one);
    add_check(&one, limit, key, cost);
    one.decision.op = (uint8_t)op;
    one.decision.lease.id = ++t->lease;
    decide_both(t, &one);
    weir_decision_report(&one.decision, 0, &report);
    return report;
}

/* Cluster: a limit in shadow denies and is charged for it, `on_deny: charge`; then a limit in
 * another slot denies, and what was reserved is rolled back. Nothing more comes back than was
 * charged. */
TEST("a denied charge in shadow is rolled back as it was")
{
    struct traces *t = *state;

    for (uint32_t family = 0; family + 1 < FAMILIES; family++)
        for (uint32_t used = 0; used < 2; used++) {
            const struct weir_limit *limit = &t->limits[family][0];
            unsigned key = 900 + family * 2 + used;
            struct weir_reason reason = {""};
            struct one one;

            begin_one(&one);
            add_check(&one, limit, key, used);
            assert_int_equal(rig_call(&t->rig, &one, REDIS_DECIDE, 1, t->now_ns, &reason),
                             WEIR_ALLOWED);
            begin_one(&one);
            add_check(&one, limit, key, limit->capacity + 1)->flags =
                WEIR_CHECK_SHADOW | WEIR_CHECK_CHARGE_ON_DENY;
            assert_int_equal(rig_call(&t->rig, &one, REDIS_RESERVE, key, t->now_ns, &reason),
                             WEIR_ALLOWED);
            assert_int_equal(one.outcomes[0].verdict, WEIR_DENIED);
            rig_call(&t->rig, &one, REDIS_ROLL_BACK, key, t->now_ns, &reason);
            begin_one(&one);
            add_check(&one, limit, key, limit->capacity - used + 1);
            assert_int_equal(rig_call(&t->rig, &one, REDIS_PEEK, 1, t->now_ns, &reason),
                             WEIR_DENIED);
            one.checks[0].cost--;
            assert_int_equal(rig_call(&t->rig, &one, REDIS_PEEK, 1, t->now_ns, &reason),
                             WEIR_ALLOWED);
        }
}

/* Where doubles cannot tell any more whether a fading counter leaves enough room: the microsecond
 * before a denied cost is admitted, that one, and what just fits. */
TEST("the borders of fading windows are exact")
{
    static const uint64_t rates[] = {WEIR_RATE_MAX, WEIR_RATE_MAX - 1, 3000000019, 1000003, 7};
    static const uint64_t windows[] = {366 * DAY, 365 * DAY - 120 * US, HOUR, 120 * MS};
    struct traces *t = *state;

    t->random = 7;
    for (unsigned trial = 0; trial < 600; trial++) {
        struct weir_limit_spec spec = {.algorithm = WEIR_SLIDING_WINDOW,
                                       .rate = rates[draw_below(&t->random, 5)],
                                       .window_ns = windows[draw_below(&t->random, 4)],
                                       .segments = draw_below(&t->random, 2) ? 1 : 120};
        struct weir_limit limit;
        struct weir_report report;
        unsigned key = 10000 + trial;

        prepare(t, &limit, &spec);
        t->now_ns = START + draw_below(&t->random, 366 * DAY / US) * US;
        use(t, &limit, key, 1 + draw_below(&t->random, spec.rate), WEIR_OP_DECIDE);
        t->now_ns += limit.segment_ns * spec.segments / US * US -
                     draw_below(&t->random, limit.segment_ns / US) * US;
        report = use(t, &limit, key, 1 + draw_below(&t->random, spec.rate), WEIR_OP_DECIDE);
        use(t, &limit, key, report.remaining, WEIR_OP_PEEK);
        report = use(t, &limit, key, report.remaining + 1, WEIR_OP_PEEK);
        if (report.retry_after_ns == 0 || report.retry_after_ns == WEIR_NEVER)
            continue;

        uint64_t cost = report.remaining + 1, now_ns = t->now_ns;

        t->now_ns = (now_ns + report.retry_after_ns + US - 1) / US * US;
        use(t, &limit, key, cost, WEIR_OP_PEEK);
        t->now_ns -= US;
        use(t, &limit, key, cost, WEIR_OP_PEEK);
        t->now_ns += US;
        use(t, &limit, key, cost, WEIR_OP_DECIDE);
    }
}

/* Counters so large beside their window that they fade in less than a nanosecond, and those that a
 * limit with a smaller N holds only in part. */
TEST("the largest counts of the smallest windows are exact")
{
    static const struct weir_limit_spec smallest[] = {
        {.algorithm = WEIR_SLIDING_WINDOW, .rate = WEIR_RATE_MAX, .window_ns = MS, .segments = 100},
        {.algorithm = WEIR_SLIDING_WINDOW, .rate = WEIR_RATE_MAX, .window_ns = MS},
        {.algorithm = WEIR_SLIDING_WINDOW, .rate = 1000, .window_ns = MS},
    };
    struct weir_limit limits[3];
    struct traces *t = *state;

    t->random = 17;
    for (unsigned i = 0; i < 3; i++)
        prepare(t, &limits[i], &smallest[i]);
    for (unsigned trial = 0; trial < 500; trial++) {
        const struct weir_limit *limit = &limits[trial % 2];
        unsigned key = 40000 + trial;

        t->now_ns = START + draw_below(&t->random, 10000) * US;
        use(t, limit, key, WEIR_RATE_MAX - draw_below(&t->random, 2), WEIR_OP_DEBIT);
        t->now_ns += draw_below(&t->random, 2) * limit->segment_ns;
        use(t, limit, key, WEIR_RATE_MAX - draw_below(&t->random, 100), WEIR_OP_DEBIT);
        t->now_ns += draw_below(&t->random, 2200) * US;
        use(t, limit, key, draw_below(&t->random, WEIR_RATE_MAX), WEIR_OP_PEEK);
        use(t, limit, key, 1, WEIR_OP_DECIDE);
        use(t, &limits[2 * (trial % 2)], key, 1, WEIR_OP_DECIDE);
    }
}

/* All of it at once: many changes of the rate, each on what the one before has left. */
TEST("a changed rate keeps what was used")
{
    struct traces *t = *state;

    t->random = 11;
    t->now_ns = START;
    for (unsigned trial = 0; trial < 3000; trial++) {
        uint64_t bits = draw_below(&t->random, 41),
                 rate = 1 + draw_below(&t->random, UINT64_C(1) << bits);
        uint64_t window =
            (1000 + draw_below(&t->random, (366 * DAY / US - 1000) >> draw_below(&t->random, 30))) *
            US;
        struct weir_limit_spec spec = {
            .algorithm = WEIR_TOKEN_BUCKET,
            .rate = rate,
            .window_ns = window,
            .burst = 1 + draw_below(&t->random, UINT64_C(1) << draw_below(&t->random, 41))};
        struct weir_limit limit;
        unsigned key = 20000 + trial % 7;

        if (weir_limit_init(&limit, &spec, NULL) != 0)
            continue;
        prepare(t, &limit, &spec);
        step_time(t);
        use(t, &limit, key, random_cost(t, &limit),
            draw_below(&t->random, 3) == 0 ? WEIR_OP_DEBIT : WEIR_OP_DECIDE);
        if (draw_below(&t->random, 4) == 0)
            use(t, &limit, key, random_cost(t, &limit), WEIR_OP_REFUND);
    }
}

/* States of more than 1 KB are changed in place. */
TEST("long logs and many leases are exact")
{
    static const struct weir_limit_spec longs[] = {
        {.algorithm = WEIR_SLIDING_LOG, .rate = 1000, .window_ns = 10 * SECOND},
        {.algorithm = WEIR_SLIDING_LOG, .rate = 700, .window_ns = 10 * SECOND},
        {.algorithm = WEIR_CONCURRENCY, .rate = 500, .window_ns = 10 * SECOND},
        {.algorithm = WEIR_CONCURRENCY, .rate = 300, .window_ns = 9 * SECOND},
    };
    struct weir_limit limits[4];
    struct traces *t = *state;
    uint64_t longest = 0;

    t->random = 13;
    t->now_ns = START;
    for (uint32_t i = 0; i < 4; i++)
        prepare(t, &limits[i], &longs[i]);
    for (uint32_t round = 0; round < 12000; round++) {
        unsigned family = (unsigned)draw_below(&t->random, 2);
        const struct weir_limit *limit = &limits[2 * family + (draw_below(&t->random, 400) == 0)];
        struct one one;

        t->now_ns += draw_below(&t->random, 500) == 0 ? draw_below(&t->random, 8 * SECOND / US) * US
                                                      : draw_below(&t->random, 9000) * US;
        begin_one(&one);
        add_check(&one, limit, 30000 + family,
                  draw_below(&t->random, 50) == 0 ? draw_below(&t->random, limit->capacity + 2)
                                                  : 1 + draw_below(&t->random, 3));
        if (draw_below(&t->random, 5) == 0)
            add_check(&one, &limits[2 - 2 * family], 30001 - family, 1);
        one.decision.op = draw_below(&t->random, 20) == 0 ? draw_below(&t->random, 4) : 0;
        one.decision.lease.id = ++t->lease;
        one.decision.charged_at_ns = t->now_ns - draw_below(&t->random, 3 * SECOND / US) * US;
        decide_both(t, &one);
        if (draw_below(&t->random, 3) == 0) { /* a lease ends: one of the last, or of the first */
            begin_one(&one);
            add_check(&one, &limits[2], 30001, 0);
            one.decision.op = WEIR_OP_RELEASE;
            one.decision.lease.id =
                t->lease - draw_below(&t->random, draw_below(&t->random, 2) ? 5 : 900);
            decide_both(t, &one);
        }
        if (round % 100 == 0) {
            char key[64] = "";
            const char *const words[] = {"STRLEN", key};
            uint64_t size;

            redis_key_write(key, "weir:", &one.checks[0]);
            size = (uint64_t)redis_link_ask(&t->rig.link, words, NULL, 2)->integer;
            longest = size > longest ? size : longest;
        }
    }
    assert_true(longest > 6000 && t->operations > 1000);
}

/* What was made is never left without an end; what is at its end has a PTTL of 0 or -2. */
TEST("no key stays for ever")
{
    struct traces *t = *state;
    struct redis_link *link = &t->rig.link;
    static const char script[] = "local n=0 for _,k in ipairs(redis.call('KEYS','*')) do "
                                 "if redis.call('PTTL',k)==-1 then n=n+1 end end return n";
    const char *const words[] = {"EVAL", script, "0"};

    assert_true(redis_link_say(link, "DBSIZE")->integer > 20);
    assert_int_equal(redis_link_ask(link, words, NULL, 3)->type, WEIR_RESP_INTEGER);
    assert_int_equal(link->nodes[0].integer, 0);
}

RUN_TESTS_WITH(open_traces, close_traces)
