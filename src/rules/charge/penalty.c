/* SPDX-License-Identifier: Apache-2.0 */
/* see penalty.h */
#include "rules/charge/penalty.h"

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
