/* SPDX-License-Identifier: Apache-2.0 */
/* POST /v1/reserve and /v1/settle, and /v1/report with a reservation. See docs/http-api.md. */
#ifndef WEIR_SERVER_HTTP_RESERVE_API_H
#define WEIR_SERVER_HTTP_RESERVE_API_H

#include "server/http/http.h"

void weir_reserve_handle(struct weir_http_call *call);
void weir_settle_handle(struct weir_http_call *call);

/* A report whose body has a reservation. */
void weir_report_settle(struct weir_http_call *call);

#endif
