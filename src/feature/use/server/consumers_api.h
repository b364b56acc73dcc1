/* SPDX-License-Identifier: Apache-2.0 */
/* GET /v1/use/top, /v1/use/near, /v1/use/key: use by key, keys near a limit, and all that is
 * known of one key. See docs/use.md.
 *
 * How full a key is comes from its state at this moment, by a look at the table that charges
 * nothing, where the limit has one rate and the table decides. It locks the state's bucket as long
 * as any decision does. Else it is what was seen last, and `seen_s` says how long ago.
 */
#ifndef WEIR_FEATURE_USE_SERVER_CONSUMERS_API_H
#define WEIR_FEATURE_USE_SERVER_CONSUMERS_API_H

#include "feature/use/server/query.h"

extern const struct weir_http_route weir_consumers_routes[];

/* The keys of a window, of one limit or of all, as `query` orders them: an array. */
json_t *weir_consumers_keys(struct weir_use_service *use, const struct weir_use_query *query,
                            uint64_t now_ns);

/* {"decided", "refused": {"limit", "standing", …}}: requests since the start. */
json_t *weir_use_requests_json(const struct weir_use_service *use);

/* Sets "key" and "values" of an item: what is shown of it. */
void weir_consumers_name(json_t *json, const struct weir_heavy_entry *entry);

#endif
