/* SPDX-License-Identifier: Apache-2.0 */
/* see penalty.h */
#include "feature/penalties/rules/penalty.h"

#include <string.h>

#include "core/bytes.h"
#include "core/text/siphash.h"
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

bool weir_rules_strikes(const struct weir_rules *rules, unsigned status)
{
    for (uint32_t i = 0; i < rules->penalty_count; i++)
        if (weir_rules_penalty_outcome(rules, i, status))
            return true;
    return false;
}

static void mix(uint64_t hash[2], const void *data, size_t size)
{
    const uint64_t key[2] = {hash[0], hash[1]};
    weir_siphash128(key, data, size, hash);
}

/* Numbers one by one: structs have gaps. */
uint64_t weir_penalty_print(const struct weir_penalty *penalty,
                            const struct weir_standing_kind *kind, const struct weir_limit *limit)
{
    const struct weir_ladder *ladder = &penalty->ladder;
    const uint64_t numbers[] = {kind->address,      kind->bits4,      kind->bits6,
                                kind->secret,       limit->spec.rate, limit->spec.window_ns,
                                ladder->forgive_ns, ladder->count,    penalty->while_suspended};
    uint64_t hash[2] = {0, 0};
    mix(hash, penalty->name.data, penalty->name.size);
    mix(hash, kind->name.data, kind->name.size);
    mix(hash, numbers, sizeof numbers);
    for (uint8_t i = 0; i < ladder->count; i++) {
        const uint64_t step[] = {ladder->steps[i].term_ns, ladder->steps[i].level};
        mix(hash, step, sizeof step);
    }
    return hash[0];
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
