/* SPDX-License-Identifier: Apache-2.0 */
/* see check.h */
#include "core/check.h"

#include <stddef.h>

#include "core/bucket.h"
#include "core/scale.h"
#include "core/text/siphash.h"

uint64_t weir_check_tag(const struct weir_check *check)
{
    static const uint64_t public[2] = {0, 0};
    uint64_t hash[2];

    if (check->tag != 0)
        return check->tag;
    weir_siphash128(public, check->key.data, check->key.size, hash);
    return hash[0];
}

/* The report of check `i`, which has the scale of `check`, or of the whole limit. */
static void make_report(const struct weir_decision *decision, uint16_t i,
                        const struct weir_check *check, bool scaled, struct weir_report *report)
{
    const struct weir_outcome *outcome = &decision->outcomes[i];
    bool allowed = outcome->verdict == WEIR_ALLOWED;

    if (check->flags & WEIR_CHECK_UNLIMITED) {
        *report = (struct weir_report){UINT64_MAX, UINT64_MAX, 0, 0};
    } else if (check->flags & WEIR_CHECK_ALWAYS_DENY) {
        *report = (struct weir_report){0, 0, allowed ? 0 : WEIR_NEVER, 0};
    } else if (outcome->reported) {
        *report = outcome->report;
        if (scaled)
            scale_report(check, report);
    } else {
        struct weir_use use = {.now_ns = decision->now_ns, .cost = check->cost};

        if (scaled)
            scale_cell_report(check, &outcome->cell, &use, allowed, report);
        else
            weir_cell_report(check->limit, &outcome->cell, &use, allowed, report);
    }
}

/* Whether a check was admitted by a plain bucket, at no scale. */
static bool is_plain(const struct weir_check *check, const struct weir_outcome *outcome)
{
    return check->limit && check->limit->plain && outcome->verdict == WEIR_ALLOWED &&
           !outcome->reported && check->scale == 0 &&
           (check->flags & (WEIR_CHECK_UNLIMITED | WEIR_CHECK_ALWAYS_DENY)) == 0 &&
           outcome->cell.b == 0;
}

void weir_decision_report(const struct weir_decision *decision, uint16_t i,
                          struct weir_report *report)
{
    const struct weir_check *check = &decision->checks[i];
    const struct weir_outcome *outcome = &decision->outcomes[i];

    if (__builtin_expect(is_plain(check, outcome), 1)) {
        bucket_report_plain(check->limit, outcome->cell.a, decision->now_ns, report);
        return;
    }
    make_report(decision, i, check, scale_is_set(check), report);
}

void weir_decision_report_unchallenged(const struct weir_decision *decision, uint16_t i,
                                       struct weir_report *report)
{
    struct weir_check check;

    weir_check_unchallenged(&decision->checks[i], &check);
    make_report(decision, i, &check, scale_is_set(&check), report);
}

void weir_decision_report_whole(const struct weir_decision *decision, uint16_t i,
                                struct weir_report *report)
{
    make_report(decision, i, &decision->checks[i], false, report);
}

/* Whether a check that denies or not is reported rather than another. */
static bool is_tighter(bool denies, const struct weir_report *report, bool other_denies,
                       const struct weir_report *other)
{
    if (denies != other_denies)
        return denies;
    if (denies)
        return report->retry_after_ns > other->retry_after_ns;
    return report->remaining != other->remaining ? report->remaining < other->remaining
                                                 : report->reset_after_ns > other->reset_after_ns;
}

uint16_t weir_decision_tightest_of(const struct weir_decision *decision, uint16_t first,
                                   uint16_t end, struct weir_report *report)
{
    uint64_t remaining;
    bool denies = decision->outcomes[first].verdict == WEIR_DENIED;
    uint16_t tightest = first;

    weir_decision_report(decision, first, report);
    remaining = report->remaining;
    for (uint16_t i = first + 1; i < end; i++) {
        bool one_denies = decision->outcomes[i].verdict == WEIR_DENIED;
        struct weir_report one;

        weir_decision_report(decision, i, &one);
        remaining = one.remaining < remaining ? one.remaining : remaining;
        if (is_tighter(one_denies, &one, denies, report)) {
            tightest = i;
            denies = one_denies;
            *report = one;
        }
    }
    report->remaining = remaining;
    return tightest;
}

uint16_t weir_decision_blame(const struct weir_decision *decision, uint64_t *retry_after_ns)
{
    uint16_t blamed = UINT16_MAX;

    *retry_after_ns = 0;
    for (uint16_t i = 0; i < decision->count; i++) {
        struct weir_report report;

        if (decision->outcomes[i].verdict != WEIR_DENIED ||
            (decision->checks[i].flags & WEIR_CHECK_SHADOW))
            continue;
        weir_decision_report(decision, i, &report);
        if (blamed == UINT16_MAX || report.retry_after_ns > *retry_after_ns ||
            (report.retry_after_ns == *retry_after_ns &&
             decision->checks[i].rule < decision->checks[blamed].rule)) {
            blamed = i;
            *retry_after_ns = report.retry_after_ns;
        }
    }
    return blamed;
}

void weir_decision_join(struct weir_decision *decision)
{
    bool on_states = decision->op >= WEIR_OP_RELEASE;
    bool takes_all = on_states || decision->policy == WEIR_POLICY_QUOTA;
    uint16_t can_deny = 0, denying = 0;
    uint64_t delay_ns = 0;

    for (uint16_t i = 0; i < decision->count; i++) {
        const struct weir_outcome *outcome = &decision->outcomes[i];

        if (!on_states && decision->checks[i].flags & WEIR_CHECK_SILENT)
            continue;
        can_deny++;
        if (outcome->verdict == WEIR_DENIED)
            denying++;
        else if (outcome->delay_ns > delay_ns)
            delay_ns = outcome->delay_ns;
    }

    bool denied = takes_all ? can_deny > 0 && denying == can_deny : denying > 0;

    decision->verdict = denied ? WEIR_DENIED : WEIR_ALLOWED;
    decision->delay_ns = denied ? 0 : delay_ns;
}
