/* SPDX-License-Identifier: Apache-2.0 */
/* Reports and blame of finished decisions. */
#include "core_test.h"
#include "test.h"

#include "core/check.h"

struct rig {
    struct weir_limit limits[4];
    struct weir_check checks[4];
    struct weir_outcome outcomes[4];
    struct weir_decision decision;
};

/* Check i is on a gcra of one per (i + 1) seconds whose only token was just taken, and is
 * denied: its retry is i + 1 seconds. */
static void rig_init(struct rig *rig, uint16_t count)
{
    memset(rig, 0, sizeof(*rig));
    rig->decision.checks = rig->checks;
    rig->decision.outcomes = rig->outcomes;
    rig->decision.count = count;
    rig->decision.now_ns = START;
    for (uint16_t i = 0; i < count; i++) {
        rig->limits[i] = make_limit((struct weir_limit_spec){
            .algorithm = WEIR_GCRA, .rate = 1, .window_ns = (uint64_t)(i + 1) * SECOND});
        rig->checks[i].limit = &rig->limits[i];
        rig->checks[i].cost = 1;
        rig->checks[i].rule = i;
        rig->outcomes[i].verdict = WEIR_DENIED;
        weir_cell_charge(&rig->limits[i], &rig->outcomes[i].cell, START, 1);
    }
}

TEST("a report is made from the cell")
{
    struct rig rig;
    struct weir_report report;

    rig_init(&rig, 2);
    weir_decision_report(&rig.decision, 1, &report);
    assert_int_equal(report.limit, 1);
    assert_int_equal(report.remaining, 0);
    assert_int_equal(report.retry_after_ns, 2 * SECOND);
    assert_int_equal(report.reset_after_ns, 2 * SECOND);
    rig.outcomes[1].verdict = WEIR_ALLOWED;
    weir_decision_report(&rig.decision, 1, &report);
    assert_int_equal(report.retry_after_ns, 0);
}

TEST("a report that the store made is passed on")
{
    struct rig rig;
    struct weir_report report, made = {5, 4, 3, 2};

    rig_init(&rig, 1);
    rig.outcomes[0].reported = true;
    rig.outcomes[0].report = made;
    weir_decision_report(&rig.decision, 0, &report);
    assert_memory_equal(&report, &made, sizeof(report));
}

TEST("checks without state report all or nothing")
{
    struct rig rig;
    struct weir_report report;

    rig_init(&rig, 2);
    rig.checks[0].flags = WEIR_CHECK_UNLIMITED;
    rig.checks[0].limit = NULL;
    rig.outcomes[0].verdict = WEIR_ALLOWED;
    rig.checks[1].flags = WEIR_CHECK_ALWAYS_DENY;
    rig.checks[1].limit = NULL;
    weir_decision_report(&rig.decision, 0, &report);
    assert_int_equal(report.remaining, UINT64_MAX);
    assert_int_equal(report.retry_after_ns, 0);
    assert_int_equal(report.reset_after_ns, 0);
    weir_decision_report(&rig.decision, 1, &report);
    assert_int_equal(report.limit, 0);
    assert_int_equal(report.remaining, 0);
    assert_int_equal(report.retry_after_ns, WEIR_NEVER);
}

TEST("the longest retry is to blame")
{
    struct rig rig;
    uint64_t retry;

    rig_init(&rig, 4);
    assert_int_equal(weir_decision_blame(&rig.decision, &retry), 3);
    assert_int_equal(retry, 4 * SECOND);
    rig.outcomes[3].verdict = WEIR_ALLOWED;
    assert_int_equal(weir_decision_blame(&rig.decision, &retry), 2);
    assert_int_equal(retry, 3 * SECOND);
}

TEST("never is longer than any retry")
{
    struct rig rig;
    uint64_t retry;

    rig_init(&rig, 4);
    rig.checks[1].cost = 2; /* above its capacity */
    assert_int_equal(weir_decision_blame(&rig.decision, &retry), 1);
    assert_int_equal(retry, WEIR_NEVER);
}

TEST("a shadow check is never to blame")
{
    struct rig rig;
    uint64_t retry;

    rig_init(&rig, 3);
    rig.checks[2].flags = WEIR_CHECK_SHADOW;
    assert_int_equal(weir_decision_blame(&rig.decision, &retry), 1);
    rig.checks[0].flags = rig.checks[1].flags = WEIR_CHECK_SHADOW;
    assert_int_equal(weir_decision_blame(&rig.decision, &retry), UINT16_MAX);
    assert_int_equal(retry, 0);
}

TEST("ties go to the first rule whatever the order of checks")
{
    struct rig rig;
    uint64_t retry;

    rig_init(&rig, 3);
    for (int i = 0; i < 3; i++) {
        rig.checks[i].limit = &rig.limits[0];
        rig.outcomes[i].cell = rig.outcomes[0].cell;
    }
    assert_int_equal(weir_decision_blame(&rig.decision, &retry), 0);
    rig.checks[0].rule = 9;
    rig.checks[1].rule = UINT32_MAX;
    assert_int_equal(weir_decision_blame(&rig.decision, &retry), 2);
    rig.checks[0].rule = rig.checks[1].rule = rig.checks[2].rule = UINT32_MAX;
    assert_int_equal(weir_decision_blame(&rig.decision, &retry), 0);
}

TEST("nobody is to blame where nobody denies")
{
    struct rig rig;
    uint64_t retry = 1;

    rig_init(&rig, 0);
    assert_int_equal(weir_decision_blame(&rig.decision, &retry), UINT16_MAX);
    assert_int_equal(retry, 0);
}

static uint8_t joined(struct rig *rig, uint8_t op, uint8_t policy, const uint8_t verdicts[3])
{
    rig->decision.op = op;
    rig->decision.policy = policy;
    for (uint16_t i = 0; i < 3; i++)
        rig->outcomes[i].verdict = verdicts[i];
    weir_decision_join(&rig->decision);
    return rig->decision.verdict;
}

TEST("the whole is what op and policy make of the parts")
{
    const uint8_t none[3] = {WEIR_ALLOWED, WEIR_ALLOWED, WEIR_ALLOWED};
    const uint8_t last[3] = {WEIR_ALLOWED, WEIR_ALLOWED, WEIR_DENIED};
    const uint8_t all[3] = {WEIR_DENIED, WEIR_DENIED, WEIR_DENIED};
    struct rig rig;

    rig_init(&rig, 3);
    assert_int_equal(joined(&rig, WEIR_OP_DECIDE, WEIR_POLICY_ALL, none), WEIR_ALLOWED);
    assert_int_equal(joined(&rig, WEIR_OP_DECIDE, WEIR_POLICY_ALL, last), WEIR_DENIED);
    assert_int_equal(joined(&rig, WEIR_OP_DECIDE, WEIR_POLICY_EACH, last), WEIR_DENIED);
    assert_int_equal(joined(&rig, WEIR_OP_DECIDE, WEIR_POLICY_QUOTA, last), WEIR_ALLOWED);
    assert_int_equal(joined(&rig, WEIR_OP_DECIDE, WEIR_POLICY_QUOTA, all), WEIR_DENIED);
    assert_int_equal(joined(&rig, WEIR_OP_RELEASE, WEIR_POLICY_ALL, last), WEIR_ALLOWED);
    assert_int_equal(joined(&rig, WEIR_OP_RESET, WEIR_POLICY_ALL, all), WEIR_DENIED);
    rig.checks[2].flags = WEIR_CHECK_SHADOW;
    assert_int_equal(joined(&rig, WEIR_OP_DECIDE, WEIR_POLICY_ALL, last), WEIR_ALLOWED);
    rig.checks[2].flags = WEIR_CHECK_IDEMPOTENCY;
    assert_int_equal(joined(&rig, WEIR_OP_PEEK, WEIR_POLICY_ALL, last), WEIR_ALLOWED);
    rig.decision.count = 0;
    assert_int_equal(joined(&rig, WEIR_OP_DECIDE, WEIR_POLICY_QUOTA, all), WEIR_ALLOWED);
}

TEST("shadows are not spared where states are meant")
{
    const uint8_t all[3] = {WEIR_DENIED, WEIR_DENIED, WEIR_DENIED};
    struct rig rig;

    rig_init(&rig, 3);
    for (int i = 0; i < 3; i++)
        rig.checks[i].flags = WEIR_CHECK_SHADOW;
    assert_int_equal(joined(&rig, WEIR_OP_DECIDE, WEIR_POLICY_ALL, all), WEIR_ALLOWED);
    assert_int_equal(joined(&rig, WEIR_OP_RESET, WEIR_POLICY_ALL, all), WEIR_DENIED);
}

TEST("the longest delay of an allowed check is that of the whole")
{
    const uint8_t none[3] = {WEIR_ALLOWED, WEIR_ALLOWED, WEIR_ALLOWED};
    const uint8_t last[3] = {WEIR_ALLOWED, WEIR_ALLOWED, WEIR_DENIED};
    struct rig rig;

    rig_init(&rig, 3);
    for (uint16_t i = 0; i < 3; i++)
        rig.outcomes[i].delay_ns = 10 + i;
    joined(&rig, WEIR_OP_DECIDE, WEIR_POLICY_ALL, none);
    assert_int_equal(rig.decision.delay_ns, 12);
    joined(&rig, WEIR_OP_DECIDE, WEIR_POLICY_QUOTA, last);
    assert_int_equal(rig.decision.delay_ns, 11);
    joined(&rig, WEIR_OP_DECIDE, WEIR_POLICY_ALL, last);
    assert_int_equal(rig.decision.delay_ns, 0);
    rig.checks[2].flags = WEIR_CHECK_SHADOW;
    joined(&rig, WEIR_OP_DECIDE, WEIR_POLICY_ALL, none);
    assert_int_equal(rig.decision.delay_ns, 11);
}

TEST("the checks of one rule are one limit")
{
    struct rig rig;

    rig_init(&rig, 4);
    rig.checks[1].rule = 0;
    assert_int_equal(weir_decision_limit_end(&rig.decision, 0), 2);
    assert_int_equal(weir_decision_limit_end(&rig.decision, 2), 3);
    assert_int_equal(weir_decision_limit_end(&rig.decision, 3), 4);
    rig.checks[2].rule = rig.checks[3].rule = UINT32_MAX; /* of commands */
    assert_int_equal(weir_decision_limit_end(&rig.decision, 2), 3);
}

TEST("of several rates the longest retry is reported else the least remaining")
{
    static const struct {
        struct weir_report reports[3];
        uint8_t denied; /* a bit a check */
        uint16_t result;
        uint64_t remaining;
    } cases[] = {
        {{{9, 5, 0, 1}, {9, 3, 0, 1}, {9, 4, 0, 1}}, 0, 1, 3},
        {{{9, 3, 0, 7}, {9, 3, 0, 8}, {9, 3, 0, 8}}, 0, 1, 3}, /* the longest reset; the first */
        {{{9, 0, 0, 9}, {9, 3, 2, 1}, {9, 4, 1, 1}}, 6, 1, 0}, /* retries go before */
        {{{9, 1, 2, 1}, {9, 0, 2, 9}, {9, 4, WEIR_NEVER, 1}}, 7, 2, 0},
        {{{9, 1, 2, 1}, {9, 0, 2, 9}, {9, 4, 0, 1}}, 3, 0, 0},
    };

    for (size_t c = 0; c < sizeof(cases) / sizeof(cases[0]); c++) {
        struct rig rig;
        struct weir_report report;

        rig_init(&rig, 3);
        for (uint16_t i = 0; i < 3; i++) {
            rig.outcomes[i].reported = true;
            rig.outcomes[i].report = cases[c].reports[i];
            rig.outcomes[i].verdict = cases[c].denied >> i & 1 ? WEIR_DENIED : WEIR_ALLOWED;
        }
        assert_int_equal(weir_decision_tightest(&rig.decision, 0, 3, &report), cases[c].result);
        assert_int_equal(report.remaining, cases[c].remaining);
        assert_int_equal(report.reset_after_ns, cases[c].reports[cases[c].result].reset_after_ns);
    }
}

RUN_TESTS()
