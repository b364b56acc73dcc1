/* SPDX-License-Identifier: Apache-2.0 */
/* see priority.h */
#include "feature/priority/rules/priority.h"

#include "core/bytes.h"
#include "rules/match/evaluate.h"

static uint8_t class_called(const struct rules_priority *priority, struct weir_bytes name)
{
    for (uint8_t i = 0; name.data && i < priority->class_count; i++)
        if (weir_bytes_are(name, priority->names[i]))
            return i;
    return priority->fallback;
}

static uint8_t class_of_path(struct rules_evaluation *evaluation,
                             const struct rules_priority *priority)
{
    rules_path_atoms(evaluation);
    for (uint32_t i = 0; i < priority->route_count; i++)
        for (uint32_t a = 0; a < evaluation->path_count && a < RULES_PATH_ATOMS_MAX; a++)
            if (evaluation->path_atoms[a] == priority->routes[i].atom)
                return priority->routes[i].class;
    return priority->fallback;
}

static uint8_t find_class(struct rules_evaluation *evaluation)
{
    const struct rules_priority *priority = evaluation->rules->priority;
    switch (priority->source) {
    case RULES_PRIORITY_PLAN:
        return class_called(priority, rules_value(evaluation, WEIR_ATTR_PLAN));
    case RULES_PRIORITY_ROUTES:
        return class_of_path(evaluation, priority);
    default:
        return weir_request_trusts(evaluation->request, priority->attribute)
                   ? class_called(priority, rules_value(evaluation, priority->attribute))
                   : priority->fallback;
    }
}

uint8_t rules_class_of(struct rules_evaluation *evaluation)
{
    if (evaluation->class == 0)
        evaluation->class = (uint8_t)(1 + find_class(evaluation));
    return (uint8_t)(evaluation->class - 1);
}

const struct rules_priority *weir_rules_priority(const struct weir_rules *rules)
{
    return rules->priority;
}

const uint8_t *weir_rules_shed(const struct weir_rules *rules, uint32_t rule)
{
    return rules->rules[rule].shed;
}
