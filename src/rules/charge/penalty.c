/* SPDX-License-Identifier: Apache-2.0 */
/* see penalty.h */
#include "rules/charge/penalty.h"

#include <string.h>

#include "core/bytes.h"
#include "rules/compiled.h"

uint32_t weir_rules_penalty_count(const struct weir_rules *rules)
{
    return rules->penalty_count;
}

const struct weir_penalty *weir_rules_penalty(const struct weir_rules *rules, uint32_t number)
{
    return &rules->penalties[number].penalty;
}

int weir_rules_penalty_find(const struct weir_rules *rules, struct weir_bytes name)
{
    for (uint32_t i = 0; i < rules->penalty_count; i++)
        if (weir_bytes_equal(rules->penalties[i].penalty.name, name))
            return (int)i;
    return -1;
}

bool weir_rules_penalty_denial(const struct weir_rules *rules, uint32_t number, uint32_t rule)
{
    return rule < rules->rule_count &&
           (rules->penalties[number].denials[rule / 8] >> rule % 8 & 1) != 0;
}

bool weir_rules_penalty_outcomes(const struct weir_rules *rules, uint32_t number)
{
    const struct rules_penalty *penalty = &rules->penalties[number];
    for (size_t i = 0; i < sizeof penalty->statuses; i++)
        if (penalty->statuses[i] != 0)
            return true;
    return false;
}

bool weir_rules_penalty_outcome(const struct weir_rules *rules, uint32_t number, unsigned status)
{
    if (status < 100 || status > 599)
        return false;
    unsigned bit = status - 100;
    return (rules->penalties[number].statuses[bit / 8] >> bit % 8 & 1) != 0;
}

const struct weir_limit *weir_rules_penalty_limit(const struct weir_rules *rules, uint32_t number)
{
    return rules->penalties[number].strikes.rates.limits;
}

bool weir_penalty_entry(const struct weir_penalty_term *term, uint64_t now_ns,
                        struct weir_standing_entry *entry)
{
    const struct weir_penalty *penalty = term->penalty;
    const struct weir_ladder_step *step = weir_ladder_at(&penalty->ladder, term->state);
    if (!step || term->state->until_ns <= now_ns)
        return false;
    *entry = (struct weir_standing_entry){.since_ns = now_ns,
                                          .until_ns = term->state->until_ns,
                                          .level = step->level,
                                          .origin = WEIR_STANDING_BY_PENALTY,
                                          .reason_size = (uint8_t)penalty->name.size};
    memcpy(entry->reason, penalty->name.data, penalty->name.size);
    return true;
}

int weir_penalty_strictest(const struct weir_penalty_term *terms, uint32_t count, uint64_t now_ns,
                           struct weir_standing_entry *entry, uint64_t *due_ns)
{
    struct weir_standing_entry one;
    uint64_t last_ns = 0;
    int strictest = -1;
    *due_ns = 0;
    for (uint32_t i = 0; i < count; i++) {
        if (!weir_penalty_entry(&terms[i], now_ns, &one))
            continue;
        last_ns = one.until_ns > last_ns ? one.until_ns : last_ns;
        if (strictest >= 0 && !weir_standing_before(&one, entry))
            continue;
        *entry = one;
        strictest = (int)i;
    }
    if (strictest >= 0 && entry->until_ns < last_ns)
        *due_ns = entry->until_ns;
    return strictest;
}
