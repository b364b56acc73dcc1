/* SPDX-License-Identifier: Apache-2.0 */
/* see call_plan.h */
#include "store/redis/call_plan.h"

#include "core/scale.h"
#include "store/redis/script/key.h"

/* --- What a decision is like ------------------------------------------------------------------ */

static bool is_settling(const struct weir_decision *decision)
{
    return decision->op == WEIR_OP_DEBIT || decision->op == WEIR_OP_REFUND;
}

/* Whether a check without a state denies the whole, so that nothing may be charged for it. */
static bool is_denied_at_once(const struct weir_decision *decision)
{
    if (decision->op != WEIR_OP_DECIDE || decision->policy != WEIR_POLICY_ALL)
        return false;
    for (uint16_t i = 0; i < decision->count; i++)
        if ((decision->checks[i].flags & (WEIR_CHECK_ALWAYS_DENY | WEIR_CHECK_SHADOW)) ==
            WEIR_CHECK_ALWAYS_DENY)
            return true;
    return false;
}

/* Charged although the request is denied. A lease that was not given cannot be held. */
static bool charges_on_deny(const struct weir_check *check)
{
    return check->flags & WEIR_CHECK_CHARGE_ON_DENY && weir_check_has_state(check) &&
           check->limit->spec.algorithm != WEIR_CONCURRENCY;
}

static uint16_t slot_of(const struct weir_check *check)
{
    return redis_check_cluster_slot(check);
}

static bool is_one_slot(const struct weir_decision *decision)
{
    bool found = false;
    uint16_t slot = 0;

    for (uint16_t i = 0; i < decision->count; i++) {
        if (!weir_check_has_state(&decision->checks[i]))
            continue;

        uint16_t own = slot_of(&decision->checks[i]);

        if (found && own != slot)
            return false;
        slot = own;
        found = true;
    }
    return true;
}

bool call_plan_is_one_call(const struct weir_decision *decision, bool one_slot, uint8_t *action)
{
    *action = REDIS_DECIDE;
    if (is_denied_at_once(decision)) {
        *action = REDIS_PEEK;
        for (uint16_t i = 0; i < decision->count; i++)
            if (charges_on_deny(&decision->checks[i]) ||
                decision->checks[i].flags & WEIR_CHECK_IDEMPOTENCY)
                return false;
    }
    return one_slot || decision->count == 1 || is_one_slot(decision);
}

/* --- Making it -------------------------------------------------------------------------------- */

/* The group of a slot, a new one where there is none. */
static uint8_t group_of(struct call_plan *plan, uint16_t slot)
{
    uint8_t group = 0;

    while (group < plan->count && plan->groups[group].slot != slot)
        group++;
    if (group == plan->count)
        plan->groups[plan->count++] = (struct call_plan_group){.slot = slot};
    return group;
}

static void group_checks(struct call_plan *plan, const struct weir_decision *decision,
                         bool one_slot)
{
    uint8_t group[WEIR_CHECKS_MAX], first = 0;

    if (plan->idempotent) /* it is asked first */
        (void)group_of(plan, one_slot ? 0 : slot_of(&decision->checks[decision->count - 1]));
    for (uint16_t i = 0; i < decision->count; i++)
        if (weir_check_has_state(&decision->checks[i])) {
            group[i] = group_of(plan, one_slot ? 0 : slot_of(&decision->checks[i]));
            plan->groups[group[i]].count++;
        }
    for (uint8_t g = 0; g < plan->count; g++) {
        plan->groups[g].first = first;
        first += plan->groups[g].count;
        plan->groups[g].count = 0;
    }
    for (uint16_t i = 0; i < decision->count; i++)
        if (weir_check_has_state(&decision->checks[i])) {
            struct call_plan_group *its = &plan->groups[group[i]];

            plan->checks[its->first + its->count++] = i;
        }
}

/* Whether a step is about a check of its group. The record of an idempotency key is looked at by
 * the first call only. */
static bool takes(const struct call_plan *plan, const struct weir_check *check, uint8_t kind)
{
    if (kind == REDIS_STEP_CHARGE)
        return charges_on_deny(check);
    if (kind == REDIS_STEP_PEEK)
        return !(check->flags & WEIR_CHECK_IDEMPOTENCY) &&
               (plan->repeated || !charges_on_deny(check));
    return true;
}

static bool takes_any(const struct call_plan *plan, const struct weir_decision *decision,
                      const struct call_plan_group *group, uint8_t kind)
{
    for (uint8_t i = 0; i < group->count; i++)
        if (takes(plan, &decision->checks[plan->checks[group->first + i]], kind))
            return true;
    return false;
}

/* What a group has to be asked when the verdict no longer depends on it. */
static void only_look(const struct call_plan *plan, const struct weir_decision *decision,
                      struct call_plan_group *group)
{
    if (takes_any(plan, decision, group, REDIS_STEP_PEEK))
        group->todo |= REDIS_STEP_PEEK;
    if (!plan->repeated && takes_any(plan, decision, group, REDIS_STEP_CHARGE))
        group->todo |= REDIS_STEP_CHARGE;
}

void call_plan_make(struct call_plan *plan, const struct weir_decision *decision, bool one_slot,
                    uint64_t id)
{
    plan->id = id;
    plan->state = CALL_PLAN_RUNNING;
    plan->count = 0;
    plan->idempotent = plan->denied = plan->repeated = plan->resumes = false;
    for (uint16_t i = 0; i < decision->count; i++) {
        bool record = (decision->checks[i].flags & WEIR_CHECK_IDEMPOTENCY) != 0;

        plan->resumes |= plan->idempotent && record;
        plan->idempotent |= record;
    }
    group_checks(plan, decision, one_slot);
    plan->reserves =
        decision->op == WEIR_OP_DECIDE && decision->policy == WEIR_POLICY_ALL && plan->count > 1;
    plan->denied = is_denied_at_once(decision);
    for (uint8_t g = 0; g < plan->count; g++)
        if (plan->denied)
            only_look(plan, decision, &plan->groups[g]);
        else if (g == 0 || !(plan->reserves || plan->idempotent))
            plan->groups[g].todo = REDIS_STEP_CALL;
}

/* --- Its calls -------------------------------------------------------------------------------- */

bool call_plan_next(struct call_plan *plan, struct redis_step *step)
{
    for (uint8_t g = 0; g < plan->count; g++) {
        struct call_plan_group *group = &plan->groups[g];

        if (group->todo == 0)
            continue;
        step->group = g;
        step->kind = group->todo & (uint8_t)-group->todo; /* the first: roll-backs before peeks */
        group->todo &= (uint8_t)~step->kind;
        if (step->kind == REDIS_STEP_ROLL_BACK)
            group->reserved = false;
        else
            group->sent |= step->kind;
        return true;
    }
    return false;
}

void call_plan_batch(const struct call_plan *plan, const struct weir_decision *decision,
                     struct redis_step step, const struct call_plan_context *context,
                     struct weir_decision *as, uint16_t checks[WEIR_CHECKS_MAX],
                     struct redis_batch *batch)
{
    const struct call_plan_group *group = &plan->groups[step.group];

    *batch = (struct redis_batch){
        .decision = decision,
        .checks = checks,
        .action = REDIS_DECIDE,
        .id = plan->id + step.group,
        .prefix = context->prefix,
        .now_ns = context->now_ns,
        .test_now_us = context->test_now_us,
    };
    for (uint8_t i = 0; i < group->count; i++) {
        uint16_t check = plan->checks[group->first + i];

        if (takes(plan, &decision->checks[check], step.kind))
            checks[batch->count++] = check;
    }
    if (step.kind == REDIS_STEP_PEEK) {
        batch->action = REDIS_PEEK;
    } else if (step.kind == REDIS_STEP_ROLL_BACK) {
        batch->action = REDIS_ROLL_BACK;
    } else if (step.kind == REDIS_STEP_CHARGE) {
        *as = *decision;
        as->policy = WEIR_POLICY_EACH;
        batch->decision = as;
    } else if (plan->reserves) {
        batch->action = REDIS_RESERVE;
    }
}

/* --- How they end ----------------------------------------------------------------------------- */

static void conclude(struct call_plan *plan)
{
    for (uint8_t g = 0; g < plan->count; g++)
        if (plan->groups[g].sent != 0 || (plan->groups[g].todo & ~REDIS_STEP_ROLL_BACK) != 0)
            return;
    if (plan->state == CALL_PLAN_RUNNING)
        plan->state = CALL_PLAN_DECIDED;
}

static void deny(struct call_plan *plan, const struct weir_decision *decision, uint8_t by)
{
    plan->denied = true;
    for (uint8_t g = 0; g < plan->count; g++) {
        struct call_plan_group *group = &plan->groups[g];

        if (g == by)
            continue;
        if (group->reserved)
            group->todo |= REDIS_STEP_ROLL_BACK;
        only_look(plan, decision, group);
    }
}

/* Whether the decision that was made before was this one, so that what it has not done is done now.
 * The check before the last is the mark of it, and is used up. */
static bool is_resumed(const struct call_plan *plan, const struct weir_decision *decision)
{
    return plan->resumes && decision->outcomes[decision->count - 2].report.remaining == 0;
}

static void go_on(struct call_plan *plan, const struct weir_decision *decision, uint8_t after,
                  uint8_t verdict, bool repeated)
{
    if (plan->idempotent && after == 0 && repeated) {
        plan->repeated = true;
        for (uint8_t g = 1; g < plan->count; g++)
            if (is_resumed(plan, decision))
                plan->groups[g].todo = REDIS_STEP_CALL;
            else
                only_look(plan, decision, &plan->groups[g]);
    } else if (plan->reserves && verdict == WEIR_DENIED) {
        deny(plan, decision, after);
    } else if (plan->reserves) {
        plan->groups[after].reserved = true;
        if (after + 1 < plan->count)
            plan->groups[after + 1].todo = REDIS_STEP_CALL;
    } else if (plan->idempotent && after == 0) {
        for (uint8_t g = 1; g < plan->count; g++)
            plan->groups[g].todo = REDIS_STEP_CALL;
    }
}

void call_plan_answered(struct call_plan *plan, const struct weir_decision *decision,
                        struct redis_step step, uint8_t verdict, bool repeated)
{
    plan->groups[step.group].sent &= (uint8_t)~step.kind;
    if (plan->state != CALL_PLAN_RUNNING || step.kind == REDIS_STEP_ROLL_BACK)
        return;
    if (step.kind == REDIS_STEP_CALL)
        go_on(plan, decision, step.group, verdict, repeated);
    conclude(plan);
}

/* Of a check whose server did not answer when it no longer mattered. */
static void fill_unknown(const struct call_plan *plan, struct weir_decision *decision,
                         struct redis_step step)
{
    const struct call_plan_group *group = &plan->groups[step.group];

    for (uint8_t i = 0; i < group->count; i++) {
        uint16_t check = plan->checks[group->first + i];
        const struct weir_limit *limit = decision->checks[check].limit;

        if (takes(plan, &decision->checks[check], step.kind))
            decision->outcomes[check] = (struct weir_outcome){
                .report = {.limit = limit->capacity, .remaining = limit->capacity},
                .verdict = WEIR_ALLOWED,
                .reported = true,
            };
    }
}

void call_plan_cancel(struct call_plan *plan)
{
    plan->state = CALL_PLAN_FAILED;
    for (uint8_t g = 0; g < plan->count; g++) {
        struct call_plan_group *group = &plan->groups[g];

        group->todo &= REDIS_STEP_ROLL_BACK;
        if (group->reserved)
            group->todo = REDIS_STEP_ROLL_BACK;
    }
}

void call_plan_failed(struct call_plan *plan, struct weir_decision *decision,
                      struct redis_step step, bool executed)
{
    struct call_plan_group *group = &plan->groups[step.group];

    group->sent &= (uint8_t)~step.kind;
    if (step.kind == REDIS_STEP_ROLL_BACK)
        return;
    if (step.kind != REDIS_STEP_CALL) {
        if (plan->state == CALL_PLAN_RUNNING)
            fill_unknown(plan, decision, step);
        conclude(plan);
        return;
    }
    group->reserved = plan->reserves && executed;
    call_plan_cancel(plan);
}

/* --- What comes of it ------------------------------------------------------------------------- */

void call_plan_settle(struct weir_decision *decision, const struct redis_batch *batch,
                      uint64_t now_ns)
{
    for (uint16_t i = 0; i < batch->count; i++) {
        const struct weir_check *check = &decision->checks[batch->checks[i]];
        struct weir_outcome *outcome = &decision->outcomes[batch->checks[i]];
        struct weir_use use = {.now_ns = now_ns, .cost = check->cost};
        struct weir_report report, whole, one;

        outcome->charged_at_ns = now_ns;
        if (outcome->reported)
            continue;
        weir_cell_report(check->limit, &outcome->cell, &use, true, &whole);
        scale_cell_report(check, &outcome->cell, &use, outcome->verdict == WEIR_ALLOWED, &report);
        use.cost = 1;
        scale_cell_report(check, &outcome->cell, &use, false, &one);
        outcome->next_ns = report.remaining == 0 ? one.retry_after_ns : 0;
        outcome->report = whole;
        outcome->report.retry_after_ns = report.retry_after_ns;
        outcome->reported = true;
    }
    decision->apart = true;
    if (now_ns > decision->now_ns)
        decision->now_ns = now_ns;
}

void call_plan_fill_stateless(struct weir_decision *decision)
{
    for (uint16_t i = 0; i < decision->count; i++) {
        uint8_t flags = decision->checks[i].flags;

        if (weir_check_has_state(&decision->checks[i]))
            continue;

        bool admits = flags & WEIR_CHECK_UNLIMITED || is_settling(decision);

        if (decision->op >= WEIR_OP_RELEASE)
            admits = false; /* there was nothing */
        decision->outcomes[i] =
            (struct weir_outcome){.verdict = admits ? WEIR_ALLOWED : WEIR_DENIED};
    }
}

void call_plan_finish(const struct call_plan *plan, struct weir_decision *decision)
{
    call_plan_fill_stateless(decision);
    decision->repeated = plan->repeated;
    for (uint16_t i = 0; i < decision->count; i++) {
        struct weir_outcome *outcome = &decision->outcomes[i];

        outcome->overflow = false;
        /* Records that were not asked for; of a repeat, those of later slots may be. */
        if (decision->checks[i].flags & WEIR_CHECK_IDEMPOTENCY && (plan->denied || plan->repeated))
            *outcome = (struct weir_outcome){.verdict = WEIR_ALLOWED};
        if (plan->repeated) {
            outcome->verdict = WEIR_ALLOWED;
            outcome->delay_ns = 0;
            if (outcome->reported)
                outcome->report.retry_after_ns = 0;
            outcome->charged = false;
        }
    }
    weir_decision_join(decision);
}
