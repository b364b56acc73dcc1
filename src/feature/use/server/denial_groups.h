/* SPDX-License-Identifier: Apache-2.0 */
/* A summary of the denials that are kept in memory and that a filter lets through: how many over
 * the time, and by whom and what.
 *
 *   {"denials": 812, "kept": 40,          those that were counted and not kept are in `denials`
 *    "from_s": …, "step_s": 5, "counts": [0, 3, …],
 *    "known_from_s": …,                   before that, nothing is kept any more
 *    "limit_known": true,                 the rules have the limit of the filter
 *    "groups": {"limit": [{"name": "api", "denials": 800}, …],
 *               "caller": [{"key": "user=ann", "values": […], "denials": 12}, …],
 *               "route": […], "cause": […]}, "others": {"limit": 0, …}}
 *
 * A caller is the first of user, organisation and address that is known, else the key. A group has
 * at most WEIR_DENIAL_GROUP_MAX members, the greatest; `others` counts the rest. `name` is null
 * where a denial has none.
 *
 * Cost: it looks at WEIR_DENIALS_KEPT denials and sorts them once for each kind, without hashes
 * that callers could choose names for: some milliseconds. Threads: the main thread's.
 */
#ifndef WEIR_FEATURE_USE_SERVER_DENIAL_GROUPS_H
#define WEIR_FEATURE_USE_SERVER_DENIAL_GROUPS_H

#include "feature/use/server/use.h"

#define WEIR_DENIAL_GROUP_MAX 10
#define WEIR_DENIAL_BARS_MAX 120 /* of the histogram */

/* The length of a bar, in whole seconds that people read easily, so that there are at most
 * WEIR_DENIAL_BARS_MAX. */
uint64_t weir_denial_bar_s(uint64_t span_s);

/* NULL: no memory. */
json_t *weir_denial_groups_json(struct weir_use_service *use,
                                const struct weir_denial_filter *filter, uint64_t now_ns);

#endif
