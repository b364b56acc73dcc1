/* SPDX-License-Identifier: Apache-2.0 */
/* The record of a solved puzzle, by which its solution is taken once (`challenge:`).
 *
 * The record is a state like any other: a bucket of 1 for the life of a puzzle, on the puzzle's
 * nonce. The first solution is admitted; every later one is denied until the puzzle has expired.
 * Nodes that share a store share the records.
 */
#ifndef WEIR_FEATURE_CHALLENGE_RULES_SOLUTION_H
#define WEIR_FEATURE_CHALLENGE_RULES_SOLUTION_H

#include "feature/challenge/puzzle.h"
#include "rules/match/checks.h"

/* Makes the limit of the records. Errors: as weir_limit_init. */
int rules_make_solved(struct weir_rules *rules) __attribute__((warn_unused_result));

/* Fills the check of a solution, under rules that have a challenge; its key's text is put into an
 * empty scratch. */
void weir_rules_solution(const struct weir_rules *rules,
                         const unsigned char nonce[WEIR_CHALLENGE_NONCE], const uint64_t secret[2],
                         struct weir_scratch *scratch, struct weir_check *check);

#endif
