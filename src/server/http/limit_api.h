/* SPDX-License-Identifier: Apache-2.0 */
/* POST /v1/limit: decides limits that are given in the request, all of them or none.
 *
 * They are limits as those of Redis commands (resp/adhoc_limits.h): made known to the table once,
 * from the same bounded list, and found by each worker in a cache of its own by their numbers.
 * Their keys are separate from those of commands and of the rules file (limit_spec.h).
 *
 * The caller chooses the limit, so only trusted listeners serve it. See docs/http-api.md. */
#ifndef WEIR_SERVER_HTTP_LIMIT_API_H
#define WEIR_SERVER_HTTP_LIMIT_API_H

#include "server/http/http.h"

/* For a listener's workspace that has been opened: the limits of all workers, which outlive it, and
 * the secret of its keys. */
void weir_limit_open(struct weir_http *http, struct weir_adhoc_limits *limits);

void weir_limit_handle(struct weir_http_call *call);

#endif
