/* SPDX-License-Identifier: Apache-2.0 */
/* see sticky.h */
#include "feature/sticky/rules/sticky.h"

#include <string.h>

#include "core/bytes.h"
#include "feature/sticky/rules/peers.h"
#include "rules/compiled.h"
#include "rules/load/numbers.h"

uint32_t weir_rules_sticky_home(const struct weir_rules *rules, uint64_t tag)
{
    const struct weir_sticky_settings *sticky = &rules->settings.sticky;
    struct rules_region nodes[RULES_PEERS_MAX];
    char bytes[8];
    for (uint32_t i = 0; i < sticky->count; i++)
        nodes[i] = (struct rules_region){weir_bytes_of(sticky->peers[i].name), 1};
    for (unsigned i = 0; i < sizeof bytes; i++)
        bytes[i] = (char)(tag >> 8 * i & 0xff);
    return rules_region_home(nodes, sticky->count, (struct weir_bytes){bytes, sizeof bytes});
}

static bool is_like(const struct weir_limit *limit, const struct weir_limit_spec *spec)
{
    const struct weir_limit_spec *own = &limit->spec;
    return own->algorithm == spec->algorithm && own->rate == spec->rate &&
           own->window_ns == spec->window_ns && own->burst == spec->burst &&
           own->segments == spec->segments && own->strict == spec->strict &&
           own->rollover == spec->rollover && own->calendar == spec->calendar;
}

static const struct weir_limit *find_in(const struct rules_rates *rates, struct weir_bytes name,
                                        const struct weir_limit_spec *spec)
{
    for (uint8_t i = 0; i < rates->count; i++) {
        const struct weir_limit *limit = &rates->limits[i];
        if (limit->name && weir_bytes_are(name, limit->name) && is_like(limit, spec))
            return limit;
    }
    return NULL;
}

/* The rule whose limits' states have this name; NULL: there is none. */
static const struct rules_rule *rule_of(const struct weir_rules *rules, struct weir_bytes name)
{
    const char *mark = name.size > 0 ? memchr(name.data, '#', name.size) : NULL;
    size_t size = mark ? (size_t)(mark - name.data) : name.size; /* states.h: of a further rate */
    int number = rules_rule_find(rules, (struct weir_bytes){name.data, size});
    return number < 0 ? NULL : &rules->rules[number];
}

const struct weir_limit *weir_rules_limit_like(const struct weir_rules *rules,
                                               struct weir_bytes name,
                                               const struct weir_limit_spec *spec)
{
    if (name.size == 0)
        return is_like(&rules->idempotency, spec) ? &rules->idempotency : NULL;
    const struct rules_rule *rule = rule_of(rules, name);
    const struct weir_limit *found = rule ? find_in(&rule->rates, name, spec) : NULL;
    for (uint32_t p = 0; rule && !found && rule->plans && p < rules->plan_count; p++)
        found = find_in(&rule->plans[p], name, spec);
    return found;
}

static bool take_bounds(const struct weir_limit_spec *from, struct weir_limit_spec *spec)
{
    if (from->algorithm != WEIR_QUOTA || from->calendar != spec->calendar)
        return false;
    spec->bounds = from->bounds;
    spec->bound_count = from->bound_count;
    return true;
}

bool weir_rules_quota_bounds(const struct weir_rules *rules, struct weir_bytes name,
                             struct weir_limit_spec *spec)
{
    const struct rules_rule *rule = rule_of(rules, name);
    if (!rule || rule->algorithm != WEIR_QUOTA)
        return false;
    bool found = rule->limit_template && take_bounds(&rule->limit_template->spec, spec);
    for (uint8_t i = 0; !found && i < rule->rates.count; i++)
        found = take_bounds(&rule->rates.limits[i].spec, spec);
    for (uint32_t p = 0; !found && rule->plans && p < rules->plan_count; p++)
        for (uint8_t i = 0; !found && i < rule->plans[p].count; i++)
            found = take_bounds(&rule->plans[p].limits[i].spec, spec);
    return found;
}
