/* SPDX-License-Identifier: Apache-2.0 */
/* see challenge.h */
#include "rules/actions/challenge.h"

#include "feature/challenge/rules/attribute.h"

bool rules_challenge_passed(struct rules_evaluation *evaluation)
{
    return rules_challenge_value(evaluation).data;
}
