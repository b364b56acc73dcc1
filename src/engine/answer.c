/* SPDX-License-Identifier: Apache-2.0 */
/* see answer.h */
#include "engine/answer.h"

#include <string.h>

#include "core/bytes.h"
#include "core/prepaid.h"
#include "core/scale.h"
#include "engine/borrow.h"
#include "engine/effect/action.h"
#include "engine/effect/warning.h"
#include "engine/engine.h"
#include "engine/generation.h"
#include "engine/pool.h"
#include "engine/token/lease_token.h"
#include "feature/adaptive/rules/limit.h"
#include "feature/standing/rules/match.h"
#include "rules/actions/reject.h"

_Static_assert(WEIR_LEASE_TOKEN_TEXT_MAX < WEIR_LEASE_TOKEN_MAX, "a token and its NUL fit");

/* When a cost of 1 is admitted. */
static __attribute__((noinline)) uint64_t next_ns(const struct weir_check *check,
                                                  const struct weir_outcome *outcome,
                                                  const struct weir_report *report, uint64_t now_ns)
{
    if (report->remaining > 0)
        return 0;
    if (report->limit == 0 || (check->flags & WEIR_CHECK_ALWAYS_DENY) != 0)
        return WEIR_NEVER;
    if (outcome->reported)
        return outcome->next_ns;
    struct weir_use use = {.now_ns = now_ns, .cost = 1};
    struct weir_report one;
    scale_cell_report(check, &outcome->cell, &use, false, &one);
    return one.retry_after_ns;
}

/* Tells every rate of a limit of several. Returns when all of them admit a cost of 1. */
static __attribute__((noinline)) uint64_t answer_rates(const struct weir_decision *decision,
                                                       uint16_t first, uint16_t end,
                                                       struct weir_answer_rate *rates)
{
    uint64_t latest_ns = 0;
    for (uint16_t i = first; i < end; i++) {
        struct weir_answer_rate *rate = &rates[i - first];
        weir_decision_report(decision, i, &rate->report);
        rate->limit = decision->checks[i].limit;
        rate->scale = scale_of_rate(&decision->checks[i]);
        rate->allowed = decision->outcomes[i].verdict != WEIR_DENIED;
        rate->next_ns =
            next_ns(&decision->checks[i], &decision->outcomes[i], &rate->report, decision->now_ns);
        latest_ns = rate->next_ns > latest_ns ? rate->next_ns : latest_ns;
    }
    return latest_ns;
}

/* What is used of the limit, where the client is to be warned of it. */
static __attribute__((noinline)) void answer_warning(const struct weir_decision *decision,
                                                     uint16_t first, uint16_t end,
                                                     struct weir_answer_warning *warning)
{
    const struct weir_generation *generation = weir_entry_of(decision)->generation;
    uint32_t rule = decision->checks[first].rule;
    struct weir_warn_use use;
    if (rule >= generation->count || decision->verdict == WEIR_DENIED)
        return;
    const struct weir_warn_at *at = weir_rules_warn_at(generation->rules, rule);
    uint8_t reached = weir_decision_warns(decision, first, end, at, &use);
    if (reached > 0)
        *warning = (struct weir_answer_warning){use.used, use.capacity, at->percent[reached - 1]};
}

/* Whether it was borrowed from this limit. */
static __attribute__((noinline)) bool is_borrowed(const struct weir_decision *decision,
                                                  uint32_t rule)
{
    struct weir_borrowed borrowed[WEIR_CHECKS_MAX];
    uint16_t count = weir_engine_borrowed(decision, borrowed);
    for (uint16_t i = 0; i < count; i++)
        if (borrowed[i].pool == rule)
            return true;
    return false;
}

static bool overflows(const struct weir_decision *decision, uint16_t first, uint16_t end)
{
    for (uint16_t i = first; i < end; i++)
        if (decision->outcomes[i].overflow)
            return true;
    return false;
}

/* A request was charged to what was bought above its limit: tells the limit as it denied, with what
 * is left of the bought units. */
static __attribute__((noinline)) void answer_bought(const struct weir_decision *decision,
                                                    struct weir_answer_limit *limit, uint32_t rule)
{
    struct weir_decision own;
    struct weir_report report;
    uint16_t i = 0;
    weir_engine_own(decision, &own);
    while (i < own.count && own.checks[i].rule != rule)
        i++;
    if (i == own.count)
        return;
    weir_decision_report(&own, i, &report);
    limit->limit = own.checks[i].limit;
    limit->report.limit = report.limit;
    limit->report.reset_after_ns = report.reset_after_ns;
    if (limit->report.remaining == 0)
        limit->next_ns = next_ns(&own.checks[i], &own.outcomes[i], &report, own.now_ns);
}

/* Tells what few limits have: several rates, nothing remaining, warnings, a pool, units bought
 * above them. `i`: the check that is shown. */
static __attribute__((noinline)) void answer_more(const struct weir_decision *decision,
                                                  uint16_t first, uint16_t end, uint16_t i,
                                                  struct weir_answer *answer,
                                                  struct weir_answer_limit *limit)
{
    const struct weir_entry *entry = weir_entry_of(decision);
    const struct weir_check *check = &decision->checks[i];
    limit->bought = check->limit && prepaid_is(check->limit);
    limit->borrowed = entry->borrow && !limit->bought && is_borrowed(decision, check->rule);
    limit->overflow = overflows(decision, first, end);
    if (entry->generation && entry->generation->warns)
        answer_warning(decision, first, end, &limit->warning);
    limit->rate_count = end - first == 1 ? 0 : (uint8_t)(end - first);
    if (end - first > 1)
        limit->next_ns = answer_rates(decision, first, end, &answer->rates[first]);
    else
        limit->next_ns = next_ns(check, &decision->outcomes[i], &limit->report, decision->now_ns);
    if (limit->bought)
        answer_bought(decision, limit, check->rule);
}

/* Tells one limit, whose checks are [first, end). `more`: some limit of the request may need
 * answer_more. */
static inline void answer_limit(const struct weir_decision *decision, uint16_t first, uint16_t end,
                                bool more, struct weir_answer *answer)
{
    const struct weir_generation *generation = weir_entry_of(decision)->generation;
    struct weir_answer_limit *limit = &answer->limits[answer->count++];
    uint16_t i = weir_decision_tightest(decision, first, end, &limit->report);
    const struct weir_check *check = &decision->checks[i];
    const struct weir_outcome *outcome = &decision->outcomes[i];
    limit->name = (struct weir_bytes){"", 0};
    limit->texts = NULL;
    limit->limit = check->limit;
    limit->scale = check->scale != 0 ? scale_of_rate(check) : 0;
    if (generation && check->rule < generation->count) {
        const struct weir_rule_view *view = &generation->views[check->rule];
        limit->name = view->name;
        if (view->told && view->told == check->limit && check->scale == 0)
            limit->texts = &view->texts;
    }
    limit->cost = check->cost;
    limit->allowed = outcome->verdict != WEIR_DENIED;
    limit->shadow = (check->flags & WEIR_CHECK_SHADOW) != 0;
    limit->unlimited = (check->flags & WEIR_CHECK_UNLIMITED) != 0;
    limit->borrowed = limit->bought = false;
    limit->overflow = outcome->overflow;
    limit->warning.percent = 0;
    limit->rate_count = 0;
    limit->first_rate = (uint8_t)first; /* there are no more rates than checks */
    limit->next_ns = 0;
    if (__builtin_expect(more || end - first > 1 || limit->report.remaining == 0, 0))
        answer_more(decision, first, end, i, answer, limit);
}

/* The caller's standing, where the rules found one. */
static void answer_standing(const struct weir_decision *decision, struct weir_answer *answer)
{
    const struct weir_entry *entry = weir_entry_of(decision);
    const struct weir_caller_standing *from = &entry->standing;
    struct weir_answer_standing *standing = &answer->standing;
    const char *level = weir_standing_level_name(from->entry.level);
    standing->level = weir_bytes_of(level);
    standing->reason = (struct weir_bytes){from->entry.reason, from->entry.reason_size};
    standing->ends_ns = entry->standing_ends_ns;
    standing->refused = from->refused;
    standing->unknown = false;
    if (!from->refused)
        return;
    if (weir_rules_denies_unknown(entry->generation->rules) && from->unknown) {
        standing->unknown = true;
        standing->level = standing->body = standing->content_type = (struct weir_bytes){NULL, 0};
        standing->status = 403;
        answer->retry_after_ns = WEIR_NEVER;
        return;
    }
    struct weir_standing_answer texts =
        weir_rules_standing_answer(entry->generation->rules, from->entry.level);
    standing->status = texts.status;
    standing->body = texts.body;
    standing->content_type = texts.content_type;
    bool ends = from->entry.level != WEIR_STANDING_REVOKED;
    answer->retry_after_ns = ends ? standing->ends_ns : WEIR_NEVER;
}

/* The caller's score, where the rules keep one. */
static void answer_score(const struct weir_decision *decision, struct weir_answer *answer)
{
    const struct weir_entry *entry = weir_entry_of(decision);
    const struct weir_score_info *info = weir_rules_score(entry->generation->rules);
    struct weir_answer_score *score = &answer->score;
    const char *class = weir_class_name(entry->score.class);
    score->class = weir_bytes_of(class);
    score->score = entry->score.score;
    score->held = entry->score.held;
    score->signals = info->debug ? info->signals : NULL;
}

/* The retry of a denial. Under QUOTA one admitted check is enough, so the soonest counts. */
static __attribute__((noinline)) uint64_t retry_after(const struct weir_decision *decision,
                                                      const struct weir_answer *answer)
{
    uint64_t retry_ns = answer->limits[answer->denied_by].report.retry_after_ns;
    for (uint16_t i = 0; decision->policy == WEIR_POLICY_QUOTA && i < answer->count; i++) {
        const struct weir_answer_limit *limit = &answer->limits[i];
        if (!limit->shadow && !limit->allowed && limit->report.retry_after_ns < retry_ns)
            retry_ns = limit->report.retry_after_ns;
    }
    return retry_ns;
}

/* Adds what names the state of a check whose limit gave a lease. */
static void add_lease(struct weir_lease_fields *lease, const struct weir_store *lender,
                      const struct weir_check *check)
{
    bool named = lease->place != WEIR_LEASE_TOKEN_LOCAL && lender->ops->name_of;
    if (named) {
        struct weir_store_name name;
        lease->place = WEIR_LEASE_TOKEN_REMOTE;
        lender->ops->name_of(lender, check, &name);
        weir_lease_token_add_name(lease, &name);
    } else {
        lease->hash[lease->count][0] = check->hash[0];
        lease->hash[lease->count++][1] = check->hash[1];
    }
}

static bool asks_for_lease(const struct weir_check *check)
{
    return check->limit && check->cost > 0 && check->limit->spec.algorithm == WEIR_CONCURRENCY;
}

/* Adds the states of checks that may have given a lease: each once. */
static void add_possible(struct weir_lease_fields *lease, const struct weir_store *lender,
                         const struct weir_check *checks, uint16_t count)
{
    for (uint16_t i = 0; i < count; i++) {
        if (!asks_for_lease(&checks[i]))
            continue;
        uint16_t before = 0;
        add_lease(lease, lender, &checks[i]);
        uint16_t last = (uint16_t)(lease->count - 1);
        while (lease->hash[before][0] != lease->hash[last][0] ||
               lease->hash[before][1] != lease->hash[last][1])
            before++;
        lease->count = before == last ? lease->count : last;
    }
}

/* A repeat does not know which try was charged. So its token, and that of the request it repeats,
 * name the states of both. */
static void add_both_tries(struct weir_lease_fields *lease, const struct weir_decision *decision)
{
    const struct weir_entry *entry = weir_entry_of(decision);
    struct weir_decision own;
    weir_engine_own(decision, &own);
    lease->count = 0;
    add_possible(lease, entry->lender, own.checks, own.count);
    add_possible(lease, entry->lender, entry->borrow->from, entry->borrow->loan_checks);
}

/* Notes what the limit of a check that gave a lease learns from its end. */
static void add_learner(struct weir_lease_begun *begun, const struct weir_decision *decision,
                        uint16_t i)
{
    const struct weir_generation *generation = weir_entry_of(decision)->generation;
    uint32_t rule = decision->checks[i].rule;
    struct weir_report report;
    if (!generation || rule >= generation->count || begun->count == WEIR_LEASE_LEARNERS_MAX ||
        weir_rules_scale_of(generation->rules, rule) < 0)
        return;
    weir_decision_report_whole(decision, i, &report);
    uint64_t used = report.limit > report.remaining ? report.limit - report.remaining : 0;
    begun->learners[begun->count++] =
        (struct weir_lease_learner){.limit = weir_lease_limit_id(generation->views[rule].name),
                                    .in_flight = (uint32_t)used}; /* at most WEIR_LEASES_MAX */
}

static __attribute__((noinline)) struct weir_bytes write_lease(const struct weir_decision *decision,
                                                               char *text)
{
    struct weir_lease_fields lease; /* not cleared: 800 bytes that nearly no answer needs */
    bool local = decision->source == WEIR_SOURCE_LOCAL;
    lease.id = decision->lease.id;
    lease.place = local ? WEIR_LEASE_TOKEN_LOCAL : WEIR_LEASE_TOKEN_TABLE;
    lease.count = 0;
    lease.begun.ns = decision->now_ns;
    lease.begun.count = 0;
    lease.begun.caller = weir_decision_caller(decision);
    for (uint16_t i = 0; i < decision->count; i++) {
        const struct weir_check *check = &decision->checks[i];
        /* A repeated request gets what the first one got. */
        if ((decision->outcomes[i].charged || decision->repeated) && asks_for_lease(check)) {
            add_lease(&lease, weir_entry_of(decision)->lender, check);
            add_learner(&lease.begun, decision, i);
        }
    }
    if (lease.count == 0)
        return (struct weir_bytes){NULL, 0};
    if (__builtin_expect(weir_entry_of(decision)->borrow != NULL, 0) &&
        weir_decision_limits(decision) < decision->count)
        add_both_tries(&lease, decision);
    return (struct weir_bytes){text, weir_lease_token_write(&lease, text)};
}

void weir_engine_answer(const struct weir_decision *decision, struct weir_answer *answer,
                        char answer_lease[WEIR_LEASE_TOKEN_MAX])
{
    answer->allowed = decision->verdict != WEIR_DENIED;
    answer->denied_by = -1;
    answer->delay_ns = decision->delay_ns;
    answer->now_ns = decision->now_ns;
    answer->source = decision->source;
    answer->repeated = decision->repeated;
    answer->count = 0;
    const struct weir_entry *entry = weir_entry_of(decision);
    const struct weir_generation *generation = entry->generation;
    const bool more = entry->borrow || (generation && (generation->warns || generation->sells));
    uint16_t shown = weir_decision_limits(decision);
    for (uint16_t i = 0, end; i < shown; i = end) {
        end = weir_decision_limit_end(decision, i);
        if (decision->denied_by >= i && decision->denied_by < end)
            answer->denied_by = (int16_t)answer->count;
        answer_limit(decision, i, end, more, answer);
    }
    answer->retry_after_ns = answer->denied_by < 0 ? 0 : retry_after(decision, answer);
    answer->standing.level.data = NULL;
    answer->standing.refused = false;
    if (__builtin_expect(entry->stands, 0) && generation)
        answer_standing(decision, answer);
    answer->score.class.data = NULL;
    if (__builtin_expect(entry->score.found, 0) && generation)
        answer_score(decision, answer);
    answer->action = WEIR_ACTION_NONE;
    answer->reject = NULL;
    if (generation && __builtin_expect(generation->acts, 0))
        weir_action_choose(decision, shown, answer);
    if (!answer->allowed && generation && !answer->reject)
        answer->reject = weir_rules_reject_all(generation->rules);
    bool charges = decision->op == WEIR_OP_DECIDE || decision->op == WEIR_OP_DEBIT;
    answer->lease = (struct weir_bytes){NULL, 0};
    if (__builtin_expect(decision->lease.id != 0, 0) && charges) /* it asks for one */
        answer->lease = write_lease(decision, answer_lease);
}
