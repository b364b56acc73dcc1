/* SPDX-License-Identifier: Apache-2.0 */
/* GET /v1/denials: the denials that are kept in memory, by key, limit and time; and a call that
 * waits for the next ones (`after`, `wait`). GET /v1/denials/groups: a summary of them
 * (denial_groups.h). See docs/use.md. */
#ifndef WEIR_FEATURE_USE_SERVER_DENIALS_API_H
#define WEIR_FEATURE_USE_SERVER_DENIALS_API_H

#include "feature/use/server/query.h"

extern const struct weir_http_route weir_denials_routes[];

/* A JSON array of the newest denials that match, newest first, at most `count`. `before`: only
 * those of lower ids; 0: all. */
json_t *weir_denials_newest(const struct weir_use_service *use,
                            const struct weir_denial_filter *filter, uint64_t before,
                            uint64_t count);

#endif
