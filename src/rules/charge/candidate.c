/* SPDX-License-Identifier: Apache-2.0 */
/* see candidate.h */
#include "rules/charge/candidate.h"

#include "feature/region/rules/region.h"
#include "rules/compiled.h"
#include "rules/states.h"

/* Tell a candidate's states from the limit's, and from each other: the hash is as good as random,
 * and stays that. Odd numbers. */
#define CANDIDATE_DOMAIN_0 UINT64_C(0x65746164696e6463)
#define CANDIDATE_DOMAIN_1 UINT64_C(0x6465696c70707573)

bool weir_rules_any_candidate(const struct weir_rules *rules)
{
    return rules->tries;
}

bool weir_rules_has_candidate(const struct weir_rules *rules, const struct weir_check *live)
{
    return live->rule < rules->rule_count && (live->flags & WEIR_CHECK_ALWAYS_DENY) == 0 &&
           rules->rules[live->rule].candidate.count > 0;
}

uint16_t weir_rules_candidate(const struct weir_rules *rules, const struct weir_check *live,
                              struct weir_check checks[WEIR_RATES_MAX])
{
    const unsigned kept = WEIR_CHECK_CHARGE_ON_DENY | WEIR_CHECK_LEASED;
    if (!weir_rules_has_candidate(rules, live))
        return 0;
    const struct rules_rule *rule = &rules->rules[live->rule];
    const struct rules_rates *rates = &rule->candidate;
    struct rules_rates abroad;
    if (rates->abroad)
        rates = rules_rates_here(rules, rule, live->key, rates, &abroad);
    /* Of one key there is one candidate, whichever state its plan counts in. */
    uint32_t state = live->limit ? rules_state_called(live->limit->name) : 0;
    for (uint8_t i = 0; i < rates->count; i++) {
        struct weir_check *check = &checks[i];
        *check = *live;
        check->limit = &rates->limits[i];
        check->flags = (uint8_t)(live->flags & kept);
        check->scale = check->scale_kind = check->scale_alone =
            0; /* a candidate is tried at 100 % */
        check->challenged = check->floor = 0;
        if (check->limit->spec.algorithm == WEIR_LEAKY_QUEUE)
            check->flags &= (uint8_t)~WEIR_CHECK_LEASED;
        rules_state_choose(check->hash, state);
        check->hash[0] ^= CANDIDATE_DOMAIN_0 * (i + 1);
        check->hash[1] ^= CANDIDATE_DOMAIN_1 * (i + 1);
    }
    return rates->count;
}
