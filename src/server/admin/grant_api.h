/* SPDX-License-Identifier: Apache-2.0 */
/* POST /v1/limits/{name}/grant: see docs/http-api.md. */
#ifndef WEIR_SERVER_ADMIN_GRANT_API_H
#define WEIR_SERVER_ADMIN_GRANT_API_H

#include "server/http/http.h"

void weir_grant_handle(struct weir_http_call *call, uint32_t rule);

#endif
