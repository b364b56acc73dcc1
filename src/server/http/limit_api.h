/* SPDX-License-Identifier: Apache-2.0 */
/* POST /v1/limit: decides limits that are given in the request, all of them or none.
 *
 * adhoc/request_limits.h makes them checks.
 *
 * The caller chooses the limit, so only trusted listeners serve it. See docs/http-api.md. */
#ifndef WEIR_SERVER_HTTP_LIMIT_API_H
#define WEIR_SERVER_HTTP_LIMIT_API_H

#include "server/http/http.h"

void weir_limit_handle(struct weir_http_call *call);

#endif
