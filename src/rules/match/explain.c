/* SPDX-License-Identifier: Apache-2.0 */
/* see explain.h */
#include "rules/match/explain.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "feature/adaptive/rules/limit.h"
#include "feature/identity/rules/identify.h"
#include "feature/identity/rules/override.h"
#include "feature/priority/rules/priority.h"
#include "feature/standing/rules/match.h"
#include "rules/match/evaluate.h"
#include "rules/match/key.h"
#include "rules/problems.h"

/* What the request has where a part of a match does not hold. */
static struct weir_bytes found_value(struct rules_evaluation *evaluation,
                                     const struct rules_rule *rule, const struct rules_part *part,
                                     struct weir_bytes client)
{
    uint8_t kind = part->kind == RULES_PART_SPECIAL ? part->of : part->kind;
    if (kind == RULES_PART_CAPTURE) {
        struct weir_bytes none = {NULL, 0};
        int pattern = rules_pattern_of(evaluation, rule);
        bool there = pattern >= 0 && part->segments[pattern] >= 0;
        return there ? evaluation->segments.text[part->segments[pattern]] : none;
    }
    return kind == RULES_PART_ADDRESS ? client : rules_value(evaluation, part->attribute);
}

/* The client's address as text, kept in scratch; data == NULL: unknown. */
static struct weir_bytes client_text(struct rules_evaluation *evaluation)
{
    struct weir_scratch *scratch = evaluation->scratch;
    struct weir_bytes text = {NULL, 0};
    if (evaluation->request->client.family != 0) {
        text.data = scratch->bytes + scratch->used;
        text.size =
            weir_address_format(&evaluation->request->client, scratch->bytes + scratch->used);
        scratch->used += (uint32_t)text.size;
    }
    return text;
}

/* Why a limit's match or key keeps it from applying; false: nothing does. */
static bool explain_rule(struct rules_evaluation *evaluation, const struct rules_rule *rule,
                         struct weir_bytes client, struct weir_explanation *explanation)
{
    for (uint32_t i = 0; i < rule->part_count; i++) {
        const struct rules_part *part = &rule->parts[i];
        if (!rules_part_holds(evaluation, rule, part)) {
            explanation->why = WEIR_WHY_MATCH;
            explanation->attribute = part->name;
            explanation->wanted = part->wanted;
            explanation->found = found_value(evaluation, rule, part, client);
            explanation->secret = part->secret;
            return true;
        }
    }
    if ((rule->when & evaluation->query->resting) != 0) {
        explanation->why = WEIR_WHY_WHEN;
        explanation->wanted = evaluation->rules->schedules[__builtin_ctzll(rule->when)].text;
        return true;
    }
    if (evaluation->standing == WEIR_STANDING_TRUSTED && !rule->for_trusted) {
        explanation->why = WEIR_WHY_TRUSTED;
        return true;
    }
    const struct rules_key_part *missing = rules_key_missing(evaluation, rule);
    if (missing) {
        explanation->why = WEIR_WHY_KEY;
        explanation->attribute = missing->name;
        return true;
    }
    return false;
}

static const char *controller_of(const struct weir_rules *rules, const struct rules_rule *rule)
{
    uint32_t count;
    if (rule->adaptive == 0)
        return NULL;
    uint16_t place = weir_rules_adaptive_limits(rules, &count)[rule->adaptive - 1].adaptive;
    return weir_rules_adaptive(rules, &count)[place].name;
}

int weir_rules_explain(const struct weir_rules_query *query, struct weir_check *checks,
                       struct weir_explanation *explanations)
{
    const struct weir_rules *rules = query->rules;
    struct rules_evaluation evaluation;
    int count = 0, err = rules_begin(&evaluation, query);
    struct weir_bytes client = {NULL, 0};
    if (err == 0) {
        client = client_text(&evaluation);
        if (rules->jwt)
            rules_claims_keep(&evaluation);
    }
    bool refused = err == 0 && query->map && rules_standing_find(&evaluation);
    if (evaluation.standing != WEIR_STANDING_GOOD)
        rules_standing_name(&evaluation);
    if (rules->score && err == 0 && !refused)
        rules_score_find(&evaluation);
    for (uint32_t i = 0; err == 0 && i < rules->rule_count; i++) {
        struct weir_explanation *explanation = &explanations[i];
        const struct rules_rule *rule = &rules->rules[i];
        memset(explanation, 0, sizeof(*explanation));
        explanation->check = -1;
        if (refused) {
            explanation->why = WEIR_WHY_REFUSED;
            continue;
        }
        if (explain_rule(&evaluation, rule, client, explanation))
            continue;
        int before = rules_unless(rule, checks, count);
        if (before >= 0) {
            explanation->why = WEIR_WHY_UNLESS;
            explanation->unless = checks[before].rule;
            continue;
        }
        explanation->why = WEIR_WHY_APPLIES;
        explanation->check = (int16_t)count;
        evaluation.scales = explanation->scales;
        count = rules_checks_build(&evaluation, i, checks, count);
        explanation->own =
            rule->personal && rules_override_of(evaluation.overrides, evaluation.override_count, i);
        if (count >= 0) {
            explanation->scale = checks[explanation->check].scale;
            if (rule->shed)
                explanation->class = query->rules->priority->names[rules_class_of(&evaluation)];
            explanation->controller = controller_of(rules, rule);
        }
        err = count < 0 ? count : 0;
    }
    if (err < 0)
        return err;
    if (query->identity) {
        rules_identify(&evaluation);
        *query->identity = evaluation.identity;
    }
    return count;
}

static size_t print(char text[WEIR_EXPLANATION_TEXT_MAX], const char *format, ...)
    __attribute__((format(printf, 2, 3)));

static size_t print(char text[WEIR_EXPLANATION_TEXT_MAX], const char *format, ...)
{
    va_list values;
    va_start(values, format);
    int size = vsnprintf(text, WEIR_EXPLANATION_TEXT_MAX, format, values);
    va_end(values);
    return size < 0                           ? 0
           : size < WEIR_EXPLANATION_TEXT_MAX ? (size_t)size
                                              : WEIR_EXPLANATION_TEXT_MAX - 1;
}

static size_t print_applies(const struct weir_explanation *explanation,
                            char text[WEIR_EXPLANATION_TEXT_MAX])
{
    const char *own = explanation->own ? ", with the caller's own rates" : "";
    if (explanation->class)
        return print(text, "applies%s, at %u%% for `%s`", own,
                     explanation->scale != 0 ? explanation->scale : 100U, explanation->class);
    return print(text, "applies%s", own);
}

size_t weir_explanation_text(const struct weir_rules *rules,
                             const struct weir_explanation *explanation,
                             char text[WEIR_EXPLANATION_TEXT_MAX])
{
    struct rules_quote quote;
    switch (explanation->why) {
    case WEIR_WHY_APPLIES:
        return print_applies(explanation, text);
    case WEIR_WHY_WHEN:
        return print(text, "not in force now, but %s", explanation->wanted);
    case WEIR_WHY_KEY:
        return print(text, "its key needs %s, which is missing", explanation->attribute);
    case WEIR_WHY_REFUSED:
        return print(text, "not asked: the caller's standing denies");
    case WEIR_WHY_TRUSTED:
        return print(text, "not for trusted callers");
    case WEIR_WHY_UNLESS:
        return print(text, "not beside %s, which applies", rules->rules[explanation->unless].name);
    default:
        break;
    }
    if (!explanation->found.data)
        return print(text, "%s is missing; wanted %s", explanation->attribute, explanation->wanted);
    if (explanation->secret) {
        char secret[RULES_SECRET_TEXT];
        rules_secret_text(explanation->found, false, secret);
        return print(text, "%s is %.*s; wanted %s", explanation->attribute, RULES_SECRET_TEXT,
                     secret, explanation->wanted);
    }
    rules_quote(&quote, explanation->found.data, explanation->found.size);
    return print(text, "%s is %s; wanted %s", explanation->attribute, quote.text,
                 explanation->wanted);
}
