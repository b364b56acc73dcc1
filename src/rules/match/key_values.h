/* SPDX-License-Identifier: Apache-2.0 */
/* The check of one key by its values, without a request: for looking at a state, or removing it.
 *
 * The values are in the order of the limit's `key`, which says what each is (an address, a captured
 * segment, a header), so the hash is the one that requests of that key get. They are written as the
 * key's text shows them: an address or a prefix of it; "ip:…" for a user that is an address.
 *
 * Threads: as rules.h, reads only. Allocates nothing.
 */
#ifndef WEIR_RULES_MATCH_KEY_VALUES_H
#define WEIR_RULES_MATCH_KEY_VALUES_H

#include "rules/match/checks.h"

#define WEIR_KEY_VALUES_MAX 8

struct weir_key_values {
    struct weir_bytes values[WEIR_KEY_VALUES_MAX]; /* data == NULL: missing */
    uint32_t count;
    struct weir_bytes plan; /* whose rate counts, for `rate: plan`; data == NULL: default_plan */
    bool needs_plan; /* a limit by plan needs `plan`, the plan in its key, or an override: no plan
                        is guessed */
    struct weir_bytes user; /* whose overrides count, if the keys file has some; data == NULL:
                               the user in the key, if there is one */
};

/* Fills `checks` (room for WEIR_CHECKS_MAX) with the limits, key and flags of rule `index` (below
 * weir_rules_count), cost 1 by the rule's own `cost`: one check for each of its rates. The key's
 * text is in `scratch`. Returns how many. Errors: WEIR_ERR_RANGE (not as many values as the key
 * has; one is missing though requests without it are not limited; no pattern captures them all; an
 * unknown plan; none where one is needed), WEIR_ERR_SYNTAX (not an address, a level of standing or
 * a score; a malformed path or host), WEIR_ERR_TOO_LARGE; `reason` names the value. */
int weir_rules_key_check(const struct weir_rules *rules, uint32_t index,
                         const struct weir_key_values *values, const uint64_t secret[2],
                         struct weir_scratch *scratch, struct weir_check *checks,
                         struct weir_reason *reason) __attribute__((warn_unused_result));

#endif
