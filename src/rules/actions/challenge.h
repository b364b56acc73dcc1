/* SPDX-License-Identifier: Apache-2.0 */
/* Whether a request has passed a challenge, for steps. */
#ifndef WEIR_RULES_ACTIONS_CHALLENGE_H
#define WEIR_RULES_ACTIONS_CHALLENGE_H

#include <stdbool.h>

struct rules_evaluation;

/* Whether the request carries a token that holds for its client
 * (feature/challenge/rules/attribute.h). */
bool rules_challenge_passed(struct rules_evaluation *evaluation);

#endif
