/* SPDX-License-Identifier: Apache-2.0 */
/* see scale.h */
#include "rules/charge/scale.h"

#include "core/scale.h"
#include "feature/score/rules/score.h"
#include "rules/compiled.h"

/* --- Joining ---------------------------------------------------------------------------------- */

void weir_rules_join_scale(struct weir_joined_scale *joined, uint32_t percent,
                           enum weir_scale_kind kind, bool alone)
{
    if (percent >= 100)
        return;
    if (alone && (joined->alone == 0 || percent < joined->alone))
        joined->alone = (uint8_t)percent;
    if (joined->percent != 0 && percent > joined->percent)
        return;
    if (percent == joined->percent && kind == WEIR_SCALE_RESERVE)
        return;
    joined->percent = (uint8_t)percent;
    joined->kind = (uint8_t)kind;
}

void weir_rules_scale_check(struct weir_check *check, const struct weir_joined_scale *joined)
{
    struct weir_check alone = *check;
    check->scale = joined->percent & 0x7f;
    check->scale_kind = joined->kind & 1;
    check->scale_alone = 0;
    if (joined->alone == 0 || joined->kind != WEIR_SCALE_RATE)
        return;
    alone.scale = joined->alone & 0x7f;
    alone.scale_kind = WEIR_SCALE_RATE;
    if (joined->alone == joined->percent || scale_is_shallow(&alone)) {
        check->scale = alone.scale;
        check->scale_alone = 1;
    }
}

/* --- What is alone ---------------------------------------------------------------------------- */

/* Whether a key has the values of a part, or longer prefixes of the same addresses. */
static bool contains(const struct rules_rule *rule, const struct rules_key_part *part)
{
    for (uint32_t i = 0; i < rule->key_count; i++)
        if (rule->key[i].source == part->source && rule->key[i].attribute == part->attribute &&
            rule->key[i].bits4 >= part->bits4 && rule->key[i].bits6 >= part->bits6)
            return true;
    return false;
}

static bool contains_key(const struct rules_rule *rule, const struct rules_rule *of)
{
    for (uint32_t i = 0; i < of->key_count; i++)
        if (!contains(rule, &of->key[i]))
            return false;
    return of->key_count > 0;
}

/* Where another attribute takes the place of a missing one, a key of several may lack what is
 * scaled. */
static void find_alone(const struct weir_rules *rules, struct rules_rule *rule)
{
    bool whole =
        rule->key_count == 1 || (rule->instead_count == 0 && rule->missing != RULES_SHARED);
    rule->alone_kinds = 0;
    for (size_t i = 0; whole && i < rules->settings.standing->kinds_count; i++)
        if (contains_key(rule, &rules->standing.kinds[i]))
            rule->alone_kinds |= (uint16_t)(1U << i);
    rule->alone_class = whole && rules->score && contains_key(rule, rules->score->key);
}

void rules_find_alone(struct weir_rules *rules)
{
    for (uint32_t i = 0; i < rules->rule_count; i++)
        find_alone(rules, &rules->rules[i]);
    for (uint32_t i = 0; i < rules->rule_count; i++)
        if (rules->rules[i].lends)
            find_alone(rules, &rules->rules[i].lends->lender);
}

/* --- What is not ------------------------------------------------------------------------------ */

/* The burst from which on one request at `percent` weighs at most the depth of each bucket; 0: it
 * does. */
static uint64_t too_shallow(const struct rules_rates *rates, uint8_t percent)
{
    for (uint8_t i = 0; rates->limits && i < rates->count; i++) {
        const struct weir_check check = {
            .limit = &rates->limits[i], .scale = percent & 0x7f, .scale_kind = WEIR_SCALE_RATE};
        if (percent < 100 && scale_is_shallow(&check))
            return (100U + percent - 1) / percent;
    }
    return 0;
}

static uint8_t smallest(const uint8_t *percents, size_t count)
{
    uint8_t least = 100;
    for (size_t i = 0; percents && i < count; i++)
        least = percents[i] != 0 && percents[i] < least ? percents[i] : least;
    return least;
}

bool weir_rules_one_fills(const struct weir_rules *rules, uint32_t rule, uint64_t *burst)
{
    const struct rules_rule *of = &rules->rules[rule];
    size_t kinds = rules->settings.standing->kinds_count;
    bool all_kinds = of->alone_kinds == (1U << kinds) - 1;
    uint8_t percent = all_kinds ? 100 : smallest(of->by_standing, WEIR_STANDING_LEVELS);
    uint8_t by_class = of->alone_class ? 100 : smallest(of->by_class, WEIR_CLASSES);
    percent = by_class < percent ? by_class : percent;
    *burst = too_shallow(&of->rates, percent);
    for (uint32_t i = 0; of->plans && i < rules->plan_count && *burst == 0; i++)
        *burst = too_shallow(&of->plans[i], percent);
    return *burst != 0;
}
