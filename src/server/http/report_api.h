/* SPDX-License-Identifier: Apache-2.0 */
/* POST /v1/report: how a request ended. See docs/http-api.md.
 *
 * With a reservation it settles that by its status (reserve_api.h). Without one the body describes
 * the request as for /v1/check, with its `status` and perhaps `latency_ms`: the rules find the
 * limits that applied to it, nothing is charged, and what learns from outcomes gets them. */
#ifndef WEIR_SERVER_HTTP_REPORT_API_H
#define WEIR_SERVER_HTTP_REPORT_API_H

#include "server/http/http.h"

void weir_report_handle(struct weir_http_call *call);

#endif
