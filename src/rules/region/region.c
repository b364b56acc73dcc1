/* SPDX-License-Identifier: Apache-2.0 */
/* see region.h */
#include "rules/region/region.h"

#include "core/bytes.h"
#include "rules/match/key.h"

/* The region that the value of the key's attribute names; `count`: none. */
static uint32_t named_by(struct rules_evaluation *evaluation, const struct rules_rule *rule,
                         const struct rules_key_part *part)
{
    const struct rules_regions *regions = evaluation->rules->regions;
    struct weir_bytes value = {NULL, 0};
    if (!rules_key_present(evaluation, rule, part, &value))
        return regions->count;
    uint32_t i = 0;
    while (i < regions->count && !weir_bytes_equal(value, regions->list[i].name))
        i++;
    return i;
}

uint32_t rules_home_of(struct rules_evaluation *evaluation, const struct rules_rule *rule,
                       const struct weir_check *check)
{
    const struct rules_regions *regions = evaluation->rules->regions;
    const struct rules_global *global = rule->global;
    if (global->by == RULES_HOME_NAMED)
        return global->region;
    uint32_t home = regions->count;
    if (global->by == RULES_HOME_ATTRIBUTE)
        home = named_by(evaluation, rule, &rule->key[global->part]);
    if (home == regions->count)
        home = rules_region_home(regions->list, regions->count, check->key);
    return home;
}

const struct rules_rates *rules_rates_here(struct rules_evaluation *evaluation,
                                           const struct rules_rule *rule,
                                           const struct weir_check *check,
                                           const struct rules_rates *rates, struct rules_rates *own)
{
    if (!rates->abroad ||
        rules_home_of(evaluation, rule, check) == evaluation->rules->regions->self)
        return rates;
    *own = *rates;
    own->limits = rates->abroad;
    return own;
}
