/* SPDX-License-Identifier: Apache-2.0 */
/* see section.h */
#include "feature/score/rules/section.h"

#include <string.h>

#include "core/bytes.h"
#include "rules/load/attribute_checks.h"
#include "rules/load/key.h"
#include "rules/load/limit_fields.h"
#include "rules/load/match.h"

#define NS_PER_MS UINT64_C(1000000)
#define WITHIN_MAX_NS (600 * 1000 * NS_PER_MS)
#define SUSPICIOUS 30
#define MALICIOUS 60
#define CLIENTS 250000 /* about 4 MB */
#define CLIENTS_MIN 1000
#define SCALE_EXAMPLE 50

/* --- `signals` -------------------------------------------------------------------------------- */

enum signal_field { NAME, ADD, WHEN, REGULAR, SAME_ROUTE, SIGNAL_FIELDS };

static void load_when(struct rules_loader *loader, const struct rules_node *node,
                      struct rules_signal *signal)
{
    uint32_t globs_only = loader->globs_only; /* signals are in no index */
    signal->when = rules_keep(loader, sizeof(*signal->when));
    if (!signal->when)
        return;
    if (node->kind == RULES_MAP && node->size == 0)
        rules_problem(loader, node, "`when` is empty: the signal would hold for all requests");
    else if (node->kind != RULES_MAP)
        rules_problem(loader, node, "`when` must be a mapping of attributes to values");
    else
        rules_load_match(loader, node, signal->when);
    loader->globs_only = globs_only;
}

/* `{ over: 10, within: 50ms }`. All signals share `within`, since a client's run is kept once. */
static void load_regular(struct rules_loader *loader, const struct rules_node *node,
                         struct rules_score *score, struct rules_signal *signal)
{
    struct rules_field fields[] = {{"over", NULL, NULL}, {"within", NULL, NULL}};
    uint64_t over = 0, within_ns = 0;
    if (!rules_fields(loader, node, "regular", fields, 2))
        return;
    if (!fields[0].value || !fields[1].value) {
        rules_problem(loader, node,
                      "`regular` needs `over` and `within`: "
                      "{ over: 10, within: 50ms }");
        return;
    }
    if (rules_read_number(loader, fields[0].value, "over", 2, WEIR_RUN_MAX, &over))
        signal->over = (uint8_t)over;
    if (!rules_read_duration(loader, fields[1].value, "within", NS_PER_MS, WITHIN_MAX_NS,
                             "1ms to 10min", &within_ns))
        return;
    uint32_t within_ms = (uint32_t)(within_ns / NS_PER_MS);
    if (score->within_ms != 0 && score->within_ms != within_ms)
        rules_problem(loader, fields[1].value,
                      "all signals with `regular` must have the same `within`, here %ums",
                      score->within_ms);
    else
        score->within_ms = within_ms;
}

/* The name of a signal, which no other one has. */
static void load_name(struct rules_loader *loader, const struct rules_node *node,
                      struct rules_score *score, struct weir_answer_signal *shown)
{
    struct weir_bytes name;
    if (!rules_check_name(loader, node, "name", &name))
        return;
    for (uint8_t i = 0; i < score->info.signal_count; i++) {
        if (weir_bytes_equal(score->shown[i].name, name)) {
            rules_problem(loader, node, "the name `%.*s` is given to two signals", (int)name.size,
                          name.data);
            return;
        }
    }
    shown->name = (struct weir_bytes){rules_keep_text(loader, name.data, name.size), name.size};
}

static void load_signal(struct rules_loader *loader, const struct rules_node *node,
                        struct rules_score *score)
{
    struct rules_field fields[SIGNAL_FIELDS] = {{"name", NULL, NULL},
                                                {"add", NULL, NULL},
                                                {"when", NULL, NULL},
                                                {"regular", NULL, NULL},
                                                {"same_route", NULL, NULL}};
    struct rules_signal *signal = &score->signals[score->info.signal_count];
    struct weir_answer_signal *shown = &score->shown[score->info.signal_count];
    uint64_t number = 0;
    if (!rules_fields(loader, node, "a signal", fields, SIGNAL_FIELDS))
        return;
    if (fields[NAME].value)
        load_name(loader, fields[NAME].value, score, shown);
    else
        rules_problem(loader, node, "`name` is missing");
    if (!fields[ADD].value)
        rules_problem(loader, node, "`add` is missing: what the signal adds to the score");
    else if (rules_read_number(loader, fields[ADD].value, "add", 1, RULES_ADD_MAX, &number))
        shown->add = (uint16_t)number;
    if (!fields[WHEN].value && !fields[REGULAR].value && !fields[SAME_ROUTE].value)
        rules_problem(loader, node, "a signal needs `when`, `regular` or `same_route`");
    if (fields[WHEN].value)
        load_when(loader, fields[WHEN].value, signal);
    if (fields[REGULAR].value)
        load_regular(loader, fields[REGULAR].value, score, signal);
    if (fields[SAME_ROUTE].value &&
        rules_read_number(loader, fields[SAME_ROUTE].value, "same_route", 2, WEIR_RUN_MAX, &number))
        signal->same_route = (uint8_t)number;
    score->info.signal_count++;
}

static void load_signals(struct rules_loader *loader, const struct rules_node *node,
                         struct rules_score *score)
{
    if (node->kind != RULES_LIST || node->size == 0 || node->size > WEIR_SIGNALS_MAX) {
        rules_problem(loader, node, "`signals` must be a list of 1 to %d signals",
                      WEIR_SIGNALS_MAX);
        return;
    }
    loader->scoring = true;
    for (uint32_t i = 0; i < node->size && !loader->no_memory; i++)
        load_signal(loader, node->items[i], score);
    loader->scoring = false;
}

/* --- The other keys --------------------------------------------------------------------------- */

static void load_classes(struct rules_loader *loader, const struct rules_node *node,
                         struct weir_score_info *info)
{
    struct rules_field fields[] = {{"suspicious", NULL, NULL}, {"malicious", NULL, NULL}};
    uint64_t from = 0;
    uint32_t wrong = loader->wrong;
    if (!rules_fields(loader, node, "classes", fields, 2))
        return;
    for (int i = 0; i < 2; i++) {
        info->from[i + 1] = UINT16_MAX;
        if (fields[i].value &&
            rules_read_number(loader, fields[i].value, fields[i].name, 1, RULES_SCORE_MAX, &from))
            info->from[i + 1] = (uint16_t)from;
    }
    if (!fields[0].value && !fields[1].value)
        rules_problem(loader, node, "`classes` is empty; give `suspicious`, `malicious` or both");
    else if (fields[0].value && fields[1].value && loader->wrong == wrong &&
             info->from[WEIR_CLASS_SUSPICIOUS] >= info->from[WEIR_CLASS_MALICIOUS])
        rules_problem(loader, fields[1].value, "`malicious` must be more than `suspicious`");
}

static void load_routes(struct rules_loader *loader, const struct rules_node *node,
                        struct rules_score *score)
{
    struct rules_items items = rules_items_of(&node);
    if (node->kind == RULES_MAP || items.count == 0 || items.count > RULES_SCORE_ROUTES_MAX) {
        rules_problem(loader, node, "`routes` must be a list of 1 to %d patterns of paths",
                      RULES_SCORE_ROUTES_MAX);
        return;
    }
    uint32_t *routes = rules_keep(loader, items.count * sizeof(*routes));
    for (uint32_t i = 0; i < items.count && routes; i++) {
        struct weir_path_pattern pattern;
        struct weir_reason reason;
        struct weir_bytes text;
        if (!rules_read_text(loader, items.items[i], "routes", &text))
            continue;
        int err = rules_read_pattern(loader, text, &pattern, &routes[score->route_count], &reason);
        if (err == 0)
            score->route_count++;
        else if (err != WEIR_ERR_MEMORY)
            rules_problem(loader, items.items[i], "%s", reason.text);
    }
    score->routes = routes;
}

/* What tells clients apart. */
static void load_key(struct rules_loader *loader, const struct rules_node *node,
                     struct rules_score *score)
{
    static const char name[] = "score~"; /* no limit's name has a '~' */
    uint8_t *prefix = rules_keep(loader, RULES_PREFIX_MAX);
    struct rules_items items = rules_items_of(&node);
    score->key = rules_keep(loader, sizeof(*score->key));
    if (!score->key || !prefix)
        return;
    prefix[0] = (uint8_t)(sizeof(name) - 1);
    memcpy(prefix + 1, name, sizeof(name) - 1);
    score->key->name = name;
    score->key->name_size = (uint8_t)(sizeof(name) - 1);
    score->key->prefix = prefix;
    score->key->prefix_size = (uint8_t)sizeof(name);
    loader->pattern_count = 0;
    loader->scoring = true;
    if (node->kind != RULES_MAP && items.count == 0)
        rules_problem(loader, node, "`key` is empty: all clients would be one");
    else
        rules_load_key(loader, node, NULL, score->key);
    loader->scoring = false;
}

/* The table, for signals that look at behaviour. */
static void open_behaviour(struct rules_loader *loader, struct rules_score *score)
{
    bool behaves = false;
    for (uint8_t i = 0; i < score->info.signal_count; i++)
        behaves = behaves || score->signals[i].over > 0 || score->signals[i].same_route > 0;
    if (!behaves || loader->wrong > 0 || loader->no_memory)
        return;
    if (score->within_ms == 0)
        score->within_ms = 1; /* no signal reads the run */
    if (weir_behaviour_open(&score->behaviour, score->clients) < 0)
        loader->no_memory = true;
    score->info.behaviour = score->behaviour;
}

void rules_load_score(struct rules_loader *loader, const struct rules_node *node)
{
    enum { KEY, SIGNALS, CLASSES, CLIENTS_, ROUTES, DEBUG, COUNT };
    struct rules_field fields[COUNT] = {{"key", NULL, NULL},     {"signals", NULL, NULL},
                                        {"classes", NULL, NULL}, {"clients", NULL, NULL},
                                        {"routes", NULL, NULL},  {"debug", NULL, NULL}};
    struct rules_score *score = rules_keep(loader, sizeof(*score));
    loader->score = true;
    if (!score || !rules_fields(loader, node, "`score`", fields, COUNT))
        return;
    score->info.signals = score->shown;
    score->info.from[WEIR_CLASS_SUSPICIOUS] = SUSPICIOUS;
    score->info.from[WEIR_CLASS_MALICIOUS] = MALICIOUS;
    score->clients = CLIENTS;
    if (fields[KEY].value)
        load_key(loader, fields[KEY].value, score);
    else
        rules_problem(loader, node,
                      "`score` needs `key`, which tells clients apart: "
                      "`key: [client.ip/64]`");
    if (fields[SIGNALS].value)
        load_signals(loader, fields[SIGNALS].value, score);
    else
        rules_problem(loader, node, "`score` needs `signals`");
    if (fields[CLASSES].value)
        load_classes(loader, fields[CLASSES].value, &score->info);
    if (fields[CLIENTS_].value)
        rules_read_number(loader, fields[CLIENTS_].value, "clients", CLIENTS_MIN,
                          WEIR_BEHAVIOUR_CLIENTS_MAX, &score->clients);
    if (fields[ROUTES].value)
        load_routes(loader, fields[ROUTES].value, score);
    if (fields[DEBUG].value)
        rules_read_bool(loader, fields[DEBUG].value, "debug", &score->info.debug);
    loader->rules->score = score; /* which gives the table back */
    open_behaviour(loader, score);
}

/* --- `by_class` ------------------------------------------------------------------------------- */

static void load_scale(struct rules_loader *loader, const struct rules_node *name,
                       const struct rules_node *value, uint8_t *scales)
{
    struct weir_bytes text;
    uint32_t percent = 0;
    if (!rules_read_text(loader, name, "by_class", &text) ||
        !rules_check_score_value(loader, name, WEIR_ATTR_CLASS, text))
        return;
    if (rules_read_percent(loader, value, text.data, 1, 100, SCALE_EXAMPLE, &percent))
        scales[weir_class_of(text)] = (uint8_t)percent;
}

void rules_load_by_class(struct rules_loader *loader, const struct rules_field *fields,
                         struct rules_rule *rule)
{
    const struct rules_field *field = &fields[RULES_LIMIT_BY_CLASS];
    const struct rules_node *node = field->value, *rate = fields[RULES_LIMIT_RATE].value;
    uint32_t wrong = loader->wrong;
    if (!loader->score) {
        rules_problem(loader, field->key, "`by_class` needs the section `score:`");
        return;
    }
    if (node->kind != RULES_MAP || node->size == 0) {
        rules_problem(loader, node,
                      "`by_class` must be a mapping of classes to percentages: "
                      "`{ suspicious: 50%% }`");
        return;
    }
    if (rate && rate->kind == RULES_SCALAR &&
        weir_bytes_are((struct weir_bytes){rate->text, rate->size}, "unlimited"))
        rules_problem(loader, field->key, "an unlimited rate has no scale: remove `by_class`");
    uint8_t *scales = rules_keep(loader, WEIR_CLASSES);
    if (!scales)
        return;
    memset(scales, 100, WEIR_CLASSES);
    for (uint32_t i = 0; i < node->size; i += 2)
        load_scale(loader, node->items[i], node->items[i + 1], scales);
    if (loader->wrong == wrong)
        rule->by_class = scales;
}
