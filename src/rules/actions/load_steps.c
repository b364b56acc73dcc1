/* SPDX-License-Identifier: Apache-2.0 */
/* see load_steps.h */
#include "rules/actions/load_steps.h"

#include "core/bucket.h"
#include "core/bytes.h"
#include "rules/actions/steps.h"
#include "rules/load/limit/limit_fields.h"

#define DELAY_LEAST_NS UINT64_C(1000000)
#define ONE_OF "a step needs one of `mark: true`, `delay` and `challenge: true`"

enum { AT, MARK, DELAY, CHALLENGE, FIELDS };

static const struct rules_keyword keywords[] = {
    [AT] = {"at", RULES_PERCENT, RULES_RANGE(1, 99), .example = 80, .flags = RULES_REQUIRED,
            .doc = "the use of the limit from which it counts"},
    [MARK] = {"mark", RULES_FLAG, .doc = "`true`: answers carry a mark"},
    [DELAY] = {"delay", RULES_DURATION, RULES_RANGE(DELAY_LEAST_NS, WEIR_DELAY_MAX_NS),
               .word = "true",
               .doc = "how long answers are held back; `true`, of buckets: until the rate is kept"},
    [CHALLENGE] = {"challenge", RULES_FLAG,
                   .doc = "`true`: the request needs a solved [challenge](challenge.md)"},
};
const struct rules_section rules_section_step = RULES_SECTION("a step", keywords);
_Static_assert(sizeof(keywords) / sizeof(keywords[0]) == FIELDS, "a row for each");

/* Why a limit has no steps; NULL: it may have some. */
static const char *refusal(const struct rules_field *fields)
{
    if (rules_rate_unlimited(fields))
        return "an unlimited rate never reaches a step: remove `steps`";
    return NULL;
}

/* Whether all rates of the limit, for whatever plan, are single ones. */
static bool has_one_rate(const struct weir_rules *rules, const struct rules_rule *rule)
{
    for (uint32_t p = 0; p < rules->plan_count && rule->plans; p++)
        if (rule->plans[p].count > 1)
            return false;
    return rule->rates.count <= 1;
}

static bool read_true(struct rules_loader *loader, const struct rules_field *field)
{
    bool value = false;
    if (!rules_read_bool(loader, field->value, field->name, &value))
        return false;
    if (!value)
        rules_problem(loader, field->value, "`%s` must be true; to do nothing, remove the step",
                      field->name);
    return value;
}

static bool is_true(const struct rules_node *node)
{
    return node->kind == RULES_SCALAR &&
           weir_bytes_are((struct weir_bytes){node->text, node->size}, "true");
}

/* A constant, or `true`; false after a problem. */
static bool read_delay(struct rules_loader *loader, const struct rules_field *field,
                       const struct rules_rule *rule, struct weir_step *step)
{
    step->action = WEIR_ACTION_DELAY;
    if (!is_true(field->value))
        return rules_keyword_number(loader, &keywords[DELAY], field->value, &step->delay_ns);
    const char *why = NULL;
    if (rule->algorithm == WEIR_LEAKY_QUEUE)
        why = "a queue delays requests already: remove the step, or give it a constant: `500ms`";
    else if (!bucket_is(rule->algorithm))
        why = "`delay: true` needs a bucket (token_bucket, gcra, leaky_bucket); for others give "
              "a constant: `delay: 500ms`";
    else if (!has_one_rate(loader->rules, rule))
        why = "`delay: true` needs a limit of one rate; with several give a constant: "
              "`delay: 500ms`";
    if (why)
        rules_problem(loader, field->value, "%s", why);
    return !why;
}

static void load_challenge(struct rules_loader *loader, const struct rules_field *field,
                           const struct rules_rule *rule, uint32_t percent,
                           struct weir_steps *steps)
{
    if (!read_true(loader, field))
        return;
    if (steps->challenge != 0) {
        rules_problem(loader, field->key, "a limit has one challenge, and an earlier step is one");
        return;
    }
    steps->challenge = (uint8_t)percent;
    if (rule->flags & WEIR_CHECK_CHARGE_ON_DENY)
        rules_problem(loader, field->key,
                      "a challenged request is charged nothing: remove `on_deny: charge`");
    else if (!loader->challenge)
        rules_problem(loader, field->key,
                      "`challenge: true` needs the section `challenge:`, which says how clients "
                      "prove themselves; without it no request can pass");
}

/* One step; *last is the percentage of the one before. */
static void load_step(struct rules_loader *loader, const struct rules_node *node,
                      const struct rules_rule *rule, uint32_t *last, struct weir_steps *steps)
{
    struct rules_field fields[FIELDS];
    struct weir_step step = {.action = WEIR_ACTION_MARK};
    uint64_t number = 0;
    uint32_t actions = 0;
    if (!rules_section_find(loader, &rules_section_step, node, fields))
        return;
    for (int i = MARK; i < FIELDS; i++)
        actions += fields[i].value != NULL;
    if (!fields[AT].value)
        rules_problem(loader, node, "a step needs `at`, the use from which it counts: `at: 80%%`");
    else if (actions != 1)
        rules_problem(loader, node, actions == 0 ? ONE_OF : ONE_OF ", not several");
    if (!fields[AT].value || actions != 1 ||
        !rules_keyword_number(loader, &keywords[AT], fields[AT].value, &number))
        return;
    uint32_t percent = (uint32_t)number;
    if (percent <= *last)
        rules_problem(loader, fields[AT].value,
                      "steps must be in ascending order; %u%% comes after %u%%", percent, *last);
    *last = percent;
    step.percent = (uint8_t)percent;
    if (fields[CHALLENGE].value)
        load_challenge(loader, &fields[CHALLENGE], rule, percent, steps);
    else if (fields[MARK].value ? read_true(loader, &fields[MARK])
                                : read_delay(loader, &fields[DELAY], rule, &step))
        steps->list[steps->count++] = step;
}

void rules_load_steps(struct rules_loader *loader, const struct rules_field *fields,
                      struct rules_rule *rule)
{
    const struct rules_field *field = &fields[RULES_LIMIT_STEPS];
    const char *why = refusal(fields);
    uint32_t last = 0;
    if (why) {
        rules_problem(loader, field->key, "%s", why);
        return;
    }
    if (field->value->kind != RULES_LIST || field->value->size == 0 ||
        field->value->size > WEIR_STEPS_MAX) {
        rules_problem(loader, field->value,
                      "`steps` must be a list of 1 to %d steps, as in [{ at: 80%%, mark: true }]",
                      WEIR_STEPS_MAX);
        return;
    }
    struct weir_steps *steps = rules_keep(loader, sizeof(*steps));
    if (!steps)
        return;
    for (uint32_t i = 0; i < field->value->size; i++)
        load_step(loader, field->value->items[i], rule, &last, steps);
    rule->steps = steps;
    loader->rules->acts = true;
}
