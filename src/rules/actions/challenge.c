/* SPDX-License-Identifier: Apache-2.0 */
/* see challenge.h */
#include "rules/actions/challenge.h"

bool rules_challenge_passed(const struct rules_evaluation *evaluation)
{
    (void)evaluation;
    return false;
}
