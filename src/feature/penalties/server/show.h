/* SPDX-License-Identifier: Apache-2.0 */
/* The steps that a value has reached, for the admin API and `weir standing show`. */
#ifndef WEIR_FEATURE_PENALTIES_SERVER_SHOW_H
#define WEIR_FEATURE_PENALTIES_SERVER_SHOW_H

#include <jansson.h>

#include "feature/standing/server/keeper.h"
#include "rules/rules.h"

/* A list, a member for each penalty of the rules with a step that is not forgiven: "penalty",
 * "step", "steps", "standing" of the step, "until_ms" (the end of its term; null: never),
 * "forgiven_ms" (when one step is forgiven, without further strikes; null: never). */
json_t *weir_penalties_json(const struct weir_rules *rules,
                            const struct weir_keeper_ladders *ladders, uint64_t now_ns);

#endif
