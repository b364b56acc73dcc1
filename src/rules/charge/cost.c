/* SPDX-License-Identifier: Apache-2.0 */
/* see cost.h */
#include "rules/charge/cost.h"

#include <stdio.h>

#include "core/bytes.h"
#include "rules/compiled.h"
#include "rules/load/numbers.h"
#include "rules/source.h"

static bool in_path(const struct rules_evaluation *evaluation, uint32_t atom)
{
    for (uint32_t i = 0; i < evaluation->path_count && i < RULES_PATH_ATOMS_MAX; i++)
        if (evaluation->path_atoms[i] == atom)
            return true;
    return false;
}

static uint64_t of_route(struct rules_evaluation *evaluation, const struct rules_cost *costs)
{
    struct weir_bytes method = rules_value(evaluation, WEIR_ATTR_METHOD);
    rules_path_atoms(evaluation);
    for (uint32_t i = 0; i < costs->route_count; i++) {
        const struct rules_route *route = &costs->routes[i];
        bool same = !route->method.data || (method.data && weir_bytes_equal(method, route->method));
        if (same && in_path(evaluation, route->atom))
            return route->cost;
    }
    return costs->otherwise;
}

int weir_rules_cost_source(const struct weir_rules *rules, struct weir_bytes name)
{
    int attribute = weir_rules_source(rules, name.data, name.size).attribute;
    bool is_one =
        attribute >= 0 && (rules->cost_sources[attribute / 64] >> attribute % 64 & 1) != 0;
    return is_one ? attribute : -1;
}

bool weir_rules_cost_is_named(const struct weir_rules *rules, uint32_t rule)
{
    const struct rules_cost *costs = rules->rules[rule].costs;
    return costs && costs->from;
}

bool weir_rules_cost_is_from(const struct weir_rules *rules, uint32_t rule, uint16_t attribute)
{
    return weir_rules_cost_is_named(rules, rule) &&
           rules->rules[rule].costs->attribute == attribute;
}

int rules_cost_of(struct rules_evaluation *evaluation, const struct rules_cost *costs,
                  uint64_t *cost)
{
    if (!costs->from) {
        *cost = of_route(evaluation, costs);
        return 0;
    }
    struct weir_bytes value = rules_value(evaluation, costs->attribute);
    *cost = costs->otherwise;
    if (!value.data)
        return 0;
    uint64_t number;
    bool good = value.size > 0 &&
                weir_digits_parse(&number, value.data, value.size) == (int)value.size &&
                number >= costs->least && number <= costs->most;
    if (good) {
        *cost = number;
    } else if (!costs->lenient) {
        if (evaluation->reason) {
            snprintf(evaluation->reason->text, sizeof(evaluation->reason->text),
                     "%s: must be a whole number from %llu to %llu", costs->name,
                     (unsigned long long)costs->least, (unsigned long long)costs->most);
        }
        return WEIR_ERR_SYNTAX;
    }
    return 0;
}
