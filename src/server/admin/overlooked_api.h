/* SPDX-License-Identifier: Apache-2.0 */
/* /v1/overlooked: what of requests was not taken (net/overlooked.h). See docs/http-api.md. */
#ifndef WEIR_SERVER_ADMIN_OVERLOOKED_API_H
#define WEIR_SERVER_ADMIN_OVERLOOKED_API_H

#include "server/admin/exposition.h"
#include "server/http/http.h"

extern const struct weir_http_route weir_overlooked_routes[];
extern const struct weir_metric_table weir_overlooked_metrics[];

#endif
