/* SPDX-License-Identifier: Apache-2.0 */
/* Top-ups: units that an operator gives one key above its limit (`weir grant --above`), because a
 * customer has bought them.
 *
 *   top_up: 366d     the limit takes top-ups; how long units live that are given without an end
 *
 * They are a state of their own beside the limit's (core/prepaid.h), the same for all its rates and
 * plans, so that they outlast a window, a period and a change of plan. Nothing reads it until the
 * limit denies a request; then the engine asks it in the limit's place (engine/borrow.h), and the
 * request is charged to it as a whole, or denied as before. In a shared store its name is
 * NAME~top_up.
 *
 * A request that may use only a part of a limit (charge/scale.h) takes no bought units for it.
 *
 * The loader refuses what has no meaning above a limit: concurrency and queues (nothing of them can
 * be bought), several rates in one limit (which of them was bought?), `on_deny: charge` (a request
 * would be charged twice), pools on either side, `global` and `mode: leased` (a denial there is one
 * region's or one node's, not the limit's), and nodes that are `sticky`.
 */
#ifndef WEIR_RULES_CHARGE_TOP_UP_H
#define WEIR_RULES_CHARGE_TOP_UP_H

#include "rules/rules.h"

/* Whether any limit takes top-ups; and whether this one does. */
bool weir_rules_any_top_up(const struct weir_rules *rules);
bool weir_rules_takes_top_up(const struct weir_rules *rules, uint32_t rule);

/* What the state of its top-ups is called: NAME~top_up, which is no limit's. NULL: it takes none.
 */
const char *weir_rules_top_up_name(const struct weir_rules *rules, uint32_t rule);

/* How long units live that this limit's keys are given without an end. */
uint64_t weir_rules_top_up_life(const struct weir_rules *rules, uint32_t rule);

/* The check of the top-up of a key, from the first check of its limit. Its key's text is that
 * check's. False: the limit takes none, or the check has no state. */
bool weir_rules_top_up(const struct weir_rules *rules, const struct weir_check *live,
                       struct weir_check *check);

/* Whether a check is one of those. */
bool weir_rules_is_top_up(const struct weir_check *check);

#endif
