/* SPDX-License-Identifier: Apache-2.0 */
/* see model.h */
#include "cli/document/model.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "cli/document/phrases.h"
#include "rules/actions/reject.h"
#include "rules/charge/cost.h"
#include "rules/compiled.h"
#include "rules/match/routes.h"

#define COST_TEXT_MAX 24
#define DENIED 429
#define PROBLEM_TYPE "application/problem+json"
#define JSON_TYPE "application/json"

/* All values of a part of a match: `wanted` has only as many as a line shows. */
static json_t *values_of(const struct weir_rules *rules, const struct rules_part *part)
{
    json_t *list = json_array();

    for (uint32_t i = 0; i < part->count; i++) {
        struct weir_bytes value = part->kind == RULES_PART_PATH
                                      ? weir_rules_route_text(rules, part->atoms[i])
                                      : part->values[i];
        json_array_append_new(list, json_stringn(value.data, value.size));
    }
    return list;
}

static void add_parts(json_t *one, const struct weir_rules *rules, const struct rules_rule *rule)
{
    json_t *conditions = json_array();

    json_object_set_new(one, "methods", json_array());
    json_object_set_new(one, "paths", json_array());
    for (uint32_t i = 0; i < rule->part_count; i++) {
        const struct rules_part *part = &rule->parts[i];
        if (!strcmp(part->name, "method") && part->kind == RULES_PART_VALUES)
            json_object_set_new(one, "methods", values_of(rules, part));
        else if (part->kind == RULES_PART_PATH)
            json_object_set_new(one, "paths", values_of(rules, part));
        else
            json_array_append_new(conditions,
                                  json_pack("{s:s, s:s}", "name", part->name, "wanted",
                                            part->secret ? "a secret value" : part->wanted));
    }
    json_object_set_new(one, "conditions", conditions);
}

static void add_costs(json_t *one, const struct rules_rule *rule)
{
    const struct rules_cost *costs = rule->costs;
    json_t *list = json_array();

    for (uint32_t i = 0; costs && i < costs->route_count; i++) {
        const struct rules_route *route = &costs->routes[i];
        json_array_append_new(list,
                              json_pack("{s:o, s:s, s:I}", "method",
                                        route->method.data
                                            ? json_stringn(route->method.data, route->method.size)
                                            : json_null(),
                                        "path", route->path, "cost", (json_int_t)route->cost));
    }
    json_object_set_new(one, "costs", list);
    if (costs && costs->from)
        json_object_set_new(one, "cost_from", json_string(costs->name));
    else
        json_object_set_new(one, "cost",
                            json_integer((json_int_t)(costs ? costs->otherwise : rule->cost)));
}

/* What calls of each cost of the limit get of one rate. */
static json_t *calls_of(const json_t *one, const struct weir_limit_spec *spec)
{
    json_t *calls = json_object(), *route;
    char text[DOCUMENT_PHRASE_MAX], name[COST_TEXT_MAX];
    size_t i;

    for (i = 0; i <= json_array_size(json_object_get(one, "costs")); i++) {
        route = i > 0 ? json_array_get(json_object_get(one, "costs"), i - 1) : (json_t *)one;
        json_int_t cost = json_integer_value(json_object_get(route, "cost"));
        snprintf(name, sizeof name, "%" JSON_INTEGER_FORMAT, cost);
        if (cost > 0)
            json_object_set_new(calls, name,
                                json_string(document_rate(text, spec, (uint64_t)cost)));
    }
    return calls;
}

static json_t *rates_of(const json_t *one, const struct weir_limit *limits, uint32_t count)
{
    json_t *list = json_array();
    char text[DOCUMENT_PHRASE_MAX];

    for (uint32_t i = 0; i < count; i++) {
        const struct weir_limit_spec *spec = &limits[i].spec;
        json_array_append_new(
            list,
            json_pack("{s:I, s:f, s:I, s:s, s:o}", "limit", (json_int_t)limits[i].capacity,
                      "seconds", (double)spec->window_ns / 1e9, "burst", (json_int_t)spec->burst,
                      "text", document_rate(text, spec, 1), "calls", calls_of(one, spec)));
    }
    return list;
}

static void add_rates(json_t *one, const struct weir_rules *rules, uint32_t index,
                      const struct weir_rule_info *info)
{
    json_t *rates = json_object();
    const struct weir_limit *limits;
    uint32_t count;

    for (uint32_t set = 0; weir_rules_rates(rules, index, set, &limits, &count); set++)
        json_object_set_new(rates, info->by_plan ? rules->plan_names[set] : "",
                            rates_of(one, limits, count));
    if (json_object_size(rates) == 0) /* unlimited */
        json_object_set_new(rates, "", json_array());
    json_object_set_new(one, "rates", rates);
}

static void add_denial(json_t *one, const struct weir_rules *rules, uint32_t index)
{
    const struct weir_reject *reject = weir_rules_reject_of(rules, index);
    const char *type = PROBLEM_TYPE;
    int status = reject && reject->status > 0 ? reject->status : DENIED;

    if (reject && reject->body.count > 0)
        type = reject->content_type;
    else if (reject && reject->form == WEIR_REJECT_JSON)
        type = JSON_TYPE;
    json_object_set_new(one, "status", json_integer(status));
    json_object_set_new(
        one, "above_status",
        json_integer(reject && reject->above_status > 0 ? reject->above_status : status));
    json_object_set_new(one, "body", json_string(type));
}

static json_t *limit_of(const struct weir_rules *rules, uint32_t index,
                        const struct weir_rule_info *info)
{
    const struct rules_rule *rule = &rules->rules[index];
    json_t *one = json_object(), *key = json_array(), *unless = json_array();

    for (uint32_t i = 0; i < info->key_count; i++)
        json_array_append_new(key, json_string(info->key[i]));
    for (uint32_t i = 0; i < rule->unless_count; i++) {
        struct weir_rule_info other;
        weir_rules_info(rules, rule->unless[i], &other);
        if (!other.shadow)
            json_array_append_new(unless, json_string(other.name));
    }
    json_object_set_new(one, "name", json_string(info->name));
    add_parts(one, rules, rule);
    json_object_set_new(one, "key", key);
    json_object_set_new(one, "algorithm", json_string(weir_algorithm_name(info->algorithm)));
    json_object_set_new(one, "unless", unless);
    json_object_set_new(one, "when", info->when ? json_string(info->when) : json_null());
    json_object_set_new(one, "charged_when_denied",
                        json_boolean((rule->flags & WEIR_CHECK_CHARGE_ON_DENY) != 0));
    add_denial(one, rules, index);
    add_costs(one, rule);
    add_rates(one, rules, index, info);
    return one;
}

/* The fields of answers, by the dialects that the file chooses. */
static json_t *fields_of(uint32_t headers)
{
    static const struct {
        uint32_t dialect;
        const char *name, *text;
    } fields[] = {
        {WEIR_HEADERS_DRAFT, "RateLimit-Policy", "each limit: q units in w seconds"},
        {WEIR_HEADERS_DRAFT, "RateLimit", "the limit that is nearest: r units left, t seconds"},
        {WEIR_HEADERS_DRAFT_03, "RateLimit-Limit", "the units of a window"},
        {WEIR_HEADERS_DRAFT_03, "RateLimit-Remaining", "the units that are left"},
        {WEIR_HEADERS_DRAFT_03, "RateLimit-Reset", "seconds until all are back"},
        {WEIR_HEADERS_X_EPOCH | WEIR_HEADERS_X_DELTA, "X-RateLimit-Limit", "the units of a window"},
        {WEIR_HEADERS_X_EPOCH | WEIR_HEADERS_X_DELTA, "X-RateLimit-Remaining",
         "the units that are left"},
        {WEIR_HEADERS_X_EPOCH, "X-RateLimit-Reset", "when all are back: seconds since 1970"},
        {WEIR_HEADERS_X_DELTA, "X-RateLimit-Reset", "seconds until all are back"},
        {WEIR_HEADERS_COST, "X-RateLimit-Cost", "what the request cost"},
        {WEIR_HEADERS_STANDING, "X-RateLimit-Standing", "the caller's standing, unless it is good"},
        {WEIR_HEADERS_DIMENSION, "X-RateLimit-Dimension",
         "of a denied request: the limit that denies it"},
    };
    json_t *list = json_array();

    for (size_t i = 0; i < sizeof fields / sizeof *fields; i++)
        if ((headers & fields[i].dialect) != 0)
            json_array_append_new(
                list, json_pack("{s:s, s:s}", "name", fields[i].name, "text", fields[i].text));
    return list;
}

json_t *document_model(const struct weir_rules *rules)
{
    json_t *model = json_object(), *limits = json_array(), *plans = json_array();

    for (uint32_t i = 0; i < weir_rules_count(rules); i++) {
        struct weir_rule_info info;
        weir_rules_info(rules, i, &info);
        if (!info.shadow)
            json_array_append_new(limits, limit_of(rules, i, &info));
    }
    for (uint32_t i = 0; i < rules->plan_count; i++)
        json_array_append_new(plans, json_string(rules->plan_names[i]));
    json_object_set_new(model, "limits", limits);
    json_object_set_new(model, "plans", plans);
    json_object_set_new(model, "fields", fields_of(weir_rules_settings(rules)->headers));
    return model;
}
