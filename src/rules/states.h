/* SPDX-License-Identifier: Apache-2.0 */
/* Which of a key's states a limit counts in.
 *
 * A key has a state for each of a limit's several rates: 0, 1, 2, in the order of the file. Its
 * plans and the overrides of callers count in the same ones, so that a caller who changes to
 * another keeps what was used: a rate takes the state of the one with its window, else of one whose
 * states convert to its own (weir_limit_converts). Where there is none, as for a month's quota in
 * place of a day's, what was used means nothing under the new one. Then it gets a state beside the
 * others, by a hash of what makes it different: taking over the one that is there would start it
 * fresh, and two callers of one key who differ so (two plans in one organisation) would start each
 * other fresh with every request.
 *
 * Threads: pure.
 */
#ifndef WEIR_RULES_STATES_H
#define WEIR_RULES_STATES_H

#include "rules/compiled.h"

/* A hash that differs between limits whose states do not convert to each other. */
uint32_t rules_kind_hash(const struct weir_limit_spec *spec);

/* The rates whose states have the numbers 0, 1, 2: the rule's own, the default plan's, or the first
 * plan's that has any; of none where all is unlimited. */
struct rules_rates rules_states_reference(const struct weir_rules *rules,
                                          const struct rules_rule *rule);

/* The state of each of `count` limits that count together: 0 <= count <= WEIR_RATES_MAX. */
void rules_states_of(const struct rules_rates *reference, const struct weir_limit *limits,
                     uint32_t count, uint32_t states[WEIR_RATES_MAX]);

/* Makes the hash of a key that of one of its states: as good as random, and stays that; made twice,
 * it is the key's again. */
static inline void rules_state_choose(uint64_t hash[2], uint64_t state)
{
    hash[0] ^= state * UINT64_C(0x9E3779B97F4A7C15);
    hash[1] ^= state * UINT64_C(0xC2B2AE3D27D4EB4F);
}

/* The name of a state, in shared stores and in logs: the limit's name,
 * and behind a '#', which no name has, the state from the second on. Returns its length. */
#define RULES_STATE_NAME_MAX (RULES_NAME_MAX + 12)
size_t rules_state_name(const struct rules_rule *rule, uint32_t state,
                        char text[RULES_STATE_NAME_MAX]);

/* The number of the state with this name. */
uint32_t rules_state_called(const char *name);

#endif
