/* SPDX-License-Identifier: Apache-2.0 */
/* see checks.h */
#include "rules/match/checks.h"

#include <stdio.h>

#include "core/text/siphash.h"
#include "feature/identity/rules/identify.h"
#include "feature/identity/rules/override.h"
#include "feature/penalties/rules/strikes.h"
#include "feature/priority/rules/priority.h"
#include "feature/region/rules/region.h"
#include "feature/standing/rules/match.h"
#include "rules/actions/challenge.h"
#include "rules/actions/steps.h"
#include "rules/charge/borrow.h"
#include "rules/charge/cost.h"
#include "rules/charge/scale.h"
#include "rules/match/evaluate.h"
#include "rules/match/key.h"
#include "rules/match/routes.h"
#include "rules/states.h"

static uint64_t multiply(uint64_t a, uint64_t b)
{
    uint64_t product;
    return __builtin_mul_overflow(a, b, &product) ? UINT64_MAX : product;
}

/* The checks of the other rates behind the first, which is checks[count - 1], each on a state of
 * its own; `joined` NULL: they have no scale. Returns how many checks there are then. */
static int add_rates(struct rules_evaluation *evaluation, const struct rules_rates *rates,
                     const struct weir_joined_scale *joined,
                     struct weir_check checks[WEIR_CHECKS_MAX], int count)
{
    struct weir_check *first = &checks[count - 1];
    if (count - 1 + rates->count > WEIR_CHECKS_MAX)
        return rules_too_many(evaluation);
    for (uint32_t i = 1; i < rates->count; i++) {
        struct weir_check *check = &checks[count++];
        *check = *first;
        check->limit = &rates->limits[i];
        if (joined && joined->alone != 0 && !check->challenged) /* the burst may choose */
            weir_rules_scale_check(check, joined);
        rules_state_choose(check->hash, rates->states ? rates->states[i] : i);
    }
    if (rates->states)
        rules_state_choose(first->hash, rates->states[0]);
    return count;
}

/* The rates that count for this caller: its own, those of its plan, or the limit's. `own` is room
 * for them. */
static const struct rules_rates *choose_rates(struct rules_evaluation *evaluation,
                                              const struct rules_rule *rule, uint32_t number,
                                              struct rules_rates *own)
{
    if (!rule->plans && !rule->personal)
        return &rule->rates;
    rules_identify(evaluation);
    if (rule->personal) {
        const struct weir_override *override =
            rules_override_of(evaluation->overrides, evaluation->override_count, number);
        if (override) {
            *own = (struct rules_rates){.limits = override->limits,
                                        .count = (uint8_t) override->count,
                                        .states = override->states};
            return own;
        }
    }
    return rule->plans ? &rule->plans[evaluation->plan] : &rule->rates;
}

/* Whether a limit that is rolled out may deny this key. By a hash of its name and text that all
 * nodes agree on and that is the same after a restart: a number from 0 to 99, so that who is denied
 * at 10 % still is at 20 %. */
static bool is_enforced(const struct rules_rule *rule, const struct weir_check *check)
{
    uint64_t name[2], hash[2];
    weir_siphash128((const uint64_t[2]){0, 0}, rule->name, rule->name_size, name);
    weir_siphash128(name, check->key.data, check->key.size, hash);
    return (hash[0] >> 32) * 100 >> 32 < rule->enforce;
}

static void join_scale(const struct rules_evaluation *evaluation, struct weir_joined_scale *joined,
                       enum weir_scale_cause cause, uint8_t percent, bool alone)
{
    bool reserve = cause == WEIR_SCALE_BY_PRIORITY;
    if (evaluation->scales)
        evaluation->scales[cause] = percent;
    weir_rules_join_scale(joined, percent, reserve ? WEIR_SCALE_RESERVE : WEIR_SCALE_RATE, alone);
}

/* The scale of the challenge counts where it is the smallest. Beside an equal one of another
 * keyword it changes nothing: then a challenge that was passed would not help. */
static void join_challenge(const struct rules_evaluation *evaluation, const struct rules_rule *rule,
                           struct weir_check *check)
{
    uint8_t percent = rule->steps->challenge;
    if (evaluation->scales)
        evaluation->scales[WEIR_SCALE_BY_CHALLENGE] = percent;
    if (percent >= 100 || (check->scale != 0 && check->scale <= percent))
        return;
    weir_check_challenge(check);
    check->scale = percent & 0x7f;
    check->scale_kind = WEIR_SCALE_RESERVE;
    check->scale_alone = 0;
}

/* What of the limit this request may use. All keywords that say so join their scales here. */
static void join_scales(struct rules_evaluation *evaluation, const struct rules_rule *rule,
                        struct weir_joined_scale *joined)
{
    if (rule->shed)
        join_scale(evaluation, joined, WEIR_SCALE_BY_PRIORITY,
                   rule->shed[rules_class_of(evaluation)], false);
    if (rule->adaptive != 0)
        join_scale(evaluation, joined, WEIR_SCALE_BY_ADAPTIVE,
                   weir_rules_scale(evaluation->rules, rule->adaptive - 1u), true);
    if (rule->by_standing)
        join_scale(evaluation, joined, WEIR_SCALE_BY_STANDING,
                   rule->by_standing[evaluation->standing],
                   rule->alone_kinds >> evaluation->standing_kind & 1);
    if (rule->by_class)
        join_scale(evaluation, joined, WEIR_SCALE_BY_CLASS, rule->by_class[evaluation->score.class],
                   rule->alone_class);
}

static void scale_check(struct rules_evaluation *evaluation, const struct rules_rule *rule,
                        struct weir_joined_scale *joined, struct weir_check *check)
{
    *joined = (struct weir_joined_scale){0, 0, 0};
    join_scales(evaluation, rule, joined);
    weir_rules_scale_check(check, joined);
    if (rule->steps && rule->steps->challenge != 0 && !rules_challenge_passed(evaluation))
        join_challenge(evaluation, rule, check);
}

/* A floor that is nothing denies without a look at a state: the home decides. */
static void deny_nothing(struct weir_check *checks, int count)
{
    for (int i = 0; i < count; i++)
        if (checks[i].limit && checks[i].limit->spec.rate == 0)
            checks[i].flags |= WEIR_CHECK_ALWAYS_DENY;
}

/* The rest of a check whose key is there, and its other rates; `err`: of its key. Returns as build.
 */
static __attribute__((noinline)) int build_more(struct rules_evaluation *evaluation,
                                                const struct rules_rule *rule,
                                                struct weir_check checks[WEIR_CHECKS_MAX],
                                                int count, int err)
{
    struct rules_rates own, abroad;
    struct weir_joined_scale joined;
    struct weir_check *check = &checks[count];
    uint64_t cost = rule->cost;
    int bad_cost = rule->costs ? rules_cost_of(evaluation, rule->costs, &cost) : 0;
    if (bad_cost < 0)
        return bad_cost;
    check->cost = multiply(cost, evaluation->request->cost);
    const struct rules_rates *rates = choose_rates(evaluation, rule, check->rule, &own);
    check->limit = (check->flags & WEIR_CHECK_ALWAYS_DENY) != 0 ? NULL : rates->limits;
    if (!rates->limits && (check->flags & WEIR_CHECK_ALWAYS_DENY) == 0)
        check->flags |= WEIR_CHECK_UNLIMITED;
    if (err < 0) {
        if (evaluation->reason) {
            snprintf(evaluation->reason->text, sizeof(evaluation->reason->text),
                     "path and keys are too long together");
        }
        return err;
    }
    if (__builtin_expect(rule->global != NULL, 0) && check->limit) {
        rates = rules_rates_here(evaluation->rules, rule, check->key, rates, &abroad);
        check->limit = rates->limits;
    }
    if (check->limit && rule->scaled)
        scale_check(evaluation, rule, &joined, check);
    if (rule->enforce < 100 && !is_enforced(rule, check))
        check->flags |= WEIR_CHECK_SHADOW;
    count++;
    bool others = (rates->count > 1 || rates->states) && check->limit;
    int end =
        others ? add_rates(evaluation, rates, rule->scaled ? &joined : NULL, checks, count) : count;
    if (__builtin_expect(rates == &abroad, 0) && rule->global->wait_ns > 0)
        deny_nothing(check, end - count + 1);
    return end;
}

/* The checks of a rule that is `number`, or of its like for others. */
static int build(struct rules_evaluation *evaluation, const struct rules_rule *rule,
                 uint32_t number, struct weir_check checks[WEIR_CHECKS_MAX], int count)
{
    if (__builtin_expect(count == WEIR_CHECKS_MAX, 0))
        return rules_key_missing(evaluation, rule) ? count : rules_too_many(evaluation);
    struct weir_check *check = &checks[count];
    weir_check_begin(check, number, rule->flags, rule->on_store_error);
    int err = rules_key_build(evaluation, rule, check);
    if (err == RULES_KEY_MISSING)
        return count;
    if (!rule->plain || err < 0 || (check->flags & WEIR_CHECK_ALWAYS_DENY) != 0)
        return build_more(evaluation, rule, checks, count, err);
    check->cost = multiply(rule->cost, evaluation->request->cost);
    check->limit = rule->rates.limits;
    return count + 1;
}

/* Whether a check of the rule is made from its one rate, the same for all callers. */
static bool is_plain(const struct rules_rule *rule)
{
    const struct rules_rates *rates = &rule->rates;
    return rates->limits && rates->count == 1 && !rates->states && !rule->plans &&
           !rule->personal && !rule->costs && !rule->global && !rule->scaled &&
           rule->enforce == 100;
}

void rules_checks_prepare(struct weir_rules *rules)
{
    for (uint32_t i = 0; i < rules->rule_count; i++) {
        struct rules_rule *rule = &rules->rules[i];
        rule->plain = is_plain(rule);
        rules_key_prepare(rules, rule, rule->enforce == 100);
    }
    for (uint32_t i = 0; i < rules->penalty_count; i++)
        rules_key_prepare(rules, &rules->penalties[i].strikes, true);
}

int rules_checks_build(struct rules_evaluation *evaluation, uint32_t number,
                       struct weir_check checks[WEIR_CHECKS_MAX], int count)
{
    return build(evaluation, &evaluation->rules->rules[number], number, checks, count);
}

/* What this limit could borrow, beside `count` checks. Returns 0 or an error. */
static int add_loan(struct rules_evaluation *evaluation, uint32_t number, int count,
                    struct weir_loans *loans)
{
    const struct rules_loan *from = evaluation->rules->rules[number].loan;
    const struct rules_rule *lender = &from->lender;
    struct weir_loan loan = {number, from->pool, loans->check_count, 0};
    for (uint16_t i = 0; i < loans->count; i++) {
        if (loans->loans[i].pool == from->pool) {
            loan.first = loans->loans[i].first;
            loan.count = loans->loans[i].count;
        }
    }
    if (loan.count == 0) {
        if ((lender->when & evaluation->query->resting) != 0 ||
            rules_key_missing(evaluation, lender))
            return 0;
        int end = build(evaluation, lender, from->pool, loans->checks, loans->check_count);
        if (end == WEIR_ERR_SYNTAX)
            return 0; /* a bad cost */
        if (end >= 0 && end + count > WEIR_CHECKS_MAX)
            end = rules_too_many(evaluation);
        if (end < 0)
            return end;
        if ((loans->checks[loan.first].flags & WEIR_CHECK_ALWAYS_DENY) != 0)
            return 0;
        loan.count = (uint16_t)(end - loan.first);
        loans->check_count = (uint16_t)end;
    }
    loans->loans[loans->count++] = loan;
    return 0;
}

/* What the limits of these checks could borrow: all checks are there. Returns 0 or an error. */
static int add_loans(struct rules_evaluation *evaluation, const struct weir_check *checks,
                     int count, struct weir_loans *loans)
{
    uint32_t last = RULES_NONE;
    for (int i = 0; i < count; i++) {
        uint32_t rule = checks[i].rule;
        bool first = rule != last;
        last = rule;
        if (!first || !evaluation->rules->rules[rule].loan || !checks[i].limit ||
            checks[i].scale != 0)
            continue;
        int err = add_loan(evaluation, rule, count, loans);
        if (err < 0)
            return err;
    }
    return 0;
}

int rules_unless(const struct rules_rule *rule, const struct weir_check *checks, int count)
{
    for (int i = 0; i < count && rule->unless_count > 0; i++) {
        uint32_t low = 0, high = rule->unless_count;
        while (low < high) {
            uint32_t middle = low + (high - low) / 2;
            if (rule->unless[middle] == checks[i].rule)
                return i;
            if (rule->unless[middle] < checks[i].rule)
                low = middle + 1;
            else
                high = middle;
        }
    }
    return -1;
}

/* What is known of the client before any limit: whether it is refused. */
static bool find_client(struct rules_evaluation *evaluation)
{
    if (evaluation->query->missing && rules_standing_missing(evaluation))
        return true;
    if (evaluation->query->map)
        rules_standing_prefetch(evaluation);
    if (evaluation->rules->score)
        rules_score_prefetch(evaluation);
    if (evaluation->query->map && rules_standing_find(evaluation))
        return true;
    if (evaluation->rules->score)
        rules_score_find(evaluation);
    return false;
}

int weir_rules_checks(const struct weir_rules_query *query, struct weir_check *checks)
{
    const struct weir_rules *rules = query->rules;
    struct weir_loans *loans = query->loans;
    struct rules_evaluation evaluation;
    uint32_t matched[RULES_MATCHED_MAX];
    int err = rules_begin(&evaluation, query);
    bool refused = false, looks = query->map || query->missing || rules->score;
    if (__builtin_expect(looks, 0) && err == 0)
        refused = find_client(&evaluation);
    if (__builtin_expect(rules->denies_unknown, 0) && query->standing) {
        query->standing->unknown = false;
        query->standing->missing = query->standing->missing && query->missing;
        refused = refused || (err == 0 && query->refuses && rules_refuse_unknown(&evaluation));
    }
    int found = err < 0 ? err : refused ? 0 : rules_find(&evaluation, matched);
    int count = found < 0 ? found : 0;
    for (int i = 0; i < found && count >= 0; i++)
        if (rules_unless(&rules->rules[matched[i]], checks, count) < 0)
            count = rules_checks_build(&evaluation, matched[i], checks, count);
    if (loans) {
        loans->count = loans->check_count = 0;
        if (count >= 0 && rules->lends) {
            err = add_loans(&evaluation, checks, count, loans);
            count = err < 0 ? err : count;
        }
    }
    if (query->strikes) {
        query->strikes->count = 0;
        bool looked_for = query->map || query->strikes->without_map;
        if (count >= 0 && looked_for && rules->penalty_count > 0) {
            err = rules_strikes_find(&evaluation, refused, query->strikes);
            count = err < 0 ? err : count;
        }
    }
    if (query->identity)
        *query->identity = evaluation.identity;
    if (query->class)
        *query->class = evaluation.class;
    if (query->place)
        rules_place_of(&evaluation, query->place);
    if (refused && evaluation.error == WEIR_ERR_STORE)
        return 0; /* for any user of that address */
    /* As long as the caller is not known, the checks may be wrong. */
    return evaluation.error < 0 ? evaluation.error : count;
}
