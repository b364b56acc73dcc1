/* SPDX-License-Identifier: Apache-2.0 */
/* see top_up.h */
#include "rules/charge/top_up.h"

#include "core/prepaid.h"
#include "rules/compiled.h"
#include "rules/states.h"

/* Tell the state of a top-up from the limit's: the hash is as good as random, and stays that. */
#define TOP_UP_DOMAIN_0 UINT64_C(0x706f742d75702d31)
#define TOP_UP_DOMAIN_1 UINT64_C(0x627567687431b5d7)

bool weir_rules_any_top_up(const struct weir_rules *rules)
{
    return rules->top_ups;
}

bool weir_rules_takes_top_up(const struct weir_rules *rules, uint32_t rule)
{
    return rules->top_ups && rule < rules->rule_count && rules->top_ups[rule];
}

const char *weir_rules_top_up_name(const struct weir_rules *rules, uint32_t rule)
{
    return weir_rules_takes_top_up(rules, rule) ? rules->top_ups[rule]->name : NULL;
}

uint64_t weir_rules_top_up_life(const struct weir_rules *rules, uint32_t rule)
{
    return rules->top_ups[rule]->spec.window_ns;
}

bool weir_rules_top_up(const struct weir_rules *rules, const struct weir_check *live,
                       struct weir_check *check)
{
    if (!live->limit || (live->flags & WEIR_CHECK_ALWAYS_DENY) != 0 ||
        !weir_rules_takes_top_up(rules, live->rule))
        return false;
    *check = *live;
    check->limit = rules->top_ups[live->rule];
    check->flags = 0;
    check->scale = check->scale_kind = check->scale_alone = 0;
    check->floor = check->challenged = 0;
    /* Of one key there is one top-up, whichever state its plan counts in. */
    rules_state_choose(check->hash, rules_state_called(live->limit->name));
    check->hash[0] ^= TOP_UP_DOMAIN_0;
    check->hash[1] ^= TOP_UP_DOMAIN_1;
    return true;
}

bool weir_rules_is_top_up(const struct weir_check *check)
{
    return check->limit && prepaid_is(check->limit);
}
