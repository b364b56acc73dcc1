/* SPDX-License-Identifier: Apache-2.0 */
/* see action.h */
#include "engine/effect/action.h"

#include "core/bucket.h"
#include "core/cell.h"
#include "core/scale.h"
#include "engine/borrow.h"
#include "engine/generation.h"
#include "engine/hook.h"
#include "engine/pool.h"
#include "rules/actions/reject.h"
#include "rules/actions/steps.h"
#include "rules/counter.h"

/* An action, and the time that it takes. */
struct effect {
    uint8_t action;
    uint64_t delay_ns;
};

static const unsigned stateless = WEIR_CHECK_UNLIMITED | WEIR_CHECK_ALWAYS_DENY;

/* Of two actions the stricter one; both of one kind take the longer time. */
static void join(struct effect *effect, struct effect other)
{
    if (other.action > effect->action)
        effect->action = other.action;
    if (other.delay_ns > effect->delay_ns)
        effect->delay_ns = other.delay_ns;
}

/* --- Admitted --------------------------------------------------------------------------------- */

/* What one rate has used after the request. */
struct use {
    const struct weir_limit *limit;
    uint64_t used, capacity, owed_ns;
};

static bool is_owing(const struct weir_check *check)
{
    return bucket_is(check->limit->spec.algorithm) && check->limit->spec.rate != 0;
}

/* A bucket after the request. A report from another place has what is owed, rounded up to a
 * nanosecond. A peek has charged nothing: what it would charge is added, at its scale. */
static void read_bucket(const struct weir_decision *decision, uint16_t i,
                        struct weir_report *report, uint64_t *owed_ns)
{
    const struct weir_check *check = &decision->checks[i];
    const struct weir_outcome *outcome = &decision->outcomes[i];
    const struct weir_use use = {.now_ns = decision->now_ns};
    struct weir_cell cell = {.a = decision->now_ns + report->reset_after_ns};
    if (!outcome->reported)
        cell = outcome->cell;
    if (decision->op == WEIR_OP_PEEK) {
        scale_cell_charge(check, &cell, decision->now_ns);
        weir_cell_report(check->limit, &cell, &use, true, report);
    }
    struct bucket_time owed = bucket_owed(&cell, decision->now_ns);
    *owed_ns = owed.ns + (owed.rem != 0);
}

/* False: this check has no use that counts. */
static bool read_use(const struct weir_decision *decision, uint16_t i, struct use *use)
{
    const struct weir_check *check = &decision->checks[i];
    struct weir_report report;
    if ((check->flags & (stateless | WEIR_CHECK_SHADOW)) != 0 || !check->limit)
        return false;
    weir_decision_report_whole(decision, i, &report);
    *use = (struct use){.limit = check->limit, .capacity = report.limit};
    if (is_owing(check))
        read_bucket(decision, i, &report, &use->owed_ns);
    use->used = report.remaining < report.limit ? report.limit - report.remaining : 0;
    if (decision->op == WEIR_OP_PEEK && !is_owing(check))
        use->used =
            check->cost < use->capacity - use->used ? use->used + check->cost : use->capacity;
    return use->capacity > 0;
}

static bool is_reached(const struct weir_step *step, const struct use *use, uint64_t *delay_ns)
{
    *delay_ns = step->delay_ns;
    if (step->action == WEIR_ACTION_DELAY && step->delay_ns == 0) {
        if (use->owed_ns > 0)
            *delay_ns = weir_step_drain_ns(use->limit, step->percent, use->owed_ns);
        return *delay_ns > 0;
    }
    return use->used * 100 >= step->percent * use->capacity; /* capacities are below 2^42 */
}

/* What the rate does that the checks [first, end) of a limit use most. */
static struct effect step_of(const struct weir_decision *decision, uint16_t first, uint16_t end,
                             const struct weir_steps *steps)
{
    struct effect best = {WEIR_ACTION_NONE, 0};
    uint8_t highest = 0;
    for (uint16_t i = first; i < end; i++) {
        struct use use;
        if (!read_use(decision, i, &use))
            continue;
        uint8_t s = steps->count;
        uint64_t delay_ns = 0;
        while (s > 0 && s >= highest && !is_reached(&steps->list[s - 1], &use, &delay_ns))
            s--;
        if (s == 0 || s < highest)
            continue;
        if (s > highest || delay_ns > best.delay_ns)
            best = (struct effect){steps->list[s - 1].action, delay_ns};
        highest = s;
    }
    return best;
}

/* --- Denied ----------------------------------------------------------------------------------- */

static bool is_denying(const struct weir_decision *decision, uint16_t i)
{
    return decision->outcomes[i].verdict == WEIR_DENIED &&
           (decision->checks[i].flags & WEIR_CHECK_SHADOW) == 0;
}

/* Whether the challenge alone denies: without it the request would be admitted, at the scale that
 * it then had. */
static bool is_challenged(const struct weir_decision *decision, uint16_t i)
{
    const struct weir_check *check = &decision->checks[i];
    struct weir_report report;
    if (!check->challenged)
        return false;
    weir_decision_report_unchallenged(decision, i, &report);
    return check->cost <= report.remaining;
}

/* How a limit denies; NONE: it does not. */
static struct effect denial_of(const struct weir_decision *decision, uint16_t first, uint16_t end,
                               const struct weir_reject *reject)
{
    bool denies = false, challenges = true;
    for (uint16_t i = first; i < end; i++) {
        if (!is_denying(decision, i))
            continue;
        denies = true;
        challenges = challenges && is_challenged(decision, i);
    }
    if (!denies)
        return (struct effect){WEIR_ACTION_NONE, 0};
    if (challenges)
        return (struct effect){WEIR_ACTION_CHALLENGE, 0};
    if (reject && reject->tarpit_ns != 0)
        return (struct effect){WEIR_ACTION_TARPIT, reject->tarpit_ns};
    return (struct effect){WEIR_ACTION_REJECT, 0};
}

/* --- Both ------------------------------------------------------------------------------------- */

static struct effect effect_of(const struct weir_decision *decision, uint16_t first, uint16_t end)
{
    const struct weir_entry *entry = weir_entry_of(decision);
    const struct weir_rules *rules = entry->generation->rules;
    uint32_t rule = decision->checks[first].rule;
    if (rule >= entry->generation->count)
        return (struct effect){WEIR_ACTION_NONE, 0};
    const struct weir_steps *steps = weir_rules_steps(rules, rule);
    if (decision->verdict == WEIR_DENIED)
        return denial_of(decision, first, end, weir_rules_reject(rules, rule));
    if (!steps || decision->source > WEIR_SOURCE_LOCAL ||
        (entry->borrow && weir_borrow_lends(entry->borrow, &decision->checks[first])))
        return (struct effect){WEIR_ACTION_NONE, 0};
    return step_of(decision, first, end, steps);
}

void weir_action_choose(const struct weir_decision *decision, uint16_t shown,
                        struct weir_answer *answer)
{
    struct effect effect = {WEIR_ACTION_NONE, 0};
    if (decision->op != WEIR_OP_DECIDE && decision->op != WEIR_OP_PEEK)
        return;
    for (uint16_t i = 0, end; i < shown; i = end) {
        end = weir_decision_limit_end(decision, i);
        join(&effect, effect_of(decision, i, end));
    }
    answer->action = effect.action;
    if ((effect.action == WEIR_ACTION_DELAY || effect.action == WEIR_ACTION_TARPIT) &&
        effect.delay_ns > answer->delay_ns)
        answer->delay_ns = effect.delay_ns;
    if (answer->denied_by >= 0 && answer->source != WEIR_SOURCE_CLOSED &&
        effect.action >= WEIR_ACTION_TARPIT) {
        const struct weir_generation *generation = weir_entry_of(decision)->generation;
        uint32_t rule = decision->checks[decision->denied_by].rule;
        if (rule < generation->count)
            answer->reject = weir_rules_reject(generation->rules, rule);
    }
}

bool weir_action_challenges(const struct weir_decision *decision)
{
    struct effect effect = {WEIR_ACTION_NONE, 0};
    for (uint16_t i = 0, end; i < weir_decision_limits(decision); i = end) {
        end = weir_decision_limit_end(decision, i);
        join(&effect, effect_of(decision, i, end));
    }
    return effect.action == WEIR_ACTION_CHALLENGE;
}

/* Counts what each limit of a finished request does with it, by the limit and the action. */
static void count(struct weir_engine *engine, struct weir_entry *entry)
{
    const struct weir_decision *decision = &entry->decision;
    (void)engine;
    if (decision->op != WEIR_OP_DECIDE)
        return;
    for (uint16_t i = 0, end; i < weir_decision_limits(decision); i = end) {
        end = weir_decision_limit_end(decision, i);
        uint8_t action = effect_of(decision, i, end).action;
        if (action == WEIR_ACTION_NONE)
            continue;
        const struct weir_rule_view *view = &entry->generation->views[decision->checks[i].rule];
        weir_count(&view->tally->counters.actions[action], 1);
    }
}

const struct weir_hook weir_hook_action = {.wanted = weir_rules_acts, .told = count};
