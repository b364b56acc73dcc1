/* SPDX-License-Identifier: Apache-2.0 */
/* The memory of denials: what it answers, for how long, and for nobody else. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#include "base/random.h"
#include "store/redis/denial_cache.h"
#include "test.h"

#define MS UINT64_C(1000000)
#define SECOND (1000 * MS)
#define SERVER (UINT64_C(1700000000) * SECOND)
#define LOCAL (UINT64_C(777) * SECOND)

/* Check i is on a gcra of one per (i + 1) seconds; a cell of its own. */
struct rig {
    struct redis_denial_cache *denials;
    struct weir_limit limits[WEIR_CHECKS_MAX];
    struct weir_check checks[WEIR_CHECKS_MAX];
    struct weir_outcome outcomes[WEIR_CHECKS_MAX];
    struct weir_decision decision;
};

static int set_up(void **state)
{
    static struct rig rig;

    memset(&rig, 0, sizeof rig);
    assert_int_equal(
        redis_denial_cache_open(
            &rig.denials, &(struct redis_denial_cache_options){.records = 64, .secret = {1, 2}}),
        0);
    rig.decision = (struct weir_decision){.checks = rig.checks, .outcomes = rig.outcomes};
    for (uint16_t i = 0; i < WEIR_CHECKS_MAX; i++) {
        const struct weir_limit_spec spec = {
            .algorithm = WEIR_GCRA, .rate = 1, .window_ns = (i + 1) * SECOND};

        assert_int_equal(weir_limit_init(&rig.limits[i], &spec, NULL), 0);
        rig.checks[i] =
            (struct weir_check){.limit = &rig.limits[i], .hash = {100 + i, 7}, .cost = 1};
    }
    *state = &rig;
    return 0;
}

static int tear_down(void **state)
{
    redis_denial_cache_close(((struct rig *)*state)->denials);
    return 0;
}

/* The server has just denied the first `count` checks: each of their tokens is gone. */
static void deny(struct rig *rig, uint16_t count)
{
    rig->decision.count = count;
    rig->decision.now_ns = SERVER;
    for (uint16_t i = 0; i < count; i++) {
        rig->outcomes[i] = (struct weir_outcome){.verdict = WEIR_DENIED};
        weir_cell_charge(&rig->limits[i], &rig->outcomes[i].cell, SERVER, 1);
    }
    rig->decision.verdict = WEIR_DENIED;
    rig->decision.error = 5;
}

static void keep(struct rig *rig, uint64_t sent_ns, uint64_t now_ns)
{
    redis_denial_cache_keep(rig->denials, &rig->decision, sent_ns, now_ns);
    memset(rig->outcomes, 0xee, sizeof rig->outcomes);
    rig->decision.verdict = WEIR_PENDING;
}

static bool finds(struct rig *rig, uint64_t now_ns)
{
    return redis_denial_cache_find(rig->denials, &rig->decision, now_ns);
}

TEST_WITH(set_up, tear_down, "a denial is found with the time since taken off")
{
    struct rig *rig = *state;
    struct weir_report report;

    assert_false(finds(rig, LOCAL));
    deny(rig, 2);
    keep(rig, LOCAL, LOCAL);
    assert_true(finds(rig, LOCAL + 30 * MS));
    assert_int_equal(rig->decision.verdict, WEIR_DENIED);
    assert_int_equal(rig->decision.error, 0);
    assert_int_equal(rig->decision.now_ns, SERVER + 30 * MS);
    for (uint16_t i = 0; i < 2; i++) {
        assert_int_equal(rig->outcomes[i].verdict, WEIR_DENIED);
        weir_decision_report(&rig->decision, i, &report);
        assert_int_equal(report.retry_after_ns, (i + 1) * SECOND - 30 * MS);
        assert_int_equal(report.remaining, 0);
    }
}

TEST_WITH(set_up, tear_down, "a report that was made grows older")
{
    struct rig *rig = *state;

    deny(rig, 2);
    rig->outcomes[0].reported = rig->outcomes[1].reported = true;
    rig->outcomes[0].report = (struct weir_report){5, 0, 80 * MS, 90 * MS};
    rig->outcomes[0].next_ns = 70 * MS;
    rig->outcomes[1].report = (struct weir_report){5, 0, WEIR_NEVER, 20 * MS};
    rig->outcomes[1].next_ns = WEIR_NEVER;
    keep(rig, LOCAL, LOCAL);
    assert_true(finds(rig, LOCAL + 30 * MS));
    assert_int_equal(rig->outcomes[0].report.retry_after_ns, 50 * MS);
    assert_int_equal(rig->outcomes[0].report.reset_after_ns, 60 * MS);
    assert_int_equal(rig->outcomes[0].next_ns, 40 * MS);
    assert_int_equal(rig->outcomes[1].report.retry_after_ns, WEIR_NEVER);
    assert_int_equal(rig->outcomes[1].report.reset_after_ns, 0);
    assert_int_equal(rig->outcomes[1].next_ns, WEIR_NEVER);
}

TEST_WITH(set_up, tear_down, "it ends at 100 ms")
{
    struct rig *rig = *state;

    deny(rig, 1);
    keep(rig, LOCAL, LOCAL + 10 * MS);
    assert_true(finds(rig, LOCAL + REDIS_DENIAL_CACHE_MAX_NS - 1));
    assert_false(finds(rig, LOCAL + REDIS_DENIAL_CACHE_MAX_NS));
}

TEST_WITH(set_up, tear_down, "it ends when the first check may admit counted from the sending")
{
    struct rig *rig = *state;

    deny(rig, 2);
    rig->outcomes[1].reported = true;
    rig->outcomes[1].report = (struct weir_report){.limit = 5, .retry_after_ns = 40 * MS};
    keep(rig, LOCAL, LOCAL + 15 * MS);
    assert_true(finds(rig, LOCAL + 40 * MS - 1));
    assert_true(rig->outcomes[1].report.retry_after_ns > 0);
    assert_false(finds(rig, LOCAL + 40 * MS));
}

TEST_WITH(set_up, tear_down, "a reply that took longer than the wait is not remembered")
{
    struct rig *rig = *state;

    deny(rig, 1);
    keep(rig, LOCAL, LOCAL + REDIS_DENIAL_CACHE_MAX_NS);
    assert_false(finds(rig, LOCAL + REDIS_DENIAL_CACHE_MAX_NS));
}

TEST_WITH(set_up, tear_down,
          "it answers for no other cost scale key limit policy or number of checks")
{
    struct rig *rig = *state;
    struct weir_limit other = rig->limits[0];

    deny(rig, 2);
    keep(rig, LOCAL, LOCAL);
    rig->checks[0].cost = 2;
    assert_false(finds(rig, LOCAL));
    rig->checks[0].cost = 1;
    rig->checks[0].scale = 60;
    assert_false(finds(rig, LOCAL));
    rig->checks[0].scale_kind = WEIR_SCALE_RATE;
    assert_false(finds(rig, LOCAL));
    rig->checks[0].scale_kind = WEIR_SCALE_RESERVE;
    rig->checks[0].scale = 0;
    rig->checks[1].hash[1]++;
    assert_false(finds(rig, LOCAL));
    rig->checks[1].hash[1]--;
    rig->checks[1].flags = WEIR_CHECK_SHADOW;
    assert_false(finds(rig, LOCAL));
    rig->checks[1].flags = 0;
    rig->decision.count = 1;
    assert_false(finds(rig, LOCAL));
    rig->decision.count = 2;
    rig->decision.policy = WEIR_POLICY_EACH;
    assert_false(finds(rig, LOCAL));
    rig->decision.policy = WEIR_POLICY_ALL;
    rig->decision.op = WEIR_OP_PEEK;
    assert_false(finds(rig, LOCAL));
    rig->decision.op = WEIR_OP_DECIDE;
    rig->checks[0].limit = &other; /* reloaded, as it was: the same */
    assert_true(finds(rig, LOCAL));
    other.spec.burst++;
    assert_false(finds(rig, LOCAL));
}

TEST_WITH(set_up, tear_down, "only denials that charged nothing are kept")
{
    struct rig *rig = *state;

    deny(rig, 2);
    rig->decision.verdict = WEIR_ALLOWED;
    keep(rig, LOCAL, LOCAL);
    assert_false(finds(rig, LOCAL));
    deny(rig, 2);
    rig->outcomes[1].charged = true;
    keep(rig, LOCAL, LOCAL);
    assert_false(finds(rig, LOCAL));
    for (int i = 0; i < 2; i++) {
        deny(rig, 2);
        rig->checks[1].flags = i == 0 ? WEIR_CHECK_CHARGE_ON_DENY : WEIR_CHECK_IDEMPOTENCY;
        keep(rig, LOCAL, LOCAL);
        assert_false(finds(rig, LOCAL));
    }
}

TEST_WITH(set_up, tear_down, "a denial by leases in flight is not kept but one beside them is")
{
    struct rig *rig = *state;
    const struct weir_limit_spec spec = {
        .algorithm = WEIR_CONCURRENCY, .rate = 1, .window_ns = SECOND};

    assert_int_equal(weir_limit_init(&rig->limits[1], &spec, NULL), 0);
    deny(rig, 1);
    rig->decision.count = 2;
    rig->outcomes[1] = (struct weir_outcome){.verdict = WEIR_DENIED, .reported = true};
    rig->outcomes[1].report.retry_after_ns = SECOND;
    keep(rig, LOCAL, LOCAL);
    assert_false(finds(rig, LOCAL));
    deny(rig, 1);
    rig->decision.count = 2;
    rig->outcomes[1] = (struct weir_outcome){.verdict = WEIR_ALLOWED, .reported = true};
    keep(rig, LOCAL, LOCAL);
    assert_true(finds(rig, LOCAL));
}

TEST_WITH(set_up, tear_down, "checks without a state take part")
{
    struct rig *rig = *state;

    deny(rig, 3);
    rig->checks[1] = (struct weir_check){.flags = WEIR_CHECK_UNLIMITED};
    rig->checks[2] = (struct weir_check){.flags = WEIR_CHECK_ALWAYS_DENY};
    rig->outcomes[1] = (struct weir_outcome){.verdict = WEIR_ALLOWED};
    rig->outcomes[2] = (struct weir_outcome){.verdict = WEIR_DENIED};
    keep(rig, LOCAL, LOCAL);
    assert_true(finds(rig, LOCAL));
    assert_int_equal(rig->outcomes[1].verdict, WEIR_ALLOWED);
    assert_int_equal(rig->outcomes[2].verdict, WEIR_DENIED);
}

TEST_WITH(set_up, tear_down, "what is given back is forgotten")
{
    struct rig *rig = *state;
    struct weir_check one = rig->checks[1];
    const struct weir_decision refund = {.checks = &one, .count = 1, .op = WEIR_OP_REFUND};

    deny(rig, 2);
    keep(rig, LOCAL, LOCAL);
    redis_denial_cache_forget(rig->denials, &refund);
    assert_false(finds(rig, LOCAL));
    deny(rig, 2);
    keep(rig, LOCAL, LOCAL);
    one.hash[0]++;
    redis_denial_cache_forget(rig->denials, &refund);
    assert_true(finds(rig, LOCAL));
}

TEST_WITH(set_up, tear_down, "the time can be set lower but not higher")
{
    struct rig *rig = *state;

    for (int i = 0; i < 2; i++) {
        redis_denial_cache_close(rig->denials);
        assert_int_equal(
            redis_denial_cache_open(&rig->denials,
                                    &(struct redis_denial_cache_options){
                                        .records = 1, .longest_ns = i == 0 ? MS : SECOND}),
            0);
        deny(rig, WEIR_CHECKS_MAX);
        keep(rig, LOCAL, LOCAL);
        assert_true(finds(rig, LOCAL + MS - 1));
        assert_int_equal(finds(rig, LOCAL + MS), i != 0);
        assert_false(finds(rig, LOCAL + REDIS_DENIAL_CACHE_MAX_NS));
    }
}

/* Many more than it has room for, of all sizes: what it finds is right, and it finds the newest. */
TEST_WITH(set_up, tear_down, "a ring that is full forgets and never errs")
{
    struct rig *rig = *state;
    uint64_t random = 9, now_ns = LOCAL, found = 0;

    for (int i = 0; i < 100000; i++) {
        uint16_t count = (uint16_t)(1 + weir_random(&random) % WEIR_CHECKS_MAX);
        uint64_t key = weir_random(&random) % 32;

        now_ns += weir_random(&random) % MS;
        if (weir_random(&random) % 64 == 0)
            now_ns += 200 * MS;
        rig->checks[0].hash[0] = key;
        rig->checks[0].cost = 1 + key;
        rig->decision.count = count;
        if (finds(rig, now_ns)) {
            found++;
            assert_int_equal(rig->outcomes[0].delay_ns, key);
            assert_int_equal(rig->outcomes[count - 1].verdict, WEIR_DENIED);
        }
        deny(rig, count);
        rig->outcomes[0].delay_ns = key; /* a mark */
        keep(rig, now_ns, now_ns);
        assert_true(finds(rig, now_ns));
        assert_int_equal(rig->outcomes[0].delay_ns, key);
    }
    assert_true(found > 100);
}

RUN_TESTS()
