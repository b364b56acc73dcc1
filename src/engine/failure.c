/* SPDX-License-Identifier: Apache-2.0 */
/* see failure.h */
#include "engine/failure.h"

#include <assert.h>

static bool is_shadow(const struct weir_check *check)
{
    return (check->flags & WEIR_CHECK_SHADOW) != 0;
}

static void settle_open(const struct weir_check *check, struct weir_outcome *outcome)
{
    uint64_t capacity = check->limit ? check->limit->capacity : WEIR_NEVER;
    *outcome = (struct weir_outcome){
        .report = {.limit = capacity, .remaining = capacity},
        .verdict = WEIR_ALLOWED,
        .reported = true,
    };
}

static void settle_closed(const struct weir_check *check, struct weir_outcome *outcome)
{
    bool state = weir_check_has_state(check);
    *outcome = (struct weir_outcome){
        .next_ns = state ? WEIR_FAILURE_RETRY_NS : WEIR_NEVER,
        .report = {.limit = state ? check->limit->capacity : 0,
                   .retry_after_ns = state ? WEIR_FAILURE_RETRY_NS : WEIR_NEVER,
                   .reset_after_ns = state ? WEIR_FAILURE_RETRY_NS : WEIR_NEVER},
        .verdict = WEIR_DENIED,
        .reported = true,
    };
}

/* From here on the check is on what this node may admit alone, and answers say so. */
static void add_local(struct weir_failure *failure, struct weir_decision *decision, uint16_t i)
{
    struct weir_decision *part = &failure->part;
    struct weir_check *check = &decision->checks[i];
    if (check->limit->local)
        check->limit = check->limit->local;
    failure->place[part->count] = (uint8_t)i;
    failure->checks[part->count++] = *check;
}

/* Settles what is open or closed, collects what is local. Returns whether a closed check denies the
 * request. */
static bool split(struct weir_failure *failure, bool have_local, struct weir_decision *decision)
{
    bool refund = decision->op == WEIR_OP_REFUND;
    bool closed = false;
    uint16_t record = UINT16_MAX;
    struct weir_decision *part = &failure->part;
    for (uint16_t i = 0; i < decision->count; i++) {
        const struct weir_check *check = &decision->checks[i];
        if ((check->flags & WEIR_CHECK_IDEMPOTENCY) != 0) {
            record = i;
        } else if (refund || (check->flags & WEIR_CHECK_UNLIMITED) != 0) {
            settle_open(check, &decision->outcomes[i]);
        } else if ((check->flags & WEIR_CHECK_ALWAYS_DENY) != 0) {
            settle_closed(check, &decision->outcomes[i]);
        } else if (check->on_store_error == WEIR_FAIL_CLOSED) {
            settle_closed(check, &decision->outcomes[i]);
            closed |= !is_shadow(check);
        } else if (check->on_store_error == WEIR_FAIL_LOCAL && have_local) {
            add_local(failure, decision, i);
        } else {
            settle_open(check, &decision->outcomes[i]);
        }
    }
    /* The record of an idempotency key is of use only beside something that is charged. */
    if (record != UINT16_MAX && part->count > 0)
        add_local(failure, decision, record);
    else if (record != UINT16_MAX)
        settle_open(&decision->checks[record], &decision->outcomes[record]);
    return closed;
}

/* Whether a check without a state denies the whole, so that nothing may be charged for it. */
static bool always_denied(const struct weir_decision *decision)
{
    for (uint16_t i = 0; i < decision->count; i++)
        if ((decision->checks[i].flags & WEIR_CHECK_ALWAYS_DENY) != 0 &&
            !is_shadow(&decision->checks[i]))
            return true;
    return false;
}

/* A local store answers or fails at once. What it fails to decide is open, as without one. */
static void decide_part(struct weir_failure *failure, struct weir_store *local, uint64_t now_ns,
                        struct weir_decision *decision)
{
    struct weir_decision *part = &failure->part;
    size_t pending = local->ops->submit(local, now_ns, &part, 1);
    assert(pending == 0 && (part->verdict != WEIR_PENDING || part->error != 0));
    (void)pending;
    if (part->verdict == WEIR_PENDING) {
        for (uint16_t i = 0; i < part->count; i++)
            settle_open(&failure->checks[i], &decision->outcomes[failure->place[i]]);
        part->count = 0;
        return;
    }
    for (uint16_t i = 0; i < part->count; i++)
        decision->outcomes[failure->place[i]] = failure->outcomes[i];
}

void weir_failure_settle(struct weir_failure *failure, struct weir_store *local, uint64_t now_ns,
                         struct weir_decision *decision, int error)
{
    struct weir_decision *part = &failure->part;
    *part = (struct weir_decision){
        .checks = failure->checks,
        .outcomes = failure->outcomes,
        .charged_at_ns = decision->charged_at_ns,
        .lease = decision->lease,
        .denied_by = UINT16_MAX,
        .op = decision->op,
        .policy = decision->policy,
        .network = decision->network,
    };
    bool closed = split(failure, local, decision);
    if (part->count > 0) {
        bool all = decision->policy == WEIR_POLICY_ALL;
        if (all && part->op == WEIR_OP_DECIDE && (closed || always_denied(decision)))
            part->op = WEIR_OP_PEEK;
        decide_part(failure, local, now_ns, decision);
    }
    decision->now_ns = now_ns;
    weir_decision_join(decision);
    decision->repeated = part->repeated && decision->verdict == WEIR_ALLOWED;
    if (closed && decision->verdict == WEIR_DENIED)
        decision->source = WEIR_SOURCE_CLOSED;
    else
        decision->source = part->count > 0 ? WEIR_SOURCE_LOCAL : WEIR_SOURCE_OPEN;
    decision->error = (int8_t)error;
}
