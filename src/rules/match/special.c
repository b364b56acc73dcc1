/* SPDX-License-Identifier: Apache-2.0 */
/* see special.h */
#include "rules/match/special.h"

#include "rules/match/pattern.h"

/* Whether the request says that it has no such value. */
static bool is_supplied(const struct rules_evaluation *evaluation, const struct rules_part *part)
{
    uint8_t fields = evaluation->request->fields;
    return part->supplied_by == RULES_SUPPLIED_ALWAYS || fields == WEIR_FIELDS_ALL ||
           (part->supplied_by == RULES_SUPPLIED_BY_LOG && fields == WEIR_FIELDS_LOG);
}

/* Patterns that captures are not taken from. */
static bool path_is_in(struct rules_evaluation *evaluation, const struct rules_part *part)
{
    rules_path_atoms(evaluation);
    for (uint32_t a = 0; a < evaluation->path_count && a < RULES_PATH_ATOMS_MAX; a++)
        if (rules_part_has_place(part, evaluation->path_atoms[a]))
            return true;
    return false;
}

/* Whether the request has a value at all, and whether it is one of the part's. */
static bool find_value(struct rules_evaluation *evaluation, const struct rules_rule *rule,
                       const struct rules_part *part, bool *listed)
{
    struct rules_part plain = *part;
    int pattern;
    plain.kind = part->of;
    switch (part->of) {
    case RULES_PART_PATH:
        *listed = path_is_in(evaluation, part);
        return evaluation->path.data;
    case RULES_PART_ADDRESS:
        *listed = rules_part_holds(evaluation, rule, &plain);
        return evaluation->request->client.family != 0;
    case RULES_PART_CAPTURE:
        *listed = rules_part_holds(evaluation, rule, &plain);
        pattern = rules_pattern_of(evaluation, rule);
        return pattern >= 0 && part->segments[pattern] >= 0;
    default:
        *listed = rules_part_holds(evaluation, rule, &plain);
        return rules_value(evaluation, part->attribute).data;
    }
}

bool rules_special_holds(struct rules_evaluation *evaluation, const struct rules_rule *rule,
                         const struct rules_part *part)
{
    bool listed = false;
    if (part->at_least > 0)
        return evaluation->score.score >= part->at_least;
    if (!find_value(evaluation, rule, part, &listed))
        return part->absent && !part->negated && is_supplied(evaluation, part);
    return listed != part->negated;
}
