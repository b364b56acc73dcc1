/* SPDX-License-Identifier: Apache-2.0 */
/* What a node of a fleet without a shared store asks of its rules: the home of a tag, and the limit
 * that another node means.
 *
 * Threads: pure; the rules are immutable.
 */
#ifndef WEIR_FEATURE_STICKY_RULES_STICKY_H
#define WEIR_FEATURE_STICKY_RULES_STICKY_H

#include "rules/rules.h"

/* The number of the peer that is home of the keys with this tag, among settings.sticky.peers. The
 * rules have the section. */
uint32_t weir_rules_sticky_home(const struct weir_rules *rules, uint64_t tag);

/* The limit of these rules whose states have this name and whose numbers are these; a name of size
 * 0: the record of an idempotency key. NULL: there is none. */
const struct weir_limit *weir_rules_limit_like(const struct weir_rules *rules,
                                               struct weir_bytes name,
                                               const struct weir_limit_spec *spec);

/* Gives the numbers of a quota the boundaries of its calendar: those of the limit of these rules
 * whose states have this name, in the same calendar, whatever its rate. They are valid as long as
 * the rules. Returns false where there is none. */
bool weir_rules_quota_bounds(const struct weir_rules *rules, struct weir_bytes name,
                             struct weir_limit_spec *spec);

#endif
