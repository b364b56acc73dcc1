/* SPDX-License-Identifier: Apache-2.0 */
/* see attribute_checks.h */
#include "rules/load/attribute_checks.h"

#include <string.h>
#include <strings.h>

#include "core/bytes.h"
#include "feature/score/rules/score.h"

bool rules_check_standing(struct rules_loader *loader, const struct rules_node *node,
                          uint16_t attribute)
{
    if (!loader->standing)
        rules_problem(loader, node,
                      "the attribute `standing` needs the section `standing:`, which says whose "
                      "standing counts");
    return loader->standing;
}

bool rules_read_level(struct rules_loader *loader, const struct rules_node *node, const char *what,
                      struct weir_bytes name, uint8_t *level)
{
    const char *names[WEIR_STANDING_LEVELS];
    struct rules_quote quote;
    struct rules_hint hint;
    int found = weir_standing_level_of(name);
    for (uint8_t i = 0; i < WEIR_STANDING_LEVELS; i++)
        names[i] = weir_standing_level_name(i);
    *level = found < 0 ? WEIR_STANDING_GOOD : (uint8_t)found;
    if (found < 0) {
        rules_problem(loader, node,
                      "`%s` must be trusted, good, warned, throttled, challenged, suspended or "
                      "revoked, not %s%s",
                      what, rules_quote(&quote, name.data, name.size),
                      rules_hint(&hint, name.data, name.size, names, WEIR_STANDING_LEVELS));
    }
    return found >= 0;
}

bool rules_allow_level(struct rules_loader *loader, const struct rules_node *node,
                       uint16_t attribute, struct weir_bytes value)
{
    uint8_t level;
    return rules_read_level(loader, node, loader->rules->attribute_names[attribute], value, &level);
}

bool rules_allow_method(struct rules_loader *loader, const struct rules_node *node,
                        uint16_t attribute, struct weir_bytes value)
{
    static const char *const methods[] = {"GET",     "HEAD",    "POST",  "PUT",  "DELETE",
                                          "CONNECT", "OPTIONS", "TRACE", "PATCH"};
    for (size_t i = 0; i < sizeof(methods) / sizeof(methods[0]); i++) {
        if (value.size == strlen(methods[i]) &&
            strncasecmp(value.data, methods[i], value.size) == 0 &&
            !weir_bytes_are(value, methods[i])) {
            rules_problem(loader, node, "methods are case-sensitive (RFC 9110): write `%s`",
                          methods[i]);
            return false;
        }
    }
    return true;
}

bool rules_allow_plan(struct rules_loader *loader, const struct rules_node *node,
                      uint16_t attribute, struct weir_bytes value)
{
    struct weir_rules *rules = loader->rules;
    if (!loader->plans_given || rules_plan_find(rules, value) != RULES_NONE)
        return true;
    struct rules_quote quote;
    struct rules_hint room;
    const char *hint =
        rules_hint(&room, value.data, value.size, rules->plan_names, rules->plan_count);
    rules_problem(loader, node, "plan %s is not in `plans`%s",
                  rules_quote(&quote, value.data, value.size), hint);
    return false;
}

bool rules_check_challenge(struct rules_loader *loader, const struct rules_node *node,
                           uint16_t attribute)
{
    if (!loader->challenge)
        rules_problem(loader, node,
                      "the attribute `challenge` needs the section `challenge:`, which says how "
                      "clients prove themselves");
    return loader->challenge;
}

bool rules_allow_challenge(struct rules_loader *loader, const struct rules_node *node,
                           uint16_t attribute, struct weir_bytes value)
{
    struct rules_quote quote;
    if (weir_bytes_are(value, "passed"))
        return true;
    rules_problem(loader, node, "`challenge` is never %s; it is `passed`, or the request has none",
                  rules_quote(&quote, value.data, value.size));
    return false;
}

bool rules_check_score(struct rules_loader *loader, const struct rules_node *node,
                       uint16_t attribute)
{
    const char *name = loader->rules->attribute_names[attribute];
    if (loader->scoring) {
        rules_problem(loader, node, "`%s` is what `score` makes: it cannot depend on itself", name);
        return false;
    }
    if (!loader->score)
        rules_problem(loader, node,
                      "the attribute `%s` needs the section `score:`, which comes from signals",
                      name);
    return loader->score;
}

bool rules_check_score_value(struct rules_loader *loader, const struct rules_node *node,
                             uint16_t attribute, struct weir_bytes value)
{
    struct weir_caller_score score;
    struct rules_quote quote;
    struct rules_hint hint;
    const char *names[WEIR_CLASSES];
    if (rules_score_read(&score, attribute, value))
        return true;
    rules_quote(&quote, value.data, value.size);
    if (attribute == WEIR_ATTR_SCORE) {
        rules_problem(loader, node,
                      "`client.score` is a number from 0 to %d, not %s; "
                      "for a range, write { at_least: 45 }",
                      RULES_SCORE_MAX, quote.text);
        return false;
    }
    for (unsigned i = 0; i < WEIR_CLASSES; i++)
        names[i] = weir_class_name((uint8_t)i);
    rules_problem(loader, node,
                  "`client.class` must be legitimate, suspicious or malicious, not %s%s",
                  quote.text, rules_hint(&hint, value.data, value.size, names, WEIR_CLASSES));
    return false;
}
