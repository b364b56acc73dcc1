/* SPDX-License-Identifier: Apache-2.0 */
/* see section.h */
#include "feature/priority/rules/section.h"

#include <string.h>

#include "core/bytes.h"
#include "feature/priority/rules/priority.h"
#include "rules/load/attributes.h"
#include "rules/load/limit/limit_fields.h"
#include "rules/load/limit/match.h"

enum { FROM, CLASSES, DEFAULT };

static const struct rules_keyword any_route = {
    NULL, RULES_NAME, .doc = "the class of requests to paths of this pattern"};
static const struct rules_section routes_section = {.what = "from", .others = &any_route};

static const struct rules_keyword keywords[] = {
    [FROM] = {"from", RULES_TEXT, .section = &routes_section, .flags = RULES_REQUIRED,
              .doc = "what says the class: a header field such as `header.x-priority`, `plan`, or "
                     "a mapping of path patterns to classes"},
    [CLASSES] = {"classes", RULES_NAME, .many = RULES_LISTED,
                 .otherwise = "[critical, normal, sheddable]",
                 .absent = "`[critical, normal, sheddable]`; with `from: plan` the plans",
                 .doc = "names of classes, the most important first"},
    [DEFAULT] = {"default", RULES_NAME, .otherwise = "normal",
                 .doc = "the class of requests that have none"},
};
const struct rules_section rules_section_priority = RULES_SECTION("`priority`", keywords);

/* The class of this name; -1 after a problem. */
static int find_class(struct rules_loader *loader, const struct rules_node *node, const char *what,
                      const struct rules_priority *priority)
{
    struct weir_bytes name;
    struct rules_quote quote;
    struct rules_hint room;
    if (!rules_read_text(loader, node, what, &name))
        return -1;
    for (uint8_t i = 0; i < priority->class_count; i++)
        if (weir_bytes_are(name, priority->names[i]))
            return i;
    const char *hint =
        rules_hint(&room, name.data, name.size, priority->names, priority->class_count);
    rules_problem(loader, node, "`priority` has no class %s%s",
                  rules_quote(&quote, name.data, name.size), hint);
    return -1;
}

static void add_class(struct rules_loader *loader, const struct rules_node *node,
                      struct weir_bytes name, struct rules_priority *priority)
{
    for (uint8_t i = 0; i < priority->class_count; i++) {
        if (!weir_bytes_are(name, priority->names[i]))
            continue;
        rules_problem(loader, node, "`classes` has `%s` twice", priority->names[i]);
        return;
    }
    const char *kept = rules_keep_text(loader, name.data, name.size);
    if (kept)
        priority->names[priority->class_count++] = kept;
}

static void load_classes(struct rules_loader *loader, const struct rules_node *node,
                         struct rules_priority *priority)
{
    struct rules_items items = rules_items_of(&node);
    struct weir_bytes name;
    if (node->kind != RULES_LIST || items.count < 2 || items.count > RULES_CLASSES_MAX) {
        rules_problem(loader, node,
                      "`classes` must be a list of 2 to %d names, the most important first",
                      RULES_CLASSES_MAX);
        return;
    }
    for (uint32_t i = 0; i < items.count; i++)
        if (rules_check_name(loader, items.items[i], "class", &name))
            add_class(loader, items.items[i], name, priority);
}

/* Where the file names no classes. */
static void set_classes(struct rules_loader *loader, const struct rules_node *from,
                        struct rules_priority *priority)
{
    static const char *const usual[] = {"critical", "normal", "sheddable"};
    const struct weir_rules *rules = loader->rules;
    if (priority->source != RULES_PRIORITY_PLAN) {
        memcpy(priority->names, usual, sizeof(usual));
        priority->class_count = sizeof(usual) / sizeof(usual[0]);
        return;
    }
    if (rules->plan_count < 2 || rules->plan_count > RULES_CLASSES_MAX) {
        rules_problem(loader, from,
                      "`from: plan` needs 2 to %d `plans`, or `classes` that name some of them",
                      RULES_CLASSES_MAX);
        return;
    }
    for (uint32_t i = 0; i < rules->plan_count; i++)
        priority->names[priority->class_count++] = rules->plan_names[i];
}

static void load_routes(struct rules_loader *loader, const struct rules_node *node,
                        struct rules_priority *priority)
{
    uint32_t count = node->size / 2;
    struct rules_class_route *routes = rules_keep(loader, (count + 1) * sizeof(*routes));
    for (uint32_t i = 0; i < count && routes; i++) {
        const struct rules_node *key = node->items[2 * i];
        struct rules_class_route *route = &routes[priority->route_count];
        struct weir_path_pattern pattern;
        struct weir_reason reason;
        struct weir_bytes text;
        int class = find_class(loader, node->items[2 * i + 1], "a class", priority);
        if (!rules_read_text(loader, key, "a route", &text))
            continue;
        int err = rules_read_pattern(loader, key, text, &pattern, &route->atom, &reason);
        if (err < 0 && err != WEIR_ERR_MEMORY)
            rules_problem(loader, key, "%s", reason.text);
        if (err < 0 || class < 0)
            continue;
        route->class = (uint8_t) class;
        priority->route_count++;
    }
    priority->routes = routes;
    if (count == 0)
        rules_problem(loader, node, "`from` has no route; write { /pattern: class }");
}

/* Where classes come from; routes need the classes first. */
static bool load_source(struct rules_loader *loader, const struct rules_node *node,
                        struct rules_priority *priority)
{
    struct weir_bytes name;
    if (node->kind == RULES_MAP) {
        priority->source = RULES_PRIORITY_ROUTES;
        return true;
    }
    if (!rules_read_text(loader, node, "from", &name))
        return false;
    if (weir_bytes_are(name, "plan")) {
        priority->source = RULES_PRIORITY_PLAN;
        return true;
    }
    if (name.size <= 7 || strncasecmp(name.data, "header.", 7) != 0) {
        rules_problem(loader, node,
                      "`from` must be a header field such as `header.x-priority`, `plan`, or a "
                      "mapping of paths to classes");
        return false;
    }
    int attribute = rules_intern_attribute(loader, node, name);
    priority->source = RULES_PRIORITY_HEADER;
    priority->attribute = (uint16_t)attribute;
    return attribute >= 0;
}

static void load_default(struct rules_loader *loader, const struct rules_node *node,
                         const struct rules_node *given, struct rules_priority *priority)
{
    const struct weir_rules *rules = loader->rules;
    const char *name = "normal";
    if (given) {
        int class = find_class(loader, given, "default", priority);
        priority->fallback = class > 0 ? (uint8_t) class : 0;
        return;
    }
    if (priority->source == RULES_PRIORITY_PLAN && rules->default_plan != RULES_NONE)
        name = rules->plan_names[rules->default_plan];
    for (uint8_t i = 0; i < priority->class_count; i++) {
        if (strcmp(priority->names[i], name) != 0)
            continue;
        priority->fallback = i;
        return;
    }
    if (priority->class_count > 0)
        rules_problem(loader, node,
                      "`default` is missing; name the class of requests that have none");
}

void rules_load_priority(struct rules_loader *loader, const struct rules_node *node)
{
    struct rules_field fields[RULES_KEYWORDS_MAX];
    struct rules_priority *priority = rules_keep(loader, sizeof(*priority));
    if (!priority || !rules_section_find(loader, &rules_section_priority, node, fields))
        return;
    loader->rules->priority = priority;
    if (!fields[FROM].value) {
        rules_problem(loader, node,
                      "`from` is missing; set it to a header field, `plan`, or a mapping of paths "
                      "to classes");
        return;
    }
    if (!load_source(loader, fields[FROM].value, priority))
        return;
    if (fields[CLASSES].value)
        load_classes(loader, fields[CLASSES].value, priority);
    else
        set_classes(loader, fields[FROM].value, priority);
    loader->classes_ranked = fields[CLASSES].value || priority->source != RULES_PRIORITY_PLAN;
    if (priority->source == RULES_PRIORITY_ROUTES)
        load_routes(loader, fields[FROM].value, priority);
    load_default(loader, node, fields[DEFAULT].value, priority);
}

/* A class below another may not have more of a limit. */
static void check_order(struct rules_loader *loader, const struct rules_field *field,
                        const struct rules_priority *priority, const uint8_t *shed)
{
    for (uint8_t i = 1; loader->classes_ranked && i < priority->class_count; i++) {
        if (shed[i] <= shed[i - 1])
            continue;
        rules_problem(loader, field->value,
                      "`shed` leaves `%s` %u%% and `%s`, which is more important, %u%%; give `%s` "
                      "%u%% or less",
                      priority->names[i], shed[i], priority->names[i - 1], shed[i - 1],
                      priority->names[i], shed[i - 1]);
        return;
    }
}

void rules_load_shed(struct rules_loader *loader, const struct rules_field *fields,
                     struct rules_rule *rule)
{
    const struct rules_field *field = &fields[RULES_LIMIT_SHED];
    const struct rules_priority *priority = loader->rules->priority;
    const struct rules_node *node = field->value;
    if (!priority) {
        rules_problem(loader, field->key,
                      "`shed` needs the section `priority:`, which says the class of a request");
        return;
    }
    if (node->kind != RULES_MAP || node->size == 0) {
        rules_problem(loader, node,
                      "`shed` must be a mapping of classes to percentages, as in "
                      "{ sheddable: 60%% }");
        return;
    }
    if (rules_rate_unlimited(fields))
        rules_problem(loader, field->key, "an unlimited rate has no scale: remove `shed`");
    uint8_t *shed = rules_keep(loader, RULES_CLASSES_MAX);
    uint32_t wrong = loader->wrong;
    if (!shed)
        return;
    memset(shed, 100, RULES_CLASSES_MAX);
    for (uint32_t i = 0; i < node->size; i += 2) {
        uint8_t percent = 100;
        int class = find_class(loader, node->items[i], "a class", priority);
        if (rules_read_scale(loader, RULES_LIMIT_SHED, "shed", node->items[i + 1], &percent) &&
            class >= 0)
            shed[class] = percent;
    }
    if (loader->wrong == wrong)
        check_order(loader, field, priority, shed);
    rule->shed = shed;
}
