/* SPDX-License-Identifier: Apache-2.0 */
/* see states.h */
#include "rules/states.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/algorithm.h"
#include "core/text/siphash.h"

/* Numbers of states beside the reference's have it, and the others don't. */
#define STATE_BESIDE UINT32_C(0x80000000)

uint32_t rules_kind_hash(const struct weir_limit_spec *spec)
{
    static const uint64_t public[2] = {0, 0};
    bool any = algorithm_has(spec->algorithm, ALGORITHM_ANY_WINDOW) ||
               algorithm_has(spec->algorithm, ALGORITHM_CALENDAR);
    const uint64_t numbers[] = {
        (uint64_t)spec->algorithm,
        any ? 0 : spec->window_ns,
        spec->segments,
        (uint64_t)spec->strict,
        spec->calendar,
        spec->rollover > 0,
    };
    uint64_t hash[2];
    weir_siphash128(public, numbers, sizeof(numbers), hash);
    return (uint32_t)hash[0];
}

struct rules_rates rules_states_reference(const struct weir_rules *rules,
                                          const struct rules_rule *rule)
{
    if (!rule->plans)
        return rule->rates;
    if (rules->default_plan != RULES_NONE && rule->plans[rules->default_plan].count > 0)
        return rule->plans[rules->default_plan];
    for (uint32_t p = 0; p < rules->plan_count; p++)
        if (rule->plans[p].count > 0)
            return rule->plans[p];
    return (struct rules_rates){.limits = NULL};
}

/* The first state of the reference, not taken yet, that converts to the limit's; WEIR_RATES_MAX:
 * none. */
static uint32_t find_state(const struct rules_rates *reference, const struct weir_limit *limit,
                           bool same_window, uint32_t taken)
{
    for (uint32_t i = 0; i < reference->count; i++) {
        const struct weir_limit *other = &reference->limits[i];
        bool fits = !same_window || other->spec.window_ns == limit->spec.window_ns;
        if ((taken >> i & 1) == 0 && fits && weir_limit_converts(other, limit))
            return i;
    }
    return WEIR_RATES_MAX;
}

void rules_states_of(const struct rules_rates *reference, const struct weir_limit *limits,
                     uint32_t count, uint32_t states[WEIR_RATES_MAX])
{
    uint32_t taken = 0, found = 0;
    for (int pass = 0; pass < 2; pass++) {
        for (uint32_t i = 0; i < count; i++) {
            uint32_t state = (found >> i & 1) != 0
                                 ? WEIR_RATES_MAX
                                 : find_state(reference, &limits[i], pass == 0, taken);
            if (state < WEIR_RATES_MAX) {
                states[i] = state;
                found |= UINT32_C(1) << i;
                taken |= UINT32_C(1) << state;
            }
        }
    }
    /* Buckets of one kind may be several: their order tells them apart. */
    for (uint32_t i = 0; i < count; i++) {
        uint32_t kind = rules_kind_hash(&limits[i].spec), before = 0;
        for (uint32_t k = 0; k < i; k++)
            before += (found >> k & 1) == 0 && rules_kind_hash(&limits[k].spec) == kind;
        if ((found >> i & 1) == 0)
            states[i] = STATE_BESIDE | (kind + before);
    }
}

size_t rules_state_name(const struct rules_rule *rule, uint32_t state,
                        char text[RULES_STATE_NAME_MAX])
{
    int size = state == 0 ? snprintf(text, RULES_STATE_NAME_MAX, "%s", rule->name)
                          : snprintf(text, RULES_STATE_NAME_MAX, "%s#%lu", rule->name,
                                     (unsigned long)state + 1);
    return (size_t)size;
}

uint32_t rules_state_called(const char *name)
{
    const char *mark = strchr(name, '#');
    return mark ? (uint32_t)(strtoul(mark + 1, NULL, 10) - 1) : 0;
}
