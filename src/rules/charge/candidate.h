/* SPDX-License-Identifier: Apache-2.0 */
/* Candidates: `candidate:` of a limit, a rate that is tried in shadow beside the live one, on
 * states of its own; see engine/effect/candidate.h for how and what is counted.
 *
 *   candidate: 50/min                                      in place of the rate (or the quota)
 *   candidate: [10/s, 500/h]
 *   candidate: {rate: 50/min, algorithm: gcra, burst: 5}   anything of the numbers
 *
 * What a candidate does not say is as the limit says it; with another `algorithm` its own options
 * start from their defaults. Key, match, cost and on_deny are the limit's. A limit by plan has one
 * candidate for all plans. In a shared store, the states are called NAME~candidate.
 *
 * With `global`, a candidate is divided as its limit is (feature/region/rules/region.h), and each
 * region counts it alone: the home of a key by the home's part, the others by floors. Nothing is
 * lent of it.
 */
#ifndef WEIR_RULES_CHARGE_CANDIDATE_H
#define WEIR_RULES_CHARGE_CANDIDATE_H

#include "feature/identity/rules/caller.h"
#include "rules/rules.h"

/* Whether any limit has a candidate. */
bool weir_rules_any_candidate(const struct weir_rules *rules);

/* Whether the limit of this check, its first one, has a candidate that can decide. */
bool weir_rules_has_candidate(const struct weir_rules *rules, const struct weir_check *live);

/* The checks of a limit's candidate, from the limit's first check: one for each of its rates. Their
 * key's text is that check's. Returns how many; 0: it has no candidate, or no state. */
uint16_t weir_rules_candidate(const struct weir_rules *rules, const struct weir_check *live,
                              struct weir_check checks[WEIR_RATES_MAX]);

#endif
