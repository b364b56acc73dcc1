/* SPDX-License-Identifier: Apache-2.0 */
/* `limits`: each limit as a whole, with its `candidate`, `enforce`, `unless` and `warn_at`; the
 * other parts of a limit have modules of their own (match.h, key.h, rate.h, cost.h, sharing.h).
 */
#ifndef WEIR_RULES_LOAD_LIMIT_LIMITS_H
#define WEIR_RULES_LOAD_LIMIT_LIMITS_H

#include "rules/load/fields.h"

/* Loads all limits. Plans, callers, the store and path options are loaded already. */
void rules_load_limits(struct rules_loader *loader, const struct rules_node *node);

#endif
