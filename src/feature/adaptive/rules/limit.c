/* SPDX-License-Identifier: Apache-2.0 */
/* see limit.h */
#include "feature/adaptive/rules/limit.h"

#include "rules/charge/settle.h"
#include "rules/compiled.h"

const struct weir_adaptive *weir_rules_adaptive(const struct weir_rules *rules, uint32_t *count)
{
    *count = rules->adaptive_count;
    return rules->adaptive;
}

const struct weir_adaptive_limit *weir_rules_adaptive_limits(const struct weir_rules *rules,
                                                             uint32_t *count)
{
    *count = rules->adaptive_limit_count;
    return rules->adaptive_limits;
}

void weir_rules_set_scale(const struct weir_rules *rules, uint32_t place, uint8_t percent)
{
    atomic_store_explicit(&rules->scales[place], percent, memory_order_relaxed);
}

uint8_t weir_rules_scale(const struct weir_rules *rules, uint32_t place)
{
    return atomic_load_explicit(&rules->scales[place], memory_order_relaxed);
}

int weir_rules_scale_of(const struct weir_rules *rules, uint32_t rule)
{
    return rule < rules->rule_count ? (int)rules->rules[rule].adaptive - 1 : -1;
}

bool weir_adaptive_judges(const struct weir_adaptive *adaptive, uint32_t status)
{
    for (size_t i = 0; i < sizeof adaptive->failures && status == 0; i++)
        if (adaptive->failures[i] != 0)
            return false;
    return true;
}

bool weir_adaptive_failed(const struct weir_adaptive *adaptive, uint32_t status,
                          uint64_t latency_ns)
{
    uint32_t bit = status - WEIR_STATUS_MIN;

    if (adaptive->timeout_ns != 0 && latency_ns >= adaptive->timeout_ns)
        return true;
    return status >= WEIR_STATUS_MIN && status <= WEIR_STATUS_MAX &&
           (adaptive->failures[bit / 8] >> bit % 8 & 1) != 0;
}
