/* SPDX-License-Identifier: Apache-2.0 */
/* see cost.h */
#include "rules/load/limit/cost.h"

#include <stdio.h>
#include <string.h>

#include "rules/charge/cost.h"
#include "rules/load/attribute_checks.h"
#include "rules/load/attributes.h"
#include "rules/load/fields.h"
#include "rules/load/limit/limit_fields.h"
#include "rules/load/limit/match.h"
#include "rules/match/pattern.h"

/* More than the largest bucket is never admitted by anything. */
#define COST_MAX WEIR_BUCKET_MAX

static bool read_cost(struct rules_loader *loader, const struct rules_node *node, const char *what,
                      uint64_t *cost)
{
    return rules_read_number(loader, node, what, 0, COST_MAX, cost);
}

/* --- A table ---------------------------------------------------------------------------------- */

/* "POST /export" or "/search" into a route; false after a problem. */
static bool read_route(struct rules_loader *loader, const struct rules_node *node,
                       struct rules_route *route)
{
    struct weir_bytes text;
    struct weir_reason reason;
    if (!rules_read_text(loader, node, "cost", &text))
        return false;
    const char *space = memchr(text.data, ' ', text.size);
    struct weir_bytes path = text;
    if (space) {
        struct weir_bytes method = {text.data, (size_t)(space - text.data)};
        if (!rules_allow_method(loader, node, WEIR_ATTR_METHOD, method))
            return false;
        route->method.data = rules_keep_text(loader, method.data, method.size);
        route->method.size = method.size;
        path = (struct weir_bytes){space + 1, text.size - method.size - 1};
    }
    route->path = rules_keep_text(loader, path.data, path.size);
    struct weir_path_pattern pattern;
    if (rules_read_pattern(loader, node, path, &pattern, &route->atom, &reason) < 0) {
        if (!loader->no_memory)
            rules_problem(loader, node, "%s", reason.text);
        return false;
    }
    return true;
}

static void load_table(struct rules_loader *loader, const struct rules_node *node,
                       struct rules_cost *costs)
{
    struct rules_route *routes = rules_keep(loader, (node->size / 2 + 1) * sizeof(*routes));
    costs->routes = routes;
    if (node->size / 2 > RULES_ROUTES_MAX) {
        rules_problem(loader, node, "a table of costs has at most %d routes", RULES_ROUTES_MAX);
        return;
    }
    for (uint32_t i = 0; i < node->size && !loader->no_memory; i += 2) {
        const struct rules_node *name = node->items[i], *value = node->items[i + 1];
        struct rules_route route = {.method = {NULL, 0}};
        if (name->kind == RULES_SCALAR && strcmp(name->text, "default") == 0)
            read_cost(loader, value, "default", &costs->otherwise);
        else if (read_route(loader, name, &route) && read_cost(loader, value, "cost", &route.cost))
            routes[costs->route_count++] = route;
    }
}

/* --- An attribute ----------------------------------------------------------------------------- */

enum { FROM, DEFAULT, MIN, MAX, ON_BAD };

static const struct rules_keyword from_keywords[] = {
    [FROM] = {"from", RULES_TEXT, .flags = RULES_REQUIRED,
              .doc = "a header or another attribute, whose value is the cost"},
    [DEFAULT] = {"default", RULES_NUMBER, RULES_RANGE(0, COST_MAX), .otherwise = "1",
                 .doc = "the cost where the attribute is absent"},
    [MIN] = {"min", RULES_NUMBER, RULES_RANGE(0, COST_MAX), .otherwise = "0",
             .doc = "the least that it may be"},
    [MAX] = {"max", RULES_NUMBER, RULES_RANGE(0, COST_MAX), .flags = RULES_REQUIRED,
             .doc = "the most that it may be"},
    [ON_BAD] = {"on_bad", RULES_CHOICE, RULES_WORDS("refuse", "default"), .otherwise = "refuse",
                .doc = "what another value is: an error, or the default"},
};
static const struct rules_section from_section = RULES_SECTION("a cost", from_keywords);
static const struct rules_keyword any_route = {NULL, RULES_NUMBER, RULES_RANGE(0, COST_MAX),
                                               .doc = "the cost of a route: `POST /export: 100`"};
const struct rules_section rules_section_cost = {
    .what = "a cost", .others = &any_route, .or_else = &from_section};

static void load_attribute(struct rules_loader *loader, const struct rules_field *fields,
                           struct rules_cost *costs)
{
    struct weir_bytes name;
    struct rules_quote quote;
    costs->from = true;
    costs->most = COST_MAX;
    if (!rules_read_text(loader, fields[FROM].value, "from", &name))
        return;
    int attribute = rules_intern_attribute(loader, fields[FROM].value, name);
    if (attribute >= 0 && !rules_attribute_is_for(name, RULES_FOR_COST)) {
        rules_problem(loader, fields[FROM].value,
                      "%s is not a number; take the cost from a header or another attribute",
                      rules_quote(&quote, name.data, name.size));
    }
    if (attribute >= 0 && rules_is_secret(loader->rules, (uint16_t)attribute)) {
        rules_problem(loader, fields[FROM].value, "%s is a credential, not a cost",
                      rules_quote(&quote, name.data, name.size));
    }
    costs->attribute = attribute >= 0 ? (uint16_t)attribute : 0;
    if (attribute >= 0)
        loader->rules->cost_sources[attribute / 64] |= UINT64_C(1) << attribute % 64;
    costs->name = attribute >= 0 ? loader->rules->attribute_names[attribute] : "";
    if (fields[DEFAULT].value)
        read_cost(loader, fields[DEFAULT].value, "default", &costs->otherwise);
    if (fields[MIN].value)
        read_cost(loader, fields[MIN].value, "min", &costs->least);
    if (!fields[MAX].value) {
        rules_problem(loader, fields[FROM].key,
                      "`max` is missing: a cost that requests give must be bounded");
    } else if (read_cost(loader, fields[MAX].value, "max", &costs->most) &&
               costs->most < costs->least) {
        rules_problem(loader, fields[MAX].value, "`max` is below `min`");
    }
    if (fields[ON_BAD].value)
        costs->lenient = rules_read_choice(loader, fields[ON_BAD].value, "on_bad",
                                           from_keywords[ON_BAD].words, 2) == 1;
}

static bool has_from(const struct rules_node *node)
{
    for (uint32_t i = 0; i < node->size; i += 2) {
        const struct rules_node *name = node->items[i];
        if (name->kind == RULES_SCALAR && strcmp(name->text, "from") == 0)
            return true;
    }
    return false;
}

void rules_load_cost(struct rules_loader *loader, const struct rules_node *node,
                     struct rules_rule *rule)
{
    if (node->kind != RULES_MAP) {
        read_cost(loader, node, "cost", &rule->cost);
        return;
    }
    struct rules_cost *costs = rules_keep(loader, sizeof(*costs));
    if (!costs)
        return;
    costs->otherwise = 1;
    rule->costs = costs;
    if (has_from(node)) {
        struct rules_field fields[RULES_KEYWORDS_MAX];
        if (rules_section_find(loader, &from_section, node, fields))
            load_attribute(loader, fields, costs);
    } else {
        load_table(loader, node, costs);
    }
}

/* --- `refund_on`, `refund_cap` and `debt` ----------------------------------------------------- */

/* What may be given back per window: the cap as a limit of its own. */
static void make_cap(struct rules_loader *loader, const struct rules_node *node, uint32_t percent,
                     const struct weir_limit *limit, struct weir_limit *cap)
{
    static const char suffix[] = "~refunds"; /* no name of a limit has a '~' */
    char name[RULES_NAME_MAX + 8 + sizeof(suffix)];
    int size = snprintf(name, sizeof(name), "%s%s", limit->name, suffix);
    const struct weir_limit_spec *of = &limit->spec;
    uint64_t rate = of->rate / 100 * percent + of->rate % 100 * percent / 100;
    const struct weir_limit_spec spec = {.algorithm = WEIR_SLIDING_WINDOW,
                                         .rate = rate < WEIR_RATE_MAX ? rate : WEIR_RATE_MAX,
                                         .window_ns = of->window_ns,
                                         .strict = true};
    struct weir_reason reason = {{0}};
    if (loader->wrong > 0)
        return;
    if (rate == 0 && of->rate > 0) {
        rules_problem(loader, node,
                      "%u%% of a rate of %llu is less than one request: nothing would ever be "
                      "given back; raise `refund_cap`",
                      percent, (unsigned long long)of->rate);
        return;
    }
    if (weir_limit_init(cap, &spec, &reason) < 0)
        rules_problem(loader, node, "refund_cap: %s", reason.text);
    cap->name = rules_keep_text(loader, name, (size_t)size);
}

static void make_caps(struct rules_loader *loader, const struct rules_node *node, uint32_t percent,
                      const struct rules_rates *rates, struct rules_rates *caps)
{
    caps->count = rates->count;
    caps->limits =
        rates->count > 0 ? rules_keep(loader, rates->count * sizeof(*caps->limits)) : NULL;
    for (uint8_t i = 0; i < rates->count && caps->limits && rates->limits; i++)
        make_cap(loader, node, percent, &rates->limits[i], &caps->limits[i]);
}

static void make_all_caps(struct rules_loader *loader, const struct rules_node *node,
                          uint32_t percent, const struct rules_rule *rule,
                          struct rules_refund *refund)
{
    make_caps(loader, node, percent, &rule->rates, &refund->caps);
    if (!rule->plans)
        return;
    refund->plans = rules_keep(loader, (loader->rules->plan_count + 1) * sizeof(*refund->plans));
    for (uint32_t p = 0; p < loader->rules->plan_count && refund->plans; p++)
        make_caps(loader, node, percent, &rule->plans[p], &refund->plans[p]);
}

static void load_refund(struct rules_loader *loader, const struct rules_field *on,
                        const struct rules_field *cap, struct rules_rule *rule)
{
    struct rules_items items = rules_items_of(&on->value);
    if (rule->algorithm == WEIR_CONCURRENCY) {
        rules_problem(
            loader, on->key,
            "`refund_on` does not work with concurrency: leases end, they are not refunded");
        return;
    }
    if (on->value->kind == RULES_MAP || items.count == 0) {
        rules_problem(loader, on->value, "`refund_on` must be a status or a list: [5xx, 404]");
        return;
    }
    struct rules_refund *refund = rules_keep(loader, sizeof(*refund));
    bool good = refund;
    for (uint32_t i = 0; i < items.count && refund; i++)
        good = rules_read_status(loader, items.items[i], "refund_on", refund->statuses) && good;
    uint64_t percent = rules_keyword_number_or_default(
        loader, &rules_section_limit.keywords[RULES_LIMIT_REFUND_CAP], cap->value);
    if (good)
        make_all_caps(loader, cap->value ? cap->value : on->value, (uint32_t)percent, rule, refund);
    rule->refund = refund;
}

void rules_load_settle(struct rules_loader *loader, const struct rules_field *fields,
                       struct rules_rule *rule)
{
    const struct rules_field *on = &fields[RULES_LIMIT_REFUND_ON];
    const struct rules_field *cap = &fields[RULES_LIMIT_REFUND_CAP];
    const struct rules_node *debt = fields[RULES_LIMIT_DEBT].value;
    if (on->value)
        load_refund(loader, on, cap, rule);
    else if (cap->value)
        rules_problem(loader, cap->key, "`refund_cap` goes with `refund_on`");
    uint64_t percent = rules_keyword_number_or_default(
        loader, &rules_section_limit.keywords[RULES_LIMIT_DEBT], debt);
    rule->floor = (uint16_t)(percent + 1);
}
