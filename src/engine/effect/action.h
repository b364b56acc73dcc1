/* SPDX-License-Identifier: Apache-2.0 */
/* The action of a decision: what its limits' steps (rules/actions/steps.h) and `reject`
 * (rules/actions/reject.h) make of its verdict.
 *
 * Admitted: each limit takes the highest of its steps that its use after the request has reached.
 * Use is the whole capacity less what remains of it, whatever the scale, as for warnings; of
 * several rates the one that is used most counts. Of several limits `delay` goes before `mark`, and
 * the longest delay counts.
 *
 * Denied: a limit whose challenge alone denies the request challenges, one with a tarpit denies
 * late, any other denies at once. The strictest of them counts, and the limit to blame shapes the
 * answer.
 *
 * Limits in shadow, pools that a limit borrows from, and limits that no store has decided do
 * nothing here. On WEIR_OP_PEEK the use includes the cost, which was not charged.
 *
 * Threads: those of the engine.
 */
#ifndef WEIR_ENGINE_EFFECT_ACTION_H
#define WEIR_ENGINE_EFFECT_ACTION_H

#include "core/answer.h"

/* Sets action, delay_ns and reject of an answer whose limits are filled from the first `shown`
 * checks of a finished decision. The rules of the decision act (weir_rules_acts). */
void weir_action_choose(const struct weir_decision *decision, uint16_t shown,
                        struct weir_answer *answer);

/* Whether a denied decision asks its client for a solved puzzle. */
bool weir_action_challenges(const struct weir_decision *decision);

#endif
