/* SPDX-License-Identifier: Apache-2.0 */
/* Whether a request has passed a challenge. It is the only place of the rules that knows. */
#ifndef WEIR_RULES_ACTIONS_CHALLENGE_H
#define WEIR_RULES_ACTIONS_CHALLENGE_H

#include <stdbool.h>

struct rules_evaluation;

/* Whether the request comes with a valid proof. No front end verifies proofs yet, so no request
 * has one. */
bool rules_challenge_passed(const struct rules_evaluation *evaluation);

#endif
