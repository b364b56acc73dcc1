/* SPDX-License-Identifier: Apache-2.0 */
/* see region.h */
#include "feature/region/rules/region.h"

#include <string.h>

#include "core/bytes.h"

/* The value of the key's attribute `number` in the text: "user=alice,region=eu". Values have no
 * commas of their own. */
static struct weir_bytes value_in(const struct rules_rule *rule, uint32_t number,
                                  struct weir_bytes key)
{
    const struct rules_key_part *part = &rule->key[number];
    const char *at = key.data, *end = key.data + key.size;
    for (uint32_t i = 0; i < number && at; i++) {
        at = memchr(at, ',', (size_t)(end - at));
        at = at ? at + 1 : NULL;
    }
    if (!at || end - at < part->label_size || memcmp(at, part->label, part->label_size) != 0)
        return (struct weir_bytes){"", 0}; /* another attribute, by on_missing */
    at += part->label_size;
    const char *comma = memchr(at, ',', (size_t)(end - at));
    return (struct weir_bytes){at, (size_t)((comma ? comma : end) - at)};
}

/* The region that an attribute of the key names; -1: none. */
static int find_named(const struct weir_rules *rules, const struct rules_rule *rule,
                      struct weir_bytes key)
{
    const struct rules_regions *regions = rules->regions;
    struct weir_bytes value = value_in(rule, rule->global->part, key);
    for (uint32_t i = 0; i < regions->count; i++)
        if (weir_bytes_equal(value, regions->list[i].name))
            return (int)i;
    return -1;
}

uint32_t rules_home_of(const struct weir_rules *rules, const struct rules_rule *rule,
                       struct weir_bytes key)
{
    const struct rules_regions *regions = rules->regions;
    const struct rules_global *global = rule->global;
    if (global->by == RULES_HOME_NAMED)
        return global->region;
    int named = global->by == RULES_HOME_ATTRIBUTE ? find_named(rules, rule, key) : -1;
    return named >= 0 ? (uint32_t)named : rules_region_home(regions->list, regions->count, key);
}

/* As rules_home_of, and whether it is the same by the weights of the other file. */
bool rules_is_moving(const struct weir_rules *rules, const struct rules_rule *rule,
                     struct weir_bytes key)
{
    const struct rules_regions *regions = rules->regions;
    const struct rules_global *global = rule->global;
    if (!global->moving)
        return false;
    if (!regions->weights_move || global->by == RULES_HOME_NAMED)
        return true;
    int named = global->by == RULES_HOME_ATTRIBUTE ? find_named(rules, rule, key) : -1;
    if (named >= 0)
        return regions->list[named].weight == 0 || regions->before[named].weight == 0;
    return rules_region_home(regions->list, regions->count, key) !=
           rules_region_home(regions->before, regions->count, key);
}

const struct rules_rates *rules_rates_here(const struct weir_rules *rules,
                                           const struct rules_rule *rule, struct weir_bytes key,
                                           const struct rules_rates *rates, struct rules_rates *own)
{
    if (!rates->abroad)
        return rates;
    bool home = rules_home_of(rules, rule, key) == rules->regions->self;
    if (home && !rules_is_moving(rules, rule, key))
        return rates;
    *own = *rates;
    own->limits = rates->abroad;
    return own;
}

/* Of the limits that are a rule's floors, the home's part in the place of `floor`, and whether it
 * can lend; NULL: it is none of them. */
static const struct weir_limit *home_part(const struct weir_rules *rules,
                                          const struct rules_rule *rule,
                                          const struct weir_limit *floor, bool *lends)
{
    uint32_t sets = !rule->global ? 0 : rule->plans ? rules->plan_count : 1;
    for (uint32_t set = 0; set < sets; set++) {
        const struct rules_rates *rates = rule->plans ? &rule->plans[set] : &rule->rates;
        for (uint8_t i = 0; rates->abroad && i < rates->count; i++)
            if (floor == &rates->abroad[i]) {
                *lends = rule->global->lends && (rates->lent >> i & 1) != 0;
                return &rates->limits[i];
            }
    }
    return NULL;
}

bool weir_rules_is_floor(const struct weir_rules *rules, uint32_t rule,
                         const struct weir_limit *limit)
{
    bool lends;
    return home_part(rules, &rules->rules[rule], limit, &lends);
}

bool weir_rules_is_by_other_home(const struct weir_rules *rules, const struct weir_check *check)
{
    const struct rules_rule *rule = &rules->rules[check->rule];
    return rule->global && !rule->global->equal && check->limit &&
           !weir_rules_is_floor(rules, check->rule, check->limit) &&
           rules_home_of(rules, rule, check->key) != rules->regions->self;
}

bool weir_rules_home(const struct weir_rules *rules, const struct weir_check *check,
                     struct weir_home *home)
{
    const struct rules_rule *rule;
    if (check->rule >= rules->rule_count || !check->limit)
        return false;
    rule = &rules->rules[check->rule];
    if (!rule->global || (!rule->global->lends && rule->global->wait_ns == 0))
        return false;
    home->limit = home_part(rules, rule, check->limit, &home->lends);
    if (!home->limit || rules_is_moving(rules, rule, check->key))
        return false;
    home->region = rules->regions->lender[rules_home_of(rules, rule, check->key)];
    home->wait_ns = rule->global->wait_ns;
    return home->region != RULES_NO_LENDER;
}

bool weir_rules_regions_reached(const struct weir_rules *rules)
{
    return rules->regions && rules->regions->reached;
}

bool weir_rules_regions_wait(const struct weir_rules *rules)
{
    return rules->regions && rules->regions->waits;
}

bool weir_rules_is_lent(const struct weir_rules *rules, uint32_t rule)
{
    const struct rules_global *global = rules->rules[rule].global;
    return global && global->lends;
}

bool weir_rules_waits(const struct weir_rules *rules, uint32_t rule)
{
    const struct rules_global *global = rules->rules[rule].global;
    return global && global->wait_ns > 0;
}

const struct weir_store_settings *weir_rules_region_store(const struct weir_rules *rules,
                                                          uint32_t region, struct weir_bytes *name)
{
    const struct rules_regions *regions = rules->regions;
    if (!regions || region >= regions->count || region == regions->self)
        return NULL;
    *name = regions->list[region].name;
    return &regions->store[region];
}

/* The region of that name; its number is `count` where there is none. */
static uint32_t find_region(const struct rules_regions *regions, struct weir_bytes name)
{
    uint32_t i = 0;
    while (i < regions->count && !weir_bytes_equal(regions->list[i].name, name))
        i++;
    return i;
}

bool weir_rules_number_lenders(struct weir_rules *rules, const struct weir_rules *started)
{
    struct rules_regions *regions = rules->regions;
    const struct rules_regions *from = started->regions;
    bool same = regions && from && regions->count == from->count;
    for (uint32_t i = 0; regions && i < regions->count; i++) {
        uint32_t at = from ? find_region(from, regions->list[i].name) : 0;
        bool known = from && at < from->count && at != from->self;
        regions->lender[i] = known ? (uint8_t)at : RULES_NO_LENDER;
        same &= known || i == regions->self;
    }
    return same;
}

bool weir_rules_is_moving(const struct weir_rules *rules, uint32_t rule)
{
    const struct rules_global *global = rules->rules[rule].global;
    return global && global->moving;
}

uint32_t weir_rules_moving(const struct weir_rules *rules, uint64_t *wait_ns)
{
    uint32_t count = 0;
    *wait_ns = 0;
    for (uint32_t i = 0; i < rules->rule_count; i++) {
        if (!weir_rules_is_moving(rules, i))
            continue;
        uint64_t memory_ns = rules->rules[i].global->memory_ns;
        *wait_ns = memory_ns > *wait_ns ? memory_ns : *wait_ns;
        count++;
    }
    return count;
}

bool weir_rules_has_regions(const struct weir_rules *rules)
{
    return rules->regions;
}

struct weir_bytes weir_rules_region_self(const struct weir_rules *rules)
{
    const struct rules_regions *regions = rules->regions;
    return regions ? regions->list[regions->self].name : (struct weir_bytes){"", 0};
}

bool weir_rules_region(const struct weir_rules *rules, uint32_t rule, struct weir_bytes key,
                       struct weir_region_info *info)
{
    const struct rules_rule *of = &rules->rules[rule];
    const struct rules_regions *regions = rules->regions;
    if (!of->global)
        return false;
    bool moving = rules_is_moving(rules, of, key);
    *info = (struct weir_region_info){
        .self = regions->list[regions->self].name,
        .home = regions->list[rules_home_of(rules, of, key)].name,
        .floor = of->global->floor,
        .home_share = of->global->home,
        .equal = of->global->equal,
        .lends = of->global->lends && !moving,
        .wait_ns = moving ? 0 : of->global->wait_ns,
        .moving = moving,
    };
    return true;
}
