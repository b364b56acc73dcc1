/* SPDX-License-Identifier: Apache-2.0 */
/* see check_request.h */
#include "engine/http/check_request.h"

#include <stdio.h>

#include "rules/rules.h"

int weir_cost_find(const struct weir_rules *rules, struct weir_bytes name,
                   uint64_t seen[WEIR_ATTRIBUTE_WORDS], struct weir_reason *reason)
{
    int attribute = weir_rules_cost_source(rules, name);
    if (attribute < 0) {
        snprintf(reason->text, sizeof reason->text,
                 "costs.%.*s: no limit's cost is from an attribute of this name",
                 (int)(name.size < 64 ? name.size : 64), name.data);
        return WEIR_ERR_SYNTAX;
    }
    uint64_t bit = UINT64_C(1) << attribute % 64, *word = &seen[attribute / 64];
    if ((*word & bit) != 0) {
        snprintf(reason->text, sizeof reason->text, "costs: one is given twice");
        return WEIR_ERR_SYNTAX;
    }
    *word |= bit;
    return attribute;
}

/* Name and value of an attribute; returns an error only for one that a top-level field gives. */
static int put_attribute(struct weir_request *request, const struct weir_check_pair *pair,
                         enum weir_trust trust, struct weir_reason *reason)
{
    struct weir_attribute_source source =
        weir_rules_source(request->rules, pair->name.data, pair->name.size);
    const char *field = weir_source_own_field(request->rules, source);
    if (source.state == WEIR_NAME_UNKNOWN) {
        weir_request_unknown(request, pair->name, trust);
        return 0;
    }
    if (!field) {
        weir_request_put(request, source, pair->value, trust);
        return 0;
    }
    snprintf(reason->text, sizeof reason->text, "attributes.%.*s: use the top-level field %s",
             (int)pair->name.size, pair->name.data, field);
    return WEIR_ERR_SYNTAX;
}

/* A field of the request; most requests have few of them. */
static void put_field(struct weir_request *request, enum weir_attribute attribute,
                      struct weir_bytes value, enum weir_trust trust)
{
    if (value.data)
        weir_request_put(request, weir_source_fixed(attribute), value, trust);
}

/* One that is wrong is an error: it would be lost in silence. */
static int put_costs(struct weir_request *request, const struct weir_json_costs *costs,
                     struct weir_reason *reason)
{
    uint64_t seen[WEIR_ATTRIBUTE_WORDS] = {0};
    for (uint16_t i = 0; i < costs->count; i++) {
        int attribute = weir_cost_find(request->rules, costs->of[i].name, seen, reason);
        if (attribute < 0)
            return attribute;
        weir_request_put_cost(request, (uint16_t)attribute, costs->of[i].text);
    }
    return 0;
}

int weir_check_request_fill(struct weir_request *request, const struct weir_rules *rules,
                            const struct weir_check_json *check, enum weir_trust trust,
                            struct weir_room room, struct weir_reason *reason)
{
    int err = 0;
    weir_request_begin(request, rules, check->has_headers ? WEIR_FIELDS_ALL : WEIR_FIELDS_NONE,
                       room);
    weir_request_once(request);
    weir_request_of_program(request);
    request->cost = check->cost;
    for (uint16_t i = 0; i < check->header_count; i++)
        weir_request_put_field(request, check->headers[i].name, check->headers[i].value, trust);
    put_field(request, WEIR_ATTR_METHOD, check->method, trust);
    put_field(request, WEIR_ATTR_PATH, check->path, trust);
    put_field(request, WEIR_ATTR_HOST, check->host, trust);
    put_field(request, WEIR_ATTR_CLIENT_IP, check->ip, trust);
    for (uint16_t i = 0; err == 0 && i < check->attribute_count; i++)
        err = put_attribute(request, &check->attributes[i], trust, reason);
    if (err == 0)
        err = weir_request_end(request, reason);
    return err < 0 ? err : put_costs(request, &check->costs, reason);
}
