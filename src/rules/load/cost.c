/* SPDX-License-Identifier: Apache-2.0 */
/* `cost` of a limit; see loader.h */
#include <string.h>

#include "rules/charge/cost.h"
#include "rules/load/loader.h"

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
    if (space != NULL) {
        struct weir_bytes method = {text.data, (size_t)(space - text.data)};
        if (!rules_check_method(loader, node, method))
            return false;
        route->method.data = rules_keep_text(loader, method.data, method.size);
        route->method.size = method.size;
        path = (struct weir_bytes){space + 1, text.size - method.size - 1};
    }
    struct weir_path_pattern pattern;
    if (rules_read_pattern(loader, path, &pattern, &route->atom, &reason) < 0) {
        if (!loader->no_memory)
            rules_problem(loader, node, "%s", reason.text);
        return false;
    }
    return true;
}

static void load_table(struct rules_loader *loader, const struct rules_node *node,
                       struct rules_cost *price)
{
    struct rules_route *routes = rules_keep(loader, (node->size / 2 + 1) * sizeof(*routes));
    price->routes = routes;
    if (node->size / 2 > RULES_ROUTES_MAX) {
        rules_problem(loader, node, "a table of costs has at most %d routes", RULES_ROUTES_MAX);
        return;
    }
    for (uint32_t i = 0; i < node->size && !loader->no_memory; i += 2) {
        const struct rules_node *name = node->items[i], *value = node->items[i + 1];
        struct rules_route route = {.method = {NULL, 0}};
        if (name->kind == RULES_SCALAR && strcmp(name->text, "default") == 0)
            read_cost(loader, value, "default", &price->otherwise);
        else if (read_route(loader, name, &route) && read_cost(loader, value, "cost", &route.cost))
            routes[price->route_count++] = route;
    }
}

/* --- An attribute ----------------------------------------------------------------------------- */

enum { FROM, DEFAULT, MIN, MAX, ON_BAD, FIELDS };

static void load_attribute(struct rules_loader *loader, const struct rules_field *fields,
                           struct rules_cost *price)
{
    static const char *const choices[] = {"refuse", "default"};
    struct weir_bytes name;
    struct rules_quote quote;
    price->from = true;
    price->most = COST_MAX;
    if (!rules_read_text(loader, fields[FROM].value, "from", &name))
        return;
    bool capture = name.size > 5 && memcmp(name.data, "path.", 5) == 0;
    int attribute = rules_intern_attribute(loader, fields[FROM].value, name);
    if (attribute >= 0 && (attribute < WEIR_ATTR_FIRST_NAMED || capture)) {
        rules_problem(loader, fields[FROM].value,
                      "%s is no number; a cost comes from a header or another attribute",
                      rules_quote(&quote, name.data, name.size));
    }
    if (attribute >= 0 && rules_is_secret(loader->rules, (uint16_t)attribute)) {
        rules_problem(loader, fields[FROM].value, "%s is a credential, not a cost",
                      rules_quote(&quote, name.data, name.size));
    }
    price->attribute = attribute >= 0 ? (uint16_t)attribute : 0;
    price->name = attribute >= 0 ? loader->rules->attribute_names[attribute] : "";
    if (fields[DEFAULT].value != NULL)
        read_cost(loader, fields[DEFAULT].value, "default", &price->otherwise);
    if (fields[MIN].value != NULL)
        read_cost(loader, fields[MIN].value, "min", &price->least);
    if (fields[MAX].value == NULL) {
        rules_problem(loader, fields[FROM].key,
                      "`max` is missing: what a request says of its cost has to be bounded");
    } else if (read_cost(loader, fields[MAX].value, "max", &price->most) &&
               price->most < price->least) {
        rules_problem(loader, fields[MAX].value, "`max` is below `min`");
    }
    if (fields[ON_BAD].value != NULL)
        price->lenient = rules_read_choice(loader, fields[ON_BAD].value, "on_bad", choices, 2) == 1;
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
    struct rules_cost *price = rules_keep(loader, sizeof(*price));
    if (price == NULL)
        return;
    price->otherwise = 1;
    rule->price = price;
    if (has_from(node)) {
        struct rules_field fields[FIELDS] = {[FROM] = {"from", NULL, NULL},
                                             [DEFAULT] = {"default", NULL, NULL},
                                             [MIN] = {"min", NULL, NULL},
                                             [MAX] = {"max", NULL, NULL},
                                             [ON_BAD] = {"on_bad", NULL, NULL}};
        if (rules_fields(loader, node, "a cost", fields, FIELDS))
            load_attribute(loader, fields, price);
    } else {
        load_table(loader, node, price);
    }
}
