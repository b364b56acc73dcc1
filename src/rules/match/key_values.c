/* SPDX-License-Identifier: Apache-2.0 */
/* see key_values.h */
#include "rules/match/key_values.h"

#include <stdio.h>
#include <string.h>

#include "core/bytes.h"
#include "rules/counted.h"
#include "rules/match/evaluate.h"

static int refuse(struct weir_reason *reason, int err, const char *what, const char *name)
{
    snprintf(reason->text, sizeof(reason->text), "key: %s%.100s", what, name);
    return err;
}

/* An address with or without a prefix length. */
static int address_read(struct weir_bytes text, struct weir_cidr *cidr)
{
    return weir_cidr_parse(cidr, text.data, text.size);
}

/* --- A key ------------------------------------------------------------------------------------ */

/* The attribute of a key part, in the request or in what is known of the caller. */
static int part_read(struct rules_evaluation *evaluation, struct weir_request *request,
                     const struct rules_rule *rule, const struct rules_key_part *part,
                     struct weir_bytes value, struct weir_reason *reason)
{
    struct weir_cidr cidr;
    if (part->source == RULES_FROM_ADDRESS) {
        if (address_read(value, &cidr) < 0)
            return refuse(reason, WEIR_ERR_SYNTAX, "not an address: ", part->name);
        request->client =
            *weir_rules_counted_by(evaluation->rules, &cidr.address, &evaluation->client_inside);
        return 0;
    }
    if (part->source == RULES_FROM_CAPTURE) {
        int pattern = rules_pattern_of(evaluation, rule);
        if (pattern >= 0)
            evaluation->segments.text[part->segments[pattern]] = value;
        return 0;
    }
    const struct rules_attribute_row *row = evaluation->rules->rows[part->attribute];
    if (!row->given) {
        request->values[part->attribute] = value;
        return 0;
    }
    const char *wrong = row->given(evaluation, part->attribute, value);
    return wrong ? refuse(reason, WEIR_ERR_SYNTAX, wrong, part->name) : 0;
}

/* The plan whose rate counts: the one asked for, else the key's own, else the default. */
static int plan_read(struct rules_evaluation *evaluation, const struct weir_key_values *values,
                     struct weir_reason *reason)
{
    const struct weir_rules *rules = evaluation->rules;
    struct weir_bytes plan = values->plan.data ? values->plan : evaluation->identity.plan;
    evaluation->caller_known = true;
    evaluation->plan = rules->default_plan;
    if (!plan.data)
        return 0;
    uint32_t number = rules_plan_find(rules, plan);
    if (number != RULES_NONE) {
        evaluation->plan = number;
    } else if (values->plan.data) {
        snprintf(reason->text, sizeof(reason->text), "plan: no plan of that name");
        return WEIR_ERR_RANGE;
    }
    return 0;
}

static int values_read(struct rules_evaluation *evaluation, struct weir_request *request,
                       const struct rules_rule *rule, const struct weir_key_values *values,
                       struct weir_reason *reason)
{
    if (evaluation->rules->jwt) { /* there is no token: claims are what is given here */
        memset(evaluation->claims.values, 0, sizeof(evaluation->claims.values));
        evaluation->claims_known = true;
    }
    for (uint32_t i = 0; i < rule->key_count; i++) {
        const struct rules_key_part *part = &rule->key[i];
        if (!values->values[i].data) {
            if (rule->missing != RULES_SHARED)
                return refuse(reason, WEIR_ERR_RANGE, "no state without ", part->name);
            continue;
        }
        int err = part_read(evaluation, request, rule, part, values->values[i], reason);
        if (err < 0)
            return err;
    }
    return plan_read(evaluation, values, reason);
}

/* Whether a pattern of the rule captures what is given. */
static bool captures(const struct rules_rule *rule, uint32_t pattern,
                     const struct weir_key_values *values)
{
    for (uint32_t i = 0; i < rule->key_count; i++) {
        const struct rules_key_part *part = &rule->key[i];
        if (part->source == RULES_FROM_CAPTURE && values->values[i].data &&
            part->segments[pattern] < 0)
            return false;
    }
    return true;
}

/* As if the path were in the first pattern of the limit that has all captures given; what it
 * captures beyond them is missing. */
static int path_choose(struct rules_evaluation *evaluation, const struct rules_rule *rule,
                       const struct weir_key_values *values, struct weir_reason *reason)
{
    evaluation->paths_known = true;
    memset(&evaluation->segments, 0, sizeof(evaluation->segments));
    if (!rule->path_part)
        return 0;
    for (uint32_t p = 0; p < rule->path_part->count; p++) {
        if (captures(rule, p, values)) {
            evaluation->path_count = 1;
            evaluation->path_atoms[0] = rule->path_part->atoms[p];
            return 0;
        }
    }
    return refuse(reason, WEIR_ERR_RANGE, "no path is captured like this by ", rule->name);
}

int weir_rules_key_check(const struct weir_rules *rules, uint32_t index,
                         const struct weir_key_values *values, const uint64_t secret[2],
                         struct weir_scratch *scratch, struct weir_check *checks,
                         struct weir_reason *reason)
{
    const struct rules_rule *rule = &rules->rules[index];
    struct rules_evaluation evaluation;
    struct weir_request request;
    weir_request_clear(&request, rules->attribute_count);
    if (values->count != rule->key_count) {
        snprintf(reason->text, sizeof(reason->text),
                 "key: given %u times, but the key of '%s' has %u attributes", values->count,
                 rule->name, rule->key_count);
        return WEIR_ERR_RANGE;
    }
    const struct weir_rules_query query = {.rules = rules,
                                           .request = &request,
                                           .secret = secret,
                                           .scratch = scratch,
                                           .reason = reason};
    int err = rules_begin(&evaluation, &query);
    if (err < 0)
        return err;
    err = path_choose(&evaluation, rule, values, reason);
    if (err < 0)
        return err;
    err = values_read(&evaluation, &request, rule, values, reason);
    if (err < 0)
        return err;
    struct weir_bytes user = values->user.data ? values->user : evaluation.identity.user;
    if (rule->own_count > 0 && user.data) {
        evaluation.overrides = rules_keys_override(&rules->keys, user, index);
        evaluation.override_count = evaluation.overrides ? 1 : 0;
    }
    bool guessed = rule->plans && rules->plan_count > 1 && !evaluation.overrides &&
                   !values->plan.data && !evaluation.identity.plan.data;
    if (guessed && values->needs_plan)
        return refuse(reason, WEIR_ERR_RANGE, "plan: required, for the rate is by plan in ",
                      rule->name);
    int count = rules_checks_build(&evaluation, index, checks, 0);
    const struct rules_key_part *missing =
        count == 0 ? rules_key_missing(&evaluation, rule) : NULL; /* such as an empty User-Agent */
    return missing ? refuse(reason, WEIR_ERR_RANGE, "no state without ", missing->name) : count;
}
