/* SPDX-License-Identifier: Apache-2.0 */
/* The rules fill the checks of a decision: weir_engine_apply_rules and those beside it, see
 * engine.h. Where the caller has to be looked up, lookup.c calls weir_engine_evaluate again. So the
 * two are a circle: a decision that waits is filled by the same steps as others.
 *
 * Threads: those of the engine.
 */
#ifndef WEIR_ENGINE_APPLY_H
#define WEIR_ENGINE_APPLY_H

#include "engine/pool.h"

struct weir_engine;

/* Fills the checks of a decision under the current rules, or those that its lookup has begun under.
 * The query has a request, a reason and, where the rules are timed, the time; the rest of it is
 * filled here. Errors: as weir_rules_checks. */
int weir_engine_evaluate(struct weir_engine *engine, struct weir_entry *entry,
                         struct weir_rules_query *query) __attribute__((warn_unused_result));

#endif
