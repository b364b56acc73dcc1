/* SPDX-License-Identifier: Apache-2.0 */
/* Overrides: what one caller has instead of a limit's rates. See caller.h; the loader of the keys
 * file needs the rule by its number, and evaluation the one that a rule has.
 *
 * An override is one block of memory, and says all that a plan's rates would: compiled limits, the
 * state of each, its name, and what a node decides alone.
 */
#ifndef WEIR_FEATURE_IDENTITY_RULES_OVERRIDE_H
#define WEIR_FEATURE_IDENTITY_RULES_OVERRIDE_H

#include "feature/identity/rules/caller.h"
#include "rules/compiled.h"

/* As weir_rules_override; `rule` has a limit_template. */
int rules_override_make(const struct weir_rules *rules, uint32_t rule, struct weir_bytes text,
                        struct weir_override **override, struct weir_reason *reason)
    __attribute__((warn_unused_result));

/* Notes which limits some caller may have otherwise, and how many of the keys file do. */
void rules_count_overrides(struct weir_rules *rules);

/* The override of a rule among those of a caller, which ascend by rule; NULL: none. */
static inline const struct weir_override *rules_override_of(const struct weir_override *overrides,
                                                            uint32_t count, uint32_t rule)
{
    uint32_t i = 0;
    while (i < count && overrides[i].rule < rule)
        i++;
    return i < count && overrides[i].rule == rule ? &overrides[i] : NULL;
}

#endif
