/* SPDX-License-Identifier: Apache-2.0 */
/* GET /v1/use/callers: which callers make most requests, by user, organisation and address, and
 * their share of all requests. See docs/use.md.
 *
 * Threads: the admin worker's.
 */
#ifndef WEIR_FEATURE_USE_SERVER_CALLERS_API_H
#define WEIR_FEATURE_USE_SERVER_CALLERS_API_H

#include "feature/use/server/query.h"

void weir_callers_handle(struct weir_http_call *call, struct weir_use_service *use,
                         uint64_t now_ns);

/* {"window", "requests", "callers", "unlisted_most"}: those of a kind, or, where query->kind is not
 * given, the first query->count of each kind. NULL: no memory. */
json_t *weir_callers_json(struct weir_use_service *use, const struct weir_use_query *query,
                          uint64_t now_ns);

#endif
